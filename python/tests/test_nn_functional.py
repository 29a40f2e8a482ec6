"""Layers and losses as functions, against NumPy's arithmetic."""

import warnings

import numpy as np
import pytest

import tercel as tc
from tercel.nn import functional as F

rng = np.random.default_rng(7)


def says(error, sentence, call):
    with pytest.raises(error) as info:
        call()
    assert sentence in str(info.value)


def numbers(*shape):
    return rng.standard_normal(shape)


def close(got, expected, tolerance=1e-10):
    np.testing.assert_allclose(got.detach().numpy(), expected, rtol=tolerance, atol=tolerance)


def log_softmax(x, axis):
    x = x - x.max(axis, keepdims=True)
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


def normalized(x, axes, eps=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def test_norms():
    x, w, b = numbers(2, 6, 5), numbers(5), numbers(5)
    t = tc.from_numpy(x)
    close(F.layer_norm(t, (5,), tc.from_numpy(w), tc.from_numpy(b)), normalized(x, -1) * w + b)
    close(F.layer_norm(t, [6, 5], eps=0.1), normalized(x, (1, 2), 0.1))
    close(F.rms_norm(t, (5,), tc.from_numpy(w), 1e-3), x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-3) * w)
    close(F.group_norm(t, 3), normalized(x.reshape(2, 3, 10), -1).reshape(x.shape))
    close(F.instance_norm(t), normalized(x, -1))
    close(F.batch_norm(t, None, None, training=True), normalized(x, (0, 2)))
    close(F.normalize(t, dim=1), x / np.sqrt((x * x).sum(1, keepdims=True)))
    says(RuntimeError, "Given normalized_shape=[4]", lambda: F.layer_norm(t, (4,)))
    says(ValueError, "Expected more than 1 value per channel when training",
         lambda: F.batch_norm(tc.ones(1, 3), None, None, training=True))


def test_classification_losses():
    x, y, w = numbers(6, 4), np.array([0, 3, 1, 1, 2, 0]), rng.random(4)
    t, target, weight = tc.from_numpy(x), tc.from_numpy(y), tc.from_numpy(w)
    rows = -log_softmax(x, 1)[np.arange(6), y]
    close(F.cross_entropy(t, target), rows.mean())
    close(F.cross_entropy(t, target, reduction="none"), rows)
    close(F.cross_entropy(t, target, weight, reduction="mean"), (rows * w[y]).sum() / w[y].sum())
    kept = y != 1
    close(F.cross_entropy(t, target, ignore_index=1), rows[kept].mean())
    smooth = 0.9 * rows + 0.1 * -log_softmax(x, 1).mean(1)
    close(F.cross_entropy(t, target, label_smoothing=0.1), smooth.mean())
    share = rng.dirichlet(np.ones(4), 6)
    close(F.cross_entropy(t, tc.from_numpy(share)), -(share * log_softmax(x, 1)).sum(1).mean())
    close(F.nll_loss(F.log_softmax(t, dim=1), target), rows.mean())
    close(F.kl_div(F.log_softmax(t, 1), tc.from_numpy(share), reduction="batchmean"),
          (share * (np.log(share) - log_softmax(x, 1))).sum() / 6)
    says(IndexError, "Target 9 is out of bounds.", lambda: F.cross_entropy(t, tc.full((6,), 9)))
    says(ValueError, "is not a valid value for reduction", lambda: F.cross_entropy(t, target, reduction="average"))


def test_losses_of_numbers():
    x, y = numbers(3, 4), numbers(3, 4)
    a, b = tc.from_numpy(x), tc.from_numpy(y)
    d = x - y
    close(F.mse_loss(a, b), (d * d).mean())
    close(F.l1_loss(a, b, reduction="sum"), np.abs(d).sum())
    close(F.smooth_l1_loss(a, b, beta=0.5), np.where(abs(d) < 0.5, d * d, abs(d) - 0.25).mean())
    close(F.huber_loss(a, b, delta=0.5), np.where(abs(d) < 0.5, d * d / 2, 0.5 * (abs(d) - 0.25)).mean())
    close(F.poisson_nll_loss(a, b), (np.exp(x) - y * x).mean())
    var = rng.random((3, 4)) + 0.1
    close(F.gaussian_nll_loss(a, b, tc.from_numpy(var)), (0.5 * (np.log(var) + d * d / var)).mean())
    p = 1 / (1 + np.exp(-x))
    z = rng.integers(0, 2, (3, 4)).astype(float)
    bce = -(z * np.log(p) + (1 - z) * np.log(1 - p))
    close(F.binary_cross_entropy_with_logits(a, tc.from_numpy(z)), bce.mean())
    close(F.binary_cross_entropy(tc.from_numpy(p), tc.from_numpy(z)), bce.mean())
    heavy = -(3 * z * np.log(p) + (1 - z) * np.log(1 - p))
    close(F.binary_cross_entropy_with_logits(a, tc.from_numpy(z), pos_weight=tc.tensor(3.0, dtype=tc.float64)),
          heavy.mean())


