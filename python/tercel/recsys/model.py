"""Models: parameters, predictions and metrics."""

import os
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple, Union, overload

import tercel
from tercel import _C
from tercel._C import Tensor
from tercel.data import ArrayDataset, Batch, Dataset, Schema
from tercel.data._arrays import tensor_of
from tercel.data._options import name_of, path_of, paths_of, progress_of
from tercel.recsys.table_files import write_vectors

__all__ = ["LoadedModel", "Model", "load_model"]

Progress = Optional[Callable[[int, int], Any]]
Arrays = Mapping[str, Any]


def _parts_of(batch: Batch) -> Tuple[Any, ...]:
    """What the library makes its batch of."""
    labels = batch.labels if batch.labels.dim() != 2 or batch.labels.shape[1] > 0 else None
    inputs = [(i.name, i.slot_num, i.bag_order, i._row_offsets, i.keys, i.key_weights) for i in batch.inputs.values()]
    return (batch.epoch, batch.row, batch.rows, batch.global_row, batch.global_rows, labels, batch.dense, inputs,
            list(batch.columns.items()), batch.weights)


def _arrays_of(arrays: Arrays) -> List[Tuple[str, Any, Any, Any]]:
    """(name, values, row offsets or None, weights or None) of each array; (values, row_offsets) is ragged."""
    out = []
    for name, value in arrays.items():
        parts = value if isinstance(value, tuple) and len(value) in (2, 3) else (value,)
        values, offsets, weights = (*parts, None, None)[:3]
        what = f"input {name_of(name, 'name of an input')!r}"
        out.append((name, tensor_of(values, what), None if offsets is None else tensor_of(offsets, what),
                    None if weights is None else tensor_of(weights, f"{what}: weights")))
    return out


def _id_of(value: Any) -> str:
    """The name of a column of ids; empty: none are asked for."""
    if value == "":
        raise ValueError("id: expected the name of a column, found ''")
    return "" if value is None else name_of(value, "id")


