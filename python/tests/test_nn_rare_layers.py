"""Rarely used layers: shuffles, random slopes and windows, Gumbel noise, adaptive softmax."""

import math
import warnings

import numpy as np
import pytest

import tercel as tc
from tercel import nn
from tercel.nn import functional as F


def refused(error, sentence, call, *args, **kwargs):
    with pytest.raises(error) as info:
        call(*args, **kwargs)
    assert sentence in str(info.value)


def test_rrelu():
    tc.manual_seed(0)
    x = tc.randn(1000, requires_grad=True)
    y = F.rrelu(x, 0.2, 0.6, training=True)
    slopes = (y / x).detach()
    below = (x < 0).detach()
    assert (slopes[~below] == 1).all()
    assert 0.2 <= slopes[below].min() and slopes[below].max() <= 0.6 and slopes[below].std() > 0.1
    assert abs(slopes[below].mean().item() - 0.4) < 0.02
    y.sum().backward()
    assert tc.allclose(x.grad, slopes)
    assert tc.equal(F.rrelu(x, 0.2, 0.6), F.leaky_relu(x, 0.4)) and tc.equal(tc.rrelu(x), F.leaky_relu(x, 11 / 48))
    again = [tc.rrelu(x, training=True, generator=tc.Generator().manual_seed(3)) for _ in range(2)]
    assert tc.equal(*again)


def test_rrelu_in_place():
    x = tc.tensor([-1.0, 2.0])
    assert F.rrelu(x, 0.5, 0.5, inplace=True) is x and x.tolist() == [-0.5, 2]
    assert tc.rrelu_(x, 0.5, 0.5, True) is x and x.tolist() == [-0.25, 2]
    assert F.rrelu_(x, 0.5, 0.5) is x and x.tolist() == [-0.125, 2]
    layer = nn.RReLU(0.5, 0.5, inplace=True)
    assert layer(x) is x and x.tolist() == [-0.0625, 2]
    assert repr(layer) == "RReLU(lower=0.5, upper=0.5, inplace=True)"
    assert repr(nn.RReLU()) == "RReLU(lower=0.125, upper=0.3333333333333333)"
    assert tc.equal(nn.RReLU().eval()(x), F.rrelu(x))
    refused(RuntimeError, "Lower bound should be less than or equal to the upper bound", F.rrelu, x, 0.5, 0.2)
    refused(RuntimeError, "rrelu: upper bound must be finite, got inf", tc.rrelu, x, 0.1, math.inf)


def test_channel_shuffle():
    x = tc.arange(12.0).view(1, 6, 2)
    assert F.channel_shuffle(x, 2)[0, :, 0].tolist() == [0, 6, 2, 8, 4, 10]
    assert nn.ChannelShuffle(3)(x)[0, :, 0].tolist() == [0, 4, 8, 2, 6, 10]
    assert tc.equal(tc.native_channel_shuffle(x, 1), x) and tc.equal(tc.channel_shuffle(x, groups=6), x)
    y = tc.rand(2, 6, 3, 2, requires_grad=True)
    z = F.channel_shuffle(y, 3)
    assert tc.equal(F.channel_shuffle(z, 2), y)
    z[:, 1].sum().backward()
    assert y.grad[:, 2].sum() == 12 and y.grad.sum() == 12
    assert repr(nn.ChannelShuffle(3)) == "ChannelShuffle(groups=3)"
    refused(RuntimeError, "channel_shuffle expects input with > 2 dims, but got input with sizes [4, 4]",
            F.channel_shuffle, tc.zeros(4, 4), 2)
    refused(RuntimeError, "must be positive. Value of groups:0", F.channel_shuffle, x, 0)
    refused(RuntimeError, "Got 6 channels and 4 groups.", F.channel_shuffle, x, 4)


