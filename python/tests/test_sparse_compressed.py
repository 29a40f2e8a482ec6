"""Compressed sparse layouts: what PyTorch 2.15 prints, computes and refuses."""

import copy
import io
import pickle

import numpy as np
import pytest

import tercel as tc

LAYOUTS = [tc.sparse_csr, tc.sparse_csc, tc.sparse_bsr, tc.sparse_bsc]
ELEMENTS = [[1.0, 0, 2, 0], [0, 0, 3, 4]]
OTHER = [[5.0, 6, 0, 0], [0, 1, 2, 0]]


def in_layout(elements, layout):
    dense = elements if isinstance(elements, tc.Tensor) else tc.tensor(elements)
    blocked = layout in (tc.sparse_bsr, tc.sparse_bsc)
    return dense.to_sparse(layout=layout, **({"blocksize": (1, 2)} if blocked else {}))


def csr(crow=(0, 2, 3), col=(0, 1, 1), values=(1.0, 2.0, 3.0), size=(2, 2), make=tc.sparse_csr_tensor):
    as_indices = lambda x: x if isinstance(x, tc.Tensor) else tc.tensor(x)  # noqa: E731
    return make(as_indices(crow), as_indices(col), as_indices(values), size)


# ---- printing ----

def test_prints_as_pytorch_does():
    assert repr(csr()) == ("tensor(crow_indices=tensor([0, 2, 3]),\n"
                           "       col_indices=tensor([0, 1, 1]),\n"
                           "       values=tensor([1., 2., 3.]), size=(2, 2), nnz=3,\n"
                           "       layout=tercel.sparse_csr)")
    assert repr(csr(make=tc.sparse_csc_tensor)) == ("tensor(ccol_indices=tensor([0, 2, 3]),\n"
                                                    "       row_indices=tensor([0, 1, 1]),\n"
                                                    "       values=tensor([1., 2., 3.]), size=(2, 2), nnz=3,\n"
                                                    "       layout=tercel.sparse_csc)")
    assert repr(tc.sparse_bsr_tensor([0, 1], [0], [[[1.0, 2.0]]], (1, 2))) == (
        "tensor(crow_indices=tensor([0, 1]),\n"
        "       col_indices=tensor([0]),\n"
        "       values=tensor([[[1., 2.]]]), size=(1, 2), nnz=1,\n"
        "       layout=tercel.sparse_bsr)")
    assert repr(tc.empty((0, 0), layout=tc.sparse_csr)) == (
        "tensor(crow_indices=tensor([0]),\n"
        "       col_indices=tensor([], size=(0,)),\n"
        "       values=tensor([], size=(0,)), size=(0, 0), nnz=0,\n"
        "       layout=tercel.sparse_csr)")


# ---- construction ----

