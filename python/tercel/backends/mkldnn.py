"""Intel's library of layers: not used."""

from contextlib import contextmanager

enabled = False


def is_available():
    """Never."""
    return False


@contextmanager
def flags(enabled=False, **switches):
    """A context that sets the flags; they have no effect."""
    yield
