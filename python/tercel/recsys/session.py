"""Sessions: models in training."""

import os
import warnings
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import tercel
from tercel import _C
from tercel._C import Tensor
from tercel.data import ArrayDataset, Batch, Dataset, Schema
from tercel.data._arrays import integer_of, tensor_of
from tercel.data._options import flag_of, name_of, path_of, progress_of
from tercel.recsys.config import ModelLike, Section, _config_of
from tercel.recsys.model import Arrays, Model, Progress, _arrays_of, _parts_of
from tercel.recsys.table_files import read_vectors

__all__ = ["Gradients", "OptimizerStates", "Session"]


class Gradients(NamedTuple):
    """The gradients of a step; what is frozen has none."""

    parameters: Dict[str, Tensor]
    """By the names of Model.parameters(): views, which may be changed before the update."""
    tables: Dict[str, Tuple[Tensor, Tensor]]
    """By the names of Model.tables(): the rows [n] that the batch uses, in ascending order, and their gradients [n,
    width]; copies."""


class OptimizerStates(NamedTuple):
    """The states of the optimizers: views, which change with training. What is written to them is written there."""

    parameters: Dict[str, Dict[str, Tensor]]
    """By the names of Model.parameters(): the states by name, such as "m" and "v" of Adam."""
    tables: Dict[str, Dict[str, Tensor]]
    """By the names of Model.tables()."""


def _names(names: Tuple[Any, ...]) -> List[str]:
    return [name_of(name, "name of a layer") for name in names]