class Model:
    """
    What a Session and a LoadedModel have in common. One thread may use it at a time; another one, and a signal's
    handler, get a RuntimeError meanwhile.
    """

    _of: Any
    _schema: Schema

    def _set(self, of: Any) -> None:
        self._of = of
        self._schema = Schema._of(of.schema())

    def __reduce__(self) -> Any:
        raise TypeError(f"{type(self).__name__}: it cannot be pickled or copied: save a checkpoint")

    @property
    def config(self) -> Dict[str, Any]:
        """The whole configuration."""
        config: Dict[str, Any] = self._of.config()
        return config

    @property
    def schema(self) -> Schema:
        """The rows that the model is for."""
        return self._schema

    @property
    def inputs(self) -> Dict[str, int]:
        """The sparse inputs by name, with their numbers of slots: the option `inputs` of readers."""
        inputs: Dict[str, int] = self._of.inputs()
        return inputs

    @property
    def heads(self) -> List[str]:
        """The names of the losses."""
        heads: List[str] = self._of.heads()
        return heads

    def summary(self) -> str:
        """A line for each layer: type, name, shape of its output, parameters."""
        text: str = self._of.summary()
        return text

    def parameters(self) -> Dict[str, Tensor]:
        """
        The parameters of all layers but embeddings, by name: views without gradients, which change with the model. What
        is written to them is written to the model.
        """
        tensors: Dict[str, Tensor] = self._of.parameters()
        return tensors

    def tables(self) -> Dict[str, Tensor]:
        """
        The embedding tables [keys, width] by the names of their layers, as parameters(); of one of several processes, the
        rows that it has.
        """
        tensors: Dict[str, Tensor] = self._of.tables()
        return tensors

    def table_rows(self, name: str) -> Tuple[Tensor, Tensor]:
        """
        The keys [n] that have a vector in an embedding table, ascending, and copies of their vectors [n, width]; of one of
        several processes, those that it has.
        ConfigError with the nearest name for a table that there is not.
        """
        keys, vectors = self._of.table_rows(name_of(name, "name"))
        return keys, vectors

    def dump_table(self, name: str, path: Any) -> int:
        """
        Writes table_rows() to a file, `.parquet` (with pyarrow: columns `key`, int64, and `vector`, a list of `width`
        numbers), `.npz` (arrays of these names) or `.npy` (records with these fields), which appears when it is complete.
        Returns the number of keys. Keys are those of the dataset: a slot's first_key and the number of the category in
        its vocabulary. RuntimeError of one of several processes that has a part of the table.
        """
        if not self._of.has_all_rows(name_of(name, "name")):
            raise RuntimeError(f"dump_table: other processes have a part of the table {name!r}; of a hugectr.Model, "
                               "save_params_to_files() or embedding_dump() writes all of it")
        keys, vectors = self.table_rows(name)
        write_vectors(os.fspath(path), keys, vectors, "dump_table")
        return int(keys.shape[0])

    def buffers(self) -> Dict[str, Tensor]:
        """Running statistics by name, as parameters()."""
        tensors: Dict[str, Tensor] = self._of.buffers()
        return tensors

    def compute(self, batch: Batch, tensor: str) -> Tensor:
        """
        The value of a tensor of the graph over a batch, in evaluation: the output of a layer, a loss, dense values or
        labels. ConfigError with the nearest name for a tensor that there is not.
        """
        if not isinstance(batch, Batch):
            raise TypeError(f"batch: expected a Batch, not {type(batch).__name__}")
        value: Tensor = self._of.compute_batch(_parts_of(batch), name_of(tensor, "tensor"))
        return value

    def batches(self, rows: Union[Dataset, ArrayDataset], part: str = "train", **options: Any) -> Iterable[Batch]:
        """
        The rows of a dataset's part, or of arrays, in batches as the model reads them: rows.batches() with `inputs` and,
        unless they are given, solver.batchsize as `batch_size` and, of a dataset, data.weight as `weight` and whether the
        losses expect labels 0 and 1 as `binary_labels`.
        """
        options.setdefault("batch_size", self.config["solver"]["batchsize"])
        options.setdefault("inputs", self.inputs)
        if isinstance(rows, ArrayDataset):
            self._check_arrays(rows.schema)
            return rows.batches(**options)
        if isinstance(rows, Dataset):
            self._of.check_rows(rows._of)
            options.setdefault("binary_labels", self._of.has_binary_labels())
            options.setdefault("weight", self.config["data"]["weight"])
            return rows.batches(part, **options)
        raise TypeError(f"rows: expected a Dataset or an ArrayDataset, not {type(rows).__name__}")

    def _check_arrays(self, found: Schema) -> None:
        """ValueError unless keys and columns mean what they do in the rows that the model is for."""
        expected = self._schema
        pairs = [("dense_dim", expected.dense_dim, found.dense_dim), ("label_dim", expected.label_dim, found.label_dim),
                 ("dense_names", expected.dense_names or found.dense_names, found.dense_names or expected.dense_names),
                 ("number of fields", len(expected.slots), len(found.slots))]
        pairs += [(f"field {i}", (a.name, a.first_key, a.size), (b.name, b.first_key, b.size))
                  for i, (a, b) in enumerate(zip(expected.slots, found.slots))]
        for what, wanted, given in pairs:
            if wanted != given:
                raise ValueError(f"rows: {what}: the model expects {wanted}, found {given}; ArrayDataset.like() gives "
                                 "further rows the schema of others")

    def _evaluation_batches(self, rows: Any) -> Iterable[Batch]:
        if not isinstance(rows, ArrayDataset):
            return rows  # type: ignore[no-any-return]
        return self.batches(rows, batch_size=self.config["solver"]["batchsize_eval"])

    def _evaluate(self, rows: Any, part: str, progress: Progress, weight: Optional[str]) -> Dict[str, float]:
        name_of(part, "part")
        progress_of(progress, "progress")
        if weight is not None:
            name_of(weight, "weight")
        metrics: Dict[str, float]
        if isinstance(rows, Dataset):
            metrics = self._of.evaluate_dataset(rows._of, part, progress, weight)
            return metrics
        if weight is not None:
            raise TypeError("weight: only the rows of a Dataset have columns to choose from, not "
                            f"{type(rows).__name__}; batches have their weights")
        found = _C._Metrics(self._of)
        done = 0
        for batch in self._evaluation_batches(rows):
            if not isinstance(batch, Batch):
                raise TypeError(f"evaluate: expected a Dataset, an ArrayDataset or batches, not {type(batch).__name__}")
            found.add(_parts_of(batch))
            done += batch.rows
            if progress is not None:
                progress(done, len(rows) if isinstance(rows, ArrayDataset) else 0)
        if done == 0:
            raise ValueError("evaluate: there are no rows")
        metrics = found.values()
        return metrics

    @overload
    def predict(self, rows: Any, part: str = ..., *, progress: Progress = ..., id: None = ...) -> Tensor: ...

    @overload
    def predict(self, rows: Any, part: str = ..., *, progress: Progress = ..., id: str) -> Tuple[Tensor, Tensor]: ...

    def predict(self, rows: Any, part: str = "test", *, progress: Progress = None,
                id: Optional[str] = None) -> Any:  # noqa: A002
        """
        Probabilities [rows], or [rows, columns] of a model with several heads, or whose loss has several columns or
        classes. `rows` is one of these:

        - a dict of arrays: dense values [B, dense_dim] under the name of the graph's tensor, and the dataset's keys
          under the name of an input, [B, slots] or [B, slots, n], or of each of its slots, [B] or [B, n]; instead of an
          array, (values [nnz], row_offsets [bags + 1]). Keys of weighted slots: (values, row_offsets, weights), with None
          for row offsets where there are none, and weights of the shape of the values; else each weighs 1;
        - a Dataset, of which `part` is read, with progress(rows, all_rows) now and then; an ArrayDataset;
        - a Batch.

        ValueError that names input and row for arrays that do not fit, and for an ArrayDataset with other fields;
        DataError for a dataset whose rows mean something else than those that the model was trained on, and for a bad
        record, also with data.on_bad_record="skip": every row has its probability. Of a Batch only shapes and the range of
        keys are checked.

        With `id`, of a Dataset, the result is (probabilities, ids): `id` is the name of a slot in which each row has
        one key, or of a column of integers, then ids [rows] are int64, -1 where the slot is empty; or of a dense value
        or a column of floats, then they are float32. ConfigError with the known names for another one.
        """
        name_of(part, "part")
        progress_of(progress, "progress")
        out: Any
        if id is not None and not isinstance(rows, Dataset):
            raise TypeError(f"id: only the rows of a Dataset have ids that are not at hand, not {type(rows).__name__}")
        if isinstance(rows, Dataset):
            out = self._of.predict_dataset(rows._of, part, progress, _id_of(id))
        elif isinstance(rows, Batch):
            out = self._of.predict_batch(_parts_of(rows))
        elif isinstance(rows, ArrayDataset):
            parts = []
            done = 0
            for batch in self._evaluation_batches(rows):
                parts.append(self._of.predict_batch(_parts_of(batch)))
                done += batch.rows
                if progress is not None:
                    progress(done, len(rows))
            columns = self._of.prediction_columns()
            out = tercel.cat(parts) if parts else tercel.empty((0,) if columns == 1 else (0, columns),
                                                               dtype=tercel.float32)
        elif isinstance(rows, Mapping):
            out = self._of.predict_arrays(_arrays_of(rows))
        else:
            raise TypeError(f"rows: expected arrays by name, a Dataset, an ArrayDataset or a Batch, not "
                            f"{type(rows).__name__}")
        return out


