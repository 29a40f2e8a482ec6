"""Gradients at bounds, ties and kinks, where conventions differ: all values are those of PyTorch 2.15."""

import math

import pytest

import tercel as tc
from tercel.nn import functional as F

INF, NAN = math.inf, math.nan

# The call, its operands, and the gradient of each for an incoming gradient of ones.
ROWS = [
    ("clamp", lambda x: tc.clamp(x, -1, 2), [[-2, -1, 0, 2, 3, NAN]], [[0, 0, 1, 0, 0, 0]]),
    ("clamp of a minimum", lambda x: tc.clamp(x, min=-1), [[-2, -1, 0, NAN]], [[0, 0, 1, 0]]),
    ("clamp of a maximum", lambda x: tc.clamp(x, max=2), [[0, 2, 3, NAN]], [[1, 0, 0, 0]]),
    ("clamp_min", lambda x: tc.clamp_min(x, -1), [[-2, -1, 0]], [[0, 0, 1]]),
    ("clamp_max", lambda x: tc.clamp_max(x, 2), [[0, 2, 3]], [[1, 0, 0]]),
    ("clamp between equal bounds", lambda x: tc.clamp(x, 1, 1), [[0, 1, 2]], [[0, 0, 0]]),
    ("clamp between crossed bounds", lambda x: tc.clamp(x, 2, -1), [[-2, -1, 0, 2, 3]], [[0, 0, 0, 0, 0]]),
    ("clamp_", lambda x: (x * 1).clamp_(-1, 2), [[-2, -1, 0, 2, 3]], [[0, 0, 1, 0, 0]]),
    ("hardtanh", F.hardtanh, [[-2, -1, 0, 1, 2, NAN]], [[0, 0, 1, 0, 0, 1]]),
    ("relu6", F.relu6, [[-1, 0, 3, 6, 7]], [[0, 0, 1, 0, 0]]),
    ("relu", F.relu, [[-1, -0.0, 0, 1, INF, NAN]], [[0, 0, 0, 1, 1, 1]]),
    ("threshold", lambda x: F.threshold(x, 1, 20), [[0, 1, 2]], [[0, 0, 1]]),
    ("leaky_relu", lambda x: F.leaky_relu(x, 0.25), [[-1, 0, 1]], [[0.25, 0.25, 1]]),
    ("elu", lambda x: F.elu(x, 2), [[-0.0, 0, 1, INF, NAN]], [[2, 2, 1, 1, 1]]),
    ("elu of alpha 0", lambda x: F.elu(x, 0.0), [[-1, 0, 1]], [[0, 0, 1]]),
    ("celu", lambda x: F.celu(x, 2), [[-0.0, 0, 1, NAN]], [[1, 1, 1, 1]]),
    ("hardsigmoid", F.hardsigmoid, [[-4, -3, 0, 3, 4, NAN]], [[0, 0, 0.166666672, 0, 0, 0]]),
    ("hardswish", F.hardswish, [[-4, -3, 0, 3, 4]], [[0, 0, 0.5, 1, 1]]),
    ("hardshrink", F.hardshrink, [[-1, -0.5, 0, 0.5, 1, NAN]], [[1, 0, 0, 0, 1, 1]]),
    ("softshrink", F.softshrink, [[-1, -0.5, 0, 0.5, 1, NAN]], [[1, 0, 0, 0, 1, 1]]),
    ("softsign", F.softsign, [[-1, 0, 1]], [[0.25, 1, 0.25]]),
    ("abs", tc.abs, [[-1, -0.0, 0, 1]], [[-1, 0, 0, 1]]),
    ("sign", tc.sign, [[-1, 0, 1]], [[0, 0, 0]]),
    ("round", tc.round, [[0.5, 1.5]], [[0, 0]]),
    ("floor", tc.floor, [[1]], [[0]]),
    ("trunc", tc.trunc, [[1]], [[0]]),
    ("frac", tc.frac, [[1, 1.5]], [[1, 1]]),
    ("remainder", lambda x: tc.remainder(x, 1.5), [[1.5, 2]], [[1, 1]]),
    ("fmod", lambda x: tc.fmod(x, 1.5), [[-1.5, 2]], [[1, 1]]),
    ("division rounded to zero", lambda x: tc.div(x, tc.tensor(0.0), rounding_mode='trunc'), [[-1, 0, 2]], [[0, 0, 0]]),
    ("nan_to_num", tc.nan_to_num, [[-INF, NAN, 1, INF]], [[0, 0, 1, 0]]),
    ("sqrt", tc.sqrt, [[0, 1]], [[INF, 0.5]]),
    ("square root by pow", lambda x: x ** 0.5, [[0, 4]], [[INF, 0.25]]),
    ("pow of 0", lambda x: x ** 0, [[0, 2]], [[0, 0]]),
    ("pow of 1", lambda x: x ** 1, [[0, 2]], [[1, 1]]),
    ("logit", tc.logit, [[-0.5, -0.0, 0, 0.5, 1, 2]], [[NAN, INF, INF, 4, INF, NAN]]),
    ("logit within bounds", lambda x: tc.logit(x, 0.25), [[-1, 0.125, 0.25, 0.5, 0.75, 1]],
     [[0, 0, 5.333333333, 4, 5.333333333, 0]]),
    ("logit of bound 0", lambda x: tc.logit(x, 0), [[-1, 0, 0.5, 1, 2]], [[0, INF, 4, INF, 0]]),
    ("root of a relu", lambda x: tc.sqrt(F.relu(x)), [[-1, 0, 4]], [[0, 0, 0.25]]),
    ("root of a clamp", lambda x: tc.sqrt(tc.clamp(x, min=0)), [[-1, 0, 4]], [[0, 0, 0.25]]),
    ("root of a clamp by two", lambda x: tc.sqrt(tc.clamp(x, 0, 9)), [[-1, 0, 4, 9, 16]], [[0, 0, 0.25, 0, 0]]),
    ("root of a maximum", lambda x: tc.sqrt(tc.maximum(x, tc.tensor(0.0))), [[-1, 4]], [[0, 0.25]]),
    ("root of a hardtanh", lambda x: tc.sqrt(F.hardtanh(x, 0, 9)), [[-1, 0, 4, 16]], [[0, 0, 0.25, 0]]),
    ("root of a threshold", lambda x: tc.sqrt(F.threshold(x, 1, 0)), [[0, 1, 4]], [[0, 0, 0.25]]),
    ("root of where", lambda x: tc.where(x > 0, tc.sqrt(tc.where(x > 0, x, 1)), 0), [[-1, 0, 4]], [[0, 0, 0.25]]),
    ("logarithm of a relu6", lambda x: tc.log(F.relu6(x)), [[-1, 0, 2]], [[0, 0, 0.5]]),
    ("root of a hardswish", lambda x: tc.sqrt(F.hardswish(x)), [[-4, -3, 3]], [[0, 0, 0.288675135]]),
    ("clamp by tensors", lambda x, low, high: tc.clamp(x, low, high),
     [[-2, -1, 0, 2, 3], [-1, -1, -1, -1, -1], [2, 2, 2, 2, 2]],
     [[0, 0.5, 1, 0.5, 0], [1, 0.5, 0, 0, 0], [0, 0, 0, 0.5, 1]]),
    ("clamp by equal tensors", lambda x, low, high: tc.clamp(x, low, high), [[0, 1, 2], [1, 1, 1], [1, 1, 1]],
     [[0, 1, 0], [1, 0, 0], [0, 0, 1]]),
    ("clamp by crossed tensors", lambda x, low, high: tc.clamp(x, low, high),
     [[-2, -1, 0, 2, 3, NAN], [2, 2, 2, 2, 2, 2], [-1, -1, -1, -1, -1, -1]],
     [[0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]]),
    ("clamp by tensors that broadcast", lambda x, low, high: tc.clamp(x, low, high),
     [[[-1, 0, 2], [2, -1, 1]], [-1], [[2], [2]]], [[[0.5, 1, 0.5], [0.5, 0.5, 1]], [1], [[0.5], [0.5]]]),
    ("clamp by a minimum", lambda x, low: tc.clamp(x, min=low), [[-2, -1, 0, NAN], [-1, -1, -1, -1]],
     [[0, 0.5, 1, 1], [1, 0.5, 0, 1]]),
    ("clamp by a maximum", lambda x, high: tc.clamp(x, max=high), [[0, 2, 3, NAN], [2, 2, 2, 2]],
     [[1, 0.5, 0, 1], [0, 0.5, 1, 1]]),
    ("maximum", tc.maximum, [[0, 1, 2, NAN, 1], [1, 1, 1, 1, NAN]], [[0, 0.5, 1, 1, 1], [1, 0.5, 0, 1, 1]]),
    ("minimum", tc.minimum, [[0, 1, 2, NAN, 1], [1, 1, 1, 1, NAN]], [[1, 0.5, 0, 1, 1], [0, 0.5, 1, 1, 1]]),
    ("fmax", tc.fmax, [[0, 1, 2, NAN, 1], [1, 1, 1, 1, NAN]], [[0, 0.5, 1, 0, 1], [1, 0.5, 0, 1, 0]]),
    ("fmin", tc.fmin, [[0, 1, 2, NAN, 1], [1, 1, 1, 1, NAN]], [[1, 0.5, 0, 0, 1], [0, 0.5, 1, 1, 0]]),
    ("atan2", tc.atan2, [[0, -0.0, 1, 0], [0, 0, 0, -1]], [[0, 0, 0, -1], [0, 0, -1, 0]]),
    ("hypot", tc.hypot, [[3, 0], [4, 1]], [[0.6, 0], [0.8, 1]]),
    ("nextafter", tc.nextafter, [[0, 0, -0.0, 2, INF, INF, NAN, 1], [0, 1, 0, 1, INF, 1, 1, NAN]],
     [[0, 1, 0, 1, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0, 0, 0]]),
    ("xlogy", tc.xlogy, [[0, 0, 1], [0, 2, 1]], [[0, 0.693147181, 0], [NAN, 0, 1]]),
    ("pow", tc.pow, [[0, 0, 0, 2], [0, 1, 2, 0]], [[0, 1, 0, 0], [0, 0, 0, 0.693147181]]),
    ("prelu", lambda x, weight: F.prelu(x, weight), [[-1, 0, 1], [0.25]], [[0.25, 0.25, 1], [-1]]),
    ("l1_loss", lambda x, y: F.l1_loss(x, y, reduction='none'), [[0, 1, 2], [1, 1, 1]], [[-1, 0, 1], [1, 0, -1]]),
    ("smooth_l1_loss", lambda x, y: F.smooth_l1_loss(x, y, reduction='none', beta=2.0),
     [[-INF, -3, -2, -1, 0, 1, 2, 3, INF], [0, 0, 0, 0, 0, 0, 0, 0, 0]],
     [[-1, -1, -1, -0.5, 0, 0.5, 1, 1, 1], [1, 1, 1, 0.5, 0, -0.5, -1, -1, -1]]),
    ("huber_loss", lambda x, y: F.huber_loss(x, y, reduction='none', delta=2.0),
     [[-INF, -3, -2, -1, 0, 1, 2, 3, INF], [0, 0, 0, 0, 0, 0, 0, 0, 0]],
     [[-2, -2, -2, -1, 0, 1, 2, 2, 2], [2, 2, 2, 1, 0, -1, -2, -2, -2]]),
    ("binary_cross_entropy", lambda x, y: F.binary_cross_entropy(x, y.detach(), reduction='none'),
     [[0, 0, 1, 1, 0.5], [0, 1, 0, 1, 1]], [[0, -1000000003995.8029, 1000000003995.8029, 0, -2], [0, 0, 0, 0, 0]]),
    ("hinge_embedding_loss", lambda x, y: F.hinge_embedding_loss(x, y.detach(), reduction='none'),
     [[0, 1, 2, 0], [-1, -1, -1, 1]], [[-1, 0, 0, 1], [0, 0, 0, 0]]),
    ("margin_ranking_loss", lambda x, y: F.margin_ranking_loss(x, y, tc.ones(3), margin=1.0, reduction='none'),
     [[1, 2, 3], [1, 1, 1]], [[-1, 0, 0], [1, 0, 0]]),
    ("cosine_embedding_loss", lambda x, y: F.cosine_embedding_loss(x, y, tc.tensor([1.0, -1.0]), reduction='none'),
     [[[0, 0], [0, 1]], [[1, 0], [1, 0]]], [[[-1000000.0019974014, 0], [0, 0]], [[0, 0], [0, 0]]]),
    ("cdist", lambda x, y: tc.cdist(x, y), [[[0, 0], [3, 4]], [[0, 0]]], [[[0, 0], [0.6, 0.8]], [[-0.6, -0.8]]]),
    ("pairwise_distance", lambda x, y: F.pairwise_distance(x, y, eps=0.0), [[[0, 0], [3, 4]], [[0, 0], [0, 0]]],
     [[[0, 0], [0.6, 0.8]], [[0, 0], [-0.6, -0.8]]]),
    ("scatter_reduce", lambda x, y: x.scatter_reduce(0, tc.tensor([0, 0, 1]), y, 'amax'), [[2, 0], [2, 2, 0]],
     [[0.333333333, 0.5], [0.333333333, 0.333333333, 0.5]]),
    ("logaddexp", tc.logaddexp, [[-INF, 0], [0, 0]], [[0, 0.5], [1, 0.5]]),
    ("amax", lambda x: tc.amax(x, 1), [[[1, 3, 3], [2, 2, 2]]],
     [[[0, 0.5, 0.5], [0.333333333, 0.333333333, 0.333333333]]]),
    ("amin", lambda x: tc.amin(x), [[[1, 3, 1], [2, 1, 2]]], [[[0.333333333, 0, 0.333333333], [0, 0.333333333, 0]]]),
    ("max of all", tc.max, [[[1, 3, 3], [2, 3, 2]]], [[[0, 0.333333333, 0.333333333], [0, 0.333333333, 0]]]),
    ("max of a dimension", lambda x: tc.max(x, 1)[0], [[[1, 3, 3], [2, 2, 2]]], [[[0, 1, 0], [1, 0, 0]]]),
    ("min of a dimension", lambda x: tc.min(x, 0)[0], [[[1, 3, 3], [1, 2, 4]]], [[[1, 0, 1], [0, 1, 0]]]),
    ("median of all", tc.median, [[[1, 3, 3], [2, 2, 5]]], [[[0, 0, 0], [0.5, 0.5, 0]]]),
    ("median", lambda x: tc.median(x, 1)[0], [[[1, 3, 2], [2, 5, 1]]], [[[0, 0, 1], [1, 0, 0]]]),
    ("aminmax", lambda x: tc.aminmax(x)[1], [[[1, 3, 3], [2, 2, 2]]], [[[0, 0.5, 0.5], [0, 0, 0]]]),
    ("cummax", lambda x: tc.cummax(x, 1)[0], [[[1, 3, 3], [2, 2, 1]]], [[[1, 1, 1], [1, 2, 0]]]),
    ("cummin", lambda x: tc.cummin(x, 1)[0], [[[3, 1, 1], [2, 2, 3]]], [[[1, 1, 1], [1, 2, 0]]]),
    ("sort", lambda x: tc.sort(x, dim=1, stable=True)[0] * tc.tensor([1.0, 2.0, 3.0]), [[[3, 1, 1], [2, 2, 2]]],
     [[[3, 1, 2], [1, 2, 3]]]),
    ("prod", lambda x: tc.prod(x, 1), [[[0, 2, 3], [0, 0, 3]]], [[[6, 0, 0], [0, 0, 0]]]),
    ("prod of all", tc.prod, [[[2, 0, 3], [1, 2, 3]]], [[[0, 36, 0], [0, 0, 0]]]),
    ("cumprod", lambda x: tc.cumprod(x, 1), [[[2, 0, 3], [0, 2, 0]]], [[[1, 8, 0], [3, 0, 0]]]),
    ("norm", lambda x: tc.linalg.vector_norm(x, dim=1), [[[0, 0], [3, 4]]], [[[0, 0], [0.6, 0.8]]]),
    ("norm of 1", lambda x: tc.linalg.vector_norm(x, 1, dim=1), [[[0, -2], [0, 0]]], [[[0, -1], [0, 0]]]),
    ("norm of infinity", lambda x: tc.linalg.vector_norm(x, math.inf, dim=1), [[[2, -2], [0, 0]]],
     [[[0.5, -0.5], [0, 0]]]),
    ("norm of -1", lambda x: tc.linalg.vector_norm(x, -1, dim=1), [[[0, 2], [2, 2]]], [[[0, 0], [0.25, 0.25]]]),
    ("norm of 3", lambda x: tc.linalg.vector_norm(x, 3, dim=1), [[[0, 0], [0, 2]]], [[[0, 0], [0, 1]]]),
    ("norm of a half", lambda x: tc.linalg.vector_norm(x, 0.5, dim=1), [[[0, 0], [0, 4]]], [[[0, 0], [0, 1]]]),
    ("std", lambda x: tc.std(x, 1), [[[1, 3], [2, 4]]], [[[-0.707106781, 0.707106781], [-0.707106781, 0.707106781]]]),
    ("normalize", lambda x: F.normalize(x, dim=1), [[[0, 0], [3, 4]]],
     [[[1000000000000, 1000000000000], [0.032, -0.024]]]),
    ("max_pool1d", lambda x: F.max_pool1d(x[None], 2), [[[1, 1, 2, 3], [0, 0, -1, -1]]],
     [[[1, 0, 0, 1], [1, 0, 1, 0]]]),
    ("lp_pool1d", lambda x: F.lp_pool1d(x[None], 2, 2), [[[3, 4, 0, 0]]], [[[0.6, 0.8, 0, 0]]]),
    ("multi_margin_loss", lambda x: F.multi_margin_loss(x, tc.tensor([0, 1]), reduction='sum'),
     [[[1, 0, 2], [1, 2, 1]]], [[[-0.333333333, 0, 0.333333333], [0, 0, 0]]]),
    ("logsumexp", lambda x: tc.logsumexp(x, 1), [[[-INF, 0], [0, 0]]], [[[0, 1], [0.5, 0.5]]]),
]


