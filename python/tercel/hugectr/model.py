"""HugeCTR's Model: a graph, its training and its files."""

import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

import tercel.data as td
import tercel.recsys as tr
from tercel import _C
from tercel.hugectr import _ranks, fitting, log
from tercel.hugectr.arguments import check_choice, name_list, one_of
from tercel.hugectr.embedding import EmbeddingCollectionConfig, SparseEmbedding
from tercel.hugectr.enums import DataReaderType_t, Tensor_t
from tercel.hugectr.evaluation import Evaluation
from tercel.hugectr.graph_json import read_graph, write_graph
from tercel.hugectr.layers import DenseLayer, GroupDenseLayer
from tercel.hugectr.reader import DataReaderParams, Input
from tercel.hugectr.schedule import LearningRateScheduler
from tercel.hugectr.solver import CreateOptimizer, CreateSolver
from tercel.hugectr.sources import Files, Reader
from tercel.hugectr.tables import Table, check_memory, inputs_of, placements_of, tables_of
from tercel.hugectr.translate import (bottoms_of, engine_layers, is_embedding, is_loss, label_columns_swapped, tops_of)
from tercel.recsys.config import _config_of

__all__ = ["Model"]

Layer = Dict[str, Any]

_NO_CACHE = "there is no embedding training cache, since tables are in memory; save_params_to_files() writes them"
_ABSENT = {"get_embedding_training_cache": _NO_CACHE, "get_model_oversubscriber": _NO_CACHE,
           "get_incremental_model": _NO_CACHE, "dump_incremental_model_2kafka": _NO_CACHE}