INVALID = [
    (dict(crow=[0, 3]), "crow_indices.shape[-1] must be equal to the number of rows + 1 (=3), but got 2"),
    (dict(col=[0, 1]), "col_indices.shape[-1] must be equal to nnz (=3) as defined by values.shape[0], but got 2"),
    (dict(crow=[1, 2, 3]), "`crow_indices[..., 0] == 0` is not satisfied."),
    (dict(crow=[0, 2, 2]), "`crow_indices[..., -1] == nnz` is not satisfied."),
    (dict(crow=[0, 4, 3]), "`0 <= crow_indices[..., 1:] - crow_indices[..., :-1] <= ncols` is not satisfied."),
    (dict(crow=[0, 3, 3]), "`0 <= crow_indices[..., 1:] - crow_indices[..., :-1] <= ncols` is not satisfied."),
    (dict(col=[0, 2, 1]), "`0 <= col_indices < ncols` is not satisfied."),
    (dict(col=[-1, 1, 1]), "`0 <= col_indices < ncols` is not satisfied."),
    (dict(col=[1, 0, 1]), "`col_indices[..., crow_indices[..., i - 1]:crow_indices[..., i]] for all i = 1, ..., nrows are "
                          "sorted and distinct along the last dimension values` is not satisfied."),
    (dict(col=[1, 1, 1]), "are sorted and distinct along the last dimension values` is not satisfied."),
    (dict(col=tc.tensor([0, 1, 1], dtype=tc.int32)),
     "crow_indices and col_indices must have the same dtype, bot got Long and Int, respectively"),
    (dict(crow=[0.0, 2, 3], col=[0.0, 1, 1]), "crow_indices and col_indices dtype must be Int or Long, but got Float"),
    (dict(crow=0), "crow_indices must have dimensionality >= 1 but got 0"),
    (dict(col=0), "crow_indices and col_indices dimensionalities must be equal but got 1 and 0, respectively"),
    (dict(values=1.0), "values must have dimensionality > sum of batch and block dimensionalities (=0 + 0) but got 0"),
    (dict(size=(2,)), "tensor dimensionality must be sum of batch, base, and dense dimensionalities (=0 + 2 + 0) but got 1"),
    (dict(size=(2, 2, 2)),
     "tensor dimensionality must be sum of batch, base, and dense dimensionalities (=0 + 2 + 0) but got 3"),
    (dict(col=tc.tensor([0, 9, 1, 9, 1])[::2]), "expected col_indices to be a contiguous tensor per batch"),
    (dict(crow=tc.tensor([0, 9, 2, 9, 3])[::2]), "expected crow_indices to be a contiguous tensor per batch"),
    (dict(col=[0, 2, 1], make=tc.sparse_csc_tensor), "`0 <= row_indices < nrows` is not satisfied."),
    (dict(crow=[0, 3, 3], make=tc.sparse_csc_tensor),
     "`0 <= ccol_indices[..., 1:] - ccol_indices[..., :-1] <= nrows` is not satisfied."),
    (dict(crow=[0, 3], make=tc.sparse_csc_tensor),
     "ccol_indices.shape[-1] must be equal to the number of columns + 1 (=3), but got 2"),
    (dict(crow=[0, 1, 2], col=[0, 1], values=tc.ones(2, 2, 2), size=(5, 4), make=tc.sparse_bsr_tensor),
     "tensor shape[0] (=5) must be divisible with blocksize[0] (=2) as defined by values shape"),
    (dict(crow=[0, 1, 2], col=[0, 1], values=tc.ones(2, 2, 2), size=(4, 5), make=tc.sparse_bsr_tensor),
     "tensor shape[1] (=5) must be divisible with blocksize[1] (=2) as defined by values shape"),
    (dict(crow=[0, 2], col=[0, 1], values=tc.ones(2, 2, 2), size=(4, 4), make=tc.sparse_bsr_tensor),
     "crow_indices.shape[-1] must be equal to the number of row blocks + 1 (=3), but got 2"),
    (dict(crow=[0, 1, 2], col=[0, 2], values=tc.ones(2, 2, 2), size=(4, 4), make=tc.sparse_bsr_tensor),
     "`0 <= col_indices < ncols` is not satisfied."),
    (dict(crow=[0, 1, 2], col=[0, 1], values=[1.0, 2.0], size=(4, 4), make=tc.sparse_bsr_tensor),
     "values must have dimensionality > sum of batch and block dimensionalities (=0 + 2) but got 1"),
    (dict(crow=[[0, 2, 3], [0, 1, 3]], col=[[0, 1, 1]], values=[[1.0, 2, 3], [4, 5, 6]], size=(2, 2, 2)),
     "all batch dimensions of crow_indices (=[2]), col_indices (=[1]), and values (=[2]) must be equal to tensor batch "
     "dimensions (=[2])"),
    (dict(crow=[[0, 2, 3], [0, 1, 2]], col=[[0, 1, 1], [0, 0, 1]], values=[[1.0, 2, 3], [4, 5, 6]], size=(2, 2, 2)),
     "`crow_indices[..., -1] == nnz` is not satisfied."),
]


@pytest.mark.parametrize("parts, text", INVALID)
def test_refuses_parts_that_do_not_fit(parts, text):
    with pytest.raises(RuntimeError) as caught:
        csr(**parts)
    assert text in str(caught.value)


def test_a_layout_is_required():
    with pytest.raises(RuntimeError, match="sparse_compressed_tensor expected sparse compressed tensor layout but got none"):
        tc.sparse_compressed_tensor([0, 1], [0], [1.0], (1, 1))
    with pytest.raises(RuntimeError, match="expected sparse compressed tensor layout but got Sparse"):
        tc.sparse_compressed_tensor([0, 1], [0], [1.0], (1, 1), layout=tc.sparse_coo)


