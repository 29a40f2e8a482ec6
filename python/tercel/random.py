"""The default random number generator."""

from contextlib import contextmanager

from tercel import _C

_generator = _C.default_generator


def manual_seed(seed):
    """Seeds the default generator; returns it."""
    return _generator.manual_seed(int(seed))


def seed():
    """Seeds the default generator from the operating system; returns the seed."""
    return _generator.seed()


def initial_seed():
    """The seed of the default generator."""
    return _generator.initial_seed()


def get_rng_state():
    """The generator's state for set_rng_state(), as a tensor of bytes."""
    return _generator.get_state()


def set_rng_state(new_state):
    """Restores a state returned by get_rng_state()."""
    _generator.set_state(new_state)


@contextmanager
def fork_rng(devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices", device_type="cpu"):
    """A context that restores the generator's state on exit."""
    before = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if enabled:
            set_rng_state(before)
