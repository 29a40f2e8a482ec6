"""convert(): datasets of whatever there is."""

import os
import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

from tercel import _C
from tercel.data._options import _tables, flag_of, name_of, path_of, paths_of, progress_of, takes_options
from tercel.data.arrow_dataset import ArrowDataset, is_table
from tercel.data.dataset import Dataset, open_files
from tercel.data.making import ConvertResult, Progress, convert_csv, convert_dataset, convert_texts, time_parts_of
from tercel.data._table_text import LIST_SEPARATOR, ParquetFiles, write_text

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tercel._C import _ConvertOptions

__all__ = ["convert"]

_TEXT_ONLY = ("delimiter", "no_header", "skip_lines", "comment", "trim", "lists", "list_separator")


def _option_names(table: str) -> List[str]:
    return [option[0] for option in _tables[table]]


def _list_of(value: Any) -> List[Any]:
    return [] if value is None else [value] if isinstance(value, str) else list(value)


def _columns_of(options: Mapping[str, Any]) -> List[str]:
    """The columns that options name, each once, that of the label first."""
    names = _list_of(options.get("label")) + _list_of(options.get("dense")) + _list_of(options.get("categorical"))
    names += _list_of(options.get("weight_column") or None) + _list_of(options.get("time_column") or None)
    names += [piece.split("=")[0] for piece in time_parts_of(options.get("time_parts") or ()) if "=" in piece]
    return list(dict.fromkeys(names))


def _parquet_paths(source: Any) -> Optional[List[str]]:
    """The files of a source, if they are Parquet files, patterns of them or folders with them."""
    if not isinstance(source, (str, bytes)) and not hasattr(type(source), "__fspath__"):
        if isinstance(source, Mapping) or not hasattr(type(source), "__iter__"):
            return None
    files: Optional[List[str]] = _C._parquet_files(paths_of(source, "source"))
    return files or None


def _encode(tables: Mapping[str, Any], target: Dict[str, Any], progress: Progress,
            options: Dict[str, Any]) -> ConvertResult:
    """Of tables whose categories become keys: as text, by what converts text."""
    for name in _TEXT_ONLY:
        if name in options:
            raise ValueError(f"convert: option {name!r}: it is of text files; tables have columns and lists of their own")
    if "label" not in options:
        raise ValueError("convert: option 'label': expected the name of a column, found none")
    names, weighted = _columns_of(options), _list_of(options.get("weighted"))
    bags = _list_of(options.get("categorical"))
    for name in weighted:
        if name not in names:
            raise ValueError(f"convert: option 'weighted': expected names of categorical columns, found {name!r}")
    told = None if progress is None else lambda rows: progress(rows, 0)
    with tempfile.TemporaryDirectory(prefix="tercel-convert-") as folder:
        files = {part: f"{part}.tsv" for part in tables}
        lists = set(weighted)
        for part, table in tables.items():
            what = "train table" if part == "source" else f"{part} table"
            lists |= write_text(table, what, names, bags, weighted, os.path.join(folder, files[part]), told)
        if lists:
            options.update(list_separator=LIST_SEPARATOR, lists=[name for name in names if name in lists])
        options.update({part: [file] for part, file in files.items() if part != "source"}, delimiter="tab")
        # Names without the folder: it is another one each time, and descriptions have the names.
        return convert_texts(_C._convert_csv, [files["source"]], (*target.values(), progress), options, folder)


