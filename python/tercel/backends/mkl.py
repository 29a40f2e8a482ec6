"""Intel's library of matrices: not used."""


def is_available():
    """Never."""
    return False
