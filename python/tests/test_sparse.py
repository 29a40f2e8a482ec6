"""Sparse tensors: what PyTorch 2.15 prints, computes and refuses."""

import copy
import io
import pickle

import numpy as np
import pytest

import tercel as tc


def uncoalesced(**kwargs):
    """The example of document 004."""
    return tc.sparse_coo_tensor(tc.tensor([[0, 1, 1]]), tc.tensor([3.0, 4.0, 5.0]), (3,), **kwargs)


def matrix():
    return tc.tensor([[1.0, 0, 2], [0, 3, 0]]).to_sparse()


def hybrid():
    return tc.sparse_coo_tensor([[0, 2]], [[1.0, 2], [3, 4]], (3, 2))


# ---- printing ----

def test_prints_as_pytorch_does():
    assert repr(uncoalesced()) == ("tensor(indices=tensor([[0, 1, 1]]),\n"
                                   "       values=tensor([3., 4., 5.]),\n"
                                   "       size=(3,), nnz=3, layout=tercel.sparse_coo)")
    assert repr(uncoalesced().coalesce()) == ("tensor(indices=tensor([[0, 1]]),\n"
                                              "       values=tensor([3., 9.]),\n"
                                              "       size=(3,), nnz=2, layout=tercel.sparse_coo)")
    assert repr(hybrid()) == ("tensor(indices=tensor([[0, 2]]),\n"
                              "       values=tensor([[1., 2.],\n"
                              "                      [3., 4.]]),\n"
                              "       size=(3, 2), nnz=2, layout=tercel.sparse_coo)")


def test_prints_empty_tensors_dtypes_and_histories():
    assert repr(tc.sparse_coo_tensor((2, 3), dtype=tc.float64)) == (
        "tensor(indices=tensor([], size=(2, 0)),\n"
        "       values=tensor([], size=(0,)),\n"
        "       size=(2, 3), nnz=0, dtype=tercel.float64, layout=tercel.sparse_coo)")
    assert repr(matrix().int()).endswith("size=(2, 3), nnz=3, dtype=tercel.int32, layout=tercel.sparse_coo)")
    assert repr(uncoalesced(requires_grad=True)).endswith("nnz=3, layout=tercel.sparse_coo, requires_grad=True)")
    x = tc.sparse_coo_tensor(tc.tensor([[0], [1]]), tc.tensor([1.0], requires_grad=True))
    assert repr(x).endswith("size=(1, 2), nnz=1, layout=tercel.sparse_coo,\n"
                            "       grad_fn=<SparseCooTensorWithDimsAndTensorsBackward0>)")
    parameter = repr(tc.nn.Parameter(matrix()))
    assert parameter.startswith("Parameter containing:\ntensor(indices=")


# ---- construction ----

