"""Functions that PyTorch has in its main module, though programs should use those of nn.functional, or methods.

Losses take numbers for reductions here, layers all of their arguments.
"""

from tercel import _C
from tercel._C import Tensor
from tercel.functional import _without_autocast

__all__ = ["addmv_", "alpha_dropout_", "as_strided_", "batch_norm", "binary_cross_entropy_with_logits", "convolution",
           "cosine_embedding_loss", "ctc_loss", "dropout_", "feature_alpha_dropout_",
           "feature_dropout_", "gcd_", "hinge_embedding_loss", "instance_norm", "kl_div", "lcm_", "margin_ranking_loss",
           "native_batch_norm", "native_dropout", "native_group_norm", "native_layer_norm", "norm_except_dim",
           "poisson_nll_loss", "triplet_margin_loss", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes",
           "view_as_complex_copy", "view_as_real_copy", "xlogy_"]

addmv_, as_strided_, gcd_, lcm_, xlogy_ = Tensor.addmv_, Tensor.as_strided_, Tensor.gcd_, Tensor.lcm_, Tensor.xlogy_
# PyTorch's unsafe functions do not detect in-place changes of the parts; these do.
unsafe_chunk, unsafe_split, unsafe_split_with_sizes = _C.chunk, _C.split, _C.split_with_sizes


def view_as_complex_copy(input, *, out=None):  # noqa: A002
    """A copy of view_as_complex()."""
    result = _C.view_as_complex(input).clone()
    return result if out is None else out.resize_(result.shape).copy_(result)


def view_as_real_copy(input, *, out=None):  # noqa: A002
    """A copy of view_as_real()."""
    result = _C.view_as_real(input).clone()
    return result if out is None else out.resize_(result.shape).copy_(result)


def _functional():
    from tercel.nn import functional  # imported at the first call, to keep `import tercel` fast
    return functional


_REDUCTIONS = ("none", "mean", "sum")


def _word(name, reduction):
    if reduction not in (0, 1, 2):
        raise RuntimeError(f"{name}: expected reduction to be 0 (none), 1 (mean) or 2 (sum), but got {reduction!r}")
    return _REDUCTIONS[reduction]


def _loss(name, tensors, reduction, **options):
    return getattr(_functional(), name)(*tensors, reduction=_word(name, reduction), **options)


def binary_cross_entropy_with_logits(input, target, weight=None, pos_weight=None, reduction=1):  # noqa: A002
    """nn.functional.binary_cross_entropy_with_logits(); reduction: 0 for none, 1 for the mean, 2 for the sum."""
    return _loss("binary_cross_entropy_with_logits", (input, target), reduction, weight=weight, pos_weight=pos_weight)


def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction=1):
    """nn.functional.cosine_embedding_loss(); reduction: 0 for none, 1 for the mean, 2 for the sum."""
    return _loss("cosine_embedding_loss", (input1, input2, target), reduction, margin=margin)


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=1, zero_infinity=False):
    """nn.functional.ctc_loss(); reduction: 0 for none, 1 for the mean, 2 for the sum."""
    return _loss("ctc_loss", (log_probs, targets, input_lengths, target_lengths), reduction, blank=blank,
                 zero_infinity=zero_infinity)


def hinge_embedding_loss(input, target, margin=1.0, reduction=1):  # noqa: A002
    """nn.functional.hinge_embedding_loss(); reduction: 0 for none, 1 for the mean, 2 for the sum."""
    return _loss("hinge_embedding_loss", (input, target), reduction, margin=margin)


def kl_div(input, target, reduction=1, *, log_target=False):  # noqa: A002
    """nn.functional.kl_div(); reduction: 0 for none, 1 for the mean of all elements, 2 for the sum."""
    # kl_div(reduction="mean") would warn that it is not "batchmean".
    word, losses = _word("kl_div", reduction), _loss("kl_div", (input, target), 0, log_target=log_target)
    return losses if word == "none" else getattr(losses, word)()


def margin_ranking_loss(input1, input2, target, margin=0.0, reduction=1):
    """nn.functional.margin_ranking_loss(); reduction: 0 for none, 1 for the mean, 2 for the sum."""
    return _loss("margin_ranking_loss", (input1, input2, target), reduction, margin=margin)