def _split(options: Mapping[str, Any]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Those of the columns, and those of the files that are written."""
    of_columns = _option_names("arrow")
    columns = {name: value for name, value in options.items() if name in of_columns}
    return columns, {name: value for name, value in options.items() if name not in columns}


def _written(dataset: Dataset, target: Dict[str, Any], progress: Progress, options: Mapping[str, Any]) -> ConvertResult:
    made = convert_dataset(dataset, progress=progress, **target, **options)
    return ConvertResult(made, -1, -1, -1, (), 0, 0)


@takes_options("csv", "arrow", "convert_dataset", "format.")
def convert(source: Any, folder: Any, *, valid: Any = None, test: Any = None, encode: bool = True, replace: bool = False,
            progress: Progress = None, format: str = "norm", **options: "Unpack[_ConvertOptions]") -> ConvertResult:
    """
    Writes a dataset of whatever `source` is; it appears in the folder when it is complete. `format` is that of its
    files. `source` is one of these, and `valid` and `test` may be further ones of the same kind:

    - a table: what ArrowDataset takes. Any object with __arrow_c_stream__ that is not a table of pyarrow, polars or
      pandas, such as a query of DuckDB, needs pyarrow or polars to be installed if its categories are encoded;
    - paths of text files, plain or gzip: convert_csv() with the same options; tabs separate the columns of *.tsv;
    - paths or URLs of Parquet files, patterns of them ("part-*.parquet") or folders with them, as open_files() takes them;
    - a Dataset: convert_dataset(), without `valid` and `test`.

    Categories, texts or numbers, become keys by a vocabulary or hashes, numbers are transformed and rows are split as
    convert_csv() does: options min_count, hash_buckets, dense_transform, positive, valid_every ... With encode=False the
    categorical columns of tables and Parquet files are keys already and dense values stay as they are; the options are
    then those of ArrowDataset (slot_size_array, nnz_per_slot, fill_null_key ...) and those of convert_dataset(). Lists in a
    column are bags of values; weighted columns have their weights in a column NAME_weight. Columns that are not named
    are left out. ConfigError for columns of structs, maps or lists of lists; DataError that names table, row and column for
    such values, for lists in other columns than categorical ones and for weights that are missing.

    Tables and Parquet files that are encoded are written as text, source.tsv, valid.tsv and test.tsv, to TMPDIR first:
    errors name its lines, of which the first is a header. The same rows give the same files, whatever they come from.
    progress(done, all) is called now and then, in rows, with 0 for all where their number is not known, or bytes; its
    exceptions, and Ctrl-C, end the work, and nothing is left. In the result, numbers of clicks are -1 where they are not
    counted, for rows that are not encoded.
    """
    flag_of(encode, "encode")
    progress_of(progress, "progress")
    target = {"folder": path_of(folder, "folder"), "format": name_of(format, "format"),
              "replace": flag_of(replace, "replace")}
    given: Dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    parts = {name: value for name, value in (("source", source), ("valid", valid), ("test", test)) if value is not None}
    if isinstance(source, Dataset):
        if len(parts) > 1:
            raise ValueError("convert: expected no valid and test beside a Dataset, which has parts of its own")
        return _written(source, target, progress, given)
    if is_table(source):
        if encode:
            return _encode(parts, target, progress, given)
        columns, rest = _split(given)
        return _written(ArrowDataset(source, valid=valid, test=test, **columns), target, progress, rest)
    parquet = {name: _parquet_paths(value) for name, value in parts.items()}
    if parquet["source"] is not None:
        for name, paths in parquet.items():
            if paths is None:
                raise ValueError(f"convert: {name}: expected Parquet files, as the others are, found {parts[name]!r}")
        if encode:
            return _encode({name: ParquetFiles(paths) for name, paths in parquet.items() if paths}, target, progress, given)
        columns, rest = _split(given)
        columns = {name: _list_of(value) if name in ("label", "dense", "categorical") else value
                   for name, value in columns.items()}
        files = {"train" if name == "source" else name: paths for name, paths in parquet.items()}
        return _written(open_files("parquet", **files, **columns), target, progress, rest)
    if not encode:
        raise ValueError("convert: encode=False: expected a table or Parquet files, whose keys are integers, found text")
    texts = [os.fsdecode(path) for path in paths_of(source, "source")]
    if texts and all(path.endswith((".tsv", ".tsv.gz")) for path in texts):
        given.setdefault("delimiter", "tab")
    given.update({name: value for name, value in parts.items() if name != "source"})
    return convert_csv(texts, progress=progress, **target, **given)
