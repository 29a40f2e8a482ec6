"""Factors of small rank of large matrices, by random projections (Halko, Martinsson and Tropp 2009, algorithm 4.4)."""

from tercel import _C

__all__ = ["pca_lowrank", "svd_lowrank"]


def _basis(matrix, q, niter):
    """An orthonormal [m, q] whose columns nearly span what matrix [m, n] maps to."""
    start = _C.randn(*matrix.shape[:-2], matrix.size(-1), q, dtype=matrix.dtype)
    basis = _C._linalg.qr(matrix @ start).Q
    for _ in range(niter):
        basis = _C._linalg.qr(matrix.mH @ basis).Q
        basis = _C._linalg.qr(matrix @ basis).Q
    return basis


def svd_lowrank(A, q=6, niter=2, M=None):  # noqa: N803
    """Singular values and vectors of matrices A [..., m, n], or of A - M, that have rank q or nearly: (U, S, V).

    q: how many, at most min(m, n); somewhat more than the rank. niter: rounds that bring the projection nearer.
    """
    if M is not None:
        A = A - M.broadcast_to(A.shape)  # noqa: N806
    least = min(A.shape[-2:])
    if not 0 <= q <= least:
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={least}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    wide = A.size(-2) < A.size(-1)
    matrix = A.mH if wide else A
    basis = _basis(matrix, q, niter)
    u, s, vh = _C._linalg.svd(basis.mH @ matrix, full_matrices=False)
    left, right = basis @ u, vh.mH
    return (right, s, left) if wide else (left, s, right)


def pca_lowrank(A, q=None, center=True, niter=2):  # noqa: N803
    """The principal components of the rows of A [..., m, n]: svd_lowrank() of A without the means of its columns.

    q: how many; at most 6 unless given. Columns of V are the directions, S^2 / (m - 1) their variances.
    """
    if q is None:
        q = min(6, *A.shape[-2:])
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)
