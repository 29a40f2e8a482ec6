"""The special cases that the array API standard lists for functions of real floating-point elements."""

import math
import operator

import numpy as np
import pytest

import tercel.array_api as xp

INF, NAN, PI = math.inf, math.nan, math.pi
POOL = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 0.25, -0.25, 1.5, -1.5, 2.0, -2.0, 2.5, -2.5, 3.0, -3.0, 1e30, -1e30,
        1e-30, -1e-30]

# Conditions on an operand; a number means that value, including the sign of zero, and NaN means NaN.
KINDS = {
    "any": lambda v: True, "not nan": lambda v: not math.isnan(v), "inf": math.isinf, "zero": lambda v: v == 0,
    "finite": math.isfinite, "nonzero": lambda v: v != 0, "nonzero finite": lambda v: v != 0 and math.isfinite(v),
    "+": lambda v: v > 0, "-": lambda v: v < 0, "+finite": lambda v: 0 < v < INF, "-finite": lambda v: -INF < v < 0,
    "+signed": lambda v: math.copysign(1, v) > 0, "-signed": lambda v: math.copysign(1, v) < 0,
    "> 1": lambda v: v > 1, "< 1": lambda v: v < 1, "< -1": lambda v: v < -1, "in (-1, 0)": lambda v: -1 < v < 0,
    "whole": lambda v: math.isfinite(v) and v == round(v), "fraction": lambda v: math.isfinite(v) and v != round(v),
    "+odd": lambda v: v > 0 and v % 2 == 1, "+not odd": lambda v: v > 0 and v % 2 != 1,
    "-odd": lambda v: v < 0 and v % 2 == 1, "-not odd": lambda v: v < 0 and v % 2 != 1,
    "not 1": lambda v: v != 1, "|x| > 1": lambda v: abs(v) > 1, "|x| = 1": lambda v: abs(v) == 1,
    "|x| < 1": lambda v: abs(v) < 1}
SELF = "itself"

