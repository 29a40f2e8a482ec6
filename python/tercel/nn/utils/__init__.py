"""Utilities for the gradients and values of all parameters of a model."""

import math
import sys
import warnings

from tercel import _C
from tercel._C import Tensor
from tercel.autograd import no_grad
from tercel.nn.utils import parametrizations, parametrize, prune, rnn, stateless  # noqa: F401
from tercel.nn.utils.fusion import (fuse_conv_bn_eval, fuse_conv_bn_weights, fuse_linear_bn_eval,
                                    fuse_linear_bn_weights)
from tercel.nn.utils.init import skip_init
from tercel.nn.utils.memory_format import convert_conv2d_weight_memory_format, convert_conv3d_weight_memory_format
from tercel.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm
from tercel.nn.utils.weight_norm import remove_weight_norm, weight_norm

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_",
           "convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format", "fuse_conv_bn_eval",
           "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights", "get_total_norm",
           "parameters_to_vector", "remove_spectral_norm", "remove_weight_norm", "skip_init", "spectral_norm",
           "vector_to_parameters", "weight_norm"]


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
    """Scales all gradients by one factor so that their total norm is at most max_norm; returns the original norm."""
    parameters = _as_list(parameters)
    total = get_total_norm([p.grad for p in parameters if p.grad is not None], norm_type, error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


@no_grad()
def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scales all gradients by min(1, max_norm / total_norm)."""
    factor = min(float(max_norm) / (float(total_norm) + 1e-6), 1.0)
    if factor == 1.0:  # false for NaN
        return
    for p in _as_list(parameters):
        if p.grad is not None:
            p.grad.mul_(factor)


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Deprecated alias of clip_grad_norm_()."""
    warnings.warn("`tercel.nn.utils.clip_grad_norm` is now deprecated in favor of `tercel.nn.utils.clip_grad_norm_`.",
                  FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@no_grad()
def clip_grad_value_(parameters, clip_value, foreach=None):
    """Clamps every gradient to [-clip_value, clip_value]."""
    clip_value = float(clip_value)
    for p in _as_list(parameters):
        if p.grad is not None:
            # Of a gradient of rows, sums are clamped rather than the terms of equal rows.
            sums = p.grad.coalesce() if p.grad.is_sparse else p.grad
            sums.clamp_(-clip_value, clip_value)
            if sums is not p.grad:
                p.grad.copy_(sums)


def parameters_to_vector(parameters):
    """All parameters concatenated to one vector."""
    return _C.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec, parameters):
    """Makes the parameters views of a vector from parameters_to_vector()."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected tercel.Tensor, but got: {type(vec)}")
    begin = 0
    for p in parameters:
        p.data = vec[begin:begin + p.numel()].view_as(p).data
        begin += p.numel()


# PyTorch has a module for each: `from torch.nn.utils.clip_grad import clip_grad_norm_`.
for _name in ("clip_grad", "convert_parameters"):
    globals()[_name] = sys.modules[f"{__name__}.{_name}"] = sys.modules[__name__]