def test_the_older_arguments_of_losses():
    a, b = tc.tensor([1.0, 2.0]), tc.tensor([0.0, 0.0])
    assert F.mse_loss(a, b, size_average=False).item() == 5
    assert F.mse_loss(a, b, reduce=False).tolist() == [1, 4]
    assert F.mse_loss(a, b, True, True, "sum").item() == 2.5


def test_losses_of_pairs():
    x, y, z = numbers(5, 3), numbers(5, 3), numbers(5, 3)
    a, b, c = map(tc.from_numpy, (x, y, z))
    sign = np.array([1, -1, 1, -1, 1.0])
    cos = (x * y).sum(1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
    close(F.cosine_similarity(a, b), cos)
    close(F.cosine_embedding_loss(a, b, tc.from_numpy(sign), margin=0.1),
          np.where(sign > 0, 1 - cos, np.maximum(0, cos - 0.1)).mean())
    close(F.margin_ranking_loss(a[:, 0], b[:, 0], tc.from_numpy(sign), margin=0.5),
          np.maximum(0, -sign * (x[:, 0] - y[:, 0]) + 0.5).mean())
    close(F.hinge_embedding_loss(a[:, 0], tc.from_numpy(sign)),
          np.where(sign > 0, x[:, 0], np.maximum(0, 1 - x[:, 0])).mean())
    near, far = (np.linalg.norm(x - other + 1e-6, axis=1) for other in (y, z))
    close(F.pairwise_distance(a, b), near)
    close(F.triplet_margin_loss(a, b, c, margin=1.5), np.maximum(0, near - far + 1.5).mean())
    close(tc.cdist(a, b), np.linalg.norm(x[:, None] - y[None], axis=2), 1e-7)


def test_convolution_with_padding_by_name():
    x, w = numbers(1, 2, 5, 5), numbers(3, 2, 3, 3)
    t, k = tc.from_numpy(x), tc.from_numpy(w)
    same = F.conv2d(t, k, padding="same")
    close(same, F.conv2d(t, k, padding=1).numpy())
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    direct = np.array([[[(padded[0, :, i:i + 3, j:j + 3] * w[o]).sum() for j in range(5)] for i in range(5)]
                       for o in range(3)])
    close(same[0], direct)
    assert F.conv2d(t, k, padding="valid").shape == (1, 3, 3, 3)
    says(RuntimeError, "Invalid padding string: 'full'", lambda: F.conv2d(t, k, padding="full"))


def test_patches():
    x = numbers(2, 3, 4, 5)
    columns = F.unfold(tc.from_numpy(x), 2)
    assert columns.shape == (2, 12, 12)
    close(columns[1, :, 0], x[1, :, :2, :2].reshape(-1))
    times = F.fold(F.unfold(tc.ones(1, 1, 4, 5), (2, 2)), (4, 5), (2, 2))
    assert times[0, 0, 0].tolist() == [1, 2, 2, 2, 1]


def test_pooling():
    x = numbers(1, 1, 4, 4)
    t = tc.from_numpy(x)
    blocks = x.reshape(2, 2, 2, 2).swapaxes(1, 2).reshape(2, 2, 4)
    close(F.max_pool2d(t, 2)[0, 0], blocks.max(-1))
    close(F.avg_pool2d(t, 2, stride=None)[0, 0], blocks.mean(-1))
    close(F.adaptive_avg_pool2d(t, (2, None)), x.reshape(1, 1, 2, 2, 4).mean(3))
    values, indices = F.max_pool2d(t, 2, return_indices=True)
    close(values, x.reshape(-1)[indices.numpy()])
    close(F.adaptive_max_pool2d(t, 1), x.max((2, 3), keepdims=True))


def test_images_of_another_size():
    x = tc.arange(4.0).view(1, 1, 2, 2)
    assert F.interpolate(x, scale_factor=2)[0, 0].tolist() == [[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3], [2, 2, 3, 3]]
    assert F.interpolate(x, size=(2, 3), mode="bilinear", align_corners=True)[0, 0, 0].tolist() == [0, 0.5, 1]
    assert F.pixel_shuffle(tc.arange(4.0).view(1, 4, 1, 1), 2)[0, 0].tolist() == [[0, 1], [2, 3]]
    says(ValueError, "either size or scale_factor should be defined", lambda: F.interpolate(x))
    says(ValueError, "only one of size or scale_factor should be defined", lambda: F.interpolate(x, 2, 2.0))


def test_attention():
    q, k, v = numbers(2, 3, 4), numbers(2, 5, 4), numbers(2, 5, 6)
    scores = q @ k.swapaxes(1, 2) / 2
    got = F.scaled_dot_product_attention(*map(tc.from_numpy, (q, k, v)))
    close(got, np.exp(log_softmax(scores, -1)) @ v)
    allowed = np.tril(np.ones((3, 5), bool))
    close(F.scaled_dot_product_attention(*map(tc.from_numpy, (q, k, v)), is_causal=True),
          np.exp(log_softmax(np.where(allowed, scores, -np.inf), -1)) @ v)


def test_activations():
    x = numbers(4, 6)
    t = tc.from_numpy(x)
    for function, expected in [
            (F.relu, np.maximum(x, 0)), (F.leaky_relu, np.where(x > 0, x, 0.01 * x)), (F.relu6, np.clip(x, 0, 6)),
            (F.hardtanh, np.clip(x, -1, 1)), (F.silu, x / (1 + np.exp(-x))), (F.softplus, np.log1p(np.exp(x))),
            (F.logsigmoid, -np.log1p(np.exp(-x))), (F.tanhshrink, x - np.tanh(x)),
            (F.elu, np.where(x > 0, x, np.expm1(x))), (F.softsign, x / (1 + abs(x))),
            (F.selu, 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))),
            (lambda v: F.celu(v, 2.0), np.where(x > 0, x, 2 * np.expm1(x / 2))),
            (F.mish, x * np.tanh(np.log1p(np.exp(x)))), (F.hardsigmoid, np.clip(x / 6 + 0.5, 0, 1)),
            (F.hardswish, x * np.clip(x / 6 + 0.5, 0, 1)), (F.hardshrink, np.where(abs(x) <= 0.5, 0, x)),
            (F.softshrink, np.sign(x) * np.maximum(abs(x) - 0.5, 0)),
            (lambda v: F.threshold(v, 0.1, 7.0), np.where(x > 0.1, x, 7)),
            (F.glu, x[:, :3] / (1 + np.exp(-x[:, 3:])))]:
        close(function(t), expected)
    close(F.gelu(t, approximate="tanh"), 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))
    close(F.softmin(t, dim=1), np.exp(log_softmax(-x, 1)))
    close(F.prelu(t, tc.full((6,), 0.5, dtype=tc.float64)), np.where(x > 0, x, 0.5 * x))
    y = t.clone()
    assert F.relu(y, inplace=True) is y and y.min().item() == 0
    says(TypeError, "missing 1 required argument: 'dim'", lambda: F.softmax(t))


