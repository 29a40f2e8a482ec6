"""The special cases that the array API standard lists for functions of complex elements: infinite, NaN and zero parts."""

import cmath
import itertools
import math

import pytest

import tercel.array_api as xp

INF, NAN, PI = math.inf, math.nan, math.pi
PARTS = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 40.0]

# Conditions on a part; a number means that value, including the sign of zero, and NaN means NaN.
KINDS = {"any": lambda v: True, "inf": math.isinf, "zero": lambda v: v == 0, "finite": math.isfinite,
         "nonzero": lambda v: v != 0 and not math.isnan(v), "nonzero finite": lambda v: v != 0 and math.isfinite(v),
         "+finite": lambda v: 0 < v < INF, "not zero": lambda v: v != 0}


class Either(float):
    """A value of either sign."""


def cis(size, less=0.0):
    """size * (cos b + j sin b), less a number."""
    return lambda b: (size * math.cos(b) - less, size * math.sin(b))


# Of the real part, of the imaginary part (which is not negative: conj(f(z)) is f(conj(z))), and the result's parts.
CASES = {
    "acos": [("zero", 0.0, PI / 2, -0.0), ("zero", NAN, PI / 2, NAN), ("finite", INF, PI / 2, -INF),
             ("nonzero finite", NAN, NAN, NAN), (-INF, "+finite", PI, -INF), (INF, "+finite", 0.0, -INF),
             (-INF, INF, 3 * PI / 4, -INF), (INF, INF, PI / 4, -INF), ("inf", NAN, NAN, Either(INF)),
             (NAN, "finite", NAN, NAN), (NAN, INF, NAN, -INF), (NAN, NAN, NAN, NAN)],
    "acosh": [("zero", 0.0, 0.0, PI / 2), ("finite", INF, INF, PI / 2), ("nonzero finite", NAN, NAN, NAN),
              ("zero", NAN, NAN, Either(PI / 2)), (-INF, "+finite", INF, PI), (INF, "+finite", INF, 0.0),
              (-INF, INF, INF, 3 * PI / 4), (INF, INF, INF, PI / 4), ("inf", NAN, INF, NAN), (NAN, "finite", NAN, NAN),
              (NAN, INF, INF, NAN), (NAN, NAN, NAN, NAN)],
    "asinh": [(0.0, 0.0, 0.0, 0.0), ("+finite", INF, INF, PI / 2), ("finite", NAN, NAN, NAN), (INF, "+finite", INF, 0.0),
              (INF, INF, INF, PI / 4), (INF, NAN, INF, NAN), (NAN, 0.0, NAN, 0.0), (NAN, "nonzero finite", NAN, NAN),
              (NAN, INF, Either(INF), NAN), (NAN, NAN, NAN, NAN)],
    "atanh": [(0.0, 0.0, 0.0, 0.0), (0.0, NAN, 0.0, NAN), (1.0, 0.0, INF, 0.0), ("+finite", INF, 0.0, PI / 2),
              ("nonzero finite", NAN, NAN, NAN), (INF, "+finite", 0.0, PI / 2), (INF, INF, 0.0, PI / 2), (INF, NAN, 0.0, NAN),
              (NAN, "finite", NAN, NAN), (NAN, INF, Either(0.0), PI / 2), (NAN, NAN, NAN, NAN)],
    "cosh": [(0.0, 0.0, 1.0, 0.0), (0.0, INF, NAN, Either(0.0)), (0.0, NAN, NAN, Either(0.0)),
             ("nonzero finite", INF, NAN, NAN), ("nonzero finite", NAN, NAN, NAN), (INF, 0.0, INF, 0.0),
             (INF, "nonzero finite", cis(INF)), (INF, INF, Either(INF), NAN), (INF, NAN, INF, NAN),
             (NAN, 0.0, NAN, Either(0.0)), (NAN, "nonzero finite", NAN, NAN), (NAN, NAN, NAN, NAN)],
    "exp": [("zero", 0.0, 1.0, 0.0), ("finite", INF, NAN, NAN), ("finite", NAN, NAN, NAN), (INF, 0.0, INF, 0.0),
            (-INF, "nonzero finite", cis(0.0)), (INF, "nonzero finite", cis(INF)), (-INF, INF, Either(0.0), Either(0.0)),
            (INF, INF, Either(INF), NAN), (-INF, NAN, Either(0.0), Either(0.0)), (INF, NAN, Either(INF), NAN),
            (NAN, 0.0, NAN, 0.0), (NAN, "not zero", NAN, NAN)],
    "expm1": [("zero", 0.0, Either(0.0), 0.0), ("finite", INF, NAN, NAN), ("finite", NAN, NAN, NAN), (INF, 0.0, INF, 0.0),
              (-INF, "nonzero finite", cis(0.0, 1.0)), (INF, "nonzero finite", cis(INF, 1.0)),
              (-INF, INF, -1.0, Either(0.0)), (INF, INF, Either(INF), NAN), (-INF, NAN, -1.0, Either(0.0)),
              (INF, NAN, Either(INF), NAN), (NAN, 0.0, NAN, 0.0), (NAN, "not zero", NAN, NAN)],
    "log": [(-0.0, 0.0, -INF, PI), (0.0, 0.0, -INF, 0.0), ("finite", INF, INF, PI / 2), ("finite", NAN, NAN, NAN),
            (-INF, "+finite", INF, PI), (INF, "+finite", INF, 0.0), (-INF, INF, INF, 3 * PI / 4), (INF, INF, INF, PI / 4),
            ("inf", NAN, INF, NAN), (NAN, "finite", NAN, NAN), (NAN, INF, INF, NAN), (NAN, NAN, NAN, NAN)],
    "log1p": [(-1.0, 0.0, -INF, 0.0), ("finite", INF, INF, PI / 2), ("finite", NAN, NAN, NAN), (-INF, "+finite", INF, PI),
              (INF, "+finite", INF, 0.0), (-INF, INF, INF, 3 * PI / 4), (INF, INF, INF, PI / 4), ("inf", NAN, INF, NAN),
              (NAN, "finite", NAN, NAN), (NAN, INF, INF, NAN), (NAN, NAN, NAN, NAN)],
    "sinh": [(0.0, 0.0, 0.0, 0.0), (0.0, INF, Either(0.0), NAN), (0.0, NAN, Either(0.0), NAN),
             ("nonzero finite", INF, NAN, NAN), ("nonzero finite", NAN, NAN, NAN), (INF, 0.0, INF, 0.0),
             (INF, "+finite", cis(INF)), (INF, INF, Either(INF), NAN), (INF, NAN, Either(INF), NAN), (NAN, 0.0, NAN, 0.0),
             (NAN, "nonzero finite", NAN, NAN), (NAN, NAN, NAN, NAN)],
    "sqrt": [("zero", 0.0, 0.0, 0.0), ("any", INF, INF, INF), ("finite", NAN, NAN, NAN), (-INF, "+finite", 0.0, INF),
             (INF, "+finite", INF, 0.0), (-INF, NAN, NAN, Either(INF)), (INF, NAN, INF, NAN), (NAN, "finite", NAN, NAN),
             (NAN, NAN, NAN, NAN)],
    "tanh": [(0.0, 0.0, 0.0, 0.0), ("nonzero finite", INF, NAN, NAN), (0.0, INF, 0.0, NAN), ("nonzero finite", NAN, NAN, NAN),
             (0.0, NAN, 0.0, NAN), (INF, "+finite", 1.0, Either(0.0)), (INF, INF, 1.0, Either(0.0)),
             (INF, NAN, 1.0, Either(0.0)), (NAN, 0.0, NAN, 0.0), (NAN, "nonzero", NAN, NAN), (NAN, NAN, NAN, NAN)],
}


