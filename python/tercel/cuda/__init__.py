"""PyTorch's CUDA API for programs that check for a GPU: this package supports only the CPU."""

__all__ = ["device_count", "empty_cache", "init", "is_available", "is_bf16_supported", "is_initialized", "manual_seed",
           "manual_seed_all", "seed", "seed_all"]

_NEED_A_GPU = ("Event", "Stream", "current_device", "current_stream", "default_stream", "get_arch_list",
               "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state", "init",
               "max_memory_allocated", "mem_get_info", "memory_allocated", "memory_reserved", "set_device",
               "set_rng_state", "stream", "synchronize")


def is_available():
    """Whether a GPU is available: always False."""
    return False


def device_count():
    """The number of GPUs: always 0."""
    return 0


def is_initialized():
    """Never."""
    return False


def is_bf16_supported(*args, **kwargs):
    """Never."""
    return False


def _nothing_to_do(*args, **kwargs):
    """Does nothing, as PyTorch does without a GPU."""


empty_cache = manual_seed = manual_seed_all = seed = seed_all = _nothing_to_do


def _refusing(name):
    def refuse(*args, **kwargs):
        """Raises AssertionError: there is no GPU."""
        raise AssertionError(f"tercel.cuda.{name}: Tercel not compiled with CUDA enabled")

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


globals().update({_name: _refusing(_name) for _name in _NEED_A_GPU})


def __getattr__(name):
    if name == "amp":
        from importlib import import_module
        return import_module("tercel.cuda.amp")
    raise AttributeError(f"module 'tercel.cuda' has no attribute '{name}'")
