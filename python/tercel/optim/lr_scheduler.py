"""Learning rate schedules by epoch or by a metric.

A schedule sets the groups' rates when it is created and at every step(). Each rate is computed from the previous one, so
that several schedules can be combined; the closed form is used to jump to an epoch.
"""

import math
import warnings
from bisect import bisect_right
from collections import Counter

from tercel.optim.optimizer import Optimizer

__all__ = ["LRScheduler", "LambdaLR", "MultiplicativeLR", "StepLR", "MultiStepLR", "ConstantLR", "LinearLR",
           "ExponentialLR", "PolynomialLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "OneCycleLR",
           "SequentialLR", "ChainedScheduler", "ReduceLROnPlateau", "CyclicLR"]

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed form is "
    "used instead of the new chainable form, where available.")


class LRScheduler:
    """Base class of schedules: get_lr() returns the groups' rates for last_epoch."""

    def __init__(self, optimizer, last_epoch=-1):
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(f"param 'initial_lr' is not specified in param_groups[{i}] when resuming an optimizer")
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        # This counter shows whether the optimizer's step() is called first, unless another function replaced step().
        optimizer._step_count = 0
        optimizer._known_step = optimizer.__dict__.get("step")
        self._step_count = 0
        self.step()

    def state_dict(self):
        """The state without the optimizer."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict):
        """Restores a state_dict()."""
        self.__dict__.update(state_dict)

    def get_last_lr(self):
        """The groups' rates set by the last step()."""
        return self._last_lr

    def get_lr(self):
        """The learning rates of the next step, one for each group."""
        raise NotImplementedError

    def _current(self):
        return [group["lr"] for group in self.optimizer.param_groups]

    def step(self, epoch=None):
        """Advances by one epoch, or to the given one."""
        self._check_order()
        self._step_count += 1
        if epoch is None:
            self.last_epoch += 1
            self._set(self.get_lr())
        else:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
            self._go_to(epoch)

    def _go_to(self, epoch):
        self.last_epoch = epoch
        self._set(getattr(self, "_get_closed_form_lr", self.get_lr)())

    def _check_order(self):
        """Checks the order of calls at the first step after construction."""
        if self._step_count != 1:
            return
        optimizer = self.optimizer
        if optimizer.__dict__.get("step") is not optimizer.__dict__.get("_known_step"):
            warnings.warn("Seems like `optimizer.step()` has been overridden after learning rate scheduler "
                          "initialization. Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`.",
                          UserWarning, stacklevel=3)
        elif getattr(optimizer, "_step_count", 0) < 1:
            warnings.warn("Detected call of `lr_scheduler.step()` before `optimizer.step()`. Call them in the "
                          "opposite order: otherwise the first value of the learning rate schedule is skipped.",
                          UserWarning, stacklevel=3)

    def _set(self, rates):
        for group, rate in zip(self.optimizer.param_groups, rates):
            group["lr"] = rate
        self._last_lr = self._current()


_LRScheduler = LRScheduler  # older name


def _check_optimizer(optimizer):
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


class _Lambdas(LRScheduler):
    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        groups = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * groups
        if len(self.lr_lambdas) != groups:
            raise ValueError(f"Expected {groups} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def state_dict(self):
        """Excludes functions; for callable objects, saves their attributes."""
        state = {name: value for name, value in self.__dict__.items() if name not in ("optimizer", "lr_lambdas")}
        plain = type(lambda: None)
        state["lr_lambdas"] = [None if isinstance(f, plain) else dict(f.__dict__) for f in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict):
        state_dict = dict(state_dict)
        for function, kept in zip(self.lr_lambdas, state_dict.pop("lr_lambdas")):
            if kept is not None:
                function.__dict__.update(kept)
        self.__dict__.update(state_dict)


class LambdaLR(_Lambdas):
    """The initial rate times lr_lambda(epoch)."""

    def get_lr(self):
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas)]


class MultiplicativeLR(_Lambdas):
    """Multiplies the rate by lr_lambda(epoch) in each epoch."""

    def get_lr(self):
        if self.last_epoch == 0:
            return self._current()
        return [rate * f(self.last_epoch) for rate, f in zip(self._current(), self.lr_lambdas)]


