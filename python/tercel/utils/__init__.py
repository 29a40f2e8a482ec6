"""Utilities."""

from typing import TYPE_CHECKING

from tercel.utils import dlpack, hooks  # noqa: F401

if TYPE_CHECKING:
    from tercel.utils import checkpoint, data, mkldnn  # noqa: F401


def __getattr__(name):
    if name in ("_pytree", "checkpoint", "data", "mkldnn"):  # imported on first use: few programs need them
        from importlib import import_module
        return import_module(f"tercel.utils.{name}")
    raise AttributeError(f"module 'tercel.utils' has no attribute '{name}'")