class Model:
    """
    A model as HugeCTR's scripts build it: inputs, embeddings and layers are added, compile() makes it, fit() trains it.
    One process with its threads does the work of all GPUs, on batches of the solver's sizes; of several that mpirun
    starts each trains its part of every batch, and has the same dense weights and metrics as the others, and the rows of
    tables that their types, or a collection's shard(), give it.
    """

    def __init__(self, solver: CreateSolver, reader_params: DataReaderParams,
                 opt_params: Optional[CreateOptimizer] = None, etc_params: Any = None) -> None:
        for name, value, kind in (("solver", solver, CreateSolver), ("reader_params", reader_params, DataReaderParams),
                                  ("opt_params", opt_params or CreateOptimizer(), CreateOptimizer)):
            if not isinstance(value, kind):
                raise TypeError(f"Model: {name}: expected what {kind.__name__}() gives, not {type(value).__name__}")
        if etc_params is not None:
            raise _C.ConfigError("Model: etc_params: there is no embedding training cache, since tables are in memory")
        self._solver, self._params, self._optimizer = solver, reader_params, opt_params or CreateOptimizer()
        self._layers: List[Layer] = []
        self._without_effect = [*solver.without_effect(), *reader_params.without_effect()]
        self._label_weights: Dict[str, float] = {}
        self._placements: List[Dict[str, Any]] = []  # of tables of collections
        self._session: Optional[tr.Session] = None
        self._engine: List[Layer] = []
        self._last: Dict[Tensor_t, td.Batch] = {}
        self._exported: Optional[td.Batch] = None  # what export_predictions() writes

    # The graph.

    def add(self, item: Union[Input, SparseEmbedding, EmbeddingCollectionConfig, DenseLayer, GroupDenseLayer]) -> None:
        """Adds the inputs, an embedding, a collection of embeddings or a layer. ConfigError after compile()."""
        if self._session is not None:
            raise _C.ConfigError("Model: add: the model is compiled; nothing can be added")
        if isinstance(item, Input) == bool(self._layers):
            raise _C.ConfigError("Model: add: " + ("the model has its Input already" if self._layers
                                                   else "Input comes first"))
        if isinstance(item, Input):
            self._add_input(item)
        elif isinstance(item, SparseEmbedding):
            self._layers.append(item.to_json(self._optimizer))
        elif isinstance(item, EmbeddingCollectionConfig):
            placements = item.placements(self._solver.vvgpu)
            self._layers += item.to_json(self._optimizer)
            self._placements += placements
        elif isinstance(item, DenseLayer):
            self._layers.append(item.to_json())
        elif isinstance(item, GroupDenseLayer):
            for layer in item.layers:
                self.add(layer)
        else:
            raise TypeError(f"Model: add: expected Input, SparseEmbedding, EmbeddingCollectionConfig, DenseLayer or "
                            f"GroupDenseLayer, not {type(item).__name__}")
        if not isinstance(item, (Input, GroupDenseLayer)):
            self._without_effect += item.without_effect()

    def _add_input(self, item: Input) -> None:
        self._layers.append(item.to_json())
        weights = dict(zip(item.label_names, item.label_weights))
        self._label_weights = {name: weight for name, weight in weights.items() if weight != 1}
        if label_columns_swapped(item.label_names):
            log.warning("labels take their columns in the order in which they are given, "
                        f"{', '.join(item.label_names)}; HugeCTR takes them in alphabetical order of their names")

    def graph_to_json(self, graph_config_file: Any) -> None:
        """Writes the graph as HugeCTR's JSON."""
        _ranks.once(lambda: write_graph(graph_config_file, self._solver.model_name, self._layers, self._gpus()))

    def _gpus(self) -> int:
        return sum(len(node) for node in self._solver.vvgpu)

    def construct_from_json(self, graph_config_file: Any, include_dense_network: bool) -> None:
        """Adds the graph of such a file, or only its inputs and embeddings."""
        if self._layers:
            raise _C.ConfigError("Model: construct_from_json: the model has layers already")
        name, self._layers = read_graph(graph_config_file, include_dense_network)
        self._solver.model_name = self._solver.model_name or name

    def compile(self, loss_names: Optional[Sequence[str]] = None,
                loss_weights: Optional[Sequence[float]] = None) -> None:
        """
        Opens the files, builds the model and allocates its memory. `loss_names` are names of labels, whose losses and
        gradients are multiplied by `loss_weights` (in HugeCTR only the losses that are shown). ConfigError that names
        the layer, OutOfMemoryError that says how much memory the tables need.
        """
        if self._session is not None:
            raise _C.ConfigError("Model: compile: the model is compiled already")
        if not self._layers:
            raise _C.ConfigError("Model: compile: expected an Input and layers")
        names, weights = name_list(list(loss_names or ()), "compile: loss_names"), list(loss_weights or ())
        if len(names) != len(weights):
            raise _C.ConfigError(f"Model: compile: expected as many loss_weights as loss_names, found {len(weights)} "
                                 f"and {len(names)}")
        self._engine = engine_layers(self._layers, {**self._label_weights, **dict(zip(names, map(float, weights)))},
                                     self._gpus())
        files = Files(self._params, self._solver, self._engine)
        dataset = files.open(self._params.source[0], is_eval=False)
        self._schema = dataset.schema
        self._tables = {table.name: table for table in tables_of(self._engine, self._schema)}
        group, placements = _ranks.group(), self._table_placements()
        rank, ranks = (0, 1) if group is None else (group.rank(), group.size())
        by_table = {} if group is None else {placement["table"]: placement for placement in placements}
        check_memory({table: table.bytes_of(by_table.get(name), rank, ranks) for name, table in self._tables.items()})
        config = {"model_name": "model", "layers": self._engine,
                  "solver": {**self._solver.options(), "table_placements": placements},
                  "optimizer": {**self._optimizer.to_json(), "update_type": "Local"}}
        session = tr.Session._wrap(_C._Session(_config_of(config, None, None, None), self._schema._values(), None,
                                               group))
        inputs = inputs_of(self._engine, list(self._tables.values()))
        common: Dict[str, Any] = {"repeat": self._solver.repeat_dataset, "workers": self._params.num_workers,
                                  "seed": self._solver.seed}
        shuffle = self._params.data_reader_type is DataReaderType_t.RawAsync and self._params.async_param.shuffle
        self._train_reader = Reader(files, self._params.source, inputs, self._solver.batchsize, shuffle=shuffle,
                                    drop_last=self._solver.drop_incomplete_batch, is_eval=False, **common)
        sources = [self._params.eval_source] if self._params.eval_source else []
        self._eval_reader = Reader(files, sources, inputs, self._solver.batchsize_eval, shuffle=False,
                                   drop_last=False, is_eval=True, **common)
        losses = [layer for layer in self._engine if is_loss(layer)]
        self._evaluation = Evaluation(session, self._solver.metrics_spec,
                                      {tops_of(layer)[0]: float(layer.get("weight", 1)) for layer in losses},
                                      {tops_of(layer)[0]: bottoms_of(layer)[-1] for layer in losses})
        self._session = session
        names_without = list(dict.fromkeys(self._without_effect))
        if names_without:
            log.info(f"accepted, without effect on a CPU: {', '.join(names_without)}")

    def _table_placements(self) -> List[Dict[str, Any]]:
        """Of the tables of the graph; of collections without a plan, and of tables that nothing reads, none."""
        given = [*placements_of(self._engine, list(self._tables.values())), *self._placements]
        return [placement for placement in given if placement["table"] in self._tables]

    @property
    def session(self) -> tr.Session:
        """The tercel.recsys.Session that trains the model. ConfigError before compile()."""
        if self._session is None:
            raise _C.ConfigError("Model: compile() comes first")
        return self._session

    @property
    def solver(self) -> CreateSolver:
        """The solver."""
        return self._solver

    @property
    def layers(self) -> List[Dict[str, Any]]:
        """The layers as HugeCTR's JSON has them."""
        return list(self._layers)

    def summary(self) -> None:
        """Prints the inputs and the layers, after compile() with their shapes and parameters."""
        if self._session is None:
            if not self._layers:
                raise _C.ConfigError("Model: summary: expected an Input and layers")
            fitting.print_summary(engine_layers(self._layers), None)
        else:
            fitting.print_summary(self._engine, self._session.summary())

    # Training.

    def fit(self, num_epochs: int = 0, max_iter: int = 2000, display: int = 200, eval_interval: int = 1000,
            snapshot: int = 10000, snapshot_prefix: str = "") -> None:
        """
        Trains: `max_iter` iterations in repeat mode, else `num_epochs` epochs. Every `display` iterations a line is
        printed, every `eval_interval` an evaluation of max_eval_batches batches is made, which ends the training when
        AUC exceeds the target of the solver's metrics_spec, and every `snapshot` iterations files are written.
        RuntimeError if the loss is not finite.
        """
        fitting.fit(self, num_epochs, max_iter, display, eval_interval, snapshot, snapshot_prefix)

    def start_data_reading(self) -> None:
        """Readers start with their first batch; nothing is left to do."""
        self.session

    def train(self, is_first_batch: bool = True) -> bool:
        """
        Trains the next batch; False after the last one of an epoch, which repeat mode does not have. `is_first_batch`,
        which 23.08 and before have, does not matter.
        """
        batch = self._train_reader.next() if self.session else None
        if batch is None:
            return False
        self.train_batch(batch)
        return True

    def train_batch(self, batch: td.Batch) -> None:
        """Trains a batch of the reader's. RuntimeError if the loss is not finite."""
        try:
            self.session.step(batch)
        except _C.NumericError as error:
            raise RuntimeError(f"Train Runtime error: Loss cannot converge: {error}") from error
        self._last[Tensor_t.Train] = batch

    def eval(self, is_first_batch: bool = True) -> bool:
        """
        Evaluates the next batch, for get_eval_metrics(); False after the last one of an epoch. `is_first_batch` does
        not matter.
        """
        batch = self.eval_reader().next()
        if batch is None:
            self._exported = None
            return False
        self.evaluate_batch(batch)
        return True

    def evaluate_batch(self, batch: td.Batch) -> None:
        """Adds a batch to the evaluation."""
        self._evaluation.add(batch)
        self._last[Tensor_t.Evaluate] = self._exported = batch

    def eval_reader(self) -> Reader:
        """get_data_reader_eval(), checked for sources."""
        self.session
        if not self._eval_reader.sources:
            raise _C.ConfigError("Model: DataReaderParams has no eval_source")
        return self._eval_reader

    def get_eval_metrics(self) -> List[Tuple[str, float]]:
        """(name, value) of each metric over the batches since the last call."""
        self.session
        return self._evaluation.values()

    def aucs_of_labels(self) -> List[Tuple[str, float]]:
        """
        (label, AUC) of a model with several losses, of whose labels AUC is the mean, as the last get_eval_metrics() found
        them; of a model with one loss, nothing.
        """
        self.session
        return list(self._evaluation.aucs_of_labels)

    def get_current_loss(self) -> float:
        """The loss of the last batch of training."""
        return self.session.loss

    def set_learning_rate(self, lr: float) -> None:
        """Sets the rate of all further iterations, instead of the solver's schedule."""
        self.session.learning_rate = lr

    def get_learning_rate_scheduler(self) -> LearningRateScheduler:
        """The solver's schedule, for loops that set each rate."""
        if not hasattr(self, "_scheduler"):
            self._scheduler = LearningRateScheduler(self._solver)
        return self._scheduler

    def reset_learning_rate_scheduler(self, base_lr: float, warmup_steps: int = 1, decay_start: int = 0,
                                      decay_steps: int = 1, decay_power: float = 2.0, end_lr: float = 0.0) -> None:
        """Begins the schedule again with other numbers."""
        self.get_learning_rate_scheduler().reset(base_lr, warmup_steps, decay_start, decay_steps, decay_power, end_lr)

    def get_data_reader_train(self) -> Reader:
        """The reader of the train batches."""
        self.session
        return self._train_reader

    def get_data_reader_eval(self) -> Reader:
        """The reader of the batches for evaluation."""
        self.session
        return self._eval_reader

    def set_source(self, *args: Any, **kwargs: Any) -> None:
        """
        Other files for training, one or a list, and for evaluation; their rows are read from the first on:

            set_source(source, eval_source)
            set_source(source, keyset, eval_source)

        `keyset` has no effect.
        """
        names = ("source", "keyset", "eval_source") if len(args) > 2 else ("source", "eval_source")
        given = dict(zip(names, args))
        unknown = [name for name in kwargs if name not in ("source", "keyset", "eval_source") or name in given]
        if unknown or len(args) > 3:
            raise TypeError("Model: set_source: expected (source, eval_source) or (source, keyset, eval_source)" +
                            (f", found {unknown[0]!r}" if unknown else ""))
        given.update(kwargs)
        source, eval_source = given.get("source"), given.get("eval_source")
        if self._solver.repeat_dataset:
            raise _C.ConfigError("Model: set_source: expected CreateSolver(repeat_dataset=False)")
        for reader, sources, argument in ((self.get_data_reader_train(), source, "source"),
                                          (self._eval_reader, eval_source, "eval_source")):
            if sources:
                reader.set_source(name_list(sources, f"set_source: {argument}"))

    def check_out_tensor(self, tensor_name: str, tensor_type: Tensor_t) -> Any:
        """
        A tensor of the graph as a float32 array: what the model as it is now makes of the last batch of training, or of
        evaluation; of several processes, of this one's part. As in HugeCTR, the logits of a loss are probabilities in
        evaluation.
        """
        check_choice(tensor_type, Tensor_t, "check_out_tensor: tensor_type")
        if tensor_type not in self._last:
            raise _C.ConfigError(f"Model: check_out_tensor: there was no batch of {tensor_type.name} yet")
        value = self.session.compute(self._last[tensor_type], tensor_name).numpy().astype(np.float32)
        logits = {bottoms_of(layer)[0] for layer in self._engine if layer["type"] == "BinaryCrossEntropyLoss"}
        if tensor_type is Tensor_t.Evaluate and tensor_name in logits:
            value = (1 / (1 + np.exp(-value.astype(np.float64)))).astype(np.float32)
        return value

    def export_predictions(self, output_prediction_file_name: str, output_label_file_name: str) -> None:
        """
        Appends predictions and labels of the last batch of evaluation to files, each number with a space behind it, as
        HugeCTR does before 23.12: scripts call it after each eval(), or after fit(). After the end of the files of
        evaluation there is no batch, and nothing is written.
        """
        session, batch = self.session, self._exported
        if batch is None:
            log.info("Reach end of eval dataset. Skip export prediction")
            return
        predictions, labels = _ranks.rows_of_all(session.predict(batch)), _ranks.rows_of_all(batch.labels)

        def write() -> None:
            for path, values in ((output_prediction_file_name, predictions), (output_label_file_name, labels)):
                with open(path, "a", encoding="ascii") as file:
                    file.writelines(f"{number:g} " for number in values.numpy().reshape(-1))
        _ranks.once(write)

    # What is trained.

    def _dense_names(self) -> List[str]:
        parameters = self.session.parameters()
        return [tops_of(layer)[0] for layer in self._engine if layer["type"] != "Data" and not is_embedding(layer)
                and any(name.startswith(f"{tops_of(layer)[0]}.") for name in parameters)]

    def _embedding_names(self, name: Optional[str]) -> List[str]:
        self.session
        if name is None:
            return list(self._tables)
        if name not in self._tables:
            raise _C.ConfigError(f"Model: there is no embedding {name!r}; known: {', '.join(self._tables)}")
        return [name]

    def freeze_embedding(self, embedding_name: Optional[str] = None) -> None:
        """Excludes an embedding, or all, from training."""
        self.session.freeze(*self._embedding_names(embedding_name))

    def unfreeze_embedding(self, embedding_name: Optional[str] = None) -> None:
        """Trains it, or all, again."""
        self.session.unfreeze(*self._embedding_names(embedding_name))

    def freeze_dense(self) -> None:
        """Excludes all dense layers from training."""
        self.session.freeze(*self._dense_names())

    def unfreeze_dense(self) -> None:
        """Trains them again."""
        self.session.unfreeze(*self._dense_names())

    def __getattr__(self, name: str) -> Any:
        if name in _ABSENT:
            raise AttributeError(f"hugectr.Model.{name}: {_ABSENT[name]}")
        raise AttributeError(f"'Model' object has no attribute {name!r}")

    # Files.

    def _sparse(self) -> List[Layer]:
        self.session
        return [layer for layer in self._engine if is_embedding(layer) and layer["type"] != "EmbeddingLookup"]

    def save_params_to_files(self, prefix: str, iter: int = 0) -> None:
        """
        Writes dense weights, tables and states of optimizers as HugeCTR's files: prefix_dense_N.model,
        prefix0_sparse_N.model and so on. Collections are written by embedding_dump(). An error is raised (HugeCTR only
        prints it). Of several processes all call it, and the first one writes the rows of all.
        """
        folder, session, sparse = os.path.dirname(prefix), self.session, self._sparse()
        if folder:
            _ranks.once(lambda: os.makedirs(folder, exist_ok=True))
        session._of.hugectr_save(prefix, iter)
        log.info(f"Wrote the model to {prefix}_dense_{iter}.model" +
                 (f" and {prefix}0_sparse_{iter}.model" + ("..." if len(sparse) > 1 else "") if sparse else ""))

    def load_dense_weights(self, dense_model_file: str) -> None:
        """Sets all dense weights from a file of save_params_to_files()."""
        self.session._of.hugectr_load_dense(dense_model_file)

    def load_dense_optimizer_states(self, dense_opt_states_file: str) -> None:
        """Sets the states of the dense weights' optimizer."""
        self.session._of.hugectr_load_dense_states(dense_opt_states_file)

    def _paths(self, given: Any, what: str) -> List[Tuple[str, Table]]:
        """(path, table) of a dict by names of embeddings, or of a list in their order."""
        names = [layer["top"] for layer in self._sparse()]
        if not isinstance(given, Mapping):
            paths = name_list(given, what)
            if len(paths) != len(names):
                raise _C.ConfigError(f"Model: {what}: expected {len(names)} paths, one for each embedding, found "
                                     f"{len(paths)}")
            given = dict(zip(names, paths))
        for name in given:
            if name not in names:
                raise _C.ConfigError(f"Model: {what}: there is no embedding {name!r}; known: {', '.join(names)}")
        return [(path, self._tables[name]) for name, path in given.items()]

    def load_sparse_weights(self, sparse_embedding_files: Any = None, *,
                            sparse_embedding_files_map: Any = None) -> None:
        """
        Sets the vectors of tables: paths in the order of the embeddings, or a dict from their names to paths, which
        has a name of its own as a keyword.
        """
        given = one_of(sparse_embedding_files, sparse_embedding_files_map)
        for path, table in self._paths(given, "load_sparse_weights"):
            self.session._of.hugectr_load_table(path, table.name)

    def load_sparse_optimizer_states(self, sparse_opt_states_files: Any = None, *,
                                     sparse_opt_states_files_map: Any = None) -> None:
        """Sets the states of the tables' optimizers, in the same way."""
        given = one_of(sparse_opt_states_files, sparse_opt_states_files_map)
        for path, table in self._paths(given, "load_sparse_optimizer_states"):
            self.session._of.hugectr_load_table_states(path, table.name)

    def _collection(self, names: Sequence[str]) -> List[str]:
        """The names of tables of the collection; empty: all."""
        self.session
        known = list(dict.fromkeys(layer["table"] for layer in self._engine if layer["type"] == "EmbeddingLookup"))
        if not known:
            raise _C.ConfigError("Model: there is no collection of embeddings")
        for name in names:
            if name not in known:
                raise _C.ConfigError(f"Model: there is no table {name!r}; known: {', '.join(known)}")
        return list(names)

    def embedding_dump(self, path: str, table_names: Sequence[str] = ()) -> None:
        """Writes the tables of the collection, or some, to path/embedding_collection_0."""
        names = self._collection(name_list(list(table_names), "embedding_dump: table_names"))
        folder, wide = os.path.join(path, "embedding_collection_0"), bool(self._solver.i64_input_key)
        self.session._of.hugectr_save_collection(folder, names, wide)

    def embedding_load(self, path: str, table_names: Sequence[str] = ()) -> None:
        """Sets them from such a folder."""
        names = self._collection(name_list(list(table_names), "embedding_load: table_names"))
        self.session._of.hugectr_load_collection(os.path.join(path, "embedding_collection_0"), names)
