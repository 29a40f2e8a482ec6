"""Reductions, scans, sorting, searching and counting, compared with NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tercel as tc

ARRAYS = hnp.arrays(
    st.sampled_from([np.float32, np.float64, np.int64, np.int32]),
    hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=6),
    elements=st.integers(-9, 9),
)


def same(got, want, rtol=1e-6):
    np.testing.assert_allclose(got.numpy(), want, rtol=rtol, atol=1e-5)


@settings(max_examples=100, deadline=None)
@given(ARRAYS, st.data())
def test_scans_and_differences(n, data):
    dim = data.draw(st.integers(-n.ndim, n.ndim - 1))
    x = tc.from_numpy(n.copy())
    same(x.cumsum(dim), n.cumsum(dim))
    same(tc.cumprod(x, dim), n.cumprod(dim), rtol=1e-4)
    same(x.cummax(dim).values, np.maximum.accumulate(n, dim))
    same(x.cummin(dim)[0], np.minimum.accumulate(n, dim))
    same(tc.diff(x, dim=dim), np.diff(n, axis=dim))
    same(tc.diff(x, 2, dim, prepend=x), np.diff(n, 2, axis=dim, prepend=n))
    same(tc.trapezoid(x, dim=dim), np.trapezoid(n, axis=dim) if hasattr(np, "trapezoid") else np.trapz(n, axis=dim))
    if n.shape[dim] > 1:
        same(tc.gradient(x.double(), dim=dim)[0], np.gradient(n.astype("f8"), axis=dim))


@settings(max_examples=100, deadline=None)
@given(ARRAYS, st.data())
def test_order_and_selection(n, data):
    dim = data.draw(st.integers(-n.ndim, n.ndim - 1))
    x = tc.from_numpy(n.copy())
    k = data.draw(st.integers(1, n.shape[dim]))
    ordered = np.sort(n, dim)
    same(x.sort(dim).values, ordered)
    same(x.argsort(dim, stable=True), np.argsort(n, dim, kind="stable"))
    same(tc.msort(x), np.sort(n, 0))
    same(x.topk(k, dim).values, np.flip(ordered, dim).take(range(k), dim))
    same(tc.topk(x, k, dim, largest=False).indices, np.argsort(n, dim, kind="stable").take(range(k), dim))
    same(x.kthvalue(k, dim).values, ordered.take(k - 1, dim))
    same(x.median(dim).values, ordered.take((n.shape[dim] - 1) // 2, dim))
    same(x.median(), np.sort(n, None)[(n.size - 1) // 2])
    for how in ("linear", "lower", "higher", "midpoint"):
        same(tc.quantile(x.double(), 0.3, dim, interpolation=how), np.quantile(n.astype("f8"), 0.3, dim, method=how))


@settings(max_examples=100, deadline=None)
@given(ARRAYS, st.booleans())
def test_searching_and_counting(n, right):
    x, flat = tc.from_numpy(n.copy()), np.sort(n, None)
    side = "right" if right else "left"
    same(tc.searchsorted(tc.from_numpy(flat.copy()), x, right=right), np.searchsorted(flat, n, side))
    same(tc.bucketize(x, tc.from_numpy(flat.copy()), right=right), np.searchsorted(flat, n, side))
    values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
    want = np.unique(n, return_inverse=True, return_counts=True)
    same(values, want[0])
    same(inverse, want[1].reshape(n.shape))
    same(counts, want[2])
    same(x.unique(dim=0), np.unique(n, axis=0))
    same(tc.isin(x, tc.tensor([1, 2])), np.isin(n, [1, 2]))
    same(x.double().histc(7, -9, 9), np.histogram(n, 7, (-9, 9))[0])
    hist, edges = tc.histogram(x.double(), 5)
    same(edges, np.histogram_bin_edges(n.astype("f8"), 5))
    assert hist.sum().item() == n.size
    same((x.reshape(-1).long() + 9).bincount(minlength=30), np.bincount(n.reshape(-1).astype("i8") + 9, minlength=30))


@settings(max_examples=50, deadline=None)
@given(ARRAYS, st.data())
def test_reductions(n, data):
    dim = data.draw(st.integers(-n.ndim, n.ndim - 1))
    n = n.astype("f8")
    holes = n.copy()
    holes.flat[0] = np.nan
    x, y = tc.from_numpy(n), tc.from_numpy(holes)
    same(tc.nansum(y, dim), np.nansum(holes, dim))
    same(y.nanmean(), np.nanmean(holes) if n.size > 1 else np.nan)
    same(x.std(dim, correction=0), n.std(dim))
    var, mean = tc.var_mean(x, dim, correction=0, keepdim=True)
    same(var, n.var(dim, keepdims=True))
    same(mean, n.mean(dim, keepdims=True))
    low, high = x.aminmax(dim=dim)
    same(low, n.min(dim))
    same(high, n.max(dim))
    same(x.logsumexp(dim), np.log(np.exp(n).sum(dim)))
    same(x.norm(3, dim), (np.abs(n) ** 3).sum(dim) ** (1 / 3))


def test_names_and_shapes():
    x = tc.tensor([[3.0, 1.0], [2.0, 2.0]])
    assert x.topk(1).values.shape == (2, 1) and x.mode(1).indices.tolist() == [1, 1]
    assert tc.aminmax(x).min.item() == 1 and tc.histogram(x, 2).bin_edges.shape == (3,)
    assert x.argmax(keepdim=True).shape == (1, 1) and x.sum(dtype=tc.int64).dtype is tc.int64
    assert x.softmax(0, dtype=tc.float64).dtype is tc.float64
    assert tc.tensor([1, 1, 2]).unique_consecutive(return_counts=True)[1].tolist() == [2, 1]
    assert tc.quantile(x, tc.tensor([0.0, 1.0]), dim=1).tolist() == [[1, 2], [3, 2]]
    assert tc.segment_reduce(x, "max", lengths=tc.tensor([2])).tolist() == [[3, 2]]
    y = x.clone()
    assert y.cumsum_(0).tolist() == [[3, 1], [5, 3]] and y.tolist() == [[3, 1], [5, 3]]
    with pytest.raises(RuntimeError, match="selected index k out of range"):
        x.topk(3)
    with pytest.raises(IndexError, match="Expected reduction dim 1 to have non-zero size"):
        tc.zeros(2, 0).kthvalue(1, 1)


@pytest.mark.parametrize("bins", [3, [2, 4], "edges"])
@pytest.mark.parametrize("weighted, density", [(False, False), (True, False), (True, True)])
def test_histogramdd(bins, weighted, density):
    points = tc.randn(50, 2, dtype=tc.float64)
    weight = tc.rand(50, dtype=tc.float64) if weighted else None
    bounds = None
    if bins == "edges":
        bins = [tc.tensor([-1.0, 0.0, 0.5], dtype=tc.float64), tc.tensor([-2.0, 2.0], dtype=tc.float64)]
    else:
        bounds = (-1.0, 1.0, -2.0, 1.5)
    hist, edges = tc.histogramdd(points, bins, range=bounds, weight=weight, density=density)
    plain = [b.numpy() for b in bins] if isinstance(bins, list) and not isinstance(bins[0], int) else bins
    want, want_edges = np.histogramdd(points.numpy(), plain, range=bounds and [bounds[:2], bounds[2:]],
                                      weights=weight.numpy() if weighted else None, density=density)
    np.testing.assert_allclose(hist.numpy(), want)
    for got, expected in zip(edges, want_edges):
        np.testing.assert_allclose(got.numpy(), expected)


def test_histogramdd_of_the_data_and_its_errors():
    points = tc.tensor([[0.0, 1.0], [2.0, 1.0], [2.0, 3.0]])
    result = tc.histogramdd(points, [2, 1])
    assert result.hist.tolist() == [[1], [2]] and [e.tolist() for e in result.bin_edges] == [[0, 1, 2], [1, 3]]
    for call, text in [(lambda: tc.histogramdd(points[0], 2), "at least 2 dimensions"),
                       (lambda: tc.histogramdd(points, [2]), "expected 2 sequences of bin edges"),
                       (lambda: tc.histogramdd(points, 2, range=(0, 1)), "range should have 4 elements"),
                       (lambda: tc.histogramdd(points, 2, range=(1, 0, 0, 1)), "min should not exceed max")]:
        with pytest.raises(RuntimeError, match=text):
            call()


def test_unravel_index():
    flat = tc.tensor([[0, 5], [23, 7]])
    for shape in ((4, 6), (2, 3, 4), 24, (24,)):
        for got, want in zip(tc.unravel_index(flat, shape), np.unravel_index(flat.numpy(), shape)):
            assert got.tolist() == want.tolist() and got.dtype is tc.int64
    assert tc.unravel_index(flat.to(tc.uint8), (4, 6))[0].dtype is tc.int64
    for error, call in [(TypeError, lambda: tc.unravel_index(flat.float(), (4, 6))),
                        (ValueError, lambda: tc.unravel_index(flat, (-4, 6))),
                        (TypeError, lambda: tc.unravel_index(flat, (4.0, 6)))]:
        with pytest.raises(error):
            call()


def test_fill_of_a_copy():
    x = tc.ones(2, 3, requires_grad=True)
    value = tc.tensor(4.0, requires_grad=True)
    y = tc.fill(x, value)
    y.sum().backward()
    assert y.tolist() == [[4.0] * 3] * 2 and x.tolist() == [[1.0] * 3] * 2
    assert value.grad.item() == 6 and x.grad.abs().sum().item() == 0


def test_an_output_says_what_a_reduction_calculates_in():
    x = tc.tensor([[1.5, 2.5], [3.5, 4.5]])
    for function in (tc.sum, tc.nansum, tc.mean, tc.prod, tc.cumsum, tc.cumprod):
        out = tc.empty(0, dtype=tc.float64)
        assert function(x, 0, out=out) is out
        assert out.tolist() == function(x.double(), 0).tolist()
        with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float, but got double instead"):
            function(x, 0, dtype=tc.float32, out=out)
    assert tc.sum(x, 0, out=tc.empty(0, dtype=tc.int64)).tolist() == [4, 6]
    for function in (tc.any, tc.all):
        assert function(x, 0, out=tc.empty(0, dtype=tc.bool)).tolist() == [True, True]
        assert function(x, out=tc.empty(0, dtype=tc.uint8)).item() == 1
        for dims in ((), (0,)):
            with pytest.raises(RuntimeError, match=r"only supports bool tensor for result, got: Float"):
                function(x, *dims, out=tc.empty(0))
    assert x.amax(None).item() == 4.5 and tc.amin(x, dim=None, keepdim=True).tolist() == [[1.5]]
    with pytest.raises(RuntimeError, match=r"quantile\(\) q must be in the range \[0, 1\] but got 1.5"):
        x.quantile(1.5)
    with pytest.raises(RuntimeError, match="out tensor must be same dtype as the input tensor"):
        tc.quantile(x, 0.5, out=tc.empty(0, dtype=tc.int32))
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype long int, but got float instead"):
        tc.max(x, 0, out=(tc.empty(0), tc.empty(0)))


def test_running_products_of_complex_numbers():
    n = np.exp(1j * np.arange(14).reshape(2, 7)) * 1.1
    x = tc.from_numpy(n)
    same(x.cumprod(1).real, n.cumprod(1).real)
    same(x.cumprod(0).imag, n.cumprod(0).imag)
    assert x[0, 0].cumprod(0).item() == n[0, 0] and x[:, :0].cumprod(1).shape == (2, 0)
    y = x.clone().requires_grad_()
    assert tc.autograd.gradcheck(lambda t: t.cumprod(1), (y,))
    with tc.no_grad():
        y[0, 2] = 0
    assert tc.autograd.gradcheck(lambda t: t.cumprod(1), (y,))


def test_histograms():
    x = tc.tensor([[0.0, 1.0], [1.0, 2.0], [2.0, 1.5], [5.0, 1.0]])
    assert tc.histogram(tc.ones(3), 2).bin_edges.tolist() == [0.5, 1, 1.5]
    assert tc.histogram(tc.ones(0), 2).bin_edges.tolist() == [0, 0.5, 1]
    out = tc.empty(0), tc.empty(0)
    assert tc.histogram(x, 2, out=out).hist is out[0] and out[0].tolist() == [7, 1]
    with pytest.raises(RuntimeError, match="input tensor and hist tensor should have the same dtype"):
        tc.histogram(x, 2, out=(tc.empty(0, dtype=tc.float64), tc.empty(0)))
    with pytest.raises(RuntimeError, match="bins must be > 0"):
        tc.histogram(x, tc.ones(1))
    with pytest.raises(RuntimeError, match="at least 1 element"):
        tc.histogram(x, tc.ones(0))


def test_no_indices_have_any_dtype():
    assert tc.gather(tc.ones(3), 0, tc.empty(0, dtype=tc.uint8)).shape == (0,)
    with pytest.raises(RuntimeError, match="for index"):
        tc.gather(tc.ones(3), 0, tc.zeros(1, dtype=tc.uint8))
    assert tc.resize_as_(tc.ones(4), tc.ones(2, 2)).shape == (2, 2)


def test_bytes_that_are_bools_count_once():
    odd = tc.tensor([2, 255, 0, 7, 128, 1, 0, 0] * 3, dtype=tc.uint8).view(tc.bool)
    places = [i for i in range(24) if i % 8 not in (2, 6, 7)]
    assert odd.nonzero().squeeze(1).tolist() == places and tc.arange(24)[odd].tolist() == places
    assert tc.arange(24).masked_select(odd).tolist() == places


def test_gradients_of_renorm_in_place():
    x = tc.tensor([[3.0, 4.0], [0.3, 0.4]], dtype=tc.float64, requires_grad=True)
    tc.renorm(x, 2, 0, 1).square().sum().backward()
    expected, x.grad = x.grad, None
    x.clone().renorm_(2, 0, 1).square().sum().backward()
    assert x.grad.tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", [tc.int16, tc.bool, tc.bfloat16, tc.float64], ids=repr)
def test_the_best_of_no_rows(dtype):
    x = tc.ones(0, 5, dtype=dtype)
    for f in (tc.max, tc.min):
        values, indices = f(x, -1)
        assert (values.dtype, values.shape, indices.dtype) == (dtype, (0,), tc.int64)


def test_selections_of_nothing_have_a_gradient():
    x = tc.ones(3, 2, requires_grad=True)
    x.topk(0, 0).values.sum().backward()
    assert x.grad.tolist() == [[0, 0]] * 3
    assert tc.topk(tc.ones(0, 3, requires_grad=True), 2).values.requires_grad
    assert tc.median(tc.ones(0, requires_grad=True)).requires_grad
    assert [t.item() for t in tc.topk(tc.tensor(5.0), 0)] == [5, 0]


def test_histogramdd_of_no_points_and_of_no_dimensions():
    empty = tc.histogramdd(tc.zeros(0, 2), [2, 1])
    assert empty.hist.tolist() == [[0], [0]] and [e.tolist() for e in empty.bin_edges] == [[0, 0.5, 1], [0, 1]]
    assert tc.histogramdd(tc.zeros(3, 0), []).hist.item() == 0
    assert tc.histogramdd(tc.zeros(3, 0), [], density=True).hist.isnan().item()


def test_search_in_what_has_to_be_copied_warns():
    rows = tc.tensor([[1.0, 2.0], [3.0, 4.0]])
    for call, what in [(lambda: tc.searchsorted(rows.t(), rows), "boundary"),
                       (lambda: tc.searchsorted(rows, rows.t()), "input value"),
                       (lambda: tc.bucketize(rows.t(), rows[0]), "input value"),
                       (lambda: tc.searchsorted(rows, rows, sorter=tc.tensor([[0, 0], [1, 1]]).t()), "sorter")]:
        with pytest.warns(UserWarning, match=f"searchsorted.*{what} tensor is non-contiguous"):
            call()


def test_mode_into_tensors_of_other_dtypes():
    x = tc.tensor([1.0, 2.0, 2.0])
    with pytest.raises(RuntimeError, match="expected scalar type 'Float' but got 'Int' for values output"):
        tc.mode(x, out=(tc.zeros(1, dtype=tc.int32), tc.zeros(1, dtype=tc.int64)))
    with pytest.raises(RuntimeError, match="expected scalar type 'Long' but got 'Int' for indices output"):
        tc.mode(x, out=(tc.zeros(1), tc.zeros(1, dtype=tc.int32)))
    values, indices = tc.zeros(1), tc.zeros(1, dtype=tc.int64)
    tc.mode(x, out=(values, indices))
    assert values.item() == 2


def test_more_dimensions_than_can_be_reduced():
    x = tc.full([1] * 65, 3.0)
    assert x.dim() == 65 and x.view(-1).item() == 3 and (x + x).flatten().item() == 6 and x.transpose(0, 64).dim() == 65
    for call in (lambda: x.sum(0), lambda: x.std(0), lambda: x.norm(dim=0), lambda: x.argmax(0), lambda: x.max(64),
                 lambda: x + tc.ones(2)):
        with pytest.raises(RuntimeError, match="only tensors with up to 64 dims are supported"):
            call()
    with pytest.raises(RuntimeError, match="duplicate dims are not allowed"):
        x.permute(*range(64), 63)
    with pytest.raises(RuntimeError, match="at most 127 dimensions, not 128"):
        tc.zeros([1] * 128)


def test_gradient_with_a_complex_step():
    x = tc.tensor([1.0, 2.0, 4.0, 8.0])
    (plain,), (turned,) = tc.gradient(x), tc.gradient(x, spacing=2j)
    tc.testing.assert_close(turned, plain / 2j)
