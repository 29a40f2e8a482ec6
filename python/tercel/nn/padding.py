"""Padding layers."""

from tercel.nn import functional as F
from tercel.nn.module import Module

__all__ = [f"{kind}Pad{dims}d" for kind in ("Constant", "Zero", "Circular") for dims in (1, 2, 3)]
__all__ += [f"{kind}Pad{dims}d" for kind in ("Reflection", "Replication") for dims in (1, 2, 3)]


class _Pad(Module):
    """pad() of the last dimensions: one number for all, or two per dimension, starting with the last."""

    _dims, _mode = 0, "constant"

    def __init__(self, padding):
        super().__init__()
        self.padding = tuple(padding) if isinstance(padding, (tuple, list)) else (padding,) * 2 * self._dims
        if len(self.padding) != 2 * self._dims:
            raise ValueError(f"{type(self).__name__}: expected {2 * self._dims} numbers but got padding={self.padding}")

    def _check(self, x):
        pass

    def forward(self, input):  # noqa: A002
        self._check(input)
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self):
        return f"{self.padding}"


class _ConstantPad(_Pad):
    __doc__ = _Pad.__doc__

    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input):  # noqa: A002
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    __doc__ = _Pad.__doc__

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class _CircularPad(_Pad):
    __doc__ = _Pad.__doc__
    _mode = "circular"

    def _check(self, x):
        if x.dim() not in (self._dims + 1, self._dims + 2):
            raise ValueError(f"expected {self._dims + 1}D or {self._dims + 2}D input (got {x.dim()}D input)")


def _family(name, base, **fields):
    for dims in (1, 2, 3):
        name_of_dims = f"{name}Pad{dims}d"
        globals()[name_of_dims] = type(name_of_dims, (base,), {"__doc__": _Pad.__doc__, "__module__": __name__,
                                                               "_dims": dims, **fields})


_family("Constant", _ConstantPad)
_family("Zero", _ZeroPad)
_family("Circular", _CircularPad)
_family("Reflection", _Pad, _mode="reflect")
_family("Replication", _Pad, _mode="replicate")
