"""tercel.testing: closeness, error messages, and random tensors."""

import re

import numpy as np
import pytest

import tercel as tc
from tercel.testing import assert_allclose, assert_close, make_tensor

CLOSE = [
    (1, 1), (1.0, 1.0 + 1e-8), (1j, 1j), (True, True), (None, None), ([], []), ({}, {}),
    (tc.ones(3), tc.ones(3) + 1e-6), (tc.ones(2, dtype=tc.float16), tc.ones(2, dtype=tc.float16)),
    ([1, (2.0, tc.ones(1))], (1, [2.0, tc.ones(1)])), ({"a": tc.ones(1)}, {"a": tc.ones(1)}),
    (np.ones(2), np.ones(2)), (np.float64(1), np.float64(1)), (tc.empty(0, 3), tc.empty(0, 3)),
    (tc.nn.Parameter(tc.ones(1)), tc.ones(1)),
]


@pytest.mark.parametrize("actual, expected", CLOSE)
def test_close(actual, expected):
    assert assert_close(actual, expected) is None


APART = [
    (1, 2, {}, "Scalars are not equal!\n\nExpected 2 but got 1.\nAbsolute difference: 1\nRelative difference: 0.5"),
    (1.0, 2.0, {}, "Scalars are not close!\n\nExpected 2.0 but got 1.0.\nAbsolute difference: 1.0 (up to 1e-07 "
                   "allowed)\nRelative difference: 0.5 (up to 1e-07 allowed)"),
    (1, 1.0, {}, "The (d)types do not match: <class 'int'> != <class 'float'>."),
    (True, False, {}, "Booleans mismatch: True is not False"),
    (None, 1, {}, "None mismatch: None is not 1"),
    (tc.tensor(1), tc.tensor(2), {},
     "Scalars are not equal!\n\nExpected 2 but got 1.\nAbsolute difference: 1\nRelative difference: 0.5"),
    (tc.ones(2, 2), tc.tensor([[1.0, 1.0], [2.0, 1.0]]), {},
     "Tensor-likes are not close!\n\nMismatched elements: 1 / 4 (25.0%)\nGreatest absolute difference: 1.0 at index "
     "(1, 0) (up to 1e-05 allowed)\nGreatest relative difference: 0.5 at index (1, 0) (up to 1.3e-06 allowed)"),
    (tc.tensor([1, 2]), tc.tensor([1, 4]), {},
     "Tensor-likes are not equal!\n\nMismatched elements: 1 / 2 (50.0%)\nGreatest absolute difference: 2 at index "
     "(1,)\nGreatest relative difference: 0.5 at index (1,)"),
    (tc.tensor([True, False]), tc.tensor([True, True]), {},
     "Tensor-likes are not equal!\n\nMismatched elements: 1 / 2 (50.0%)\nGreatest absolute difference: 1 at index "
     "(1,)\nGreatest relative difference: 1.0 at index (1,)"),
    (tc.tensor([1.0, float("nan")]), tc.tensor([1.0, float("nan")]), {},
     "Tensor-likes are not close!\n\nMismatched elements: 1 / 2 (50.0%)\nGreatest absolute difference: nan at index "
     "(1,) (up to 1e-05 allowed)\nGreatest relative difference: nan at index (1,) (up to 1.3e-06 allowed)"),
    (tc.ones(2, 3), tc.ones(3, 2), {},
     "The values for attribute 'shape' do not match: tercel.Size([2, 3]) != tercel.Size([3, 2])."),
    (tc.ones(2), tc.ones(2).double(), {},
     "The values for attribute 'dtype' do not match: tercel.float32 != tercel.float64."),
    (tc.ones(2, 2), tc.ones(2, 2).t(), {"check_stride": True},
     "The values for attribute 'stride()' do not match: (2, 1) != (1, 2)."),
    ([1.0], [1.0, 2.0], {}, "The length of the sequences mismatch: 1 != 2"),
    ({"a": 1}, {"b": 1}, {}, "The keys of the mappings do not match:\nMissing keys in the actual mapping: ['b']\n"
                             "Additional keys in the actual mapping: ['a']"),
    ([1, [2, {"x": 3}]], [1, [2, {"x": 4}]], {},
     "Scalars are not equal!\n\nExpected 4 but got 3.\nAbsolute difference: 1\nRelative difference: 0.25\n\nThe failure "
     "occurred for item [1][1]['x']"),
    (tc.ones(1), tc.zeros(1), {"msg": "what it should be"}, "what it should be"),
    (1, 2, {"msg": lambda text: "so: " + text[:7]}, "so: Scalars"),
]


