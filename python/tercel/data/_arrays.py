"""Arrays of the user as tensors."""

import operator
from typing import Any

import tercel
from tercel._C import Tensor

_NARROW_INTEGERS = (tercel.bool, tercel.uint8, tercel.int8, tercel.int16, tercel.uint16, tercel.uint32)
_NARROW_FLOATS = (tercel.float16, tercel.bfloat16)


def tensor_of(value: Any, what: str) -> Tensor:
    """
    The numbers as a tensor without gradient, of int32, int64, float32 or float64 and on the same memory where that is
    possible. TypeError or ValueError that names the array.
    """
    if isinstance(value, Tensor):
        tensor = value.detach()
    else:
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
    return tensor


def integer_of(value: Any, what: str, least: int) -> int:
    """An integer that is at least `least`; TypeError or ValueError that names it."""
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{what}: expected an integer, not {value!r}")
    number = operator.index(value)
    if not least <= number < 2**63:
        raise ValueError(f"{what}: expected an integer that is at least {least} and fits in 64 bits, not {number}")
    return number
