"""NVIDIA's library of layers: not used."""

from contextlib import contextmanager

enabled = deterministic = benchmark = allow_tf32 = False


def is_available():
    """Never."""
    return False


def version():
    """None: cuDNN is not available."""
    return None


@contextmanager
def flags(enabled=False, benchmark=False, deterministic=False, allow_tf32=True):
    """A context that sets the flags; they have no effect."""
    yield
