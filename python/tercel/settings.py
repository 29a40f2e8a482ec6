"""Switches that programs for PyTorch set.

Nothing here depends on timing: the same program with the same number of threads gives the same bits, and products of
matrices are rounded to fewer only inside amp.autocast. What is asked for otherwise is remembered, and changes no result.
"""

import warnings

from tercel import _C
from tercel._tensor import tensor_types

__all__ = ["are_deterministic_algorithms_enabled", "autocast_decrement_nesting", "autocast_increment_nesting",
           "clear_autocast_cache", "compiled_with_cxx11_abi", "get_autocast_cpu_dtype", "get_autocast_dtype",
           "get_autocast_gpu_dtype", "get_default_device", "get_deterministic_debug_mode",
           "get_float32_matmul_precision", "get_num_interop_threads", "has_cuda", "has_cudnn", "has_lapack", "has_mkl",
           "has_mkldnn", "has_mps", "has_openmp", "has_spectral", "is_autocast_cache_enabled",
           "is_autocast_cpu_enabled", "is_autocast_enabled", "is_deterministic_algorithms_warn_only_enabled",
           "is_vulkan_available", "is_warn_always_enabled", "set_autocast_cache_enabled", "set_autocast_cpu_dtype",
           "set_autocast_cpu_enabled", "set_autocast_dtype", "set_autocast_enabled", "set_autocast_gpu_dtype",
           "set_default_device", "set_default_tensor_type", "set_deterministic_debug_mode",
           "set_float32_matmul_precision", "set_flush_denormal", "set_num_interop_threads", "set_warn_always",
           "use_deterministic_algorithms"]

# What PyTorch may be built with.
has_cuda = has_cudnn = has_mkl = has_mkldnn = has_mps = has_openmp = has_spectral = False
has_lapack = True

_DEBUG_MODES = {"default": 0, "warn": 1, "error": 2}
_PRECISIONS = ("highest", "high", "medium")


