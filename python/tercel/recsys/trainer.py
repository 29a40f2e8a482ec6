"""Runs: a session in a folder, with evaluations and checkpoints."""

import warnings
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Union

from tercel import _C
from tercel.data import Dataset
from tercel.data._options import flag_of, name_of, path_of
from tercel.recsys.config import ModelLike, Section, _config_of
from tercel.recsys.session import Session

__all__ = ["Callback", "Progress", "Result", "Trainer", "WarmStart"]


@dataclass(frozen=True)
class Progress:
    """What a callback is told. `kind` is "step", at most ten times a second, "evaluation" or "checkpoint"."""

    kind: str
    step: int
    total_steps: int
    """An end that max_iter and epochs do not set is 2**63 - 1."""
    rows: int
    """Trained so far by this run(); of "step" only."""
    seconds: float
    """Since run() began; of "step" only."""
    loss: float
    """The mean over the steps since the last report; of "step" only."""
    learning_rate: float
    """Of "step" only."""
    part: str
    """Of "evaluation": "valid", or "test" at the end of the run."""
    metrics: Dict[str, float]
    """Of "evaluation"."""
    path: str
    """Of "checkpoint": its folder."""


@dataclass(frozen=True)
class Result:
    """What a run has found: the model of the best validation, or the last one of a run without validation rows."""

    best_step: int
    """The step of that model; 0 before the first validation."""
    valid: Dict[str, float]
    """Its metrics on the validation rows; empty without."""
    test: Dict[str, float]
    """Its metrics on the test part; empty before the end of the run, and without a test part."""


class WarmStart(NamedTuple):
    """What a model took from another one."""

    parameters: int
    """Dense tensors, running statistics included."""
    rows: int
    """Rows of tables."""
    new_rows: int
    """Rows of the same tables with keys that the other model does not have."""
    left: List[str]
    """Dense tensors and tables that keep their own values, each with the reason."""


class Callback:
    """
    A callback with a method for each kind of Progress, to be overridden. `trainer` is set during a run. The methods
    may read and change the trainer's session, except train, load and save it, and call trainer.stop(). An exception ends
    the run after the step is saved.
    """

    trainer: "Trainer" = None  # type: ignore[assignment]
    """The one that runs."""

    def on_step(self, progress: Progress) -> None:
        """Called between steps, at most ten times a second, and after the last step."""

    def on_evaluation(self, progress: Progress) -> None:
        """Called after an evaluation."""

    def on_checkpoint(self, progress: Progress) -> None:
        """Called after a checkpoint is written."""

    def __call__(self, progress: Progress) -> None:
        """Calls the method of the kind."""
        {"step": self.on_step, "evaluation": self.on_evaluation,
         "checkpoint": self.on_checkpoint}[progress.kind](progress)


class Trainer:
    """
    `tercel train` in Python: trains a model on a dataset in the folder of a run, which holds the configuration,
    metrics.jsonl and checkpoints; solver says when it evaluates, saves and ends. Validation rows choose the best model:
    the validation part of the dataset, else every tenth train row. By default the run ends when validations find no
    better model any more.

    `model`, `solver`, `optimizer` and `data` are those of Session. resume="auto" continues from the run's last intact
    checkpoint if there is one, with the same bits; differences are refused or warned about as by `tercel train`, and
    `new_data` accepts other train rows. With "never" the folder must not have checkpoints. `callbacks` are functions of
    a Progress, or objects of Callback. One trainer at a time has the folder, until it is closed,
    or freed together with its session.
    """

    def __init__(self, model: ModelLike, dataset: Dataset, folder: Any, *, resume: str = "never",
                 new_data: bool = False, callbacks: Iterable[Callable[[Progress], Any]] = (), solver: Section = None,
                 optimizer: Section = None, data: Section = None) -> None:
        if not isinstance(dataset, Dataset):
            raise TypeError(f"dataset: expected a Dataset, not {type(dataset).__name__}")
        self.callbacks = list(callbacks)
        for callback in self.callbacks:
            if not callable(callback):
                raise TypeError(f"callbacks: expected functions, not {type(callback).__name__}")
        self._folder = path_of(folder, "folder")
        self._of: Any = _C._Trainer(_config_of(model, solver, optimizer, data), dataset._of, self._folder,
                                    name_of(resume, "resume"), flag_of(new_data, "new_data"))
        for text in self._of.warnings():
            warnings.warn(text, stacklevel=2)
        self._session = Session._wrap(self._of.session())

    callbacks: "list[Callable[[Progress], Any]]"
    """Called in this order."""

    def _report(self, values: Dict[str, Any]) -> None:
        progress = Progress(**values)
        for callback in self.callbacks:
            callback(progress)

    def run(self) -> bool:
        """
        Trains to the end, and returns True; then the session has the best model. Returns False after stop(). An exception
        of a callback, and Ctrl-C, end the run like a stop: the step is finished, a checkpoint is written, then the
        exception is raised. Other errors are raised after the last complete step is saved, and say where. A run that ends
        before its first step removes a new folder, and the trainer cannot be run again (RuntimeError); nor can it in a
        forked process.
        """
        own = [callback for callback in self.callbacks if isinstance(callback, Callback)]
        before = [vars(callback).get("trainer") for callback in own]
        for callback in own:
            callback.trainer = self
        try:
            done: bool = self._of.run(self._report)
        finally:
            for callback, trainer in zip(own, before):
                vars(callback)["trainer"] = trainer  # a reference for longer would keep the folder
        return done

    def warm_start(self, path: Any) -> WarmStart:
        """
        Begins a new run with the weights of another one, or of a checkpoint in it, as `tercel train --init-from`: dense
        tensors of the same name and sizes, and rows of the tables of the same name and width, which belong together by
        category. The datasets may differ. DataError, and no change, for a folder without a model; ConfigError if nothing
        fits, after which the trainer cannot run. RuntimeError if the run has a checkpoint or has trained.
        """
        return WarmStart(*self._of.warm_start(path_of(path, "path")))

    def close(self) -> None:
        """
        Releases the folder for another trainer, and the memory of the model; the trainer and its session cannot be used
        any more (ValueError). The end of a `with` block does so too. RuntimeError while it runs.
        """
        self._of.close()

    def __enter__(self) -> "Trainer":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def stop(self) -> None:
        """Ends run() after the present step or batch of an evaluation; for callbacks and other threads."""
        self._of.stop()

    @property
    def session(self) -> Session:
        """The session that is trained."""
        return self._session

    @property
    def step(self) -> int:
        """Steps trained, also those before a checkpoint that was resumed."""
        step: int = self._of.step()
        return step

    @property
    def checkpoint(self) -> Optional[str]:
        """The folder of the last checkpoint; None before the first."""
        path: Optional[str] = self._of.checkpoint()
        return path

    @property
    def metrics(self) -> Dict[str, float]:
        """Those of the last evaluation; empty before the first."""
        metrics: Dict[str, float] = self._of.metrics()
        return metrics

    @property
    def result(self) -> Result:
        """What the run has found so far; complete when run() has returned True."""
        return Result(*self._of.result())

    def __reduce__(self) -> Any:
        raise TypeError("Trainer: it cannot be pickled or copied: open its folder with resume='auto'")

    def __repr__(self) -> str:
        return f"Trainer({self._folder!r})"
