"""Tables in memory as datasets: pyarrow, polars, DuckDB, pandas, NumPy."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional

from tercel import _C
from tercel._C import Tensor
from tercel.data._arrays import column_of
from tercel.data._options import progress_of, takes_options
from tercel.data.dataset import Dataset

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tercel._C import _ArrowOptions

__all__ = ["ArrowDataset"]


def is_table(value: Any) -> bool:
    """Whether it is a table, a stream of rows or arrays by name."""
    return (isinstance(value, Mapping) or hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")
            or getattr(getattr(value, "dtype", None), "names", None) is not None or hasattr(value, "iloc"))


def _is_in_memory(table: Any) -> bool:
    """Tables have their rows already; readers and queries make them while they are read."""
    return not hasattr(table, "__arrow_c_stream__") or any(hasattr(table, name) for name in ("num_rows", "height", "iloc"))


def _of_columns(table: Any, known: Iterable[Any], names: Sequence[str]) -> Any:
    """Of those columns of a mapping, an array or a frame that are asked for."""
    all_names = list(known)
    columns: Dict[str, Tensor] = {}
    valid: Dict[str, Tensor] = {}
    for name in dict.fromkeys(names):
        if name not in all_names:
            continue
        if all_names.count(name) > 1:
            raise ValueError(f"expected one column {name!r}, found several")
        values = table[name]
        # The fields of a structured array lie apart, which no tensor can.
        columns[name], mask = column_of(values.copy() if hasattr(values, "strides") else values, f"column {name!r}")
        if mask is not None:
            valid[name] = mask
    lengths = {name: len(tensor) if tensor.dim() > 0 else -1 for name, tensor in columns.items()}
    if len(set(lengths.values())) > 1 or -1 in lengths.values():
        raise ValueError(f"expected columns of the same number of rows, got {lengths}")
    return _C._stream_of_batch(*_C._columns_to_arrow(columns, valid))


def _stream_of(table: Any, what: str, names: Sequence[str]) -> Any:
    """A capsule of an Arrow stream of the rows, with at least the columns of these names that the table has."""
    capsule = _make_stream(table, what, names)
    if type(capsule).__name__ != "PyCapsule":
        raise TypeError(f"{what}: expected a capsule of __arrow_c_stream__(), found {type(capsule).__name__}")
    return capsule


def _make_stream(table: Any, what: str, asked: Sequence[str]) -> Any:
    if hasattr(table, "__arrow_c_stream__"):
        try:
            return table.__arrow_c_stream__()
        except ImportError:  # pandas asks for pyarrow
            if not hasattr(table, "iloc"):
                raise
            return _of_columns(table, table.columns, asked)
    if hasattr(table, "__arrow_c_array__"):
        return _C._stream_of_batch(*table.__arrow_c_array__())
    names = getattr(getattr(table, "dtype", None), "names", None)
    if names is not None:
        return _of_columns(table, names, asked)
    if isinstance(table, Mapping):
        return _of_columns(table, table, asked)
    if hasattr(table, "iloc"):  # pandas before 2.2
        return _of_columns(table, table.columns, asked)
    raise TypeError(f"{what}: expected a table with __arrow_c_stream__ (pyarrow, polars, DuckDB, pandas), a dict of arrays "
                    f"or a structured array, not {type(table).__name__}")


class ArrowDataset(Dataset):
    """
    The rows of a table in memory as a dataset, which readers, sessions and trainers take like one of files: the columns
    are read by what reads Parquet. `source` has the train rows, `valid` and `test` may have others. Each is one of these:

    - an object with __arrow_c_stream__ or __arrow_c_array__: tables of pyarrow, polars, pandas (2.2 or newer, which needs
      pyarrow for it), queries of DuckDB, readers. No Arrow library is needed;
    - a dict from names to arrays [rows], or [rows, n] for columns of lists, or a NumPy structured array. What a masked
      array hides is missing, as null is in arrays of pyarrow and series of polars.

    A table in memory is kept as it is: it must not be changed. A stream that makes its rows while it is read (a reader, a
    query) is copied, so that it may be read in any order and several times: 512 MiB are kept in memory, what is beyond in a
    file in TMPDIR. `storage`, "memory" or "disk", chooses otherwise. progress(rows) is called now and then while the
    rows are read; its exceptions, and Ctrl-C, end the work.

    ConfigError for options and columns that do not fit, DataError for a stream that fails or contradicts its schema;
    values that a row cannot have are a DataError of the reader that comes to them. The Arrow interface does not tell
    the lengths of buffers: a producer that gives wrong ones, or wrong pointers, cannot be recognised. Such a dataset
    cannot be pickled; convert() writes one that is in files.
    """

    @takes_options("arrow")
    def __init__(self, source: Any, *, valid: Any = None, test: Any = None,
                 progress: Optional[Callable[[int], Any]] = None, **options: "Unpack[_ArrowOptions]") -> None:
        values: Dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        for name in ("label", "dense", "categorical", "weighted", "columns"):
            if isinstance(values.get(name), str):
                values[name] = [values[name]]
        for name in ("fill_null_dense", "fill_null_key", "nnz_per_slot"):
            if name in values and not hasattr(values[name], "__len__"):
                values[name] = [values[name]]
        tables = {"source": source, "valid": valid, "test": test}
        given = {what: table for what, table in tables.items() if table is not None or what == "source"}
        values.setdefault("storage", "memory" if all(map(_is_in_memory, given.values())) else "disk")
        asked = [name for option in ("label", "dense", "categorical", "columns") for name in values.get(option) or ()]
        asked += [f"{name}_weight" for name in values.get("weighted") or ()]
        streams = {what: _stream_of(table, what, asked) for what, table in given.items()}
        self._of = _C._arrow_dataset(streams["source"], streams.get("valid"), streams.get("test"),
                                     progress_of(progress, "progress"), values)

    def __repr__(self) -> str:
        rows = ", ".join(f"{name}: {len(part):,} rows" for name, part in self.parts.items())
        return f"ArrowDataset({rows})"

    def __reduce__(self) -> Any:
        raise TypeError("ArrowDataset: it cannot be pickled or copied: convert() writes its rows to files")
