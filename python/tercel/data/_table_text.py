"""Columns of tables as delimited text: what the conversion of text reads."""

import io
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Callable, List, Optional, Sequence, Set, Tuple

from tercel import _C

CHUNK_ROWS = 1 << 15
LIST_SEPARATOR = "\x1f"
"""Between the values of a list; a control character of ASCII that is made for it."""

_EXPECTED = "numbers, texts, times or lists of these"
_SINGLE = {str, int, float, bool, bytes, type(None)}
_DATES = ("Y", "M", "W", "D")
_TO_QUOTE = ("\t", '"', "\n", "\r")


def _is_time(value: Any) -> bool:
    """Whether it is a datetime64, or an array of them, of NumPy: item() and tolist() make numbers of nanoseconds."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)) and value.dtype.kind == "M"


def _time_text(text: str) -> str:
    """What NumPy writes, as isoformat() of datetimes and of pandas' timestamps does: frames have the same texts."""
    seconds, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0")
    digits = 6 if len(fraction) <= 6 else max(9, len(fraction))
    return "" if text == "NaT" else f"{seconds}.{fraction:0<{digits}}" if fraction else seconds


def _time_texts(values: Any) -> Any:
    """The texts of a datetime64; of an array a list, of lists where it has several dimensions."""
    import numpy

    if isinstance(values, numpy.ma.MaskedArray):
        values = values.filled(numpy.datetime64("NaT"))
    unit = numpy.datetime_data(values.dtype)[0]
    texts = numpy.datetime_as_string(values, unit="D" if unit in _DATES else "s" if unit in ("h", "m") else None)

    def each(of: Any) -> Any:
        return list(map(each, of)) if isinstance(of, list) else _time_text(of)

    return each(texts.tolist())


def _scalar(value: Any) -> str:
    if type(value) is str or type(value) is int:
        return str(value)
    if type(value) is not float and value is not None:
        value = _single(value)
    if value is None or value != value:  # NaN, NaT
        return ""
    if value is True or value is False:
        return "1" if value else "0"
    if isinstance(value, float):
        # Integers that pandas has as floats because some are missing keep their texts.
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    return str(value)


def _single(value: Any) -> Any:
    """A number of NumPy's as one of Python's, None for what stands for nothing; TypeError for a value of several parts."""
    if hasattr(value, "dtype") and hasattr(value, "item") and getattr(value, "ndim", 0) == 0:  # NumPy's
        if type(value).__name__ == "MaskedConstant":  # its item() is 0
            return None
        value = _time_texts(value) if _is_time(value) else value.item()
    if hasattr(type(value), "__iter__") and not isinstance(value, (str, bytes)):
        found = "a list in a list" if _is_list(value) else f"a {type(value).__name__}"
        raise TypeError(f"expected {_EXPECTED}, found {found}: {value!r:.80}")
    return None if type(value).__name__ == "NAType" else value  # pandas' NA: comparing it gives itself


def _is_list(value: Any) -> bool:
    """Whether it is a list, a tuple, an array or a series: what has its values in an order."""
    kind = type(value)
    if kind is list or kind in _SINGLE:
        return kind is list
    return (hasattr(kind, "__getitem__") and hasattr(kind, "__iter__") and hasattr(kind, "__len__")
            and not isinstance(value, (str, bytes, bytearray, memoryview, Mapping)) and getattr(value, "ndim", 1) != 0)


def _list_text(values: Any, weights: Any, weighted: bool, separator: str) -> str:
    """The text of a list, or of one value; with weights, if it is weighted."""
    if not _is_list(values):
        return _scalar(values)
    texts = [_scalar(one) for one in values]
    for text in texts:
        if separator in text:
            raise ValueError(f"expected values of lists without their separator {separator!r}, found {text!r}")
    if not weighted:
        return separator.join(texts)
    found = [_scalar(weight) for weight in weights] if _is_list(weights) else []
    if len(found) != len(texts):
        kind = len(found) if _is_list(weights) else _scalar(weights) or "none"
        raise ValueError(f"expected a weight for each of {len(texts)} values, found {kind}")
    for what, known in (("weight for each value", found), ("value for each weight", texts)):
        if "" in known:
            raise ValueError(f"expected a {what}, found a missing one")
    return separator.join(f"{text}:{weight}" for text, weight in zip(texts, found))