def test_sizes_are_inferred():
    assert csr(size=None).shape == (2, 2)
    assert csr(size=None, make=tc.sparse_csc_tensor).shape == (2, 2)
    assert tc.sparse_bsc_tensor([0, 1, 2], [0, 1], tc.zeros(2, 2, 3)).shape == (4, 6)
    assert tc.sparse_csr_tensor([[0, 2, 3], [0, 1, 3]], [[0, 1, 1], [0, 0, 1]], [[1.0, 2, 3], [4, 5, 6]]).shape == (2, 2, 2)


def test_checks_can_be_switched_off():
    x = tc.sparse_csr_tensor(tc.tensor([0, 2, 3]), tc.tensor([0, 5, 1]), tc.tensor([1.0, 2, 3]), (2, 2),
                             check_invariants=False)
    for use in (lambda: x @ tc.ones(2), lambda: x @ tc.ones(2, 3), lambda: x.to_dense(), lambda: x.to_sparse_csc(),
                lambda: x.to_sparse_coo(), lambda: x @ x, lambda: x.t() @ tc.ones(2)):
        with pytest.raises(IndexError):
            use()
    with tc.sparse.check_sparse_tensor_invariants(False):
        assert csr(crow=[1, 2, 3])._nnz() == 3


def test_attributes():
    x = csr()
    assert (x.is_sparse, x.is_sparse_csr, x.t().is_sparse_csr) == (False, True, False)
    assert (x._nnz(), x.sparse_dim(), x.dense_dim(), x.numel(), x.dim(), len(x)) == (3, 2, 0, 4, 2, 2)
    assert x.values().tolist() == [1, 2, 3]
    for name, text in [("ccol_indices", "ccol_indices expected sparse column compressed tensor layout but got SparseCsr"),
                       ("indices", "indices expected sparse coordinate tensor layout but got SparseCsr"),
                       ("coalesce", "coalesce expected sparse coordinate tensor layout but got SparseCsr"),
                       ("stride", "Sparse CSR tensors do not have strides")]:
        with pytest.raises(RuntimeError, match=text):
            getattr(x, name)()


# ---- conversions ----

@pytest.mark.parametrize("source", LAYOUTS + [tc.sparse_coo, tc.strided])
@pytest.mark.parametrize("target", LAYOUTS + [tc.sparse_coo, tc.strided])
def test_every_layout_converts_into_every_other(source, target):
    dense = tc.tensor(ELEMENTS)
    x = dense if source is tc.strided else in_layout(dense, source)
    y = x.to_dense() if target is tc.strided else in_layout(x, target)
    assert y.layout is target
    assert y.to_dense().tolist() == ELEMENTS


@pytest.mark.parametrize("source", LAYOUTS + [tc.sparse_coo, tc.strided])
@pytest.mark.parametrize("target", LAYOUTS + [tc.sparse_coo, tc.strided])
def test_gradients_of_conversions(source, target):
    weights = tc.tensor([[1.0, 2, 3, 4], [5, 6, 7, 8]])
    x = tc.tensor(ELEMENTS)
    x = (x if source is tc.strided else in_layout(x, source)).detach().requires_grad_()
    y = x.to_dense() if target is tc.strided else in_layout(x, target)
    (y.to_dense() * weights).sum().backward()
    assert x.grad.layout is x.layout
    pattern = tc.tensor(ELEMENTS) != 0
    if source in (tc.sparse_bsr, tc.sparse_bsc):
        pattern = tc.tensor([[True, True, True, True], [False, False, True, True]])
    if source is tc.strided and target in (tc.sparse_bsr, tc.sparse_bsc):
        pattern = tc.tensor([[True, True, True, True], [False, False, True, True]])
    if source is tc.strided and target is tc.strided:
        pattern = tc.ones(2, 4)
    assert x.grad.to_dense().tolist() == (weights * pattern).tolist()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_batches_and_dense_dimensions(layout):
    dense = tc.tensor([ELEMENTS, [[0, 5.0, 6, 0], [0, 0, 7, 8]]])
    x = in_layout(dense, layout)
    assert x.layout is layout and x.shape == dense.shape
    assert x.to_dense().tolist() == dense.tolist()
    assert x[1].to_dense().tolist() == dense[1].tolist()
    assert x.transpose(1, 2).to_dense().tolist() == dense.transpose(1, 2).tolist()
    assert (x * 2).to_dense().tolist() == (dense * 2).tolist()
    assert x.to_sparse().to_dense().tolist() == dense.tolist()
    hybrid = tc.arange(12.0).reshape(2, 2, 3)
    options = {"blocksize": (1, 2)} if layout in (tc.sparse_bsr, tc.sparse_bsc) else {}
    y = hybrid.to_sparse(layout=layout, dense_dim=1, **options)
    assert (y.dense_dim(), y.to_dense().tolist()) == (1, hybrid.tolist())
    if not options:
        with pytest.raises(RuntimeError, match="Expect the same number of specified elements per batch."):
            tc.stack([tc.tensor(ELEMENTS), tc.ones(2, 4)]).to_sparse(layout=layout)


