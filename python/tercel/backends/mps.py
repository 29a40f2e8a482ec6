"""Apple's GPUs: not used."""


def is_available():
    """Never."""
    return False


def is_built():
    """Never."""
    return False
