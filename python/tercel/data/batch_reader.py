"""Batches of a dataset's rows."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, NoReturn, Optional

from tercel import _C
from tercel._C import Tensor
from tercel.data._options import name_of, takes_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tercel._C import _ReaderOptions
    from tercel.data.dataset import Dataset, Schema

__all__ = ["Batch", "BatchReader", "ReaderPosition", "SparseBatch"]


@dataclass(frozen=True)
class ReaderPosition:
    """
    Where a reader's next batch begins: `row` rows of `epoch`, and the parameters of the order of rows, which are 0
    without shuffling. Can be compared, pickled and, by dataclasses.asdict(), stored as JSON.
    """

    epoch: int
    row: int
    epoch_rows: int
    shuffle: bool = False
    seed: int = 0
    shuffle_window: int = 0
    shuffle_block: int = 0
    shuffle_unit: str = "rows"
    bad_records: int = 0
    hold_out: int = 0
    held_out: bool = False


class SparseBatch:
    """
    The keys of consecutive slots. Bag i has keys[row_offsets[i]] to keys[row_offsets[i + 1] - 1]; it belongs to row
    i // slot_num and slot i % slot_num, or, with bag_order="slot_major", to slot i // rows and row i % rows.
    """

    __slots__ = ("name", "slot_num", "hotness", "bag_order", "keys", "key_weights", "_row_offsets", "_shared")

    name: str
    """Of the input."""
    slot_num: int
    """Number of slots."""
    hotness: int
    """Every bag is known to have this many keys; 0: bags may differ."""
    bag_order: str
    """"sample_major" or "slot_major"."""
    keys: Tensor
    """[nnz], int64, or int32 with narrow_keys."""
    key_weights: Optional[Tensor]
    """[nnz], float32; None if the files have none."""

    def __init__(self, name: str, slot_num: int, hotness: int, bag_order: str, shared: bool, row_offsets: Tensor,
                 keys: Tensor, key_weights: Optional[Tensor]) -> None:
        self.name, self.slot_num, self.hotness, self.bag_order = name, slot_num, hotness, bag_order
        self.keys, self.key_weights = keys, key_weights
        self._row_offsets, self._shared = row_offsets, shared

    @property
    def row_offsets(self) -> Tensor:
        """[rows * slot_num + 1], of the keys' dtype."""
        if self._shared:
            # The library shares them between batches whose bags all have the same sizes; a caller may write to them.
            self._row_offsets, self._shared = self._row_offsets.clone(), False
        return self._row_offsets

    def __repr__(self) -> str:
        return (f"SparseBatch({self.name!r}, slot_num={self.slot_num}, hotness={self.hotness}, "
                f"bag_order={self.bag_order!r}, nnz={self.keys.numel()})")


class Batch:
    """
    Rows [row, row + rows) of an epoch, in the epoch's order. They are all rows of the batch, or one rank's part of the
    rows [global_row, global_row + global_rows). batch["name"] is an input. The tensors are the batch's own: later
    batches do not change them.
    """

    __slots__ = ("epoch", "row", "rows", "global_row", "global_rows", "labels", "dense", "inputs", "columns",
                 "weights")

    epoch: int
    row: int
    rows: int
    global_row: int
    global_rows: int
    labels: Tensor
    """[rows, label_dim], float32."""
    dense: Tensor
    """[rows, dense_dim], float32."""
    inputs: Dict[str, SparseBatch]
    """The inputs by name; without the option `inputs` there is one, "keys", or none if the dataset has no slots."""
    columns: Dict[str, Tensor]
    """The columns that the reader was asked for, that of the weights too, by name: [rows], float32 or int64."""
    weights: Optional[Tensor]
    """
    [rows], float32: of each row in losses and metrics; None where the reader has no option `weight`. A column of floats
    and its weights are one tensor.
    """

    def __init__(self, epoch: int, row: int, rows: int, global_row: int, global_rows: int, labels: Tensor, dense: Tensor,
                 inputs: List[Any], columns: List[Any], weights: Optional[Tensor] = None) -> None:
        self.epoch, self.row, self.rows = epoch, row, rows
        self.global_row, self.global_rows = global_row, global_rows
        self.labels, self.dense = labels, dense
        self.inputs = {parts[0]: SparseBatch(*parts) for parts in inputs}
        self.columns = dict(columns)
        self.weights = weights

    def __getitem__(self, name: str) -> SparseBatch:
        """The input of this name; KeyError with the names that there are for another one."""
        try:
            return self.inputs[name]
        except KeyError:
            raise KeyError(f"batch: expected one of the inputs {list(self.inputs)}, found {name!r}") from None

    def __contains__(self, name: object) -> bool:
        return name in self.inputs

    __iter__ = None  # with __getitem__ alone it would be iterable

    def __repr__(self) -> str:
        return f"Batch(epoch={self.epoch}, row={self.row}, rows={self.rows}, inputs={list(self.inputs)})"


