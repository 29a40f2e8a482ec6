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
rfft = _one("rfft", "The first half of the transform of real numbers.")
irfft = _one("irfft", "The inverse of rfft().")
hfft = _one("hfft", "The transform, real, of what is given by its first half.")
ihfft = _one("ihfft", "The inverse of hfft().")
fftn = _several("fftn", "The transform along several axes.")
ifftn = _several("ifftn", "The inverse of fftn().")
rfftn = _several("rfftn", "The first half, along the last of several axes, of the transform of real numbers.")
irfftn = _several("irfftn", "The inverse of rfftn().")


def fftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """The frequencies of fft()'s points."""
    return _fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """The frequencies of rfft()'s points."""
    return _fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x, /, *, axes=None):
    """Points turned so that the frequency 0 comes to the middle."""
    return _fft.fftshift(x, axes)


def ifftshift(x, /, *, axes=None):
    """The inverse of fftshift()."""
    return _fft.ifftshift(x, axes)