def test_elu_has_a_gradient_far_from_zero():
    x = tc.tensor([1000.0, -1000.0, 0.5], requires_grad=True)
    F.elu(x).sum().backward()
    assert x.grad.tolist() == [1, 0, 1]


def test_dropout():
    x = tc.ones(1000)
    tc.manual_seed(3)
    kept = F.dropout(x, 0.25)
    assert set(kept.tolist()) == {0.0, tc.tensor(1 / 0.75).item()} and 650 < (kept > 0).sum().item() < 850
    assert F.dropout(x, 0.25, training=False).tolist() == x.tolist()
    says(ValueError, "dropout probability has to be between 0 and 1, but got 1.5", lambda: F.dropout(x, 1.5))


def test_dropout_of_channels():
    x = tc.ones(4, 50, 3, 3)
    kept = F.dropout2d(x, 0.5)
    assert set(kept.tolist()[0][0][0]) <= {0.0, 2.0} and kept.amax((2, 3)).tolist() == kept.amin((2, 3)).tolist()
    assert 60 < (kept[:, :, 0, 0] > 0).sum().item() < 140 and F.dropout2d(x, 0.5, training=False) is x
    says(RuntimeError, "dropout1d: Expected 2D or 3D input, but received a 4D input", lambda: F.dropout1d(x))
    with pytest.warns(UserWarning, match="Received a 1-D input"):
        says(RuntimeError, "Feature dropout requires at least 2 dimensions in the input", lambda: F.dropout2d(tc.ones(2)))


def test_dropout_of_channels_of_other_dimensions():
    def groups(function, *size):
        """The shape of the random draws: size 1 where all elements are equal."""
        with pytest.warns(UserWarning, match=f"{function.__name__}: Received a {len(size)}-?D input"):
            kept = function(tc.ones(*size), 0.5)
        assert kept.shape == size and set(kept.flatten().tolist()) == {0.0, 2.0}
        return [size[d] if (kept != kept.narrow(d, 0, 1)).any() else 1 for d in range(len(size))]

    tc.manual_seed(1)
    assert groups(F.dropout2d, 20, 30) == [20, 30]
    assert groups(F.dropout2d, 20, 30, 4) == [20, 30, 1]
    assert groups(F.dropout2d, 6, 7, 2, 3, 4) == [6, 7, 1, 1, 1]
    assert groups(F.dropout3d, 50) == [50]
    assert groups(F.dropout3d, 20, 30) == [20, 1]
    assert groups(F.dropout3d, 20, 3, 4) == [20, 1, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert F.dropout3d(tc.ones(20, 2, 3, 4), 0.5).amax((1, 2, 3)).unique().tolist() == [0, 2]
        x = tc.ones(4, 50, 3, 3)
        assert tc.nn.Dropout2d(0.5, inplace=True)(x) is x and x.unique().tolist() == [0, 2]
    with pytest.warns(UserWarning, match="please use dropout instead"):
        assert tc.nn.Dropout3d()(tc.ones(2, 3, 4)).shape == (2, 3, 4)


def test_one_hot_and_bilinear():
    assert F.one_hot(tc.tensor([1, 0]), 3).tolist() == [[0, 1, 0], [1, 0, 0]]
    a, b, w = numbers(4, 2), numbers(4, 3), numbers(5, 2, 3)
    close(F.bilinear(*map(tc.from_numpy, (a, b, w))), np.einsum("ni,oij,nj->no", a, w, b))


def test_rms_norm_with_a_weight_of_another_dtype():
    x, w = tc.tensor([1.0, 2], requires_grad=True), tc.tensor([1.1, 3], dtype=tc.bfloat16, requires_grad=True)
    (F.rms_norm(x, (2,), w) * tc.tensor([1, 5.0])).sum().backward()
    assert w.dtype is w.grad.dtype is tc.bfloat16 and w.grad.tolist() == [0.6328125, 6.3125]
    close(x.grad, [-3.2374, 1.6187], 1e-4)
    assert F.rms_norm(x.bfloat16(), (2,), w.double()).dtype is tc.bfloat16 and F.rms_norm(x.double(), (2,), w).dtype is tc.float64


def test_triplets_by_any_distance():
    a, b, c = (tc.from_numpy(numbers(4, 3)) for _ in range(3))
    assert F.triplet_margin_with_distance_loss(a, b, c, swap=True).item() == pytest.approx(
        F.triplet_margin_loss(a, b, c, swap=True).item())
    own = tc.nn.TripletMarginWithDistanceLoss(distance_function=lambda u, v: (u - v).abs().amax(1), reduction="sum")
    near, far = (np.abs((a - other).numpy()).max(1) for other in (b, c))
    close(own(a, b, c), np.maximum(near - far + 1, 0).sum())


def test_losses_warn_of_broadcasting():
    x, y = tc.rand(1, 4), tc.ones(3, 4)
    for loss in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss):
        with pytest.warns(UserWarning, match="Using a target size .* different to the input size"):
            got = loss(x, y)
        assert got.item() == pytest.approx(loss(x.expand(3, 4), y).item())


