"""Linear algebra: matrices are the last two dimensions, the others are a batch."""

from typing import NamedTuple

from tercel import _C, linalg as _linalg
from tercel._C import Tensor
from tercel.array_api._dtypes import part_of, tensors_of
from tercel.array_api._reductions import sum as _sum
from tercel.functional import broadcast_shapes, tensordot as _tensordot

__all__ = ["cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
           "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
           "trace", "vecdot", "vector_norm"]


class EigResult(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor


def matmul(x1, x2, /):
    """Matrix products; a vector is a row on the left and a column on the right."""
    return _C.matmul(*tensors_of("matmul", x1, x2))


def matrix_transpose(x, /):
    """The last two dimensions swapped."""
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: expected at least 2 dimensions, but got {x.ndim}")
    return x.mT


def tensordot(x1, x2, /, *, axes=2):
    """Sums of products over the last `axes` axes of x1 and the first of x2, or over two lists of axes."""
    return _tensordot(*tensors_of("tensordot", x1, x2), dims=axes)


def vecdot(x1, x2, /, *, axis=-1):
    """Sums of products along an axis, the first factor conjugated; the others are broadcast."""
    a, b = tensors_of("vecdot", x1, x2)
    if a.shape[axis] != b.shape[axis]:
        raise ValueError(f"vecdot: expected equal sizes of axis {axis}, but got {a.shape[axis]} and {b.shape[axis]}")
    a, b = (x.movedim(axis, -1).unsqueeze(-2) for x in (a, b))
    return _C.matmul(_C.conj_physical(a), b.mT).squeeze((-1, -2))


def outer(x1, x2, /):
    """All products of two vectors' elements."""
    return _C.outer(*tensors_of("outer", x1, x2))


def cross(x1, x2, /, *, axis=-1):
    """Cross products of vectors with 3 elements along an axis."""
    a, b = tensors_of("cross", x1, x2)
    if a.shape[axis] != 3 or b.shape[axis] != 3:
        raise ValueError(f"cross: expected 3 elements along axis {axis}, but got {a.shape[axis]} and {b.shape[axis]}")
    shape = broadcast_shapes(a.shape, b.shape)
    return _linalg.cross(a.expand(shape), b.expand(shape), dim=axis)


def diagonal(x, /, *, offset=0):
    """The elements of a diagonal."""
    return _linalg.diagonal(x, offset=offset)


def trace(x, /, *, offset=0, dtype=None):
    """The sum of a diagonal."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def cholesky(x, /, *, upper=False):
    """L with L L^H = x, or its adjoint."""
    return _linalg.cholesky(x, upper=upper)


def det(x, /):
    """Determinants."""
    return _linalg.det(x)


def eig(x, /):
    """Complex eigenvalues and eigenvectors of any square matrices, in no order."""
    return EigResult(*_linalg.eig(x))


def eigvals(x, /):
    """Complex eigenvalues of any square matrices, in no order."""
    return _linalg.eigvals(x)


def eigh(x, /):
    """Eigenvalues in ascending order and eigenvectors of symmetric (Hermitian) matrices."""
    return EighResult(*_linalg.eigh(x))


def eigvalsh(x, /):
    """Eigenvalues of symmetric (Hermitian) matrices in ascending order."""
    return _linalg.eigvalsh(x)


def inv(x, /):
    """Inverse matrices."""
    return _linalg.inv(x)


def matrix_norm(x, /, *, keepdims=False, ord="fro"):  # noqa: A002
    """Norms of matrices: "fro", "nuc", 1, -1, 2, -2, inf and -inf; 0 for a matrix without elements."""
    if 0 in x.shape[-2:]:
        return _C.zeros((*x.shape[:-2], *(1, 1) * bool(keepdims)), dtype=part_of(x.dtype), device=x.device)
    return _linalg.matrix_norm(x, ord, keepdim=keepdims)


def matrix_power(x, n, /):
    """Matrices to the power n; powers of their inverses if n is negative."""
    return _linalg.matrix_power(x, n)


def _threshold(x, s, rtol):
    """The bound up to which singular values count as zero: rtol, one for each matrix, times the largest."""
    if rtol is None:
        rtol = max(x.shape[-2:]) * _C.finfo(s.dtype).eps
    if isinstance(rtol, Tensor):
        rtol = rtol.unsqueeze(-1)
    return s.amax(-1, keepdim=True) * rtol


def matrix_rank(x, /, *, rtol=None):
    """The number of singular values larger than rtol times the largest."""
    if 0 in x.shape[-2:]:
        return _C.zeros(x.shape[:-2], dtype=_C.int64, device=x.device)
    s = _linalg.svdvals(x)
    return _sum((s > _threshold(x, s, rtol)).to(_C.int64), axis=-1)


def pinv(x, /, *, rtol=None):
    """The Moore-Penrose pseudoinverse; singular values up to rtol times the largest count as zero."""
    if 0 in x.shape[-2:]:
        return x.mT.clone()
    u, s, vh = _linalg.svd(x, full_matrices=False)
    large = s > _threshold(x, s, rtol)
    inverse = _C.where(large, 1 / _C.where(large, s, _C.ones_like(s)), _C.zeros_like(s))
    return _C.matmul(_C.conj_physical(vh).mT * inverse.unsqueeze(-2), _C.conj_physical(u).mT)


def qr(x, /, *, mode="reduced"):
    """x = Q R: "reduced" or "complete"."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: expected mode 'reduced' or 'complete', but got {mode!r}")
    return QRResult(*_linalg.qr(x, mode=mode))


def slogdet(x, /):
    """Signs of determinants, and logarithms of their magnitudes."""
    return SlogdetResult(*_linalg.slogdet(x))


def solve(x1, x2, /):
    """X with x1 X = x2; x2 is a vector if it has one dimension, else matrices."""
    a, b = tensors_of("solve", x1, x2)
    if b.ndim == 1:
        return _linalg.solve(a, b.unsqueeze(-1).expand(*a.shape[:-2], -1, -1)).squeeze(-1)
    # A leading dimension keeps x2 from being taken for a batch of vectors.
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return _linalg.solve(a.expand(*batch, -1, -1), b.expand(*batch, -1, -1))


def svd(x, /, *, full_matrices=True):
    """x = U diag(S) Vh with S in descending order."""
    return SVDResult(*_linalg.svd(x, full_matrices=full_matrices))


def svdvals(x, /):
    """Singular values in descending order."""
    return _linalg.svdvals(x)


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):  # noqa: A002
    """Norms over axes, or all elements."""
    x = _C.abs(x)
    if axis == ():
        return x if ord != 0 else (x != 0).to(x.dtype)
    return _linalg.vector_norm(x, ord, dim=axis, keepdim=keepdims)
