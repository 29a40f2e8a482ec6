"""Products, triangular systems and masked reductions of compressed matrices: what PyTorch 2.15 computes and refuses."""

import pytest

import tercel as tc

COMPRESSED = [tc.sparse_csr, tc.sparse_csc, tc.sparse_bsr, tc.sparse_bsc]
TRIANGLE = [[2.0, 1, 0, 3], [5, 4, 0, 1], [0, 7, 1, 2], [1, 0, 6, 3]]  # has both triangles


def in_layout(dense, layout, requires_grad=False):
    blocks = {"blocksize": (1, 2)} if layout in (tc.sparse_bsr, tc.sparse_bsc) else {}
    return dense.detach().to_sparse(layout=layout, **blocks).requires_grad_(requires_grad)


# ---- products ----

@pytest.mark.parametrize("left", COMPRESSED)
@pytest.mark.parametrize("right", COMPRESSED)
@pytest.mark.parametrize("size", [(4, 4), (4,), (1, 4), ()])
def test_a_strided_input_and_a_sparse_product(left, right, size):
    d, e, x = tc.tensor(TRIANGLE), tc.tensor(TRIANGLE).tril(), tc.full(size, 2.0)
    a, b = in_layout(d, left, True), in_layout(e, right, True)
    got = tc.addmm(x, a, b, beta=3, alpha=0.5)
    assert got.layout is tc.strided
    assert got.tolist() == (3 * x + 0.5 * (d @ e)).tolist()
    weights = tc.arange(16.0).reshape(4, 4)
    (got * weights).sum().backward()
    assert (a.grad.to_dense() * (a.detach().to_dense() != 0)).tolist() == (0.5 * weights @ e.t() * (d != 0)).tolist()
    assert (b.grad.to_dense() * (e != 0)).tolist() == (0.5 * d.t() @ weights * (e != 0)).tolist()


@pytest.mark.parametrize("layout", COMPRESSED)
@pytest.mark.parametrize("beta", [0, 2])
def test_a_sum_has_the_layout_of_a_sparse_input(layout, beta):
    d = tc.tensor(TRIANGLE)
    x, a = in_layout(d, layout), in_layout(d, layout)
    got = tc.addmm(x, a, a, beta=beta)
    assert got.layout is layout
    assert got.to_dense().tolist() == (beta * d + d @ d).tolist()
    if beta == 0:
        inf = in_layout(d * float("inf"), layout)
        assert tc.addmm(inf, a, a, beta=0).to_dense().tolist() == (d @ d).tolist()


@pytest.mark.parametrize("call, text", [
    (lambda a, d: tc.mm(a, d.unsqueeze(0)), "addmm: mat2 must be a matrix, got 3-D tensor"),
    (lambda a, d: tc.mm(d.unsqueeze(0), a), "addmm: self must be a matrix, got 3-D tensor"),
    (lambda a, d: tc.addmm(d, a, d.unsqueeze(0)), "addmm: mat2 must be a matrix, got 3-D tensor"),
    (lambda a, d: tc.mm(tc.stack([d, d]).to_sparse_csr(), d), "addmm: self must be a matrix, got 3-D tensor"),
    (lambda a, d: tc.addmm(a, a, d),
     "addmm: computation on CPU is not implemented for SparseCsr + SparseCsr @ Strided"),
    (lambda a, d: tc.sparse.sampled_addmm(a, tc.ones(4), d), "sampled_addmm: Expected mat1 to be a matrix, got 1-D tensor"),
    (lambda a, d: tc.sparse.sampled_addmm(a, tc.ones(1, 4, 4), tc.ones(2, 4, 4)),
     "sampled_addmm: Expected mat1 and mat2 to have the same batch size, but got [1] and [2]"),
    (lambda a, d: tc.sparse.sampled_addmm(tc.stack([d, d]).to_sparse_csr(), tc.ones(3, 4, 4), tc.ones(3, 4, 4)),
     "sampled_addmm: Expected self and mat1 to have the same batch size, but got [2] and [3]"),
    (lambda a, d: tc.sparse.sampled_addmm(tc.stack([d, d]).to_sparse_csr(), d, d),
     "sampled_addmm: Expected self and mat1 to have the same batch size, but got [2] and []"),
])
def test_refused_products(call, text):
    d = tc.tensor(TRIANGLE)
    with pytest.raises(RuntimeError) as caught:
        call(d.to_sparse_csr(), d)
    assert text in str(caught.value)


