"""Sparse tensors that backward needs, COO gradients on their way to a leaf, and the optimizers that take them."""

import math

import pytest

import tercel as tc

CHANGED = "one of the variables needed for gradient computation has been modified by an inplace operation"


def matrix():
    return tc.tensor([[1.0, 2], [0, 3]])


def entries(x):
    return x._values() if x.layout is tc.sparse_coo else x.values()


def offsets(x):
    return x._indices() if x.layout is tc.sparse_coo else x.crow_indices()


# ---- changes of what backward needs ----

@pytest.mark.parametrize("change", [lambda x: entries(x).mul_(10), lambda x: offsets(x).add_(0), lambda x: x.mul_(2),
                                    lambda x: entries(x.detach()).mul_(10)])
@pytest.mark.parametrize("make", [tc.Tensor.to_sparse, tc.Tensor.to_sparse_csr])
@pytest.mark.parametrize("product", [lambda x, d: x @ d, tc.sparse.mm])
def test_a_changed_factor_is_an_error(make, product, change):
    x, d = make(matrix()), tc.ones(2, 2, requires_grad=True)
    y = product(x, d)
    change(x)
    with pytest.raises(RuntimeError, match=CHANGED):
        y.sum().backward()


def test_a_changed_factor_of_itself_is_an_error():
    x = matrix().to_sparse().requires_grad_()
    y = tc.sparse.mm(x, x)
    x.detach()._values().mul_(10)
    with pytest.raises(RuntimeError, match=CHANGED):
        y.sum().backward()


@pytest.mark.parametrize("make", [tc.Tensor.to_sparse, tc.Tensor.to_sparse_csr])
def test_parts_have_the_version_of_their_tensor(make):
    x = make(matrix())
    versions = [x._version]
    for change in (lambda: entries(x).mul_(2), lambda: x.mul_(2), lambda: offsets(x).add_(0),
                   lambda: entries(x.detach()).mul_(1), lambda: entries(x).mul_(2)):
        change()
        versions.append(x._version)
    assert versions == [0, 1, 2, 3, 4, 5]
    assert x.data._version == 0
    entries(x.data).mul_(2)
    assert x._version == 5


# ---- beta = 0 ----

@pytest.mark.parametrize("make", [tc.Tensor.to_sparse, tc.Tensor.to_sparse_csr])
@pytest.mark.parametrize("addmm", [tc.addmm, tc.sparse.addmm])
def test_an_input_times_zero_is_not_read(addmm, make):
    assert addmm(tc.full((2, 2), math.nan), make(matrix()), tc.eye(2), beta=0).equal(matrix())
    assert addmm(tc.full((2,), math.inf), make(matrix()), tc.eye(2), beta=0, alpha=2).equal(2 * matrix())


def test_the_gradient_of_an_input_times_zero():
    for addmm in (tc.addmm, tc.sparse.addmm):
        x = tc.full((2, 2), math.inf, requires_grad=True)
        y = addmm(x, matrix().to_sparse(), tc.eye(2), beta=0)
        y.sum().backward()
        assert y.equal(matrix()) and x.grad.equal(tc.zeros(2, 2))
    with pytest.raises(RuntimeError, match="expected an input of sizes|expanded size"):
        tc.addmm(tc.ones(3, 3), matrix().to_sparse(), tc.eye(2), beta=0)


# ---- hooks and the gradients that they see ----

def embedded(weight):
    return tc.nn.functional.embedding(tc.tensor([1, 1]), weight, sparse=True)


def test_a_hook_takes_and_replaces_the_gradient_of_an_embedding():
    weight, seen = tc.ones(5, 2, requires_grad=True), []
    weight.register_hook(lambda g: seen.append(g) or g * 3)
    weight.register_hook(seen.append)
    embedded(weight).sum().backward()
    assert [g.layout for g in seen] == [tc.sparse_coo] * 2 and seen[0].shape == (5, 2)
    assert seen[0]._indices().tolist() == [[1, 1]] and seen[1]._values().eq(3).all()
    assert weight.grad.is_sparse and weight.grad.to_dense()[1].tolist() == [6, 6]
    embedded(weight).sum().backward()
    assert weight.grad.to_dense()[1].tolist() == [12, 12]


def test_a_hook_changes_the_gradient_of_an_embedding_in_place_or_makes_it_dense():
    weight = tc.ones(5, 2, requires_grad=True)
    handle = weight.register_hook(lambda g: g.mul_(4))
    embedded(weight).sum().backward()
    assert weight.grad.to_dense()[1].tolist() == [8, 8]
    handle.remove()
    weight.grad = None
    weight.register_hook(lambda g: g.to_dense())
    embedded(weight).sum().backward()
    assert weight.grad.layout is tc.strided and weight.grad[1].tolist() == [2, 2]


def test_hooks_of_the_nodes_at_an_embedding():
    weight, seen = tc.ones(5, 2, requires_grad=True), []
    y = embedded(weight)
    y.grad_fn.register_hook(lambda to, of: seen.append(to[0].layout))
    y.grad_fn.next_functions[0][0].register_prehook(lambda given: seen.append(given[0].layout))
    y.sum().backward()
    assert seen == [tc.sparse_coo] * 2 and weight.grad.is_sparse


