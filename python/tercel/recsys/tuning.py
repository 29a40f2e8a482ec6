"""Search for good options of a configuration: `tercel tune` in Python."""

import json
import os
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from tercel import _C
from tercel.data import Dataset
from tercel.data._options import name_of, path_of, progress_of
from tercel.recsys.config import Config, ModelLike, Section, _config_of
from tercel.recsys.trainer import Progress

__all__ = ["Trial", "TuneProgress", "TuneResult", "tune"]

Values = Union[str, Sequence[Any]]


@dataclass(frozen=True)
class Trial:
    """A configuration that is tried."""

    number: int
    """From 0; trial 0 is the configuration as it is given."""
    assignments: List[str]
    """What it changes: ["solver.lr=0.02"]."""
    comparison: int
    """The last comparison that it was trained for, from 0; -1: none."""
    score: Optional[float]
    """Of its best validation, by which trials are compared: larger is better. None if an error ended it."""
    best_step: int
    """The step of that validation."""
    steps: int
    """Steps that were trained."""
    error: str
    """What ended it, such as a loss that is not finite; else empty."""


@dataclass(frozen=True)
class TuneProgress:
    """What a callback of tune() is told, while a trial is trained and after it."""

    comparison: int
    """The comparison that trials are trained for, from 0."""
    comparisons: int
    """How many there are."""
    done: int
    """Trials that were trained for it."""
    of: int
    """Trials that are to be."""
    epochs: float
    """Passes over the train rows until it."""
    trial: Trial
    """The one that is trained, or was."""
    training: Optional[Progress]
    """Of its run; None after it."""


@dataclass(frozen=True)
class TuneResult:
    """What a search has found."""

    trials: List[Trial]
    """The best first, of those that were trained longest."""
    config: Optional[Config]
    """The configuration of the best one, to be trained: that of best.json. None if no trial could be validated."""


def _search_of(entry: Any, values: Any) -> str:
    """"solver.lr=0.1,0.2" of an entry and its values."""
    name_of(entry, "search")
    if isinstance(values, str):
        return f"{entry}={values}"
    if not isinstance(values, Sequence) or not values:
        raise TypeError(f"search: {entry}: expected a text such as 'log:0.001:0.1' or a list of values, not "
                        f"{type(values).__name__}{' without any' if isinstance(values, Sequence) else ''}")
    lists = [isinstance(value, (list, tuple)) for value in values]
    if not any(lists):
        return f"{entry}={','.join(map(_text_of, values))}"
    if not all(lists) or len(values) < 2:
        raise ValueError(f"search: {entry}: expected several lists, or values that are no lists")
    return f"{entry}={'|'.join(','.join(map(_text_of, value)) for value in values)}"


def _text_of(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    if "," in text or "|" in text:
        raise ValueError(f"search: expected values without ',' and '|', found {text!r}")
    return text


def tune(model: ModelLike, dataset: Dataset, folder: Any, *, search: Optional[Mapping[str, Values]] = None,
         trials: int = 18, epochs: float = 10, first_epochs: float = 0.5, reduction: int = 3, seed: int = 1,
         resume: str = "never", callback: Optional[Callable[[TuneProgress], Any]] = None, solver: Section = None,
         optimizer: Section = None, data: Section = None) -> TuneResult:
    """
    Searches for good options of a configuration by validation and successive halving, as `tercel tune`: all `trials`
    are trained for `first_epochs` passes over the train rows, one of `reduction` goes on for as many times as long, and
    so on, until `epochs` are done or validation stops improving. The test part is not read.

    `search` names the entries that vary, with their values: a list, or one of the texts "log:LOW:HIGH",
    "uniform:LOW:HIGH", "int:LOW:HIGH", "logint:LOW:HIGH": {"solver.lr": "log:0.001:0.1", "solver.batchsize":
    [128, 256]}. Default are learning rate and batch size. `model`, `solver`, `optimizer` and `data` are those of
    Session.

    The runs of the trials, tune.json with all results and best.json are in `folder`, which must be new. An exception of
    `callback`, and Ctrl-C, end the search: the trial is saved, then the exception is raised. resume="auto" continues
    the same search, and finds what an uninterrupted one finds. ConfigError for options or entries that there are not,
    for a dataset without validation rows, and for another search in the folder.
    """
    if not isinstance(dataset, Dataset):
        raise TypeError(f"dataset: expected a Dataset, not {type(dataset).__name__}")
    if search is not None and not isinstance(search, Mapping):
        raise TypeError(f"search: expected a dict from entries to values, not {type(search).__name__}")
    progress_of(callback, "callback")
    searches = [_search_of(entry, values) for entry, values in (search or {}).items()]
    options = {"trials": trials, "epochs": epochs, "first_epochs": first_epochs, "reduction": reduction, "seed": seed}

    def report(now: Dict[str, Any]) -> None:
        training = None if now["training"] is None else Progress(**now["training"])
        callback(TuneProgress(**{**now, "trial": Trial(**now["trial"]), "training": training}))  # type: ignore[misc]

    path = path_of(folder, "folder")
    found = _C._tune(_config_of(model, solver, optimizer, data), dataset._of, path, searches, options,
                     name_of(resume, "resume"), None if callback is None else report)
    result = [Trial(**trial) for trial in found]
    config = None
    if result[0].score is not None:
        with open(os.path.join(path, "best.json"), encoding="utf-8") as file:
            config = json.load(file)
    return TuneResult(result, config)