@pytest.mark.parametrize("batch", [(2,), (2, 3), (0,)])
@pytest.mark.parametrize("repeats", [False, True])
def test_sampled_products_of_batches(batch, repeats):
    pattern = tc.tensor(TRIANGLE)
    many = pattern.expand(*batch, 4, 4)
    if batch == (0,) and not repeats:
        indices = tc.empty(0, 5, dtype=tc.int64), tc.empty(0, 12, dtype=tc.int64)
        c = tc.sparse_csr_tensor(*indices, tc.empty(0, 12), (0, 4, 4), requires_grad=True)
    else:
        c = (pattern if repeats else many.contiguous()).to_sparse_csr().requires_grad_()
    a = tc.randn(*batch, 4, 5, dtype=tc.float32).requires_grad_()
    b = tc.randn(*batch, 5, 4, dtype=tc.float32).requires_grad_()
    got = tc.sparse.sampled_addmm(c, a, b, beta=0.5, alpha=2)
    want = 0.5 * many + 2 * (a @ b) * (many != 0)
    assert got.layout is tc.sparse_csr and got.shape == many.shape
    tc.testing.assert_close(got.to_dense(), want)
    if batch == (0,):
        return
    weights = tc.randn(*batch, 4, 4)
    got_a, got_b, got_c = tc.autograd.grad((got.to_dense() * weights).sum(), [a, b, c])
    want_a, want_b = tc.autograd.grad((want * weights).sum(), [a, b])
    tc.testing.assert_close(got_a, want_a)
    tc.testing.assert_close(got_b, want_b)
    want_c = 0.5 * weights * (many != 0)
    tc.testing.assert_close(got_c.to_dense(), want_c.sum(tuple(range(len(batch)))) if repeats else want_c)


# ---- triangular systems ----

@pytest.mark.parametrize("layout", COMPRESSED)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("unitriangular", [False, True])
@pytest.mark.parametrize("dtype", [tc.float64, tc.complex128])
def test_triangular_systems(layout, upper, transpose, unitriangular, dtype):
    d = tc.tensor(TRIANGLE).to(dtype)
    if dtype.is_complex:
        d = d * (1 + 0.5j)
    b = (tc.arange(8.0).reshape(4, 2) - 3).to(dtype)
    options = dict(upper=upper, transpose=transpose, unitriangular=unitriangular)
    dense_a, dense_b = d.clone().requires_grad_(), b.clone().requires_grad_()
    a, b = in_layout(d, layout, True), b.requires_grad_()
    want = tc.triangular_solve(dense_b, dense_a, **options).solution
    got, copy = tc.triangular_solve(b, a, **options)
    assert copy.shape == (0,)
    tc.testing.assert_close(got, want)
    weights = tc.arange(8.0).reshape(4, 2).to(dtype)
    got.backward(weights)
    want.backward(weights)
    tc.testing.assert_close(b.grad, dense_b.grad)
    assert a.grad.layout is layout
    tc.testing.assert_close(a.grad.to_dense() * (d != 0), dense_a.grad * (d != 0))


@pytest.mark.parametrize("index", [tc.int32, tc.int64])
def test_triangular_systems_of_batches(index):
    d, b = tc.tensor(TRIANGLE).triu(), tc.arange(24.0).reshape(3, 4, 2)
    one = d.to_sparse_csr()
    one = tc.sparse_csr_tensor(one.crow_indices().to(index), one.col_indices().to(index), one.values(), one.shape)
    want = tc.triangular_solve(b, d).solution
    tc.testing.assert_close(tc.triangular_solve(b, one).solution, want)
    tc.testing.assert_close(tc.triangular_solve(b, tc.stack([d] * 3).to_sparse_csr()).solution, want)
    assert tc.triangular_solve(b[:0], one).solution.shape == (0, 4, 2)
    wide = tc.arange(4.0 * 1000, dtype=tc.float64).reshape(4, 1000)
    tc.testing.assert_close(tc.triangular_solve(wide, one.double()).solution,
                            tc.triangular_solve(wide, d.double()).solution)


def test_a_triangle_without_entries_has_no_solution():
    x = tc.triangular_solve(tc.ones(2, 1), tc.zeros(2, 2).to_sparse_csr()).solution
    assert x.isnan().all()
    x = tc.triangular_solve(tc.ones(2, 1), tc.tensor([[0.0, 1], [0, 1]]).to_sparse_csr()).solution
    assert x[1].item() == 1 and x[0].isnan().item()