class StepLR(LRScheduler):
    """Multiplies the rate by gamma every step_size epochs."""

    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._current()
        return [rate * self.gamma for rate in self._current()]

    def _get_closed_form_lr(self):
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Multiplies the rate by gamma at each milestone."""

    def __init__(self, optimizer, milestones, gamma=0.1, last_epoch=-1):
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return [rate * self.gamma ** self.milestones[self.last_epoch] for rate in self._current()]

    def _get_closed_form_lr(self):
        past = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**past for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """Multiplies the rate by factor in the first total_iters epochs."""

    def __init__(self, optimizer, factor=1.0 / 3, total_iters=5, last_epoch=-1):
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        if self.last_epoch == 0:
            return [rate * self.factor for rate in self._current()]
        if self.last_epoch != self.total_iters:
            return self._current()
        return [rate * (1.0 / self.factor) for rate in self._current()]

    def _get_closed_form_lr(self):
        factor = self.factor if self.last_epoch < self.total_iters else 1.0
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """Multiplies the rate by a factor that changes linearly from start_factor to end_factor in total_iters epochs."""

    def __init__(self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters=5, last_epoch=-1):
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch):
        share = min(self.total_iters, epoch) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * share

    def get_lr(self):
        if self.last_epoch == 0:
            return [rate * self.start_factor for rate in self._current()]
        if self.last_epoch > self.total_iters:
            return self._current()
        return [rate * self._factor(self.last_epoch) / self._factor(self.last_epoch - 1) for rate in self._current()]

    def _get_closed_form_lr(self):
        return [base * self._factor(self.last_epoch) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Multiplies the rate by gamma every epoch."""

    def __init__(self, optimizer, gamma, last_epoch=-1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return self._current() if self.last_epoch == 0 else [rate * self.gamma for rate in self._current()]

    def _get_closed_form_lr(self):
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Multiplies the initial rate by (1 - epoch / total_iters)^power."""

    def __init__(self, optimizer, total_iters=5, power=1.0, last_epoch=-1):
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        epoch, total = self.last_epoch, self.total_iters
        if epoch == 0 or epoch > total:
            return self._current()
        return [rate * ((1 - epoch / total) / (1 - (epoch - 1) / total)) ** self.power for rate in self._current()]

    def _get_closed_form_lr(self):
        share = min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * (1 - share) ** self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Cosine annealing from the initial rate to eta_min in T_max epochs, and back."""

    def __init__(self, optimizer, T_max, eta_min=0.0, last_epoch=-1):
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        epoch, half = self.last_epoch, self.T_max
        if epoch == 0:
            return self._current()
        if self._step_count == 1:
            return self._get_closed_form_lr()
        if (epoch - 1 - half) % (2 * half) == 0:  # the previous rate is eta_min: there is nothing to multiply
            return [rate + (base - self.eta_min) * (1 - math.cos(math.pi / half)) / 2
                    for base, rate in zip(self.base_lrs, self._current())]
        factor = (1 + math.cos(math.pi * epoch / half)) / (1 + math.cos(math.pi * (epoch - 1) / half))
        return [factor * (rate - self.eta_min) + self.eta_min for rate in self._current()]

    def _get_closed_form_lr(self):
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine annealing with restarts: the first cycle has T_0 epochs, each next one T_mult times as many."""

    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1):
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        self.T_0, self.T_i, self.T_mult, self.eta_min, self.T_cur = T_0, T_0, T_mult, eta_min, last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def step(self, epoch=None):
        """Advances by one epoch, or to the given one, which may be fractional."""
        self._step_count += 1
        self._go_to(self.last_epoch + 1 if epoch is None else epoch)

    def _go_to(self, epoch):
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        self.T_i, self.T_cur = self.T_0, epoch
        if self.T_mult == 1:
            self.T_cur %= self.T_0
        while self.T_cur >= self.T_i:
            self.T_cur -= self.T_i
            self.T_i *= self.T_mult
        self.last_epoch = math.floor(epoch)
        self._set(self.get_lr())


class OneCycleLR(LRScheduler):
    """Smith's one-cycle policy: up to max_lr, then down; momentum, if any, moves in the opposite direction."""

    def __init__(self, optimizer, max_lr, total_steps=None, epochs=None, steps_per_epoch=None, pct_start=0.3,
                 anneal_strategy="cos", cycle_momentum=True, base_momentum=0.85, max_momentum=0.95, div_factor=25.0,
                 final_div_factor=1e4, three_phase=False, last_epoch=-1):
        _check_optimizer(optimizer)
        if total_steps is not None:
            if total_steps <= 0 or not isinstance(total_steps, int):
                raise ValueError(f"Expected positive integer total_steps, but got {total_steps}")
        elif epochs is not None and steps_per_epoch is not None:
            if epochs <= 0 or not isinstance(epochs, int):
                raise ValueError(f"Expected positive integer epochs, but got {epochs}")
            if steps_per_epoch <= 0 or not isinstance(steps_per_epoch, int):
                raise ValueError(f"Expected positive integer steps_per_epoch, but got {steps_per_epoch}")
            total_steps = epochs * steps_per_epoch
        else:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        if not 0 <= pct_start <= 1 or isinstance(pct_start, int):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self.total_steps, self._anneal, self.cycle_momentum = total_steps, anneal_strategy, cycle_momentum
        up = pct_start * total_steps - 1
        # The end of each phase, and the names of the group's values that it interpolates.
        self._phases = [(up, "initial", "max")]
        if three_phase:
            self._phases += [(2 * up, "max", "initial"), (total_steps - 1, "initial", "min")]
        else:
            self._phases += [(total_steps - 1, "max", "min")]
        if last_epoch == -1:
            for group, peak in zip(optimizer.param_groups, _for_groups("max_lr", optimizer, max_lr)):
                group["initial_lr"], group["max_lr"] = peak / div_factor, peak
                group["min_lr"] = group["initial_lr"] / final_div_factor
        if cycle_momentum:
            if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
                raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
            if last_epoch == -1:
                for group, low, high in zip(optimizer.param_groups,
                                            _for_groups("base_momentum", optimizer, base_momentum),
                                            _for_groups("max_momentum", optimizer, max_momentum)):
                    group["base_momentum"], group["max_momentum"] = low, high
        super().__init__(optimizer, last_epoch)

    def _between(self, start, end, share):
        if self._anneal == "linear":
            return start + (end - start) * share
        return end + (start - end) / 2 * (1 + math.cos(math.pi * share))

    def get_lr(self):
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The total number of steps is {self.total_steps}")
        begin, rates = 0.0, []
        for i, (end, start_name, end_name) in enumerate(self._phases):
            if step <= end or i == len(self._phases) - 1:
                break
            begin = end
        share = (step - begin) / (end - begin)
        momenta = {"initial": "max_momentum", "max": "base_momentum", "min": "max_momentum"}
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[start_name + "_lr"], group[end_name + "_lr"], share))
            if self.cycle_momentum:
                momentum = self._between(group[momenta[start_name]], group[momenta[end_name]], share)
                if "betas" in self.optimizer.defaults:
                    group["betas"] = (momentum, *group["betas"][1:])
                else:
                    group["momentum"] = momentum
        return rates


