"""Functions of tercel that make sparse tensors, and products under their older names."""

import warnings

from tercel import _C
from tercel._C import Tensor
from tercel._tensor import _LegacyType

__all__ = ["dsmm", "hsmm", "hspmm", "saddmm", "smm", "sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor",
           "sparse_coo_tensor", "sparse_csc_tensor", "sparse_csr_tensor", "spmm", "sspaddmm"]


def _as_indices(data):
    if isinstance(data, Tensor):
        return data
    made = _C.tensor(data)
    return made.to(_C.int64) if made.numel() == 0 else made  # an empty list has no dtype of its own


def _sizes(size):
    """A size argument as a tuple; None if there is none."""
    if isinstance(size, int):
        raise TypeError("argument 'size' must be tuple of ints, not int")
    sizes = None if size is None else tuple(size)
    for i, n in enumerate(sizes or ()):
        if not hasattr(n, "__index__"):
            raise TypeError(f"argument 'size' must be tuple of ints, but found element of type {type(n).__name__} at pos {i}")
    return sizes


def _as_coo_indices(data):
    """Indices as int64, as PyTorch converts them; RuntimeError for floating-point numbers that are no integers."""
    given = _as_indices(data)
    if given.dtype is _C.int64 or given.is_complex():
        return given
    converted = given.to(_C.int64)
    if given.is_floating_point() and not _C.equal(converted.to(given.dtype), given):
        raise RuntimeError(f"sparse_coo_tensor: expected indices that are integers but got {given.dtype} with a fraction")
    return converted


def _as_values(values, dtype, device, requires_grad):
    if not isinstance(values, Tensor):
        values = _C.tensor(values, dtype=dtype, device=device)
    elif dtype is not None:
        values = values.to(dtype)
    if device is not None:
        values = values.to(device)
    if requires_grad and not (values.is_floating_point() or values.is_complex()):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return values


def _made(result, requires_grad):
    return result.requires_grad_() if requires_grad and result.is_leaf and not result.requires_grad else result


def sparse_coo_tensor(indices=None, values=None, size=None, *, dtype=None, device=None, pin_memory=False,
                      requires_grad=False, check_invariants=None, is_coalesced=None):
    """
    sparse_coo_tensor(indices, values, size=None): a tensor with entries in coordinate format. sparse_coo_tensor(size): one
    without entries.

    indices [sparse_dim, nnz] and values [nnz, *dense sizes] are tensors, which are shared if their dtype fits, or lists.
    Without a size, the largest index of each dimension + 1, then the sizes of a value. Entries with the same indices are
    added. Floating-point indices must be integers. Indices are checked unless check_invariants, by default sparse.check_sparse_tensor_invariants, is off.
    is_coalesced=True says that entries are unique and in row-major order. RuntimeError for parts that do not fit each
    other, TypeError for complex indices.
    """
    if pin_memory:
        raise RuntimeError("sparse_coo_tensor: pinned memory needs a GPU")
    if values is None:
        if size is None:
            size = indices
        elif indices is not None:
            raise TypeError("sparse_coo_tensor(): missing 1 required positional argument: 'values'")
        if size is None or isinstance(size, Tensor):
            raise TypeError("sparse_coo_tensor(): expected indices and values, or a size")
        sizes = (size,) if isinstance(size, int) else _sizes(size)
        return _C.empty(sizes, dtype=dtype, device=device, layout=_C.sparse_coo, requires_grad=requires_grad)
    values = _as_values(values, dtype, device, requires_grad)
    if values.dim() == 0:
        values = values.reshape(1)
    result = _C._sparse_coo_tensor(_as_coo_indices(indices), values, _sizes(size),
                                   check_invariants, is_coalesced)
    return _made(result, requires_grad)