def test_pooling_by_norms_and_back():
    x = tc.arange(8.0).view(1, 1, 8)
    close(F.lp_pool1d(x, 2, 3), [[[5**0.5, 50**0.5]]], 1e-6)
    close(tc.nn.LPPool1d(2, 3, stride=2, ceil_mode=True)(x), [[[2.2361, 5.3852, 8.7750, 11.2916]]], 1e-4)
    close(F.lp_pool2d(x.view(1, 1, 2, 4), 2, 2), [[[[42**0.5, 98**0.5]]]], 1e-6)
    values, indices = F.max_pool1d(x, 2, return_indices=True)
    assert F.max_unpool1d(values, indices, 2).tolist() == [[[0, 1, 0, 3, 0, 5, 0, 7]]]
    assert F.max_unpool1d(values, indices, 2, output_size=(1, 1, 9)).shape == (1, 1, 9)
    image = tc.rand(2, 3, 4, 6, requires_grad=True)
    values, indices = F.max_pool2d(image, 2, return_indices=True)
    back = tc.nn.MaxUnpool2d(2)(values, indices)
    assert back.shape == image.shape and F.max_pool2d(back, 2).tolist() == values.tolist()
    back.sum().backward()
    assert image.grad.sum().item() == values.numel()
    says(ValueError, 'invalid output_size "[10]" (dim 0 must be between 6 and 10)',
         lambda: F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2, output_size=(10,)))
    says(RuntimeError, "Found an invalid max index: 12 (output volumes are of size 8",
         lambda: F.max_unpool1d(x[..., :4], tc.tensor([[[1, 3, 5, 12]]]), 2))
    says(RuntimeError, "elements in indices should be type int64",
         lambda: F.max_unpool1d(values, indices.int(), 2))


def test_dropout_that_keeps_mean_and_variance():
    tc.manual_seed(2)
    x = tc.randn(20000)
    for p in (0.2, 0.6):
        y = F.alpha_dropout(x, p, training=True)
        assert abs(y.mean().item()) < 0.05 and abs(y.std().item() - 1) < 0.05 and (y == y.mode()[0]).sum().item() > 2000
    assert F.alpha_dropout(x, 0.2) is x and F.alpha_dropout(x, 1.0, training=True).abs().sum().item() == 0
    channels = F.feature_alpha_dropout(tc.zeros(50, 4, 3), 0.5, training=True)
    assert channels.amax(2).tolist() == channels.amin(2).tolist() and len(set(channels.flatten().tolist())) == 2
    assert tc.nn.AlphaDropout(0.3).eval()(x) is x and tc.nn.FeatureAlphaDropout().eval()(x) is x
    says(ValueError, "dropout probability has to be between 0 and 1", lambda: F.alpha_dropout(x, 2.0))


def test_softmax_of_channels():
    x = tc.rand(3, 2, 2)
    assert tc.nn.Softmax2d()(x).tolist() == F.softmax(x, 0).tolist()
    says(ValueError, "Softmax2d: expected input to be 3D or 4D, got 2D instead", lambda: tc.nn.Softmax2d()(x[0]))


