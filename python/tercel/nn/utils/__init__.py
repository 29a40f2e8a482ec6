"""Work on the gradients, or the values, of all parameters of a model."""

import math

from tercel import _C
from tercel._C import Tensor
from tercel.autograd import no_grad
from tercel.nn.utils import rnn  # noqa: F401

__all__ = ["clip_grad_norm_", "clip_grad_value_", "get_total_norm", "parameters_to_vector", "vector_to_parameters"]


def _as_list(parameters):
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


@no_grad()
def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The p-norm of all elements of the tensors together."""
    tensors = _as_list(tensors)
    if not tensors:
        return _C.tensor(0.0)
    norm_type = float(norm_type)
    total = _C.norm(_C.stack([_C.norm(t, norm_type) for t in tensors]), norm_type)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it "
                           "cannot be clipped. To disable this error and scale the gradients by the non-finite norm "
                           "anyway, set `error_if_nonfinite=False`")
    return total


@no_grad()
def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scales all gradients together so that their norm is at most max_norm; gives back what it was."""
    grads = [p.grad for p in _as_list(parameters) if p.grad is not None]
    total = get_total_norm(grads, norm_type, error_if_nonfinite)
    factor = min(float(max_norm) / (total.item() + 1e-6), 1.0)
    if factor != 1.0:  # not a number too
        for grad in grads:
            grad.mul_(factor)
    return total


@no_grad()
def clip_grad_value_(parameters, clip_value, foreach=None):
    """Clamps every gradient to [-clip_value, clip_value]."""
    clip_value = float(clip_value)
    for p in _as_list(parameters):
        if p.grad is not None:
            p.grad.clamp_(-clip_value, clip_value)


def parameters_to_vector(parameters):
    """All parameters in a row."""
    return _C.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec, parameters):
    """Makes parameters views of such a vector."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected tercel.Tensor, but got: {type(vec)}")
    begin = 0
    for p in parameters:
        p.data = vec[begin:begin + p.numel()].view_as(p).data
        begin += p.numel()
