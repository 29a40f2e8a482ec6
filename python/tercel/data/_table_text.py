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
    if hasattr(value, "dtype") and hasattr(value, "item"):  # NumPy's
        value = _time_texts(value) if _is_time(value) else value.item()
    if type(value).__name__ == "NAType":  # pandas'; comparing it gives itself
        return ""
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


def _is_list(value: Any) -> bool:
    return not isinstance(value, (str, bytes)) and hasattr(type(value), "__iter__")


def _list_text(values: Any, weights: Any, separator: str) -> str:
    if not _is_list(values):
        return _scalar(values)
    texts = [_scalar(one) for one in values]
    for text in texts:
        if separator in text:
            raise ValueError(f"expected values of lists without their separator {separator!r}, found {text!r}")
    if weights is not None:
        if len(weights) != len(texts):
            raise ValueError(f"expected a weight for each of {len(texts)} values, found {len(weights)}")
        texts = [f"{text}:{_scalar(weight)}" for text, weight in zip(texts, weights)]
    return separator.join(texts)


def _texts(values: Sequence[Any], weights: Optional[Sequence[Any]], separator: str) -> Tuple[List[str], bool]:
    """A text for each row, quoted where it has to be; whether there are lists."""
    kinds = set(map(type, values))
    if weights is None and kinds == {int}:
        return list(map(str, values)), False
    lists = any(_is_list(value) for value in values)
    if weights is not None:
        if not lists:  # scalars are lists of one
            values = [[value] if _scalar(value) else None for value in values]
            weights = [[weight] for weight in weights]
        texts = [_list_text(value, weight if _is_list(value) else None, separator)
                 for value, weight in zip(values, weights)]
    elif lists:
        texts = [_list_text(value, None, separator) for value in values]
    else:
        texts = list(values) if kinds == {str} else list(map(_scalar, values))
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
    for name in names:
        if name not in known:
            raise ValueError(f"expected a column {name!r}, found {', '.join(map(str, known))}")
    return {name: of(name) for name in names}


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


def chunks_of(table: Any, names: Sequence[str]) -> Iterator[Mapping[str, List[Any]]]:
    """The columns of these names, as lists of Python's values for some rows at a time."""
    fields = getattr(getattr(table, "dtype", None), "names", None)
    if isinstance(table, ParquetFiles):
        for batch in table.batches(names):
            yield from chunks_of(batch, names)
        return
    if isinstance(table, Mapping):
        columns = _named(table, names, list(table), table.__getitem__)
    elif fields is not None:
        columns = _named(table, names, fields, table.__getitem__)
    elif hasattr(table, "iloc"):
        series = _named(table, names, list(table.columns), lambda name: table[name].iloc)
        for begin in range(0, len(table), CHUNK_ROWS):
            yield {name: rows[begin:begin + CHUNK_ROWS].tolist() for name, rows in series.items()}
        return
    elif hasattr(table, "height") or hasattr(table, "num_rows"):  # polars, pyarrow
        known = list(table.columns if hasattr(table, "height") else table.schema.names)
        columns = _named(table, names, known, lambda name: table[name])
    else:
        for batch in _batches_of(table):
            yield from chunks_of(batch, names)
        return
    yield from _sliced(columns, _length_of(columns))


def _batches_of(stream: Any) -> Iterator[Any]:
    """The batches of an Arrow stream of any producer: only Arrow itself knows all its types."""
    try:
        import pyarrow
    except ImportError:
        try:
            import polars
        except ImportError:
            raise ImportError(f"convert: reading a {type(stream).__name__} needs pyarrow or polars: pip install "
                              "pyarrow") from None
        yield polars.DataFrame(stream)
        return
    yield from pyarrow.RecordBatchReader.from_stream(stream)


def write_text(table: Any, names: Sequence[str], weighted: Sequence[str], path: str, separator: str,
               progress: Optional[Callable[[int], Any]]) -> Set[str]:
    """
    Writes columns as text with a header, separated by tabs: the values of lists by the separator, with the weights that
    the column NAME_weight has for a weighted one; missing values empty, times in ISO 8601. Returns the columns of lists.
    """
    weights = {name: f"{name}_weight" for name in weighted}
    lists: Set[str] = set()
    rows = 0
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write("\t".join(_texts(list(names), None, separator)[0]) + "\n")
        for chunk in chunks_of(table, [*names, *weights.values()]):
            columns = []
            for name in names:
                try:
                    texts, has_lists = _texts(chunk[name], chunk[weights[name]] if name in weights else None, separator)
                except TypeError as error:
                    raise TypeError(f"column {name!r}: {error}") from None
                except ValueError as error:
                    raise ValueError(f"column {name!r}: {error}") from None
                columns.append(texts)
                if has_lists:
                    lists.add(name)
            file.writelines(f"{line}\n" for line in map("\t".join, zip(*columns)))
            rows += len(columns[0])
            if progress is not None:
                progress(rows)
    return lists
