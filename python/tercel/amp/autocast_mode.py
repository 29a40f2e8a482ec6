"""autocast: the context in which operations choose 16-bit or 32-bit dtypes."""

import functools
import threading
import warnings
from collections import abc

from tercel import _C
from tercel._C import Tensor

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

_LOWER = (_C.bfloat16, _C.float16)


def is_autocast_available(device_type):
    """Whether operations on such a device follow autocast: those on the CPU."""
    return _C.device(device_type).type == "cpu"


class autocast:  # noqa: N801
    """A context and decorator for mixed precision: inside, operations cast their floating-point operands.

    On the CPU products of matrices, convolutions and recurrent layers are calculated in `dtype`, bfloat16 (the default)
    or float16, losses and other sensitive operations in float32, and all others in the dtypes of their operands. cache_enabled:
    a parameter is cast once until the outermost context exits. For unavailable devices it disables itself with
    a warning, as in PyTorch.
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = _C.device(device_type).type
        self.fast_dtype = _C._get_autocast_dtype(self.device) if dtype is None else dtype
        self._cache_enabled = _C._is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        if enabled and self.device != "cpu":
            warnings.warn(f"User provided device_type of '{device_type}', but {self.device.upper()} is not available. "
                          "Disabling autocast.", stacklevel=2)
            enabled = False
        if enabled and self.fast_dtype not in _LOWER:
            warnings.warn("In CPU autocast, but the target dtype is not supported. Disabling autocast.\nCPU Autocast only "
                          "supports dtypes of tercel.bfloat16, tercel.float16 currently.", stacklevel=2)
            enabled = False
        self._enabled = enabled
        self._before = {}  # thread: the states that __exit__() restores, a list because a decorated function may call itself

    def __enter__(self):
        before = _C._enter_autocast(self.device, self._enabled, self.fast_dtype, self._cache_enabled)
        self._before.setdefault(threading.get_ident(), []).append(before)
        return self

    def __exit__(self, *_):
        states = self._before.get(threading.get_ident())
        if not states:
            raise RuntimeError("autocast: left on a thread that has not entered it")
        _C._exit_autocast(*states.pop())
        if not states:
            self._before.pop(threading.get_ident(), None)
        return False

    def __call__(self, func):
        @functools.wraps(func)
        def decorated(*args, **kwargs):
            with self:
                return func(*args, **kwargs)

        return decorated


def _cast(value, device_type, dtype):
    """The value, floating-point tensors in it as dtype, but for float64."""
    if isinstance(value, Tensor):
        eligible = value.is_floating_point() and value.device.type == device_type and value.dtype is not _C.float64
        return value.to(dtype) if eligible else value
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, abc.Mapping):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_cast(v, device_type, dtype) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """
    Decorates forward() of an autograd Function. Without cast_inputs it runs under the state of autocast that it meets;
    with it, where autocast is enabled, floating-point tensors among the arguments are cast to that dtype and autocast is
    disabled.
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(ctx, *args, **kwargs):
        enabled = _C._is_autocast_enabled(device_type)
        ctx._autocast = enabled and cast_inputs is None, _C._get_autocast_dtype(device_type)
        if cast_inputs is None or not enabled:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(ctx, *_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return decorated


def custom_bwd(bwd=None, *, device_type):
    """Decorates backward() of an autograd Function, which then runs under the state of autocast that forward() had."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(ctx, *args, **kwargs):
        enabled, dtype = ctx._autocast
        with autocast(device_type, enabled=enabled, dtype=dtype):
            return bwd(ctx, *args, **kwargs)

    return decorated
