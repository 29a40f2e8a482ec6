"""The arrays of the standard: tensors whose operators, indices and attributes follow it, not PyTorch.

Note [Arrays]
A `Tensor` cannot follow both: in PyTorch a tensor without dimensions has lower priority in type promotion, and `x.size`
is a method. So the namespace returns tensors of a subclass, with the data and the graph of the computed tensor. Functions
outside the namespace take such an array as a tensor and return plain tensors.
"""

import functools
import inspect

from tercel import _C
from tercel._C import Tensor
from tercel.array_api import _dtypes

_NUMBERS = (bool, int, float, complex)


class _Count(int):
    """A number of elements that can also be called, for PyTorch's x.size() and x.size(dim)."""

    def __new__(cls, tensor):
        self = super().__new__(cls, tensor.numel())
        self._shape = tensor.shape
        return self

    def __call__(self, dim=None):
        return self._shape if dim is None else self._shape[dim]


def _index(key):
    """A key with integer arrays converted to int64; uint8 arrays would be taken for masks."""
    if isinstance(key, tuple):
        return tuple(_index(one) for one in key)
    if isinstance(key, Tensor) and key.dtype not in (_C.bool, _C.int64):
        return Tensor.to(key, _C.int64)
    return key


def _selects_nothing(x, key):
    """Whether an empty mask indexes a nonempty array: that is valid, and selects nothing."""
    return (isinstance(key, Tensor) and key.dtype is _C.bool and key.ndim <= x.ndim and key.shape != x.shape[:key.ndim]
            and all(size in (0, wanted) for size, wanted in zip(key.shape, x.shape)))


class Array(Tensor):
    """A tensor with the operators of the array API standard (Note [Arrays] in `array_api/_array.py`)."""

    _saved_as_tensor = True  # files store them as plain tensors

    @property
    def size(self):
        """The number of elements; called as a method, the shape."""
        return _Count(self)

    @property
    def T(self):  # noqa: N802
        """The transpose of a matrix."""
        if self.ndim != 2:
            raise ValueError(f"T: expected 2 dimensions, but got {self.ndim}")
        return arrays_of(Tensor.t(self))

    @property
    def mT(self):  # noqa: N802
        """The transposes of the matrices in the last two dimensions."""
        if self.ndim < 2:
            raise ValueError(f"mT: expected at least 2 dimensions, but got {self.ndim}")
        return arrays_of(Tensor.transpose(self, -2, -1))

    def __array_namespace__(self, /, *, api_version=None):
        """The functions of the standard."""
        return Tensor.__array_namespace__(self, api_version=api_version)

    def __getitem__(self, key, /):
        if _selects_nothing(self, key):
            return arrays_of(_C.empty((0, *self.shape[key.ndim:]), dtype=self.dtype, device=self.device))
        return arrays_of(Tensor.__getitem__(self, _index(key)))

    def __setitem__(self, key, value, /):
        kind = _dtypes.rank(value.dtype if isinstance(value, Tensor) else value)
        if kind is not None and kind > _dtypes.rank(self.dtype):
            raise TypeError(f"__setitem__: expected a value of the kind of {self.dtype} or of a lower one, but got "
                            f"{value.dtype if isinstance(value, Tensor) else type(value).__name__}")
        if not _selects_nothing(self, key):
            value = Tensor.to(value, self.dtype) if isinstance(value, Tensor) else value
            Tensor.__setitem__(self, _index(key), value)

    def __iter__(self):
        return map(arrays_of, Tensor.__iter__(self))

    def __array_wrap__(self, array, context=None, return_scalar=False):
        return arrays_of(_C.from_numpy(array))

    def to_device(self, device, /, *, stream=None):
        """The array on a device."""
        moved = Tensor.to_device(self, device, stream=stream)
        return self if moved is self else arrays_of(moved)

    __hash__ = Tensor.__hash__

    def __format__(self, spec, /):
        return format(self.item(), spec) if self.ndim == 0 else object.__format__(self, spec)

    def __float__(self, /):
        return _real("__float__", self, Tensor.__float__)

    def __int__(self, /):
        return _real("__int__", self, Tensor.__int__)

    def __abs__(self, /):
        return _function("abs")(self)

    def __invert__(self, /):
        return _function("bitwise_invert")(self)

    def __neg__(self, /):
        return _function("negative")(self)

    def __pos__(self, /):
        return _function("positive")(self)


def _real(name, x, convert):
    """A conversion to a real number: TypeError for complex arrays, where tensors raise RuntimeError."""
    if x.is_complex():
        raise TypeError(f"{name}: expected a real number, but got {x.dtype}")
    return convert(x)


def arrays_of(result):
    """Converts tensors, also those in tuples and lists, to arrays."""
    if isinstance(result, Tensor):
        return result if type(result) is Array else _C._as_subclass(Array, result)
    if isinstance(result, tuple):
        parts = map(arrays_of, result)
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    return [arrays_of(one) for one in result] if isinstance(result, list) else result


def _function(name):
    from tercel import array_api
    return getattr(array_api, name)


def _not_implemented(self, other, /):
    return NotImplemented


def _binary(method, name, swapped):
    plain = getattr(Tensor, method, _not_implemented)

    def function(self, other, /):
        if isinstance(other, (Tensor, *_NUMBERS)):
            return _function(name)(other, self) if swapped else _function(name)(self, other)
        return arrays_of(plain(self, other))
    return function


def _in_place(method, name):
    plain = getattr(Tensor, method, _not_implemented)

    def function(self, other, /):
        if not isinstance(other, (Tensor, *_NUMBERS)):
            return plain(self, other)
        result = _function(name)(self, other)
        # A wider result of the same kind is narrowed, as in PyTorch and NumPy.
        if _dtypes.rank(result.dtype) != _dtypes.rank(self.dtype) or result.shape != self.shape:
            raise TypeError(f"{method}: expected an operand that keeps the kind of dtype {self.dtype} and the shape "
                            f"{tuple(self.shape)}, but the result has {result.dtype} and {tuple(result.shape)}")
        return self.copy_(result)
    return function


_OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "pow", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift"}
_COMPARISONS = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}


def _add_method(name, function):
    function.__name__, function.__qualname__ = name, f"Array.{name}"
    setattr(Array, name, function)


for _short, _name in {**_OPERATORS, **_COMPARISONS}.items():
    _add_method(f"__{_short}__", _binary(f"__{_short}__", _name, False))
for _short, _name in _OPERATORS.items():
    _add_method(f"__r{_short}__", _binary(f"__r{_short}__", _name, True))
    _add_method(f"__i{_short}__", _in_place(f"__i{_short}__", _name))


def give_arrays(module):
    """Wraps the public functions of a module so that they return arrays."""
    for name in module.__all__:
        function = getattr(module, name)
        if inspect.isfunction(function):
            setattr(module, name, _giving_arrays(function))


def _giving_arrays(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return arrays_of(function(*args, **kwargs))
    return wrapper