def test_sequences_without_places():
    # The values are PyTorch's.
    x = tc.arange(60.0, dtype=tc.float64).sin().view(5, 2, 6)
    logs = F.log_softmax(x, 2).detach().requires_grad_()
    targets = tc.tensor([[1, 2, 2], [3, 0, 0]])
    for options, expected in [({"reduction": "none"}, [7.7419, 4.4743]), ({}, 3.5275), ({"reduction": "sum"}, 12.2162)]:
        close(F.ctc_loss(logs, targets, (5, 4), (3, 1), **options), expected, 1e-4)
    close(F.ctc_loss(logs, tc.tensor([1, 2, 2, 3]), tc.tensor([5, 4]), tc.tensor([3, 1])), 3.5275, 1e-4)
    F.ctc_loss(logs, targets, (5, 4), (3, 1)).backward()
    close(logs.grad[0, 0], [0.0091, -0.1049, 0.0530, 0.0246, 0.0100, 0.0082], 1e-4)
    assert logs.grad[4, 1].tolist() == [0] * 6  # past the end of the second
    short = F.ctc_loss(logs, targets, (2, 4), (3, 1), reduction="none")
    assert short[0].item() == float("inf") and tc.nn.CTCLoss(zero_infinity=True, reduction="none")(
        logs, targets, (2, 4), (3, 1))[0].item() == 0
    close(F.ctc_loss(logs[:, 0], targets[0], tc.tensor(5), tc.tensor(3)), 2.5806, 1e-4)
    says(RuntimeError, "input_lengths must be integral",
         lambda: F.ctc_loss(logs, targets, tc.tensor([5.0, 4.0]), tc.tensor([3, 1])))
    says(NotImplementedError, "not implemented for", lambda: F.ctc_loss(logs.detach().long(), targets, (5, 4), (3, 1)))


def test_losses_of_several_labels():
    x, y = tc.tensor([[0.1, 0.2, 0.4, 0.8]]), tc.tensor([[3, 0, -1, 1]])
    assert F.multilabel_margin_loss(x, y).item() == pytest.approx(0.85)
    assert tc.nn.MultiLabelMarginLoss(reduction="none")(x[0], y[0]).item() == pytest.approx(0.85)
    soft = tc.nn.MultiLabelSoftMarginLoss(tc.tensor([1, 2, 3, 4.0]), reduction="none")
    assert F.multilabel_soft_margin_loss(x, (y > 0).float()).item() == pytest.approx(0.6817, abs=1e-4)
    assert soft(x, (y > 0).float()).tolist() == pytest.approx([1.6160], abs=1e-4)
    says(RuntimeError, "inconsistent target size: [1, 2] for input of size: [1, 4]",
         lambda: F.multilabel_margin_loss(x, y[:, :2]))
    says(RuntimeError, "argument #2 'target' is out of range", lambda: F.multilabel_margin_loss(x, y + 3))


def test_images_at_any_positions():
    x = tc.arange(4.0).view(1, 1, 2, 2)
    same = F.affine_grid(tc.tensor([[[1.0, 0, 0], [0, 1, 0]]]), (1, 1, 2, 2))
    assert same.tolist() == [[[[-0.5, -0.5], [0.5, -0.5]], [[-0.5, 0.5], [0.5, 0.5]]]]
    assert F.grid_sample(x, same).tolist() == x.tolist()
    far = tc.tensor([[[[0.0, 0.0], [2.0, 0.0]]]])
    assert F.grid_sample(x, far).tolist() == [[[[1.5, 0]]]]
    assert F.grid_sample(x, far, padding_mode="border").tolist() == [[[[1.5, 2]]]]
    assert F.grid_sample(x, far, "nearest", "reflection", True).shape == (1, 1, 1, 2)
    says(ValueError, "expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: 'cubic'",
         lambda: F.grid_sample(x, far, "cubic"))
    says(ValueError, "expected padding_mode to be 'zeros', 'border', or 'reflection', but got: 'wrap'",
         lambda: F.grid_sample(x, far, padding_mode="wrap"))


@pytest.mark.parametrize("rows", [1, 2, 5, 64, 1000])
@pytest.mark.parametrize("columns", [1, 2, 17])
def test_gradients_of_a_layer_of_one_output(rows, columns):
    for _ in range(3):
        x = tc.rand(rows, columns)
        w, b = tc.ones(1, columns, requires_grad=True), tc.zeros(1, requires_grad=True)
        (F.linear(x, w, b) * tc.arange(rows).unsqueeze(1)).sum().backward()
        n = np.arange(rows)
        assert b.grad.item() == n.sum()
        np.testing.assert_allclose(w.grad.numpy(), (n @ x.numpy())[None], rtol=1e-4)


@pytest.mark.parametrize("dtype", [tc.float16, tc.bfloat16, tc.int64, tc.uint8, tc.complex64, tc.complex128])
def test_linear_of_any_dtype(dtype):
    x, w, b = (tc.randint(0, 4, s).to(dtype) for s in ((2, 3, 5), (4, 5), (4,)))
    if dtype.is_complex:
        x, w = x * (1 + 2j), w * (1 - 1j)
    want = x.to(tc.complex128).numpy() @ w.to(tc.complex128).numpy().T
    got = F.linear(x, w, b)
    assert got.dtype is dtype
    np.testing.assert_allclose(got.to(tc.complex128).numpy(), want + b.to(tc.complex128).numpy())
    np.testing.assert_allclose(F.linear(x[0], w).to(tc.complex128).numpy(), want[0])