class Session(Model):
    """
    A model with its optimizers, and the readers of a dataset: the steps of training without a policy of when to
    evaluate, save or stop. Trainer is such a policy.

    `model` is what resolve_config() takes, `solver`, `optimizer` and `data` set single options of it. `rows` is a
    Dataset, whose train rows step() reads; or an ArrayDataset or a Schema, for batches and arrays that are given to
    step(). All memory is allocated at once, and the initial values are drawn from solver.seed. ConfigError that names
    the layer, OutOfMemoryError that names the table; Ctrl-C ends the initialisation. `dtype` is that of parameters and
    tables, tercel.float32 (the default) or tercel.float64.

    With the same seed, threads and rows the bits are those of `tercel train`.
    """

    def __init__(self, model: ModelLike, rows: Union[Dataset, ArrayDataset, Schema], *, solver: Section = None,
                 optimizer: Section = None, data: Section = None, dtype: Any = None) -> None:
        if dtype is not None and not isinstance(dtype, tercel.dtype):
            raise TypeError(f"dtype: expected a tercel.dtype, not {type(dtype).__name__}")
        config = _config_of(model, solver, optimizer, data)
        if isinstance(rows, Dataset):
            of = rows._of
        elif isinstance(rows, (ArrayDataset, Schema)):
            of = (rows if isinstance(rows, Schema) else rows.schema)._values()
        else:
            raise TypeError(f"rows: expected a Dataset, an ArrayDataset or a Schema, not {type(rows).__name__}")
        self._set(_C._Session(config, of, dtype))

    @classmethod
    def _wrap(cls, of: Any) -> "Session":
        session = cls.__new__(cls)
        session._set(of)
        return session

    def step(self, batch: Union[None, Batch, Arrays] = None, labels: Any = None, weights: Any = None) -> bool:
        """
        Trains a batch: the next one of the dataset; or a Batch, as batches() has them; or arrays by name, as predict()
        takes them, with labels [B, label_dim], or [B] if there is one: 0 or 1, or probabilities. `weights`, [B] and not
        negative, multiply the losses of the rows. False, and no change, after the last batch of the dataset
        (solver.epochs).

        An exception leaves the state as it was before the step, except one in the update (is_whole). NumericError that
        names the first layer with such an output if the loss is not finite; DataError for invalid rows of the dataset,
        ValueError for invalid arrays.
        """
        if batch is None:
            if labels is not None or weights is not None:
                raise TypeError("step: expected labels and weights together with arrays")
            more: bool = self._of.step()
            return more
        if isinstance(batch, Batch):
            self._of.step_batch(self._checked(batch, labels, weights))
        else:
            self._of.step_arrays(*self._labelled(batch, labels, weights))
        return True

    @staticmethod
    def _checked(batch: Batch, labels: Any, weights: Any) -> Tuple[Any, ...]:
        if labels is not None or weights is not None:
            raise TypeError("expected labels and weights together with arrays: a Batch has its own")
        return _parts_of(batch)

    @staticmethod
    def _labelled(arrays: Any, labels: Any, weights: Any) -> Tuple[Any, Any, Any]:
        if not hasattr(type(arrays), "items"):
            raise TypeError(f"expected a Batch or a dict of arrays, not {type(arrays).__name__}")
        if labels is None:
            raise TypeError("expected labels for the arrays")
        return (_arrays_of(arrays), tensor_of(labels, "labels"),
                None if weights is None else tensor_of(weights, "weights"))

    def forward_backward(self, batch: Union[Batch, Arrays], labels: Any = None, weights: Any = None) -> None:
        """
        The first of a step's three phases: the gradients of the loss. Then come reduce() and update(), or discard(). An
        exception leaves the state as it was.
        """
        if isinstance(batch, Batch):
            self._of.forward_backward(self._checked(batch, labels, weights))
        else:
            self._of.forward_backward_arrays(*self._labelled(batch, labels, weights))

    def reduce(self) -> None:
        """The second phase: adds the gradients of all processes. With one process there is nothing to add."""
        self._of.reduce()

    def update(self) -> None:
        """The third phase: the optimizers' step. RuntimeError without gradients."""
        self._of.update()

    def discard(self) -> None:
        """Instead of update(): restores the state of before forward_backward(). RuntimeError without gradients."""
        self._of.discard()

    def gradients(self) -> Gradients:
        """The gradients between forward_backward() and update(). RuntimeError at other times."""
        return Gradients(*self._of.gradients())

    def optimizer_states(self) -> OptimizerStates:
        """The states of the optimizers of all parameters and tables; none of a rule without states, such as SGD."""
        return OptimizerStates(*self._of.optimizer_states())

    @property
    def steps(self) -> int:
        """Steps trained, also those before the checkpoint that was loaded."""
        steps: int = self._of.steps()
        return steps

    @property
    def rows(self) -> int:
        """Rows trained by this object."""
        rows: int = self._of.rows()
        return rows

    @property
    def loss(self) -> float:
        """The loss of the last batch, before its update; NaN before the first."""
        loss: float = self._of.loss()
        return loss

    @property
    def is_whole(self) -> bool:
        """Whether the state is that after a complete step; False after an error in an update or in load()."""
        whole: bool = self._of.is_whole()
        return whole

    @property
    def gradient_norm(self) -> float:
        """
        The norm of the last step's gradients before clipping, of dense weights and rows together; NaN without
        solver.clip_grad_norm and before the first step.
        """
        norm: float = self._of.gradient_norm()
        return norm

    @property
    def nan_batches(self) -> int:
        """Batches that solver.on_nan="skip" has passed over, also those before a checkpoint that was loaded."""
        batches: int = self._of.nan_batches()
        return batches

    @property
    def learning_rate(self) -> float:
        """
        The rate of the next step. Setting it replaces the schedule of the solver for all further steps; None goes back
        to the schedule. ConfigError for a negative one.
        """
        rate: float = self._of.learning_rate()
        return rate

    @learning_rate.setter
    def learning_rate(self, rate: Optional[float]) -> None:
        if rate is None:
            self._of.clear_learning_rate()
        elif isinstance(rate, (bool, str, bytes)):
            raise TypeError(f"learning_rate: expected a number or None, not {rate!r}")
        else:
            self._of.set_learning_rate(float(rate))

    @property
    def frozen(self) -> List[str]:
        """The names of the layers that are frozen."""
        names: List[str] = self._of.frozen()
        return names

    def freeze(self, *names: str) -> None:
        """
        Excludes layers, by the names of their tops, from training: their parameters or tables, and the states of their
        optimizer, stay as they are. ConfigError, and no change, for the name of none.
        """
        self._of.freeze(_names(names))

    def unfreeze(self, *names: str) -> None:
        """Trains them again; ConfigError for the name of none."""
        self._of.unfreeze(_names(names))

    def load_table(self, name: str, source: Any) -> int:
        """
        Gives keys of an embedding table vectors that were trained elsewhere: a file as dump_table() writes it, or keys
        [n] and vectors [n, width]. A table that grows makes rows for new keys, whatever its admission. Other keys and the
        states of the optimizer stay as they are; freeze(name) keeps the vectors. Returns the number of keys. The table is
        not changed by a file that is damaged (DataError), other shapes, a key that occurs twice or numbers that are not
        finite (ValueError), keys that the table cannot have (IndexError), or more keys than its capacity (RuntimeError). Of
        several processes all give it the same keys, and each sets those that it has.
        """
        if isinstance(source, (str, bytes, os.PathLike)):
            keys, vectors = read_vectors(os.fsdecode(source), "load_table")
        else:
            try:
                keys, vectors = source
            except (TypeError, ValueError):
                raise TypeError("load_table: expected the name of a file, or keys and vectors") from None
            keys, vectors = tensor_of(keys, "load_table: keys"), tensor_of(vectors, "load_table: vectors")
        self._of.set_table_rows(name_of(name, "name"), keys, vectors)
        return int(keys.shape[0])

    def evaluate(self, rows: Any = None, part: str = "test", *, progress: Progress = None,
                 weight: Optional[str] = None) -> Dict[str, float]:
        """
        Metrics by name: those of solver.metrics, by default "auc", "log_loss", "accuracy", "calibration". With several
        heads "auc" is their mean by weight, and each has "auc/loss1" and so on.

        Without `rows`, every row of the dataset's test part counts once, or of its validation rows for part="valid";
        RuntimeError if there are none. Or on a part of another
        Dataset, on an ArrayDataset, or on an iterable of batches. progress(rows, all_rows) is called now and then; its
        exceptions, and Ctrl-C, end the evaluation. NumericError if a weight is not finite. With
        data.on_bad_record="skip" bad records of a Dataset are left out, and a warning says how many. `weight` is the
        further column of another Dataset with the weights of its rows, "" to weigh them alike; by default it is data.weight.
        """
        if rows is not None:
            self._of.check_finite()
            return self._evaluate(rows, part, progress, weight)
        if weight is not None:
            raise TypeError("weight: the session's own rows weigh as data.weight says; expected a Dataset as 'rows'")
        metrics: Dict[str, float] = self._of.evaluate(name_of(part, "part"),
                                                      progress_of(progress, "progress"))
        return metrics

    def save(self, folder: Any, *, keep_last: int = 2) -> str:
        """
        Writes a checkpoint of the last step into a folder of checkpoints, complete or not at all, and removes the oldest
        beyond `keep_last`. Returns the checkpoint's folder. RuntimeError within a step or without a dataset; IoError,
        also if the folder has this step; NumericError if a weight is not finite.
        """
        path: str = self._of.save(path_of(folder, "folder"), integer_of(keep_last, "keep_last", 1))
        return path

    def load(self, path: Any, *, new_data: bool = False) -> None:
        """
        Continues from a checkpoint, or the last one of a run or a folder of checkpoints, with the same bits: weights,
        states of the optimizers, position of the reader, frozen layers, learning rate that was set. Differences of
        configuration and data are refused or warned about as by `tercel train --resume auto`; `new_data` accepts other
        train rows. DataError if the checkpoint is damaged or that of another model.
        """
        for text in self._of.load(path_of(path, "path"), flag_of(new_data, "new_data")):
            warnings.warn(text, stacklevel=2)

    def __repr__(self) -> str:
        return f"Session({self.config['model_name']!r}, steps={self.steps})"
