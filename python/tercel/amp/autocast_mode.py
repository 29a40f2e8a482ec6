"""The context in which PyTorch's operations choose 16-bit numbers by themselves."""

import functools
import warnings

from tercel import _C

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]


def is_autocast_available(device_type):
    """Whether autocast(device_type) can be entered: for "cpu" it cannot unless disabled, nor for what is not here."""
    _C.device(device_type)
    return False


class autocast:  # noqa: N801
    """A context and decorator for mixed precision, which can only be disabled.

    For devices that are not there it disables itself with a warning, as in PyTorch. On the CPU, enabled=True is a
    NotImplementedError when it is entered: operations would not follow.
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = _C.device(device_type).type
        self.fast_dtype = dtype or (_C.bfloat16 if self.device == "cpu" else _C.float16)
        if enabled and self.device != "cpu":
            warnings.warn(f"User provided device_type of '{device_type}', but {self.device.upper()} is not available. "
                          "Disabling autocast.", stacklevel=2)
            enabled = False
        self._enabled = enabled

    def __enter__(self):
        if self._enabled:
            raise NotImplementedError("autocast: expected enabled=False on the CPU, where operations do not choose a dtype "
                                      "by themselves; convert the module with .bfloat16() or .half()")
        return self

    def __exit__(self, *_):
        return False

    def __call__(self, func):
        @functools.wraps(func)
        def decorated(*args, **kwargs):
            with self:
                return func(*args, **kwargs)

        return decorated


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """Decorates forward() of an autograd Function; casts nothing, since autocast is never enabled."""
    return fwd if fwd is not None else lambda function: function


def custom_bwd(bwd=None, *, device_type):
    """Decorates backward() of an autograd Function; casts nothing, since autocast is never enabled."""
    return bwd if bwd is not None else lambda function: function