def test_linear_with_one_row_of_weights():
    x, w = tc.randn(2, 3, 5, dtype=tc.float64), tc.randn(5, dtype=tc.float64)
    close(F.linear(x, w), x.numpy() @ w.numpy())
    close(F.linear(x, w, tc.tensor(2.0, dtype=tc.float64)), x.numpy() @ w.numpy() + 2)
    says(RuntimeError, "expected input [..., in] and weight [out, in] or [in]", lambda: F.linear(x, tc.ones(1, 2, 5)))


def of_complex(op, x, w):
    """The op on complex numbers from the op on their parts."""
    a, b = op(x.real, w.real) - op(x.imag, w.imag), op(x.real, w.imag) + op(x.imag, w.real)
    return tc.complex(a, b)


@pytest.mark.parametrize("name, x, w", [("conv1d", (2, 4, 7), (6, 2, 3)), ("conv2d", (2, 4, 5, 6), (6, 2, 3, 2)),
                                        ("conv3d", (1, 2, 4, 4, 3), (4, 1, 2, 3, 2)),
                                        ("conv_transpose1d", (2, 4, 7), (4, 3, 3)),
                                        ("conv_transpose2d", (2, 4, 5, 6), (4, 3, 3, 2))])
def test_convolutions_of_complex_numbers(name, x, w):
    conv = getattr(F, name)
    x, w = (tc.randn(s, dtype=tc.complex128, requires_grad=True) for s in (x, w))
    want = of_complex(lambda x, w: conv(x, w, stride=2, padding=1, groups=2), x, w)
    b = tc.randn(want.shape[1], dtype=tc.complex128)
    got = conv(x, w, b, stride=2, padding=1, groups=2)
    close(got.detach(), (want + b.view(-1, *[1] * (want.dim() - 2))).detach().numpy())
    assert tc.autograd.gradcheck(lambda x, w: conv(x, w, b, stride=2, padding=1, groups=2), (x, w))


@pytest.mark.parametrize("dtype", [tc.float16, tc.bfloat16, tc.bool, tc.complex64])
def test_patches_of_any_dtype(dtype):
    x = tc.randint(0, 2, (2, 3, 5, 4)).to(dtype)
    patches = F.unfold(x, 2, padding=1)
    assert patches.dtype is dtype
    whole = tc.float32 if not dtype.is_complex else tc.complex64
    assert tc.equal(patches.to(whole), F.unfold(x.real if dtype.is_complex else x.to(whole), 2, padding=1).to(whole))
    if dtype is not tc.bool:
        assert tc.equal(F.fold(patches, (5, 4), 2, padding=1), x * 4)
    says(NotImplementedError, "\"im2col\" not implemented for", lambda: F.unfold(tc.ones(1, 1, 2, 2, dtype=tc.int64), 1))


def test_interpolate_pixels():
    x = tc.randint(0, 256, (1, 3, 4, 5), dtype=tc.uint8)
    near = F.interpolate(x, scale_factor=2)
    assert near.dtype is tc.uint8 and tc.equal(near[..., ::2, 1::2], x)
    smooth = F.interpolate(x, size=(7, 9), mode="bilinear", align_corners=False)
    assert (smooth.float() - F.interpolate(x.float(), size=(7, 9), mode="bilinear")).abs().max().item() <= 1  # rounded twice
    steps = tc.tensor([[[[0, 0, 255, 255]]]], dtype=tc.uint8)
    assert set(F.interpolate(steps, size=(1, 16), mode="bicubic").unique().tolist()) >= {0, 255}


def test_circular_padding_of_what_is_left():
    x = tc.arange(5.0).view(1, 1, 5)
    assert F.pad(x, (-1, 2), "circular").tolist() == [[[1, 2, 3, 4, 1, 2]]]
    assert F.pad(x, (2, -2), "circular").tolist() == [[[1, 2, 0, 1, 2]]]
    assert F.pad(x, (-2, -1), "circular").tolist() == [[[2, 3]]]
    says(RuntimeError, "wrapping around more than once", lambda: F.pad(x, (-3, 3), "circular"))


def test_average_pooling_by_position():
    x = tc.arange(16.0).view(1, 1, 4, 4)
    assert F.avg_pool2d(x, 2, 2, 0, False, True, 1).tolist() == (F.avg_pool2d(x, 2) * 4).tolist()
    says(TypeError, "avg_pool1d() takes", lambda: F.avg_pool1d(x[0], 2, 2, 0, False, True, 1))


def test_dropout_of_complex_numbers():
    x = tc.full((4000,), 1 + 1j)
    kept = F.dropout(x, 0.25)
    assert tc.allclose(kept[kept != 0], x[kept != 0] / 0.75)
    assert 2850 < (kept != 0).sum().item() < 3150


def test_attention_of_grouped_heads():
    q, k, v = tc.randn(2, 6, 3, 4), tc.randn(2, 2, 5, 4), tc.randn(2, 3, 5, 4)
    want = F.scaled_dot_product_attention(q, k.repeat_interleave(3, 1), v.repeat_interleave(2, 1))
    close(F.scaled_dot_product_attention(q, k, v, enable_gqa=True), want.numpy())
    says(RuntimeError, "Number of heads in key (4) must divide the number of heads in query (6)",
         lambda: F.scaled_dot_product_attention(q, tc.randn(2, 4, 5, 4), v, enable_gqa=True))