ONE = {
    "abs": [(NAN, NAN), (-0.0, 0.0), (-INF, INF), ("+", SELF)],
    "acos": [(NAN, NAN), ("> 1", NAN), ("< -1", NAN), (1.0, 0.0), (-1.0, PI), (0.0, PI / 2)],
    "acosh": [(NAN, NAN), ("< 1", NAN), (1.0, 0.0), (INF, INF)],
    "asin": [(NAN, NAN), ("> 1", NAN), ("< -1", NAN), ("zero", SELF), (1.0, PI / 2)],
    "asinh": [(NAN, NAN), ("zero", SELF), ("inf", SELF)],
    "atan": [(NAN, NAN), ("zero", SELF), (INF, PI / 2), (-INF, -PI / 2)],
    "atanh": [(NAN, NAN), ("> 1", NAN), ("< -1", NAN), (1.0, INF), (-1.0, -INF), ("zero", SELF)],
    "ceil": [("whole", SELF), ("inf", SELF), ("zero", SELF), (NAN, NAN), ("in (-1, 0)", -0.0)],
    "cos": [(NAN, NAN), ("zero", 1.0), ("inf", NAN)],
    "cosh": [(NAN, NAN), ("zero", 1.0), ("inf", INF)],
    "exp": [(NAN, NAN), ("zero", 1.0), (INF, INF), (-INF, 0.0)],
    "expm1": [(NAN, NAN), ("zero", SELF), (INF, INF), (-INF, -1.0)],
    "floor": [("whole", SELF), ("inf", SELF), ("zero", SELF), (NAN, NAN)],
    "isfinite": [("finite", True), ("inf", False), (NAN, False)],
    "isinf": [("inf", True), ("finite", False), (NAN, False)],
    "isnan": [(NAN, True), ("not nan", False)],
    "log": [(NAN, NAN), ("-", NAN), ("zero", -INF), (1.0, 0.0), (INF, INF)],
    "log10": [(NAN, NAN), ("-", NAN), ("zero", -INF), (1.0, 0.0), (INF, INF)],
    "log2": [(NAN, NAN), ("-", NAN), ("zero", -INF), (1.0, 0.0), (INF, INF)],
    "log1p": [(NAN, NAN), ("< -1", NAN), (-1.0, -INF), ("zero", SELF), (INF, INF)],
    "negative": [(NAN, NAN), (0.0, -0.0), (-0.0, 0.0), (INF, -INF)],
    "positive": [("any", SELF)],
    "reciprocal": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-INF, -0.0), (NAN, NAN)],
    "round": [("whole", SELF), ("inf", SELF), ("zero", SELF), (NAN, NAN), (0.5, 0.0), (-0.5, -0.0), (1.5, 2.0), (2.5, 2.0),
              (-2.5, -2.0)],
    "sign": [("-", -1.0), ("zero", 0.0), ("+", 1.0), (NAN, NAN)],
    "signbit": [("+signed", False), ("-signed", True)],
    "sin": [(NAN, NAN), ("zero", SELF), ("inf", NAN)],
    "sinh": [(NAN, NAN), ("zero", SELF), ("inf", SELF)],
    "sqrt": [(NAN, NAN), ("-", NAN), ("zero", SELF), (INF, INF)],
    "square": [(NAN, NAN), ("inf", INF), ("zero", 0.0)],
    "tan": [(NAN, NAN), ("zero", SELF), ("inf", NAN)],
    "tanh": [(NAN, NAN), ("zero", SELF), (INF, 1.0), (-INF, -1.0)],
    "trunc": [("whole", SELF), ("inf", SELF), ("zero", SELF), (NAN, NAN), ("in (-1, 0)", -0.0)],
}
NANS = [(NAN, "any", NAN), ("any", NAN, NAN)]
FIRST, SECOND = "x1", "x2"
TWO = {
    "add": NANS + [(INF, -INF, NAN), (-INF, INF, NAN), (INF, INF, INF), (-INF, -INF, -INF), (INF, "finite", INF),
                   (-INF, "finite", -INF), ("finite", INF, INF), ("finite", -INF, -INF), (-0.0, -0.0, -0.0),
                   (-0.0, 0.0, 0.0), (0.0, -0.0, 0.0), (0.0, 0.0, 0.0), ("zero", "nonzero finite", SECOND),
                   ("nonzero finite", "zero", FIRST)],
    "subtract": NANS + [(INF, INF, NAN), (-INF, -INF, NAN), (INF, -INF, INF), (0.0, 0.0, 0.0), (-0.0, 0.0, -0.0),
                        (0.0, -0.0, 0.0), (-0.0, -0.0, 0.0), ("finite", INF, -INF), (INF, "finite", INF)],
    "multiply": NANS + [("inf", "zero", NAN), ("zero", "inf", NAN), ("+", INF, INF), ("-", INF, -INF), (-INF, "+", -INF),
                        (-INF, "-", INF), (0.0, "-finite", -0.0), (-0.0, "-finite", 0.0)],
    "divide": NANS + [("inf", "inf", NAN), ("zero", "zero", NAN), (0.0, "+", 0.0), (-0.0, "+", -0.0), (0.0, "-", -0.0),
                      (-0.0, "-", 0.0), ("+", 0.0, INF), ("+", -0.0, -INF), ("-", 0.0, -INF), ("-", -0.0, INF),
                      (INF, "+finite", INF), (INF, "-finite", -INF), (-INF, "+finite", -INF), (-INF, "-finite", INF),
                      ("+finite", INF, 0.0), ("+finite", -INF, -0.0), ("-finite", INF, -0.0), ("-finite", -INF, 0.0)],
    "floor_divide": NANS + [
        ("inf", "inf", NAN), ("zero", "zero", NAN), (0.0, "+", 0.0), (-0.0, "+", -0.0), (0.0, "-", -0.0), (-0.0, "-", 0.0),
        ("+", 0.0, INF), ("+", -0.0, -INF), ("-", 0.0, -INF), ("-", -0.0, INF), (INF, "+finite", INF),
        (INF, "-finite", -INF), (-INF, "+finite", -INF), (-INF, "-finite", INF), ("+finite", INF, 0.0),
        ("+finite", -INF, -0.0), ("-finite", INF, -0.0), ("-finite", -INF, 0.0)],
    "remainder": NANS + [
        ("inf", "inf", NAN), ("zero", "zero", NAN), ("zero", "+", 0.0), ("zero", "-", -0.0), ("nonzero", "zero", NAN),
        ("inf", "finite", NAN), ("+finite", INF, FIRST), ("+finite", -INF, SECOND), ("-finite", INF, SECOND),
        ("-finite", -INF, FIRST)],
    "pow": [("not 1", NAN, NAN), ("any", "zero", 1.0), (NAN, "nonzero", NAN), ("|x| > 1", INF, INF), ("|x| > 1", -INF, 0.0),
            ("|x| = 1", "inf", 1.0), ("|x| < 1", INF, 0.0), ("|x| < 1", -INF, INF), (INF, "+", INF), (INF, "-", 0.0),
            (-INF, "+odd", -INF), (-INF, "+not odd", INF), (-INF, "-odd", -0.0), (-INF, "-not odd", 0.0), (0.0, "+", 0.0),
            (0.0, "-", INF), (-0.0, "+odd", -0.0), (-0.0, "+not odd", 0.0), (-0.0, "-odd", -INF), (-0.0, "-not odd", INF),
            ("-finite", "fraction", NAN), (1.0, "not nan", 1.0)],
    "atan2": NANS + [("+", "zero", PI / 2), ("-", "zero", -PI / 2), (0.0, "+", 0.0), (0.0, 0.0, 0.0), (0.0, -0.0, PI), (0.0, "-", PI),
                     (-0.0, "+", -0.0), (-0.0, 0.0, -0.0), (-0.0, -0.0, -PI), (-0.0, "-", -PI), ("+finite", INF, 0.0),
                     ("+finite", -INF, PI), ("-finite", INF, -0.0), ("-finite", -INF, -PI), (INF, "finite", PI / 2),
                     (-INF, "finite", -PI / 2), (INF, INF, PI / 4), (INF, -INF, 3 * PI / 4), (-INF, INF, -PI / 4),
                     (-INF, -INF, -3 * PI / 4)],
    "hypot": [("inf", "any", INF), ("any", "inf", INF), (NAN, "finite", NAN), ("finite", NAN, NAN), ("finite", "zero", "|x1|")],
    "logaddexp": NANS + [(INF, "not nan", INF), ("not nan", INF, INF), (-INF, -INF, -INF), (-INF, "nonzero finite", SECOND)],
    "copysign": [(NAN, "any", NAN), ("not nan", "+signed", "|x1|"), ("not nan", "-signed", "-|x1|")],
    "maximum": NANS + [(INF, "not nan", INF), ("finite", -INF, FIRST)],
    "minimum": NANS + [(-INF, "not nan", -INF), ("finite", INF, FIRST)],
    "nextafter": NANS + [("zero", "zero", SECOND)],
    **{name: [(NAN, "any", name == "not_equal"), ("any", NAN, name == "not_equal"), ("zero", "zero", "equal" in name.replace(
        "not_equal", "")), (INF, "finite", name in ("not_equal", "greater", "greater_equal")),
        (-INF, "finite", name in ("not_equal", "less", "less_equal"))]
        for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")},
}
OPERATORS = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "floor_divide": "floordiv",
             "remainder": "mod", "pow": "pow", "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le",
             "greater": "gt", "greater_equal": "ge"}


