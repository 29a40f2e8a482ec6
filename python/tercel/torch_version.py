"""The version of PyTorch whose names, signatures and results Tercel follows."""

import operator
import re

__all__ = ["TorchVersion"]


def _key(version):
    """The comparison key: the leading numbers, whether a pre-release suffix follows, and the rest."""
    if isinstance(version, (tuple, list)):
        version = ".".join(map(str, version))
    found = re.match(r"v?([0-9]+(?:\.[0-9]+)*)[.-]?((?:a|b|rc|dev|post)?)([0-9]*)", version)
    if not found:
        raise ValueError(f"expected a version such as 2.15.0, but got {version!r}")
    numbers, kind, serial = found.groups()
    parts = [int(part) for part in numbers.split(".")]
    while parts and parts[-1] == 0:
        parts.pop()
    order = {"dev": 0, "a": 1, "b": 2, "rc": 3, "": 4, "post": 5}
    return parts, order[kind], int(serial or 0)


class TorchVersion(str):
    """A version string that compares by its numbers, with strings ("1.10" < "1.9" is false) and with tuples (2, 0)."""

    def _compared(self, other):
        if not isinstance(other, (str, tuple, list)):
            return None
        try:
            return _key(self), _key(other)
        except ValueError:
            return str(self), str(other)

    __hash__ = str.__hash__


def _comparison(name):
    def compare(self, other):
        pair = self._compared(other)
        return NotImplemented if pair is None else getattr(operator, name)(*pair)

    compare.__name__ = f"__{name}__"
    return compare


for _name in ("lt", "le", "eq", "ne", "gt", "ge"):
    setattr(TorchVersion, f"__{_name}__", _comparison(_name))

__version__ = TorchVersion("2.15.0")