def sparse_compressed_tensor(compressed_indices, plain_indices, values, size=None, *, dtype=None, layout=None, device=None,
                             pin_memory=False, requires_grad=False, check_invariants=None):
    """
    A tensor of a compressed layout: sparse_csr, sparse_csc, sparse_bsr or sparse_bsc.

    compressed_indices [*batch, rows (columns) + 1] are the offsets of rows (of columns for CSC and BSC), plain_indices
    [*batch, nnz] the indices in the other dimension, values [*batch, nnz, *block, *dense sizes]: tensors, which are shared
    if their dtype fits, or lists. Indices are int32 or int64; those of a row ascend. Without a size, the smallest that
    fits. Indices are checked unless check_invariants, by default sparse.check_sparse_tensor_invariants, is off.
    RuntimeError for parts that do not fit each other.
    """
    if layout is None:
        raise RuntimeError("sparse_compressed_tensor expected sparse compressed tensor layout but got none")
    if pin_memory:
        raise RuntimeError("sparse_compressed_tensor: pinned memory needs a GPU")
    values = _as_values(values, dtype, device, requires_grad)
    result = _C._sparse_compressed_tensor(_as_indices(compressed_indices), _as_indices(plain_indices), values,
                                          _sizes(size), layout, check_invariants)
    return _made(result, requires_grad)


