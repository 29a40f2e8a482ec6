"""Datasets made from text or from other datasets, and generated ones."""

import operator
import os
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Tuple

from tercel import _C
from tercel.data._options import flag_of, name_of, path_of, paths_of, progress_of, takes_options
from tercel.data.dataset import Dataset

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tercel._C import (_ConvertDatasetOptions, _CriteoOptions, _CsvOptions, _GenerateOptions, _LibffmOptions,
                           _LibsvmOptions, _LikeOptions, _MovielensOptions, _VerifyOptions)

__all__ = ["ConvertResult", "FieldSummary", "GenerateResult", "convert_criteo", "convert_csv", "convert_dataset",
           "convert_libffm", "convert_libsvm", "convert_like", "convert_movielens", "generate", "verify_dataset"]

Progress = Optional[Callable[[int, int], Any]]


@dataclass(frozen=True)
class GenerateResult:
    """A new dataset, and the number of rows with label 1 in its parts."""

    dataset: Dataset
    train_clicks: int
    test_clicks: int


@dataclass(frozen=True)
class FieldSummary:
    """
    A field of a converted dataset: different categories of its train rows, how many of them were dropped, with fewer rows
    than min_count, the number of values that are not missing, and how many of those belong to dropped categories.
    """

    name: str
    categories: int
    dropped_categories: int
    values: int
    dropped_values: int


@dataclass(frozen=True)
class ConvertResult(GenerateResult):
    """
    The same, with validation rows, what became of each field's categories (nothing where a vocabulary was given), the
    number of values that lists had beyond max_hotness, and of train rows that negative_rate left out.
    """

    valid_clicks: int
    fields: Tuple[FieldSummary, ...]
    cut_values: int
    left_out_negatives: int

    @property
    def categories_seen(self) -> Tuple[int, ...]:
        """For each field the number of different categories in the train rows."""
        return tuple(field.categories for field in self.fields)


def _target(folder: Any, format: Any, replace: Any, progress: Any) -> Tuple[Any, ...]:
    return (path_of(folder, "folder"), name_of(format, "format"), flag_of(replace, "replace"),
            progress_of(progress, "progress"))


@takes_options("generate", "format.")
def generate(folder: Any, *, replace: bool = False, progress: Progress = None, format: str = "norm",
             **options: "Unpack[_GenerateOptions]") -> GenerateResult:
    """
    Writes a synthetic click log with a known best possible AUC as a dataset, which appears in the folder when it is
    complete: `tercel generate` on the command line. `replace` allows a dataset that exists to be replaced.
    progress(rows, all_rows) is called now and then; its exceptions, and Ctrl-C, end the work, and nothing is left.
    ConfigError for invalid options, IoError if the disk lacks space.
    """
    of, train_clicks, test_clicks = _C._generate_dataset(*_target(folder, format, replace, progress), options)
    return GenerateResult(Dataset._wrap(of), train_clicks, test_clicks)


def _pieces(value: Any) -> Any:
    """A list of texts, or one text with commas between them, as on the command line."""
    return value.split(",") if isinstance(value, str) else value


def time_parts_of(value: Any) -> Any:
    """The option time_parts as a list of texts: of "ts=hour,weekday", of such a list or {"ts": ["hour", "weekday"]}."""
    if isinstance(value, Mapping):
        return [f"{name}={part}" for name, parts in value.items() for part in _pieces(parts)]
    return _pieces(value)


def _by_column(value: Any) -> Any:
    """An option by column: 4, {"ip": 2}, or texts such as "4", "ip=2" and "4,ip=2"."""
    value = _pieces(value)
    if isinstance(value, Mapping):
        return [f"{name}={number}" for name, number in value.items()]
    return str(operator.index(value)) if hasattr(type(value), "__index__") and not isinstance(value, bool) else value


def _number_by_column(value: Any) -> Any:
    """The same for any numbers: 0.5, {"price": 0.5}."""
    return repr(float(value)) if isinstance(value, float) else _by_column(value)


