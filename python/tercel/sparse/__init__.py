"""Sparse tensors: tensors whose layout is tercel.sparse_coo, as in torch.sparse.

sparse_coo_tensor(), Tensor.to_sparse() and from_scipy() make them; Tensor.to_dense() converts them back. The functions of
this module are those whose gradient keeps the pattern of a sparse operand.
"""

import functools
from typing import Any, Optional

from tercel import _C
from tercel._C._sparse import (addmm as addmm, log_softmax as log_softmax, mm as mm, sampled_addmm as sampled_addmm,
                               softmax as softmax, sum as sum)
from tercel._sparse import _SparseLegacyType
from tercel.sparse import tensorflow as tensorflow

__all__ = ["BFloat16Tensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor",
           "LongTensor", "ShortTensor", "addmm", "as_sparse_gradcheck", "check_sparse_tensor_invariants", "from_scipy",
           "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags", "sum", "to_scipy"]

# Constructors of older programs: FloatTensor(indices, values, sizes).
BFloat16Tensor = _SparseLegacyType(_C.bfloat16)
ByteTensor = _SparseLegacyType(_C.uint8)
CharTensor = _SparseLegacyType(_C.int8)
DoubleTensor = _SparseLegacyType(_C.float64)
FloatTensor = _SparseLegacyType(_C.float32)
HalfTensor = _SparseLegacyType(_C.float16)
IntTensor = _SparseLegacyType(_C.int32)
LongTensor = _SparseLegacyType(_C.int64)
ShortTensor = _SparseLegacyType(_C.int16)


class check_sparse_tensor_invariants:
    """
    Switches the check of indices in constructors of sparse tensors: on or off for good by enable() and disable(), or in
    a `with` block or a decorated function. The check is on unless changed, and process-wide.
    """

    def __init__(self, enable: bool = True) -> None:
        self._enable = enable
        self._before: Optional[bool] = None

    @staticmethod
    def is_enabled() -> bool:
        """Whether indices are checked."""
        return _C._sparse_check_invariants()

    @staticmethod
    def enable() -> None:
        """Switches the check on."""
        _C._sparse_set_check_invariants(True)

    @staticmethod
    def disable() -> None:
        """Switches the check off: reading an index outside the sizes is then an IndexError of the op that reads it."""
        _C._sparse_set_check_invariants(False)

    def __enter__(self) -> None:
        if self._before is not None:
            raise RuntimeError("This context manager instance is already activated. Use a different context manager "
                               "instance for context nesting.")
        self._before = self.is_enabled()
        _C._sparse_set_check_invariants(self._enable)

    def __exit__(self, *exception: Any) -> None:
        assert self._before is not None
        _C._sparse_set_check_invariants(self._before)
        self._before = None

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self._enable):
                return function(*args, **kwargs)
        return checked


def spdiags(diagonals: _C.Tensor, offsets: _C.Tensor, shape: Any, layout: Any = None) -> _C.Tensor:
    """
    The matrix of sizes `shape` whose diagonals are the rows of `diagonals` [n, length], or [length] for one: element j of
    row i is in column j of the diagonal offsets[i] (int64 [n]; below the main one if negative). `layout`: sparse_coo, the
    default, sparse_csr or sparse_csc. Elements outside the matrix are left out. RuntimeError for arguments that do not fit.
    """
    layout = _C.sparse_coo if layout is None else layout
    if layout not in (_C.sparse_coo, _C.sparse_csc, _C.sparse_csr):
        raise RuntimeError(f"Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got {layout}")
    if diagonals.dim() not in (1, 2):
        raise RuntimeError("Diagonals must be vector or matrix")
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if offsets.dim() > 1:
        raise RuntimeError("Offsets must be scalar or vector")
    if offsets.dtype is not _C.int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {offsets.dtype}")
    rows, at = diagonals.reshape(1, -1) if diagonals.dim() == 1 else diagonals, offsets.reshape(-1)
    if rows.shape[0] != at.numel():
        raise RuntimeError(f"Number of diagonals ({rows.shape[0]}) does not match the number of offsets ({at.numel()})")
    if at.unique().numel() != at.numel():
        raise RuntimeError("Offset tensor contains duplicate values")
    column = _C.arange(rows.shape[1]).expand(rows.shape)
    row = column - at.reshape(-1, 1)
    inside = (row >= 0) & (row < shape[0]) & (column < shape[1])
    indices = _C.stack([row[inside], column[inside]])
    made = _C._sparse_coo_tensor(indices, rows[inside], tuple(shape))
    return made if layout is _C.sparse_coo else made.to_sparse(layout=layout)


