"""Capabilities of the processor."""

from tercel import _C


def get_cpu_capability():
    """The instruction set that operations use: "DEFAULT", "AVX2" or "AVX512"."""
    return _C._cpu_capability()