def _bound(value: Any) -> Any:
    """A row or a time as text; datetimes without a zone are in UTC."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float):
        return repr(float(value))
    return str(operator.index(value)) if hasattr(type(value), "__index__") and not isinstance(value, bool) else value


def _text_options(options: Mapping[str, Any]) -> Dict[str, Any]:
    texts = {name: value for name, value in options.items() if value is not None}
    for name in ("min_count", "hash_buckets", "max_hotness", "hex_modulo"):
        if name in texts:
            texts[name] = _by_column(texts[name])
    for name in ("fill_missing", "clip_min", "clip_max"):
        if name in texts:
            texts[name] = _number_by_column(texts[name])
    if "time_parts" in texts:
        texts["time_parts"] = time_parts_of(texts["time_parts"])
    for name in ("cross", "shared_keys"):
        if name in texts:
            texts[name] = _pieces(texts[name])
    for name in ("test_from", "valid_from"):
        if name in texts:
            texts[name] = _bound(texts[name])
    for name in ("test", "valid"):
        if name in texts:
            texts[name] = [os.fsdecode(path) for path in paths_of(texts[name], name)]
    return texts


def _result(made: Tuple[Any, ...]) -> ConvertResult:
    of, train, valid, test, fields, cut, left_out = made
    return ConvertResult(Dataset._wrap(of), train, test, valid, tuple(FieldSummary(*field) for field in fields), cut,
                         left_out)


def convert_texts(work: Callable[..., Any], sources: Any, target: Tuple[Any, ...], options: Mapping[str, Any],
                  source_folder: str = "") -> ConvertResult:
    """By a function of the C++ library. Relative paths of sources, test and valid start in the folder."""
    return _result(work(paths_of(sources, "sources"), *target, _text_options(options), source_folder))


@takes_options("csv", "format.")
def convert_csv(sources: Any, folder: Any, *, replace: bool = False, progress: Progress = None, format: str = "norm",
                **options: "Unpack[_CsvOptions]") -> ConvertResult:
    """
    Converts a table of text with a label to a dataset, which appears in the folder when it is complete: `tercel convert
    csv` on the command line. `sources` is a path or an iterable of paths of files, plain or gzip. `replace` allows a
    dataset that exists to be replaced. progress(bytes, all_bytes) is called now and then; its exceptions, and Ctrl-C,
    end the work, and nothing is left. Options by column are a number, a dict from columns to numbers, or text as on the
    command line ("2,ip=10"); time_parts, cross and shared_keys may be such a text too ("ts=hour,weekday",
    "C1+C2,C3+C4") or a list, time_parts also a dict ({"ts": ["hour", "weekday"]}); test_from and valid_from may be
    numbers and datetimes.
    ConfigError for invalid options, DataError that names file, line and column for invalid text.
    """
    return convert_texts(_C._convert_csv, sources, _target(folder, format, replace, progress), options)


@takes_options("criteo", "format.")
def convert_criteo(sources: Any, folder: Any, *, replace: bool = False, progress: Progress = None,
                   format: str = "norm", **options: "Unpack[_CriteoOptions]") -> ConvertResult:
    """
    Converts Criteo's click logs, rows of a label, 13 integers and 26 categories, separated by tabs, as convert_csv()
    does: `tercel convert criteo` on the command line. `recipe` sets the defaults of the other options.
    """
    return convert_texts(_C._convert_criteo, sources, _target(folder, format, replace, progress), options)


def _dataset(value: Any, argument: str) -> Any:
    if not isinstance(value, Dataset):
        raise TypeError(f"{argument}: expected a Dataset, not {type(value).__name__}")
    return value._of


@takes_options("convert_dataset", "format.")
def convert_dataset(source: Dataset, folder: Any, format: str, *, replace: bool = False, progress: Progress = None,
                    **options: "Unpack[_ConvertDatasetOptions]") -> Dataset:
    """
    Writes the rows of a dataset in another format, as a dataset that appears in the folder when it is complete: `tercel
    convert dataset` on the command line. Options of the format default to those that the rows had when they were in it.
    progress(rows, all_rows) is called now and then; its exceptions, and Ctrl-C, end the work, and nothing is left.
    ConfigError for rows that the format cannot hold according to the schema, DataError for the first other one.
    """
    return Dataset._wrap(_C._convert_dataset(_dataset(source, "source"), *_target(folder, format, replace, progress),
                                             options))


@takes_options("verify")
def verify_dataset(dataset: Dataset, *, progress: Progress = None,
                   **options: "Unpack[_VerifyOptions]") -> List[str]:
    """
    Reads every file of a dataset and returns a message for each fault, at most max_faults: `tercel verify` on the
    command line. progress(bytes, all_bytes) is called now and then; its exceptions, and Ctrl-C, end the work.
    """
    faults: List[str] = _C._verify_dataset(_dataset(dataset, "dataset"), progress_of(progress, "progress"), options)
    return faults
@takes_options("libsvm", "format.")
def convert_libsvm(sources: Any, folder: Any, *, replace: bool = False, progress: Progress = None,
                   format: str = "norm", **options: "Unpack[_LibsvmOptions]") -> ConvertResult:
    """
    Converts libsvm's text, rows of a label and features index:value, as convert_csv() does, to one slot "features":
    `tercel convert libsvm` on the command line.
    """
    return convert_texts(_C._convert_libsvm, sources, _target(folder, format, replace, progress), options)


@takes_options("libffm", "format.")
def convert_libffm(sources: Any, folder: Any, *, replace: bool = False, progress: Progress = None,
                   format: str = "norm", **options: "Unpack[_LibffmOptions]") -> ConvertResult:
    """
    Converts libffm's text, rows of a label and features field:index:value, as convert_csv() does, to a slot for each
    field: `tercel convert libffm` on the command line.
    """
    return convert_texts(_C._convert_libffm, sources, _target(folder, format, replace, progress), options)


@takes_options("like")
def convert_like(like: Any, sources: Any, folder: Any, *, replace: bool = False, progress: Progress = None,
                 **options: "Unpack[_LikeOptions]") -> ConvertResult:
    """
    Converts further text as a dataset was converted, with its vocabulary, hash settings, transforms and options of the
    text, into files of its format. `like` is that dataset, or the folder of a dataset, a run or a checkpoint. All rows are
    train rows unless options say otherwise. ConfigError if `like` was not converted from text, else as convert_csv().
    """
    of = like if isinstance(like, Dataset) else _like(path_of(like, "like"))
    return _result(_C._convert_like(of._of, paths_of(sources, "sources"), path_of(folder, "folder"),
                                    flag_of(replace, "replace"), progress_of(progress, "progress"),
                                    _text_options(options)))


def _like(path: Any) -> Dataset:
    return Dataset._wrap(_C._text_description(path))


@takes_options("movielens", "format.")
def convert_movielens(sources: Any, folder: Any, *, replace: bool = False,
                      progress: Optional[Callable[[float], Any]] = None,
                      format: str = "norm", **options: "Unpack[_MovielensOptions]") -> GenerateResult:
    """
    Converts MovieLens' ratings (ratings.csv, u.data, ratings.dat) to a dataset of users and items, with items that users
    have not rated as negatives, which appears in the folder when it is complete: `tercel convert movielens` on the
    command line. `sources` is a path or an iterable of paths. progress(share) is called now and then with a number from
    0 to 1; its exceptions, and Ctrl-C, end the work, and nothing is left. ConfigError for invalid options, DataError that
    names file and line for invalid text.
    """
    of, train, test = _C._convert_movielens(paths_of(sources, "sources"), *_target(folder, format, replace, progress),
                                            options)
    return GenerateResult(Dataset._wrap(of), train, test)