def _constructor(name, layout, compressed, plain, values):
    def construct(compressed_indices, plain_indices, values, size=None, *, dtype=None, device=None, pin_memory=False,
                  requires_grad=False, check_invariants=None):
        return sparse_compressed_tensor(compressed_indices, plain_indices, values, size, dtype=dtype, layout=layout,
                                        device=device, pin_memory=pin_memory, requires_grad=requires_grad,
                                        check_invariants=check_invariants)

    def function(*args, **kwargs):
        for theirs, ours in ((compressed, "compressed_indices"), (plain, "plain_indices")):
            if theirs in kwargs:
                kwargs[ours] = kwargs.pop(theirs)
        return construct(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (f"""
    {name}({compressed}, {plain}, values, size=None, *, dtype=None, device=None, pin_memory=False, requires_grad=False,
    check_invariants=None): sparse_compressed_tensor() of layout {layout}; values {values}.
    """)
    return function


sparse_csr_tensor = _constructor("sparse_csr_tensor", _C.sparse_csr, "crow_indices", "col_indices",
                                 "[*batch, nnz, *dense sizes]")
sparse_csc_tensor = _constructor("sparse_csc_tensor", _C.sparse_csc, "ccol_indices", "row_indices",
                                 "[*batch, nnz, *dense sizes]")
sparse_bsr_tensor = _constructor("sparse_bsr_tensor", _C.sparse_bsr, "crow_indices", "col_indices",
                                 "[*batch, nnz, height, width, *dense sizes]")
sparse_bsc_tensor = _constructor("sparse_bsc_tensor", _C.sparse_bsc, "ccol_indices", "row_indices",
                                 "[*batch, nnz, height, width, *dense sizes]")


def spmm(input, mat2):  # noqa: A002
    """mm()."""
    return _C.mm(input, mat2)


def dsmm(input, mat2):  # noqa: A002
    """mm()."""
    return _C.mm(input, mat2)


def smm(input, mat):  # noqa: A002
    """The product of a COO matrix with a strided one, as a COO matrix."""
    return _C.mm(input, mat).to_sparse()


def hspmm(mat1, mat2):
    """The product of a COO matrix with a strided one, as a COO matrix whose second dimension is dense."""
    return _C.mm(mat1, mat2).to_sparse(1)


def saddmm(mat, mat1, mat2, *, beta=1, alpha=1):
    """sparse.addmm(), or sspaddmm() if `mat` is a COO matrix."""
    if mat.is_sparse:
        return sspaddmm(mat, mat1, mat2, beta=beta, alpha=alpha)
    return _C._sparse.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sspaddmm(input, mat1, mat2, *, beta=1, alpha=1):  # noqa: A002
    """beta * input + alpha * smm(mat1, mat2) of COO matrices."""
    return input * beta + smm(mat1, mat2) * alpha


hsmm = hspmm


def _legacy_coo_tensor(function, dtype, *args, device=None):
    """A COO tensor made as older programs do: of no arguments, of sizes, or of indices, values and sizes."""
    if len(args) == 1 and isinstance(args[0], (list, tuple)) and not isinstance(args[0], _C.Size):
        raise TypeError(f"{function}(sequence) only accepts sizes.  Please use tercel.sparse_coo_tensor() or construct a "
                        "strided tensor and convert it to sparse via to_sparse.")
    if all(isinstance(arg, int) for arg in args):
        return sparse_coo_tensor(args or (0,), dtype=dtype, device=device)
    kinds = [_C.Size] if len(args) == 1 else [Tensor, Tensor, (list, tuple)][:max(len(args), 2)]
    if len(args) > 3 or not all(map(isinstance, args, kinds)):
        given = ", ".join(type(arg).__name__ for arg in args)
        raise TypeError(f"{function}(): expected no arguments, sizes, or indices, values and sizes, but got ({given})")
    return sparse_coo_tensor(*args, dtype=dtype, device=device)


class _SparseLegacyType(_LegacyType):
    """sparse.FloatTensor and similar types: deprecated constructors of one dtype, and types for isinstance()."""

    is_sparse = True
    layout = _C.sparse_coo
    _warned = False

    def __init__(self, dtype):
        super().__init__(dtype)
        self.__name__ = f"sparse.{self.__name__}"

    def __call__(self, *args, device=None):
        if not _SparseLegacyType._warned:
            _SparseLegacyType._warned = True
            warnings.warn(f"tercel.{self.__name__}() is deprecated.  Please use tercel.sparse_coo_tensor(indices, values, "
                          "shape, dtype=, device=).", stacklevel=2)
        return _legacy_coo_tensor(f"tercel.{self.__name__}", self.dtype, *args, device=device)


def _validate_sparse_coo_tensor_args(indices, values, size, is_coalesced=None, check_pinning=None):
    """RuntimeError unless the parts are those of a COO tensor of the size."""
    _C._sparse_coo_tensor(indices, values, tuple(size), True, is_coalesced)


def _validate_sparse_compressed_tensor_args(compressed_indices, plain_indices, values, size, layout, check_pinning=None):
    """RuntimeError unless the parts are those of a tensor of the compressed layout and size."""
    _C._sparse_compressed_tensor(compressed_indices, plain_indices, values, tuple(size), layout, True)


def _validate_compressed_sparse_indices(is_crow, compressed_idx, plain_idx, cdim, dim, nnz):
    """RuntimeError unless these are the indices of nnz entries of a CSR (is_crow) or CSC matrix, or of a batch of them.

    cdim is the number of compressed rows or columns, dim the number of the others.
    """
    batch = tuple(plain_idx.shape[:-1])
    _C._sparse_compressed_tensor(compressed_idx, plain_idx, _C.zeros((*batch, nnz)),
                                 (*batch, cdim, dim) if is_crow else (*batch, dim, cdim),
                                 _C.sparse_csr if is_crow else _C.sparse_csc, True)


def _convert_indices_from_coo_to_csr(input, size, *, out_int32=False):  # noqa: A002
    """The offsets [size + 1] of rows from the ascending rows [nnz] of a COO matrix's entries."""
    if input.dim() != 1:
        raise RuntimeError(f"Input is supposed to be a vector, but got {input.dim()} dimensional tensor.")
    ends = _C.bincount(input, minlength=size).cumsum(0)
    if ends.numel() > size:
        raise RuntimeError(f"_convert_indices_from_coo_to_csr: expected rows below {size} but got {ends.numel() - 1}")
    return _C.cat([ends.new_zeros(1), ends]).to(_C.int32 if out_int32 else _C.int64)


def _convert_indices_from_csr_to_coo(crow_indices, col_indices, *, out_int32=False, transpose=False):
    """The indices [2, nnz] of a CSR matrix's entries as those of a COO matrix, columns first if `transpose`."""
    counts = (crow_indices[1:] - crow_indices[:-1]).to(_C.int64)
    rows = _C.arange(counts.numel()).repeat_interleave(counts)
    pair = [col_indices, rows] if transpose else [rows, col_indices]
    return _C.stack([part.to(_C.int32 if out_int32 else _C.int64) for part in pair])