# Of the sum of the gradient, which a second one differentiates.
SECOND_ROWS = [
    ("elu", F.elu, [[-1, -0.0, 0, 1, NAN]], [[0.367879441, 0, 0, 0, 0]]),
    ("elu of alpha 2", lambda x: F.elu(x, 2.0), [[-1, 0, 1]], [[0.735758882, 0, 0]]),
    ("celu", F.celu, [[-1, -0.0, 0, 1, NAN]], [[0.367879441, 0, 0, 0, 0]]),
    ("celu of alpha 3", lambda x: F.celu(x, 3.0), [[-1, -0.0, 0, 1, NAN]], [[0.238843770, 0, 0, 0, 0]]),
    ("selu", F.selu, [[-1, -0.0, 0, 1, NAN]], [[0.646769, 0, 0, 0, 0]]),
]

# Where PyTorch 2.15 gives what no rule explains: docs/design/semantics.md.
OWN_ROWS = [
    ("amax of all with NaN", tc.amax, [[NAN, 1, 2]], [[1, 0, 0]]),
    ("amin of all with NaN", tc.amin, [[NAN, 1, NAN]], [[0.5, 0, 0.5]]),
    ("scatter_reduce without self", lambda x, y: x.scatter_reduce(0, tc.tensor([0, 0, 1]), y, 'amax', include_self=False),
     [[2, 0, 5], [2, 2, 1]], [[0, 0, 1], [0.5, 0.5, 1]]),
    ("index_reduce without self", lambda x, y: x.index_reduce(0, tc.tensor([0, 0, 1]), y, 'amin', include_self=False),
     [[2, 0, 5], [2, 2, 1]], [[0, 0, 1], [0.5, 0.5, 1]]),
    ("norm of infinity with NaN", lambda x: tc.linalg.vector_norm(x, INF), [[NAN, 1]], [[NAN, NAN]]),
    ("norm of -infinity with NaN", lambda x: tc.linalg.vector_norm(x, -INF), [[NAN, 1]], [[NAN, NAN]]),
    ("acosh", tc.acosh, [[-2, 0, 2]], [[NAN, NAN, 0.577350269]]),
    ("kthvalue of ties", lambda x: tc.kthvalue(x, 2)[0], [[2, 2, 2, 2]], [[0, 1, 0, 0]]),
    ("topk of ties", lambda x: tc.topk(x, 2)[0], [[2, 2, 2, 2]], [[1, 1, 0, 0]]),
    ("quantile of ties", lambda x: tc.quantile(x, 0.5), [[1, 1, 2, 2]], [[0, 0.5, 0.5, 0]]),
]
OWN_SECOND_ROWS = [
    ("prelu", lambda x, weight: F.prelu(x, weight), [[-1, 0, 1], [0.25]], [[0, 0, 0], [2]]),
    ("softplus at its threshold", lambda x: F.softplus(x, 1, 2), [[1, 2, 3]], [[0.196611933, 0.104993585, 0]]),
]


