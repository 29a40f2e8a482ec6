"""Gradients: backward, grad, and the contexts that switch recording on and off."""

from tercel import _C
from tercel._C import Tensor
from tercel.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from tercel.autograd.variable import Variable as Variable

__all__ = ["backward", "grad", "enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]


def _as_tuple(tensors):
    return (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)


def _gradients(outputs, given):
    """A gradient for each output: what was given, or 1 for a scalar."""
    given = (None,) * len(outputs) if given is None else _as_tuple(given)
    made = []
    for out, gradient in zip(outputs, given):
        if gradient is not None:
            if gradient.shape != out.shape:
                raise RuntimeError(f"Mismatch in shape: grad_output[{len(made)}] has a shape of {gradient.shape} and "
                                   f"output[{len(made)}] has a shape of {out.shape}.")
        elif out.requires_grad and out.numel() != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        elif out.requires_grad:
            gradient = _C.ones_like(out)
        made.append(gradient)
    return tuple(made)


def _retained(retain_graph, create_graph):
    return create_graph if retain_graph is None else bool(retain_graph)


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Adds gradients of the tensors to the .grad of the leaves that they depend on, or of `inputs` alone."""
    tensors = _as_tuple(tensors)
    gradients = _gradients(tensors, grad_tensors if grad_tensors is not None else grad_variables)
    if inputs is not None and not (inputs := _as_tuple(inputs)):
        raise RuntimeError("'inputs' argument to backward() cannot be empty.")
    _C._run_backward(tensors, gradients, _retained(retain_graph, create_graph), create_graph, inputs or ())


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True,
         allow_unused=None, is_grads_batched=False, materialize_grads=False):
    """Gradients of the outputs with respect to the inputs; no .grad changes."""
    outputs, inputs = _as_tuple(outputs), _as_tuple(inputs)
    found = _C._run_grad(outputs, inputs, _gradients(outputs, grad_outputs),
                         _retained(retain_graph, create_graph), create_graph, bool(allow_unused) or materialize_grads)
    if materialize_grads:
        found = tuple(_C.zeros_like(x) if g is None else g for x, g in zip(inputs, found))
    return found
