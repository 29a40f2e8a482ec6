"""Functions that create arrays."""

from tercel import _C
from tercel._C import Tensor
from tercel.array_api import _dtypes
from tercel.utils import dlpack

__all__ = ["arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace", "meshgrid",
           "ones", "ones_like", "tril", "triu", "zeros", "zeros_like"]


def _number(name, x):
    """A Python number from a number, or from an array or NumPy scalar without dimensions."""
    x = x.item() if getattr(x, "ndim", None) == 0 else x
    if x is not None and _dtypes.rank(x) is None:
        raise TypeError(f"{name}: expected a number, but got {type(x).__name__}")
    return x


def from_dlpack(x, /, *, device=None, copy=None):
    """An array over the memory of an object that has __dlpack__, or of a copy."""
    if not hasattr(x, "__dlpack__"):
        raise AttributeError(f"from_dlpack: expected an object with __dlpack__, but got {type(x).__name__}")
    return dlpack.from_dlpack(x, device=device, copy=copy)


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    """An array of a number, nested sequences, an object with a buffer or DLPack, or an array.

    copy=None copies only if needed; copy=False raises ValueError if a copy is needed.
    """
    if isinstance(obj, Tensor):
        if copy is False and dtype is not None and dtype is not obj.dtype:
            raise ValueError(f"asarray: expected {obj.dtype} with copy=False, but got dtype={dtype}")
        return obj.to(device=obj.device if device is None else device, dtype=dtype or obj.dtype, copy=bool(copy))
    if copy is False and (_dtypes.rank(obj) is not None or isinstance(obj, (list, tuple))):
        raise ValueError(f"asarray: a {type(obj).__name__} cannot become an array without a copy")
    return _C.asarray(obj, dtype=dtype, device=device, copy=copy)


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """start, start + step, ... up to stop (exclusive); without stop, 0, 1, ... up to start (exclusive)."""
    start, stop, step = (_number("arange", x) for x in (start, stop, step))
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("arange: expected a step that is not 0")
    if dtype is None:
        dtype = _dtypes.default_of(max(1, *(_dtypes.rank(x) for x in (start, stop, step))))
    if (stop - start) / step <= 0:
        return _C.empty(0, dtype=dtype, device=device)
    if dtype.is_complex:
        return arange(start, stop, step, dtype=_dtypes.part_of(dtype), device=device).to(dtype)
    return _C.arange(start, stop, step, dtype=dtype, device=device)


def _shape(shape):
    return (shape,) if isinstance(shape, int) else tuple(shape)


def empty(shape, *, dtype=None, device=None):
    """An uninitialised array."""
    return _C.empty(_shape(shape), dtype=dtype, device=device)


def zeros(shape, *, dtype=None, device=None):
    return _C.zeros(_shape(shape), dtype=dtype, device=device)


def ones(shape, *, dtype=None, device=None):
    return _C.ones(_shape(shape), dtype=dtype, device=device)


def full(shape, fill_value, *, dtype=None, device=None):
    """An array filled with a value, in the default dtype of its kind unless another is given."""
    if dtype is None:
        dtype = fill_value.dtype if isinstance(fill_value, Tensor) else _dtypes.default_of(
            _dtypes.rank(_number("full", fill_value)))
    return _C.full(_shape(shape), fill_value, dtype=dtype, device=device)


def empty_like(x, /, *, dtype=None, device=None):
    return _C.empty_like(x, dtype=dtype, device=device)


def zeros_like(x, /, *, dtype=None, device=None):
    return _C.zeros_like(x, dtype=dtype, device=device)


def ones_like(x, /, *, dtype=None, device=None):
    return _C.ones_like(x, dtype=dtype, device=device)


def full_like(x, /, fill_value, *, dtype=None, device=None):
    return _C.full_like(x, fill_value, dtype=dtype, device=device)


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    """Ones on the diagonal k, above the main one for k > 0; zeros elsewhere."""
    columns = n_rows if n_cols is None else n_cols
    result = _C.zeros((n_rows, columns), dtype=dtype, device=device)
    if -n_rows < k < columns:
        result.diagonal(k).fill_(1)
    return result


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    """`num` equally spaced values from start to stop, which endpoint=False excludes."""
    start, stop = _number("linspace", start), _number("linspace", stop)
    is_complex = isinstance(start, complex) or isinstance(stop, complex)
    if dtype is None:
        dtype = _dtypes.default_of(3 if is_complex else 2)
    if is_complex or dtype.is_complex:
        start, stop = complex(start), complex(stop)
        part = _dtypes.part_of(dtype)
        re, im = (linspace(a, b, num, dtype=part, device=device, endpoint=endpoint)
                  for a, b in ((start.real, stop.real), (start.imag, stop.imag)))
        return _C.complex(re, im).to(dtype)
    if dtype.is_floating_point and abs(stop / 2 - start / 2) > _dtypes.finfo(dtype).max / 2:
        # stop - start overflows the dtype, though no value does.
        return linspace(start / 2, stop / 2, num, dtype=dtype, device=device, endpoint=endpoint) * 2
    if not endpoint:
        return _C.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]
    return _C.linspace(start, stop, num, dtype=dtype, device=device)


def meshgrid(*arrays, indexing="xy"):
    """Vectors expanded to one shape, as a tuple; "xy" swaps the first two dimensions."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: expected indexing 'xy' or 'ij', but got {indexing!r}")
    if not arrays:
        return ()
    return tuple(_C._meshgrid(arrays, indexing=indexing if len(arrays) > 1 else "ij"))


def _diagonal(name, x, k):
    """The diagonal k, limited to the first one outside the matrices."""
    if x.ndim < 2:
        raise ValueError(f"{name}: expected at least 2 dimensions, but got {x.ndim}")
    return max(-x.shape[-2], min(k, x.shape[-1]))


def tril(x, /, *, k=0):
    """The matrices with zeros above the diagonal k."""
    return _C.tril(x, _diagonal("tril", x, k))


def triu(x, /, *, k=0):
    """The matrices with zeros below the diagonal k."""
    return _C.triu(x, _diagonal("triu", x, k))


zeros.__doc__, ones.__doc__ = "Zeros.", "Ones."
for _like, _what in ((empty_like, "Uninitialised elements"), (zeros_like, "Zeros"), (ones_like, "Ones"),
                     (full_like, "The value")):
    _like.__doc__ = f"{_what}, with the shape of an array, and its dtype unless another is given."