def test_losses_and_layers_say_what_is_wrong():
    x, target = tc.ones(5, 4), tc.zeros(5, dtype=tc.int64)
    says(ValueError, "only p == 1 and p == 2 supported", lambda: F.multi_margin_loss(x, target, p=3))
    says(ValueError, "weight must be one-dimensional", lambda: F.multi_margin_loss(x, target, weight=tc.tensor(1.0)))
    says(RuntimeError, "expected scalar type Long but found Float", lambda: F.multi_margin_loss(x, target.float()))
    says(RuntimeError, "Expected non-empty vector or matrix with optional 0-dim batch size, but got: [5, 0]",
         lambda: F.multi_margin_loss(x[:, :0], target))
    says(RuntimeError, "the same number of dimensions, but got: anchor 1D, positive 2D, and negative 2D inputs",
         lambda: F.triplet_margin_loss(x[0], x, x))
    says(ValueError, "abc is not a valid value for reduction", lambda: F.poisson_nll_loss(x, x, reduction="abc"))
    says(ValueError, "abc is not a valid value for reduction", lambda: F.mse_loss(x, x, reduction="abc"))
    says(RuntimeError, "Not allow zero-dim input tensor.", lambda: F.prelu(tc.tensor(1.0), tc.ones(2)))
    says(RuntimeError, "a scalar or 1D tensor, but got ndim = 2", lambda: F.prelu(x, tc.ones(2, 4)))
    says(RuntimeError, "'weight' must be 2-D", lambda: F.embedding(target, tc.ones(3)))
    says(ValueError, "Input dimension should be at least 3", lambda: F.adaptive_avg_pool2d(x, [2, 2]))
    says(RuntimeError, "strides should be greater than zero",
         lambda: F.max_unpool1d(x, target.expand(4, 5).t(), 2, stride=0))


def test_grid_sampler_by_numbers():
    x, grid = tc.rand(1, 2, 4, 5), tc.rand(1, 3, 3, 2) * 2 - 1
    for m, mode in enumerate(("bilinear", "nearest", "bicubic")):
        for p, padding in enumerate(("zeros", "border", "reflection")):
            want = F.grid_sample(x, grid, mode, padding, True)
            assert tc.equal(tc.grid_sampler(x, grid, m, p, True), want)
            assert tc.equal(tc.grid_sampler_2d(x, grid, m, p, True), want)
    says(RuntimeError, "grid_sampler_3d(): expected 5D input", lambda: tc.grid_sampler_3d(x, grid, 0, 0, True))


def test_multilabel_margin_of_one_number():
    assert F.multilabel_margin_loss(tc.tensor(2.0), tc.tensor([0])).item() == 0
    says(RuntimeError, "inconsistent target size", lambda: F.multilabel_margin_loss(tc.ones(2), tc.tensor([0])))


def test_config_is_text():
    assert tc.__version__ in tc.__config__.show() and str(tc.get_num_threads()) in tc.__config__.parallel_info()


def test_sizes_that_are_too_large_or_too_small():
    for layer in (tc.nn.AdaptiveMaxPool1d, tc.nn.AdaptiveAvgPool1d):
        with pytest.raises(RuntimeError, match="overflow"):
            layer(0x3fffffffffffffff)(tc.empty(2, 2, 2))
    for x in (tc.ones(1, 3), tc.ones(1, 3, 1, 1)):
        says(ValueError, "Expected more than 1 value per channel when training", lambda: F.group_norm(x, 3))
    assert F.group_norm(tc.ones(2, 3), 3).shape == (2, 3)


def test_batch_norm_of_nothing():
    norm = tc.nn.BatchNorm2d(3)
    x = tc.zeros(0, 3, 2, 2, requires_grad=True)
    out = norm(x)
    out.sum().backward()
    assert out.shape == x.grad.shape == x.shape
    assert norm.weight.grad.tolist() == norm.bias.grad.tolist() == norm.running_mean.tolist() == [0, 0, 0]
    assert norm.running_var.tolist() == [1, 1, 1]
    (g,) = tc.autograd.grad(norm(x).sum(), norm.weight, create_graph=True)
    assert g.tolist() == [0, 0, 0]