def fits(value, kind):
    if isinstance(kind, str):
        return KINDS[kind](value)
    return same(value, kind)


def same(got, want, near=0.0):
    if isinstance(want, bool):
        return got is want
    if math.isnan(want):
        return math.isnan(got)
    if want == 0 or math.isinf(want):
        return got == want and math.copysign(1, got) == math.copysign(1, want)
    return math.isclose(got, want, rel_tol=near)


def pool(dtype):
    """The values rounded to the dtype."""
    return [float(v) for v in np.array(POOL, dtype)]


def near(dtype):
    return 1e-6 if dtype == "float32" else 1e-14


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ONE)
def test_of_one_operand(name, dtype):
    values = pool(dtype)
    x = xp.asarray(values, dtype=getattr(xp, dtype))
    for copies in (1, 40):  # short ones and those that vector instructions see
        out = getattr(xp, name)(xp.tile(x, (copies,))).tolist()
        for kind, want in ONE[name]:
            hits = [i for i, v in enumerate(values) if fits(v, kind)]
            assert hits, kind
            for i in hits:
                for got in out[i::len(values)]:
                    assert same(got, values[i] if want == SELF else want, near(dtype)), (name, values[i], got, want)


def results(name, x, y):
    yield getattr(xp, name)(x, y)
    short = OPERATORS.get(name)
    if short:
        yield getattr(operator, short)(x, y)
        if name not in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
            z = xp.asarray(x, copy=True)
            yield getattr(operator, f"i{short}")(z, y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", TWO)
def test_of_two_operands(name, dtype):
    values = pool(dtype)
    x = xp.asarray([a for a in values for _ in values], dtype=getattr(xp, dtype))
    y = xp.asarray(values * len(values), dtype=getattr(xp, dtype))
    for out in results(name, x, y):
        out = out.tolist()
        for first, second, want in TWO[name]:
            hits = [(i, a, b) for i, (a, b) in enumerate(zip(x.tolist(), y.tolist())) if fits(a, first) and fits(b, second)]
            assert hits, (first, second)
            for i, a, b in hits:
                expected = {FIRST: a, SECOND: b, "|x1|": abs(a), "-|x1|": -abs(a)}.get(want, want)
                assert same(out[i], expected, near(dtype)), (name, a, b, out[i], expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_quotients_of_finite_numbers(dtype):
    """Rounded down, and with the divisor's sign, as Python's."""
    values = [v for v in pool(dtype) if math.isfinite(v) and 1e-20 < abs(v) < 1e20] + [7.25, -7.25, 0.1, -0.1]
    values = [float(v) for v in np.array(values, dtype)]
    for a in values:
        x = xp.asarray([a] * len(values), dtype=getattr(xp, dtype))
        y = xp.asarray(values, dtype=getattr(xp, dtype))
        for quotient, rest, b in zip(xp.floor_divide(x, y).tolist(), (x % y).tolist(), values):
            assert same(rest, float(np.remainder(np.array(a, dtype), np.array(b, dtype))), near(dtype)), (a, b)
            assert quotient == float(np.floor_divide(np.array(a, dtype), np.array(b, dtype))), (a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_of_reductions(dtype):
    nothing = xp.zeros((0,), dtype=getattr(xp, dtype))
    x = xp.asarray([1.0, NAN, 3.0], dtype=getattr(xp, dtype))
    for name in ("max", "min", "mean", "prod", "sum", "std", "var"):
        assert math.isnan(getattr(xp, name)(x)), name
    for name, want in (("mean", NAN), ("prod", 1.0), ("sum", 0.0), ("std", NAN), ("var", NAN)):
        assert same(float(getattr(xp, name)(nothing)), want), name
    assert same(float(xp.var(xp.asarray([1.0, 2.0], dtype=getattr(xp, dtype)), correction=2)), INF) or math.isnan(
        xp.var(xp.asarray([1.0, 2.0], dtype=getattr(xp, dtype)), correction=2))
    assert xp.any(nothing).item() is False and xp.all(nothing).item() is True
    assert xp.any(x).item() is True and xp.all(xp.asarray([NAN, INF], dtype=getattr(xp, dtype))).item() is True
