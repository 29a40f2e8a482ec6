"""PyTorch's global settings.

Results do not depend on timing: the same program with the same number of threads gives the same bits, and matrix
products use lower precision only inside amp.autocast. Other settings are stored but do not change results.
"""

import warnings

from tercel import _C
from tercel._tensor import tensor_types

__all__ = ["are_deterministic_algorithms_enabled", "autocast_decrement_nesting", "autocast_increment_nesting",
           "clear_autocast_cache", "compiled_with_cxx11_abi", "get_autocast_cpu_dtype", "get_autocast_dtype",
           "get_autocast_gpu_dtype", "get_default_device", "get_deterministic_debug_mode", "get_device_module",
           "get_float32_matmul_precision", "get_num_interop_threads", "has_cuda", "has_cudnn", "has_lapack", "has_mkl",
           "has_mkldnn", "has_mps", "has_openmp", "has_spectral", "is_autocast_cache_enabled",
           "is_autocast_cpu_enabled", "is_autocast_enabled", "is_deterministic_algorithms_warn_only_enabled",
           "is_vulkan_available", "is_warn_always_enabled", "set_autocast_cache_enabled", "set_autocast_cpu_dtype",
           "set_autocast_cpu_enabled", "set_autocast_dtype", "set_autocast_enabled", "set_autocast_gpu_dtype",
           "set_default_device", "set_default_tensor_type", "set_deterministic_debug_mode",
           "set_float32_matmul_precision", "set_flush_denormal", "set_num_interop_threads", "set_warn_always",
           "use_deterministic_algorithms"]

# Libraries that PyTorch may be built with.
has_cuda = has_cudnn = has_mkl = has_mkldnn = has_mps = has_openmp = has_spectral = False
has_lapack = True

_DEBUG_MODES = {"default": 0, "warn": 1, "error": 2}
_PRECISIONS = ("highest", "high", "medium")


class _State:
    deterministic = warn_only = False
    warn_always = False
    precision = "highest"


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Requests deterministic operations; all operations are deterministic."""
    for position, name, value in ((" (position 1)", "mode", mode), ("", "warn_only", warn_only)):
        if not isinstance(value, bool):
            raise TypeError(f"_set_deterministic_algorithms(): argument '{name}'{position} must be bool, not "
                            f"{type(value).__name__}")
    _State.deterministic, _State.warn_only = mode, warn_only


def are_deterministic_algorithms_enabled():
    """The value set by use_deterministic_algorithms()."""
    return _State.deterministic


def is_deterministic_algorithms_warn_only_enabled():
    """The value set by use_deterministic_algorithms(warn_only=...)."""
    return _State.warn_only


def set_deterministic_debug_mode(debug_mode):
    """Sets the mode: 0 or "default", 1 or "warn", 2 or "error"."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    mode = _DEBUG_MODES.get(debug_mode) if isinstance(debug_mode, str) else debug_mode
    if mode not in (0, 1, 2):
        raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`, or 0, 1, 2, but "
                           f"got {debug_mode}")
    _State.deterministic, _State.warn_only = mode > 0, mode == 1


def get_deterministic_debug_mode():
    """The mode set by set_deterministic_debug_mode(): 0, 1 or 2."""
    return 0 if not _State.deterministic else 1 if _State.warn_only else 2


def set_float32_matmul_precision(precision):
    """Sets the minimum precision of float32 products, "highest", "high" or "medium"; they always use the highest."""
    if precision not in _PRECISIONS:
        raise RuntimeError(f"{precision} is not one of 'highest', 'high', or 'medium'; set_float32_matmul_precision")
    _State.precision = precision


def get_float32_matmul_precision():
    """The value set by set_float32_matmul_precision(); products are always computed in float32."""
    return _State.precision


def set_warn_always(b):
    """Sets whether warnings repeat; stored without effect, since Python's warning filters decide."""
    _State.warn_always = bool(b)


def is_warn_always_enabled():
    """The value set by set_warn_always()."""
    return _State.warn_always


def set_default_tensor_type(t):
    """Sets the default dtype to that of a floating-point tensor type, given as a type or by name."""
    name = t.rsplit(".", 1)[-1] if isinstance(t, str) else getattr(t, "__name__", "")
    if name not in tensor_types:
        raise TypeError(f"invalid type: {t!r}" if isinstance(t, str) else f"{t!r} is not a tensor type")
    dtype = tensor_types[name].dtype
    if not dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    _C.set_default_dtype(dtype)


def get_default_device():
    """The device of new tensors: the CPU."""
    return _C.device("cpu")


def set_default_device(device):
    """Sets the device of new tensors, which must be the CPU."""
    if device is not None and _C.device(device).type != "cpu":
        raise NotImplementedError(f"set_default_device: expected 'cpu', where all tensors are, but got '{device}'")


def _check_type(name, parameter, position, value, kind):
    if not isinstance(value, kind):
        raise TypeError(f"{name}(): argument '{parameter}' (position {position}) must be {kind.__name__}, not "
                        f"{type(value).__name__}")


def is_autocast_enabled(device_type="cuda"):
    """Whether this thread is inside an enabled amp.autocast(device_type); default "cuda", for which it is never enabled."""
    _check_type("is_autocast_enabled", "device_type", 1, device_type, str)
    return _C._is_autocast_enabled(device_type)


def set_autocast_enabled(device_type, enabled=None):
    """Enables or disables autocast for a device type, "cuda" if there is one argument; amp.autocast restores it."""
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
    """Clears this thread's cache of cast parameters."""
    _C._clear_autocast_cache()


def autocast_increment_nesting():
    """Increments this thread's nesting depth of contexts and returns it."""
    return _C._autocast_increment_nesting()


def autocast_decrement_nesting():
    """Decrements this thread's nesting depth and returns it. At depth 0 cached casts of parameters are dropped."""
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
    """Returns False: the mode cannot be changed. Operations keep denormal numbers; optimizer steps flush them to zero."""
    return False


def get_num_interop_threads():
    """The number of operations that run concurrently within one thread: always 1."""
    return 1


def set_num_interop_threads(threads):
    """Does nothing: operations of one thread run sequentially."""
    if threads <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")


def compiled_with_cxx11_abi():
    """Always True: the C++ library uses the C++11 ABI."""
    return True


def _log_api_usage_once(event):
    """PyTorch's usage logging: does nothing."""


_C._log_api_usage_once = _log_api_usage_once


def get_device_module(device=None):
    """The module of a device's type, tercel.cpu or tercel.cuda; of a GPU, if there is one, without a device.

    RuntimeError for what is neither a device nor the name of one.
    """
    from importlib import import_module
    if device is None:
        device = "cuda" if import_module("tercel.cuda").is_available() else "cpu"
    if not isinstance(device, (str, _C.device)):
        raise RuntimeError(f"Invalid value of device '{device}', expect tercel.device, str, or None")
    return import_module(f"tercel.{_C.device(device).type}")


def is_vulkan_available():
    """Never."""
    return False