@pytest.mark.parametrize("call, error, text", [
    (lambda a: tc.triangular_solve(tc.ones(4), a), RuntimeError,
     "triangular_solve: Expected b to have at least 2 dimensions, but it has 1 dimensions instead"),
    (lambda a: tc.triangular_solve(tc.ones(3, 1), a), RuntimeError,
     "Incompatible matrix sizes for triangular_solve: each A matrix is 4 by 4 but each b matrix is 3 by 1"),
    (lambda a: tc.triangular_solve(tc.ones(4, 1).double(), a), RuntimeError,
     "Expected b and A to have the same dtype, but found b of type Double and A of type Float instead."),
    (lambda a: tc.triangular_solve(tc.ones(4, 1).long(), a.long()), NotImplementedError, "triangular_solve"),
    (lambda a: tc.triangular_solve(tc.ones(4, 1), tc.ones(4, 3).to_sparse_csr()), RuntimeError,
     "triangular_solve: A must be batches of square matrices, but they are 4 by 3 matrices"),
    (lambda a: tc.triangular_solve(tc.ones(3, 4, 1), tc.ones(2, 4, 4).to_sparse_csr()), RuntimeError,
     "expected b with the batch dimensions of A, of sizes [2, 4, 4], but got sizes [3, 4, 1]"),
    (lambda a: tc.triangular_solve(tc.ones(4, 1), a.to_sparse()), NotImplementedError,
     "triangular_solve: not implemented for layout sparse_coo"),
    (lambda a: tc.triangular_solve(a, a), NotImplementedError, "triangular_solve: not implemented for layout sparse_csr"),
])
def test_refused_systems(call, error, text):
    with pytest.raises(error) as caught:
        call(tc.tensor(TRIANGLE).to_sparse_csr())
    assert text in str(caught.value)


def test_systems_check_changed_indices():
    a = tc.tensor(TRIANGLE).to_sparse_csr()
    a.col_indices()[0] = 9
    with pytest.raises(IndexError):
        tc.triangular_solve(tc.ones(4, 1), a)
    b = tc.tensor(TRIANGLE).to_sparse_csr()
    b.crow_indices()[1] = 90
    with pytest.raises(IndexError):
        tc.triangular_solve(tc.ones(4, 1), b)


# ---- masked reductions ----

ELEMENTS = [[1.0, 0, 2], [0, 3, 0]]
MASK = [[True, False, True], [False, True, True]]


# The values of PyTorch 2.15 for dim None, 0 and 1, with keepdim.
REDUCED = {
    "sum": ([[6.0]], [[1.0, 3, 2]], [[3.0], [3]]),
    "prod": ([[0.0]], [[1.0, 3, 0]], [[2.0], [0]]),
    "amax": ([[3.0]], [[1.0, 3, 2]], [[2.0], [3]]),
    "amin": ([[0.0]], [[1.0, 3, 0]], [[1.0], [0]]),
    "mean": ([[1.5]], [[1.0, 3, 1]], [[1.5], [1.5]]),
}


@pytest.mark.parametrize("op", REDUCED)
@pytest.mark.parametrize("dtype", [tc.float32, tc.float64, tc.bfloat16])
@pytest.mark.parametrize("sparse_mask", [False, True])
def test_masked_reductions(op, dtype, sparse_mask):
    x, mask = tc.tensor(ELEMENTS, dtype=dtype).to_sparse_csr(), tc.tensor(MASK)
    if sparse_mask:
        mask = tc.sparse_csr_tensor([0, 2, 5], [0, 2, 0, 1, 2], [True, True, False, True, True], (2, 3))
    for dim, want in zip((None, 0, 1), REDUCED[op]):
        got = getattr(tc.masked, op)(x, dim, keepdim=True, mask=mask)
        assert (got.layout, got.dtype) == (tc.sparse_csr, dtype)
        assert got.to_dense().tolist() == want
    assert getattr(tc.masked, op)(x, (0, 1), keepdim=True, mask=mask).to_dense().tolist() == REDUCED[op][0]
    # A slice in which the mask selects nothing has no entry.
    none = getattr(tc.masked, op)(x, 1, keepdim=True, mask=tc.tensor([[True] * 3, [False] * 3]))
    assert none.shape == (2, 1) and none._nnz() == 1
    with pytest.raises(RuntimeError, match="reduction operations on CSR tensors with keepdim=False is unsupported"):
        getattr(tc.masked, op)(x, 1, mask=mask)
    if op != "sum":
        with pytest.raises(ValueError, match=f"masked {op} expects explicit mask for sparse_csr tensor input"):
            getattr(tc.masked, op)(x, 1, keepdim=True)


