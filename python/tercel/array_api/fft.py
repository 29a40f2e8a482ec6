"""Discrete Fourier transforms."""

from tercel import fft as _fft

__all__ = ["fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft",
           "rfftfreq", "rfftn"]


def _one(name, doc):
    call = getattr(_fft, name)

    def function(x, /, *, n=None, axis=-1, norm="backward"):
        return call(x, n, axis, norm)
    return _named(function, name, doc)


def _several(name, doc):
    call = getattr(_fft, name)

    def function(x, /, *, s=None, axes=None, norm="backward"):
        return call(x, s, axes, norm)
    return _named(function, name, doc)


def _named(function, name, doc):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


fft = _one("fft", "The transform along an axis.")
ifft = _one("ifft", "The inverse of fft().")
rfft = _one("rfft", "The first half of the transform of a real signal.")
irfft = _one("irfft", "The inverse of rfft().")
hfft = _one("hfft", "The transform, which is real, of a Hermitian signal given by its first half.")
ihfft = _one("ihfft", "The inverse of hfft().")
fftn = _several("fftn", "The transform along several axes.")
ifftn = _several("ifftn", "The inverse of fftn().")
rfftn = _several("rfftn", "The transform of a real signal along several axes; the first half along the last axis.")
irfftn = _several("irfftn", "The inverse of rfftn().")


def fftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """The sample frequencies of fft()."""
    return _fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """The sample frequencies of rfft()."""
    return _fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x, /, *, axes=None):
    """Rolls axes so that frequency 0 is in the middle."""
    return _fft.fftshift(x, axes)


def ifftshift(x, /, *, axes=None):
    """The inverse of fftshift()."""
    return _fft.ifftshift(x, axes)
