"""Stateless layers, activations and losses, with the signatures of torch.nn.functional.

Most are defined in the extension; this file defines those whose arguments select between operations.
"""

import math
import warnings

from tercel import _C
from tercel._C import tanh, sigmoid, softsign  # noqa: F401
from tercel._C._nn import *  # noqa: F401,F403
from tercel._C import _nn
from tercel._layers import conv_tbc  # noqa: F401

_dropout = _nn.dropout
_embedding = _nn.embedding
_embedding_bag = _nn.embedding_bag
_softmax = _nn.softmax
_log_softmax = _nn.log_softmax
_batch_norm = _nn.batch_norm


def _warn_of_broadcasting(loss):
    def function(input, target, *args, **kwargs):  # noqa: A002
        if isinstance(input, _C.Tensor) and isinstance(target, _C.Tensor) and input.shape != target.shape:
            warnings.warn(f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). "
                          "This will likely lead to incorrect results due to broadcasting. Please ensure they have the "
                          "same size.", stacklevel=2)
            input, target = _C._broadcast_tensors([input, target])  # noqa: A001
        return loss(input, target, *args, **kwargs)

    function.__name__ = function.__qualname__ = loss.__name__
    function.__doc__ = loss.__doc__
    return function


mse_loss, l1_loss, smooth_l1_loss, huber_loss = map(_warn_of_broadcasting, (
    _nn.mse_loss, _nn.l1_loss, _nn.smooth_l1_loss, _nn.huber_loss))


def _softmax_dim(name, dim, dims):
    if dim is None:
        raise TypeError(f"{name}() missing 1 required argument: 'dim'")
    return dim


def softmax(input, dim=None, _stacklevel=3, dtype=None):  # noqa: A002
    """exp(input) / sum(exp(input)) along a dimension, without overflow; with a dtype, input is converted first."""
    return _softmax(input, _softmax_dim("softmax", dim, input.dim()), dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):  # noqa: A002
    """The logarithm of softmax(), without overflow."""
    return _log_softmax(input, _softmax_dim("log_softmax", dim, input.dim()), dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):  # noqa: A002
    """softmax() of -input."""
    return _softmax(-input, _softmax_dim("softmin", dim, input.dim()), dtype)


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """Samples from the Gumbel-softmax distribution: softmax((logits + Gumbel noise) / tau).

    With hard=True, 1 at the maximum and 0 elsewhere, with the gradient of the soft result.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = -_C.empty_like(logits.detach()).exponential_().log()
    soft = _softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    chosen = _C.zeros_like(soft.detach()).scatter_(dim, soft.detach().argmax(dim, keepdim=True), 1.0)
    return chosen - soft.detach() + soft


def _checked_share(p):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input, p=0.5, training=True, inplace=False):  # noqa: A002
    """Zeroes elements with probability p and divides the others by 1 - p."""
    _checked_share(p)
    result = _dropout(input, p, training)
    return input.copy_(result) if inplace and training else result


def _channel_dropout(name, dims):
    purpose = (f"{name} exists to provide channel-wise dropout on inputs with {dims} spatial "
               f"dimension{'s' if dims > 1 else ''}, a channel dimension, and an optional batch dimension "
               f"(i.e. {dims + 1}D or {dims + 2}D inputs).")

    def function(input, p=0.5, training=True, inplace=False):  # noqa: A002
        """Zeroes whole channels with probability p and divides the others by 1 - p."""
        _checked_share(p)
        given = input.dim()
        if given not in (dims + 1, dims + 2):
            if dims == 1:
                raise RuntimeError(f"{name}: Expected 2D or 3D input, but received a {given}D input. Note that {purpose}")
            warnings.warn(f"{name}: Received a {given}-D input to {name}, which is deprecated. To retain the behavior and "
                          f"silence this warning, please use dropout instead. Note that {purpose}", stacklevel=2)
        elif dims == 2 and given == 3:
            warnings.warn("dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior "
                          "is desired - input is interpreted as shape (N, C, L), where C is the channel dim. To maintain "
                          "the 1D channel-wise dropout behavior, please switch to using dropout1d instead.", stacklevel=2)
        if not training:
            return input
        # As in PyTorch, dropout2d() treats the first two dimensions of any input as batch and channel.
        if dims == 2 or given == dims + 2:
            result = _C.feature_dropout(input, p, True)
        else:
            result = _C.feature_dropout(input.unsqueeze(0), p, True).squeeze(0)
        return input.copy_(result) if inplace else result

    function.__name__ = function.__qualname__ = name
    return function


dropout1d, dropout2d, dropout3d = (_channel_dropout(f"dropout{d}d", d) for d in (1, 2, 3))

def _alpha_dropout(function, x, p, training, inplace):
    _checked_share(p)
    result = function(x, p, training)
    return x.copy_(result) if inplace and training else result


def alpha_dropout(input, p=0.5, training=False, inplace=False):  # noqa: A002
    """Dropout for selu(): keeps mean and variance."""
    return _alpha_dropout(_C.alpha_dropout, input, p, training, inplace)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):  # noqa: A002
    """alpha_dropout() of whole channels of input [n, channels, ...]."""
    return _alpha_dropout(_C.feature_alpha_dropout, input, p, training, inplace)


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,  # noqa: A002
              sparse=False):
    """Rows of the weight by index; rows whose norm exceeds max_norm are first scaled in place, in the weight."""
    if padding_idx is not None:
        if not -weight.size(0) <= padding_idx < weight.size(0):
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= weight.size(0)
    if max_norm is not None:
        _C.embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    return _embedding(input, weight, padding_idx, scale_grad_by_freq, sparse)


def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False,  # noqa: A002
                  mode="mean", sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=None):
    """Sums, means or maxima of rows of the weight per bag; a bag starts at each offset, or is a row of a matrix."""
    if weight.dtype == _C.int64 and input.is_floating_point():
        warnings.warn("Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, "
                      "...)` is deprecated, and should now be `embedding_bag(input, weight, ...)`.", stacklevel=2)
        weight, input = input, weight  # noqa: A001
    if input.dim() == 2 and offsets is not None:
        raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed "
                         f"length sequences. However, found offsets of type {type(offsets)}")
    if input.dim() == 1 and offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError("embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
                                  f"for mode='sum' (got mode='{mode}').")
    if max_norm is not None:
        _C.embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    return _embedding_bag(input, weight, offsets, mode, scale_grad_by_freq, sparse, per_sample_weights,
                          include_last_offset, padding_idx)


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1,  # noqa: A002
               eps=1e-5):
    """Normalizes each channel (dimension 1) by the running statistics [channels], or in training by the input's own."""
    if training and input.dim() >= 2 and input.numel() == input.size(1):
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    return _batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def _max_pool(dims):
    plain, both = getattr(_nn, f"max_pool{dims}d"), getattr(_nn, f"max_pool{dims}d_with_indices")

    def max_pool(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,  # noqa: A002
                 return_indices=False):
        """The maximum of each window; with return_indices also its index."""
        pool = both if return_indices else plain
        return pool(input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode)

    max_pool.__name__ = max_pool.__qualname__ = f"max_pool{dims}d"
    return max_pool