@pytest.mark.parametrize("call, text", [
    (lambda: tc.sparse_coo_tensor([0, 1], [1.0, 2.0]), "indices must be sparse_dim x nnz, but got: [2]"),
    (lambda: tc.sparse_coo_tensor([[0, 1]], [1.0, 2.0, 3.0]),
     "indices and values must have same nnz, but got nnz from indices: 2, nnz from values: 3"),
    (lambda: tc.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3, 3)),
     "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = 2, sparse_dim = 1, dense_dim = 0"),
    (lambda: tc.sparse_coo_tensor([[0, 1]], [[1.0], [2.0]], (3, 3)), "values has incorrect size, expected [2, 3], got [2, 1]"),
    (lambda: tc.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (3,)),
     "size is inconsistent with indices: for dim 0, size is 3 but found index 5"),
    (lambda: tc.sparse_coo_tensor([[0, -1]], [1.0, 2.0]), "found negative index -1 for dim 0"),
    (lambda: tc.sparse_coo_tensor([[1, 0]], [1.0, 2.0], (3,), is_coalesced=True),
     "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor"),
    (lambda: tc.sparse_coo_tensor([[0]], [1], requires_grad=True),
     "Only Tensors of floating point and complex dtype can require gradients"),
    (lambda: setattr(matrix(), "data", tc.ones(2, 3)), "Attempted to call `variable.set_data(tensor)`, but"),
    (lambda: uncoalesced().indices(), "Cannot get indices on an uncoalesced tensor, please call .coalesce() first"),
    (lambda: uncoalesced().values(), "Cannot get values on an uncoalesced tensor, please call .coalesce() first"),
    (lambda: tc.ones(3).is_coalesced(), "is_coalesced expected sparse coordinate tensor layout but got Strided"),
    (lambda: tc.ones(3).coalesce(), "coalesce expected sparse coordinate tensor layout but got Strided"),
    (lambda: tc.ones(3).values(), "values expected sparse tensor layout but got Strided"),
    (lambda: matrix() + 1, "add(sparse, dense) is not supported. Use add(dense, sparse) instead."),
    (lambda: matrix() + tc.ones(2, 3), "add(sparse, dense) is not supported. Use add(dense, sparse) instead."),
    (lambda: matrix() / matrix(),
     "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape [2, 3] for divisor)"),
    (lambda: tc.ones(3).copy_(uncoalesced()), "copy_() between dense and sparse Tensors is not implemented!"),
    (lambda: matrix().untyped_storage(), "Cannot access storage of SparseTensorImpl"),
    (lambda: matrix().nbytes, "nbytes is not defined for sparse tensors."),
    (lambda: matrix().data_ptr(), "Cannot access data pointer of Tensor that doesn't have storage"),
    (lambda: matrix().to_sparse(1),
     "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not supported"),
    (lambda: matrix().pow(0), "pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense"),
    (lambda: tc.cat([uncoalesced(), tc.ones(3)]),
     "Concatenating sparse tensors, but a dense tensor was found at position 1."),
])
def test_refuses_in_pytorchs_words(call, text):
    with pytest.raises(RuntimeError) as info:
        call()
    assert str(info.value).startswith(text)


def test_types_of_other_refusals():
    with pytest.raises(TypeError, match="can't convert Sparse layout tensor to numpy. Use Tensor.to_dense"):
        matrix().numpy()
    with pytest.raises(TypeError, match="Cannot assign to a sparse tensor"):
        matrix()[0] = 1.0
    with pytest.raises(BufferError, match="Can't export tensors with layout other than tercel.strided"):
        matrix().__dlpack__()
    with pytest.raises(RuntimeError, match="expected indices that are integers but got tercel.float32 with a fraction"):
        tc.sparse_coo_tensor([[0.0, 1.5]], [1.0, 2.0], (3,))
    for call in (lambda: matrix().exp(), lambda: matrix()[0:1], lambda: matrix()[[0, 1]], lambda: matrix() == matrix(),
                 lambda: matrix().max(), lambda: matrix().view(6), lambda: tc.full_like(matrix(), 2.0)):
        with pytest.raises(NotImplementedError, match="not implemented for layout sparse_coo"):
            call()


def test_constructor_arguments():
    x = tc.sparse_coo_tensor([[0, 4], [1, 2]], [1, 2])
    assert x.shape == (5, 3) and x.dtype is tc.int64
    assert tc.sparse_coo_tensor([[0]], [1], dtype=tc.float64).dtype is tc.float64
    assert tc.sparse_coo_tensor(2).shape == (2,)
    assert tc.sparse_coo_tensor(size=(2, 3), dtype=tc.int32)._nnz() == 0
    assert tc.sparse_coo_tensor([[], []], [], (2, 3))._nnz() == 0
    for made in (tc.empty(2, 3, layout=tc.sparse_coo), tc.zeros((2, 3), layout=tc.sparse_coo), tc.zeros_like(matrix()),
                 tc.empty_like(matrix(), dtype=tc.int64), matrix().new_zeros(2, 3),
                 tc.zeros_like(tc.ones(2, 3), layout=tc.sparse_coo)):
        assert made.is_sparse and made.is_coalesced() and made.shape == (2, 3) and made._nnz() == 0
    strided = tc.zeros_like(matrix(), layout=tc.strided)
    assert not strided.is_sparse and strided.tolist() == [[0.0] * 3] * 2