class _State:
    deterministic = warn_only = False
    warn_always = False
    precision = "highest"


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Asks for operations that give the same bits every time; all of them do."""
    for position, name, value in ((" (position 1)", "mode", mode), ("", "warn_only", warn_only)):
        if not isinstance(value, bool):
            raise TypeError(f"_set_deterministic_algorithms(): argument '{name}'{position} must be bool, not "
                            f"{type(value).__name__}")
    _State.deterministic, _State.warn_only = mode, warn_only


def are_deterministic_algorithms_enabled():
    """What use_deterministic_algorithms() set."""
    return _State.deterministic


def is_deterministic_algorithms_warn_only_enabled():
    """What use_deterministic_algorithms(warn_only=...) set."""
    return _State.warn_only


def set_deterministic_debug_mode(debug_mode):
    """0 or "default", 1 or "warn", 2 or "error"."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    mode = _DEBUG_MODES.get(debug_mode) if isinstance(debug_mode, str) else debug_mode
    if mode not in (0, 1, 2):
        raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`, or 0, 1, 2, but "
                           f"got {debug_mode}")
    _State.deterministic, _State.warn_only = mode > 0, mode == 1


def get_deterministic_debug_mode():
    """0, 1 or 2: what set_deterministic_debug_mode() set."""
    return 0 if not _State.deterministic else 1 if _State.warn_only else 2


def set_float32_matmul_precision(precision):
    """"highest", "high" or "medium": how exact products of float32 must be at least; they are of the highest."""
    if precision not in _PRECISIONS:
        raise RuntimeError(f"{precision} is not one of 'highest', 'high', or 'medium'; set_float32_matmul_precision")
    _State.precision = precision


def get_float32_matmul_precision():
    """What set_float32_matmul_precision() set; products are calculated in float32 always."""
    return _State.precision


def set_warn_always(b):
    """Whether a warning is given every time; Python's filters decide that here."""
    _State.warn_always = bool(b)


def is_warn_always_enabled():
    """What set_warn_always() set."""
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


def get_default_device():
    """Where new tensors are."""
    return _C.device("cpu")


def set_default_device(device):
    """Says where new tensors shall be: on the CPU."""
    if device is not None and _C.device(device).type != "cpu":
        raise NotImplementedError(f"set_default_device: expected 'cpu', where all tensors are, but got '{device}'")


def _check_type(name, parameter, position, value, kind):
    if not isinstance(value, kind):
        raise TypeError(f"{name}(): argument '{parameter}' (position {position}) must be {kind.__name__}, not "
                        f"{type(value).__name__}")


def is_autocast_enabled(device_type="cuda"):
    """Whether this thread is inside an enabled amp.autocast(device_type); "cuda", which never is, without an argument."""
    _check_type("is_autocast_enabled", "device_type", 1, device_type, str)
    return _C._is_autocast_enabled(device_type)


def set_autocast_enabled(device_type, enabled=None):
    """Enables or disables autocast for a device type, "cuda" if there is one argument; amp.autocast puts it back."""
    if enabled is None:
        device_type, enabled = "cuda", device_type
    _check_type("set_autocast_enabled", "device_type", 1, device_type, str)
    _check_type("set_autocast_enabled", "enabled", 2, enabled, bool)
    _C._set_autocast_enabled(device_type, enabled)


def get_autocast_dtype(device_type):
    """The 16-bit dtype of amp.autocast(device_type)."""
    _check_type("get_autocast_dtype", "device_type", 1, device_type, str)
    return _C._get_autocast_dtype(device_type)


def set_autocast_dtype(device_type, dtype):
    """Sets the 16-bit dtype of amp.autocast(device_type)."""
    _check_type("set_autocast_dtype", "device_type", 1, device_type, str)
    _check_type("set_autocast_dtype", "dtype", 2, dtype, _C.dtype)
    _C._set_autocast_dtype(device_type, dtype)


def is_autocast_cache_enabled():
    """Whether parameters are cast once inside the outermost amp.autocast."""
    return _C._is_autocast_cache_enabled()


def set_autocast_cache_enabled(enabled):
    """Sets whether parameters are cast once inside the outermost amp.autocast."""
    if not isinstance(enabled, bool):
        raise TypeError(f"enabled must be a bool (got {type(enabled).__name__})")
    _C._set_autocast_cache_enabled(enabled)


def clear_autocast_cache():
    """Forgets what parameters were cast to on this thread."""
    _C._clear_autocast_cache()


def autocast_increment_nesting():
    """Counts a context that this thread enters; the number it is in."""
    return _C._autocast_increment_nesting()


def autocast_decrement_nesting():
    """Counts a context that this thread leaves; the number it is still in. Casts of parameters end with the last."""
    return _C._autocast_decrement_nesting()


def _deprecated_autocast(name, advice):
    warnings.warn(f"tercel.{name} is deprecated. Please use tercel.{advice} instead.", DeprecationWarning, stacklevel=3)


def is_autocast_cpu_enabled():
    """is_autocast_enabled("cpu")."""
    _deprecated_autocast("is_autocast_cpu_enabled()", "is_autocast_enabled('cpu')")
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled):
    """set_autocast_enabled("cpu", enabled)."""
    _deprecated_autocast("set_autocast_cpu_enabled(enabled)", "set_autocast_enabled('cpu', enabled)")
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype():
    """get_autocast_dtype("cpu")."""
    _deprecated_autocast("get_autocast_cpu_dtype()", "get_autocast_dtype('cpu')")
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype):
    """set_autocast_dtype("cpu", dtype)."""
    _deprecated_autocast("set_autocast_cpu_dtype(dtype)", "set_autocast_dtype('cpu', dtype)")
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype():
    """get_autocast_dtype("cuda")."""
    _deprecated_autocast("get_autocast_gpu_dtype()", "get_autocast_dtype('cuda')")
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype):
    """set_autocast_dtype("cuda", dtype)."""
    _deprecated_autocast("set_autocast_gpu_dtype(dtype)", "set_autocast_dtype('cuda', dtype)")
    set_autocast_dtype("cuda", dtype)


def set_flush_denormal(mode):
    """False: the mode cannot be changed. Operations keep denormal numbers; steps of optimizers flush them to zero."""
    return False


def get_num_interop_threads():
    """How many operations run at a time within one thread's calls."""
    return 1


def set_num_interop_threads(threads):
    """Nothing: operations of one thread run one after another."""
    if threads <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")


def compiled_with_cxx11_abi():
    """Always: the library is new."""
    return True


def _log_api_usage_once(event):
    """Where PyTorch counts which of its parts are used: nothing is counted here."""


_C._log_api_usage_once = _log_api_usage_once


def is_vulkan_available():
    """Never."""
    return False
