"""Rows that are given as arrays."""

from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

import tercel
from tercel import _C
from tercel._C import Tensor
from tercel.data._arrays import integer_of, tensor_of
from tercel.data._options import flag_of, name_of
from tercel.data.batch_reader import Batch, _inputs
from tercel.data.dataset import Schema, Slot

__all__ = ["ArrayDataset"]


@dataclass(frozen=True)
class _Keys:
    """Keys of some slots of all rows: bag row * slots + slot has keys[offsets[bag]] to keys[offsets[bag + 1] - 1]."""

    slots: int
    keys: Tensor
    offsets: Tensor
    hotness: int  # of every bag; 0: bags differ

    def of_rows(self, rows: Tensor) -> Tuple[Tensor, Tensor]:
        """Keys and offsets of these rows, in this order."""
        count = rows.numel()
        if self.hotness > 0:
            width = self.slots * self.hotness
            return (self.keys.view(-1, width)[rows].view(-1),
                    tercel.arange(0, count * width + 1, self.hotness))
        bags = (rows.view(-1, 1) * self.slots + tercel.arange(self.slots)).view(-1)
        return _gather_bags(self.keys, self.offsets, bags)


def _offsets_of(lengths: Tensor) -> Tensor:
    return tercel.cat([tercel.zeros(1, dtype=tercel.int64), lengths.cumsum(0)])


def _gather_bags(keys: Tensor, offsets: Tensor, bags: Tensor) -> Tuple[Tensor, Tensor]:
    lengths = offsets[bags + 1] - offsets[bags]
    found = _offsets_of(lengths)
    positions = tercel.arange(int(found[-1])) + (offsets[bags] - found[:-1]).repeat_interleave(lengths)
    return keys[positions], found


def _finite(value: Any, what: str) -> Tensor:
    """A copy as [rows, columns] of float32."""
    tensor = tensor_of(value, what)
    if tensor.dim() not in (1, 2):
        raise ValueError(f"{what}: expected an array [rows] or [rows, columns], got {tuple(tensor.shape)}")
    out = tensor.to(tercel.float32, copy=True).contiguous()
    out = out if out.dim() == 2 else out.view(-1, 1)
    wrong = (~out.isfinite()).any(1).nonzero()
    if wrong.numel() > 0:
        raise ValueError(f"{what}: row {int(wrong[0])}: expected finite numbers of float32")
    return out


def _ragged(value: Any, what: str) -> Tuple[Tensor, Tensor]:
    """The keys of a slot and the row offsets, both int64."""
    values, offsets = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
    keys = tensor_of(values, what)
    if keys.is_floating_point() and keys.numel() > 0:
        raise TypeError(f"{what}: expected integers, not {keys.dtype}")
    keys = keys.to(tercel.int64, copy=True).contiguous()
    if offsets is None:
        if keys.dim() not in (1, 2):
            raise ValueError(f"{what}: expected keys [rows] or [rows, n], or (values [nnz], row_offsets [rows + 1]), got "
                             f"{tuple(keys.shape)}")
        width = keys.shape[1] if keys.dim() == 2 else 1
        return keys.view(-1), tercel.arange(keys.shape[0] + 1) * width
    ends = tensor_of(offsets, what)
    if ends.is_floating_point() or ends.dim() != 1 or keys.dim() != 1 or ends.numel() == 0:
        raise ValueError(f"{what}: expected (values [nnz], row_offsets [rows + 1]) of integers, got {tuple(keys.shape)} "
                         f"and {tuple(ends.shape)}")
    ends = ends.to(tercel.int64, copy=True).contiguous()
    if int(ends[0]) != 0 or int(ends[-1]) != keys.numel() or bool((ends[1:] < ends[:-1]).any()):
        raise ValueError(f"{what}: expected ascending row offsets from 0 to {keys.numel()}, the number of keys")
    return keys, ends