class _CellError(ValueError):
    """What is wrong with a value, in a row of those that are converted together."""

    def __init__(self, row: int, reason: object) -> None:
        super().__init__(f"row {row}: {reason}")
        self.row, self.reason = row, reason


def _each(text: Callable[..., str], *columns: Sequence[Any]) -> List[str]:
    """The text of each row; _CellError."""
    try:
        return list(map(text, *columns))
    except (TypeError, ValueError):
        for row, values in enumerate(zip(*columns)):  # counting from the start would take time
            try:
                text(*values)
            except (TypeError, ValueError) as error:
                raise _CellError(row, error) from None
        raise


def _texts(values: Sequence[Any], weights: Optional[Sequence[Any]], separator: str) -> Tuple[List[str], bool]:
    """A text for each row, quoted where it has to be; whether there are lists. _CellError."""
    kinds = set(map(type, values))
    if weights is None and kinds == {int}:
        return list(map(str, values)), False
    lists = not kinds <= _SINGLE and any(map(_is_list, values))
    if weights is not None:
        if not lists:  # scalars are lists of one
            values = _each(_scalar, values)
            values, weights = [[value] if value else None for value in values], [[weight] for weight in weights]
        texts = _each(lambda value, weight: _list_text(value, weight, True, separator), values, weights)
    elif lists:
        texts = _each(lambda value: _list_text(value, None, False, separator), values)
    else:
        texts = list(values) if kinds == {str} else _each(_scalar, values)
    joined = "\0".join(texts)
    if any(mark in joined for mark in _TO_QUOTE):
        texts = ['"' + text.replace('"', '""') + '"' if any(mark in text for mark in _TO_QUOTE) else text
                 for text in texts]
    return texts, lists


def _list_of(values: Any) -> List[Any]:
    dtype = getattr(values, "dtype", None)
    if getattr(dtype, "time_unit", "") == "ns" and getattr(dtype, "time_zone", "") is None:
        values = values.to_numpy()  # of polars, whose lists have microseconds
    if _is_time(values):
        return list(_time_texts(values))
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(values, method):
            return list(getattr(values, method)())
    return list(values)


def _sliced(columns: Mapping[str, Any], rows: int) -> Iterator[Mapping[str, List[Any]]]:
    for begin in range(0, rows, CHUNK_ROWS):
        yield {name: _list_of(values[begin:begin + CHUNK_ROWS]) for name, values in columns.items()}


def _length_of(columns: Mapping[str, Any]) -> int:
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"expected columns of the same number of rows, got {lengths}")
    return next(iter(lengths.values()), 0)


def _named(table: Any, names: Sequence[str], known: Sequence[str], of: Callable[[str], Any]) -> Mapping[str, Any]:
    columns = {}
    for name in names:
        if name not in known:
            raise ValueError(f"expected a column {name!r}, found {', '.join(map(str, known))}")
        if known.count(name) > 1:
            raise ValueError(f"expected one column {name!r}, found several")
        columns[name] = of(name)
        _check_type(name, columns[name])
    return columns


def _check_type(name: str, column: Any) -> None:
    """ConfigError for a column of structs, maps or lists of lists, whatever its values are."""
    dtype = getattr(column, "dtype", None)
    kind = getattr(dtype, "pyarrow_dtype", None) or getattr(column, "type", None)  # of pandas, of pyarrow
    pyarrow, polars = sys.modules.get("pyarrow"), sys.modules.get("polars")
    nested = False
    if pyarrow is not None and isinstance(kind, pyarrow.DataType):
        element = kind.value_type if hasattr(kind, "value_type") and not pyarrow.types.is_map(kind) else kind
        nested = pyarrow.types.is_nested(element)
    elif polars is not None and isinstance(dtype, polars.DataType):
        kind, nested = dtype, getattr(dtype, "inner", dtype).is_nested()
    elif getattr(dtype, "names", None) is not None:
        kind, nested = "a struct", True
    if nested:
        raise _C.ConfigError(f"column {name!r}: expected {_EXPECTED}, found {kind}")


class _RemoteFile(io.RawIOBase):
    """A file of a store, by its URL, for pyarrow."""

    def __init__(self, url: str) -> None:
        self._file = _C._DataFile.open(url)
        self._size: int = self._file.size()
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        return self._position

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._file.read_at(self._position, self._size if size < 0 else size)
        self._position += len(data)
        return data