@pytest.mark.parametrize("call, text", [
    (lambda d: d.to_sparse(layout=tc.sparse_bsr),
     "dense_to_sparse: conversion from Strided to SparseBsr without blocksize argument given is not supported"),
    (lambda d: d.to_sparse_bsr((2, 3)),
     "dense_to_sparse_bsr: tensor sparse size (2,4) must be divisible by given blocksize (2,3)"),
    (lambda d: d.to_sparse_bsr((0, 2)), "dense_to_sparse_bsr: blocksize needs to be positive, but got [0, 2]"),
    (lambda d: d.to_sparse_bsr((2,)), "dense_to_sparse_bsr: blocksize needs to be a tuple of size 2, but got 1"),
    (lambda d: d.to_sparse_csr(dense_dim=1),
     "dense_to_sparse_csr: dense_dim argument must be in [0,0] range, but 1 is given"),
    (lambda d: d.to_sparse(layout=tc.sparse_csr, blocksize=(1, 1)),
     "dense_to_sparse: conversion from Strided to SparseCsr with blocksize argument given is not supported"),
    (lambda d: d.to_sparse_bsr((1, 2)).to_sparse_bsr((2, 2)),
     "to_sparse_bsr: conversion from SparseBsr to SparseBsr with blocksize changed from [1, 2] to [2, 2] is not supported"),
    (lambda d: d.to_sparse_csr().to_sparse(1),
     "sparse_compressed_to_sparse: conversion from SparseCsr to Sparse with sparse_dim argument !=2 is not supported"),
])
def test_refused_conversions(call, text):
    with pytest.raises(RuntimeError) as caught:
        call(tc.tensor(ELEMENTS))
    assert text in str(caught.value)


def test_conversion_to_the_same_layout_is_the_tensor_itself():
    x = csr()
    assert x.to_sparse_csr() is x and x.to_sparse(layout=tc.sparse_csr) is x


def test_transposes_are_views_of_the_same_arrays():
    x = csr()
    turned = x.t()
    assert turned.layout is tc.sparse_csc
    assert turned.ccol_indices().data_ptr() == x.crow_indices().data_ptr()
    assert turned.row_indices().data_ptr() == x.col_indices().data_ptr()
    assert turned.values().data_ptr() == x.values().data_ptr()
    assert turned.t().layout is tc.sparse_csr
    for same in (x.T, x.mT, x.H, x.transpose(0, 1), x.permute(1, 0)):
        assert same.to_dense().tolist() == [[1, 0], [2, 3]]


# ---- elements ----

@pytest.mark.parametrize("layout", LAYOUTS)
def test_functions_that_keep_zeros(layout):
    x, dense = in_layout(ELEMENTS, layout), tc.tensor(ELEMENTS)
    for name in ("neg abs sqrt sin relu trunc isnan sgn tanh log1p sign isinf ceil floor erf square expm1 "
                 "clone detach double int bool half").split():
        got = getattr(x, name)()
        assert got.layout is layout, name
        assert got.to_dense().tolist() == getattr(dense, name)().tolist(), name
        assert got.dtype is getattr(dense, name)().dtype
    for name in ("exp", "cos", "max", "cumsum", "flatten"):
        with pytest.raises(Exception, match=f"not implemented for layout {str(layout).split('.')[-1]}"):
            getattr(x, name)(*([0] if name == "cumsum" else []))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arithmetic(layout):
    a, b = in_layout(ELEMENTS, layout), in_layout(OTHER, layout)
    d, e = tc.tensor(ELEMENTS), tc.tensor(OTHER)
    for got, want in [(a + b, d + e), (a - b, d - e), (a * b, d * e), (a * 2, d * 2), (2 * a, 2 * d), (a / 2, d / 2),
                      (tc.add(a, b, alpha=3), d + 3 * e), (a * e, d * e), (e * a, d * e), (a * tc.tensor(3.0), d * 3),
                      (a + a, d + d), (a * a, d * d), (a.clone().add_(b), d + e), (a.clone().mul_(2), d * 2),
                      (a.clone().neg_(), -d), (a.clone().div_(2), d / 2)]:
        assert got.layout is layout
        assert got.to_dense().tolist() == want.tolist()
    for got in (d + b, b + d, d.clone().add_(b)):
        assert got.layout is tc.strided and got.tolist() == (d + e).tolist()
    assert (a + b.double()).dtype is tc.float64
    assert tc.equal(a, a) and not tc.equal(a, b) and tc.allclose(a, a + 0 * a)


