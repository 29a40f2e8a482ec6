"""Capabilities of this implementation."""

from tercel import _C
from tercel.array_api import _dtypes

_MOST_DIMENSIONS = 64


def _cpu(name, device):
    if device is not None and _C.device(device).type != "cpu":
        raise ValueError(f"{name}: expected the device 'cpu', but got {device}")


class _Info:
    """Capabilities, devices and dtypes."""

    def capabilities(self):
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": _MOST_DIMENSIONS}

    def default_device(self):
        return _C.device("cpu")

    def devices(self):
        return (_C.device("cpu"),)

    def default_dtypes(self, *, device=None):
        _cpu("default_dtypes", device)
        return {"real floating": _dtypes.default_of(2), "complex floating": _dtypes.default_of(3),
                "integral": _dtypes.default_of(1), "indexing": _C.int64}

    def dtypes(self, *, device=None, kind=None):
        _cpu("dtypes", device)
        every = _dtypes.KINDS["bool"] + _dtypes.KINDS["numeric"]
        return {str(dtype).rpartition(".")[2]: dtype for dtype in every
                if kind is None or _dtypes.isdtype(dtype, kind)}


def __array_namespace_info__():
    """Capabilities, devices and dtypes of this namespace."""
    return _Info()
