"""PyTorch's distributed API for programs that can run in several processes: Tercel runs in one."""

__all__ = ["is_available", "is_initialized"]


def is_available():
    """Never."""
    return False


def is_initialized():
    """Never."""
    return False