def test_operands_of_different_layouts():
    a, e = in_layout(ELEMENTS, tc.sparse_csr), tc.tensor(OTHER)
    d = tc.tensor(ELEMENTS)
    for other in (e.to_sparse_csc(), e.to_sparse(), e.to_sparse_bsr((1, 2))):
        assert (a + other).layout is tc.sparse_csr
        assert (a + other).to_dense().tolist() == (d + e).tolist()
        assert (a * other).to_dense().tolist() == (d * e).tolist()
    narrow = tc.sparse_csr_tensor(a.crow_indices().int(), a.col_indices().int(), a.values(), a.shape)
    assert (narrow + e.to_sparse_csr()).to_dense().tolist() == (d + e).tolist()
    assert (narrow * 2).crow_indices().dtype is tc.int32


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_and_selections(layout):
    x, d = in_layout(ELEMENTS, layout), tc.tensor(ELEMENTS)
    assert x.sum().item() == 10
    for dim in (0, 1, (0, 1)):
        got = x.sum(dim, keepdim=True)
        assert got.layout is tc.sparse_csr and got.to_dense().tolist() == d.sum(dim, keepdim=True).tolist()
    with pytest.raises(RuntimeError, match="reduction operations on CSR tensors with keepdim=False is unsupported"):
        x.sum(0)
    for got, want in [(x[0], d[0]), (x[1], d[1]), (x.select(1, 2), d[:, 2]), (x[:, 3], d[:, 3]), (x[-1], d[-1])]:
        assert got.layout is tc.sparse_coo and got.to_dense().tolist() == want.tolist()
    assert x[1, 3].item() == 4 and x[0, 1].item() == 0
    with pytest.raises(IndexError):
        x[2]
    with pytest.raises(TypeError, match="Cannot assign to a sparse tensor"):
        x[0] = 1


def test_new_tensors_like_others():
    x = csr()
    for made, want in [(tc.zeros_like(x), [[0, 0], [0, 0]]), (tc.ones_like(x), [[1, 1], [0, 1]]),
                       (tc.zeros((2, 3), layout=tc.sparse_csr), [[0] * 3] * 2),
                       (tc.empty((2, 3), layout=tc.sparse_csc), [[0] * 3] * 2)]:
        assert made.layout in (tc.sparse_csr, tc.sparse_csc) and made.to_dense().tolist() == want
    assert tc.empty_like(x)._nnz() == 3
    y = csr().zero_()
    assert (y._nnz(), y.to_dense().tolist()) == (3, [[0, 0], [0, 0]])
    z = csr(col=[0, 1, 0], values=[7.0, 8.0, 9.0])
    assert x.copy_(z).to_dense().tolist() == [[7, 8], [9, 0]]
    with pytest.raises(RuntimeError, match="only sparse compressed tensors with the same number of specified elements"):
        x.copy_(csr([0, 1, 1], [0], [1.0]))


def test_sparse_mask():
    mask = tc.tensor(ELEMENTS).to_sparse_csr()
    for x in (tc.tensor(OTHER), tc.tensor(OTHER).to_sparse_csr(), tc.tensor(OTHER).to_sparse()):
        got = x.sparse_mask(mask)
        assert got.layout is tc.sparse_csr and got.values().tolist() == [5, 0, 2, 0]


# ---- products ----

