"""Mixed precision on the CPU, under older names."""

import warnings

from tercel import _C, amp

__all__ = ["autocast", "GradScaler"]


def _deprecated(name):
    warnings.warn(f"`tercel.cpu.amp.{name}(args...)` is deprecated. Please use `tercel.amp.{name}('cpu', args...)` instead.",
                  FutureWarning, stacklevel=3)


class autocast(amp.autocast):  # noqa: N801
    """amp.autocast("cpu", ...)."""

    def __init__(self, enabled=True, dtype=_C.bfloat16, cache_enabled=True):
        _deprecated("autocast")
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """amp.GradScaler("cpu", ...)."""

    def __init__(self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        _deprecated("GradScaler")
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