def poisson_nll_loss(input, target, log_input, full, eps, reduction):  # noqa: A002
    """nn.functional.poisson_nll_loss(); reduction: 0 for none, 1 for the mean, 2 for the sum."""
    return _loss("poisson_nll_loss", (input, target), reduction, log_input=log_input, full=full, eps=eps)


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction=1):
    """nn.functional.triplet_margin_loss(); reduction: 0 for none, 1 for the mean, 2 for the sum."""
    return _loss("triplet_margin_loss", (anchor, positive, negative), reduction, margin=margin, p=p, eps=eps, swap=swap)


def _in_place(function, like):
    def change(input, p, train):  # noqa: A002
        return input.copy_(function(input, p, train))
    change.__name__ = change.__qualname__ = like + "_"
    change.__doc__ = f"{like}() in place."
    return change


alpha_dropout_ = _in_place(_C.alpha_dropout, "alpha_dropout")
dropout_ = _in_place(_C.dropout, "dropout")
feature_alpha_dropout_ = _in_place(_C.feature_alpha_dropout, "feature_alpha_dropout")
feature_dropout_ = _in_place(_C.feature_dropout, "feature_dropout")


def native_dropout(input, p, train):  # noqa: A002
    """dropout(), and a mask of the elements that were kept."""
    if train is False:
        return input.clone(), _C.ones_like(input, dtype=_C.bool)
    mask = _C.dropout(_C.ones_like(input, requires_grad=False), p, True) != 0
    return input * mask * (0.0 if p == 1 else 1 / (1 - p)), mask


def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):  # noqa: A002
    """nn.functional.batch_norm()."""
    return _functional().batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps,  # noqa: A002
                  cudnn_enabled):
    """nn.functional.instance_norm()."""
    return _functional().instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def _moments(x, eps):
    """Mean and 1 / sqrt(variance + eps) of the rows of a matrix."""
    return x.mean(1), (x.var(1, unbiased=False) + eps).rsqrt()


def native_layer_norm(input, normalized_shape, weight, bias, eps):  # noqa: A002
    """nn.functional.layer_norm(), and the mean and 1 / standard deviation of each normalized slice."""
    out = _functional().layer_norm(input, normalized_shape, weight, bias, eps)
    lead = input.shape[:input.dim() - len(normalized_shape)]
    mean, rstd = _moments(input.reshape(lead.numel(), -1), eps)
    kept = (*lead, *(1,) * len(normalized_shape))
    return out, mean.view(kept), rstd.view(kept)


def native_group_norm(input, weight, bias, N, C, HxW, group, eps):  # noqa: A002,N803
    """nn.functional.group_norm() of N x C x HxW elements, and the mean and 1 / standard deviation of each group."""
    out = _functional().group_norm(input, group, weight, bias, eps)
    mean, rstd = _moments(input.reshape(N * group, -1), eps)
    return out, mean.view(N, group), rstd.view(N, group)


def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):  # noqa: A002
    """nn.functional.batch_norm(), and each channel's mean and 1 / deviation in training, else two empty tensors."""
    out = _functional().batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    if not training:
        return out, input.new_empty(0), input.new_empty(0)
    return out, *_moments(input.transpose(0, 1).reshape(input.size(1), -1), eps)


def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):  # noqa: A002
    """nn.functional.conv1d() to conv3d(), or conv_transpose1d() to 3d(), depending on the sizes of input; autocast does
    not change its operands."""
    dims = weight.dim() - 2
    if transposed:
        return _without_autocast(getattr(_functional(), f"conv_transpose{dims}d"), input, weight, bias, stride, padding,
                                 output_padding, groups, dilation)
    return _without_autocast(getattr(_functional(), f"conv{dims}d"), input, weight, bias, stride, padding, dilation, groups)


def norm_except_dim(v, pow=2, dim=0):  # noqa: A002
    """Norms of the slices along a dimension, with size 1 in the other dimensions; with dim=-1 that of all elements."""
    if dim == -1:
        return v.norm(pow)
    return v.norm(pow, [d for d in range(v.dim()) if d != dim % v.dim()], keepdim=True)