@pytest.mark.parametrize("actual, expected, options, text", APART)
def test_apart(actual, expected, options, text):
    with pytest.raises(AssertionError) as caught:
        assert_close(actual, expected, **options)
    assert str(caught.value) == text


def test_what_is_checked():
    nan = float("nan")
    assert_close(tc.ones(2), tc.ones(2).double(), check_dtype=False)
    assert_close(1, 1.0, check_dtype=False)
    assert_close(tc.tensor([nan]), tc.tensor([nan]), equal_nan=True)
    assert_close(nan, nan, equal_nan=True)
    assert_close(tc.ones(2), tc.ones(2) + 0.01, rtol=0.1, atol=0)
    with pytest.raises(AssertionError, match=re.escape("(up to 0.001 allowed)")):
        assert_close(tc.ones(2), tc.ones(2) + 0.01, rtol=0, atol=0.001)
    with pytest.raises(ValueError, match="must be either specified or omitted, but got no atol"):
        assert_close(1.0, 1.0, rtol=0.1)
    for actual, expected in (("a", "a"), (tc.ones(1), [1.0]), (tc.tensor(1.0), 1.0), (np.ones(1), tc.ones(1)),
                             ([1], {0: 1}), ({1}, {1})):
        with pytest.raises(TypeError, match="No comparison pair was able to handle inputs of type"):
            assert_close(actual, expected)
    with pytest.raises(TypeError, match="No comparison pair"):
        assert_close(tc.ones(1), tc.nn.Parameter(tc.ones(1)), allow_subclasses=False)


def test_allclose():
    with pytest.warns(FutureWarning, match="deprecated"):
        assert_allclose(tc.ones(2), [1.0, 1.00005])
    with pytest.warns(FutureWarning), pytest.raises(AssertionError, match="0.1"):
        assert_allclose(tc.ones(2), tc.ones(2) + 0.1)


DEFAULTS = {tc.float32: (-9, 9), tc.float64: (-9, 9), tc.float16: (-9, 9), tc.bfloat16: (-9, 9), tc.uint8: (0, 9),
            tc.int8: (-9, 9), tc.int64: (-9, 9), tc.bool: (0, 1)}


@pytest.mark.parametrize("dtype", DEFAULTS, ids=str)
def test_made_values(dtype):
    x = make_tensor(2000, dtype=dtype, device="cpu")
    low, high = DEFAULTS[dtype]
    assert x.shape == (2000,) and x.dtype is dtype and low <= x.double().min() < x.double().max() <= high
    assert make_tensor((2, 3), dtype=dtype, device="cpu").shape == (2, 3)
    assert make_tensor(2, 3, dtype=dtype, device="cpu").shape == (2, 3)
    assert (make_tensor(500, dtype=dtype, device="cpu", low=0, high=2, exclude_zero=True) != 0).all()
    odd = make_tensor((3, 4), dtype=dtype, device="cpu", noncontiguous=True)
    assert odd.shape == (3, 4) and odd.stride() == (8, 2)
    channels = make_tensor((1, 2, 3, 4), dtype=dtype, device="cpu", memory_format=tc.channels_last)
    assert channels.stride() == (24, 1, 8, 2)


def test_made_ranges():
    make = lambda dtype, **options: make_tensor(1000, dtype=dtype, device="cpu", **options)  # noqa: E731
    assert set(make(tc.int64, low=-1.5, high=2.5).tolist()) == {-1, 0, 1, 2}
    assert set(make(tc.uint8, low=-5, high=2).tolist()) == {0, 1}
    wide = make(tc.float32, low=-float("inf"), high=float("inf"))
    assert wide.isfinite().all() and wide.abs().max() > 1e38
    assert make_tensor(3, dtype=tc.float32, device="cpu", requires_grad=True).requires_grad
    with pytest.warns(FutureWarning, match="low==high"):
        assert (make(tc.float32, low=5, high=5) == 5).all()
    for error, dtype, options in (("must be less than", tc.float32, dict(low=6, high=5)),
                                  ("must be less than", tc.int64, dict(low=1, high=1)),
                                  ("cannot be NaN", tc.float32, dict(low=float("nan"))),
                                  ("only supports", tc.uint8, dict(low=300, high=400)),
                                  ("not supported for boolean and integral", tc.int64, dict(requires_grad=True)),
                                  ("mutually exclusive", tc.float32,
                                   dict(noncontiguous=True, memory_format=tc.channels_last))):
        with pytest.raises(ValueError, match=error):
            make(dtype, **options)
    with pytest.raises(TypeError, match="requested dtype 'x' is not supported"):
        make_tensor(2, dtype="x", device="cpu")