def test_smaller_images_without_aliasing():
    x = tc.arange(24.0).view(1, 1, 4, 6)
    out = F.interpolate(x, (2, 3), mode="bilinear", antialias=True)
    assert tc.allclose(out.flatten(), tc.tensor([35, 47.5, 60, 101, 113.5, 126]) / 7)
    assert tc.allclose(F.interpolate(tc.ones(1, 2, 9, 7), (3, 8), mode="bicubic", antialias=True), tc.ones(1, 2, 3, 8))
    stripes = tc.tensor([0.0, 255.0]).repeat(8).expand(1, 1, 16, 16)
    assert F.interpolate(stripes, (16, 4), mode="bilinear").std().item() < 1e-3
    for mode in ("bilinear", "bicubic"):
        assert (F.interpolate(stripes, (16, 5), mode=mode, antialias=True)[..., 1:-1] - 127.5).abs().max() < 35
        assert tc.autograd.gradcheck(lambda x: F.interpolate(x, (2, 4), mode=mode, antialias=True),
                                     tc.rand(1, 1, 5, 3, dtype=tc.float64, requires_grad=True))
    pixels = F.interpolate(x.to(tc.uint8), (2, 5), mode="bicubic", antialias=True)
    assert (pixels.flatten().int() - tc.tensor([4, 5, 7, 8, 9, 14, 15, 17, 18, 19])).abs().max() <= 1
    for options in (dict(mode="nearest"), dict(mode="area")):
        says(ValueError, "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor",
             lambda: F.interpolate(x, (2, 3), antialias=True, **options))


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_gradients_of_convolutions_as_functions(dims):
    convolve = getattr(F, f"conv{dims}d")
    x = tc.randn(2, 4, *[6] * dims, dtype=tc.float64, requires_grad=True)
    weight = tc.randn(6, 2, *[3] * dims, dtype=tc.float64, requires_grad=True)
    options = dict(stride=2, padding=1, dilation=1, groups=2)
    out = convolve(x, weight, **options)
    seed = tc.randn_like(out).detach()
    by_x, by_weight = tc.autograd.grad(out, (x, weight), seed)
    grad = tc.nn.grad
    assert tc.allclose(getattr(grad, f"conv{dims}d_input")(x.shape, weight, seed, **options), by_x)
    assert tc.allclose(getattr(grad, f"conv{dims}d_weight")(x, weight.shape, seed, **options), by_weight)


@pytest.mark.parametrize("dtype", [tc.int64, tc.int32, tc.uint8])
def test_convolutions_of_integers(dtype):
    for convolve, x, weight, options in [
            (F.conv1d, (2, 4, 9), (3, 4, 3), dict(stride=2, padding=1)),
            (F.conv2d, (1, 4, 6, 5), (4, 2, 2, 3), dict(groups=2, dilation=2)),
            (F.conv3d, (1, 2, 4, 4, 4), (3, 2, 2, 2, 2), {}),
            (F.conv_transpose2d, (1, 4, 3, 3), (4, 1, 2, 2), dict(stride=2, groups=2))]:
        x, weight = tc.randint(0, 11, x), tc.randint(0, 11, weight)
        bias = tc.arange(weight.shape[1] * 2 if "groups" in options and "transpose" in convolve.__name__
                         else weight.shape[0])
        want = convolve(x.double(), weight.double(), bias.double(), **options).long().to(dtype)
        assert tc.equal(convolve(x.to(dtype), weight.to(dtype), bias.to(dtype), **options), want)


def test_convolutions_of_large_integers_are_exact():
    x = tc.tensor([[[2**62 + 1, -(2**61) - 3, 7, 2**40 - 1, -2**63, 2**63 - 1]]])
    weight = tc.tensor([[[3, -(2**35) - 1]]])
    row, taps = x.flatten().tolist(), weight.flatten().tolist()
    want = [(a * taps[0] + b * taps[1] + 2**63) % 2**64 - 2**63 for a, b in zip(row, row[1:])]
    assert F.conv1d(x, weight).flatten().tolist() == want, "and wrap around like sums of integers"
    with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
        F.conv1d(x.bool(), weight.bool())


def test_gradient_of_weighted_logits_at_zero():
    x = tc.zeros(3, dtype=tc.float64, requires_grad=True)
    target = tc.tensor([0.0, 1.0, 0.5], dtype=tc.float64)
    F.binary_cross_entropy_with_logits(x, target, pos_weight=tc.tensor(3.0, dtype=tc.float64), reduction="sum").backward()
    assert x.grad.tolist() == [0.5, -1.5, -0.5], "sigmoid(0) is a half, where |x| has no derivative"
    far = tc.tensor([-800.0, 800.0])
    losses = F.binary_cross_entropy_with_logits(far, tc.tensor([1.0, 0.0]), pos_weight=tc.tensor(2.0), reduction="none")
    assert losses.tolist() == [1600, 800]


def test_similarity_of_two_dtypes():
    whole, x = tc.tensor([3, 4], dtype=tc.int8), tc.tensor([4.0, 3.0])
    assert F.cosine_similarity(whole, x, dim=0).item() == pytest.approx(24 / 25)
    with pytest.raises(RuntimeError, match="expected common dtype to be floating point, yet common dtype is int8"):
        F.cosine_similarity(whole, whole, dim=0)
    with pytest.raises(RuntimeError, match="1D target tensor expects 2D input tensors, but found inputs with sizes"):
        F.cosine_embedding_loss(x, x, tc.ones(2))


def test_embedding_bag_with_the_older_order_of_arguments():
    weight, places = tc.arange(6.0).view(3, 2), tc.tensor([0, 2])
    with pytest.warns(UserWarning, match="Argument order of nn.functional.embedding_bag was changed"):
        bags = F.embedding_bag(weight, places, tc.tensor([0]), mode="sum")
    assert bags.tolist() == [[4, 6]] and F.grad.conv1d_input is tc.nn.grad.conv1d_input