@dataclass
class ParquetFiles:
    """Parquet files, by path or URL, as a table."""

    paths: Sequence[str]

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Record batches of pyarrow."""
        try:
            import pyarrow.parquet
        except ImportError:
            raise ImportError("convert: reading texts of Parquet files needs pyarrow: pip install pyarrow") from None
        for path in self.paths:
            with pyarrow.parquet.ParquetFile(_RemoteFile(path) if "://" in path else path) as file:
                known = file.schema_arrow.names
                yield from file.iter_batches(CHUNK_ROWS, columns=[name for name in names if name in known])


def chunks_of(table: Any, names: Sequence[str], what: str) -> Iterator[Mapping[str, List[Any]]]:
    """The columns of these names, as lists of Python's values for some rows at a time."""
    fields = getattr(getattr(table, "dtype", None), "names", None)
    if isinstance(table, ParquetFiles):
        for batch in table.batches(names):
            yield from chunks_of(batch, names, what)
        return
    if isinstance(table, Mapping):
        columns = _named(table, names, list(table), table.__getitem__)
    elif fields is not None:
        columns = _named(table, names, fields, table.__getitem__)
    elif hasattr(table, "iloc"):
        frame = _named(table, names, list(table.columns), table.__getitem__)
        for begin in range(0, len(table), CHUNK_ROWS):
            yield {name: rows.iloc[begin:begin + CHUNK_ROWS].tolist() for name, rows in frame.items()}
        return
    elif hasattr(table, "height") or hasattr(table, "num_rows"):  # polars, pyarrow
        known = list(table.columns if hasattr(table, "height") else table.schema.names)
        columns = _named(table, names, known, lambda name: table[name])
    else:
        for batch in _batches_of(table, what):
            yield from chunks_of(batch, names, what)
        return
    yield from _sliced(columns, _length_of(columns))


class _Batch:
    """The stream of an object with __arrow_c_array__."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return _C._stream_of_batch(*self._rows.__arrow_c_array__())


def _batches_of(table: Any, what: str) -> Iterator[Any]:
    """The batches of an Arrow stream of any producer: only Arrow itself knows all its types."""
    stream = table if hasattr(table, "__arrow_c_stream__") else _Batch(table)
    try:
        import pyarrow
    except ImportError:
        try:
            import polars
        except ImportError:
            raise ImportError(f"convert: reading a {type(table).__name__} needs pyarrow or polars: pip install "
                              "pyarrow") from None
        yield polars.DataFrame(stream)
        return
    try:
        # A reader of pyarrow itself raises what the Python code behind it does, such as KeyboardInterrupt.
        yield from (stream if isinstance(stream, pyarrow.RecordBatchReader)
                    else pyarrow.RecordBatchReader.from_stream(stream))
    except pyarrow.ArrowException as error:
        if _C._is_interrupt(str(error)):
            raise KeyboardInterrupt from None
        raise _C.DataError(f"{what}: Arrow: {error}") from None


def write_text(table: Any, what: str, names: Sequence[str], bags: Sequence[str], weighted: Sequence[str], path: str,
               progress: Optional[Callable[[int], Any]]) -> Set[str]:
    """
    Writes columns as text with a header, separated by tabs: the values of lists by LIST_SEPARATOR, with the weights that
    the column NAME_weight has for a weighted one; missing values empty, times in ISO 8601. Returns the columns of lists,
    which only those of `bags` may be. DataError "<what>: row 1: column 'x': ..." for values that have no text.
    """
    weights = {name: f"{name}_weight" for name in weighted}
    lists: Set[str] = set()
    rows = 0
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write("\t".join(_texts(list(names), None, LIST_SEPARATOR)[0]) + "\n")
        for chunk in chunks_of(table, [*names, *weights.values()], what):
            columns = []
            for name in names:
                values = chunk[name]
                try:
                    texts, has_lists = _texts(values, chunk[weights[name]] if name in weights else None, LIST_SEPARATOR)
                    if has_lists and name not in bags:
                        raise _CellError(next(row for row, value in enumerate(values) if _is_list(value)),
                                         "expected one value, found a list, which only categorical columns may have")
                except _CellError as error:
                    raise _C.DataError(f"{what}: row {rows + error.row}: column {name!r}: {error.reason}") from None
                columns.append(texts)
                if has_lists:
                    lists.add(name)
            file.writelines(f"{line}\n" for line in map("\t".join, zip(*columns)))
            rows += len(columns[0])
            if progress is not None:
                progress(rows)
    return lists