def test_invariants_are_checked_unless_switched_off():
    invariants = tc.sparse.check_sparse_tensor_invariants
    assert invariants.is_enabled()
    wrong = ([[0, 5]], [1.0, 2.0], (3,))
    with invariants(False):
        x = tc.sparse_coo_tensor(*wrong)
        assert not invariants.is_enabled()
    assert invariants.is_enabled()
    assert tc.sparse_coo_tensor(*wrong, check_invariants=False)._nnz() == 2
    with pytest.raises(IndexError, match="indices outside of size 3 of dimension 0"):
        x.to_dense()

    @invariants(enable=False)
    def unchecked():
        return tc.sparse_coo_tensor(*wrong)

    assert unchecked().shape == (3,)
    invariants.disable()
    assert not invariants.is_enabled()
    invariants.enable()
    with pytest.raises(RuntimeError, match="found index 5"):
        tc.sparse_coo_tensor(*wrong)


def test_attributes():
    x = hybrid()
    assert x.is_sparse and not x.is_sparse_csr and x.layout is tc.sparse_coo
    assert (x.sparse_dim(), x.dense_dim(), x._dimI(), x._dimV(), x._nnz(), x.numel()) == (1, 1, 1, 1, 2, 6)
    assert not x.is_contiguous() and x.stride() == (0, 0) and x.type() == "tercel.sparse.FloatTensor"
    assert len(x) == 3 and [row.tolist() for row in x] == [[1.0, 2.0], [0.0, 0.0], [3.0, 4.0]]
    assert not tc.ones(2).is_sparse and tc.ones(2, 3).dense_dim() == 2 and tc.ones(2).to_dense().tolist() == [1.0, 1.0]


# ---- conversions and operations ----

def test_to_sparse():
    dense = tc.tensor([[1.0, 0], [0, float("nan")]])
    assert dense.to_sparse()._nnz() == 2 and dense.to_sparse(1).dense_dim() == 1
    assert dense.to_sparse(layout=tc.sparse_coo).is_coalesced() and not dense.to_sparse(layout=tc.strided).is_sparse
    x = matrix()
    assert x.to_sparse() is x or x.to_sparse()._nnz() == 3
    assert x.double().dtype is tc.float64 and x.float() is x and x.to(tc.int64).to_dense().tolist() == [[1, 0, 2], [0, 3, 0]]


@pytest.mark.parametrize("dtype", [tc.float32, tc.float64, tc.float16, tc.int64, tc.complex64])
def test_arithmetic_against_strided(dtype):
    a = tc.tensor([[1, 0, 2], [0, 3, 0]], dtype=dtype)
    b = tc.tensor([[0, 5, 2], [0, -1, 0]], dtype=dtype)
    x, y = a.to_sparse(), b.to_sparse()
    for got, expected in ((x + y, a + b), (x - y, a - b), (x * y, a * b), (x * 3, a * 3), (3 * x, a * 3), (-x, -a),
                          (tc.add(x, y, alpha=2), a + 2 * b), (a + y, a + b), (a - y, a - b), (x * b, a * b),
                          (b * x, a * b), (x / 2, a / 2), (x.t(), a.t()), (x @ y.t(), a @ b.t()), (x @ b.t(), a @ b.t()),
                          (a @ y.t(), a @ b.t()), (x.sum(0), a.sum(0)), (x.sum(), a.sum()), (x[0], a[0]), (x[:, 1], a[:, 1])):
        assert got.dtype is expected.dtype
        assert tc.equal(got.to_dense(), expected)
    x += y
    x *= 2
    assert tc.equal(x.to_dense(), (a + b) * 2)


