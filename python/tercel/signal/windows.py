"""Window functions of M points as 1-d tensors [M] of float32 or float64 (the default dtype unless one is given).

With ``sym`` a window is symmetric, for filters; without, it is one period of a periodic window, for transforms.
ValueError for negative M, another dtype or another layout.
"""

import math
from collections.abc import Sequence

import tercel

__all__ = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming",
           "hann", "kaiser", "nuttall"]


def _result_dtype(op, M, dtype, layout):  # noqa: N803
    if M < 0:
        raise ValueError(f"{op} requires non-negative window length, got M={M}")
    if layout is not tercel.strided:
        raise ValueError(f"{op} is implemented for strided tensors only, got: {layout}")
    dtype = tercel.get_default_dtype() if dtype is None else dtype
    if dtype not in (tercel.float32, tercel.float64):
        raise ValueError(f"{op} expects float32 or float64 dtypes, got: {dtype}")
    return dtype


def _window(op, M, values, dtype, layout, device, requires_grad):  # noqa: N803
    """values(n) at the points n = 0 ... M - 1, computed in float64; 1 for a single point."""
    dtype = _result_dtype(op, M, dtype, layout)
    points = tercel.arange(M, dtype=tercel.float64, device=device)
    out = values(points) if M > 1 else tercel.ones_like(points)
    return out.to(dtype).requires_grad_(requires_grad)


def _intervals(M, sym):  # noqa: N803
    return M - 1 if sym else M


def general_cosine(M, *, a, sym=True, dtype=None, layout=tercel.strided, device=None, requires_grad=False):  # noqa: N803
    """a[0] - a[1] cos(t) + a[2] cos(2t) - ..., with t from 0 to 2 pi."""
    _result_dtype("general_cosine", M, dtype, layout)
    if not isinstance(a, Sequence):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")

    def values(n):
        angle = n * (2 * math.pi / _intervals(M, sym))
        return sum((-1) ** i * factor * (angle * i).cos() for i, factor in enumerate(a))

    return _window("general_cosine", M, values, dtype, layout, device, requires_grad)


def general_hamming(M, *, alpha=0.54, sym=True, dtype=None, layout=tercel.strided, device=None,  # noqa: N803
                    requires_grad=False):
    """alpha - (1 - alpha) cos(t), with t from 0 to 2 pi."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device,
                          requires_grad=requires_grad)


def hamming(M, *, sym=True, dtype=None, layout=tercel.strided, device=None, requires_grad=False):  # noqa: N803
    """Hamming's window, which does not reach 0 at its ends."""
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(M, *, sym=True, dtype=None, layout=tercel.strided, device=None, requires_grad=False):  # noqa: N803
    """Von Hann's window, one arch of a raised cosine."""
    return general_hamming(M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device,
                           requires_grad=requires_grad)


def blackman(M, *, sym=True, dtype=None, layout=tercel.strided, device=None, requires_grad=False):  # noqa: N803
    """Blackman's window of three cosines."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout, device=device,
                          requires_grad=requires_grad)


def nuttall(M, *, sym=True, dtype=None, layout=tercel.strided, device=None, requires_grad=False):  # noqa: N803
    """Nuttall's window of four cosines with the lowest side lobes."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, dtype=dtype, layout=layout,
                          device=device, requires_grad=requires_grad)


def bartlett(M, *, sym=True, dtype=None, layout=tercel.strided, device=None, requires_grad=False):  # noqa: N803
    """A triangle from 0 to 1 and back."""
    return _window("bartlett", M, lambda n: 1 - (n * (2 / _intervals(M, sym)) - 1).abs(), dtype, layout, device,
                   requires_grad)


def cosine(M, *, sym=True, dtype=None, layout=tercel.strided, device=None, requires_grad=False):  # noqa: N803
    """Half a period of a sine."""
    return _window("cosine", M, lambda n: ((n + 0.5) * (math.pi / (M if sym else M + 1))).sin(), dtype, layout, device,
                   requires_grad)


def exponential(M, *, center=None, tau=1.0, sym=True, dtype=None, layout=tercel.strided, device=None,  # noqa: N803
                requires_grad=False):
    """exp(-|n - center| / tau); center defaults to the middle and can be set only for periodic windows."""
    _result_dtype("exponential", M, dtype, layout)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    middle = _intervals(M, sym) / 2 if center is None else center
    return _window("exponential", M, lambda n: (-(n - middle).abs() / tau).exp(), dtype, layout, device, requires_grad)


def gaussian(M, *, std=1.0, sym=True, dtype=None, layout=tercel.strided, device=None, requires_grad=False):  # noqa: N803
    """A Gaussian with the given standard deviation, in points."""
    _result_dtype("gaussian", M, dtype, layout)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    middle = _intervals(M, sym) / 2
    return _window("gaussian", M, lambda n: (((n - middle) / std).square() / -2).exp(), dtype, layout, device,
                   requires_grad)


def kaiser(M, *, beta=12.0, sym=True, dtype=None, layout=tercel.strided, device=None, requires_grad=False):  # noqa: N803
    """Kaiser's window; a larger beta gives a wider main lobe and lower side lobes."""
    _result_dtype("kaiser", M, dtype, layout)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")

    def values(n):
        place = n * (2 / _intervals(M, sym)) - 1
        # Rounding may push the ends above 1.
        root = (1 - place.square()).clamp_min(0).sqrt()
        return tercel.special.i0(root * beta) / tercel.special.i0(tercel.tensor(float(beta), dtype=tercel.float64))

    return _window("kaiser", M, values, dtype, layout, device, requires_grad)
