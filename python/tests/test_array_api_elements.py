"""Elementwise functions and operators, over every dtype and its extreme values."""

import operator

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tercel.array_api as xp
from array_api_draws import (
    BOOLS, COMPLEX, EVERY, FLOATING, INTEGERS, NUMBERS, PARTS, REAL_NUMBERS, REALS, agrees, arrays, elements, few, mine,
    pairs, roughly, same, theirs)

EXACT = {"abs": NUMBERS, "bitwise_invert": BOOLS + INTEGERS, "ceil": REAL_NUMBERS, "conj": COMPLEX, "floor": REAL_NUMBERS,
         "imag": COMPLEX, "isfinite": NUMBERS, "isinf": NUMBERS, "isnan": NUMBERS, "logical_not": BOOLS, "negative": NUMBERS,
         "positive": NUMBERS, "real": COMPLEX, "round": NUMBERS, "sign": REAL_NUMBERS, "signbit": REALS,
         "square": INTEGERS, "trunc": REAL_NUMBERS}
ROUGH = {name: FLOATING for name in ("acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 reciprocal "
                                     "sin sinh sqrt square tan tanh sign").split()}
ONE_OPERATORS = {"abs": abs, "negative": operator.neg, "positive": operator.pos, "bitwise_invert": operator.invert}


def largest(dtype):
    return float(np.finfo(PARTS.get(dtype, dtype)).max)


@pytest.mark.parametrize("name", EXACT)
@few(5)
@given(st.data())
def test_of_one_operand(name, data):
    dtype = data.draw(st.sampled_from(EXACT[name]))
    x = data.draw(arrays(dtype))
    near = 1e-6 if dtype in COMPLEX else None
    agrees(lambda n, a: getattr(n, name)(a), x, near=near)
    if name in ONE_OPERATORS:
        agrees(lambda n, a: ONE_OPERATORS[name](a), x, near=near)


@pytest.mark.parametrize("name", ROUGH)
@few(6)
@given(st.data())
def test_of_one_floating_operand(name, data):
    dtype = data.draw(st.sampled_from(ROUGH[name]))
    x = data.draw(arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=5),
                         of=elements(dtype, allow_nan=False, allow_infinity=False)))
    wide = x.astype("complex128" if dtype in COMPLEX else "float64")
    out = getattr(xp, name)(mine(x))
    assert tuple(out.shape) == x.shape and out.dtype == getattr(xp, dtype)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(wide)
    for a, got, expected in zip(x.flatten(), theirs(out).flatten(), np.asarray(want).flatten()):
        # For huge numbers the reference has no correct digits; it is computed in double precision.
        if dtype not in ("float64", "complex128") or abs(a) < 1e100 or name in ("log", "log2", "log10", "sqrt", "sign"):
            assert roughly(got.item(), expected.item(), largest(dtype)), (a, got, expected)


# name: (dtypes, operator)
TWO = {"add": (NUMBERS, "add"), "subtract": (NUMBERS, "sub"), "multiply": (NUMBERS, "mul"), "divide": (FLOATING, "truediv"),
       "floor_divide": (REAL_NUMBERS, "floordiv"), "remainder": (REAL_NUMBERS, "mod"), "pow": (NUMBERS, "pow"),
       "bitwise_and": (BOOLS + INTEGERS, "and_"), "bitwise_or": (BOOLS + INTEGERS, "or_"),
       "bitwise_xor": (BOOLS + INTEGERS, "xor"), "bitwise_left_shift": (INTEGERS, "lshift"),
       "bitwise_right_shift": (INTEGERS, "rshift"), "equal": (EVERY, "eq"), "not_equal": (EVERY, "ne"),
       "less": (REAL_NUMBERS, "lt"), "less_equal": (REAL_NUMBERS, "le"), "greater": (REAL_NUMBERS, "gt"),
       "greater_equal": (REAL_NUMBERS, "ge"),
       **{name: (REALS, None) for name in ("atan2", "copysign", "hypot", "logaddexp", "nextafter")},
       "maximum": (REAL_NUMBERS, None), "minimum": (REAL_NUMBERS, None),
       **{f"logical_{name}": (BOOLS, None) for name in ("and", "or", "xor")}}


def allowed(name, a, b):
    """Operands for which the standard defines the result."""
    if name in ("floor_divide", "remainder") and b.dtype.kind in "iu":
        lowest = a.size and np.any(a == np.iinfo(a.dtype).min) and np.any(b == -1) if a.dtype.kind == "i" else False
        return not np.any(b == 0) and not lowest
    if name.endswith("shift"):
        return not np.any(b < 0)
    return name != "pow" or b.dtype.kind not in "iu" or not np.any(b < 0)