DTYPES = [tc.float32, tc.float64, tc.int32, tc.int64, tc.uint8, tc.float16, tc.bfloat16, tc.complex64]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_products_with_strided_matrices(layout, dtype):
    d = tc.tensor(ELEMENTS).to(dtype)
    x = in_layout(d, layout)
    for n in (1, 3, 20):
        m = tc.arange(4 * n).reshape(4, n).remainder(5).to(dtype)
        left = tc.arange(2 * n).reshape(n, 2).remainder(5).to(dtype)
        for got, want in [(x @ m, d @ m), (left @ x, left @ d), (tc.mm(x, m.t().contiguous().t()), d @ m),
                          (tc.sparse.mm(x, m), d @ m), (x.t() @ left.t(), d.t() @ left.t())]:
            assert got.layout is tc.strided and got.dtype is dtype and got.tolist() == want.tolist()
    v = tc.arange(4).to(dtype)
    assert (x @ v).tolist() == x.mv(v).tolist() == (d @ v).tolist()


@pytest.mark.parametrize("left", LAYOUTS + [tc.sparse_coo])
@pytest.mark.parametrize("right", LAYOUTS + [tc.sparse_coo])
def test_products_of_sparse_matrices(left, right):
    if left is tc.sparse_coo and right is tc.sparse_coo:
        return
    d, e = tc.tensor(ELEMENTS), tc.tensor(OTHER).t().contiguous()
    a = in_layout(d, left)
    b = e.to_sparse(layout=right, **({"blocksize": (2, 1)} if right in (tc.sparse_bsr, tc.sparse_bsc) else {}))
    got = a @ b
    assert got.layout is tc.sparse_csr
    assert got.to_dense().tolist() == (d @ e).tolist()


def test_sums_of_products():
    a, m = tc.tensor(ELEMENTS).to_sparse_csr(), tc.arange(8.0).reshape(4, 2)
    d, x = a.to_dense(), tc.ones(2, 2)
    assert tc.addmm(x, a, m, beta=2, alpha=3).tolist() == tc.addmm(x, d, m, beta=2, alpha=3).tolist()
    assert tc.addmm(tc.tensor([1.0, 2.0]), a, m).tolist() == tc.addmm(tc.tensor([1.0, 2.0]), d, m).tolist()
    assert tc.sparse.addmm(x, a, m).tolist() == tc.addmm(x, d, m).tolist()
    assert tc.addmv(tc.ones(2), a, tc.arange(4.0), beta=2, alpha=3).tolist() == (2 + 3 * (d @ tc.arange(4.0))).tolist()
    sq = tc.tensor([[1.0, 2], [0, 3]]).to_sparse_csr()
    assert tc.addmm(a, sq, a).to_dense().tolist() == (d + sq.to_dense() @ d).tolist()
    assert tc.nn.functional.linear(tc.ones(3, 4), a).tolist() == (tc.ones(3, 4) @ d.t()).tolist()
    got = tc.sparse.sampled_addmm(a, x, tc.arange(8.0).reshape(2, 4), beta=0.5, alpha=2)
    assert got.layout is tc.sparse_csr
    assert got.to_dense().tolist() == ((0.5 * d + 2 * (x @ tc.arange(8.0).reshape(2, 4))) * (d != 0)).tolist()


@pytest.mark.parametrize("call, text", [
    (lambda a: a @ tc.ones(2, 2), "addmm: mat1 and mat2 shapes cannot be multiplied (2x4 and 2x2)"),
    (lambda a: a @ tc.ones(2), "size mismatch, got input (2), mat (2x4), vec (2)"),
    (lambda a: a @ tc.ones(4, 2).double(), "expected scalar type Float but found Double"),
    (lambda a: tc.sparse.sampled_addmm(tc.ones(2, 2), tc.ones(2, 2), tc.ones(2, 2)),
     "sampled_addmm: Expected self to have sparse csr layout, but got Strided"),
    (lambda a: tc.sparse.sampled_addmm(a, tc.ones(2, 3), tc.ones(2, 4)),
     "sampled_addmm: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x4)"),
])
def test_refused_products(call, text):
    with pytest.raises(RuntimeError) as caught:
        call(tc.tensor(ELEMENTS).to_sparse_csr())
    assert text in str(caught.value)


def _square(elements=((1.0, 2.0), (0.0, 3.0))):
    return tc.tensor([list(row) for row in elements])