def _avg_pool(dims):
    plain = getattr(_nn, f"avg_pool{dims}d")

    def avg_pool(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,  # noqa: A002
                 *divisor, **divisor_by_name):
        """The mean of each window."""
        return plain(input, kernel_size, () if stride is None else stride, padding, ceil_mode, count_include_pad,
                     *divisor, **divisor_by_name)

    avg_pool.__name__ = avg_pool.__qualname__ = f"avg_pool{dims}d"
    return avg_pool


def _adaptive(kind, dims, suffix=""):
    plain = getattr(_nn, f"adaptive_{kind}_pool{dims}d")

    def pool(input, output_size, return_indices=False):  # noqa: A002
        if isinstance(output_size, (tuple, list)) and dims > 1 and input.dim() <= len(output_size):
            raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
        if isinstance(output_size, (tuple, list)):  # None keeps the size
            output_size = [input.size(i - dims) if s is None else s for i, s in enumerate(output_size)]
        result = plain(input, output_size)
        return result if kind == "avg" or return_indices or suffix else result[0]

    pool.__name__ = pool.__qualname__ = f"adaptive_{kind}_pool{dims}d{suffix}"
    pool.__doc__ = plain.__doc__
    return pool


def _list(value, dims):
    return list(value) if isinstance(value, (tuple, list)) else [value] * dims


def _lp_pool(dims):
    average = getattr(_nn, f"avg_pool{dims}d")

    def lp_pool(input, norm_type, kernel_size, stride=None, ceil_mode=False):  # noqa: A002
        """The p-norm of each window: the p-th root of the sum of p-th powers."""
        mean = average(input.pow(norm_type), kernel_size, () if stride is None else stride, 0, ceil_mode)
        count = math.prod(_list(kernel_size, dims))
        # relu() stops the infinite gradient of the root at 0.
        return (mean.sign() * _nn.relu(mean.abs()) * count).pow(1.0 / norm_type)

    lp_pool.__name__ = lp_pool.__qualname__ = f"lp_pool{dims}d"
    return lp_pool