def test_tercel_sparse_functions():
    x, dense = matrix(), matrix().to_dense()
    assert tc.sparse.sum(x).item() == 6 and tc.sparse.sum(x, 0).to_dense().tolist() == [1, 3, 2]
    assert tc.sparse.sum(x, [0, 1], dtype=tc.float64).dtype is tc.float64
    assert tc.sparse.mm(x, tc.ones(3, 2)).tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert tc.sparse.addmm(tc.ones(2, 2), x, tc.ones(3, 2), beta=2, alpha=3).tolist() == [[11.0, 11.0]] * 2
    soft = tc.sparse.softmax(x, 1)
    assert soft.is_coalesced()
    tc.testing.assert_close(soft.values(), tc.tensor([0.2689, 0.7311, 1.0]), rtol=0, atol=1e-4)
    tc.testing.assert_close(tc.sparse.log_softmax(x, 1).values(), soft.values().log())
    assert tc.smm(x, tc.ones(3, 2)).is_sparse and tc.hspmm(x, tc.ones(3, 2)).dense_dim() == 1
    assert tc.equal(tc.sspaddmm(x @ x.t(), x, dense.t()).to_dense(), 2 * dense @ dense.t())


def test_operators_of_a_recorded_tensor():
    leaf = matrix().requires_grad_()
    dense = tc.arange(6.0).view(3, 2).requires_grad_()
    (leaf @ dense).sum().backward()
    assert leaf.grad.layout is tc.strided and dense.grad.tolist() == [[1.0, 1.0], [3.0, 3.0], [2.0, 2.0]]
    leaf.grad = None
    tc.sparse.mm(leaf, dense).sum().backward()
    assert leaf.grad.is_sparse and leaf.grad.values().tolist() == [1.0, 9.0, 5.0]
    tc.sparse.mm(leaf, dense).sum().backward()
    assert leaf.grad.is_coalesced() and leaf.grad.values().tolist() == [2.0, 18.0, 10.0]


# ---- copies, files, other libraries ----

def test_copies_and_pickles():
    for x in (uncoalesced(), matrix(), hybrid(), matrix().requires_grad_()):
        for other in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone()):
            assert other.is_sparse and other.is_coalesced() == x.is_coalesced()
            assert tc.equal(other.to_dense(), x.to_dense())
        assert copy.deepcopy(x).requires_grad == x.requires_grad
    x = matrix()
    assert copy.deepcopy(x)._values().data_ptr() != x._values().data_ptr()


def test_pt_files():
    x = uncoalesced()
    objects = {"s": x, "c": x.coalesce(), "p": tc.nn.Parameter(x.coalesce()), "h": hybrid(), "empty": tc.sparse_coo_tensor((2, 3))}
    file = io.BytesIO()
    tc.save(objects, file)
    file.seek(0)
    loaded = tc.load(file)
    for name, before in objects.items():
        after = loaded[name]
        assert after.is_sparse and after.shape == before.shape and after.is_coalesced() == before.is_coalesced()
        assert tc.equal(after.detach().to_dense(), before.detach().to_dense())
    assert isinstance(loaded["p"], tc.nn.Parameter) and loaded["p"].requires_grad


def test_scipy_both_ways():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((5, 7)) < 0.4, rng.standard_normal((5, 7)), 0)
    for convert in (scipy_sparse.csr_matrix, scipy_sparse.csc_matrix, scipy_sparse.coo_matrix, scipy_sparse.csr_array):
        x = tc.sparse.from_scipy(convert(dense))
        assert x.dtype is tc.float64 and x.shape == (5, 7) and np.array_equal(x.to_dense().numpy(), dense)
    back = tc.sparse.to_scipy(x)
    assert back.format == "coo" and np.array_equal(back.toarray(), dense)
    assert np.array_equal(tc.sparse.to_scipy(uncoalesced().unsqueeze(0)).toarray(), [[3, 9, 0]])
    with pytest.raises(TypeError, match="expected a tensor of a sparse layout"):
        tc.sparse.to_scipy(tc.ones(2, 2))
    with pytest.raises(ValueError, match="without dense dimensions"):
        tc.sparse.to_scipy(hybrid())


