"""Elementwise functions.

Note [Promotion]
In PyTorch a tensor without dimensions, or a number, changes a result's dtype only if it is of a higher kind. The
standard treats all arrays alike. So operands are converted to their common dtype before PyTorch's function is called,
Python numbers included.
"""

import math
from math import inf

from tercel import _C
from tercel._C import Tensor
from tercel.array_api._dtypes import tensors_of

__all__ = ["clip"]


def _named(function, name, doc):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    function.__module__ = __name__
    globals()[name] = function
    __all__.append(name)


def _one(name, call, doc):
    def function(x, /):
        return call(x)
    _named(function, name, doc)


def _two(name, call, doc):
    def function(x1, x2, /):
        return call(*tensors_of(name, x1, x2))
    _named(function, name, doc)


def _by_parts(call):
    """Rounds complex numbers part by part; returns integers as they are."""
    def function(x):
        if x.is_complex():
            return _C.complex(call(_C.real(x)), call(_C.imag(x)))
        return call(x) if x.is_floating_point() else x.clone()
    return function


def _parts_both(combine, call):
    """A test of complex numbers by testing their parts."""
    def function(x):
        return combine(call(_C.real(x)), call(_C.imag(x))) if x.is_complex() else call(x)
    return function


def _times(factor, call):
    """A logarithm to another base; complex numbers part by part, since an infinite part would make the other NaN."""
    def function(x):
        if not x.is_complex():
            return call(x)
        natural = _C.log(x)
        return _C.complex(_C.real(natural) * factor, _C.imag(natural) * factor)
    return function


def _floor_divide(x1, x2):
    """floor_divide() with the standard's results for infinities, where Tercel, like PyTorch, gives NaN or -1."""
    whole = _C.floor_divide(x1, x2)
    if not whole.is_floating_point():
        return whole
    return _C.where(_C.isinf(x1) ^ _C.isinf(x2), _C.div(x1, x2), whole)


def _remainder(x1, x2):
    """PyTorch's remainder(), but zeros also have the divisor's sign."""
    out = _C.remainder(x1, x2)
    return _C.where(out == 0, _C.copysign(out, x2), out) if out.is_floating_point() else out


def _sign(x):
    """Tercel's sign(), but +0 for zeros, NaN for NaN, and correct for complex numbers whose magnitude overflows."""
    if x.is_complex():
        scale = _C.maximum(_C.abs(_C.real(x)), _C.abs(_C.imag(x)))
        return _C.sgn(x / _C.where(_C.isfinite(scale) & (scale > 0), scale, _C.ones_like(scale)))
    out = _C.sgn(x)
    return _C.where(_C.isnan(x), x, _C.add(out, 0.0)) if x.is_floating_point() else out


def _abs(x):
    """Tercel's function, but infinite if either part is infinite, whatever the other."""
    out = _C.abs(x)
    return _C.where(_C.isinf(_C.real(x)) | _C.isinf(_C.imag(x)), inf, out) if x.is_complex() else out


def _expm1(x):
    """Tercel's exp(), but an infinite real part gives infinity or 0 for any angle, where PyTorch gives NaN + NaN j."""
    out = _C.expm1(x)
    return _C.where(_C.isinf(_C.real(x)), _C.exp(x) - 1, out) if x.is_complex() else out


_LOG2_E, _LOG10_E = 1.4426950408889634, 0.4342944819032518

