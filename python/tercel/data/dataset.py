"""Datasets: folders with a dataset.json, and files of other tools."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Tuple

from tercel import _C
from tercel.data._options import flag_of, name_of, path_of, takes_options
from tercel.data.batch_reader import BatchReader, ReaderPosition

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tercel._C import _FilesOptions, _ReaderOptions

__all__ = ["Column", "DataFile", "DataPart", "Dataset", "Schema", "Slot", "open_dataset", "open_files"]


@dataclass(frozen=True)
class Slot:
    """
    A categorical field. Its keys are `first_key` to `first_key + size - 1`, or any if `size` is 0; a row has at most
    `hotness` of them, each with a weight if it is `weighted`.
    """

    name: str
    size: int = 0
    first_key: int = 0
    hotness: int = 1
    weighted: bool = False


@dataclass(frozen=True)
class Column:
    """A further value of each row, such as a time or a group: no input of a model. The type is "f32" or "i64"."""

    name: str
    type: str = "f32"


@dataclass(frozen=True)
class Schema:
    """
    Contents of a row. The names are empty if the dataset has none. `num_keys` is the number of rows that one table for
    all slots needs, the end of the last key range; 0 if a slot's size is unknown.
    """

    label_dim: int
    dense_dim: int
    label_names: Tuple[str, ...]
    dense_names: Tuple[str, ...]
    slots: Tuple[Slot, ...]
    num_keys: int
    columns: Tuple[Column, ...] = ()

    @property
    def slot_size_array(self) -> List[int]:
        """
        HugeCTR's: the number of keys of each slot, by which those of later ones are offset, and 0 of a slot that shares
        the keys of the next one. Where no such array gives the slots their keys, their sizes; 0 where any key may occur.
        """
        sizes = [slot.size for slot in self.slots]
        known = sizes.index(0) if 0 in sizes else len(sizes)
        if known == 0 or self.slots[0].first_key != 0 or any(sizes[known:]):
            return sizes
        first = [slot.first_key for slot in self.slots[:known]]
        steps = [after - before for before, after in zip(first, first[1:])] + [sizes[known - 1]]
        # Each slot has the size of the next step above 0.
        following = sizes[known - 1]
        for step, size in zip(reversed(steps), reversed(sizes[:known])):
            following = step or following
            if step < 0 or following != size:
                return sizes
        return steps + sizes[known:]

    @classmethod
    def _of(cls, values: Dict[str, Any]) -> "Schema":
        """Of the dict that the library gives."""
        for name in ("label_names", "dense_names"):
            values[name] = tuple(values[name])
        values["slots"] = tuple(Slot(**slot) for slot in values["slots"])
        values["columns"] = tuple(Column(**column) for column in values["columns"])
        return cls(**values)

    def _values(self) -> Dict[str, Any]:
        """As the library reads it."""
        return {**vars(self), "slots": [vars(slot) for slot in self.slots],
                "columns": [vars(column) for column in self.columns]}


@dataclass(frozen=True)
class DataFile:
    """A file of rows: its path, size, XXH3-64 checksum in hexadecimal digits (or ""), and number of rows."""

    path: str
    bytes: int
    checksum: str
    rows: int


@dataclass(frozen=True)
class DataPart:
    """
    The train, validation or test rows: files in order. `truth` is given for generated data: AUC and log loss of the probabilities
    that generated these rows.
    """

    name: str
    rows: int
    bytes: int
    files: Tuple[DataFile, ...]
    truth: Optional[Mapping[str, float]] = field(hash=False)

    def __len__(self) -> int:
        return self.rows

    def __bool__(self) -> bool:
        return True


class Dataset:
    """
    A description of rows in files, given by its folder or its dataset.json. IoError if there is nothing, DataError if
    the description is damaged or a file is missing or has another size. len() is the number of all rows. Paths are made
    absolute when a dataset is opened or made. Pickling is a ConfigError if a file's name is not UTF-8.
    """

    _of: Any

    def __init__(self, path: Any) -> None:
        self._of = _C._Dataset.load(path_of(path, "path"))

    @classmethod
    def _wrap(cls, of: Any) -> "Dataset":
        dataset = cls.__new__(cls)
        dataset._of = of
        return dataset

    @property
    def folder(self) -> str:
        """The dataset's folder; "" for files without a description."""
        folder: str = self._of.folder()
        return folder

    @property
    def format(self) -> str:
        """The name of the format of the files, such as "norm"."""
        name: str = self._of.format()[0]
        return name

    @property
    def format_options(self) -> Dict[str, Any]:
        """What the files do not say themselves, such as {"key_type": "i64", "check_mode": "sum"}."""
        options: Dict[str, Any] = self._of.format()[1]
        return options

    @property
    def schema(self) -> Schema:
        """Contents of a row."""
        return Schema._of(self._of.schema())

    def _part(self, name: str) -> Optional[DataPart]:
        rows, size, files, truth = self._of.part(name)
        return DataPart(name, rows, size, tuple(DataFile(**file) for file in files), truth) if files else None

    @property
    def train(self) -> DataPart:
        """The train rows."""
        return self._part("train") or DataPart("train", 0, 0, (), None)

    @property
    def valid(self) -> Optional[DataPart]:
        """The validation rows; None if there are none."""
        return self._part("valid")

    @property
    def test(self) -> Optional[DataPart]:
        """The test rows; None if there are none."""
        return self._part("test")

    @property
    def parts(self) -> Dict[str, DataPart]:
        """The parts by name, "train", "valid" and "test"; only those that there are."""
        found = ((name, self._part(name)) for name in ("train", "valid", "test"))
        return {name: part for name, part in found if part is not None}

    @property
    def conversion(self) -> Optional[Dict[str, Any]]:
        """How the dataset was made: the tool, its version, sources and settings; None if it is not known."""
        conversion: Optional[Dict[str, Any]] = self._of.conversion()
        return conversion

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts.values())

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        rows = ", ".join(f"{name}: {len(part):,} rows" for name, part in self.parts.items())
        return f"Dataset({self.folder!r}, format={self.format!r}, {rows})"

    def __getstate__(self) -> Tuple[str, str]:
        return self._of.to_json(), self.folder

    def __setstate__(self, state: Tuple[str, str]) -> None:
        self._of = _C._Dataset.from_json(*state)

    @takes_options("batches")
    def batches(self, part: str = "train", *, start: Optional[ReaderPosition] = None,
                **options: "Unpack[_ReaderOptions]") -> BatchReader:
        """
        A reader of the part's rows, batch by batch, which reads ahead on its own threads. `start`: the position of an
        earlier reader, where this one goes on. `inputs` groups consecutive slots: {"user": 3, "item": 5} gives
        batch["user"] the first three; a list of ("user", 3) is the same. None stands for an option's default.

        ConfigError for unknown, invalid or impossible options and a position of another order, DataError and IoError
        for files that do not fit the description.
        """
        return BatchReader(self, part, start=start, **options)


def open_dataset(path: Any) -> Dataset:
    """Opens a dataset, given by its folder or its dataset.json; see Dataset."""
    return Dataset(path)


@takes_options("open_files.")
def open_files(format: str, *, folder: Any = None, replace: bool = False,
               **options: "Unpack[_FilesOptions]") -> Dataset:
    """
    Describes files of another tool, which stay where they are: `tercel convert norm` on the command line. Headers and
    sizes are checked, records when they are read. With `folder` the description is stored there as a dataset;
    `replace` allows one that exists to be replaced. ConfigError for invalid options, DataError and IoError for files
    that do not fit them.
    """
    target = None if folder is None else path_of(folder, "folder")
    name, force = name_of(format, "format"), flag_of(replace, "replace")
    return Dataset._wrap(_C._open_dataset_files(name, target, force, options))
