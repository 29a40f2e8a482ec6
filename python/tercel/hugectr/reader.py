"""What HugeCTR's scripts say about data: files, and the inputs that a model reads from them."""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from tercel import _C
from tercel.hugectr.arguments import check_choice, given_without_effect, name_list, number_list
from tercel.hugectr.data import DataSourceParams
from tercel.hugectr.enums import Alignment_t, Check_t, DataReaderSparse_t, DataReaderType_t, FileSystemType_t

__all__ = ["AsyncParam", "DataReaderParams", "DataReaderSparseParam", "Input"]

Sources = Union[str, Sequence[str]]


@dataclass(eq=False)
class AsyncParam:
    """
    How RawAsync files are read. `shuffle` and `is_dense_float` count; the other arguments are those of HugeCTR's input
    queues. `multi_hot_reader` is the reader of 23.04 and later, whose labels are i32 and whose dense values are f32 or
    i32 (by default f32); False is the reader before it, where all values are i32. By default collections of embeddings
    have the new one and SparseEmbedding the old one, as in the versions that have them.
    """

    num_threads: int = 16
    num_batches_per_thread: int = 4
    max_num_requests_per_thread: int = 0
    io_depth: int = 0
    io_alignment: int = 0
    shuffle: bool = False
    aligned_type: Alignment_t = Alignment_t.Non
    multi_hot_reader: Optional[bool] = None
    is_dense_float: Optional[bool] = None

    def __post_init__(self) -> None:
        check_choice(self.aligned_type, Alignment_t, "AsyncParam: aligned_type")

    def without_effect(self) -> List[str]:
        """The arguments that were given and mean nothing here."""
        return given_without_effect(self, ("num_threads", "num_batches_per_thread", "max_num_requests_per_thread",
                                           "io_depth", "io_alignment", "aligned_type"))


@dataclass(eq=False)
class DataReaderParams:
    """
    The files of a model, relative to the working folder. `source` and `eval_source` name file lists (Norm, Parquet),
    folders or files of Parquet, or files of Raw and RawAsync. `check_type`, which HugeCTR requires and some of its
    samples leave out, is Non by default.
    """

    data_reader_type: DataReaderType_t
    source: Sources
    keyset: Sources = ""
    eval_source: str = ""
    check_type: Check_t = Check_t.Non
    cache_eval_data: int = 0
    num_samples: int = 0
    eval_num_samples: int = 0
    float_label_dense: bool = False
    read_file_sequentially: bool = False
    num_workers: int = 12
    slot_size_array: List[int] = field(default_factory=list)
    data_source_params: DataSourceParams = field(default_factory=DataSourceParams)
    async_param: AsyncParam = field(default_factory=AsyncParam)

    def __post_init__(self) -> None:
        check_choice(self.data_reader_type, DataReaderType_t, "DataReaderParams: data_reader_type")
        check_choice(self.check_type, Check_t, "DataReaderParams: check_type")
        self.source = name_list(self.source, "DataReaderParams: source")
        if not self.source:
            raise _C.ConfigError("DataReaderParams: source: expected at least one file, found none")
        self.slot_size_array = number_list(self.slot_size_array, "DataReaderParams: slot_size_array")
        if self.data_source_params.source is FileSystemType_t.HDFS:
            raise _C.ConfigError("DataReaderParams: data_source_params: HDFS is not read here; copy the files to this "
                                 "machine, or name them by s3://, gs:// or https://")

    def without_effect(self) -> List[str]:
        """The arguments that were given and mean nothing here."""
        names = given_without_effect(self, ("keyset", "cache_eval_data", "read_file_sequentially"))
        if self.data_reader_type is DataReaderType_t.RawAsync:
            names += [f"async_param.{name}" for name in self.async_param.without_effect()]
        return names


class DataReaderSparseParam:
    """
    A group of slots: the name of its tensor, the keys of each slot (one number for all, or a list), and how many slots
    there are. `is_fixed_length` is accepted; row offsets come from the data. The form of 3.0 is possible too, where
    Input(sparse_names=...) has the names:

        DataReaderSparseParam(DataReaderSparse_t, max_feature_num, max_nnz, slot_num)
    """

    def __init__(self, top_name: Union[str, DataReaderSparse_t], nnz_per_slot: Union[int, Sequence[int]],
                 is_fixed_length: bool, slot_num: int) -> None:
        if isinstance(top_name, DataReaderSparse_t):
            # The most keys of a row, which comes second, follows from those of its slots.
            top_name, nnz_per_slot, is_fixed_length = "", int(is_fixed_length), False
        self.top_name = top_name
        self.slot_num = int(slot_num)
        self.is_fixed_length = bool(is_fixed_length)
        if self.slot_num < 1:
            raise _C.ConfigError(f"DataReaderSparseParam {top_name!r}: slot_num: expected at least 1, found {slot_num}")
        nnz = [nnz_per_slot] * self.slot_num if hasattr(type(nnz_per_slot), "__index__") else nnz_per_slot
        self.nnz_per_slot = number_list(nnz, f"DataReaderSparseParam {top_name!r}: nnz_per_slot")
        if len(self.nnz_per_slot) != self.slot_num:
            raise _C.ConfigError(f"DataReaderSparseParam {top_name!r}: nnz_per_slot: expected {self.slot_num} numbers, "
                                 f"one for each slot, found {len(self.nnz_per_slot)}")

    def to_json(self) -> Dict[str, Any]:
        """An entry of `sparse` in HugeCTR's JSON."""
        return {"top": self.top_name, "nnz_per_slot": self.nnz_per_slot, "is_fixed_length": self.is_fixed_length,
                "slot_num": self.slot_num}