def test_gumbel_softmax():
    tc.manual_seed(0)
    logits = tc.tensor([math.log(0.7), math.log(0.2), math.log(0.1)])
    draws = F.gumbel_softmax(logits.expand(20000, 3), hard=True)
    assert ((draws - 1).abs() < 1e-6).sum() == 20000 and (draws.sum(1) - 1).abs().max() < 1e-6
    assert (draws.mean(0) - tc.tensor([0.7, 0.2, 0.1])).abs().max() < 0.015
    soft = F.gumbel_softmax(logits.expand(1000, 3), tau=0.5)
    assert (soft.sum(1) - 1).abs().max() < 1e-5 and 0 < soft.min() and soft.max(1).values.min() < 0.9
    assert F.gumbel_softmax(tc.zeros(3, 4), dim=0).sum(0).allclose(tc.ones(4))
    # The hard one has the soft one's gradient.
    gradients = []
    for hard in (False, True):
        tc.manual_seed(1)
        x = tc.zeros(5, 3, requires_grad=True)
        (F.gumbel_softmax(x, 2.0, hard) * tc.arange(3.0)).sum().backward()
        gradients.append(x.grad)
    assert tc.allclose(*gradients) and gradients[0].abs().max() > 0.01
    with pytest.warns(UserWarning, match="`eps` parameter is deprecated"):
        F.gumbel_softmax(logits, eps=1e-8)