def same(got, want, near):
    if math.isnan(want):
        return math.isnan(got)
    if isinstance(want, Either):
        got, want = abs(got), abs(want)
    if want == 0 or math.isinf(want):
        return got == want and math.copysign(1, got) == math.copysign(1, want)
    return math.isclose(got, want, rel_tol=near)


def fits(value, kind):
    return KINDS[kind](value) if isinstance(kind, str) else same(value, kind, 0.0)


def near(dtype):
    return 1e-6 if dtype == "complex64" else 1e-14


def pairs(dtype, copies=1):
    """All numbers of the parts, `copies` times."""
    z = [complex(a, b) for a, b in itertools.product(PARTS, PARTS)]
    return z, xp.asarray(z * copies, dtype=getattr(xp, dtype))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", CASES)
def test_of_special_parts(name, dtype):
    for copies in (1, 3):  # one block of vectors, and several
        values, z = pairs(dtype, copies)
        out = getattr(xp, name)(z).tolist()
        for first, second, *want in CASES[name]:
            hits = [i for i, v in enumerate(values) if fits(v.real, first) and fits(abs(v.imag), second)]
            assert hits, (first, second)
            for i in hits:
                re, im = want if len(want) == 2 else want[0](abs(values[i].imag))
                if math.copysign(1, values[i].imag) < 0:
                    im = type(im)(-im)
                for got in out[i::len(values)]:
                    assert same(got.real, re, near(dtype)) and same(got.imag, im, near(dtype)), (values[i], got, (re, im))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name,other", [("asin", "asinh"), ("atan", "atanh"), ("sin", "sinh"), ("tan", "tanh")])
