"""What signals are multiplied by before they are transformed."""

from tercel.signal import windows

__all__ = ["windows"]
