"""tercel._foreach_add and similar functions: an operation on every tensor of a list, as PyTorch's optimizers use."""

from tercel import _C
from tercel._C import Tensor

_UNARY = ("abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac",
          "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin",
          "sinh", "sqrt", "tan", "tanh", "trunc")
_BINARY = ("add", "sub", "mul", "div", "pow", "maximum", "minimum", "clamp_max", "clamp_min")
_POINTWISE = ("addcmul", "addcdiv")


def _checked(tensors, *others):
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")
    for other in others:
        if len(other) != len(tensors):
            raise RuntimeError("Tensor lists must have the same number of tensors, got "
                               f"{len(tensors)} and {len(other)}")


def _each(numbers, tensors):
    """A number for every tensor: from a list, from a tensor's elements, or one for all."""
    if isinstance(numbers, Tensor) and numbers.dim() == 1:
        numbers = numbers.tolist()
    if not isinstance(numbers, (list, tuple)):
        return [numbers] * len(tensors)
    if len(numbers) != len(tensors):
        raise RuntimeError("Tensor list must have same number of elements as scalar list.")
    return numbers


def _operands(tensors, other):
    if isinstance(other, (list, tuple)) and (not other or isinstance(other[0], Tensor)):
        _checked(tensors, other)
        return other
    _checked(tensors)
    return [other] * len(tensors) if isinstance(other, Tensor) else _each(other, tensors)


def _of_number(name):
    """maximum and minimum of a tensor and a number are computed by clamp."""
    return {"maximum": "clamp_min", "minimum": "clamp_max"}.get(name, name)


def _call(name, x, other, options):
    method = name.rstrip("_")
    if not isinstance(other, Tensor):
        method = _of_number(method)
    return getattr(x, method + "_" if name.endswith("_") else method)(other, **options)


def _unary(name):
    def each(self):
        _checked(self)
        results = [getattr(x, name)() for x in self]
        return results if name.endswith("_") else tuple(results)
    return each


def _binary(name):
    def each(self, other, **options):
        if name == "pow" and not isinstance(self, (list, tuple)):
            _checked(other)
            return tuple(_C.pow(self, x) for x in other)
        results = [_call(name, x, y, options) for x, y in zip(self, _operands(self, other))]
        return results if name.endswith("_") else tuple(results)
    return each


def _pointwise(name):
    def each(self, tensor1, tensor2, value=1, *, scalars=None):
        _checked(self, tensor1, tensor2)
        values = _each(value if scalars is None else scalars, self)
        results = [getattr(x, name)(y, z, value=v) for x, y, z, v in zip(self, tensor1, tensor2, values)]
        return results if name.endswith("_") else tuple(results)
    return each


def _foreach_norm(self, ord=2):  # noqa: A002
    _checked(self)
    return tuple(_C._linalg.vector_norm(x, ord) for x in self)


def _foreach_zero_(self):
    _checked(self)
    return [x.zero_() for x in self]


def _foreach_copy_(self, src, non_blocking=False):
    _checked(self, src)
    return [x.copy_(y, non_blocking) for x, y in zip(self, src)]


def _foreach_lerp(self, tensors1, weight):
    _checked(self, tensors1)
    return tuple(x.lerp(y, w) for x, y, w in zip(self, tensors1, _operands(self, weight)))


def _foreach_lerp_(self, tensors1, weight):
    _checked(self, tensors1)
    return [x.lerp_(y, w) for x, y, w in zip(self, tensors1, _operands(self, weight))]


for _make, _names in ((_unary, _UNARY), (_binary, _BINARY), (_pointwise, _POINTWISE)):
    for _name in _names:
        for _form in (_name, _name + "_"):
            _function = _make(_form)
            _function.__name__ = _function.__qualname__ = "_foreach_" + _form
            globals()[_function.__name__] = _function

__all__ = [name for name in globals() if name.startswith("_foreach_")]
