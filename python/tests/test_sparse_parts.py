"""Sparse tensors whose parts are unchecked, shared by gradients, or empty."""

import pytest

import tercel as tc


def unordered():
    """Columns of its row do not ascend: [2., 3., 1.]."""
    return tc.sparse_csr_tensor([0, 3], [2, 0, 1], [1.0, 2.0, 3.0], (1, 3), check_invariants=False)


def doubled():
    """Has an entry twice: [0., 3., 0.]."""
    return tc.sparse_csr_tensor([0, 2], [1, 1], [1.0, 2.0], (1, 3), check_invariants=False)


# ---- columns that do not ascend ----

def test_sums_and_products_of_unordered_rows():
    m = tc.tensor([[10.0, 20, 30]]).to_sparse_csr()
    for a, b in ((unordered(), m), (m, unordered())):
        total = a + b
        assert total.to_dense().tolist() == [[12, 23, 31]]
        assert total.col_indices().tolist() == [0, 1, 2]
        assert (a * b).to_dense().tolist() == [[20, 60, 30]]
        assert (a - b).to_dense().tolist() == ([[-8, -17, -29]] if a is not m else [[8, 17, 29]])
    assert (unordered().t() + m.t()).to_dense().tolist() == [[12], [23], [31]]
    assert (doubled() + m).to_dense().tolist() == [[10, 23, 30]]
    assert (doubled() * m).to_dense().tolist() == [[0, 60, 0]]


def test_many_unordered_rows():
    n = 3000
    dense = tc.arange(1.0, 8 * n + 1).view(n, 8)
    ordered = dense.to_sparse_csr()
    columns = ordered.col_indices().clone()
    values = ordered.values().clone()
    columns[-8:] = columns[-8:].flip(0)  # the last row
    values[-8:] = values[-8:].flip(0)
    x = tc.sparse_csr_tensor(ordered.crow_indices(), columns, values, (n, 8), check_invariants=False)
    assert tc.equal((x + tc.ones(n, 8).to_sparse_csr()).to_dense(), dense + 1)


def test_masks_of_unordered_rows():
    m = tc.tensor([[10.0, 20, 30]]).to_sparse_csr()
    got = m.sparse_mask(unordered())
    assert got.col_indices().tolist() == [2, 0, 1] and got.values().tolist() == [30, 10, 20]
    assert unordered().sparse_mask(m).values().tolist() == [2, 3, 1]
    assert m.t().sparse_mask(unordered().t()).values().tolist() == [30, 10, 20]


def test_entries_of_unordered_rows_are_not_called_coalesced():
    assert not unordered().to_sparse().is_coalesced()
    assert not unordered()[0].is_coalesced()
    assert unordered()[0].coalesce().values().tolist() == [2, 3, 1]
    assert doubled().to_sparse().coalesce().values().tolist() == [3]
    checked = tc.tensor([[10.0, 0, 30]]).to_sparse_csr()
    assert checked.to_sparse().is_coalesced() and checked[0].is_coalesced()


# ---- indices outside of the sizes ----

def test_bmm_refuses_indices_outside():
    x = tc.sparse_coo_tensor([[0, 0], [0, 3], [0, 0]], [1.0, 5.0], (2, 2, 2), check_invariants=False)
    with pytest.raises(IndexError, match="bmm: the tensor has indices outside of size 2 of dimension 1"):
        tc.bmm(x, tc.ones(2, 2, 2))


def test_sparse_products_refuse_columns_outside():
    for columns in (4, 100_000):
        a = tc.eye(2).to_sparse_csr()
        b = tc.sparse_csr_tensor([0, 1, 2], [0, columns + 5], [1.0, 1.0], (2, columns), check_invariants=False)
        with pytest.raises(IndexError, match=f"outside of size {columns}"):
            a @ b


def test_sums_refuse_indices_outside():
    x = tc.sparse_coo_tensor([[0, 1], [0, 7]], [1.0, 2.0], (2, 3), check_invariants=False)
    with pytest.raises(IndexError, match="sum: the tensor has indices outside of size 3 of dimension 1"):
        tc.sum(x, 1)
    with pytest.raises(IndexError):
        tc.sparse.sum(x, 1)


