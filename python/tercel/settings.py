"""Switches that programs for PyTorch set.

Nothing here depends on timing: the same program with the same number of threads gives the same bits, and products of
matrices are never rounded to fewer. What is asked for is remembered, and changes no result.
"""

from tercel import _C
from tercel._tensor import tensor_types

__all__ = ["are_deterministic_algorithms_enabled", "get_deterministic_debug_mode", "get_float32_matmul_precision",
           "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled", "set_default_tensor_type",
           "set_deterministic_debug_mode", "set_float32_matmul_precision", "set_warn_always",
           "use_deterministic_algorithms"]

_DEBUG_MODES = {"default": 0, "warn": 1, "error": 2}
_PRECISIONS = ("highest", "high", "medium")


class _State:
    deterministic_debug_mode = 0
    warn_always = False
    precision = "highest"


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Asks for operations that give the same bits every time; all of them do."""
    _State.deterministic_debug_mode = 0 if not mode else 1 if warn_only else 2


def are_deterministic_algorithms_enabled():
    return _State.deterministic_debug_mode > 0


def is_deterministic_algorithms_warn_only_enabled():
    return _State.deterministic_debug_mode == 1


def set_deterministic_debug_mode(debug_mode):
    """0 or "default", 1 or "warn", 2 or "error"."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    mode = _DEBUG_MODES.get(debug_mode) if isinstance(debug_mode, str) else debug_mode
    if mode not in (0, 1, 2):
        raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`, or 0, 1, 2, but "
                           f"got {debug_mode}")
    _State.deterministic_debug_mode = mode


def get_deterministic_debug_mode():
    return _State.deterministic_debug_mode


def set_float32_matmul_precision(precision):
    """"highest", "high" or "medium": how exact products of float32 must be at least; they are of the highest."""
    if precision not in _PRECISIONS:
        raise RuntimeError(f"{precision} is not one of 'highest', 'high', or 'medium'; set_float32_matmul_precision")
    _State.precision = precision


def get_float32_matmul_precision():
    return _State.precision


def set_warn_always(b):
    """Whether a warning is given every time; Python's filters decide that here."""
    _State.warn_always = bool(b)


def is_warn_always_enabled():
    return _State.warn_always


def set_default_tensor_type(t):
    """Makes the dtype of a floating-point tensor type, or of its name, the default dtype."""
    name = t.rsplit(".", 1)[-1] if isinstance(t, str) else getattr(t, "__name__", "")
    if name not in tensor_types:
        raise TypeError(f"invalid type: {t!r}" if isinstance(t, str) else f"{t!r} is not a tensor type")
    dtype = tensor_types[name].dtype
    if not dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    _C.set_default_dtype(dtype)
