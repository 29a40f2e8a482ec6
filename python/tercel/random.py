"""The generator that random operations use unless they are given one."""

from contextlib import contextmanager

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


@contextmanager
def fork_rng(devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices", device_type="cpu"):
    """A context after which the sequence goes on as if nothing had been drawn inside."""
    before = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if enabled:
            set_rng_state(before)