def test_sizes_are_not_inferred_from_the_largest_index():
    big = 2 ** 63 - 1
    with pytest.raises(RuntimeError, match="index 9223372036854775807 for dim 0 is too large"):
        tc.sparse_coo_tensor([[0, big]], [1.0, 2.0])
    with pytest.raises(RuntimeError, match="no size has room for index 9223372036854775807"):
        tc.sparse_csr_tensor(tc.tensor([0, 2]), tc.tensor([0, big]), tc.tensor([1.0, 2.0]))


# ---- claims ----

def test_a_false_claim_of_coalesced_entries():
    n = 100_000
    x = tc.sparse_coo_tensor(tc.zeros(1, n, dtype=tc.int64), tc.ones(n), (3,), check_invariants=False, is_coalesced=True)
    assert x.is_coalesced()
    assert x.to_dense().tolist() == [n, 0, 0]
    y = tc.sparse_coo_tensor([[1, 0], [0, 1]], [1.0, 2.0], (2, 2), check_invariants=False, is_coalesced=True)
    y.requires_grad_()
    tc.sparse.mm(y, tc.tensor([[1.0, 2], [3, 4]])).sum().backward()
    assert y.grad.to_dense().tolist() == [[0, 7], [3, 0]]


# ---- gradients ----

def parts(x):
    return [t.data_ptr() for t in (x._indices(), x._values())]


def test_given_retained_and_leaf_gradients_share_no_memory():
    leaf = tc.tensor([[1.0, 0, 2], [0, 3, 0]]).to_sparse().requires_grad_()
    y = leaf.clone()
    y.retain_grad()
    given = tc.tensor([[1.0, 0, 2], [0, 3, 0]]).to_sparse()
    y.backward(given)
    assert not set(parts(given)) & set(parts(leaf.grad))
    assert not set(parts(given)) & set(parts(y.grad))
    assert not set(parts(leaf.grad)) & set(parts(y.grad))
    given._values().mul_(10)
    y.grad._values().mul_(100)
    assert leaf.grad.to_dense().tolist() == [[1, 0, 2], [0, 3, 0]]

    other = tc.tensor([[1.0, 0], [0, 3]]).to_sparse_csr().requires_grad_()
    z = other.clone()
    z.retain_grad()
    given = tc.tensor([[1.0, 0], [0, 3]]).to_sparse_csr()
    z.backward(given)
    addresses = {g.values().data_ptr() for g in (given, z.grad, other.grad)}
    assert len(addresses) == 3


def test_two_leaves_with_one_gradient():
    a, b = (tc.tensor([[1.0, 0], [0, 3]]).to_sparse().requires_grad_() for _ in range(2))
    (a + b).backward(tc.tensor([[1.0, 0], [0, 3]]).to_sparse())
    a.grad._values().mul_(10)
    assert b.grad.to_dense().tolist() == [[1, 0], [0, 3]]


@pytest.mark.parametrize("layout", [tc.sparse_csr, tc.sparse_csc, tc.sparse_coo])
def test_to_dense_without_masked_gradient(layout):
    x = tc.tensor([[1.0, 0], [0, 3]]).to_sparse(layout=layout).requires_grad_()
    (x.to_dense(masked_grad=False) * tc.tensor([[1.0, 2], [3, 4]])).sum().backward()
    assert x.grad.layout is tc.strided and x.grad.tolist() == [[1, 2], [3, 4]]


def test_gradients_of_masked_products():
    tc.manual_seed(0)
    dense = tc.randn(5, 7, dtype=tc.float64) * (tc.rand(5, 7) > 0.5)
    other = tc.randn(7, 3, dtype=tc.float64, requires_grad=True)
    x = dense.to_sparse().requires_grad_()
    assert tc.autograd.gradcheck(lambda m: tc.sparse.mm(x.detach(), m), other)
    (tc.sparse.mm(x, other) ** 2).sum().backward()
    expected = 2 * (dense @ other.detach()) @ other.detach().t()
    tc.testing.assert_close(x.grad.to_dense(), expected * (dense != 0))
    # Twice: the gradient of x is differentiable with respect to the other factor.
    g, = tc.autograd.grad((tc.sparse.mm(x, other) ** 2).sum(), x, create_graph=True)
    weights = tc.randn(5, 7, dtype=tc.float64)
    second, = tc.autograd.grad((g.to_dense() * weights).sum(), other)
    m = other.detach().clone().requires_grad_()
    plain = 2 * (dense @ m) @ m.t() * (dense != 0)
    tc.testing.assert_close(second, tc.autograd.grad((plain * weights).sum(), m)[0])


