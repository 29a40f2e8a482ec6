"""The CPU as a device module like tercel.cuda."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tercel.cpu import amp  # noqa: F401

__all__ = ["current_device", "device_count", "is_available", "is_initialized", "synchronize"]


def is_available():
    """Always."""
    return True


def is_initialized():
    """Always."""
    return True


def device_count():
    """1."""
    return 1


def current_device():
    """The name of the only device."""
    return "cpu"


def synchronize(device=None):
    """Does nothing: operations are synchronous."""


def __getattr__(name):
    if name == "amp":
        from importlib import import_module
        return import_module("tercel.cpu.amp")
    raise AttributeError(f"module 'tercel.cpu' has no attribute '{name}'")