class CyclicLR(LRScheduler):
    """
    Cycles between base_lr and max_lr: step_size_up steps up, step_size_down steps down. The amplitude of a cycle is
    scale_fn(cycle number), or with scale_mode "iterations" scale_fn(step), by default that of the mode. Momentum moves in
    the opposite direction.
    """

    def __init__(self, optimizer, base_lr, max_lr, step_size_up=2000, step_size_down=None, mode="triangular", gamma=1.0,
                 scale_fn=None, scale_mode="cycle", cycle_momentum=True, base_momentum=0.8, max_momentum=0.9,
                 last_epoch=-1, verbose=False):
        _check_optimizer(optimizer)
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.max_lrs = _for_groups("max_lr", optimizer, max_lr)
        self.step_size_up = float(step_size_up)
        self.total_size = self.step_size_up + float(step_size_up if step_size_down is None else step_size_down)
        self.mode, self.gamma, self._scale_fn = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn else ("iterations" if mode == "exp_range" else "cycle")
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            if "momentum" not in optimizer.defaults:
                raise ValueError("optimizer must support momentum with `cycle_momentum` option enabled")
            self.base_momentums = _for_groups("base_momentum", optimizer, base_momentum)
            self.max_momentums = _for_groups("max_momentum", optimizer, max_momentum)
        bases = _for_groups("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for group, base in zip(optimizer.param_groups, bases):
                group["lr"] = base
        super().__init__(optimizer, last_epoch)
        self.base_lrs = bases

    def scale_fn(self, x):
        """The amplitude factor of a cycle or step."""
        if self._scale_fn is not None:
            return self._scale_fn(x)
        return {"triangular": 1.0, "triangular2": 0.5 ** (x - 1), "exp_range": self.gamma**x}[self.mode]

    def get_lr(self):
        cycle, place = divmod(self.last_epoch, self.total_size)
        if place <= self.step_size_up:
            height = place / self.step_size_up
        else:
            height = (self.total_size - place) / (self.total_size - self.step_size_up)
        height *= self.scale_fn(cycle + 1 if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
                group["momentum"] = high - (high - low) * height
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self):
        """Excludes functions; for a callable object, saves its attributes."""
        state = super().state_dict()
        function = state.pop("_scale_fn")
        state["_scale_fn"] = None if function is None or isinstance(function, type(lambda: None)) else dict(vars(function))
        return state

    def load_state_dict(self, state_dict):
        state_dict = dict(state_dict)
        kept = state_dict.pop("_scale_fn", None)
        self.__dict__.update(state_dict)
        if kept is not None:
            self._scale_fn.__dict__.update(kept)


def _for_groups(name, optimizer, value):
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise ValueError(f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, "
                         f"param_groups has {count}.")
    return list(value)


class _Several(LRScheduler):
    """Base of schedules composed of others, whose states it includes."""

    def state_dict(self):
        state = {name: value for name, value in self.__dict__.items() if name not in ("optimizer", "_schedulers")}
        return {**state, "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict):
        self.__dict__.update({name: value for name, value in state_dict.items() if name != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"]):
            scheduler.load_state_dict(state)

    def _take(self, name, optimizer, schedulers):
        schedulers = list(schedulers)
        if not schedulers:
            raise ValueError(f"{name} expects at least one scheduler to be chained, but got no scheduler.")
        for i, scheduler in enumerate(schedulers):
            if scheduler.optimizer is not optimizer:
                raise ValueError(f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                                 f"{type(scheduler).__name__} at index {i}, which belongs to another.")
        self.optimizer, self._schedulers = optimizer, schedulers


class SequentialLR(_Several):
    """Switches to the next schedule at each milestone."""

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        self._take("SequentialLR", optimizer, schedulers)
        if len(milestones) != len(self._schedulers) - 1:
            raise ValueError("Sequential Schedulers expects number of schedulers provided to be one more than the number "
                             f"of milestone points, but got number of schedulers {len(self._schedulers)} and the "
                             f"number of milestones to be equal to {len(milestones)}")
        self._milestones, self.last_epoch = list(milestones), last_epoch + 1
        # Each schedule set the rates when it was created: restart with the first only.
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        for scheduler in self._schedulers:
            scheduler.last_epoch -= 1
        self._schedulers[0]._step_count = 0
        self._schedulers[0].step()
        self._last_lr = self._schedulers[0].get_last_lr()

    def step(self):
        """Advances by one epoch."""
        self.last_epoch += 1
        index = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[index]
        if index > 0 and self._milestones[index - 1] == self.last_epoch:
            scheduler._step_count += 1
            scheduler._go_to(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Several):
    """Applies several schedules at each step, one after another."""

    def __init__(self, schedulers, optimizer=None):
        schedulers = list(schedulers)
        self._take("ChainedScheduler", optimizer or (schedulers[0].optimizer if schedulers else None), schedulers)
        self._last_lr = self._current()

    def step(self):
        """Advances by one epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._current()


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the rate by factor when a metric has not improved for `patience` steps."""

    def __init__(self, optimizer, mode="min", factor=0.1, patience=10, threshold=1e-4, threshold_mode="rel", cooldown=0,
                 min_lr=0, eps=1e-8):
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        _check_optimizer(optimizer)
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown, self.eps = threshold, threshold_mode, cooldown, eps
        self.min_lrs = _for_groups("min_lr", optimizer, min_lr)
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0
        self._last_lr = self._current()

    def is_better(self, value, best):
        """Whether a metric has improved by more than the threshold."""
        sign = -1 if self.mode == "min" else 1
        margin = self.threshold if self.threshold_mode == "abs" else self.threshold * best
        if self.threshold_mode == "rel" and math.isinf(best):
            return sign * value > sign * best
        return value < best - margin if self.mode == "min" else value > best + margin

    @property
    def in_cooldown(self):
        """Whether the schedule is in the cooldown after a reduction."""
        return self.cooldown_counter > 0

    def step(self, metrics, epoch=None):
        """Advances by one epoch, with the metric's value at its end."""
        value = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(value, self.best):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group, least in zip(self.optimizer.param_groups, self.min_lrs):
                lower = max(group["lr"] * self.factor, least)
                if group["lr"] - lower > self.eps:
                    group["lr"] = lower
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._current()