def _fractional(dims, with_indices):
    name = f"fractional_max_pool{dims}d"
    calculate = getattr(_nn, f"_{name}")

    def pool(input, kernel_size, output_size=None, output_ratio=None, return_indices=False,  # noqa: A002
             _random_samples=None):
        """The maximum of randomly placed windows; with return_indices also its index among the channel's pixels.

        The result has output_size pixels, or the input's size times output_ratio; _random_samples [n, channels, dimensions]
        in [0, 1) determines the windows.
        """
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if output_size is None:
            output_size = [int(input.size(d - dims) * ratio) for d, ratio in enumerate(_list(output_ratio, dims))]
        result = calculate(input, kernel_size, output_size, _random_samples)
        return result if with_indices or return_indices else result[0]

    pool.__name__ = pool.__qualname__ = f"{name}_with_indices" if with_indices else name
    return pool


fractional_max_pool2d_with_indices, fractional_max_pool3d_with_indices = (_fractional(dims, True) for dims in (2, 3))
fractional_max_pool2d, fractional_max_pool3d = (_fractional(dims, False) for dims in (2, 3))
lp_pool1d, lp_pool2d, lp_pool3d = map(_lp_pool, (1, 2, 3))
max_pool1d, max_pool2d, max_pool3d = map(_max_pool, (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = map(_avg_pool, (1, 2, 3))
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (_adaptive("avg", d) for d in (1, 2, 3))
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (_adaptive("max", d) for d in (1, 2, 3))
adaptive_max_pool1d_with_indices, adaptive_max_pool2d_with_indices, adaptive_max_pool3d_with_indices = (
    _adaptive("max", d, "_with_indices") for d in (1, 2, 3))


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None,  # noqa: A002
                recompute_scale_factor=None, antialias=False):
    """Resizes images [n, channels, spatial...]; antialias: downsampling takes all pixels into account."""
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")

    def as_list(value):
        return [] if value is None else list(value) if isinstance(value, (tuple, list)) else [value]

    return _nn._interpolate(input, as_list(size), [float(f) for f in as_list(scale_factor)], mode, align_corners,
                            bool(recompute_scale_factor), bool(antialias))


def _deprecated_upsample(name, **fixed):
    def function(input, size=None, scale_factor=None):  # noqa: A002
        """Deprecated alias of interpolate()."""
        warnings.warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
        return interpolate(input, size, scale_factor, **fixed)

    function.__name__ = function.__qualname__ = name
    return function


upsample_nearest = _deprecated_upsample("upsample_nearest", mode="nearest")
upsample_bilinear = _deprecated_upsample("upsample_bilinear", mode="bilinear", align_corners=True)


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):  # noqa: A002
    """Deprecated alias of interpolate()."""
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def _check_attention(query, key, value, embed_dim, heads, key_padding_mask, attn_mask):
    """Checks the masks and operands of multi_head_attention_forward()."""
    dims = query.dim()
    if dims not in (2, 3):
        raise AssertionError("query should be unbatched 2D or batched 3D tensor but received "
                             f"{dims}-D query tensor")
    kind = "For batched (3-D)" if dims == 3 else "For unbatched (2-D)"
    if key.dim() != dims or value.dim() != dims:
        raise AssertionError(f"{kind} `query`, expected `key` and `value` to be {dims}-D but found {key.dim()}-D and "
                             f"{value.dim()}-D tensors respectively")
    if key_padding_mask is not None and key_padding_mask.dim() != dims - 1:
        raise AssertionError(f"{kind} `query`, expected `key_padding_mask` to be `None` or {dims - 1}-D but found "
                             f"{key_padding_mask.dim()}-D tensor instead")
    if attn_mask is not None and attn_mask.dim() not in (2, 3):
        raise AssertionError(f"{kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
                             f"{attn_mask.dim()}-D tensor instead")
    if query.size(-1) != embed_dim:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim}, but got {query.size(-1)}")
    if embed_dim % heads:
        raise AssertionError(f"embed_dim {embed_dim} not divisible by num_heads {heads}")
    for name, mask in (("key_padding_mask", key_padding_mask), ("attn_mask", attn_mask)):
        if mask is not None and mask.dtype is not _C.bool and not mask.is_floating_point():
            raise AssertionError(f"only bool and floating types of {name} are supported")


def _added(mask, like):
    """A mask as numbers to add: -inf where a bool mask is True."""
    if mask is None or mask.dtype is not _C.bool:
        return mask
    return _C.zeros(mask.shape, dtype=like.dtype, device=like.device).masked_fill_(mask, float("-inf"))