class ArrayDataset:
    """
    Rows that are given as arrays: NumPy arrays, tensors, lists, anything that tercel.as_tensor() takes. They are copied.

    - `keys`: for each categorical field its integers from 0 on, [rows]; [rows, n] for n of each row; or (values [nnz],
      row_offsets [rows + 1]).
    - `dense`: [rows, columns] or [rows]; or a dict from names to [rows].
    - `labels`: [rows] or [rows, columns]; a dict from names to [rows]; or None for rows to predict.
    - `weights`: [rows], of the rows in losses and metrics, not negative; None: 1 each.
    - `sizes`: for some fields the number of different keys, if it is not the largest key plus one.

    In the batches and in `schema` the keys of each field begin where those of the one before end, so that one table may
    have them all; like() gives further rows the same schema.

    ValueError that names the array for lengths that differ, for values that are missing or not finite and for keys out of
    range; TypeError for other dtypes.
    """

    def __init__(self, keys: Mapping[str, Any], *, dense: Any = None, labels: Any = None, weights: Any = None,
                 sizes: Optional[Mapping[str, int]] = None) -> None:
        if not isinstance(keys, Mapping):
            raise TypeError(f"keys: expected a dict from names to arrays, not {type(keys).__name__}")
        fields = {name_of(name, "keys"): _ragged(value, f"keys {name!r}") for name, value in keys.items()}
        if sizes is not None and not isinstance(sizes, Mapping):
            raise TypeError(f"sizes: expected a dict from names to integers, not {type(sizes).__name__}")
        given = {name: integer_of(size, f"sizes: {name!r}", 1) for name, size in (sizes or {}).items()}
        for name in given:
            if name not in fields:
                raise ValueError(f"sizes: there is no field {name!r}; known: {', '.join(fields)}")
        slots, first = [], 0
        for name, (values, offsets) in fields.items():
            largest = int(values.max()) if values.numel() > 0 else 0
            if largest >= 2**62:
                raise ValueError(f"keys {name!r}: expected keys below 2**62, got {largest}")
            size = given.get(name, largest + 1)
            lengths = offsets[1:] - offsets[:-1]
            hotness = max(1, int(lengths.max())) if lengths.numel() > 0 else 1
            slots.append(Slot(name, max(1, size), first, hotness))
            first += slots[-1].size
        self._set(fields, dense, labels, weights, slots)

    def like(self, keys: Mapping[str, Any], *, dense: Any = None, labels: Any = None,
             weights: Any = None) -> "ArrayDataset":
        """Further rows of the same fields, with this schema. ValueError for keys that it does not have."""
        slots = {slot.name: slot for slot in self._schema.slots}
        if set(keys) != set(slots):
            raise ValueError(f"keys: expected the fields {', '.join(slots)}, got {', '.join(map(str, keys))}")
        rows = type(self).__new__(type(self))
        rows._set({name: _ragged(keys[name], f"keys {name!r}") for name in slots}, dense, labels, weights,
                  list(slots.values()))
        for what, columns, expected in (("dense", rows._dense.shape[1], self._schema.dense_dim),
                                        ("labels", rows._labels.shape[1], self._schema.label_dim)):
            if columns != expected and not (what == "labels" and columns == 0):
                raise ValueError(f"{what}: expected {expected} columns, got {columns}")
        rows._schema = self._schema
        return rows

    def _set(self, fields: Dict[str, Tuple[Tensor, Tensor]], dense: Any, labels: Any, weights: Any,
             slots: List[Slot]) -> None:
        self._fields = {}
        dense, dense_names = self._columns(dense, "dense")
        labels, label_names = self._columns(labels, "labels")
        lengths = {f"keys {name!r}": offsets.numel() - 1 for name, (_, offsets) in fields.items()}
        self._weights = None if weights is None else self._checked_weights(weights)
        lengths.update({what: t.shape[0] for what, t in (("dense", dense), ("labels", labels), ("weights", self._weights))
                        if t is not None})
        if not lengths:
            raise ValueError("expected at least one array")
        self._rows = next(iter(lengths.values()))
        for what, rows in lengths.items():
            if rows != self._rows:
                raise ValueError(f"{what}: has {rows} rows, but {next(iter(lengths))} has {self._rows}")
        for slot in slots:
            values, offsets = fields[slot.name]
            self._check_field(slot, values, offsets)
            self._fields[slot.name] = (values + slot.first_key, offsets)
        self._labels = labels if labels is not None else tercel.zeros(self._rows, 0, dtype=tercel.float32)
        self._dense = dense if dense is not None else tercel.zeros(self._rows, 0, dtype=tercel.float32)
        self._schema = Schema(max(1, self._labels.shape[1]), self._dense.shape[1], label_names, dense_names, tuple(slots),
                              slots[-1].first_key + slots[-1].size if slots else 0)
        _C._check_schema(self._schema._values())

    @staticmethod
    def _columns(value: Any, what: str) -> Tuple[Optional[Tensor], Tuple[str, ...]]:
        if value is None:
            return None, ()
        if not isinstance(value, Mapping):
            return _finite(value, what), ()
        columns = [_finite(column, f"{what} {name!r}") for name, column in value.items()]
        if not columns:
            return None, ()
        for name, column in zip(value, columns):
            if column.shape != (columns[0].shape[0], 1):
                raise ValueError(f"{what} {name!r}: expected an array [{columns[0].shape[0]}], got "
                                 f"{tuple(column.shape)}")
        return tercel.cat(columns, 1), tuple(name_of(name, what) for name in value)

    @staticmethod
    def _checked_weights(value: Any) -> Tensor:
        weights = _finite(value, "weights")
        if weights.shape[1] != 1:
            raise ValueError(f"weights: expected an array [rows], got {tuple(weights.shape)}")
        negative = (weights[:, 0] < 0).nonzero()
        if negative.numel() > 0:
            row = int(negative[0])
            raise ValueError(f"weights: row {row}: expected a weight that is not negative, got {float(weights[row])}")
        return weights[:, 0].contiguous()

    @staticmethod
    def _check_field(slot: Slot, values: Tensor, offsets: Tensor) -> None:
        wrong = ((values < 0) | (values >= slot.size)).nonzero()
        if wrong.numel() > 0:
            position = int(wrong[0])
            row = int((offsets[1:] <= position).sum())
            raise ValueError(f"keys {slot.name!r}: row {row}: expected a key from 0 to {slot.size - 1}, got "
                             f"{int(values[position])}")
        many = (offsets[1:] - offsets[:-1] > slot.hotness).nonzero()
        if many.numel() > 0:
            raise ValueError(f"keys {slot.name!r}: row {int(many[0])}: expected at most {slot.hotness} keys")

    @property
    def schema(self) -> Schema:
        """Contents of a row."""
        return self._schema

    def __len__(self) -> int:
        return self._rows

    def __repr__(self) -> str:
        return f"ArrayDataset({self._rows} rows, keys={[slot.name for slot in self._schema.slots]})"

    def _input(self, names: List[str]) -> _Keys:
        fields = [self._fields[name] for name in names]
        count = len(fields)
        lengths = tercel.stack([offsets[1:] - offsets[:-1] for _, offsets in fields], 1)  # [rows, slots]
        offsets = _offsets_of(lengths.reshape(-1))
        keys = tercel.empty(int(offsets[-1]), dtype=tercel.int64)
        for i, (values, ends) in enumerate(fields):
            shift = offsets[i:-1:count] - ends[:-1]
            keys[tercel.arange(values.numel()) + shift.repeat_interleave(lengths[:, i].contiguous())] = values
        flat = lengths.reshape(-1)
        same = flat.numel() > 0 and bool((flat == flat[0]).all())
        return _Keys(count, keys, offsets, int(flat[0]) if same else 0)

    def batches(self, batch_size: int = 1, *, inputs: Any = None, shuffle: bool = False, seed: int = 1, epochs: int = 1,
                drop_last: bool = False) -> Iterator[Batch]:
        """
        The rows in batches, `epochs` times, as Dataset.batches() gives them; the last one of an epoch may be short, or is
        left out with `drop_last`. `inputs` groups consecutive fields, {"user": 2, "item": 3}; without it all are in
        batch["keys"]. With `shuffle`, the order of the rows is a function of `seed` and the number of the epoch. Rows
        without labels have labels [rows, 0].
        """
        batch_size = integer_of(batch_size, "batches: batch_size", 1)
        epochs, seed = integer_of(epochs, "batches: epochs", 1), integer_of(seed, "batches: seed", 0)
        flag_of(shuffle, "shuffle")
        flag_of(drop_last, "drop_last")
        names = [slot.name for slot in self._schema.slots]
        groups = _inputs(inputs) if inputs is not None else [{"name": "keys", "slot_num": len(names)}] if names else []
        made: Dict[str, _Keys] = {}
        first = 0
        for group in groups:
            name = name_of(group.get("name"), "batches: inputs")
            slots = integer_of(group.get("slot_num"), f"batches: input {name!r}", 1)
            if name in made:
                raise ValueError(f"batches: inputs: {name!r} is given twice")
            if first + slots > len(names):
                break
            made[name] = self._input(names[first:first + slots])
            first += slots
        if first != len(names) or len(made) != len(groups):
            raise ValueError(f"batches: inputs: expected {len(names)} slots in all")
        return self._generate(batch_size, made, shuffle, seed, epochs, drop_last)

    def _generate(self, batch_size: int, inputs: Dict[str, _Keys], shuffle: bool, seed: int, epochs: int,
                  drop_last: bool) -> Iterator[Batch]:
        last = self._rows - self._rows % batch_size if drop_last else self._rows
        for epoch in range(epochs):
            order = tercel.arange(self._rows)
            if shuffle:
                generator = tercel.Generator().manual_seed((seed * 0x9E3779B97F4A7C15 + epoch) % 2**63)
                order = tercel.randperm(self._rows, generator=generator)
            for start in range(0, last, batch_size):
                rows = order[start:start + batch_size]
                count = rows.numel()
                parts = []
                for name, keys in inputs.items():
                    values, offsets = keys.of_rows(rows)
                    parts.append((name, keys.slots, keys.hotness, "sample_major", False, offsets, values, None))
                yield Batch(epoch, start, count, start, count, self._labels[rows], self._dense[rows], parts, [],
                            None if self._weights is None else self._weights[rows])
