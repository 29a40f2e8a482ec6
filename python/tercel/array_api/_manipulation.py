"""Functions that change shapes and move elements."""

from tercel import _C
from tercel._C import Tensor
from tercel.array_api._dtypes import result_type
from tercel.functional import broadcast_shapes as _broadcast_shapes

__all__ = ["broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flip", "moveaxis", "permute_dims", "repeat",
           "reshape", "roll", "squeeze", "stack", "tile", "unstack"]


def broadcast_arrays(*arrays):
    """The arrays expanded to one shape: a tuple."""
    return tuple(_C._broadcast_tensors(arrays))


def broadcast_shapes(*shapes):
    """The shape that arrays of these shapes broadcast to, as a tuple; ValueError if there is none."""
    try:
        return tuple(_broadcast_shapes(*shapes))
    except RuntimeError as error:
        raise ValueError(f"broadcast_shapes: {error}") from None


def broadcast_to(x, /, shape):
    """The array expanded to a shape."""
    return _C.broadcast_to(x, shape)


def _one_dtype(arrays):
    dtype = result_type(*arrays)
    return [x.to(dtype) for x in arrays]


def concat(arrays, /, *, axis=0):
    """Concatenates arrays along an axis; with axis=None, after flattening them."""
    arrays = _one_dtype(arrays)
    return _C.cat([x.flatten() for x in arrays], 0) if axis is None else _C.cat(arrays, axis)


def stack(arrays, /, *, axis=0):
    """Stacks arrays of one shape along a new axis."""
    return _C.stack(_one_dtype(arrays), axis)


def expand_dims(x, /, axis=0):
    """The array with a new axis of size 1 at a position, or at each of a tuple of positions, of the result."""
    if isinstance(axis, int):
        return _C.unsqueeze(x, axis)
    ndim = x.ndim + len(axis)
    for one in axis:
        if not -ndim <= one < ndim:
            raise IndexError(f"expand_dims: expected axes of an array of {ndim} dimensions, but got {one}")
    places = sorted(one % ndim for one in axis)
    if len(set(places)) < len(places):
        raise ValueError(f"expand_dims: expected every axis once, but got {tuple(axis)}")
    for one in places:
        x = _C.unsqueeze(x, one)
    return x


def squeeze(x, /, axis):
    """The array without axes of size 1; ValueError for others."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for one in axes:
        if not -x.ndim <= one < x.ndim:
            raise IndexError(f"squeeze: expected axes of an array of {x.ndim} dimensions, but got {one}")
        if x.shape[one] != 1:
            raise ValueError(f"squeeze: expected size 1 of axis {one}, but got {x.shape[one]}")
    return _C.squeeze(x, axes)


def flip(x, /, *, axis=None):
    """Elements in reverse order along the axes, or all."""
    return _C.flip(x, tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis))


def moveaxis(x, source, destination, /):
    """The array with some axes moved to other positions."""
    return _C.movedim(x, source, destination)


def permute_dims(x, /, axes):
    """The array with its axes in another order."""
    return _C.permute(x, axes)


def repeat(x, repeats, /, *, axis=None):
    """Repeats each slice along an axis; with axis=None, each element of the flattened array."""
    if isinstance(repeats, Tensor):
        repeats = repeats.to(_C.int64)
        repeats = int(repeats) if repeats.ndim == 0 else repeats
    return _C.repeat_interleave(x, repeats, dim=axis)


def reshape(x, /, shape, *, copy=None):
    """The elements in another shape; copy=False raises ValueError if a copy is needed."""
    if copy:
        return x.clone(memory_format=_C.contiguous_format).reshape(shape)
    if copy is False:
        try:
            return x.view(shape)
        except RuntimeError as e:
            raise ValueError(f"reshape: {tuple(x.shape)} cannot become {tuple(shape)} without a copy") from e
    return x.reshape(shape)


def roll(x, /, shift, *, axis=None):
    """Shifts elements along axes, with wrap-around; with axis=None, along the flattened array."""
    if axis is None and isinstance(shift, int):
        return _C.roll(x, shift % max(x.numel(), 1))
    axes = () if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    shifts = (shift,) * len(axes) if isinstance(shift, int) else tuple(shift)
    if len(shifts) != len(axes):
        raise ValueError(f"roll: expected as many shifts as axes, but got {len(shifts)} and {len(axes)}")
    return x.clone() if not axes else _C.roll(x, [by % max(x.shape[at], 1) for by, at in zip(shifts, axes)], axes)


def tile(x, repetitions, /):
    """Repeats the array along each axis."""
    return _C.tile(x, tuple(repetitions))


def unstack(x, /, *, axis=0):
    """The slices along an axis: a tuple."""
    return tuple(_C.unbind(x, axis))