def test_upsampling_by_old_names():
    x = tc.rand(1, 2, 3, 4)
    with pytest.warns(UserWarning, match="`nn.functional.upsample_nearest` is deprecated"):
        assert tc.equal(F.upsample_nearest(x, scale_factor=2), F.interpolate(x, scale_factor=2))
    with pytest.warns(UserWarning, match="`nn.functional.upsample_bilinear` is deprecated"):
        near = F.upsample_bilinear(x, (5, 6))
    assert tc.equal(near, F.interpolate(x, (5, 6), mode="bilinear", align_corners=True))
    with pytest.warns(UserWarning, match="`nn.functional.upsample` is deprecated"):
        assert tc.equal(F.upsample(x, 7, mode="bilinear", align_corners=True),
                        F.interpolate(x, 7, mode="bilinear", align_corners=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tc.equal(nn.UpsamplingNearest2d(scale_factor=2)(x), F.interpolate(x, scale_factor=2))
        assert tc.equal(nn.UpsamplingBilinear2d((5, 6))(x), near)
    assert repr(nn.UpsamplingNearest2d(scale_factor=2)) == "UpsamplingNearest2d(scale_factor=2.0, mode='nearest')"
    assert repr(nn.UpsamplingBilinear2d(3)) == "UpsamplingBilinear2d(size=3, mode='bilinear')"
    assert nn.Upsample(scale_factor=(2, 3)).scale_factor == (2.0, 3.0)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_adaptive_pooling_with_indices(dims):
    x = tc.rand(2, 3, *[5] * dims)
    both = getattr(F, f"adaptive_max_pool{dims}d_with_indices")(x, 2)
    values, at = getattr(F, f"adaptive_max_pool{dims}d")(x, 2, return_indices=True)
    assert tc.equal(both[0], values) and tc.equal(both[1], at)
    assert tc.equal(x.flatten(2).gather(2, at.flatten(2)), values.flatten(2))


def test_conv_tbc():
    tc.manual_seed(0)
    x, w, b = tc.randn(5, 2, 3), tc.randn(2, 3, 4), tc.randn(4)
    expected = tc.stack([x[t] @ w[0] + x[t + 1] @ w[1] + b for t in range(4)])
    assert tc.allclose(F.conv_tbc(x, w, b), expected, atol=1e-5)
    padded = tc.cat([tc.zeros(1, 2, 3), x, tc.zeros(1, 2, 3)])
    assert tc.allclose(tc.conv_tbc(x, w, b, pad=1), F.conv_tbc(padded, w, b), atol=1e-5)
    refused(RuntimeError, "Input must have 3 dims: time, batch, in_channel", F.conv_tbc, x[0], w, b)
    refused(RuntimeError, "Weight tensor must have 3 dims", F.conv_tbc, x, w[0], b)
    refused(RuntimeError, "Bias must be 1-D", F.conv_tbc, x, w, w)
    refused(RuntimeError, "Input dim 2 (input channels) is not == dim 1", F.conv_tbc, x[:, :, :2], w, b)
    refused(RuntimeError, "Bias size must equal dim 2 in the weight tensor", F.conv_tbc, x, w, b[:3])


def places(u, size, out, window):
    """Graham's sequence of window starts, as PyTorch rounds it."""
    step = (size - window) / (out - 1) if out > 1 else 0
    return [int((i + u) * step) - int(u * step) for i in range(out - 1)] + [size - window]


@pytest.mark.parametrize("batch", [True, False])
def test_fractional_max_pool2d(batch):
    generator = np.random.RandomState(0)
    x, u = generator.rand(2, 3, 7, 9), generator.rand(2, 3, 2)
    inner = x if batch else x[0]
    values, at = F.fractional_max_pool2d(tc.tensor(inner), (2, 3), (3, 4), return_indices=True,
                                         _random_samples=tc.tensor(u))
    assert values.shape == (*inner.shape[:-2], 3, 4)
    values, at = values.reshape(-1, 3, 3, 4), at.reshape(-1, 3, 3, 4)
    for n, c in np.ndindex(2 if batch else 1, 3):
        across, down = places(u[n, c, 0], 9, 4, 3), places(u[n, c, 1], 7, 3, 2)
        for i, j in np.ndindex(3, 4):
            window = x[n, c, down[i]:down[i] + 2, across[j]:across[j] + 3]
            assert values[n, c, i, j].item() == window.max()
            assert x[n, c].flat[at[n, c, i, j].item()] == window.max()


def test_fractional_max_pool3d():
    generator = np.random.RandomState(1)
    x, u = generator.rand(1, 2, 5, 6, 7), generator.rand(1, 2, 3)
    y, at = F.fractional_max_pool3d_with_indices(tc.tensor(x), 2, (2, 3, 4), _random_samples=tc.tensor(u))
    for c in range(2):
        starts = [places(u[0, c, d], x.shape[2 + d], out, 2) for d, out in enumerate((2, 3, 4))]
        for place in np.ndindex(2, 3, 4):
            window = x[(0, c, *(slice(s[i], s[i] + 2) for s, i in zip(starts, place)))]
            assert y[(0, c, *place)].item() == window.max()
            assert x[0, c].flat[at[(0, c, *place)].item()] == window.max()


def test_fractional_pooling_layers():
    tc.manual_seed(0)
    x = tc.rand(2, 3, 8, 8, requires_grad=True)
    layer = nn.FractionalMaxPool2d(2, output_ratio=0.5, return_indices=True)
    y, at = layer(x)
    assert y.shape == (2, 3, 4, 4)
    y.sum().backward()
    assert tc.equal(x.grad.flatten(2), tc.zeros(2, 3, 64).scatter_add_(2, at.flatten(2), tc.ones(2, 3, 16)))
    assert nn.FractionalMaxPool3d((1, 2, 2), output_size=(2, 3, 3))(tc.rand(1, 2, 4, 6, 6)).shape == (1, 2, 2, 3, 3)
    fixed = nn.FractionalMaxPool2d(2, 5, _random_samples=tc.rand(2, 3, 2))
    assert tc.equal(fixed(x), fixed(x)) and "_random_samples" in fixed.state_dict()
    assert not tc.equal(nn.FractionalMaxPool2d(2, 5)(x), nn.FractionalMaxPool2d(2, 5)(x))
    assert repr(layer) == "FractionalMaxPool2d()" and layer.kernel_size == (2, 2)
    assert F.fractional_max_pool2d(tc.rand(0, 3, 4, 4), 2, 2).shape == (0, 3, 2, 2)


def test_what_fractional_pooling_refuses():
    x = tc.rand(2, 3, 4, 4)
    pool = F.fractional_max_pool2d
    refused(ValueError, "fractional_max_pool2d requires specifying either an output_size or an output_ratio", pool, x, 2)
    refused(RuntimeError, "fractional_max_pool2d(): pool height 2 too large relative to input height 4", pool, x, 2, 9)
    refused(RuntimeError, "pool width 4 too large", pool, x, (1, 4), 2)
    refused(RuntimeError, "kernel size should be greater than zero, but got 0x0", pool, x, 0, 1)
    refused(RuntimeError, "Expected 3D or 4D tensor", pool, tc.rand(1, 1, 1, 4, 4), 2, 2)
    refused(RuntimeError, "with dimension 1 being empty.", pool, tc.rand(2, 0, 4, 4), 2, 2)
    refused(RuntimeError, "Expect _random_samples to have the same dtype as input", pool, x, 2, 2,
            _random_samples=tc.rand(2, 3, 2).double())
    refused(RuntimeError, "Expect _random_samples.size(1) equals to input channel size.", pool, x, 2, 2,
            _random_samples=tc.rand(2, 4, 2))
    refused(RuntimeError, "Expect _random_samples.size(2) equals to 2; got 3.", pool, x, 2, 2,
            _random_samples=tc.rand(2, 3, 3))
    refused(RuntimeError, "pool time 2 too large", F.fractional_max_pool3d, tc.rand(1, 1, 3, 9, 9), 2, 3)
    for layer in (nn.FractionalMaxPool2d, nn.FractionalMaxPool3d):
        refused(ValueError, f"{layer.__name__} requires specifying either an output size, or a pooling ratio", layer, 2)
        refused(ValueError, "only one of output_size and output_ratio may be specified", layer, 2, 2, 0.5)
        refused(ValueError, "output_ratio must be between 0 and 1 (got 2)", layer, 2, output_ratio=2)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_cross_map_lrn(size):
    x = tc.rand(2, 7, 3, 2, dtype=tc.float64) + 0.5
    y = nn.CrossMapLRN2d(size, alpha=0.3, beta=0.5, k=2)(x)
    reach = (size - 1) // 2
    for c in range(7):
        seen = {0, *range(c - reach, c + reach + 1)} if c > reach else range(c + reach + 1)
        total = sum(x[:, i]**2 for i in seen if i < 7)
        assert tc.allclose(y[:, c], x[:, c] / (2 + 0.3 / size * total).sqrt())
    layer = nn.CrossMapLRN2d(size)
    assert repr(layer) == f"CrossMapLRN2d({size}, alpha=0.0001, beta=0.75, k=1)"
    assert tc.autograd.gradcheck(nn.CrossMapLRN2d(size, 0.3), (x[:1, :, :1].clone().requires_grad_(),))
    refused(ValueError, "Expected input to be 4D, got 3D", layer, x[0])


def clusters(head_bias=False):
    tc.manual_seed(0)
    return nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 10, 15], div_value=2.0, head_bias=head_bias)


