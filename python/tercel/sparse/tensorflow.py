"""Sparse tensors in TensorFlow's form: indices with a row for each entry.

TensorFlow's functions want entries in row-major order without duplicates, and refuse others in place of sorting and adding
them, as a COO tensor does. SparseTensor keeps these rules; to_coo() and from_coo() convert.
"""

from typing import Any

from tercel import _C

__all__ = ["SparseTensor", "reorder", "to_dense"]


class SparseTensor:
    """
    indices [nnz, rank], values [nnz] and dense_shape [rank]: tensors or lists; indices and dense_shape become int64.
    RuntimeError unless the sizes agree. Indices are not read: to_dense() and to_coo() check them.
    """

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        given = [x if isinstance(x, _C.Tensor) else _C.tensor(x) for x in (indices, values, dense_shape)]
        if given[0].numel() == 0 and not isinstance(indices, _C.Tensor):  # an empty list has neither a rank nor a dtype
            given[0] = _C.zeros((0, given[2].numel()), dtype=_C.int64)
        self._parts = _C._tensorflow_sparse(*given)

    @classmethod
    def from_coo(cls, x: _C.Tensor) -> "SparseTensor":
        """The entries of a COO tensor without dense dimensions, coalesced first; RuntimeError for another one."""
        return cls(*_C._tensorflow_sparse_of(x))

    @property
    def indices(self) -> _C.Tensor:
        """int64 [nnz, rank]."""
        return self._parts[0]

    @property
    def values(self) -> _C.Tensor:
        """[nnz]."""
        return self._parts[1]

    @property
    def dense_shape(self) -> _C.Tensor:
        """int64 [rank]."""
        return self._parts[2]

    @property
    def shape(self) -> _C.Size:
        """The sizes."""
        return _C.Size(self.dense_shape.tolist())

    @property
    def dtype(self) -> _C.dtype:
        """The dtype of the values."""
        return self.values.dtype

    def reorder(self) -> "SparseTensor":
        """The same entries in row-major order; those of one index keep their order. IndexError for an index outside."""
        return SparseTensor(*_C._tensorflow_reorder(*self._parts))

    def to_dense(self, default_value: Any = 0, validate_indices: bool = True) -> _C.Tensor:
        """
        A strided tensor that has default_value where no entry is. With validate_indices, RuntimeError for entries that are
        out of order or repeated, else the last of an index counts. IndexError for an index outside the shape.
        """
        return _C._tensorflow_to_dense(*self._parts, default_value, validate_indices)

    def to_coo(self) -> _C.Tensor:
        """A COO tensor, coalesced; values of repeated entries are added. IndexError for an index outside the shape."""
        return _C._tensorflow_to_coo(*self._parts)

    def __repr__(self) -> str:
        return f"SparseTensor(indices={self.indices}, values={self.values}, dense_shape={self.dense_shape})"


def reorder(sp_input: SparseTensor) -> SparseTensor:
    """SparseTensor.reorder()."""
    return sp_input.reorder()


def to_dense(sp_input: SparseTensor, default_value: Any = 0, validate_indices: bool = True) -> _C.Tensor:
    """SparseTensor.to_dense()."""
    return sp_input.to_dense(default_value, validate_indices)
