"""Layers, activations and losses without state of their own, with the signatures of torch.nn.functional.

Most are the extension's own; here stands what has arguments that only choose between operations.
"""

from tercel import _C
from tercel._C import tanh, sigmoid, softsign  # noqa: F401
from tercel._C._nn import *  # noqa: F401,F403
from tercel._C import _nn

_dropout = _nn.dropout
_embedding = _nn.embedding
_embedding_bag = _nn.embedding_bag
_softmax = _nn.softmax
_log_softmax = _nn.log_softmax
_batch_norm = _nn.batch_norm


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


def dropout(input, p=0.5, training=True, inplace=False):  # noqa: A002
    """Zeros with probability p, all else divided by 1 - p."""
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    result = _dropout(input, p, training)
    return input.copy_(result) if inplace and training else result


def _channel_dropout(name, dims):
    def function(input, p=0.5, training=True):  # noqa: A002
        """Whole channels are zero with probability p, all else divided by 1 - p."""
        if p < 0.0 or p > 1.0:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        if input.dim() not in (dims + 1, dims + 2):
            raise RuntimeError(f"{name}: Expected {dims + 1}D or {dims + 2}D input, but received a {input.dim()}D input")
        if not training:
            return input
        kept = input.detach().new_ones(*input.shape[:-dims], *[1] * dims)
        return input * _dropout(kept, p, True)

    function.__name__ = function.__qualname__ = name
    return function


dropout1d, dropout2d, dropout3d = (_channel_dropout(f"dropout{d}d", d) for d in (1, 2, 3))


def bilinear(input1, input2, weight, bias=None):
    """input1 [..., a], weight [out, a, b], input2 [..., b]: one product of both for each output."""
    sizes = input1.shape[:-1]
    left, right = input1.reshape(-1, input1.size(-1)), input2.reshape(-1, input2.size(-1))
    if weight.dim() != 3 or left.size(0) != right.size(0):
        raise RuntimeError("bilinear(): input batch dimensions do not match, or weight is not 3-dimensional")
    out, a, b = weight.shape
    products = (left @ weight.permute(1, 0, 2).reshape(a, out * b)).view(-1, out, b)
    result = (products @ right.unsqueeze(2)).view(*sizes, out)
    return result if bias is None else result + bias


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,  # noqa: A002
              sparse=False):
    """Rows of the weight by index."""
    _refuse_renorm("embedding", max_norm, scale_grad_by_freq)
    if padding_idx is not None:
        if not -weight.size(0) <= padding_idx < weight.size(0):
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= weight.size(0)
    return _embedding(input, weight, padding_idx, sparse)


def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False,  # noqa: A002
                  mode="mean", sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=None):
    """Sums or means of rows of the weight; offsets say where each bag begins, or each row of a matrix is one."""
    _refuse_renorm("embedding_bag", max_norm, scale_grad_by_freq)
    if input.dim() == 2 and offsets is not None:
        raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed "
                         f"length sequences. However, found offsets of type {type(offsets)}")
    if input.dim() == 1 and offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    return _embedding_bag(input, weight, offsets, mode, sparse, per_sample_weights, include_last_offset, padding_idx)


def _refuse_renorm(name, max_norm, scale_grad_by_freq):
    if max_norm is not None or scale_grad_by_freq:
        raise NotImplementedError(f"{name}(): max_norm and scale_grad_by_freq are not supported")


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1,  # noqa: A002
               eps=1e-5):
    """input normalized over each channel, dimension 1: by the running statistics [channels], or in training by its own."""
    if training and input.dim() >= 2 and input.numel() == input.size(1):
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    return _batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def _max_pool(dims):
    plain, both = getattr(_nn, f"max_pool{dims}d"), getattr(_nn, f"max_pool{dims}d_with_indices")

    def max_pool(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,  # noqa: A002
                 return_indices=False):
        """The largest of each window; with return_indices also where it stood."""
        pool = both if return_indices else plain
        return pool(input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode)

    max_pool.__name__ = max_pool.__qualname__ = f"max_pool{dims}d"
    return max_pool


def _avg_pool(dims):
    plain = getattr(_nn, f"avg_pool{dims}d")

    def avg_pool(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,  # noqa: A002
                 **divisor):
        """The mean of each window."""
        return plain(input, kernel_size, () if stride is None else stride, padding, ceil_mode, count_include_pad,
                     **divisor)

    avg_pool.__name__ = avg_pool.__qualname__ = f"avg_pool{dims}d"
    return avg_pool


def _adaptive(kind, dims):
    plain = getattr(_nn, f"adaptive_{kind}_pool{dims}d")

    def pool(input, output_size, return_indices=False):  # noqa: A002
        if isinstance(output_size, (tuple, list)):  # None keeps the size
            output_size = [input.size(i - dims) if s is None else s for i, s in enumerate(output_size)]
        result = plain(input, output_size)
        return result if kind == "avg" or return_indices else result[0]

    pool.__name__ = pool.__qualname__ = f"adaptive_{kind}_pool{dims}d"
    pool.__doc__ = plain.__doc__
    return pool


max_pool1d, max_pool2d, max_pool3d = map(_max_pool, (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = map(_avg_pool, (1, 2, 3))
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (_adaptive("avg", d) for d in (1, 2, 3))
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (_adaptive("max", d) for d in (1, 2, 3))


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None,  # noqa: A002
                recompute_scale_factor=None, antialias=False):
    """Images [n, channels, spatial...] in another size."""
    if antialias:
        raise NotImplementedError("interpolate(): antialias is not supported")
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")

    def as_list(value):
        return [] if value is None else list(value) if isinstance(value, (tuple, list)) else [value]

    return _nn._interpolate(input, as_list(size), [float(f) for f in as_list(scale_factor)], mode, align_corners,
                            bool(recompute_scale_factor))
