"""Products, diagonals and tercel.linalg against NumPy, over generated sizes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tercel as tc

SIZES = st.integers(1, 5)


def near(got, want, tolerance=1e-8):
    np.testing.assert_allclose(got.numpy(), want, rtol=tolerance, atol=tolerance)


def matrix(rows, columns, seed=0):
    n = np.random.default_rng(seed + 31 * rows + columns).standard_normal((rows, columns))
    return n, tc.from_numpy(n)


def definite(size):
    n, _ = matrix(size, size)
    n = n @ n.T + size * np.eye(size)
    return n, tc.from_numpy(n)


@settings(max_examples=30, deadline=None)
@given(SIZES, SIZES, SIZES)
def test_products(n, k, m):
    (a, x), (b, y) = matrix(n, k), matrix(k, m, 7)
    near(tc.mm(x, y), a @ b)
    near(x.mv(y[:, 0]), a @ b[:, 0])
    near(tc.dot(x[0], y[:, 0]), a[0] @ b[:, 0])
    near(x[0].vdot(y[:, 0]), np.vdot(a[0], b[:, 0]))
    near(tc.inner(x, y.T), a @ b)
    near(tc.outer(x[0], y[0]), np.outer(a[0], b[0]))
    near(tc.kron(x, y), np.kron(a, b))
    near(tc.bmm(x.expand(3, n, k), y.expand(3, k, m)), np.broadcast_to(a @ b, (3, n, m)))
    near(tc.chain_matmul(x, y, y.T), a @ b @ b.T)
    near(tc.linalg.multi_dot([x, y, y.T]), a @ b @ b.T)
    near(tc.linalg.vecdot(x, x), (a * a).sum(-1))
    start = np.ones((n, m))
    near(tc.addmm(tc.ones(n, m, dtype=tc.float64), x, y, beta=2, alpha=-1), 2 * start - a @ b)
    z = tc.ones(n, m, dtype=tc.float64)
    assert z.addmm_(x, y) is z
    near(z, start + a @ b)
    near(tc.addmv(tc.zeros(n, dtype=tc.float64), x, y[:, 0]), a @ b[:, 0])
    near(tc.addr(tc.zeros(k, m, dtype=tc.float64), x[0], y[0]), np.outer(a[0], b[0]))


@settings(max_examples=30, deadline=None)
@given(SIZES, SIZES, SIZES)
def test_einsum_and_tensordot(i, j, k):
    (a, x), (b, y) = matrix(i, j), matrix(j, k, 3)
    near(tc.einsum("ij,jk->ik", x, y), a @ b)
    near(tc.einsum("ij,jk", [x, y]), a @ b)
    near(tc.einsum("...j->...", x), a.sum(1))
    near(tc.einsum(x, [0, 1], y, [1, 2], [2, 0]), (a @ b).T)
    near(tc.einsum(x, [Ellipsis, 1], y, [1, 30]), a @ b)
    near(tc.tensordot(x, y, 1), a @ b)
    near(tc.tensordot(x, y, dims=([1], [0])), np.tensordot(a, b, ([1], [0])))
    near(tc.tensordot(x, x, tc.tensor([[0, 1], [0, 1]])), np.tensordot(a, a, 2))
    out = tc.empty(0, dtype=tc.float64)
    assert tc.tensordot(x, y, 1, out=out) is out
    near(out, a @ b)


def test_einsum_and_tensordot_refuse():
    x = tc.ones(2, 3)
    with pytest.raises(ValueError, match="must specify the equation string"):
        tc.einsum("ij")
    with pytest.raises(ValueError, match="not within the valid range"):
        tc.einsum(x, [0, 52])
    with pytest.raises(RuntimeError, match="einsum"):
        tc.einsum("ijk", x)
    with pytest.raises(RuntimeError, match="expects dims >= 0"):
        tc.tensordot(x, x, -1)
    with pytest.raises(RuntimeError, match="dims < ndim_a or ndim_b"):
        tc.tensordot(x, x, 3)
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        tc.mm(x, x)


@settings(max_examples=30, deadline=None)
@given(SIZES, SIZES, st.integers(-5, 5))
def test_diagonals(n, m, k):
    a, x = matrix(n, m)
    near(tc.tril(x, k), np.tril(a, k))
    near(x.clone().triu_(k), np.triu(a, k))
    near(x.trace(), np.trace(a))
    if -n < k < m:
        near(x.diagonal(k), np.diagonal(a, k))
        near(tc.diag(x, k), np.diag(a, k))
        near(tc.linalg.diagonal(x, offset=k), np.diagonal(a, k))
    near(tc.diag(x[0], k), np.diag(a[0], k))
    near(tc.diag_embed(x[0], k), np.diag(a[0], k))
    assert x.diagonal()._base is x


@settings(max_examples=20, deadline=None)
@given(SIZES, SIZES)
def test_distances_and_statistics(n, m):
    (a, x), (b, y) = matrix(n, 3), matrix(m, 3, 5)
    want = np.sqrt(((a[:, None] - b[None]) ** 2).sum(-1))
    near(tc.cdist(x, y), want, 1e-6)
    near(tc.cdist(x, y, p=1.0, compute_mode="donot_use_mm_for_euclid_dist"), abs(a[:, None] - b[None]).sum(-1))
    near(tc.dist(x, x + 1), np.sqrt(3.0 * n))
    near(tc.cross(x, x.flip(0) if hasattr(x, "flip") else x, dim=-1), np.cross(a, a[::-1] if hasattr(x, "flip") else a))
    if n > 1:
        near(tc.cov(x.T), np.cov(a.T))
        near(tc.corrcoef(x.T), np.corrcoef(a.T))
        near(tc.pdist(x), np.sqrt(((a[:, None] - a[None]) ** 2).sum(-1))[np.triu_indices(n, 1)], 1e-6)
    with pytest.raises(ValueError, match="not a valid value for compute_mode"):
        tc.cdist(x, y, compute_mode="fast")


def test_cross_finds_its_dimension():
    x = tc.arange(12.0).view(2, 3, 2)
    near(tc.cross(x, x + tc.eye(3)[:, :2]), tc.linalg.cross(x, x + tc.eye(3)[:, :2], dim=1).numpy())
    with pytest.raises(RuntimeError, match="no dimension of size 3 in input"):
        tc.cross(tc.ones(2), tc.ones(2))


@settings(max_examples=20, deadline=None)
@given(SIZES)
def test_square_matrices(n):
    a, x = definite(n)
    b, y = matrix(n, 2)
    near(tc.linalg.inv(x) @ x, np.eye(n))
    near(x.inverse(), np.linalg.inv(a))
    near(tc.linalg.det(x), np.linalg.det(a))
    sign, logabsdet = tc.linalg.slogdet(x)
    near(sign, 1)
    near(logabsdet, np.linalg.slogdet(a)[1])
    near(x.logdet(), np.linalg.slogdet(a)[1])
    near(tc.linalg.solve(x, y), np.linalg.solve(a, b))
    near(tc.linalg.cholesky(x), np.linalg.cholesky(a))
    near(tc.cholesky_solve(y, x.cholesky()), np.linalg.solve(a, b))
    near(tc.linalg.eigh(x).eigenvalues, np.linalg.eigvalsh(a))
    near(tc.linalg.eigvalsh(x, UPLO="U"), np.linalg.eigvalsh(a))
    near(tc.linalg.matrix_power(x, -2), np.linalg.matrix_power(a, -2))
    near(tc.linalg.cond(x), np.linalg.cond(a))
    near(tc.linalg.cond(x, 1), np.linalg.cond(a, 1))
    near(tc.linalg.cond(x, p="fro"), np.linalg.cond(a, "fro"))
    p, lower, upper = tc.linalg.lu(x)
    near(p @ lower @ upper, a)
    lu, pivots = tc.linalg.lu_factor(x)
    near(tc.linalg.lu_solve(lu, pivots, y), np.linalg.solve(a, b))
    near(tc.lu_solve(y, *x.lu()), np.linalg.solve(a, b))
    near(tc.lu_unpack(lu, pivots).L, lower.numpy())
    assert int(tc.lu(x, get_infos=True)[2]) == 0 and tc.linalg.inv_ex(x).info.item() == 0
    near(tc.linalg.ldl_solve(*tc.linalg.ldl_factor(x), y), np.linalg.solve(a, b))
    near(tc.triangular_solve(y, x).solution, np.linalg.solve(np.triu(a), b))
    near(tc.linalg.solve_triangular(x, y, upper=False), np.linalg.solve(np.tril(a), b))
    near(tc.linalg.solve_triangular(x, y.float(), upper=False), np.linalg.solve(np.tril(a), b.astype("float32")))


@settings(max_examples=20, deadline=None)
@given(SIZES, SIZES)
def test_rectangular_matrices(n, m):
    a, x = matrix(n, m)
    q, r = tc.linalg.qr(x)
    near(q @ r, a)
    assert tc.linalg.qr(x, mode="complete").Q.shape == (n, n) and tc.qr(x).R.shape == (min(n, m), m)
    u, s, vh = tc.linalg.svd(x, full_matrices=False)
    near(u @ tc.diag(s) @ vh, a)
    near(tc.linalg.svdvals(x), np.linalg.svd(a, compute_uv=False))
    u, s, v = tc.svd(x)
    near(u @ tc.diag(s) @ v.T, a)
    assert tc.svd(x, compute_uv=False).V.abs().sum().item() == 0
    near(tc.linalg.pinv(x), np.linalg.pinv(a))
    near(tc.pinverse(x), np.linalg.pinv(a))
    assert tc.linalg.matrix_rank(x).item() == np.linalg.matrix_rank(a)
    near(tc.linalg.lstsq(x, tc.ones(n, 1, dtype=tc.float64)).solution, np.linalg.lstsq(a, np.ones((n, 1)), None)[0])
    for ord in (None, 1, -1, 2, -2, float("inf"), "fro", "nuc"):  # noqa: A001
        near(tc.linalg.norm(x, ord), np.linalg.norm(a, ord))
    near(tc.linalg.matrix_norm(x), np.linalg.norm(a))
    near(tc.linalg.vector_norm(x, 3, dim=1), np.linalg.norm(a, 3, axis=1))
    near(tc.linalg.norm(x, dim=0, keepdim=True), np.linalg.norm(a, axis=0, keepdims=True))


DTYPES = pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])


def batch(dtype, *sizes, seed=0):
    """Matrices of a dtype, from NumPy and Tercel, and the tolerance of results."""
    rng = np.random.default_rng(seed)
    n = rng.standard_normal(sizes) + (1j * rng.standard_normal(sizes) if dtype[0] == "c" else 0)
    n = n.astype(dtype)
    return n, tc.from_numpy(n), 2e-3 if dtype in ("float32", "complex64") else 1e-9


def same(got, want, tolerance):
    want = np.asarray(want)
    assert str(got.dtype) == f"tercel.{want.dtype}" and tuple(got.shape) == want.shape
    near(got, want, tolerance)


@DTYPES
def test_square_matrices_of_all_dtypes(dtype):
    (a, x, tolerance), (b, y, _) = batch(dtype, 2, 4, 4), batch(dtype, 2, 4, 3, seed=1)
    h = a @ a.conj().swapaxes(-1, -2) + np.eye(4, dtype=dtype)
    k = tc.from_numpy(h)
    linalg = np.linalg
    for name in ("inv", "det", "matrix_rank"):
        same(getattr(tc.linalg, name)(x), getattr(linalg, name)(a), tolerance)
    same(tc.linalg.solve(x, y), linalg.solve(a, b), tolerance)
    same(tc.linalg.solve_triangular(x, y, upper=True), linalg.solve(np.triu(a), b), 100 * tolerance)
    same(tc.linalg.cholesky(k), linalg.cholesky(h), tolerance)
    same(tc.linalg.cholesky(k, upper=True), linalg.cholesky(h).conj().swapaxes(-1, -2), tolerance)
    same(tc.cholesky_solve(y, k.cholesky()), linalg.solve(h, b), tolerance)
    same(tc.linalg.eigvalsh(k), linalg.eigvalsh(h), tolerance)
    values, vectors = tc.linalg.eigh(k)
    same(values, linalg.eigh(h).eigenvalues, tolerance)
    same((vectors * values.unsqueeze(-2)) @ vectors.mH, h, tolerance)
    for got, want in zip(tc.linalg.slogdet(x), linalg.slogdet(a)):
        same(got, want, tolerance)
    for n in (-2, 0, 1, 3):
        same(tc.linalg.matrix_power(x, n), linalg.matrix_power(a, n), 50 * tolerance)
    same(tc.linalg.cond(x), linalg.cond(a), 10 * tolerance)
    p, lower, upper = tc.linalg.lu(x)
    same(p @ lower @ upper, a, tolerance)
    same(tc.linalg.lu_solve(*tc.linalg.lu_factor(x), y, adjoint=True), linalg.solve(a.conj().swapaxes(-1, -2), b),
         tolerance)
    same(tc.linalg.ldl_solve(*tc.linalg.ldl_factor(k, hermitian=True), y, hermitian=True), linalg.solve(h, b), tolerance)
    same(tc.linalg.pinv(k, hermitian=True), linalg.pinv(h, hermitian=True), tolerance)
    same(tc.linalg.tensorinv(x[0].reshape(2, 2, 4), 2), linalg.tensorinv(a[0].reshape(2, 2, 4), 2), tolerance)


@DTYPES
@pytest.mark.parametrize("sizes", [(4, 4), (5, 3), (2, 3, 5)])
def test_rectangular_matrices_of_all_dtypes(dtype, sizes):
    (a, x, tolerance), (b, y, _) = batch(dtype, *sizes), batch(dtype, sizes[-2], 2, seed=1)
    linalg = np.linalg
    q, r = tc.linalg.qr(x)
    same(q @ r, a, tolerance)
    same(abs(r), abs(linalg.qr(a).R), tolerance)
    for full in (False, True):
        u, s, vh = tc.linalg.svd(x, full_matrices=full)
        k = s.shape[-1]
        same(s, linalg.svd(a).S, tolerance)
        same((u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :], a, tolerance)
    u, s, v = tc.svd(x)
    same((u * s.unsqueeze(-2)) @ v.mH, a, tolerance)
    same(tc.svd(x, compute_uv=False).S, linalg.svdvals(a), tolerance)
    same(tc.linalg.svdvals(x), linalg.svdvals(a), tolerance)
    same(tc.linalg.pinv(x), linalg.pinv(a), tolerance)
    same(tc.linalg.matrix_rank(x), linalg.matrix_rank(a), 0)
    for driver in ("gels", "gelsy", "gelsd", "gelss"):
        same(tc.linalg.lstsq(x, y, driver=driver).solution, linalg.pinv(a) @ b, tolerance)
    for ord in (1, -1, 2, -2, float("inf"), float("-inf"), "fro", "nuc"):  # noqa: A001
        same(tc.linalg.matrix_norm(x, ord), linalg.norm(a, ord, axis=(-2, -1)), tolerance)
    for ord in (0, 1, 2, 3.5, float("inf"), float("-inf")):  # noqa: A001
        same(tc.linalg.vector_norm(x, ord, dim=-1), linalg.norm(a, ord, axis=-1), tolerance)
    same(tc.linalg.vecdot(x, x * 2), (a.conj() * a * 2).sum(-1), tolerance)


@DTYPES
def test_eigenvalues_of_any_matrix(dtype):
    a, x, tolerance = batch(dtype, 3, 5, 5)
    values, vectors = result = tc.linalg.eig(x)
    assert type(result).__name__ == "linalg_eig" and result.eigenvectors is vectors
    assert values.dtype is vectors.dtype is (tc.complex64 if dtype in ("float32", "complex64") else tc.complex128)
    near(x.to(vectors.dtype) @ vectors, (vectors * values.unsqueeze(-2)).numpy(), tolerance)
    near(tc.linalg.vector_norm(vectors, dim=-2), np.ones((3, 5)), tolerance)
    for got in (values, tc.linalg.eigvals(x)):
        for one, want in zip(got.numpy(), np.linalg.eigvals(a)):
            apart = abs(one[:, None] - want[None])
            assert sorted(apart.argmin(1)) == list(range(5)) and apart.min(1).max() < tolerance
    out = tc.empty(0, dtype=values.dtype), tc.empty(0, dtype=values.dtype)
    assert tc.linalg.eig(x, out=out).eigenvalues is out[0]
    near(out[1], vectors.numpy(), 0)
    near(tc.linalg.eigvals(x, out=out[0]), tc.linalg.eigvals(x).numpy(), 0)
    with pytest.raises(RuntimeError, match=r"linalg\.eig: A must be batches of square matrices"):
        tc.linalg.eig(x[:, 1:])


def test_named_results_and_out():
    _, x = definite(3)
    result = tc.linalg.eigh(x)
    assert type(result).__name__ == "linalg_eigh" and result[0] is result.eigenvalues and len(result) == 2
    assert repr(type(tc.linalg.svd(x))) == "<class 'tercel.return_types.linalg_svd'>"
    values, vectors = tc.empty(0, dtype=tc.float64), tc.empty(0, dtype=tc.float64)
    filled = tc.linalg.eigh(x, out=(values, vectors))
    assert filled.eigenvalues is values and filled.eigenvectors is vectors
    near(vectors, result.eigenvectors.numpy())
    with pytest.raises(TypeError, match="tuple of 2 elements"):
        tc.linalg.eigh(x, out=(values,))


def test_errors_of_linalg():
    singular = tc.zeros(2, 2)
    for call in (tc.linalg.inv, tc.linalg.cholesky, lambda a: tc.linalg.solve(a, tc.ones(2))):
        with pytest.raises(tc.linalg.LinAlgError):
            call(singular)
    assert issubclass(tc.linalg.LinAlgError, RuntimeError) and tc.linalg.inv_ex(singular).info.item() == 1
    with pytest.raises(RuntimeError, match="UPLO"):
        tc.linalg.eigh(singular, UPLO="X")
    with pytest.raises(TypeError, match=r"linalg_inv\(\)"):
        tc.linalg.inv(3)


def test_gradients_pass_through():
    _, x = definite(3)
    x.requires_grad_()
    tc.linalg.slogdet(x).logabsdet.backward()
    near(x.grad, np.linalg.inv(x.detach().numpy()).T)


def test_vander_of_batches():
    x = tc.tensor([[1.0, 2, 3], [4, 5, 6]])
    near(tc.linalg.vander(x), np.stack([np.vander(row, increasing=True) for row in x.numpy()]))
    assert tc.linalg.vander(tc.tensor([2, 3]), N=4).tolist() == [[1, 2, 4, 8], [1, 3, 9, 27]]
    assert tc.linalg.vander(tc.tensor(3.0), N=3).tolist() == [[1, 3, 9]]
    says = pytest.raises(RuntimeError, match="N must be greater than 1, got 1")
    with says:
        tc.linalg.vander(x, N=1)


def test_norms_by_their_old_names():
    x = tc.randn(3, 4, dtype=tc.float64)
    near(tc.frobenius_norm(x), np.linalg.norm(x.numpy()))
    near(tc.frobenius_norm(x, 1, True), np.linalg.norm(x.numpy(), axis=1, keepdims=True))
    near(tc.nuclear_norm(x), np.linalg.norm(x.numpy(), "nuc"))


@pytest.mark.parametrize("dtype", [tc.float32, tc.complex128])
def test_dtypes_of_out(dtype):
    """Most accept exactly the result's dtype, older ones any that it can be cast to; errors have PyTorch's messages."""
    a = tc.eye(2, dtype=dtype) + 1
    word, cpp = {tc.float32: ("Float", "float"), tc.complex128: ("ComplexDouble", "c10::complex<double>")}[dtype]
    linalg = tc.linalg
    for call in (linalg.cholesky, linalg.inv, linalg.det, tc.inverse):
        with pytest.raises(RuntimeError, match=f"^Expected out tensor to have dtype {cpp}, but got int instead"):
            call(a, out=tc.empty(0, dtype=tc.int32))
    with pytest.raises(RuntimeError, match="^Expected out tensor to have dtype"):
        linalg.qr(a, out=(tc.empty(0, dtype=dtype), tc.empty(0, dtype=tc.int32)))
    for call, name in ((linalg.pinv, "linalg.pinv"), (tc.cholesky_inverse, "cholesky_inverse"),
                       (lambda x, out: linalg.matrix_power(x, 2, out=out), "matrix_power")):
        with pytest.raises(RuntimeError, match=f"{name}: Expected result to be safely castable from {word} dtype, but got "
                                               "result with dtype Int"):
            call(a, out=tc.empty(0, dtype=tc.int32))
    wide = tc.empty(0, dtype=tc.complex128)
    assert linalg.pinv(a, out=wide) is wide and wide.shape == (2, 2)
    with pytest.raises(RuntimeError, match="linalg.eig: Expected eigenvectors to be safely castable"):
        linalg.eig(a, out=(tc.empty(0, dtype=tc.complex128), tc.empty(0)))
    with pytest.raises(RuntimeError, match="from Long dtype, but got result with dtype Bool"):
        linalg.matrix_rank(a, out=tc.empty(0, dtype=tc.bool))


def test_tolerances_of_each_matrix():
    values = tc.tensor([[3.0, 2.0, 0.5], [1.0, 0.2, 0.1]], dtype=tc.float64)
    a = tc.diag_embed(values)
    rank = tc.linalg.matrix_rank
    assert rank(a, atol=tc.tensor([1, 0])).tolist() == [2, 3]
    assert rank(a, rtol=tc.tensor([0.5, 0.15])).tolist() == [2, 2]
    assert rank(a, atol=tc.tensor(0.15), rtol=tc.tensor(0.5)).tolist() == [2, 1]
    assert rank(a, tol=tc.tensor([2.5, 0.15])).tolist() == rank(a, tc.tensor([2.5, 0.15])).tolist() == [1, 2]
    assert rank(a, atol=0.15).tolist() == [3, 2]
    inverse = tc.linalg.pinv(a, rtol=tc.tensor([0.5, 0.0]))
    near(tc.diagonal(inverse, 0, -2, -1), [[1 / 3, 0.5, 0], [1, 5, 10]])
    near(tc.linalg.pinv(a, rcond=tc.tensor(0.5)), tc.linalg.pinv(a, rcond=0.5).numpy())
    for call, name in ((lambda: tc.linalg.pinv(a, atol=tc.tensor(1j)), "pinv: atol"),
                       (lambda: tc.linalg.pinv(a, rcond=tc.tensor(1j)), "pinv: rcond"),
                       (lambda: rank(a, rtol=tc.tensor(1j)), "matrix_rank: rtol")):
        with pytest.raises(RuntimeError, match=f"linalg.{name} tensor of complex type is not supported. Got Complex"):
            call()
    with pytest.raises(RuntimeError, match=r"linalg.pinv\(Float\{\[1\]\}\): expected a tensor with 2 or more dimensions"):
        tc.linalg.pinv(tc.ones(1))


@pytest.mark.parametrize("dtype", [tc.float64, tc.complex128])
def test_products_with_q(dtype):
    """ormqr() multiplies by all of Q, which geqrf() left in reflectors."""
    a, w = tc.randn(2, 5, 3, dtype=dtype), tc.randn(2, 5, 4, dtype=dtype)
    reflectors, tau = tc.geqrf(a)
    q = tc.linalg.qr(a, mode="complete").Q
    for other, left in ((w, True), (w.mT, False)):
        for transpose in (False, True):
            used = q.mH if transpose else q
            near(tc.ormqr(reflectors, tau, other, left, transpose), (used @ other if left else other @ used).numpy())
    out = tc.empty(0, dtype=dtype)
    assert reflectors.ormqr(tau, w, out=out) is out
    near(out, (q @ w).numpy())
    for call, text in ((lambda: tc.ormqr(reflectors, tau, w[..., :4, :]), r"other.shape\[-2\] must be equal to input.shape"),
                       (lambda: tc.ormqr(reflectors, tau[0], w), "Expected tau to have one dimension less than input"),
                       (lambda: tc.ormqr(reflectors, tau, w.real.float()), "Expected input and other to have the same dtype"),
                       (lambda: tc.ormqr(reflectors, tau, w[0, 0]), "other must have at least 2 dimensions")):
        with pytest.raises(RuntimeError, match=f"^ormqr: .*{text}"):
            call()
    x = reflectors.detach().clone().requires_grad_()
    tc.ormqr(x, tau, w).abs().sum().backward()
    assert x.grad.isfinite().all()


def test_names_from_before_linalg():
    n, x = definite(3)
    with pytest.warns(UserWarning, match="symeig is deprecated"):
        values, vectors = tc.symeig(x, eigenvectors=True)
        alone = x.symeig()
    near(values, np.linalg.eigvalsh(n))
    near(x @ vectors, (vectors * values).numpy())
    assert alone.eigenvectors.numel() == 0 and alone.eigenvalues.tolist() == pytest.approx(values.tolist())
    outs = tc.empty(1, dtype=tc.float64), tc.empty(0, dtype=tc.float64)
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"), \
            pytest.warns(UserWarning, match="symeig is deprecated"):
        assert x.symeig(True, out=outs).eigenvectors is outs[1]
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="but got eigenvalues with dtype Int"):
        x.symeig(out=(tc.empty(0, dtype=tc.int32), outs[1]))
    first = tc.zeros_like(outs[0])
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="but got eigenvectors with dtype Int"):
        x.symeig(True, out=(first, tc.empty(0, dtype=tc.int32)))
    assert not first.any()
    for call in (tc.eig, tc.lstsq, tc.solve, tc.matrix_rank, x.solve):
        with pytest.raises(RuntimeError, match="This function was deprecated since version 1.9 and is now removed"):
            call(x, x)
    assert tc.backends.cuda.preferred_linalg_library() == "default"


def test_matrices_that_other_libraries_trip_over():
    for shape in ((3, 150_000), (150_000, 2)):
        a = tc.randn(shape, dtype=tc.complex64)
        u, s, vh = tc.linalg.svd(a, full_matrices=False)
        assert u.shape == (shape[0], min(shape)) and vh.shape == (min(shape), shape[1])
        near((u * s) @ vh, a.numpy(), 1e-4)
        near(tc.linalg.svdvals(a), s.numpy(), 1e-4)
        near(s ** 2, np.linalg.eigvalsh((a @ a.mH if shape[0] < shape[1] else a.mH @ a).numpy())[::-1], 1e-3)
    singular = tc.diag(tc.tensor([1.0, 1.0, 0.0]))
    assert all(tc.linalg.cond(singular, p) == float("inf") for p in (1, -1, 2, "fro", "nuc"))
    assert tc.linalg.cond(tc.ones(2, 0, 0)).tolist() == tc.linalg.cond(tc.ones(2, 0, 0), "fro").tolist() == [0, 0]
    for norm in ("other", 5):
        with pytest.raises(RuntimeError, match=f"linalg.cond got an invalid norm type: {norm}"):
            tc.linalg.cond(singular, norm)
    with pytest.raises(tc.linalg.LinAlgError, match="cholesky_inverse: .Batch element 1.: The diagonal element 2 is zero"):
        tc.cholesky_inverse(tc.tensor([[[1.0, 0], [0, 1]], [[1.0, 0], [0, 0]]]))
    factor, pivots = tc.linalg.lu_factor(tc.eye(2))
    for pivot, text in ((0, "greater or equal to 1"), (3, r"smaller or equal to LU.size\(-2\)")):
        pivots[0] = pivot
        with pytest.raises(RuntimeError, match=f"Pivots given to lu_solve must all be {text}. Did you properly"):
            tc.linalg.lu_solve(factor, pivots, tc.ones(2, 1), adjoint=True)
        with pytest.raises(RuntimeError, match=r"pivots passed to lu_unpack must be between 1 and LU.size\(-2\)"):
            tc.lu_unpack(factor, pivots)
    with pytest.raises(tc.linalg.LinAlgError, match="linalg.eig: input tensor should not contain infs or NaNs"):
        tc.linalg.eig(tc.full((2, 2, 2), float("nan")))
    with pytest.raises(ValueError, match="at least one operand"):
        tc.einsum("", [])


@pytest.mark.parametrize("dtype", [tc.int32, tc.uint8, tc.bfloat16, tc.complex64])
def test_linear_layers_of_other_dtypes(dtype):
    x, w, b = (tc.ones(s, dtype=dtype) for s in ((2, 3, 4), (5, 4), (5,)))
    out = tc.nn.functional.linear(x, w, b)
    assert out.dtype is dtype and out.shape == (2, 3, 5) and bool((out == 5).all())
    assert bool((tc.nn.functional.linear(x, w) == 4).all())


def test_factors_of_outer_products():
    x, v = tc.ones(2, 2, dtype=tc.int64), tc.ones(2, dtype=tc.int64)
    assert tc.addr(x, v, v, beta=2, alpha=3).tolist() == [[5, 5], [5, 5]]
    for name in ("beta", "alpha"):
        for factor, text in ((True, f"Boolean {name} only supported for Boolean results"),
                             (0.5, f"For integral input tensors, argument {name} must not be a floating point number")):
            with pytest.raises(RuntimeError, match=text):
                tc.addr(x, v, v, **{name: factor})
        with pytest.raises(RuntimeError, match=f"argument {name} must not be a complex number"):
            tc.addr(x.float(), v, v, **{name: 1j})
    assert tc.addr(x.bool(), v.bool(), v.bool(), beta=True, alpha=False).all()


@pytest.mark.parametrize("shape", [(20, 8), (8, 20), (3, 12, 12)])
@pytest.mark.parametrize("dtype", [tc.float64, tc.complex128])
def test_svd_of_low_rank(shape, dtype):
    *batch, m, n = shape
    x = tc.randn(*batch, m, 3, dtype=dtype) @ tc.randn(*batch, 3, n, dtype=dtype)
    u, s, v = tc.svd_lowrank(x, q=5)
    assert u.shape == (*batch, m, 5) and s.shape == (*batch, 5) and v.shape == (*batch, n, 5)
    near((u * s.unsqueeze(-2)) @ v.mH, x.numpy())
    near(s[..., :3], np.linalg.svd(x.numpy(), compute_uv=False)[..., :3])
    mean = tc.randn(m, n, dtype=dtype)
    near(tc.svd_lowrank(x + mean, q=5, M=mean)[1][..., :3], s[..., :3].numpy())


def test_principal_components():
    x = tc.randn(50, 2, dtype=tc.float64) @ tc.randn(2, 9, dtype=tc.float64) + 7
    u, s, v = tc.pca_lowrank(x, q=4)
    near((u * s) @ v.T + x.mean(0), x.numpy())
    near(s[:2] ** 2 / 49, np.linalg.eigvalsh(np.cov(x.numpy().T))[::-1][:2])
    assert tc.pca_lowrank(x)[1].shape == (6,)
    for call, text in [(lambda: tc.pca_lowrank(x, q=10), "q\\(=10\\) must be non-negative integer and not greater than"),
                       (lambda: tc.svd_lowrank(x, niter=-1), "niter\\(=-1\\) must be non-negative integer")]:
        with pytest.raises(ValueError, match=text):
            call()


def test_matrices_that_are_no_numbers():
    nan, inf = float("nan"), float("inf")
    for rows, order in (([[nan, 1.0], [1.0, 2.0]], 1), ([[2.0, nan], [nan, 2.0]], 2), ([[2.0, 1.0], [1.0, nan]], 2)):
        for dtype in (tc.float32, tc.complex128):
            x = tc.tensor(rows, dtype=dtype)
            assert tc.linalg.cholesky_ex(x).info.item() == order
            with pytest.raises(tc.linalg.LinAlgError, match=f"the leading minor of order {order} is not"):
                tc.linalg.cholesky(x)
    for driver in ("gels", "gelsy", "gelsd", "gelss"):
        for wrong in (nan, inf):
            with pytest.raises(tc.linalg.LinAlgError, match="lstsq: .*contained non-finite values"):
                tc.linalg.lstsq(tc.tensor([[wrong, 1.0], [1.0, 2.0]]), tc.ones(2, 1), driver=driver)
