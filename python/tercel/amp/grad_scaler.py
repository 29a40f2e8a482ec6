"""Loss scaling, so that small gradients do not underflow in 16 bits."""

import warnings
from collections import abc

from tercel import _C
from tercel._C import Tensor
from tercel.autograd.grad_mode import no_grad

__all__ = ["GradScaler"]

# State of an optimizer's gradients since the last update().
_READY, _UNSCALED, _STEPPED = range(3)


class GradScaler:
    """Scales losses, and divides gradients by the scale before a step; skips steps with infinite or NaN gradients.

    The scale grows after growth_interval consecutive steps, and shrinks after a skipped one. For "cuda", the default, the
    scaler disables itself with a warning, since that device does not exist: all methods then pass their arguments through.
    """

    def __init__(self, device="cuda", init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000,
                 enabled=True):
        self._device = device
        self._enabled = enabled
        if enabled and _C.device(device).type != "cpu":
            warnings.warn(f"tercel.{device}.amp.GradScaler is enabled, but {device.upper()} is not available.  Disabling.",
                          stacklevel=2)
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale, self._scale = float(init_scale), None
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval, self._growth_tracker = growth_interval, 0
        self._stages = {}  # by the optimizer's id
        self._found_inf = {}  # whether a gradient was infinite or NaN

    def _check_started(self, what):
        if self._scale is None:
            raise AssertionError(f"Attempted {what} but _scale is None.  This may indicate your script did not use "
                                 "scaler.scale(loss or outputs) earlier in the iteration.")

    def scale(self, outputs):
        """The tensor, or the tensors in a list or tuple, times the scale."""
        if not self._enabled:
            return outputs
        if self._scale is None:
            self._scale = self._init_scale
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if isinstance(outputs, abc.Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _unscale(self, optimizer):
        found = None  # until there is a gradient
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                gradient = parameter.grad
                if gradient is None:
                    continue
                if gradient.dtype is _C.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                with no_grad():
                    gradient.mul_(1.0 / self._scale)
                    values = gradient._values() if gradient.is_sparse else gradient
                    found = found or not bool(_C.isfinite(values).all())
        if found is not None:
            self._found_inf[id(optimizer)] = found

    def unscale_(self, optimizer):
        """Divides the gradients of the optimizer's parameters by the scale; at most once between two updates."""
        if not self._enabled:
            return
        self._check_started("unscale_")
        stage = self._stages.get(id(optimizer), _READY)
        if stage == _UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if stage == _STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        self._unscale(optimizer)
        self._stages[id(optimizer)] = _UNSCALED

    def step(self, optimizer, *args, **kwargs):
        """Unscales the gradients, then calls optimizer.step(*args, **kwargs) unless one is infinite or NaN."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_started("step")
        stage = self._stages.get(id(optimizer), _READY)
        if stage == _STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if stage == _READY:
            self.unscale_(optimizer)
        if id(optimizer) not in self._found_inf:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = None if self._found_inf[id(optimizer)] else optimizer.step(*args, **kwargs)
        self._stages[id(optimizer)] = _STEPPED
        return result

    def update(self, new_scale=None):
        """Adjusts the scale by the results of step(), or sets it to a number or a tensor of one element."""
        if not self._enabled:
            return
        self._check_started("update")
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._found_inf:
            raise AssertionError("No inf checks were recorded prior to update.")
        elif any(self._found_inf.values()):
            self._scale *= self._backoff_factor
            self._growth_tracker = 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                self._scale *= self._growth_factor
                self._growth_tracker = 0
        self._stages.clear()
        self._found_inf.clear()

    def is_enabled(self):
        """Whether scaling is enabled."""
        return self._enabled

    def get_scale(self):
        """The scale; 1 when disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale

    def get_growth_factor(self):
        """Growth factor of the scale."""
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        """Sets the growth factor of the scale."""
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        """Backoff factor of the scale."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        """Sets the backoff factor of the scale."""
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        """The number of consecutive steps after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        """Sets the number of consecutive steps after which the scale grows."""
        self._growth_interval = new_interval

    def state_dict(self):
        """The scale, its factors and growth interval; empty when disabled."""
        if not self._enabled:
            return {}
        return {"scale": self.get_scale(), "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
                "growth_interval": self._growth_interval, "_growth_tracker": self._growth_tracker}

    def load_state_dict(self, state_dict):
        """Loads the state of a state_dict()."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from a disabled instance of "
                               "GradScaler.")
        self._init_scale = self._scale = state_dict["scale"]
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval, self._growth_tracker = state_dict["growth_interval"], state_dict["_growth_tracker"]