@pytest.mark.parametrize("head_bias", [False, True])
def test_adaptive_softmax(head_bias):
    layer = clusters(head_bias)
    with tc.no_grad():  # decided enough that some rows are of rare classes
        for p in layer.parameters():
            p *= 5
    x = tc.randn(30, 16, requires_grad=True)
    target = tc.arange(30) % 20
    logs = layer.log_prob(x)
    assert logs.shape == (30, 20) and tc.allclose(logs.exp().sum(1), tc.ones(30), atol=1e-5)
    # A rare class: its cluster's share by the head, times its share of the cluster.
    head = layer.head(x).softmax(1)
    assert tc.allclose(logs[:, :5].exp(), head[:, :5], atol=1e-6)
    assert tc.allclose(logs[:, 10:15].exp(), head[:, 6:7] * layer.tail[1](x).softmax(1), atol=1e-6)
    result = layer(x, target)
    assert tc.allclose(result.output, logs.gather(1, target.unsqueeze(1)).squeeze(1), atol=1e-5)
    assert tc.allclose(result.loss, -result.output.mean())
    result.loss.backward()
    gradient, x.grad = x.grad, None
    F.nll_loss(layer.log_prob(x), target).backward()
    assert tc.allclose(x.grad, gradient, atol=1e-5)
    assert tc.equal(layer.predict(x), logs.argmax(1)) and (layer.predict(x) >= 5).any()
    one = layer(x[7], target[7])
    assert one.output.dim() == 0 and tc.allclose(one.output, result.output[7], atol=1e-5)


