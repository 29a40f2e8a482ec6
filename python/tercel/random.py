"""The generator that random operations use unless they are given one."""

from tercel import _C

_generator = _C.default_generator


def manual_seed(seed):
    """Starts the sequence of a seed; gives the generator back."""
    return _generator.manual_seed(int(seed))


def seed():
    """Takes a seed from the operating system, and gives it back."""
    return _generator.seed()


def initial_seed():
    """The seed that the sequence began with."""
    return _generator.initial_seed()


def get_rng_state():
    """What set_rng_state() needs to go on from here, as a tensor of bytes."""
    return _generator.get_state()


def set_rng_state(new_state):
    """Goes on from where get_rng_state() was called."""
    _generator.set_state(new_state)