def test_of_a_quarter_turn(name, other, dtype):
    """f(z) is -j g(jz), also where parts are infinite or NaN."""
    values, z = pairs(dtype)
    turned = xp.asarray([complex(-v.imag, v.real) for v in values], dtype=getattr(xp, dtype))
    for v, got, want in zip(values, getattr(xp, name)(z).tolist(), getattr(xp, other)(turned).tolist()):
        for part, wanted in ((got.real, want.imag), (got.imag, -want.real)):
            assert same(part, wanted, near(dtype)) or same(part, Either(wanted), near(dtype)) and not cmath.isfinite(v), v


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_of_magnitudes_and_signs(dtype):
    values, z = pairs(dtype)
    for v, size, sign in zip(values, xp.abs(z).tolist(), xp.sign(z).tolist()):
        infinite, nan = cmath.isinf(v), cmath.isnan(v)
        assert same(size, INF if infinite else math.hypot(v.real, v.imag), near(dtype)), v
        if nan:
            assert math.isnan(sign.real) and math.isnan(sign.imag), v
        elif not infinite:
            want = v / abs(v) if v else 0j
            assert sign == pytest.approx(want, rel=near(dtype)), v


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_of_predicates(dtype):
    values, z = pairs(dtype)
    for name in ("isfinite", "isinf", "isnan"):
        assert getattr(xp, name)(z).tolist() == [getattr(cmath, name)(v) for v in values], name
    assert xp.equal(z, z).tolist() == [v == v for v in values]
    assert xp.not_equal(z, z).tolist() == [v != v for v in values]
    assert all(same(got, v.imag, 0) for got, v in zip(xp.imag(z).tolist(), values))
    assert all(same(got, -v.imag, 0) for got, v in zip(xp.imag(xp.conj(z)).tolist(), values))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name,base", [("log2", 2), ("log10", 10)])
def test_of_other_bases(name, base, dtype):
    values, z = pairs(dtype)
    for v, got, natural in zip(values, getattr(xp, name)(z).tolist(), xp.log(z).tolist()):
        assert same(got.real, natural.real / math.log(base), 1e-6) and same(got.imag, natural.imag / math.log(base), 1e-6), v
