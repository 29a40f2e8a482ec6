"""Strategies for equal arrays of NumPy and tercel.array_api, and comparisons of the two."""

import math
import os

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tercel.array_api as xp

BOOLS, SIGNED, UNSIGNED = ["bool"], ["int8", "int16", "int32", "int64"], ["uint8", "uint16", "uint32", "uint64"]
INTEGERS, REALS, COMPLEX = SIGNED + UNSIGNED, ["float32", "float64"], ["complex64", "complex128"]
FLOATING = REALS + COMPLEX
REAL_NUMBERS, NUMBERS = INTEGERS + REALS, INTEGERS + FLOATING
EVERY = BOOLS + NUMBERS
PARTS = {"complex64": "float32", "complex128": "float64"}
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)


def few(count):
    """A fixed set of examples; with ARRAY_API_EXAMPLES, that many times as many new ones."""
    times = int(os.environ.get("ARRAY_API_EXAMPLES", "0"))
    return settings(max_examples=count * max(times, 1), derandomize=not times, deadline=None, database=None,
                    suppress_health_check=list(HealthCheck))


def promotes(a, b):
    """Whether the standard defines the promotion of two dtypes."""
    kinds = {np.dtype(a).kind, np.dtype(b).kind}
    return len(kinds) == 1 or (kinds == {"i", "u"} and "uint64" not in (a, b)) or kinds == {"f", "c"}


def pairs(dtypes):
    return st.sampled_from([(a, b) for a in dtypes for b in dtypes if promotes(a, b)])


def elements(dtype, **limits):
    """Elements including extremes: infinities, NaN, signed zeros, the smallest and largest numbers."""
    kind = np.dtype(dtype).kind
    if kind == "c":
        limits = {"allow_nan": True, "allow_infinity": True, **limits}
    return hnp.from_dtype(np.dtype(dtype), **limits)


def small(dtype):
    """Elements whose sums and products neither overflow nor cancel much."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return st.booleans()
    if kind in "iu":
        return st.integers(0 if kind == "u" else -3, 4)
    part = st.sampled_from([-2.5, -1.0, -0.5, 0.0, 0.25, 1.0, 1.5, 3.0])
    return part if kind == "f" else st.builds(complex, part, part)


def arrays(dtype, shape=SHAPES, of=None):
    return hnp.arrays(np.dtype(dtype), shape, elements=elements(dtype) if of is None else of)


def axes_of(ndim):
    """None, an axis, or several."""
    if not ndim:
        return st.none()
    return st.none() | st.integers(-ndim, ndim - 1) | hnp.valid_tuple_axes(ndim)


def mine(x):
    """NumPy's array, or scalar, as one of the namespace's."""
    x = np.asarray(x)
    return xp.reshape(xp.asarray(x.flatten().tolist(), dtype=getattr(xp, str(x.dtype))), x.shape)


def theirs(x):
    return np.asarray(x.tolist(), dtype=str(x.dtype).rpartition(".")[2]).reshape(x.shape)


def same(got, want, near=None):
    """One array, or a tuple or list of them: shape, dtype and elements; floating ones up to `near`."""
    if isinstance(want, (tuple, list)):
        assert isinstance(got, (tuple, list)) and len(got) == len(want)
        for one, other in zip(got, want):
            same(one, other, near)
        return
    want = np.asarray(want)
    assert type(got).__name__ == "Array" and got.size == want.size
    assert tuple(got.shape) == want.shape, (tuple(got.shape), want.shape)
    assert got.dtype == getattr(xp, str(want.dtype)), (got.dtype, want.dtype)
    got = theirs(got)
    if near and want.dtype.kind in "fc":
        np.testing.assert_allclose(got, want, rtol=near, atol=near)
    else:
        np.testing.assert_array_equal(got, want)


def agrees(call, *operands, near=None):
    """call(namespace, *operands) for both; if one raises, the other must too."""
    try:
        with np.errstate(all="ignore"):
            want = call(np, *operands)
    except (ValueError, IndexError, TypeError) as e:
        want = e
    of_mine = [mine(x) if isinstance(x, (np.ndarray, np.generic)) else x for x in operands]
    if isinstance(want, Exception):
        try:
            got = call(xp, *of_mine)
        except (ValueError, IndexError, TypeError, RuntimeError):
            return
        raise AssertionError(f"NumPy: {want!r}, but {got}")
    same(call(xp, *of_mine), want, near)


def roughly(got, want, largest):
    """Whether two numbers agree where no precision is guaranteed."""
    if math.isnan(abs(want)) or math.isinf(abs(want)) or abs(want) >= largest:
        return True
    return abs(got - want) <= 1e-3 * max(abs(want), 1)
