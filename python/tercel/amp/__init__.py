"""Mixed precision: the context autocast, and scaling of losses."""

from tercel.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from tercel.amp.grad_scaler import GradScaler

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available", "GradScaler"]
