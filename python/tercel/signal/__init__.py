"""Signal processing: window functions."""

from tercel.signal import windows

__all__ = ["windows"]
