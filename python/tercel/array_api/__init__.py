"""The Python array API standard, version 2025.12, over Tercel's tensors.

The functions take any `tercel.Tensor` and return tensors of a subclass with the standard's operators. They have the
standard's names, arguments and type promotion: tensors without dimensions promote like any other, Python numbers only by
their kind.
`docs/design/python.md` describes the consequences.
"""

from math import e, inf, nan, pi  # noqa: F401

from tercel._C import (  # noqa: F401
    bool, complex64, complex128, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64)
from tercel.array_api import (
    _array, _creation, _dtypes, _elementwise, _manipulation, _reductions, _searching, fft, linalg)

# Called before the names are imported below (Note [Arrays]).
for _module in (_creation, _dtypes, _elementwise, _manipulation, _reductions, _searching, fft, linalg):
    _array.give_arrays(_module)

from tercel.array_api._creation import *  # noqa: E402,F401,F403
from tercel.array_api._dtypes import *  # noqa: E402,F401,F403
from tercel.array_api._elementwise import *  # noqa: E402,F401,F403
from tercel.array_api._info import __array_namespace_info__  # noqa: E402
from tercel.array_api._manipulation import *  # noqa: E402,F401,F403
from tercel.array_api._reductions import *  # noqa: E402,F401,F403
from tercel.array_api._searching import *  # noqa: E402,F401,F403
from tercel.array_api.linalg import matmul, matrix_transpose, tensordot, vecdot  # noqa: E402

newaxis = None
__array_api_version__ = "2025.12"

__all__ = [
    "__array_api_version__", "__array_namespace_info__", "e", "inf", "nan", "newaxis", "pi", "fft", "linalg", "matmul",
    "matrix_transpose", "tensordot", "vecdot", "bool", "complex64", "complex128", "float32", "float64", "int8", "int16",
    "int32", "int64", "uint8", "uint16", "uint32", "uint64", *_creation.__all__, *_dtypes.__all__,
    *_elementwise.__all__, *_manipulation.__all__, *_reductions.__all__, *_searching.__all__]


def __dir__():
    return sorted(__all__)