def as_sparse_gradcheck(gradcheck: Any) -> Any:
    """
    autograd.gradcheck(), or a functools.partial() of it, for functions that also return sparse tensors: their elements are
    compared. With masked=False the gradients of all elements of sparse inputs are checked, not only those of entries.
    """
    @functools.wraps(gradcheck)
    def checked(func: Any, inputs: Any, **kwargs: Any) -> Any:
        masked = kwargs.get("masked", getattr(gradcheck, "keywords", {}).get("masked", False))
        kwargs["masked"] = bool(masked)

        def to_strided(x: Any) -> Any:
            is_sparse = isinstance(x, _C.Tensor) and x.layout is not _C.strided
            return x.to_dense(masked_grad=bool(masked)) if is_sparse else x

        def strided(*args: Any) -> Any:
            outputs = func(*args)
            if isinstance(outputs, (list, tuple)):
                return type(outputs)(map(to_strided, outputs))
            return to_strided(outputs)

        return gradcheck(strided, inputs, **kwargs)

    return checked


def from_scipy(matrix: Any, layout: Any = None) -> _C.Tensor:
    """
    A tensor with the entries of a scipy.sparse matrix or array of any format; values are copied. `layout`: sparse_coo, the
    default, sparse_csr, sparse_csc, sparse_bsr or sparse_bsc, the blocks being those of SciPy's BSR format.
    """
    if layout is not None and layout is not _C.sparse_coo:
        return _from_compressed(matrix, layout)
    coo = matrix.tocoo()
    coords = coo.coords if hasattr(coo, "coords") else (coo.row, coo.col)
    indices = _C.stack([_C.from_numpy(axis.astype("int64")) for axis in coords])
    coalesced = True if getattr(coo, "has_canonical_format", False) else None
    values = _C.from_numpy(coo.data.copy())
    out = _C._sparse_coo_tensor(indices, values, tuple(coo.shape))
    return out.coalesce() if coalesced else out


_FORMATS = {_C.sparse_csr: "csr", _C.sparse_csc: "csc", _C.sparse_bsr: "bsr", _C.sparse_bsc: "bsr"}


def _from_compressed(matrix: Any, layout: Any) -> _C.Tensor:
    if layout not in _FORMATS:
        raise TypeError(f"from_scipy: expected a sparse layout, got {layout}")
    made = matrix.asformat(_FORMATS[layout], copy=True)
    made.sum_duplicates()  # also sorts
    parts = [_C.from_numpy(part) for part in (made.indptr, made.indices, made.data)]
    out = _C._sparse_compressed_tensor(*parts, tuple(made.shape), _C.sparse_bsr if layout is _C.sparse_bsc else layout)
    return out.to_sparse(layout=layout)


def to_scipy(x: _C.Tensor) -> Any:
    """
    The scipy.sparse array, over copies of its parts, of a sparse tensor without batch and dense dimensions: a coo_array
    (of a coalesced tensor in canonical format), csr_array, csc_array, or, also of a BSC tensor, bsr_array. SciPy before
    1.13 has arrays of two dimensions only. TypeError for another layout.
    """
    from scipy import sparse as scipy_sparse
    if x.layout is _C.sparse_coo:
        if x.dense_dim() != 0:
            raise ValueError(f"to_scipy: expected a tensor without dense dimensions, got {x.dense_dim()} of {x.dim()}")
        indices, values = x._indices().numpy().copy(), x._values().detach().numpy().copy()
        out = scipy_sparse.coo_array((values, tuple(indices)), shape=tuple(x.shape))
        out.has_canonical_format = x.is_coalesced()
        return out
    if x.layout not in _FORMATS:
        raise TypeError(f"to_scipy: expected a tensor of a sparse layout, got {x.layout}")
    if x.dim() != 2:
        raise ValueError(f"to_scipy: expected a matrix, got sizes {tuple(x.shape)}")
    if x.layout is _C.sparse_bsc:
        x = x.to_sparse(layout=_C.sparse_bsr)
    by_rows = x.layout is not _C.sparse_csc
    offsets, indices = ((x.crow_indices(), x.col_indices()) if by_rows else (x.ccol_indices(), x.row_indices()))
    parts = tuple(part.numpy().copy() for part in (x.detach().values(), indices, offsets))
    out = getattr(scipy_sparse, _FORMATS[x.layout] + "_array")(parts, shape=tuple(x.shape))
    out.has_canonical_format = True
    return out
