"""Low-rank factors and a few eigenvectors of large matrices.

Low-rank factors by random projections (Halko, Martinsson and Tropp 2009, algorithm 4.4), eigenvectors by LOBPCG (Knyazev
2001, "Toward the optimal preconditioned eigensolver").
"""

from types import SimpleNamespace

from tercel import _C
from tercel.autograd import Function, no_grad
from tercel.autograd.function import once_differentiable

__all__ = ["lobpcg", "pca_lowrank", "svd_lowrank"]


def _basis(matrix, q, niter):
    """An orthonormal [m, q] whose columns approximately span the range of matrix [m, n]."""
    start = _C.randn(*matrix.shape[:-2], matrix.size(-1), q, dtype=matrix.dtype)
    basis = _C._linalg.qr(matrix @ start).Q
    for _ in range(niter):
        basis = _C._linalg.qr(matrix.mH @ basis).Q
        basis = _C._linalg.qr(matrix @ basis).Q
    return basis


def svd_lowrank(A, q=6, niter=2, M=None):  # noqa: N803
    """Singular values and vectors of matrices A [..., m, n], or of A - M, that have rank q or nearly: (U, S, V).

    q: the number of factors, at most min(m, n); choose it slightly above the rank. niter: subspace iterations.
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

    q: the number of components, min(6, m, n) by default. Columns of V are the directions, S^2 / (m - 1) their variances.
    """
    if q is None:
        q = min(6, *A.shape[-2:])
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)


def _times(matrix, x):
    return x if matrix is None else matrix @ x


def _orthonormal(s, b):
    """A basis of the columns of s, orthonormal in the inner product of b; linearly dependent directions are dropped."""
    scale = (s * _times(b, s)).sum(0).clamp_min(0).sqrt()
    s = s[:, scale > 0] / scale[scale > 0]
    for _ in range(2):  # twice, since one pass leaves errors that grow as the directions become dependent
        values, vectors = _C._linalg.eigh(s.mT @ _times(b, s))
        kept = values > values.max() * s.size(0) * _C.finfo(s.dtype).eps
        s = s @ (vectors[:, kept] / values[kept].sqrt())
    return s


def _ritz(s, a, n, largest):
    """The n largest or smallest eigenvalues of a in the span of s, and their vectors."""
    values, vectors = _C._linalg.eigh(s.mT @ (a @ s))
    if largest:
        values, vectors = values.flip(0), vectors.flip(1)
    return values[:n], s @ vectors[:, :n]


def _lobpcg(a, b, x, preconditioner, k, niter, tol, largest, tracker):
    """lobpcg() of a single matrix."""
    n = x.size(1)
    values, x = _ritz(_orthonormal(x, b), a, n, largest)
    size_a, size_b = _C.norm(a), 1.0 if b is None else _C.norm(b)
    steps, before = 0, None
    while True:
        bx = _times(b, x)
        residuals = a @ x - bx * values
        errors = _C.norm(residuals, dim=0) / (_C.norm(x, dim=0) * (size_a + values.abs() * size_b))
        open_ones = errors > tol
        state = SimpleNamespace(istep=steps, A=a, B=b, iK=preconditioner, X=x, E=values, R=residuals, rerr=errors,
                                converged_count=int((~open_ones).long().cumprod(0).sum()))
        if tracker is not None:
            tracker(state)
        if not bool(open_ones[:k].any()) or steps == niter:
            return values[:k], x[:, :k]
        directions = _times(preconditioner, residuals[:, open_ones])
        directions = directions - x @ (bx.mT @ directions)
        parts = [x, directions] if before is None else [x, directions, before[:, open_ones]]
        values, new = _ritz(_orthonormal(_C.cat(parts, 1), b), a, n, largest)
        before, x = new - x @ (bx.mT @ new), new
        steps += 1


class _Eigenpairs(Function):
    """The computed eigenpairs as a differentiable function of their symmetric matrix."""

    @staticmethod
    def forward(ctx, a, values, vectors):
        ctx.save_for_backward(a, values, vectors)
        return values.clone(), vectors.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_values, grad_vectors):
        a, values, vectors = ctx.saved_tensors
        every, basis = _C._linalg.eigh(a)
        gaps = values.unsqueeze(-2) - every.unsqueeze(-1)
        near = gaps.abs() <= every.abs().amax(-1)[..., None, None] * _C.finfo(a.dtype).eps ** 0.5
        moved = basis @ _C.where(near, 0.0, (basis.mT @ grad_vectors) / _C.where(near, 1.0, gaps))
        grad = (vectors * grad_values.unsqueeze(-2) + moved) @ vectors.mT
        return (grad + grad.mT) / 2, None, None


def lobpcg(A, k=None, B=None, X=None, n=None, iK=None, niter=None, tol=None, largest=None, method=None,  # noqa: N803
           tracker=None, ortho_iparams=None, ortho_fparams=None, ortho_bparams=None):
    """The k largest eigenvalues [..., k] of symmetric matrices A [..., m, m], and vectors X [..., m, k]: A X = B X diag(E).

    B: positive definite, the identity by default. X: an initial guess [..., m, n] with n >= k columns, random by default.
    iK: an approximate inverse of A as a preconditioner. niter: the maximum number of steps, 1,000 by default; -1: until
    residuals are below tol (by default the square root of the dtype's epsilon) relative to A. largest=False: the smallest.
    tracker: called with the state of each step. method ("basic" or "ortho") and ortho_* have no effect: vectors are
    orthogonalized in each step. Gradients flow to A if B and iK are None. ValueError if m < 3 n.
    """
    if A.dim() < 2 or A.size(-1) != A.size(-2) or not A.is_floating_point():
        raise ValueError(f"lobpcg expects real square matrices, but got {A.dtype} of shape {tuple(A.shape)}")
    if method not in (None, "basic", "ortho"):
        raise ValueError(f'lobpcg: method has to be "basic" or "ortho", but got {method!r}')
    m = A.size(-1)
    k = (1 if X is None else X.size(-1)) if k is None else k
    n = (k if X is None else X.size(-1)) if n is None else n
    if m < 3 * n:
        raise ValueError(f"LOBPCG is not applicable when the number of A rows (={m}) is smaller than 3 x the number of "
                         f"requested eigenpairs (={n})")
    tol = _C.finfo(A.dtype).eps ** 0.5 if tol is None else tol
    batch = A.shape[:-2]
    with no_grad():
        start = _C.randn(*batch, m, n, dtype=A.dtype, device=A.device) if X is None else X[..., :n].expand(*batch, m, n)

        def matrices(given):
            return [None] * batch.numel() if given is None else given.expand(*batch, m, m).reshape(-1, m, m)

        found = [_lobpcg(a, b, x, p, k, 1000 if niter is None else niter, tol, largest is not False, tracker)
                 for a, b, x, p in zip(A.detach().reshape(-1, m, m), matrices(B), start.reshape(-1, m, n), matrices(iK))]
        values = _C.stack([e for e, _ in found]).view(*batch, k)
        vectors = _C.stack([x for _, x in found]).view(*batch, m, k)
    if _C.is_grad_enabled() and (A.requires_grad or (B is not None and B.requires_grad)):
        if B is not None or iK is not None:
            raise RuntimeError("lobpcg: gradients are supported for A only, without B and iK")
        values, vectors = _Eigenpairs.apply(A, values, vectors)
    return values, vectors
