"""Apple's GPUs: not used."""


def is_available():
    return False


def is_built():
    return False
