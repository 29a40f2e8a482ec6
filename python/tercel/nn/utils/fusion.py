"""Fuses batch norms with running statistics into the preceding layer."""

import copy

from tercel import _C
from tercel.nn.parameter import Parameter


def _scale_and_shift(bias, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """The factor that the norm applies to each output, and the resulting bias."""
    scale = _C.rsqrt(bn_rv + bn_eps)
    if bn_w is not None:
        scale = scale * bn_w
    shift = -bn_rm * scale if bias is None else (bias - bn_rm) * scale
    return scale, shift if bn_b is None else shift + bn_b


def _as_parameters(weight, bias, like):
    return tuple(Parameter(value.detach().to(like.dtype), like.requires_grad) for value in (weight, bias))


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """Weight and bias of the convolution equivalent to a convolution followed by a batch norm.

    bn_rm and bn_rv are the running mean and variance; transpose: the weight is that of a transposed convolution.
    """
    scale, shift = _scale_and_shift(conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
    sizes = [1] * conv_w.dim()
    sizes[1 if transpose else 0] = -1
    return _as_parameters(conv_w * scale.reshape(sizes), shift, conv_w)


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """Weight and bias of the linear layer equivalent to a linear layer followed by a batch norm."""
    scale, shift = _scale_and_shift(linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
    return _as_parameters(linear_w * scale.unsqueeze(-1), shift, linear_w)


def _fused(layer, bn, weights, *more):
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    fused = copy.deepcopy(layer)
    fused.weight, fused.bias = weights(fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight,
                                       bn.bias, *more)
    return fused


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """A copy of the convolution with the batch norm fused in; both must be in eval mode."""
    return _fused(conv, bn, fuse_conv_bn_weights, transpose)


def fuse_linear_bn_eval(linear, bn):
    """A copy of the linear layer with the batch norm fused in; both must be in eval mode."""
    if not (linear.training or bn.training) and bn.num_features not in (1, linear.out_features):
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
                             f"linear.out_features={linear.out_features} and bn.num_features={bn.num_features}")
    return _fused(linear, bn, fuse_linear_bn_weights)