def flat(numbers):
    return sum((flat(n) for n in numbers), []) if isinstance(numbers, list) else [numbers]


@pytest.mark.parametrize("dtype", (tc.float64, tc.float32), ids=str)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_gradients(row, dtype):
    check(row, dtype)


@pytest.mark.parametrize("row", OWN_ROWS, ids=lambda row: row[0])
def test_gradients_of_our_own(row):
    check(row, tc.float64)


@pytest.mark.parametrize("row", SECOND_ROWS, ids=lambda row: row[0])
def test_second_gradients(row):
    check_second(row)


@pytest.mark.parametrize("row", OWN_SECOND_ROWS, ids=lambda row: row[0])
def test_second_gradients_of_our_own(row):
    check_second(row)


def check_second(row):
    _, function, operands, gradients = row
    leaves = [tc.tensor(values, dtype=tc.float64, requires_grad=True) for values in operands]
    slope = tc.autograd.grad(function(*leaves).sum(), leaves, create_graph=True)[0]
    for found, expected in zip(tc.autograd.grad(slope.sum(), leaves, allow_unused=True, materialize_grads=True), gradients):
        assert found.tolist() == pytest.approx(expected, rel=1e-6, abs=1e-8, nan_ok=True)


def check(row, dtype):
    _, function, operands, gradients = row
    leaves = [tc.tensor(values, dtype=dtype, requires_grad=True) for values in operands]
    result = function(*leaves)
    result.backward(tc.ones_like(result))
    for leaf, expected in zip(leaves, gradients):
        found = leaf.grad if leaf.grad is not None else tc.zeros_like(leaf)
        assert flat(found.tolist()) == pytest.approx(flat(expected), rel=2e-3 if dtype == tc.float32 else 1e-6,
                                                     abs=1e-8, nan_ok=True)


def test_second_gradients_stay_finite():
    for function in (F.softplus, F.logsigmoid, F.silu, lambda x: tc.logaddexp(x, tc.zeros_like(x)),
                     lambda x: F.binary_cross_entropy_with_logits(x, tc.ones_like(x), pos_weight=tc.tensor(2.0)),
                     lambda x: F.soft_margin_loss(x, tc.ones_like(x)), lambda x: F.huber_loss(x, tc.zeros_like(x)),
                     lambda x: F.smooth_l1_loss(x, tc.zeros_like(x))):
        x = tc.tensor([-1000.0, -100.0, 0.0, 100.0, 1000.0], requires_grad=True)
        slope, = tc.autograd.grad(function(x).sum(), x, create_graph=True)
        second, = tc.autograd.grad(slope.sum(), x)
        assert second.isfinite().all()
    x = tc.tensor([-3.0, -1.0, 0.0, 0.5, 1.0, 3.0], requires_grad=True)
    slope, = tc.autograd.grad(F.huber_loss(x, tc.zeros(6), reduction="sum"), x, create_graph=True)
    assert tc.autograd.grad(slope.sum(), x)[0].tolist() == [0, 0, 1, 1, 0, 0]
