"""Helpers for authors of layers: a number or a tuple of numbers, and prefixes in state dicts."""

from collections.abc import Iterable

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n, name="parse"):
    def parse(x):
        return tuple(x) if isinstance(x, Iterable) else (x,) * n
    parse.__name__ = name
    return parse


_single, _pair = _ntuple(1, "_single"), _ntuple(2, "_pair")
_triple, _quadruple = _ntuple(3, "_triple"), _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t, n):
    """Each element n times, from the last to the first."""
    return tuple(x for x in reversed(t) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict, prefix):
    """Removes a prefix from the names in a state dict and its metadata, in place."""
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix):]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    for key in list(metadata or ()):
        # The metadata's name of the module itself is the prefix without its dot.
        if key and (key == prefix.replace(".", "") or key.startswith(prefix)):
            metadata[key[len(prefix):]] = metadata.pop(key)