def test_files_refuse_what_they_cannot_hold(tmp_path):
    with pytest.raises(ValueError, match="You are trying to save a sparse tensor: `{'x'}`"):
        tc.safetensors.save_file({"x": matrix()}, tmp_path / "x.safetensors")


# ---- gradients of embeddings and optimizers ----

def table():
    return tc.nn.Embedding(5, 2, sparse=True, _weight=tc.ones(5, 2))


def test_embeddings_show_coo_gradients():
    embedding = table()
    embedding(tc.tensor([1, 1, 3])).sum().backward()
    grad = embedding.weight.grad
    assert grad.is_sparse and grad.sparse_dim() == 1 and not grad.is_coalesced()
    assert grad._indices().tolist() == [[1, 1, 3]] and grad._values().tolist() == [[1.0, 1.0]] * 3
    embedding(tc.tensor([0])).sum().backward()
    assert embedding.weight.grad._indices().tolist() == [[1, 1, 3, 0]]
    (embedding.weight * 2).sum().backward()
    assert embedding.weight.grad.tolist() == [[3.0, 3.0], [4.0, 4.0], [2.0, 2.0], [3.0, 3.0], [2.0, 2.0]]


@pytest.mark.parametrize("read", [False, True])
@pytest.mark.parametrize("make", [
    lambda p: tc.optim.SGD(p, lr=0.1), lambda p: tc.optim.SGD(p, lr=0.1, momentum=0.9, maximize=True),
    lambda p: tc.optim.Adagrad(p, lr=0.1), lambda p: tc.optim.Adagrad(p, lr=0.1, lr_decay=0.1)])
def test_optimizers_take_them(make, read):
    results = []
    for sparse in (True, False):
        embedding = tc.nn.Embedding(5, 2, sparse=sparse, _weight=tc.ones(5, 2))
        optimizer = make(embedding.parameters())
        for keys in ([1, 1, 3], [1, 0, 4], [3, 3, 3]):
            optimizer.zero_grad()
            (embedding(tc.tensor(keys)) ** 2).sum().backward()
            if read and sparse:
                assert embedding.weight.grad.is_sparse
            optimizer.step()
        results.append(embedding.weight.detach())
    tc.testing.assert_close(results[0], results[1])


def test_sparse_adam():
    embedding = table()
    optimizer = tc.optim.SparseAdam(embedding.parameters(), lr=0.1)
    dense = tc.ones(5, 2, requires_grad=True)
    reference = tc.optim.Adam([dense], lr=0.1)
    for keys in ([1, 1, 3], [1, 3, 1]):  # the same rows in each step, so that moments of others need not decay
        for optimizer_, weights in ((optimizer, embedding.weight), (reference, dense)):
            optimizer_.zero_grad()
            (tc.nn.functional.embedding(tc.tensor(keys), weights, sparse=weights is embedding.weight) ** 2).sum().backward()
            optimizer_.step()
    tc.testing.assert_close(embedding.weight.detach(), dense.detach())
    assert set(optimizer.state[embedding.weight]) == {"step", "exp_avg", "exp_avg_sq"}
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients, please consider Adam instead"):
        optimizer = tc.optim.SparseAdam([dense])
        optimizer.step()
    with pytest.raises(ValueError, match="Sparse params at indices"):
        tc.optim.SparseAdam([matrix().requires_grad_()])
    embedding(tc.tensor([1])).sum().backward()
    with pytest.raises(RuntimeError, match="Adam does not support sparse gradients, please consider SparseAdam instead"):
        tc.optim.Adam(embedding.parameters()).step()


