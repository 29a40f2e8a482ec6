"""Datasets made from text or from other datasets, and generated ones."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, List, Mapping, Optional, Tuple

from tercel import _C
from tercel.data._options import flag_of, name_of, path_of, paths_of, progress_of, takes_options
from tercel.data.dataset import Dataset

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tercel._C import _ConvertDatasetOptions, _CriteoOptions, _CsvOptions, _GenerateOptions, _VerifyOptions

__all__ = ["ConvertResult", "GenerateResult", "convert_criteo", "convert_csv", "convert_dataset", "generate",
           "verify_dataset"]

Progress = Optional[Callable[[int, int], Any]]


@dataclass(frozen=True)
class GenerateResult:
    """A new dataset, and the number of rows with label 1 in its parts."""

    dataset: Dataset
    train_clicks: int
    test_clicks: int


@dataclass(frozen=True)
class ConvertResult(GenerateResult):
    """The same, and for each field the number of different categories in the train rows."""

    categories_seen: Tuple[int, ...]


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


def _convert(work: Callable[..., Any], sources: Any, target: Tuple[Any, ...],
             options: Mapping[str, Any]) -> ConvertResult:
    of, train_clicks, test_clicks, seen = work(paths_of(sources, "sources"), *target, options)
    return ConvertResult(Dataset._wrap(of), train_clicks, test_clicks, tuple(seen))


@takes_options("csv", "format.")
def convert_csv(sources: Any, folder: Any, *, replace: bool = False, progress: Progress = None, format: str = "norm",
                **options: "Unpack[_CsvOptions]") -> ConvertResult:
    """
    Converts a table of text with a label to a dataset, which appears in the folder when it is complete: `tercel convert
    csv` on the command line. `sources` is a path or an iterable of paths of files, plain or gzip. `replace` allows a
    dataset that exists to be replaced. progress(bytes, all_bytes) is called now and then; its exceptions, and Ctrl-C,
    end the work, and nothing is left. ConfigError for invalid options, DataError that names file, line and column for
    invalid text.
    """
    return _convert(_C._convert_csv, sources, _target(folder, format, replace, progress), options)


@takes_options("criteo", "format.")
def convert_criteo(sources: Any, folder: Any, *, replace: bool = False, progress: Progress = None,
                   format: str = "norm", **options: "Unpack[_CriteoOptions]") -> ConvertResult:
    """
    Converts Criteo's click logs, rows of a label, 13 integers and 26 categories, separated by tabs, as convert_csv()
    does: `tercel convert criteo` on the command line.
    """
    return _convert(_C._convert_criteo, sources, _target(folder, format, replace, progress), options)


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
