"""Gradients of convolutions as functions: with respect to the input and to the weight."""

from tercel import _C
from tercel.autograd import enable_grad
from tercel.autograd import grad as _grad
from tercel.nn import functional

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _convolution(dims):
    convolve = getattr(functional, f"conv{dims}d")

    def gradient(place, input, weight, grad_output, options):  # noqa: A002
        # A convolution is linear in the operand: only its sizes matter for the gradient, not its values.
        given = [input, weight]
        given[place] = _C.empty(1, dtype=grad_output.dtype).expand(given[place]).requires_grad_()
        with enable_grad():
            output = convolve(given[0].detach() if place else given[0], given[1] if place else given[1].detach(), None,
                              *options)
        return _grad(output, given[place], grad_output)[0]

    def by_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
        return gradient(0, input_size, weight, grad_output, (stride, padding, dilation, groups))

    def by_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):  # noqa: A002
        return gradient(1, input, weight_size, grad_output, (stride, padding, dilation, groups))

    for function, what, sizes in ((by_input, "input", "input_size"), (by_weight, "weight", "weight_size")):
        function.__name__ = function.__qualname__ = f"conv{dims}d_{what}"
        function.__doc__ = f"The gradient of conv{dims}d() for its {what} of sizes {sizes}, from that of its result."
    return by_input, by_weight


conv1d_input, conv1d_weight = _convolution(1)
conv2d_input, conv2d_weight = _convolution(2)
conv3d_input, conv3d_weight = _convolution(3)