def test_gradients_are_the_leafs_own():
    embedding = table()
    g = tc.ones(1, 2)
    embedding(tc.tensor([1])).backward(g)
    before = embedding.weight.grad.clone()
    g.mul_(5)
    assert tc.equal(embedding.weight.grad.to_dense(), before.to_dense())
    embedding.weight.grad.mul_(2)  # as gradient clipping does
    tc.optim.SGD(embedding.parameters(), lr=1.0).step()
    assert embedding.weight[1].tolist() == [-1.0, -1.0]
    tc.nn.utils.clip_grad_norm_(embedding.parameters(), 1.0)
    assert abs(embedding.weight.grad.norm().item() - 1.0) < 1e-4


def test_unary_out_and_in_place():
    x = tc.sparse_coo_tensor([[1, 0, 1]], [-1.0, 2.0, -3.0], (3,))
    for op in (tc.sgn, tc.sin, tc.deg2rad, tc.nan_to_num, tc.conj_physical, tc.angle, tc.special.expm1, tc.round):
        out = tc.sparse_coo_tensor((5,))
        assert op(x, out=out) is out and tc.equal(out.to_dense(), op(x.to_dense())), op
    for name in ("sgn_", "sin_", "deg2rad_", "nan_to_num_", "conj_physical_", "trunc_"):
        changed = x.clone().coalesce()
        assert getattr(changed, name)() is changed
        assert tc.equal(changed.to_dense(), getattr(x.to_dense(), name)()), name
        if name != "conj_physical_":
            with pytest.raises(RuntimeError, match=f"{name} requires coalesced input"):
                getattr(x.clone(), name)()
    with pytest.raises(RuntimeError, match="expected an out= tensor of layout sparse_coo but got strided"):
        tc.sin(x, out=tc.zeros(3))
    with pytest.raises(RuntimeError, match="can't be cast"):
        tc.sin(x, out=tc.sparse_coo_tensor((3,), dtype=tc.int64))
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        tc.sin(x.requires_grad_(), out=tc.sparse_coo_tensor((3,)))


def test_out_of_factories_and_new():
    out = matrix()
    assert tc.zeros(4, 5, out=out) is out and out.shape == (4, 5) and out._nnz() == 0
    assert matrix().new().shape == (0,) and matrix().new(2, 3).shape == (2, 3) and matrix().new().is_sparse


def test_indices_of_other_dtypes_and_a_number_as_value():
    assert tc.sparse_coo_tensor(tc.tensor([[0.0, 2.0]]), [1.0, 2.0], (3,))._indices().dtype is tc.int64
    assert tc.sparse_coo_tensor(tc.tensor([[True, False]]), [1.0, 2.0], (2,)).to_dense().tolist() == [2, 1]
    assert tc.sparse_coo_tensor(tc.zeros((0, 1), dtype=tc.int64), tc.tensor(3.0), ()).to_dense().item() == 3


def test_copies_keep_what_is_known_of_their_order():
    x = tc.sparse_coo_tensor([[0]], [1.0], (3,))._coalesced_(False)
    assert not x.clone().is_coalesced() and x.coalesce().clone().is_coalesced()
    with pytest.raises(RuntimeError, match=r"expected the sizes of a sparse tensor with entries"):
        x.copy_(tc.sparse_coo_tensor([[0]], [1.0], (4,)))


def test_sums_of_16_bit_numbers_round_once():
    x = tc.full((2, 3, 300), 1.0, dtype=tc.bfloat16).to_sparse(2)
    assert tc.sparse.sum(x, [1, 2]).to_dense().tolist() == x.to_dense().float().sum((1, 2)).bfloat16().tolist()
    assert x.sum().dtype is tc.bfloat16 and x.sum().item() == tc.tensor(1800.0).bfloat16().item()