def test_sums_without_a_mask_and_sparse_masks_of_strided_tensors():
    x = tc.tensor(ELEMENTS)
    assert tc.masked.sum(x.to_sparse_csr(), 1, keepdim=True).to_dense().tolist() == [[3.0], [3.0]]
    mask = tc.tensor(MASK)
    assert tc.masked.amax(x, 1, mask=mask.to_sparse_csr()).tolist() == tc.masked.amax(x, 1, mask=mask).tolist()


def test_output_masks():
    x, mask = tc.tensor(ELEMENTS), tc.tensor([[True, False, True], [False, False, False]])
    assert tc.masked._output_mask(tc.masked.sum, x, 1, mask=mask).tolist() == [True, False]
    assert tc.masked._output_mask(tc.masked.norm, x, 2, dim=0, keepdim=True, mask=mask).tolist() == [[True, False, True]]
    assert tc.masked._output_mask(tc.masked.softmax, x, 1, mask=mask).tolist() == mask.tolist()


# ---- functions of indices, tensors like others ----

def test_functions_of_indices():
    offsets = tc._convert_indices_from_coo_to_csr(tc.tensor([0, 0, 2]), 4, out_int32=True)
    assert (offsets.tolist(), offsets.dtype) == ([0, 2, 2, 3, 3], tc.int32)
    assert tc._convert_indices_from_coo_to_csr(tc.tensor([], dtype=tc.int64), 2).tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match="Input is supposed to be a vector"):
        tc._convert_indices_from_coo_to_csr(tc.zeros(2, 2, dtype=tc.int64), 4)
    with pytest.raises(RuntimeError, match="expected rows below 2 but got 3"):
        tc._convert_indices_from_coo_to_csr(tc.tensor([3]), 2)
    tc._validate_compressed_sparse_indices(True, tc.tensor([0, 1]), tc.tensor([2]), 1, 3, 1)
    tc._validate_compressed_sparse_indices(False, tc.tensor([[0, 1]]), tc.tensor([[2]]), 1, 3, 1)
    with pytest.raises(RuntimeError, match="`0 <= col_indices < ncols` is not satisfied."):
        tc._validate_compressed_sparse_indices(True, tc.tensor([0, 1]), tc.tensor([3]), 1, 3, 1)
    with pytest.raises(RuntimeError, match="`ccol_indices.*== nnz` is not satisfied."):
        tc._validate_compressed_sparse_indices(False, tc.tensor([0, 2]), tc.tensor([2]), 1, 3, 1)


@pytest.mark.parametrize("layout", COMPRESSED)
def test_filled_tensors_have_the_entries(layout):
    x = in_layout(tc.tensor(TRIANGLE), layout)
    for got, value in ((tc.ones_like(x), 1), (tc.full_like(x, 3), 3), (tc.full_like(x, 3, dtype=tc.int64), 3)):
        assert got.layout is layout and got.values().tolist() == tc.full_like(x.values(), value).tolist()
    assert tc.full_like(x, 3, dtype=tc.int64).dtype is tc.int64 and x.to_dense().tolist() == TRIANGLE
    with pytest.raises(NotImplementedError, match="full_like: not implemented for layout sparse_coo"):
        tc.full_like(x.to_sparse(), 1)


def test_modules_of_devices():
    assert tc.get_device_module("cpu") is tc.cpu and tc.get_device_module(tc.device("cuda", 0)) is tc.cuda
    assert tc.get_device_module() is (tc.cuda if tc.cuda.is_available() else tc.cpu)
    with pytest.raises(RuntimeError, match="Invalid value of device '0'"):
        tc.get_device_module(0)


# ---- recorded changes ----

def test_recorded_changes_and_views():
    w = tc.tensor(2.0, requires_grad=True)
    x = tc.tensor(TRIANGLE).to_sparse_csr()
    view = x.t()
    with pytest.raises(NotImplementedError, match="In-place changes of a view of layout sparse_csc are not recorded"):
        view.mul_(w)
    x.mul_(w)
    assert x.to_dense().tolist() == (2 * tc.tensor(TRIANGLE)).tolist()
    with pytest.raises(NotImplementedError, match="is used after a recorded in-place change of its base"):
        view @ tc.ones(4, 1)
    (x.t() @ tc.ones(4, 1)).sum().backward()
    assert w.grad.item() == tc.tensor(TRIANGLE).sum().item()