def multi_head_attention_forward(query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k,
                                 bias_v, add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training=True,
                                 key_padding_mask=None, need_weights=True, attn_mask=None,
                                 use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None,
                                 v_proj_weight=None, static_k=None, static_v=None, average_attn_weights=True,
                                 is_causal=False):
    """Multi-head attention of query [length, n, embed]: the output, and optionally the weights [n, length, source].

    key and value are [source, n, ...]; unbatched operands lack n everywhere. True in a bool mask excludes a position, a
    number is added to the scores: attn_mask [length, source] or [n * num_heads, length, source], key_padding_mask
    [n, source]. static_k and static_v, [n * num_heads, source, embed / num_heads], replace the heads of key and value.
    """
    _check_attention(query, key, value, embed_dim_to_check, num_heads, key_padding_mask, attn_mask)
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
                           "`generate_square_subsequent_mask` to create this mask.")
    if query.dim() == 2:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        padding = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        output, weights = multi_head_attention_forward(
            query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v,
            add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training, padding, need_weights, attn_mask,
            use_separate_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, static_k, static_v,
            average_attn_weights=average_attn_weights, is_causal=is_causal)
        return output.squeeze(1), None if weights is None else weights.squeeze(0)
    if key.shape[:2] != value.shape[:2] or (not use_separate_proj_weight and key.shape != value.shape):
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
    length, n, embed = query.shape
    biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
    weights = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else in_proj_weight.chunk(3)
    if not use_separate_proj_weight and query is key and key is value:
        q, k, v = _nn.linear(query, in_proj_weight, in_proj_bias).chunk(3, -1)
    else:
        q, k, v = (_nn.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))
    attn_mask = None if attn_mask is None else _added(attn_mask, query)
    padding = None if key_padding_mask is None else _added(key_padding_mask, query)
    source = k.size(0) if static_k is None else static_k.size(1)
    if attn_mask is not None:
        wanted = (length, source) if attn_mask.dim() == 2 else (n * num_heads, length, source)
        if tuple(attn_mask.shape) != wanted:
            raise RuntimeError(f"The shape of the {attn_mask.dim()}D attn_mask is {attn_mask.shape}, but should be "
                               f"{wanted}.")
        attn_mask = attn_mask.view(-1, num_heads if attn_mask.dim() == 3 else 1, length, source)
    if padding is not None:
        if padding.size(0) != n:
            raise AssertionError(f"Expected key_padded_mask.shape[0] to be {n}, but got {padding.size(0)}")
        if padding.size(1) != source:
            raise AssertionError(f"Expected key_padded_mask.shape[1] to be {source}, but got {padding.size(1)}")
        padding = padding.view(n, 1, 1, source)
    mask = padding if attn_mask is None else attn_mask if padding is None else attn_mask + padding
    more = []  # keys and values in addition to the source's
    if bias_k is not None:
        for name, static in (("key", static_k), ("value", static_v)):
            if static is not None:
                raise AssertionError(f"bias cannot be added to static {name}.")
        more.append((bias_k.expand(1, n, embed), bias_v.expand(1, n, embed)))
    if add_zero_attn:
        more.append((k.new_zeros((1, n, embed)),) * 2)
    if more:
        k, v = _C.cat([k, *(pair[0] for pair in more)]), _C.cat([v, *(pair[1] for pair in more)])
        mask = None if mask is None else pad(mask, (0, len(more)))

    def heads(x):  # [n, heads, rows, depth]
        return x.view(x.size(0), n, num_heads, embed // num_heads).permute(1, 2, 0, 3)

    def static_heads(name, x):
        for dim, size in ((0, n * num_heads), (2, embed // num_heads)):
            if x.size(dim) != size:
                raise AssertionError(f"expecting {name}.size({dim}) of {size}, but got {x.size(dim)}")
        x = x.view(n, num_heads, x.size(1), x.size(2))
        return _C.cat([x, x.new_zeros(n, num_heads, 1, x.size(3))], 2) if add_zero_attn else x

    q = heads(q.contiguous())
    k = heads(k.contiguous()) if static_k is None else static_heads("static_k", static_k)
    v = heads(v.contiguous()) if static_v is None else static_heads("static_v", static_v)
    scores = (q * (embed // num_heads) ** -0.5) @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores + mask
    shares = _softmax(scores, -1)
    if not need_weights and mask is not None:  # a fully masked position gets zeros
        shares = shares.masked_fill(mask.amax(-1, keepdim=True) == float("-inf"), 0.0)
    if training and dropout_p > 0.0:
        shares = _dropout(shares, dropout_p, True)
    output = (shares @ v).permute(2, 0, 1, 3).reshape(length, n, embed)
    output = _nn.linear(output, out_proj_weight, out_proj_bias)
    if not need_weights:
        return output, None
    return output, shares.mean(1) if average_attn_weights else shares


def triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False,
                                      reduction="mean"):
    """max(0, distance(anchor, positive) - distance(anchor, negative) + margin)"""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = _nn.pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = _C.minimum(far, distance(positive, negative))
    losses = (near - far + margin).clamp(min=0)
    return losses if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()


# Imported here, since it uses the definitions above.
from tercel.nn import grad  # noqa: E402,F401