def _inputs(given: Any) -> Any:
    """{"user": 3} and [("user", 3)] as the list of objects that the library reads."""
    if isinstance(given, Mapping):
        given = list(given.items())
    if not isinstance(given, (list, tuple)):
        raise TypeError(f"inputs: expected a dict from names to numbers of slots, or a list of (name, number), not "
                        f"{type(given).__name__}")
    out = []
    for item in given:
        if isinstance(item, Mapping):
            out.append(dict(item))
        elif isinstance(item, (list, tuple)) and len(item) == 2:
            out.append({"name": item[0], "slot_num": item[1]})
        else:
            raise TypeError(f"inputs: expected (name, number of slots), not {item!r}")
    return out


class BatchReader:
    """
    The rows of a dataset's part, batch by batch; Dataset.batches() makes one.

    A loop over it ends before the first multiple of `epochs` behind the position, or never if that is 0. So each loop
    reads `epochs` epochs, a loop that was left early is continued by the next one, and one that starts in the middle,
    at `start` or after seek(), ends where that loop would have ended. iter(reader) gives the batches one by one.

    Threads start with the first batch and end with close(), at the end of a `with` block, or with the reader. One
    thread may use it at a time: meanwhile another one gets a RuntimeError, also from close(). So does a process that
    was forked since the threads started. Ctrl-C ends the wait for a batch without losing one; a signal's handler may
    read `position` and the numbers of rows and batches. A reader cannot be pickled; its dataset and its position can.

    The first batch with an invalid row, and all later ones, are a DataError "file: record r: byte b: expected ...,
    found ...".
    """

    @takes_options("batches")
    def __init__(self, dataset: "Dataset", part: str = "train", *, start: Optional[ReaderPosition] = None,
                 **options: "Unpack[_ReaderOptions]") -> None:
        values: Dict[str, Any] = dict(options)
        if values.get("inputs") is not None:
            values["inputs"] = _inputs(values["inputs"])
        self._part, self._options = name_of(part, "part"), values
        self._of: Any = _C._BatchReader(dataset._of, part, values)
        self._schema = dataset.schema
        self._options = self._of.options()
        self._epochs: int = self._options["epochs"]
        if start is not None:
            self.seek(start)

    def __iter__(self) -> Iterator[Batch]:
        batches: Iterator[Batch] = self._of.loop(Batch)
        return batches

    def __len__(self) -> int:
        """
        The number of batches that a loop delivers that begins here; TypeError for a reader without end. In a loop it
        counts down, and after the last batch it is the length of the next loop.
        """
        if self._epochs == 0:
            raise TypeError("reader: with epochs=0 there is no last batch")
        position = self.position
        size, left = self._options["batch_size"], position.epoch_rows - position.row
        first = left // size if self._options["drop_last"] else -(-left // size)
        return int(first + (self._epochs - position.epoch % self._epochs - 1) * self.epoch_batches)

    def __bool__(self) -> bool:
        return True  # with __len__ alone, `if reader` would be an error without end

    def __reduce__(self) -> NoReturn:
        raise TypeError("reader: it cannot be pickled or copied: pickle its dataset and its position, and go on with "
                        "dataset.batches(..., start=position)")

    @property
    def part(self) -> str:
        """The part that is read: "train", "valid" or "test"."""
        return self._part

    @property
    def schema(self) -> "Schema":
        """The dataset's Schema."""
        return self._schema

    @property
    def options(self) -> Dict[str, Any]:
        """Every option by name, those that were not given included."""
        return dict(self._options)

    @property
    def epoch_rows(self) -> int:
        """Rows of an epoch, including those of a short last batch that is dropped."""
        rows: int = self._of.epoch_rows()
        return rows

    @property
    def epoch_batches(self) -> int:
        """Batches of a whole epoch."""
        batches: int = self._of.epoch_batches()
        return batches

    @property
    def position(self) -> ReaderPosition:
        """
        Where the next batch begins; Dataset.batches(..., start=position) goes on there. At the end of an epoch this is
        the start of the next one.
        """
        return ReaderPosition(**self._of.position())

    def seek(self, position: ReaderPosition) -> None:
        """
        Goes to a position of a reader of the same rows and order. ConfigError if the number of rows or the order
        differs; whether the rows are the same is not known.
        """
        if not isinstance(position, ReaderPosition):
            raise TypeError(f"reader: expected a ReaderPosition, not {type(position).__name__}")
        self._of.seek(asdict(position))

    def rewind(self) -> None:
        """Goes to the start of the first epoch."""
        self._of.rewind()

    def close(self) -> None:
        """
        Ends the threads and closes the files; the reader cannot be used any more (ValueError). RuntimeError while
        another thread waits for a batch.
        """
        self._of.close()

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        closed: bool = self._of.is_closed()
        return closed

    def __enter__(self) -> "BatchReader":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"BatchReader({self.part!r}, {', '.join(f'{k}={v!r}' for k, v in self._options.items())})"