class LoadedModel(Model):
    """The model of a run or a checkpoint, for predictions; load_model() makes one. Its tables stay in their files."""

    def __init__(self, path: Any) -> None:
        self._set(_C._LoadedModel(path_of(path, "path")))

    @property
    def step(self) -> int:
        """Steps that were trained."""
        step: int = self._of.step()
        return step

    @property
    def last_step(self) -> int:
        """That of the run's last checkpoint, which may not be its best."""
        step: int = self._of.last_step()
        return step

    @property
    def checkpoint(self) -> str:
        """The folder of the checkpoint."""
        path: str = self._of.checkpoint()
        return path

    def evaluate(self, rows: Any, part: str = "test", *, progress: Progress = None,
                 weight: Optional[str] = None) -> Dict[str, float]:
        """
        Metrics by name on a part of a Dataset, on an ArrayDataset, or on an iterable of batches: those of
        solver.metrics, by default "auc", "log_loss", "accuracy", "calibration". With several heads "auc" is their mean
        by weight, and each has "auc/loss1" and so on.
        progress(rows, all_rows) is called now and then; its exceptions, and Ctrl-C, end the evaluation. DataError as
        predict(); but with data.on_bad_record="skip" bad records of a Dataset are left out, and a warning says how many.

        `weight` is the further column of a Dataset with the weights of its rows, "" to weigh them alike; by default it is
        data.weight, as in the training.
        """
        return self._evaluate(rows, part, progress, weight)

    @overload
    def predict_text(self, sources: Any, *, progress: Progress = ..., id: None = ...) -> Tensor: ...

    @overload
    def predict_text(self, sources: Any, *, progress: Progress = ..., id: str) -> Tuple[Tensor, List[str]]: ...

    def predict_text(self, sources: Any, *, progress: Progress = None, id: Optional[str] = None) -> Any:  # noqa: A002
        """
        Probabilities for raw text in the format that the model's dataset was converted from, with or without the label:
        a path or an iterable of paths of files, plain or gzip. DataError that names file, line and column. With `id`, a
        column of the text, or its number, from 1, where there is no header, (probabilities, ids): a list of the
        column's texts.
        """
        out: Any = self._of.predict_text(paths_of(sources, "sources"), progress_of(progress, "progress"),
                                         _id_of(id))
        return out

    def __repr__(self) -> str:
        return f"LoadedModel({self.checkpoint!r}, step={self.step})"


def load_model(path: Any) -> LoadedModel:
    """
    The model of the best checkpoint of a run, or of the given checkpoint, with the configuration that is stored there;
    a warning if it had to pass over damaged ones. DataError if there is none.
    """
    return LoadedModel(path)
