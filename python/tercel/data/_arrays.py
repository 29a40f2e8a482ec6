"""Arrays of the user as tensors."""

import operator
import sys
from typing import Any, Optional, Tuple

import tercel
from tercel._C import Tensor
from tercel.arrow import from_arrow

_NARROW_INTEGERS = (tercel.bool, tercel.uint8, tercel.int8, tercel.int16, tercel.uint16, tercel.uint32)
_NARROW_FLOATS = (tercel.float16, tercel.bfloat16)


def _split(value: Any) -> Tuple[Any, Optional[Tensor]]:
    """The values, and bools that are False where one is missing, of a masked array or an array of Arrow's; else None."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ma.MaskedArray):
        hidden = numpy.ma.getmaskarray(value)
        return value.data, tercel.tensor(~hidden) if hidden.any() else None
    is_arrow = hasattr(value, "__arrow_c_array__") or hasattr(value, "__arrow_c_stream__")
    if is_arrow:
        try:
            values = from_arrow(value, mask=True)
        except (ImportError, RuntimeError, TypeError, ValueError):  # pandas without pyarrow, or with objects; other types
            values = None
        if isinstance(values, tuple):
            return values
    if numpy is not None and hasattr(value, "__array__") and (is_arrow or not hasattr(value, "__dlpack__")):
        value = numpy.asarray(value)  # which tells whether it can be written to
    return value, None


def column_of(value: Any, what: str) -> Tuple[Tensor, Optional[Tensor]]:
    """
    The numbers as a tensor without gradient, of int32, int64, float32 or float64 and on the same memory where that is
    possible, and bools that are False where a value is missing; None if all are there. TypeError or ValueError that names
    the array.
    """
    valid = None
    if isinstance(value, Tensor):
        tensor = value.detach()
    else:
        value, valid = _split(value)
        read_only = not getattr(getattr(value, "flags", None), "writeable", True)
        try:
            tensor = tercel.tensor(value) if read_only else tercel.as_tensor(value)
        except TypeError as error:
            raise TypeError(f"{what}: {error}") from None
        except (ValueError, RuntimeError, OverflowError) as error:
            raise ValueError(f"{what}: {error}") from None
    if tensor.dtype in _NARROW_INTEGERS:
        tensor = tensor.to(tercel.int64)
    elif tensor.dtype in _NARROW_FLOATS:
        tensor = tensor.to(tercel.float32)
    if tensor.layout is not tercel.strided or tensor.dtype not in (tercel.int32, tercel.int64, tercel.float32,
                                                                   tercel.float64):
        raise TypeError(f"{what}: expected integers or floating-point numbers of at most 64 bits, not {tensor.dtype}")
    return tensor, valid


def tensor_of(value: Any, what: str) -> Tensor:
    """The tensor of column_of(); ValueError also for a value that is missing."""
    tensor, valid = column_of(value, what)
    if valid is not None:
        row = int((~valid).nonzero()[0][0])
        raise ValueError(f"{what}: row {row}: expected a value, found a missing one (masked or null)")
    return tensor


def integer_of(value: Any, what: str, least: int) -> int:
    """An integer that is at least `least`; TypeError or ValueError that names it."""
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{what}: expected an integer, not {value!r}")
    number = operator.index(value)
    if not least <= number < 2**63:
        raise ValueError(f"{what}: expected an integer that is at least {least} and fits in 64 bits, not {number}")
    return number