def test_complex_masked_products():
    tc.manual_seed(1)
    dense = tc.randn(4, 6, dtype=tc.complex128) * (tc.rand(4, 6) > 0.4)
    other = tc.randn(6, 3, dtype=tc.complex128)
    x, plain = dense.to_sparse().requires_grad_(), dense.clone().requires_grad_()
    tc.sparse.mm(x, other).abs().sum().backward()
    (plain @ other).abs().sum().backward()
    tc.testing.assert_close(x.grad.to_dense(), plain.grad * (dense != 0))


def test_optimizers_check_all_rows_before_the_first_update():
    for optimizer in (tc.optim.SGD, tc.optim.Adagrad):
        good, bad = tc.ones(3, 2, requires_grad=True), tc.ones(3, 2, requires_grad=True)
        good.grad = tc.sparse_coo_tensor([[1]], [[1.0, 1.0]], (3, 2))
        bad.grad = tc.sparse_coo_tensor([[9]], [[1.0, 1.0]], (3, 2), check_invariants=False)
        o = optimizer([good, bad], lr=0.1)
        with pytest.raises(IndexError):
            o.step()
        assert good.tolist() == tc.ones(3, 2).tolist(), optimizer
        assert all(float(state.get("step", 0)) == 0 for state in o.state.values()), optimizer


# ---- arguments ----

def test_sums_check_their_arguments():
    b = tc.tensor([True, False]).to_sparse()
    i, f = tc.tensor([1, 2]).to_sparse(), tc.tensor([1.0, 2]).to_sparse()
    for call in (lambda: b - b, lambda: tc.sub(b, b, alpha=1), lambda: tc.sub(f, b, alpha=2), lambda: i.sub_(b)):
        with pytest.raises((RuntimeError, NotImplementedError), match="Subtraction, the `-` operator"):
            call()
    for call in (lambda: tc.add(i, i, alpha=1.5), lambda: i.add_(i, alpha=1.5), lambda: tc.sub(i, i, alpha=1.5)):
        with pytest.raises(RuntimeError, match="argument alpha must not be a floating point number"):
            call()
    with pytest.raises(RuntimeError, match="Boolean alpha only supported for Boolean results"):
        tc.add(f, f, alpha=True)
    with pytest.raises(RuntimeError, match="argument alpha must not be a complex number"):
        tc.add(f, f, alpha=1j)
    assert tc.add(tc.tensor([True, False]).to_sparse(), tc.tensor([False, True]).to_sparse(), alpha=False) \
        .to_dense().tolist() == [True, False]


def test_complex_beta_is_not_truncated():
    a = tc.tensor([[1.0, 0], [0, 2]], dtype=tc.complex64)
    v, m = tc.ones(2, dtype=tc.complex64), tc.ones(2, 2, dtype=tc.complex64)
    expected = tc.addmv(v, a, v, beta=1j)
    assert tc.equal(tc.addmv(v, a.to_sparse(), v, beta=1j), expected)
    assert tc.equal(tc.addmv(v, a.to_sparse_csr(), v, beta=1j), expected)
    assert tc.equal(tc.addmm(m, a.to_sparse_csr(), m, beta=1j), tc.addmm(m, a, m, beta=1j))
    got = tc.sparse.sampled_addmm(a.to_sparse_csr(), m, m, beta=1j)
    assert got.values().tolist() == [2 + 1j, 2 + 2j]


@pytest.mark.parametrize("layout", [tc.sparse_csr, tc.sparse_csc, tc.sparse_coo])
def test_tensors_like_a_sparse_one(layout):
    x = tc.tensor([[1.0, 0], [0, 3]]).to_sparse(layout=layout)
    for make in (tc.zeros_like, tc.empty_like) + ((tc.ones_like,) if layout is not tc.sparse_coo else ()):
        made = make(x, requires_grad=True)
        assert made.requires_grad and made.is_leaf and made.layout is layout, make
        assert not make(x).requires_grad
    assert tc.zeros_like(x).to_dense().tolist() == [[0, 0], [0, 0]]
    assert tc.zeros_like(x, layout=tc.strided).tolist() == [[0, 0], [0, 0]]
    assert tc.ones_like(x, layout=tc.strided).tolist() == [[1, 1], [1, 1]]


def test_ones_like_a_coo_tensor_is_refused_by_its_name():
    with pytest.raises(NotImplementedError, match="ones_like"):
        tc.ones_like(tc.eye(2).to_sparse())