def expected(name, a, b):
    dtype = np.result_type(a.dtype, b.dtype)
    with np.errstate(all="ignore"):
        return getattr(np, name)(a.astype(dtype), b.astype(dtype)), dtype


def check(name, got, a, b):
    want, dtype = expected(name, a, b)
    want = np.asarray(want)
    assert tuple(got.shape) == want.shape and got.dtype == getattr(xp, str(want.dtype))
    if want.dtype.kind not in "fc":
        same(got, want)
        return
    if name == "pow" or (name in ("floor_divide", "remainder") and want.dtype.kind == "f"):
        return  # tested in test_array_api_special.py
    out = theirs(got).flatten()
    ends = [np.broadcast_to(x, want.shape).flatten() for x in (a, b)]
    for x, y, one, other in zip(*ends, out, want.flatten()):
        if dtype.kind == "f":
            assert roughly(one.item(), other.item(), largest(str(dtype))) and np.isnan(one) == np.isnan(other), (x, y, one)
        elif 1e-100 < abs(x) < 1e15 and 1e-100 < abs(y) < 1e15:
            assert roughly(one.item(), other.item(), largest(str(dtype))), (x, y, one, other)


@pytest.mark.parametrize("name", TWO)
@few(8)
@given(st.data())
def test_of_two_operands(name, data):
    dtypes, symbol = TWO[name]
    first, second = data.draw(pairs(dtypes))
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, min_side=0, max_side=3))
    a, b = data.draw(arrays(first, shapes.input_shapes[0])), data.draw(arrays(second, shapes.input_shapes[1]))
    assume(allowed(name, a, b))
    check(name, getattr(xp, name)(mine(a), mine(b)), a, b)
    if symbol is None:
        return
    call = getattr(operator, symbol)
    check(name, call(mine(a), mine(b)), a, b)
    in_place = getattr(operator, f"i{symbol.strip('_')}", None)
    if in_place is None or not np.can_cast(b.dtype, a.dtype) or shapes.result_shape != a.shape:
        return
    x = kept = mine(a)
    x = in_place(x, mine(b))
    assert x is kept
    check(name, x, a, b)


