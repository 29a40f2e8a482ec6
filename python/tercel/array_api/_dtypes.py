"""Data types: kinds, promotion, limits."""

from dataclasses import dataclass
from functools import reduce
from typing import Any, Dict, Tuple

from tercel import _C
from tercel._C import Tensor

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

KINDS: Dict[str, Tuple[Any, ...]] = {
    "bool": (_C.bool,),
    "signed integer": (_C.int8, _C.int16, _C.int32, _C.int64),
    "unsigned integer": (_C.uint8, _C.uint16, _C.uint32, _C.uint64),
    "real floating": (_C.float32, _C.float64),
    "complex floating": (_C.complex64, _C.complex128),
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]


def is_dtype(x):
    return type(x) is _C.dtype


def rank(x):
    """The rank of a dtype's, or a Python number's, kind in type promotion."""
    if is_dtype(x):
        return 3 if x.is_complex else 2 if x.is_floating_point else 0 if x is _C.bool else 1
    for place, kind in enumerate((bool, int, float, complex)):
        if isinstance(x, kind):
            return place
    return None


def complex_of(dtype):
    return _C.complex128 if dtype is _C.float64 else _C.complex64


def part_of(dtype):
    """The dtype of a complex dtype's parts; a real dtype itself."""
    return {_C.complex64: _C.float32, _C.complex128: _C.float64}.get(dtype, dtype)


def default_of(place):
    """The default dtype of a kind."""
    floating = _C.get_default_dtype()
    return (_C.bool, _C.int64, floating, complex_of(floating))[place]


def _with_number(dtype, number):
    place = rank(number)
    if place <= rank(dtype):
        return dtype
    return complex_of(dtype) if place == 3 and rank(dtype) == 2 else default_of(place)


def result_type(*arrays_and_dtypes):
    """The result dtype of operations on arrays, dtypes and Python numbers, which count only by their kind."""
    dtypes, numbers = [], []
    for x in arrays_and_dtypes:
        if isinstance(x, Tensor):
            dtypes.append(x.dtype)
        elif is_dtype(x):
            dtypes.append(x)
        elif rank(x) is not None:
            numbers.append(x)
        else:
            raise TypeError(f"result_type: expected arrays, dtypes and numbers, but got {type(x).__name__}")
    if not dtypes:
        raise ValueError("result_type: expected at least one array or dtype")
    return reduce(_with_number, numbers, reduce(_C.promote_types, dtypes))


def tensors_of(name, *operands, at_least_one=True):
    """Converts arrays and Python numbers to tensors of their common dtype."""
    if at_least_one and not any(isinstance(x, Tensor) for x in operands):
        raise TypeError(f"{name}: expected at least one array, but got "
                        f"{' and '.join(type(x).__name__ for x in operands)}")
    dtype = result_type(*operands)
    return [x.to(dtype) if isinstance(x, Tensor) else _C.tensor(x, dtype=dtype) for x in operands]


def can_cast(from_, to, /):
    """Whether type promotion allows the conversion of a dtype, or an array's dtype, to another."""
    dtype = from_.dtype if isinstance(from_, Tensor) else from_
    if not is_dtype(dtype) or not is_dtype(to):
        raise TypeError(f"can_cast: expected dtypes, but got {type(from_).__name__} and {type(to).__name__}")
    return _C.promote_types(dtype, to) is to


def isdtype(dtype, kind):
    """Whether a dtype equals another, is of a kind ("bool", "integral" ...), or matches one of a tuple of these."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if is_dtype(kind):
        return dtype is kind
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"isdtype: expected a kind of {', '.join(map(repr, KINDS))}, but got {kind!r}")
        return dtype in KINDS[kind]
    raise TypeError(f"isdtype: expected a dtype, a kind or a tuple of them, but got {type(kind).__name__}")


@dataclass(frozen=True)
class FloatInfo:
    """Limits of a floating-point dtype, as Python numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Any


@dataclass(frozen=True)
class IntInfo:
    """Limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: Any


def finfo(type, /):  # noqa: A002
    """Limits of a floating-point dtype, or an array's dtype; for a complex dtype those of its parts."""
    dtype = part_of(type.dtype if isinstance(type, Tensor) else type)
    info = _C.finfo(dtype)
    return FloatInfo(info.bits, info.eps, info.max, info.min, info.smallest_normal, dtype)


def iinfo(type, /):  # noqa: A002
    """Limits of an integer dtype, or an array's dtype."""
    dtype = type.dtype if isinstance(type, Tensor) else type
    info = _C.iinfo(dtype)
    return IntInfo(info.bits, info.max, info.min, dtype)


def astype(x, dtype, /, *, copy=True, device=None):
    """The array in another dtype; a copy unless copy=False and the dtype is the same. A complex array cannot become a real
    one; use real() or imag()."""
    if not is_dtype(dtype):
        raise TypeError(f"astype: expected a dtype, but got {dtype!r}")
    if x.is_complex() and rank(dtype) in (1, 2):
        raise TypeError(f"astype: expected a complex dtype or bool for an array of {x.dtype}, but got {dtype}")
    return x.to(device=device if device is not None else x.device, dtype=dtype, copy=copy)