for _row in (
        ("abs", _abs, "Magnitudes."),
        ("acos", _C.acos, "Inverse cosines."), ("acosh", _C.acosh, "Inverse hyperbolic cosines."),
        ("asin", _C.asin, "Inverse sines."), ("asinh", _C.asinh, "Inverse hyperbolic sines."),
        ("atan", _C.atan, "Inverse tangents."), ("atanh", _C.atanh, "Inverse hyperbolic tangents."),
        ("bitwise_invert", _C.bitwise_not, "All bits inverted; logical not for bool."),
        ("ceil", _by_parts(_C.ceil), "Rounded up."), ("floor", _by_parts(_C.floor), "Rounded down."),
        ("round", _by_parts(_C.round), "Rounded to the nearest integer, halves to the even one."),
        ("trunc", _by_parts(_C.trunc), "Rounded towards zero."),
        ("conj", _C.conj_physical, "Complex conjugates."),
        ("cos", _C.cos, "Cosines."), ("cosh", _C.cosh, "Hyperbolic cosines."),
        ("exp", _C.exp, "e to the power of each."), ("expm1", _expm1, "exp(x) - 1."),
        ("real", lambda x: _C.real(x) if x.is_complex() else x.clone(), "Real parts."),
        ("imag", lambda x: _C.imag(x), "Imaginary parts."),
        ("isfinite", _parts_both(_C.logical_and, _C.isfinite), "Where neither infinite nor NaN."),
        ("isinf", _parts_both(_C.logical_or, _C.isinf), "Where infinite."),
        ("isnan", _parts_both(_C.logical_or, _C.isnan), "Where NaN."),
        ("log", _C.log, "Natural logarithms."), ("log1p", _C.log1p, "log(1 + x)."),
        ("log2", _times(_LOG2_E, _C.log2), "Logarithms to base 2."),
        ("log10", _times(_LOG10_E, _C.log10), "Logarithms to base 10."),
        ("logical_not", _C.logical_not, "Where false."),
        ("negative", _C.neg, "Numbers with the opposite sign."), ("positive", _C.positive, "The numbers themselves."),
        ("reciprocal", _C.reciprocal, "1 / x."),
        ("sign", _sign, "-1, 0 or 1; z / |z| of complex numbers."), ("signbit", _C.signbit, "Where the sign bit is set."),
        ("sin", _C.sin, "Sines."), ("sinh", _C.sinh, "Hyperbolic sines."),
        ("square", _C.square, "x * x."), ("sqrt", _C.sqrt, "Square roots."),
        ("tan", _C.tan, "Tangents."), ("tanh", _C.tanh, "Hyperbolic tangents.")):
    _one(*_row)

for _row in (
        ("add", _C.add, "Sums."), ("subtract", _C.sub, "Differences."), ("multiply", _C.mul, "Products."),
        ("divide", _C.div, "Quotients."), ("floor_divide", _floor_divide, "Quotients, rounded down."),
        ("remainder", _remainder, "Remainders, with the divisor's sign."), ("pow", _C.pow, "x1 to the power of x2."),
        ("atan2", _C.atan2, "The angle of (x2, x1)."), ("hypot", _C.hypot, "sqrt(x1^2 + x2^2)."),
        ("logaddexp", _C.logaddexp, "log(exp(x1) + exp(x2))."), ("copysign", _C.copysign, "|x1| with the sign of x2."),
        ("nextafter", _C.nextafter, "The next number after x1 towards x2."),
        ("maximum", _C.maximum, "The larger one; NaN if either is."),
        ("minimum", _C.minimum, "The smaller one; NaN if either is."),
        ("equal", _C.eq, "Where equal."), ("not_equal", _C.ne, "Where not equal."), ("less", _C.lt, "Where x1 < x2."),
        ("less_equal", _C.le, "Where x1 <= x2."), ("greater", _C.gt, "Where x1 > x2."),
        ("greater_equal", _C.ge, "Where x1 >= x2."),
        ("logical_and", _C.logical_and, "Where both are true."), ("logical_or", _C.logical_or, "Where either is true."),
        ("logical_xor", _C.logical_xor, "Where exactly one is true."),
        ("bitwise_and", _C.bitwise_and, "Bits set in both."), ("bitwise_or", _C.bitwise_or, "Bits set in either."),
        ("bitwise_xor", _C.bitwise_xor, "Bits set in exactly one."),
        ("bitwise_left_shift", _C.bitwise_left_shift, "x1 * 2^x2."),
        ("bitwise_right_shift", _C.bitwise_right_shift, "x1 / 2^x2, rounded down.")):
    _two(*_row)


def clip(x, /, min=None, max=None):  # noqa: A002
    """x limited to [min, max], in x's dtype; None means no bound."""
    result = x
    for bound, call, whole in ((min, _C.maximum, math.ceil), (max, _C.minimum, math.floor)):
        if bound is not None:
            bound = bound.to(x.dtype) if isinstance(bound, Tensor) else _bound(bound, x.dtype, whole)
            result = call(result, bound)
    return result.clone() if result is x else result


def _bound(number, dtype, whole):
    """A bound in an integer dtype, limited to its range; whole() rounds a float to an integer."""
    if not dtype.is_floating_point and not dtype.is_complex:
        info = _C.iinfo(dtype)
        number = info.min if number < info.min else info.max if number > info.max else whole(number)
    return _C.tensor(number, dtype=dtype)