# The shifts of a bit count that the dtype does not have are 0, or the sign.
@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_beyond_the_bits(dtype):
    bits = np.dtype(dtype).itemsize * 8
    counts = [c for c in (0, 1, bits - 1, bits, bits + 1, 2 * bits, 100) if c <= np.iinfo(dtype).max]
    x = np.array([1, 3, 77, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
    for count in counts:
        c = np.array(count, dtype)
        agrees(lambda n, a, b: [n.bitwise_left_shift(a, b), n.bitwise_right_shift(a, b), a << b, a >> b], x, c)
        same(mine(x) << count, np.left_shift(x, c))
        same(mine(x) >> count, np.right_shift(x, c))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_quotients_of_the_smallest_integer(dtype):
    """Overflow wraps or gives an unspecified value, but never crashes."""
    x = mine(np.array([np.iinfo(dtype).min] * 40, dtype))
    minus = -1 if dtype in ("int8", "int16", "int32", "int64") else 1
    for y in (minus, xp.full((40,), minus, dtype=x.dtype)):
        assert (x // y).dtype == x.dtype and not xp.any(x % y)


SCALARS = {"float32": [0, 3, -2, 2.5, -0.5, 1e30, float("inf")], "int8": [0, 1, -128, 127, 5], "uint8": [0, 1, 255],
           "int32": [0, 1, -2 ** 31, 2 ** 31 - 1], "int64": [0, -2 ** 63, 2 ** 63 - 1], "uint64": [0, 2 ** 64 - 1, 2 ** 63],
           "float64": [0, 1e300, 2 ** 70, -0.5, True], "complex64": [1j, 2.5, 3, 1 - 2j], "complex128": [1j, -1.0],
           "bool": [True, False]}


@pytest.mark.parametrize("name", TWO)
@few(5)
@given(st.data())
def test_of_pythons_numbers(name, data):
    """On either side; only their kind counts for the dtype."""
    dtypes, symbol = TWO[name]
    dtype = data.draw(st.sampled_from([d for d in SCALARS if d in dtypes]))
    x, s = data.draw(arrays(dtype)), data.draw(st.sampled_from(SCALARS[dtype]))
    as_array = np.asarray(s, dtype=dtype)
    for a, b, swapped in ((x, as_array, False), (as_array, x, True)):
        if allowed(name, a, b):
            check(name, getattr(xp, name)(*((s, mine(x)) if swapped else (mine(x), s))), a, b)
            if symbol:
                call = getattr(operator, symbol)
                check(name, call(s, mine(x)) if swapped else call(mine(x), s), a, b)


@pytest.mark.parametrize("symbol", [symbol for _, symbol in TWO.values() if symbol and getattr(operator, f"i{symbol.strip('_')}",
                                                                                               None)])
def test_in_place_operators_leave_the_dtype(symbol):
    call = getattr(operator, f"i{symbol.strip('_')}")
    floating = symbol not in ("and_", "or_", "xor", "lshift", "rshift")
    x = xp.ones((2, 3), dtype=xp.float32 if floating else xp.int16)
    same_object = call(x, 1)
    assert same_object is x and x.dtype == (xp.float32 if floating else xp.int16) and type(x) is type(xp.ones(1))
    # Wider numbers of the same kind are narrowed.
    wide = xp.full((2, 3), 2, dtype=xp.float64 if floating else xp.int64)
    want = np.asarray(getattr(operator, symbol)(x, xp.astype(wide, x.dtype)))
    for other in (wide, wide[0, 0]):
        y = xp.asarray(x, copy=True)
        assert call(y, other) is y and y.dtype is x.dtype and (np.asarray(y) == want).all()
    with pytest.raises(TypeError, match="expected an operand that keeps"):
        call(x, xp.ones((4, 2, 3), dtype=x.dtype))
    with pytest.raises((RuntimeError, ValueError)):
        call(x, xp.ones((2, 2), dtype=x.dtype))


@pytest.mark.parametrize("dtypes", [("bool", "int8"), ("int64", "float32"), ("float64", "complex128")])
@pytest.mark.parametrize("call", [operator.iadd, operator.imul, operator.ipow])
def test_in_place_operators_refuse_a_higher_kind(call, dtypes):
    x, other = (xp.ones(2, dtype=getattr(xp, dtype)) for dtype in dtypes)
    for operand in (other, other[0]):
        with pytest.raises(TypeError, match=f"keeps the kind of dtype tercel.{dtypes[0]} .* result has tercel.{dtypes[1]}"):
            call(x, operand)
    assert xp.all(x == 1)
    integers = xp.ones(2, dtype=xp.int32)
    with pytest.raises(TypeError, match="the result has tercel.float32"):
        integers /= integers


def test_operators_with_anything_else():
    x = xp.ones(2)
    assert (x == "text") is False and (x != None) is True  # noqa: E711
    for call in (operator.add, operator.iadd, operator.lt, operator.matmul, operator.imatmul):
        with pytest.raises(TypeError):
            call(x, object())
    m = xp.ones((2, 2))
    kept = m
    m @= xp.asarray([[1.0, 2], [3, 4]])
    assert m is kept and m.tolist() == [[4, 6], [4, 6]] and (m.T @ m).shape == (2, 2)
    assert hash(x) != hash(m) and x in [x]
    zero, row = xp.asarray(1.0, dtype=xp.float64), xp.ones(3, dtype=xp.float32)
    assert (zero + row).dtype == (row + zero).dtype == xp.float64  # arrays without dimensions count as much


@few(15)
@given(st.data())
def test_clip(data):
    dtype = data.draw(st.sampled_from(REAL_NUMBERS))
    x = data.draw(arrays(dtype))
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, base_shape=x.shape, max_dims=3, min_side=0,
                                                            max_side=3))
    low, high = (data.draw(st.none() | elements(dtype).map(lambda v: v.item()) | arrays(dtype, shape))
                 for shape in shapes.input_shapes)
    if low is not None and high is not None:
        assume(not np.any(np.asarray(high) < np.asarray(low)))
    want = x
    for bound, call in ((low, np.maximum), (high, np.minimum)):
        if bound is not None:
            want = call(want, np.asarray(bound, dtype=dtype))
    got = xp.clip(mine(x), *(mine(b) if isinstance(b, np.ndarray) else b for b in (low, high)))
    same(got, want)


@few(5)
@given(st.data())
def test_where(data):
    first, second = data.draw(pairs(EVERY))
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, min_side=0, max_side=3)).input_shapes
    drawn = [data.draw(arrays(d, s)) for d, s in zip(("bool", first, second), shapes)]
    agrees(lambda n, c, a, b: n.where(c, a, b), *drawn)


@pytest.mark.parametrize("name", ["add", "equal", "logical_and", "copysign", "bitwise_xor"])
def test_shapes_that_do_not_fit(name):
    dtype = {"logical_and": xp.bool, "bitwise_xor": xp.int8}.get(name, xp.float64)
    with pytest.raises((RuntimeError, ValueError)):
        getattr(xp, name)(xp.ones((2, 3), dtype=dtype), xp.ones((2,), dtype=dtype))
    assert getattr(xp, name)(xp.ones((0, 3), dtype=dtype), xp.ones((1, 1, 1), dtype=dtype)).shape == (1, 0, 3)


