"""Columns of numbers from and for pyarrow, pandas, polars and DuckDB: Arrow's PyCapsule interface."""

from typing import Any, List, Mapping, Optional, Tuple

from tercel import _C
from tercel._C import Tensor

__all__ = ["RecordBatch", "from_arrow"]


def from_arrow(obj: Any, *, copy: Optional[bool] = None, mask: bool = False) -> Any:
    """
    The columns of an object that has __arrow_c_array__ or __arrow_c_stream__: a tensor for an array, a dict of tensors
    for a batch of records or a table.

    Numbers, bools, fixed-size lists of these (a dimension each) and arrow.fixed_shape_tensor. The tensors share the memory
    of a single batch, except for bools, which Arrow packs into bits; writing to them then changes data that Arrow treats
    as immutable, unless copy=True. copy=False: RuntimeError if a copy is needed. Null values are a RuntimeError; with
    mask=True each column is a pair of values and a validity mask (None: all valid).
    """
    if hasattr(obj, "__arrow_c_array__"):
        batches: List[Any] = [_C._from_arrow(*obj.__arrow_c_array__(), copy, mask)]
    elif hasattr(obj, "__arrow_c_stream__"):
        batches = _C._from_arrow_stream(obj.__arrow_c_stream__(), copy, mask)
    else:
        raise TypeError(f"from_arrow: expected an object with __arrow_c_array__ or __arrow_c_stream__, "
                        f"not {type(obj).__name__}")
    if copy is False and len(batches) > 1:
        raise RuntimeError(f"from_arrow: {len(batches)} batches cannot become one tensor without a copy")
    is_struct = batches[0][0]
    columns = [_join(parts, mask) for parts in zip(*(columns for _, columns in batches))]
    if not is_struct:
        return columns[0][1]
    names = [name for name, _ in columns]
    for name in names:
        if names.count(name) > 1:
            raise RuntimeError(f"from_arrow: duplicate column '{name}'")
    return dict(columns)


def _join(parts: Tuple[Any, ...], mask: bool) -> Tuple[str, Any]:
    """One column of all batches: (name, values) or (name, (values, valid))."""
    name, values, valid = parts[0]
    if len(parts) > 1:
        values = _C.cat([v for _, v, _ in parts])
        if any(some is not None for _, _, some in parts):
            valid = _C.cat([_C.ones(len(v), dtype=_C.bool) if some is None else some for _, v, some in parts])
    return name, (values, valid) if mask else values


class RecordBatch:
    """A dict of tensors with equal numbers of rows as an Arrow batch: pyarrow.record_batch(RecordBatch(tensors))."""

    def __init__(self, columns: Mapping[str, Tensor]) -> None:
        self._columns = dict(columns)

    def __arrow_c_array__(self, requested_schema: Any = None) -> Tuple[Any, Any]:
        capsules: Tuple[Any, Any] = _C._columns_to_arrow(self._columns)
        return capsules

    def __arrow_c_schema__(self) -> Any:
        return _C._columns_to_arrow({name: t[:0] for name, t in self._columns.items()})[0]


def _arrow_c_array(self, requested_schema=None):
    """
    Capsules of a schema and of the array: numbers for one dimension, arrow.fixed_shape_tensor for more. Bools and tensors
    that are not row-major are copied. RuntimeError for a tensor without dimensions, or one that requires a gradient.
    """
    return _C._to_arrow(self, "")


def _arrow_c_schema(self):
    """The capsule of only the schema."""
    return _C._to_arrow(self[:0], "")[0]


_arrow_c_array.__name__, _arrow_c_schema.__name__ = "__arrow_c_array__", "__arrow_c_schema__"
Tensor.__arrow_c_array__ = _arrow_c_array
Tensor.__arrow_c_schema__ = _arrow_c_schema
