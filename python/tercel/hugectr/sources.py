"""The files of HugeCTR's scripts as datasets. They are read where they are."""

import itertools
import json
import os
import tempfile
from typing import Any, Dict, Iterator, List, Optional, Sequence

import tercel.data as td
from tercel import _C
from tercel.hugectr import _ranks, log
from tercel.hugectr.enums import Check_t, DataReaderType_t, Embedding_t
from tercel.hugectr.reader import DataReaderParams
from tercel.hugectr.solver import CreateSolver

__all__ = ["Files", "Reader"]

_ONE_HOT = (Embedding_t.LocalizedSlotSparseEmbeddingOneHot.value, Embedding_t.HybridSparseEmbedding.value)
_HASHED = (Embedding_t.DistributedSlotSparseEmbeddingHash.value, Embedding_t.LocalizedSlotSparseEmbeddingHash.value)
_FIRST_ROWS = 1024  # by which it is decided how keys are meant


class Files:
    """How the files of a model are read: what DataReaderParams, the solver and the layers say about them."""

    def __init__(self, params: DataReaderParams, solver: CreateSolver, layers: Sequence[Dict[str, Any]]) -> None:
        self._params, self._solver = params, solver
        self._data = layers[0]
        self._embeddings = [layer for layer in layers if "sparse_embedding_hparam" in layer]
        self._offsets: Optional[str] = None
        self._any_key: Optional[bool] = None

    @property
    def label_dim(self) -> int:
        """Columns of the labels."""
        dims = self._data["label"]["label_dim"]
        return sum(dims) if isinstance(dims, list) else int(dims)

    def _nnz(self) -> List[int]:
        return [n for part in self._data["sparse"] for n in part["nnz_per_slot"]]

    def _sizes_of_one_hot(self) -> List[int]:
        """
        The sizes of all slots, if the tables have no hash: slot_size_array of the embeddings, or of the reader where
        they have none.
        """
        if not self._has_only(_ONE_HOT):
            return []
        by_input = {layer["bottom"]: layer["sparse_embedding_hparam"].get("slot_size_array", [])
                    for layer in self._embeddings}
        sizes = [size for part in self._data["sparse"] for size in by_input.get(part["top"], [])]
        if len(sizes) != len(self._nnz()):
            sizes = list(self._params.slot_size_array)
        return sizes if len(sizes) == len(self._nnz()) and min(sizes, default=0) > 0 else []

    def open(self, source: str, is_eval: bool) -> td.Dataset:
        """The rows of a source as the train part of a dataset. DataError and IoError that name file and row."""
        dataset = self._open(source, is_eval)
        schema = dataset.schema
        for what, expected, found in (("label_dim", self.label_dim, schema.label_dim),
                                      ("dense_dim", self._data["dense"]["dense_dim"], schema.dense_dim),
                                      ("slots", len(self._nnz()), len(schema.slots))):
            if expected != found:
                raise _C.DataError(f"{source}: the model's Input has {expected} {what}, but the files have {found}")
        return dataset

    def _open(self, source: str, is_eval: bool) -> td.Dataset:
        params = self._params
        dims = {"label_dim": self.label_dim, "dense_dim": self._data["dense"]["dense_dim"], "nnz_per_slot": self._nnz()}
        key_type = "i64" if self._solver.i64_input_key else "u32"
        if params.data_reader_type is DataReaderType_t.Norm:
            return td.open_files("norm", train_list=source, key_type=key_type,
                                 check_mode="sum" if params.check_type is Check_t.Sum else "none", **dims)
        if params.data_reader_type is DataReaderType_t.Parquet:
            return self._open_parquet(source)
        if params.data_reader_type is DataReaderType_t.Raw:
            rows = max(0, params.eval_num_samples if is_eval else params.num_samples)
            return self._open_raw("raw", source, {**dims, "float_label_dense": params.float_label_dense,
                                                  "num_samples": rows, "nnz_per_slot": self._nnz_of_raw(source, rows)})
        given = params.async_param
        has_collection = any(layer["type"] == "EmbeddingLookup" for layer in self._embeddings)
        multi_hot = has_collection if given.multi_hot_reader is None else given.multi_hot_reader
        is_float = multi_hot if given.is_dense_float is None else given.is_dense_float
        return self._open_raw("rawasync", source, {**dims, "key_type": key_type if multi_hot else "u32",
                                                   "is_dense_float": bool(is_float)})

    def _has_only(self, kinds: Sequence[str]) -> bool:
        return bool(self._embeddings) and all(layer["type"] in kinds for layer in self._embeddings)

    @staticmethod
    def _fits(dataset: td.Dataset) -> bool:
        """Whether the first rows can be read as the dataset says."""
        try:
            with dataset.batches(batch_size=_FIRST_ROWS, binary_labels=False) as reader:
                next(iter(reader), None)
        except _C.DataError:
            return False
        return True

    def _open_parquet(self, source: str) -> td.Dataset:
        """
        HugeCTR adds the sizes of the slots before to keys, and lets tables with a hash have any keys: the first rows of
        the train files show whether keys are below the size of their slot, or are spread, as hashes are.
        """
        options: Dict[str, Any] = {"train": [source], "nnz_per_slot": self._nnz(), "integers": True,
                                   "slot_size_array": self._params.slot_size_array[:len(self._nnz())]}
        try:
            dataset = td.open_files("parquet", **options)
        except _C.ConfigError as e:
            if "option 'nnz_per_slot'" not in str(e):
                raise
            raise _C.DataError(f"{source}: the model's Input has {len(self._nnz())} slots, but the files have another "
                               f"number of categorical columns: {e}") from None
        if self._any_key is None:
            self._any_key = False
            if self._has_only(_HASHED) and options["slot_size_array"] and not self._fits(dataset):
                spread = self._with_any_key(options)
                self._any_key = self._fits(spread)
                if self._any_key:
                    log.info(f"{source}: keys are not below the sizes in slot_size_array: tables grow with the keys "
                             "that occur")
                    return spread
        return self._with_any_key(options) if self._any_key else dataset

    @staticmethod
    def _with_any_key(options: Dict[str, Any]) -> td.Dataset:
        """The files with the offsets of slot_size_array, but without its sizes: their description, without them."""
        with tempfile.TemporaryDirectory() as folder:
            described = os.path.join(folder, "rows")
            td.open_files("parquet", folder=described, **options)
            path = os.path.join(described, "dataset.json")
            with open(path, encoding="utf-8") as file:
                description = json.load(file)
            for slot in description["schema"]["slots"]:
                slot.update(size=0, first_key=0)
            with open(path, "w", encoding="utf-8") as file:
                json.dump(description, file)
            return td.open_dataset(described)

    def _nnz_of_raw(self, source: str, num_samples: int) -> List[int]:
        """
        HugeCTR's Raw files have one key in a slot, whatever nnz_per_slot says, as its DLRM samples do, which say 2. Its
        generator writes as many as it is asked for: the size of the file shows which it has.
        """
        nnz = self._nnz()
        try:
            size = os.path.getsize(source)
        except OSError:
            return nnz
        values = self.label_dim + self._data["dense"]["dense_dim"]
        one, several = ((size / (4 * (values + keys))) for keys in (len(nnz), sum(nnz)))  # rows of either form
        is_several = several.is_integer() and num_samples in (0, several)
        return [1] * len(nnz) if one.is_integer() and (one == num_samples or not is_several) else nnz

    def _open_raw(self, format: str, source: str, options: Dict[str, Any]) -> td.Dataset:
        """
        Tables without a hash have keys that begin at 0 in every slot, as HugeCTR's DLRM script writes them, or that
        follow those of the slots before, as its reader expects them: the first rows of the train files show which.
        """
        sizes = self._sizes_of_one_hot()
        if not sizes:
            return td.open_files(format, train=[source], **options)
        if self._offsets is None:
            self._offsets = "none"
            if not self._fits(td.open_files(format, train=[source], slot_size_array=sizes, **options)):
                self._offsets = "add"
                log.info(f"{source}: keys begin at 0 in every slot: the sizes of the slots before are added")
        return td.open_files(format, train=[source], slot_size_array=sizes, slot_offsets=self._offsets, **options)


