"""A few operations of every table compared with NumPy, to check that arguments are passed correctly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tercel as tc

UNARY = ["abs", "neg", "exp", "expm1", "log1p", "sqrt", "square", "sin", "cos", "tanh", "sign", "floor", "ceil", "trunc"]
NUMPY_NAMES = {"neg": "negative", "abs": "absolute"}


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    n = np.linspace(0.1, 2, 7)
    x = tc.from_numpy(n.copy())
    want = getattr(np, NUMPY_NAMES.get(name, name))(n)
    out = tc.empty(0, dtype=tc.float64)
    for got in (getattr(tc, name)(x), getattr(x, name)(), getattr(tc, name)(x, out=out), getattr(x.clone(), name + "_")()):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 4), st.integers(1, 4), st.sampled_from(["add", "sub", "mul", "maximum", "minimum"]),
       st.sampled_from(["i4", "i8", "f4", "f8"]), st.sampled_from(["i4", "i8", "f4", "f8"]))
def test_binary_broadcast_and_promotion(rows, columns, name, a, b):
    left = np.arange(rows * columns).reshape(rows, columns).astype(a)
    right = (np.arange(columns) * 2).astype(b)
    got = getattr(tc, name)(tc.from_numpy(left), tc.from_numpy(right)).numpy()
    numpy_name = {"sub": "subtract", "mul": "multiply"}.get(name, name)
    np.testing.assert_allclose(got, getattr(np, numpy_name)(left, right))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_basic_indexing(data):
    n = np.arange(60).reshape(3, 4, 5)
    x = tc.from_numpy(n)
    piece = st.one_of(st.slices(5), st.just(None), st.just(Ellipsis))
    key = data.draw(st.lists(piece, max_size=3))
    if key.count(Ellipsis) > 1:
        key = [k for k in key if k is not Ellipsis]
    np.testing.assert_array_equal(x[tuple(key)].numpy(), n[tuple(key)])


def test_reductions():
    n = np.arange(12.0).reshape(3, 4)
    x = tc.from_numpy(n)
    assert x.sum((0, 1)).item() == 66 and x.mean(1).tolist() == n.mean(1).tolist()
    np.testing.assert_allclose(x.var().item(), n.var(ddof=1))
    np.testing.assert_allclose(x.std(0, unbiased=False).numpy(), n.std(0))
    np.testing.assert_allclose(x.std(dim=1, correction=2).numpy(), n.std(1, ddof=2))
    assert x.prod(0)[0].item() == 0 and x.argmax().item() == 11 and x.amin(dim=0).tolist() == [0, 1, 2, 3]
    assert x.sum(dtype=tc.int64).dtype is tc.int64 and x.norm().item() == pytest.approx(np.linalg.norm(n))
    assert x.any().item() and not x.all().item() and tc.count_nonzero(x).item() == 11
    assert tc.max(x, x.flip(0) if hasattr(x, "flip") else x).shape == (3, 4)


def test_views_and_joins():
    x = tc.arange(12).view(3, 4)
    assert [p.shape for p in x.split(3, 1)] == [(3, 3), (3, 1)] and [len(p) for p in x.chunk(2)] == [2, 1]
    assert [p.shape[1] for p in x.split([1, 3], dim=1)] == [1, 3]
    assert tc.cat([x, x], 1).shape == (3, 8) and tc.stack((x, x), dim=-1).shape == (3, 4, 2)
    assert x.unsqueeze(0).squeeze(0).expand(2, 3, 4).shape == (2, 3, 4)
    assert x.T.shape == x.mT.shape == (4, 3) and x.flatten().shape == (12,) and x.narrow(1, 1, 2).shape == (3, 2)
    assert x.as_strided((2,), (5,)).tolist() == [0, 5]


def test_factories():
    assert tc.full((2,), 7).dtype is tc.int64 and tc.full((2,), 7.0).dtype is tc.float32
    assert tc.arange(5).dtype is tc.int64 and tc.arange(0, 1, 0.25).tolist() == [0, 0.25, 0.5, 0.75]
    assert tc.linspace(0, 1, 3).tolist() == [0, 0.5, 1] and tc.eye(2, 3).sum().item() == 2
    x = tc.ones(2, 3, dtype=tc.float64)
    assert x.new_zeros(2).dtype is tc.zeros_like(x).dtype is tc.float64
    assert tc.zeros_like(x, dtype=tc.int32).dtype is tc.int32 and tc.ones(2, requires_grad=True).requires_grad
    assert tc.randint(3, (10,)).max().item() < 3 and sorted(tc.randperm(5).tolist()) == [0, 1, 2, 3, 4]
    assert tc.empty(1, 2, 3, 4, memory_format=tc.channels_last).is_contiguous(memory_format=tc.channels_last)
    with pytest.raises(RuntimeError, match="Only Tensors of floating point"):
        tc.zeros(2, dtype=tc.int64, requires_grad=True)


def test_products_and_layers():
    a, b = np.random.rand(2, 3), np.random.rand(3, 4)
    x, y = tc.from_numpy(a), tc.from_numpy(b)
    for got in (x @ y, tc.mm(x, y), x.matmul(y)):
        np.testing.assert_allclose(got.numpy(), a @ b)
    F = tc.nn.functional
    assert F.softmax(tc.ones(2, 4), dim=1)[0, 0].item() == 0.25
    assert F.linear(tc.ones(1, 3), tc.ones(2, 3), tc.ones(2)).tolist() == [[4, 4]]
    assert F.conv2d(tc.ones(1, 1, 3, 3), tc.ones(1, 1, 2, 2), padding=1).shape == (1, 1, 4, 4)
    assert F.max_pool2d(tc.arange(16.0).view(1, 1, 4, 4), 2).flatten().tolist() == [5, 7, 13, 15]
    assert F.mse_loss(tc.ones(2), tc.zeros(2), reduction="sum").item() == 2


def test_indices():
    x = tc.arange(6.0).view(2, 3)
    rows = tc.tensor([1, 0])
    assert x.index_select(0, rows).tolist() == [[3, 4, 5], [0, 1, 2]]
    assert x.gather(1, tc.tensor([[2], [0]])).tolist() == [[2], [3]]
    assert tc.zeros(3).scatter(0, tc.tensor([2]), 5).tolist() == [0, 0, 5]
    assert tc.zeros(3).scatter_add_(0, tc.tensor([1, 1]), tc.ones(2)).tolist() == [0, 2, 0]
    assert tc.zeros(2).scatter_reduce(0, tc.tensor([0, 0]), tc.tensor([3.0, 7.0]), "amax").tolist() == [7, 0]
    assert x.masked_select(x > 3).tolist() == [4, 5] and x.masked_fill(x > 3, 0).sum().item() == 6
    assert tc.nonzero(tc.tensor([0, 3])).tolist() == [[1]]
    assert tc.where(tc.tensor([False, True]))[0].tolist() == [1]
    assert tc.where(x > 2, x, 0).sum().item() == 12 and x.where(x > 2, -1.0)[0, 0].item() == -1
    y = tc.zeros(2, 3)
    y.index_put_([tc.tensor([0, 1]), tc.tensor([2, 0])], tc.tensor([5.0, 6.0]))
    assert y.tolist() == [[0, 0, 5], [6, 0, 0]]
    assert tc.zeros(2, 2).index_add(0, rows, tc.ones(2, 2), alpha=3).sum().item() == 12


def test_conversions():
    x = tc.tensor([1.5, 2.5])
    assert x.to(tc.int64).tolist() == x.long().tolist() == x.type_as(tc.tensor(1)).tolist() == [1, 2]
    assert x.to("cpu") is x and x.to(tc.float32) is x and x.to(x.dtype, copy=True) is not x
    assert x.double().dtype is tc.float64 and x.bool().tolist() == [True, True]
    assert tc.ones(1, 2, 3, 4).contiguous(memory_format=tc.channels_last).stride() == (24, 1, 8, 2)