_FORMS = (("label_dim", "label_name", "dense_dim", "dense_name", "data_reader_sparse_param_array"),
          ("label_dims", "label_names", "dense_dim", "dense_name", "data_reader_sparse_param_array"),
          ("label_dims", "label_names", "label_weights", "dense_dim", "dense_name", "data_reader_sparse_param_array"))
_OLD_FORM = (*_FORMS[0], "sparse_names")  # of 3.0


class Input:
    """
    The inputs of a model, in one of three forms:

        Input(label_dim, label_name, dense_dim, dense_name, data_reader_sparse_param_array)
        Input(label_dims, label_names, dense_dim, dense_name, data_reader_sparse_param_array)
        Input(label_dims, label_names, label_weights, dense_dim, dense_name, data_reader_sparse_param_array)

    The first form may have `sparse_names` too, as in 3.0. Several labels take the columns of the labels in the order in
    which they are given. (HugeCTR takes them in alphabetical order of their names.)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        given = self._arguments(args, kwargs)
        many = "label_dims" in given
        dims = given["label_dims"] if many else [given["label_dim"]]
        self.label_dims = number_list(dims, "Input: label_dims")
        self.label_names = name_list(given["label_names"] if many else given["label_name"], "Input: label_names")
        weights = given.get("label_weights", [1.0] * len(self.label_names))
        self.label_weights = [float(weight) for weight in weights]
        self.dense_dim, self.dense_name = int(given["dense_dim"]), str(given["dense_name"])
        self.sparse: List[DataReaderSparseParam] = list(given["data_reader_sparse_param_array"])
        if "sparse_names" in given:
            self._name_sparse(name_list(given["sparse_names"], "Input: sparse_names"))
        if not all(param.top_name for param in self.sparse):
            raise _C.ConfigError("Input: expected names of the sparse inputs, in DataReaderSparseParam or in "
                                 "sparse_names")
        for name, values in (("label_dims", self.label_dims), ("label_weights", self.label_weights)):
            if len(values) != len(self.label_names):
                raise _C.ConfigError(f"Input: {name}: expected {len(self.label_names)} numbers, one for each label, "
                                     f"found {len(values)}")
        if not self.label_names or min(self.label_dims) < 1:
            raise _C.ConfigError("Input: expected labels of at least one column each")

    @staticmethod
    def _arguments(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Dict[str, Any]:
        several = isinstance(args[0], (list, tuple)) if args else "label_dims" in kwargs
        old = "sparse_names" in kwargs or (not several and len(args) == len(_OLD_FORM))
        form = (_OLD_FORM if old else _FORMS[0] if not several
                else _FORMS[2] if len(args) + len(kwargs) > 5 else _FORMS[1])
        given = {**dict(zip(form, args)), **kwargs}
        unknown = [name for name in kwargs if name not in form]
        missing = [name for name in form if name not in given]
        if unknown or missing or len(args) + len(kwargs) != len(form):
            raise TypeError(f"Input: expected ({', '.join(form)})" + (f", found {unknown[0]!r}" if unknown else "") +
                            (f"; {missing[0]!r} is missing" if missing else ""))
        return given

    def _name_sparse(self, names: List[str]) -> None:
        if len(names) != len(self.sparse):
            raise _C.ConfigError(f"Input: sparse_names: expected {len(self.sparse)} names, one for each "
                                 f"DataReaderSparseParam, found {len(names)}")
        for param, name in zip(self.sparse, names):
            param.top_name = name

    def to_json(self) -> Dict[str, Any]:
        """The layer Data of HugeCTR's JSON."""
        single = len(self.label_names) == 1
        label = {"top": self.label_names[0] if single else self.label_names,
                 "label_dim": self.label_dims[0] if single else self.label_dims}
        return {"type": "Data", "label": label, "dense": {"top": self.dense_name, "dense_dim": self.dense_dim},
                "sparse": [param.to_json() for param in self.sparse]}
