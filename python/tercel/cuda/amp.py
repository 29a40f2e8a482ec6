"""Mixed precision on a GPU, under older names: disabled without a GPU, as in PyTorch."""

import warnings

from tercel import amp

__all__ = ["amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd", "GradScaler"]


def _deprecated(name):
    warnings.warn(f"`tercel.cuda.amp.{name}(args...)` is deprecated. Please use `tercel.amp.{name}('cuda', args...)` instead.",
                  FutureWarning, stacklevel=3)


def amp_definitely_not_available():
    """Always True: there is no GPU."""
    return True


class autocast(amp.autocast):  # noqa: N801
    """amp.autocast("cuda", ...), which disables itself."""

    def __init__(self, enabled=True, dtype=None, cache_enabled=True):
        _deprecated("autocast")
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """amp.GradScaler("cuda", ...), which disables itself."""

    def __init__(self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        _deprecated("GradScaler")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd=None, *, cast_inputs=None):
    """amp.custom_fwd(device_type="cuda")."""
    _deprecated("custom_fwd")
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd):
    """amp.custom_bwd(device_type="cuda")."""
    _deprecated("custom_bwd")
    return amp.custom_bwd(bwd, device_type="cuda")