def test_adaptive_softmax_predicts_frequent_classes():
    layer = clusters(head_bias=True)
    with tc.no_grad():
        layer.head.bias[:5] += 100
    x = tc.randn(8, 16)
    assert tc.equal(layer.predict(x), layer.log_prob(x).argmax(1)) and (layer.predict(x) < 5).all()


def test_parts_of_adaptive_softmax():
    layer = clusters(head_bias=True)
    sizes = {name: tuple(value.shape) for name, value in layer.state_dict().items()}
    assert sizes == {"head.weight": (8, 16), "head.bias": (8,), "tail.0.0.weight": (8, 16), "tail.0.1.weight": (5, 8),
                     "tail.1.0.weight": (4, 16), "tail.1.1.weight": (5, 4), "tail.2.0.weight": (2, 16),
                     "tail.2.1.weight": (5, 2)}
    assert layer.cutoffs == [5, 10, 15, 20] and layer.n_clusters == 3 and layer.head_size == 8
    before = layer.tail[1][0].weight.clone()
    layer.reset_parameters()
    assert not tc.equal(before, layer.tail[1][0].weight)
    make = nn.AdaptiveLogSoftmaxWithLoss
    refused(ValueError, "cutoffs should be a sequence of length larger than 0", make, 8, 20, [])
    for cutoffs in ([5, 5], [10, 5], [0, 5], [5, 20], [2.5]):
        refused(ValueError, "cutoffs should be a sequence of unique, positive integers", make, 8, 20, cutoffs)
    target = tc.zeros(2, dtype=tc.int64)
    refused(RuntimeError, "same size in the batch dimension", layer, tc.zeros(3, 16), target)
    refused(RuntimeError, "1D target tensor expects 2D input tensors, but found inputs with size", layer,
            tc.zeros(2, 1, 16), target)
    refused(RuntimeError, "0D target tensor expects 1D input tensors", layer, tc.zeros(2, 16), target[0])
    refused(RuntimeError, "multi-target not supported", layer, tc.zeros(2, 16), target.view(1, 2))
    refused(RuntimeError, "Target values should be in [0, 19], but values in range [1, 20] were found.", layer,
            tc.zeros(2, 16), tc.tensor([1, 20]))


@pytest.mark.parametrize("layer, sizes", [(nn.LayerNorm(4), (3, 0, 4)), (nn.RMSNorm(4), (0, 4)),
                                          (nn.GroupNorm(2, 4), (0, 4, 3)),
                                          (nn.TransformerEncoderLayer(4, 2, 8, 0.0), (5, 0, 4)),
                                          (nn.TransformerEncoderLayer(4, 2, 8, 0.0, dtype=tc.bfloat16), (0, 2, 4))])
def test_gradients_of_no_elements_are_zeros(layer, sizes):
    x = tc.zeros(sizes, dtype=next(layer.parameters()).dtype, requires_grad=True)
    y = layer(x)
    assert y.shape == x.shape and y.dtype is x.dtype
    y.sum().backward()
    assert x.grad.shape == x.shape
    for name, p in layer.named_parameters():
        assert p.grad is not None and p.grad.abs().sum() == 0, name