class Reader:
    """
    The batches of sources: without end in repeat mode, else source after source, once. HugeCTR's scripts get one from
    Model.get_data_reader_train() and get_data_reader_eval().
    """

    def __init__(self, files: Files, sources: Sequence[str], inputs: List[Dict[str, Any]], batch_size: int, *,
                 repeat: bool, drop_last: bool, shuffle: bool, seed: int, workers: int, is_eval: bool) -> None:
        self._files, self._sources, self._is_eval, self._repeat = files, list(sources), is_eval, repeat
        self._options: Dict[str, Any] = {
            "batch_size": batch_size, "inputs": inputs, "shuffle": shuffle, "seed": seed, "binary_labels": False,
            "num_workers": max(1, min(workers, os.cpu_count() or 1)), **_ranks.part()}
        if shuffle:
            self._options["shuffle_unit"] = "batches"
        self._drop_last = drop_last
        self._datasets: Dict[str, td.Dataset] = {}
        self._batches: Optional[Iterator[td.Batch]] = None

    @property
    def sources(self) -> List[str]:
        """The files that are read."""
        return list(self._sources)

    def dataset(self, source: str) -> td.Dataset:
        """The rows of a source."""
        if source not in self._datasets:
            self._datasets[source] = self._files.open(source, self._is_eval)
        return self._datasets[source]

    def is_started(self) -> bool:
        """Whether batches have been read since set_source()."""
        return self._batches is not None

    def set_source(self, source: Any = None) -> None:
        """Begins with the first row of a source, or of all present ones."""
        if source:
            self._sources = [source] if isinstance(source, str) else list(source)
        self._batches = None

    def rows(self) -> int:
        """Rows of all sources."""
        return sum(len(self.dataset(source).train) for source in self._sources)

    def _of(self, source: str, epochs: int) -> Iterator[td.Batch]:
        dataset = self.dataset(source)
        # A source that has fewer rows than a batch would have no whole batch.
        drop_last = self._drop_last and len(dataset.train) >= self._options["batch_size"]
        options = {**self._options, "inputs": self._options["inputs"] or None}
        with dataset.batches(epochs=epochs, drop_last=drop_last, **options) as reader:
            yield from reader

    def __iter__(self) -> Iterator[td.Batch]:
        """The batches of all sources, once."""
        return itertools.chain.from_iterable(self._of(source, 1) for source in self._sources)

    def next(self) -> Optional[td.Batch]:
        """The next batch; None after the last one, which repeat mode does not have. Then the sources begin again."""
        if self._batches is None:
            # In repeat mode HugeCTR reads the first of several sources only.
            self._batches = self._of(self._sources[0], 0) if self._repeat else iter(self)
        batch = next(self._batches, None)
        if batch is None:
            self._batches = None
        return batch