# Of a sparse or strided matrix a [2, 4], a strided one m [4, 2], and what makes other matrices like a.
RECORDED = {
    "a @ m": lambda a, m, make: a @ m,
    "m.T @ a.T": lambda a, m, make: m.t() @ a.t(),
    "a @ v": lambda a, m, make: a @ m.select(1, 0),
    "addmm": lambda a, m, make: tc.addmm(tc.ones(2, 2), a, m, alpha=2),
    "a @ a.T": lambda a, m, make: (a @ a.t()).to_dense() @ m.narrow(0, 0, 2),
    "a + a.sin()": lambda a, m, make: (a + a.sin() * 2).to_dense() @ m,
    "a + other": lambda a, m, make: (a + make(OTHER) * 2).to_dense() @ m,
    "a * other": lambda a, m, make: (a * make(OTHER)).to_dense() @ m,
    "a * dense": lambda a, m, make: (a * m.t()).to_dense() @ m,
    "dense + a": lambda a, m, make: (m.t() + a) @ m,
    "sum": lambda a, m, make: a.sum() * m,
    "values": lambda a, m, make: (a if a.layout is tc.strided else a.values()).sum() * m,
    "select": lambda a, m, make: a[1].to_dense() @ m,
    "to double": lambda a, m, make: a.double().to_dense() @ m.double(),
    "clone": lambda a, m, make: (-a.clone() / 2).to_dense() @ m,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", RECORDED)
def test_gradients(layout, name):
    # Blocks without zeros, so that each layout has the same entries.
    elements = [[1.0, 5, 2, 6], [0, 0, 3, 4]]
    gradients = []
    for make in (lambda x: in_layout(x, layout), tc.tensor):
        a = make(elements).requires_grad_()
        m = tc.arange(8.0).reshape(4, 2).div(3).requires_grad_()
        out = RECORDED[name](a, m, make)
        (out * tc.arange(1.0, out.numel() + 1).reshape(out.shape)).sum().backward()
        gradients += [a.grad, m.grad]
    grad_a, grad_m, dense_a, dense_m = gradients
    assert grad_a.layout is layout and grad_m.layout is tc.strided
    assert tc.allclose(grad_a.to_dense(), dense_a * (tc.tensor(elements) != 0))
    assert tc.allclose(grad_m, dense_m)


def test_gradients_of_sampled_products_and_twice():
    a = _square().to_sparse_csr().requires_grad_()
    x, y = _square().requires_grad_(), tc.tensor([[1.0, 2], [4, 5]]).requires_grad_()
    out = tc.sparse.sampled_addmm(a, x, y)
    assert out.to_dense().tolist() == [[10, 14], [0, 18]]
    (out.to_dense() * tc.tensor([[1.0, 2], [3, 4]])).sum().backward()
    assert a.grad.to_dense().tolist() == [[1, 2], [0, 4]]
    # The gradient of the product, masked: g = [[1, 2], [0, 4]].
    g = tc.tensor([[1.0, 2], [0, 4]])
    assert x.grad.tolist() == (g @ y.detach().t()).tolist()
    assert y.grad.tolist() == (x.detach().t() @ g).tolist()
    b = _square().double().to_sparse_csr().requires_grad_()
    m = tc.tensor([[1.0, 2], [4, 5]], dtype=tc.float64, requires_grad=True)
    first = tc.autograd.grad((b @ m).pow(2).sum(), [m], create_graph=True)[0]
    first.pow(2).sum().backward()
    dense, n = _square().double().requires_grad_(), m.detach().clone().requires_grad_()
    tc.autograd.grad((dense @ n).pow(2).sum(), [n], create_graph=True)[0].pow(2).sum().backward()
    assert tc.allclose(m.grad, n.grad)
    assert tc.allclose(b.grad.to_dense(), dense.grad * (_square() != 0))


def test_gradients_are_added():
    a = _square().to_sparse_csr().requires_grad_()
    for _ in range(2):
        (a @ tc.ones(2)).sum().backward()
    assert a.grad.layout is tc.sparse_csr and a.grad.values().tolist() == [2, 2, 2]
    ((a @ tc.ones(2)).sum() + a.to_dense().sum()).backward()
    assert a.grad.values().tolist() == [4, 4, 4]
    a.grad = None
    values = tc.tensor([1.0, 2, 3], requires_grad=True)
    made = tc.sparse_csr_tensor(a.crow_indices(), a.col_indices(), values, (2, 2))
    (made @ tc.tensor([1.0, 10])).sum().backward()
    assert values.grad.tolist() == [1, 10, 10]


def test_an_optimizer_takes_compressed_gradients_of_dense_weights():
    x = tc.tensor(ELEMENTS).to_sparse_csr()
    layer = tc.nn.Linear(4, 1)
    before = layer.weight.detach().clone()
    optimizer = tc.optim.SGD(layer.parameters(), lr=0.1)
    (x @ layer.weight.t()).sum().backward()
    optimizer.step()
    assert tc.allclose(layer.weight, before - 0.1 * x.to_dense().sum(0))


# ---- exchange ----

@pytest.mark.parametrize("layout", LAYOUTS)
def test_copies_and_pickles(layout):
    x = in_layout(ELEMENTS, layout).requires_grad_()
    for made in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert made.layout is layout and made.requires_grad and made.to_dense().tolist() == ELEMENTS
    copied = copy.deepcopy(x.detach())
    copied.values().zero_()
    assert x.to_dense().tolist() == ELEMENTS


@pytest.mark.parametrize("layout", LAYOUTS)
def test_scipy(layout):
    scipy_sparse = pytest.importorskip("scipy.sparse")
    x = in_layout(ELEMENTS, layout)
    there = tc.sparse.to_scipy(x)
    assert there.format == {"sparse_csr": "csr", "sparse_csc": "csc"}.get(str(layout).split(".")[-1], "bsr")
    assert there.toarray().tolist() == ELEMENTS
    back = tc.sparse.from_scipy(there, layout)
    assert back.layout is layout and back.to_dense().tolist() == ELEMENTS
    unsorted = scipy_sparse.csr_matrix((np.array([2.0, 1.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3, 3])), shape=(2, 4))
    assert tc.sparse.from_scipy(unsorted, layout).to_dense().tolist() == [[1, 0, 6, 0], [0, 0, 0, 0]]
    assert unsorted.indices.tolist() == [2, 0, 2]


def test_batch_and_dense_dimensions_are_selected():
    for layout, block in ((tc.sparse_csr, None), (tc.sparse_csc, None), (tc.sparse_bsr, (2, 1)), (tc.sparse_bsc, (2, 1))):
        x = tc.rand(2, 3, 4, 2, 3).to_sparse(layout=layout, blocksize=block, dense_dim=1)
        for dim in (0, 1, 4):
            part = x.select(dim, 1)
            assert part.layout is layout and tc.equal(part.to_dense(), x.to_dense().select(dim, 1))
            copied = tc.select_copy(x, dim, 1)
            assert tc.equal(copied.to_dense(), part.to_dense()) and copied.values().data_ptr() != part.values().data_ptr()
        with pytest.raises(RuntimeError, match="selecting sparse dimensions is not supported for batched"):
            x.select(2, 0)


def test_random_numbers_at_the_entries():
    x = tc.tensor([[1.0, 0], [2, 3]]).to_sparse_csr()
    for make in (tc.rand_like, tc.randn_like, lambda of, **options: tc.randint_like(of, 5, **options)):
        made = make(x, dtype=tc.float64)
        assert made.layout is tc.sparse_csr and made.dtype is tc.float64 and made._nnz() == 3
        assert tc.equal(made.crow_indices(), x.crow_indices()) and tc.equal(made.col_indices(), x.col_indices())
    assert make(x, requires_grad=True, dtype=tc.float32).requires_grad


def test_refusals_in_pytorchs_words():
    x = tc.ones(4, 4).to_sparse_csr()
    for call, message in (
            (lambda: tc.empty_like(x, layout=tc.sparse_csc), "empty_like with different sparse layout is not supported"),
            (lambda: tc.zeros_like(x, memory_format=tc.contiguous_format), "memory format option is only supported by strided"),
            (lambda: tc.empty(5, layout=tc.sparse_csr), "Only batched sparse compressed"),
            (lambda: x.copy_(tc.ones(4, 4)), "copy of sparse compressed tensors having different layouts is not supported"),
            (lambda: x.copy_(tc.eye(4).to_sparse_csr()), "same number of specified elements"),
            (lambda: x.copy_(tc.ones(2, 8).to_sparse_csr()), "expected shapes of self and src to match along dimension 1"),
            (lambda: x.to_sparse_bsr((2, 1)).copy_(x.to_sparse_bsr((1, 2))), "different block sizes is not supported"),
            (lambda: x + tc.ones(3, 4).to_sparse_csr(), "Expected input tensors to have the same shape"),
            (lambda: tc.ones(0, 2, 2).to_sparse_csr(), "to_sparse_csr: Expected product of batch dimensions to be non-zero"),
            (lambda: x.untyped_storage(), "Cannot access storage of SparseCsrTensorImpl")):
        with pytest.raises(RuntimeError, match=message):
            call()