@pytest.mark.parametrize("layout", [None, tc.sparse_coo, tc.sparse_csr, tc.sparse_csc])
def test_spdiags(layout):
    rows, at = tc.arange(1, 10).reshape(3, 3), tc.tensor([0, -1, 2])
    made = tc.sparse.spdiags(rows, at, (5, 3), layout)
    assert made.layout is (layout or tc.sparse_coo)
    scipy_sparse = pytest.importorskip("scipy.sparse")
    assert made.to_dense().tolist() == scipy_sparse.spdiags(rows.numpy(), at.numpy(), 5, 3).toarray().tolist()
    assert tc.sparse.spdiags(rows[0], tc.tensor(1), (2, 2)).to_dense().tolist() == [[0, 2], [0, 0]]
    assert tc.sparse.spdiags(rows[:1], tc.tensor([9]), (2, 2))._nnz() == 0


@pytest.mark.parametrize("arguments, message", [
    ((tc.ones(3), tc.tensor([0, 1]), (3, 3)), r"Number of diagonals \(1\) does not match the number of offsets \(2\)"),
    ((tc.ones(3), tc.tensor([0.0]), (3, 3)), "Offset Tensor must have dtype Long"),
    ((tc.ones(2, 3), tc.tensor([1, 1]), (3, 3)), "Offset tensor contains duplicate values"),
    ((tc.ones(3), tc.tensor([0]), (3,)), "Output shape must be 2d"),
    ((tc.ones(3), tc.tensor([0]), (3, 3), tc.sparse_bsr), "Only output layouts"),
    ((tc.ones(1, 1, 3), tc.tensor([0]), (3, 3)), "Diagonals must be vector or matrix"),
    ((tc.ones(3), tc.tensor([[0]]), (3, 3)), "Offsets must be scalar or vector"),
])
def test_spdiags_refuses(arguments, message):
    with pytest.raises(RuntimeError, match=message):
        tc.sparse.spdiags(*arguments)


def test_gradcheck_of_sparse_inputs():
    dense = tc.tensor([[1.0, 0, 2], [0, 3, 0]], dtype=tc.float64)
    other = tc.rand(3, 2, dtype=tc.float64, requires_grad=True)
    for x in (dense.to_sparse(), dense.to_sparse_csr(), dense.to_sparse_csc(), dense.to_sparse_bsr((1, 3))):
        x.requires_grad_()
        for masked in (None, True, False):
            assert tc.autograd.gradcheck(tc.sparse.mm, (x, other), masked=masked)
        with pytest.raises(ValueError, match="Sparse output is not supported at gradcheck yet"):
            tc.autograd.gradcheck(lambda a: a * 2, (x,))
        assert tc.sparse.as_sparse_gradcheck(tc.autograd.gradcheck)(lambda a: a.sin(), (x,))
        assert tc.sparse.as_sparse_gradcheck(tc.autograd.gradcheck)(lambda a: (a * 2, a.to_dense()), (x,), masked=True)
        with pytest.raises(RuntimeError, match="Jacobian mismatch"):
            tc.autograd.gradcheck(lambda a: _Wrong.apply(a.to_dense()), (x,))


class _Wrong(tc.autograd.Function):
    """x * x with the gradient of x."""

    @staticmethod
    def forward(ctx, x):
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g


def test_older_names_of_products():
    x, y, dense = matrix(), matrix().t(), tc.rand(3, 2)
    assert tc.equal(x.smm(dense).to_dense(), x.to_dense() @ dense)
    start = tc.ones(2, 2).to_sparse()
    assert tc.allclose(start.sspaddmm(x, dense, beta=2).to_dense(), 2 + x.to_dense() @ dense)
    assert tc.allclose(tc.saddmm(tc.ones(2, 2), x, dense), 1 + x.to_dense() @ dense)
    assert tc.hsmm is tc.hspmm and y.shape == (3, 2)
