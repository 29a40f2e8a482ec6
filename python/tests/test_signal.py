"""tercel.signal.windows, against their definitions and values that PyTorch 2.15 gives."""

import math

import numpy as np
import pytest

import tercel as tc
from tercel.signal import windows

# Of 5 points.
VALUES = {
    ("kaiser", False): [0.20488473773, 0.62474620342, 0.95222204924, 0.95222204924, 0.62474620342],
    ("nuttall", True): [0.00036279671, 0.22698242962, 1.0, 0.22698242962, 0.00036279671],
    ("general_hamming", True): [0.2, 0.6, 1.0, 0.6, 0.2],
    ("blackman", False): [0.0, 0.20077012479, 0.84922987227, 0.84922987227, 0.20077012479],
    ("bartlett", False): [0.0, 0.4, 0.8, 0.8, 0.4],
    ("exponential", False): [0.51341712475, 1.0, 0.51341712475, 0.26359716058, 0.13533528149],
    ("general_cosine", False): [0.2, 0.22639319301, 0.67360681295, 0.67360681295, 0.22639319301],
    ("gaussian", False): [0.0016992793, 0.10066891461, 0.77483743429, 0.77483743429, 0.10066891461],
    ("cosine", True): [0.30901699437, 0.80901699437, 1.0, 0.80901699437, 0.30901699437],
    ("hann", True): [0.0, 0.5, 1.0, 0.5, 0.0],
    ("hamming", True): [0.08, 0.54, 1.0, 0.54, 0.08],
}
OPTIONS = {"kaiser": {"beta": 3.0}, "general_hamming": {"alpha": 0.6}, "exponential": {"center": 1.0, "tau": 1.5},
           "general_cosine": {"a": [0.4, 0.3, 0.2, 0.1]}, "gaussian": {"std": 0.7}}


@pytest.mark.parametrize("name,sym", VALUES)
def test_values(name, sym):
    out = getattr(windows, name)(5, sym=sym, dtype=tc.float64, **OPTIONS.get(name, {}))
    np.testing.assert_allclose(out.numpy(), VALUES[name, sym], atol=1e-6)


@pytest.mark.parametrize("name", windows.__all__)
def test_lengths_and_dtypes(name):
    options = {"a": [0.5, 0.5]} if name == "general_cosine" else {}
    window = getattr(windows, name)
    assert window(0, **options).tolist() == [] and window(1, **options).tolist() == [1.0]
    assert window(7, **options).dtype is tc.float32 and window(7, **options).shape == (7,)
    assert window(7, dtype=tc.float64, requires_grad=True, **options).requires_grad
    # One more point of a symmetric window is its period.
    np.testing.assert_allclose(window(6, sym=False, dtype=tc.float64, **options).numpy(),
                               window(7, dtype=tc.float64, **options).numpy()[:6], atol=1e-15)


def test_windows_of_functions():
    for name in ("hann", "hamming", "blackman", "bartlett", "kaiser"):
        old = getattr(tc, name + "_window")(9, dtype=tc.float64)
        np.testing.assert_allclose(getattr(windows, name)(9, sym=False, dtype=tc.float64).numpy(), old.numpy(), atol=1e-14)
    assert math.isclose(windows.kaiser(2, beta=3.0, dtype=tc.float64)[0].item(), 1 / tc.special.i0(tc.tensor(3.0)).item(),
                        rel_tol=1e-6)


@pytest.mark.parametrize("call,error,sentence", [
    (lambda: windows.hann(-1), ValueError, "requires non-negative window length, got M=-1"),
    (lambda: windows.bartlett(4, dtype=tc.int32), ValueError, "bartlett expects float32 or float64 dtypes, got: tercel.int32"),
    (lambda: windows.exponential(4, tau=-1), ValueError, "Tau must be positive, got: -1 instead."),
    (lambda: windows.exponential(4, center=1.0), ValueError, "Center must be None for symmetric windows"),
    (lambda: windows.gaussian(4, std=0), ValueError, "Standard deviation must be positive, got: 0 instead."),
    (lambda: windows.general_cosine(4, a=[]), ValueError, "Coefficients cannot be empty"),
    (lambda: windows.general_cosine(4, a=3), TypeError, "Coefficients must be a list/tuple"),
    (lambda: windows.kaiser(4, beta=-1), ValueError, "beta must be non-negative, got: -1 instead."),
])
def test_refusals(call, error, sentence):
    with pytest.raises(error) as raised:
        call()
    assert sentence in str(raised.value)