# ---- layouts of gradients ----

@pytest.mark.parametrize("leaf, grad, fits", [
    ("sparse_coo", "strided", False), ("strided", "sparse_csr", False), ("sparse_csr", "strided", False),
    ("strided", "sparse_coo", True), ("sparse_csr", "sparse_coo", True), ("sparse_csr", "sparse_csr", True)])
def test_an_assigned_gradient_has_a_layout_that_fits(leaf, grad, fits):
    def of(layout):
        return matrix() if layout == "strided" else matrix().to_sparse(layout=getattr(tc, layout))

    x = of(leaf).requires_grad_()
    if fits:
        x.grad = of(grad)
        assert x.grad.layout is getattr(tc, grad)
    else:
        with pytest.raises(RuntimeError, match="attempting to assign a gradient to a tensor that has data of a different type"):
            x.grad = of(grad)
        assert x.grad is None


@pytest.mark.parametrize("f, want", [
    (lambda x: x * 2, [[2, 4], [0, 6]]), (lambda x: x * tc.tensor([[2.0, 3], [4, 5]]), [[2, 6], [0, 15]]),
    (lambda x: -x, [[-1, -2], [0, -3]]), (lambda x: x + 1, [[1, 2], [0, 3]]), (lambda x: x + x, [[2, 4], [0, 6]]),
    (lambda x: tc.sub(x, x, alpha=3), [[-2, -4], [0, -6]]), (lambda x: x.clone(), [[1, 2], [0, 3]]),
    (lambda x: x / 2, [[0.5, 1], [0, 1.5]]), (lambda x: x.t(), [[1, 0], [2, 3]]), (lambda x: x**2, [[2, 4], [0, 6]]),
    (lambda x: x.square(), [[2, 4], [0, 6]])])
def test_a_coo_gradient_goes_through(f, want):
    x = tc.ones(2, 2, requires_grad=True)
    f(x).backward(matrix().to_sparse())
    assert x.grad.is_sparse and x.grad.to_dense().tolist() == want


def test_a_coo_gradient_of_a_broadcast_operand_is_refused():
    x = tc.ones(1, 2, requires_grad=True)
    with pytest.raises(NotImplementedError, match="sparse_coo"):
        (x * tc.ones(2, 2)).backward(matrix().to_sparse())


# ---- optimizers ----

def stepped(optimizer, **options):
    """The weight, the optimizer and another parameter, which comes first, before a step with a COO gradient."""
    other, weight = tc.ones(2, requires_grad=True), tc.arange(4.0).reshape(2, 2).requires_grad_()
    made = getattr(tc.optim, optimizer)([other, weight], **options)
    other.grad = tc.ones(2)
    tc.nn.functional.embedding(tc.tensor([1]), weight, sparse=True).sum().backward()
    return other, weight, made


@pytest.mark.parametrize("name", ["Adam", "AdamW", "RMSprop", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop", "Ftrl"])
def test_an_optimizer_that_takes_no_sparse_gradient_refuses_before_it_changes_anything(name):
    other, weight, optimizer = stepped(name)
    said = "Adam does not support sparse gradients, please consider SparseAdam instead" if name in ("Adam", "AdamW") else (
        f"{name} does not support sparse gradients")
    with pytest.raises(RuntimeError, match=said):
        optimizer.step()
    assert not optimizer.state and other.tolist() == [1, 1] and weight.flatten().tolist() == [0, 1, 2, 3]


def test_adagrad_refuses_weight_decay_of_a_sparse_gradient():
    other, _, optimizer = stepped("Adagrad", weight_decay=0.1)
    with pytest.raises(RuntimeError, match="weight_decay option is not compatible with sparse gradients"):
        optimizer.step()
    assert not optimizer.state and other.tolist() == [1, 1]


def test_the_arguments_and_the_state_of_sparse_adam():
    with pytest.raises(ValueError, match=r"Complex params at indices \[\[0, 1\]\]: SparseAdam does not support complex"):
        tc.optim.SparseAdam([tc.ones(2, requires_grad=True), tc.ones(2, dtype=tc.complex64, requires_grad=True)])
    for name in ("SparseAdam", "Adam", "SGD"):
        with pytest.raises(ValueError, match="Tensor lr must be 1-element"):
            getattr(tc.optim, name)([tc.ones(2, requires_grad=True)], lr=tc.tensor([0.1, 0.2]))
    weight = tc.zeros(3, 2, requires_grad=True)
    optimizer = tc.optim.SparseAdam([weight], lr=tc.tensor([0.25]))
    for step in (1, 2):
        embedded(weight).sum().backward()
        optimizer.step()
        assert type(optimizer.state[weight]["step"]) is int and optimizer.state[weight]["step"] == step
        optimizer.zero_grad()
    assert weight[1].tolist() == pytest.approx([-0.5, -0.5], rel=1e-5)


def test_lbfgs_takes_a_sparse_gradient():
    weight = tc.full((3, 2), 4.0, requires_grad=True)
    optimizer = tc.optim.LBFGS([weight], line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = embedded(weight).square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert weight[1].abs().max() < 1e-3 and weight[0].tolist() == [4, 4]
