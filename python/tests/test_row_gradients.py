"""Gradients of rows, which sparse=True asks for, against dense ones."""

import pytest

import tercel as tc


BAGS = [dict(mode="sum"), dict(mode="mean"), dict(mode="sum", padding_idx=1), dict(mode="sum", per_sample_weights=True)]


def bag(table, keys, options):
    options = dict(options)
    if options.pop("per_sample_weights", False):
        options["per_sample_weights"] = tc.arange(1, keys.numel() + 1, dtype=tc.float32)
    return tc.nn.functional.embedding_bag(keys, table, tc.tensor([0, 3]), **options)


@pytest.mark.parametrize("options", BAGS)
def test_sparse_gradients_of_bags_equal_dense_ones(options):
    keys = [tc.tensor(k) for k in ([1, 2, 1, 5], [5, 5, 0, 1], [3, 1, 4, 1])]
    grads = {}
    for sparse in (False, True):
        table = tc.ones(6, 4, requires_grad=True)
        for k in keys:
            (bag(table, k, {**options, "sparse": sparse}) * tc.arange(1.0, 9.0).view(2, 4)).sum().backward()
            table.grad.clone()
        if sparse:
            (table * 2).sum().backward()
        grads[sparse] = table.grad.to_dense() if table.grad.is_sparse else table.grad
    tc.testing.assert_close(grads[True], grads[False] + 2)


@pytest.mark.parametrize("options", BAGS)
def test_sparse_gradients_keep_nothing_of_the_caller(options):
    keys, g = tc.tensor([1, 2, 1, 5]), tc.ones(2, 4)
    table = tc.zeros(10, 4, requires_grad=True)
    out = bag(table, keys, {**options, "sparse": True})
    expected = tc.autograd.grad(bag(table, keys, options), table, g.clone())[0]
    kept = []
    out.register_hook(kept.append)
    out.backward(g)
    g.mul_(100)
    kept[0].mul_(3)
    keys.fill_(9)
    bag(table, keys, {**options, "sparse": True})
    assert tc.equal(table.grad.to_dense() if table.grad.is_sparse else table.grad, expected)


def test_sparse_gradients_of_embeddings_keep_nothing_of_the_caller():
    keys, g = tc.tensor([1, 2, 1, 5]), tc.ones(4, 4)
    table = tc.zeros(10, 4, requires_grad=True)
    tc.nn.functional.embedding(keys, table, sparse=True).backward(g)
    g.mul_(100)
    keys.fill_(9)
    tc.optim.SGD([table], lr=1.0).step()
    assert table.sum().item() == -16 and table[9].sum().item() == 0
