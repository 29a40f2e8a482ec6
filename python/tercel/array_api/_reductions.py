"""Statistics and tests over axes."""

from tercel import _C
from tercel.array_api._dtypes import KINDS

__all__ = ["all", "any", "argmax", "argmin", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "max", "mean",
           "min", "prod", "std", "sum", "var"]


def _axes(x, axis):
    """The axes as a tuple; None is all of them."""
    if axis is None:
        return tuple(range(x.ndim))
    return (axis,) if isinstance(axis, int) else tuple(axis)


def _reduced(call, x, axis, keepdims):
    """call(x, axis) with all the axes merged into one."""
    axes = sorted(a + x.ndim if a < 0 else a for a in _axes(x, axis))
    if len(axes) == 1:
        return call(x, axes[0], keepdims)
    for a in axes:
        if not 0 <= a < x.ndim or axes.count(a) > 1:
            raise IndexError(f"expected different axes of {x.ndim}, but got {axis}")
    kept = [a for a in range(x.ndim) if a not in axes]
    flat = x.permute(kept + axes).reshape([x.shape[a] for a in kept] + [-1 if x.numel() else _count(x, axes)])
    out = call(flat, -1, False)
    return out.reshape([1 if a in axes else size for a, size in enumerate(x.shape)]) if keepdims else out


def _count(x, axes):
    count = 1
    for a in axes:
        count *= x.shape[a]
    return count


def _wide(x, dtype):
    """The dtype of sums: 64-bit integers for integers and bools, else the input's."""
    if dtype is not None:
        return dtype
    if x.dtype in KINDS["unsigned integer"]:
        return _C.uint64
    return _C.int64 if x.dtype is _C.bool or x.dtype in KINDS["signed integer"] else x.dtype


def sum(x, /, *, axis=None, dtype=None, keepdims=False):  # noqa: A001
    """Sums over axes; integers in 64 bits, unless a dtype is given."""
    dtype = _wide(x, dtype)
    if _axes(x, axis) == ():
        return x.to(dtype, copy=True)
    return _C.sum(x, _axes(x, axis), keepdims, dtype=dtype)


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    """Products over axes; integers in 64 bits, unless a dtype is given."""
    dtype = _wide(x, dtype)
    if _axes(x, axis) == ():
        return x.to(dtype, copy=True)
    return _reduced(lambda t, a, k: _C.prod(t, a, k, dtype=dtype), x, axis, keepdims)


def mean(x, /, *, axis=None, keepdims=False):
    """Means over axes."""
    return x.clone() if _axes(x, axis) == () else _C.mean(x, _axes(x, axis), keepdims)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    """Variances over axes: sums of squared deviations from the mean, divided by the count minus the correction."""
    if _axes(x, axis) == ():
        return _C.var(x.unsqueeze(-1), (-1,), correction=correction)
    return _C.var(x, _axes(x, axis), correction=correction, keepdim=keepdims)


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    """Square roots of variances."""
    return _C.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def max(x, /, *, axis=None, keepdims=False):  # noqa: A001
    """The largest elements over axes; NaN if one is."""
    return x.clone() if _axes(x, axis) == () else _C.amax(x, _axes(x, axis), keepdims)


def min(x, /, *, axis=None, keepdims=False):  # noqa: A001
    """The smallest elements over axes; NaN if one is."""
    return x.clone() if _axes(x, axis) == () else _C.amin(x, _axes(x, axis), keepdims)


def all(x, /, *, axis=None, keepdims=False):  # noqa: A001
    """Whether all elements over axes are nonzero."""
    return x != 0 if _axes(x, axis) == () else _C.all(x, _axes(x, axis), keepdims).to(_C.bool)


def any(x, /, *, axis=None, keepdims=False):  # noqa: A001
    """Whether any element over axes is nonzero."""
    return x != 0 if _axes(x, axis) == () else _C.any(x, _axes(x, axis), keepdims).to(_C.bool)


def count_nonzero(x, /, *, axis=None, keepdims=False):
    """The number of nonzero elements over axes."""
    return sum((x != 0).to(_C.int64), axis=axis, keepdims=keepdims)


def _where_best(call, x, axis, keepdims):
    if axis is not None:
        return call(x, axis, keepdims)
    out = call(x.flatten(), 0, False)
    return out.reshape((1,) * x.ndim) if keepdims else out


def argmax(x, /, *, axis=None, keepdims=False):
    """The index of the first maximum along an axis, or among all elements."""
    return _where_best(_C.argmax, x, axis, keepdims)


def argmin(x, /, *, axis=None, keepdims=False):
    """The index of the first minimum along an axis, or among all elements."""
    return _where_best(_C.argmin, x, axis, keepdims)


def _cumulative(name, call, start, x, axis, dtype, include_initial):
    if axis is None:
        if x.ndim > 1:
            raise ValueError(f"{name}: expected an axis for an array of {x.ndim} dimensions")
        axis = 0
    x = x.reshape(1) if x.ndim == 0 else x
    out = call(x, axis, dtype=_wide(x, dtype))
    if include_initial:
        shape = list(out.shape)
        shape[axis] = 1
        out = _C.cat([_C.full(shape, start, dtype=out.dtype, device=out.device), out], axis)
    return out


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """Sums of the elements up to each along an axis; include_initial begins with 0."""
    return _cumulative("cumulative_sum", _C.cumsum, 0, x, axis, dtype, include_initial)


def _products(x, axis, dtype):
    """Cumulative products; for complex numbers by products of 2, 4, 8 ... neighbours."""
    x = x.to(dtype)
    if not x.is_complex():
        return _C.cumprod(x, axis, dtype=dtype)
    reach = 1
    while reach < x.shape[axis]:
        rest = x.shape[axis] - reach
        x = _C.cat([_C.narrow(x, axis, 0, reach), _C.narrow(x, axis, reach, rest) * _C.narrow(x, axis, 0, rest)], axis)
        reach *= 2
    return x.clone() if reach == 1 else x


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """Products of the elements up to each along an axis; include_initial begins with 1."""
    return _cumulative("cumulative_prod", _products, 1, x, axis, dtype, include_initial)


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    """Differences of neighbours along an axis, n times."""
    return _C.diff(x, n, axis, prepend=prepend, append=append)
