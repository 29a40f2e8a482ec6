"""Threads of the compiler: not used."""


def is_available():
    """Whether operations use OpenMP: never, they have threads of their own."""
    return False
