"""tercel.masked: reductions of the elements that a mask selects, compared with NumPy's with where=."""

import math

import numpy as np
import pytest

import tercel as tc
from tercel import masked

X = np.array([[1.5, -2.0, 3.0, 0.5], [4.0, 1.0, -1.0, 2.0], [0.25, 6.0, 2.0, -3.0]])
M = np.array([[True, False, True, True], [False, False, False, False], [True, True, False, True]])
DIMS = [None, 0, 1, -1, (0, 1), ()]


def pair():
    return tc.from_numpy(X.copy()), tc.from_numpy(M.copy())


def axes(dim):
    return None if dim is None or dim == () else dim


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("keepdim", [False, True])
def test_sums_and_extremes(dim, keepdim):
    x, mask = pair()
    how = {"axis": axes(dim), "keepdims": keepdim, "where": M}
    expected = {
        "sum": X.sum(**how), "prod": X.prod(**how), "amax": X.max(initial=-math.inf, **how),
        "amin": X.min(initial=math.inf, **how),
    }
    for name, values in expected.items():
        got = getattr(masked, name)(x, dim, keepdim=keepdim, mask=mask)
        np.testing.assert_allclose(got.numpy(), values)
    full = masked.sum(x, dim, keepdim=keepdim)
    np.testing.assert_allclose(full.numpy(), X.sum(axis=axes(dim), keepdims=keepdim))


@pytest.mark.parametrize("dim", [None, 0, 1])
def test_moments(dim):
    x, mask = pair()
    keep = np.where(M, X, np.nan)
    with np.errstate(all="ignore"):
        count = M.sum(axis=dim)
        mean = np.where(M, X, 0).sum(axis=dim) / count
        middle = mean if dim is None else np.expand_dims(mean, dim)
        total = np.nansum((keep - middle) ** 2, axis=dim)
        expected = total / np.maximum(count - 1, 0)
    np.testing.assert_allclose(masked.mean(x, dim, mask=mask).numpy(), mean)
    np.testing.assert_allclose(masked.var(x, dim, mask=mask).numpy(), expected)
    np.testing.assert_allclose(masked.std(x, dim, unbiased=True, mask=mask).numpy(), np.sqrt(expected))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(masked.var(x, dim, correction=0, mask=mask).numpy(), total / count)
    size = np.sqrt((np.where(M, X, 0) ** 2).sum(axis=dim))
    np.testing.assert_allclose(masked.norm(x, 2, dim, mask=mask).numpy(), size)


def test_along_a_dimension():
    x, mask = pair()
    zeros, ones = np.where(M, X, 0), np.where(M, X, 1)
    np.testing.assert_allclose(masked.cumsum(x, 1, mask=mask).numpy(), zeros.cumsum(1))
    np.testing.assert_allclose(masked.cumprod(x, 0, mask=mask).numpy(), ones.cumprod(0))
    assert masked.argmax(x, 1, mask=mask).tolist() == [2, 0, 1] and masked.argmin(x, mask=mask).item() == 11
    soft = masked.softmax(x, 1, mask=mask)
    powers = np.where(M, np.exp(X), 0)
    np.testing.assert_allclose(soft[::2].numpy(), powers[::2] / powers[::2].sum(1, keepdims=True))
    assert soft[1].isnan().all()  # nothing to share
    np.testing.assert_allclose(masked.softmin(-x, 1, mask=mask)[::2].numpy(), soft[::2].numpy())
    np.testing.assert_allclose(masked.log_softmax(x, 1, mask=mask)[0, 0].item(), soft[0, 0].log().item())
    np.testing.assert_allclose(masked.logsumexp(x, 1, mask=mask)[::2].numpy(), np.log(powers[::2].sum(1)))
    assert masked.median(x, 1, mask=mask)[::2].tolist() == [1.5, 0.25] and masked.median(x, 1, mask=mask)[1].isnan()
    assert masked.median(tc.tensor([1.0, math.nan, 3.0]), 0, mask=tc.tensor([True, True, False])).isnan()
    unit = masked.normalize(x, 2, 1, mask=mask)
    assert unit[0].norm().item() == pytest.approx(1) and unit[1].tolist() == [0] * 4 and unit[0, 1].item() == 0
    both = masked.logaddexp(x, x, input_mask=mask, other_mask=mask.logical_not())
    np.testing.assert_allclose(both.numpy(), X)  # each element is in exactly one of the two


def test_dtypes_gradients_and_errors():
    counts = tc.tensor([[1, 2], [3, 4]], dtype=tc.int8)
    mask = tc.tensor([True, False])
    assert masked.sum(counts, 0, mask=mask).dtype == tc.int64 and masked.sum(counts, mask=mask).item() == 4
    assert masked.mean(counts, mask=mask, dtype=tc.float32).item() == 2 and masked.amax(counts, 1, mask=mask).tolist() == [1, 3]
    assert masked.amin(counts, 1, mask=tc.tensor([False, False])).tolist() == [127, 127]
    assert masked.mean(counts, dtype=tc.float64).dtype == tc.float64 and masked.var(counts).dtype == tc.float32
    assert masked.argmax(counts).dtype == tc.int8 and masked.argmin(counts, dtype=tc.float64).dtype == tc.float64
    assert masked.logsumexp(tc.zeros(2)).item() == pytest.approx(math.log(2))
    z = tc.tensor([1 + 1j, 3 - 1j, 100j])
    assert masked.var(z, mask=tc.tensor([True, True, False])).item() == pytest.approx(4)
    x = tc.ones(3, requires_grad=True)
    masked.prod(x * 2, mask=tc.tensor([True, False, True])).backward()
    assert x.grad.tolist() == [4, 0, 4]
    with pytest.raises(IndexError, match="more dimensions than the input"):
        masked.sum(tc.ones(2), mask=tc.ones(2, 2, dtype=tc.bool))
    with pytest.raises(IndexError, match="Dimension out of range"):
        masked.sum(tc.ones(2), 1)
    with pytest.raises(RuntimeError, match="appears multiple times"):
        masked.sum(tc.ones(2, 2), (0, 0))
    with pytest.raises(ValueError, match="at most one of unbiased and correction"):
        masked.var(tc.ones(2), unbiased=True, correction=1)
