"""HugeCTR's learning-rate scheduler, for scripts with a loop of their own."""

from tercel.hugectr.solver import CreateSolver

__all__ = ["LearningRateScheduler"]


class LearningRateScheduler:
    """Linear warm-up, constant, polynomial decay: Model.get_learning_rate_scheduler() gives one of the solver's."""

    def __init__(self, solver: CreateSolver) -> None:
        self.reset(solver.lr, solver.warmup_steps, solver.decay_start, solver.decay_steps, solver.decay_power,
                   solver.end_lr)

    def reset(self, base_lr: float, warmup_steps: int = 1, decay_start: int = 0, decay_steps: int = 1,
              decay_power: float = 2.0, end_lr: float = 0.0) -> None:
        """Begins again, with these numbers."""
        self._base, self._warmup, self._start = base_lr, warmup_steps, decay_start
        self._steps, self._power, self._end = max(1, decay_steps), decay_power, end_lr
        self._step = 0

    def get_step(self) -> int:
        """Rates given so far."""
        return self._step

    def get_next(self) -> float:
        """The rate of the next step."""
        self._step += 1
        step = self._step
        if step <= self._warmup:
            return step * self._base / self._warmup
        if self._start == 0 or step <= self._start:
            return self._base
        left = self._start + self._steps - step
        return max(self._end, self._base * (left / self._steps) ** self._power) if left >= 0 else self._end
