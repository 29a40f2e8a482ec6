"""Threads of the compiler: not used."""


def is_available():
    return False
