"""OpenMP: not used."""


def is_available():
    """Whether operations use OpenMP: always False, since Tercel has its own thread pool."""
    return False
