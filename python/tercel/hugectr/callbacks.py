"""HugeCTR's callbacks of Model.fit()."""

from typing import Dict

__all__ = ["TrainingCallback"]


class TrainingCallback:
    """What a script does at events of Model.fit(); a subclass overrides the methods that it needs."""

    def on_training_start(self) -> None:
        """Before the first iteration."""

    def on_training_end(self, current_iter: int) -> None:
        """After the last iteration, whose number it gets, from 0."""

    def on_eval_start(self, current_iter: int) -> bool:
        """Before an evaluation. True ends the training."""
        return False

    def on_eval_end(self, current_iter: int, eval_results: Dict[str, float]) -> bool:
        """After an evaluation, with its metrics by name ("AUC"). True ends the training."""
        return False
