"""Searching, sorting and sets."""

from typing import NamedTuple

from tercel import _C
from tercel._C import Tensor
from tercel.array_api._dtypes import KINDS, tensors_of
from tercel.functional import broadcast_shapes

__all__ = ["argsort", "isin", "nonzero", "searchsorted", "sort", "take", "take_along_axis", "unique_all", "unique_counts",
           "unique_inverse", "unique_values", "where"]


def where(condition, x1, x2, /):
    """x1 where the condition is true, else x2."""
    return _C.where(condition, *tensors_of("where", x1, x2))


def isin(x1, x2, /, *, invert=False):
    """Whether each element of x1 is in x2, or (invert) is not; one of both may be a number."""
    return _C.isin(*tensors_of("isin", x1, x2), invert=invert)


def nonzero(x, /):
    """The indices of the nonzero elements: an array for each axis."""
    if x.ndim == 0:
        raise ValueError("nonzero: expected an array of at least one dimension")
    return tuple(_C.nonzero(x, as_tuple=True))


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    """The index in ascending x1 at which each element of x2 would be inserted, before (left) or after (right) equals."""
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: expected side 'left' or 'right', but got {side!r}")
    values, wanted = tensors_of("searchsorted", x1, x2)
    order = None if sorter is None else sorter.to(_C.int64).contiguous()
    return _C.searchsorted(values.contiguous(), wanted.contiguous(), side=side, sorter=order)


def take(x, indices, /, *, axis=None):
    """Slices by index along an axis, which may be omitted for one dimension only."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: expected an axis for an array of {x.ndim} dimensions")
        axis = 0
    indices = _from_end("take", indices, x.shape[axis])
    return _C.index_select(x, axis, indices)


def _from_end(name, indices, size):
    if indices.dtype not in KINDS["integral"]:
        raise TypeError(f"{name}: expected integer indices, but got {indices.dtype}")
    indices = indices.to(_C.int64)
    return _C.where(indices < 0, indices + size, indices)


def take_along_axis(x, indices, /, *, axis=-1):
    """Elements by index along an axis, with separate indices for each slice; other axes are broadcast."""
    axis = axis + x.ndim if axis < 0 else axis
    if not 0 <= axis < x.ndim or x.ndim != indices.ndim:
        raise IndexError(f"take_along_axis: expected an axis, and indices, of {x.ndim} dimensions, but got axis {axis} "
                         f"and {indices.ndim}")
    def with_size(shape, size):
        return (*shape[:axis], size, *shape[axis + 1:])

    shape = broadcast_shapes(with_size(x.shape, 1), with_size(indices.shape, 1))
    values = x.expand(with_size(shape, x.shape[axis]))
    places = _from_end("take_along_axis", indices, x.shape[axis]).expand(with_size(shape, indices.shape[axis]))
    return _C.gather(values, axis, places)


def sort(x, /, *, axis=-1, descending=False, stable=True):
    """Elements in sorted order along an axis."""
    return _C.sort(x, dim=axis, descending=descending, stable=True).values


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    """The indices that sort an axis; always stable, whatever `stable` is."""
    return _C.argsort(x, dim=axis, descending=descending, stable=True)


class UniqueAll(NamedTuple):
    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    values: Tensor
    inverse_indices: Tensor


def _unique(x):
    """(values, inverse indices, counts); each NaN counts as a separate value."""
    if not x.is_complex():
        return _C._unique(x.flatten(), True, True, None, False)
    parts = _C.view_as_real(x.flatten())
    values, inverse, counts = _C._unique(parts, True, True, 0, False)
    return _C.view_as_complex(values.contiguous()), inverse, counts


def unique_all(x, /):
    """The unique values, first indices, inverse indices and counts."""
    values, inverse, counts = _unique(x)
    # In a stable sort of the inverse, the first element of each value is at the sum of the counts before it.
    first = _C.argsort(inverse, stable=True)[counts.cumsum(0) - counts] if inverse.numel() else inverse
    return UniqueAll(values, first, inverse.reshape(x.shape), counts)


def unique_counts(x, /):
    """The unique values and their counts."""
    values, _, counts = _unique(x)
    return UniqueCounts(values, counts)


def unique_inverse(x, /):
    """The unique values and inverse indices."""
    values, inverse, _ = _unique(x)
    return UniqueInverse(values, inverse.reshape(x.shape))


def unique_values(x, /):
    """The unique values."""
    return _unique(x)[0]
