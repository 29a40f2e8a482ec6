"""Utilities for modules: computed weights, fusion with batch norms, skipped initialization, old names."""

import copy
import pickle
import warnings

import pytest

import tercel as tc
from tercel import nn
from tercel.nn import utils


def refused(error, sentence, call, *args, **kwargs):
    with pytest.raises(error) as info:
        call(*args, **kwargs)
    assert sentence in str(info.value)


@pytest.mark.parametrize("dim", [0, 1, -1, None])
def test_weight_norm(dim):
    tc.manual_seed(0)
    layer = nn.Conv2d(3, 4, 2, dtype=tc.float64)
    before = layer.weight.detach().clone()
    x = tc.rand(2, 3, 5, 5, dtype=tc.float64)
    expected = layer(x)
    assert utils.weight_norm(layer, dim=dim) is layer
    assert list(layer.state_dict()) == ["bias", "weight_g", "weight_v"]
    assert layer.weight_g.shape == {0: (4, 1, 1, 1), 1: (1, 3, 1, 1)}.get(dim, ())
    assert tc.allclose(layer(x), expected, atol=1e-5) and "weight" not in dict(layer.named_parameters())
    with tc.no_grad():
        layer.weight_g *= 2
        layer.weight_v *= 3  # no matter
    assert tc.allclose(layer(x) - layer.bias.view(-1, 1, 1), 2 * (expected - layer.bias.view(-1, 1, 1)), atol=1e-5)
    layer(x).sum().backward()
    assert layer.weight_g.grad.abs().sum() > 0
    # A change of length of v changes nothing: the gradient is across.
    axes = [d for d in range(4) if d != dim] if dim in (0, 1) else [0, 1, 2, 3]
    assert (layer.weight_v.grad * layer.weight_v).sum(axes).abs().max() < 1e-10
    assert layer.weight_v.grad.abs().max() > 1e-3
    utils.remove_weight_norm(layer)
    assert list(layer.state_dict()) == ["bias", "weight"] and isinstance(layer.weight, nn.Parameter)
    assert tc.allclose(layer.weight, 2 * before) and not layer._forward_pre_hooks


def test_weight_norm_of_recurrent_layers_and_training():
    tc.manual_seed(1)
    lstm = nn.LSTM(3, 4)
    x = tc.rand(5, 2, 3)
    expected = lstm(x)[0]
    utils.weight_norm(utils.weight_norm(lstm, "weight_hh_l0"), "weight_ih_l0")
    assert tc.allclose(lstm(x)[0], expected, atol=1e-6)
    optimizer = tc.optim.SGD(lstm.parameters(), 0.5)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = (lstm(x)[0] - 1).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    refused(RuntimeError, "Cannot register two weight_norm hooks on the same parameter weight_hh_l0", utils.weight_norm,
            lstm, "weight_hh_l0")
    refused(ValueError, "weight_norm of 'weight' not found in LSTM(3, 4)", utils.remove_weight_norm, lstm)
    refused(AttributeError, "'Linear' object has no attribute 'other'", utils.weight_norm, nn.Linear(2, 2), "other")
    refused(ValueError, "can't have uninitialized parameters", utils.weight_norm, nn.LazyLinear(2))


def largest(weight, dim=0):
    return tc.linalg.matrix_norm(weight.movedim(dim, 0).reshape(weight.size(dim), -1), 2)


@pytest.mark.parametrize("make, dim", [(lambda: nn.Linear(5, 7), 0), (lambda: nn.Conv2d(2, 3, 2), 0),
                                       (lambda: nn.ConvTranspose1d(4, 3, 2), 1)])
def test_spectral_norm(make, dim):
    tc.manual_seed(2)
    layer = make()
    before = layer.weight.detach().clone()
    utils.spectral_norm(layer, n_power_iterations=100)
    assert list(layer.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]
    assert layer.state_dict()._metadata[""]["spectral_norm"] == {"weight.version": 1}
    assert layer.weight_u.shape == (before.size(dim),)
    x = tc.rand(2, before.size(0 if dim else 1), *[5] * (before.dim() - 2))
    layer(x)
    assert abs(largest(layer.weight, dim).item() - 1) < 1e-3
    assert tc.allclose(layer.weight, before / largest(before, dim), atol=1e-4)
    # In eval mode the vectors do not change.
    u = layer.weight_u.clone()
    with tc.no_grad():
        layer.weight_orig += 0.5
    layer.eval()(x)
    assert tc.equal(u, layer.weight_u)
    kept = layer.weight.detach().clone()
    layer.train()(x)
    assert not tc.equal(u, layer.weight_u)
    layer.eval()
    utils.remove_spectral_norm(layer)
    assert list(layer.state_dict()) == ["bias", "weight"] and not layer._forward_pre_hooks
    assert not hasattr(layer, "weight_u") and layer.weight.shape == kept.shape and layer.weight.requires_grad


def test_gradients_of_spectral_norm():
    tc.manual_seed(3)
    layer = utils.spectral_norm(nn.Linear(3, 4, dtype=tc.float64)).eval()
    u, v = layer.weight_u, layer.weight_v
    assert tc.allclose(u.norm(), tc.ones((), dtype=tc.float64)) and tc.allclose(v.norm(), u.norm())
    x = tc.rand(2, 3, dtype=tc.float64)
    layer(x).square().sum().backward()
    weight = layer.weight_orig.detach().requires_grad_()
    (x @ (weight / (u @ weight @ v)).T + layer.bias).square().sum().backward()
    assert tc.allclose(weight.grad, layer.weight_orig.grad)
    # Two calls in training, then backward through both.
    layer.train()
    (layer(x).sum() + layer(x).sum()).backward()


@pytest.mark.parametrize("norm", [utils.spectral_norm, utils.weight_norm])
def test_states_and_copies_of_computed_weights(norm):
    tc.manual_seed(4)
    layer, other = (norm(nn.Linear(3, 4)).eval() for _ in range(2))
    x = tc.rand(2, 3)
    other.load_state_dict(layer.state_dict())
    assert tc.allclose(other(x), layer(x))
    with tc.no_grad():
        layer(x)
        for again in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
            assert list(again.state_dict()) == list(layer.state_dict())
            again.bias += 1
            assert tc.allclose(again(x), layer(x) + 1)
            (utils.remove_spectral_norm if norm is utils.spectral_norm else utils.remove_weight_norm)(again)
            assert tc.allclose(again(x), layer(x) + 1) and "weight" in again.state_dict()
        assert "weight" not in layer.state_dict()


def test_what_spectral_norm_refuses():
    layer = utils.spectral_norm(nn.Linear(3, 4))
    refused(RuntimeError, "Cannot register two spectral_norm hooks on the same parameter weight", utils.spectral_norm,
            layer)
    refused(ValueError, "Expected n_power_iterations to be positive, but got n_power_iterations=0", utils.spectral_norm,
            nn.Linear(2, 3), n_power_iterations=0)
    refused(ValueError, "spectral_norm of 'bias' not found in Linear(", utils.remove_spectral_norm, layer, "bias")
    refused(ValueError, "`SpectralNorm` cannot be applied as parameter `bias` is None", utils.spectral_norm,
            nn.Linear(2, 3, bias=False), "bias")
    refused(ValueError, "can't have uninitialized parameters", utils.spectral_norm, nn.LazyLinear(2))


def seen(norm, x):
    """The norm in eval mode, with statistics and an affine part that are not the first ones."""
    norm(x)
    if norm.affine:
        nn.init.uniform_(norm.weight, 0.5, 2)
        nn.init.uniform_(norm.bias)
    return norm.eval()


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_fusion(affine, bias):
    tc.manual_seed(5)
    x = tc.rand(4, 3, 6, 6)
    for layer, transpose in ((nn.Conv2d(3, 5, 3, padding=1, bias=bias), False),
                             (nn.ConvTranspose2d(3, 5, 2, bias=bias), True)):
        norm = seen(nn.BatchNorm2d(5, affine=affine), layer(x))
        refused(AssertionError, "Fusion only for eval!", utils.fuse_conv_bn_eval, layer, norm, transpose)
        layer.eval()
        fused = utils.fuse_conv_bn_eval(layer, norm, transpose)
        assert tc.allclose(fused(x), norm(layer(x)), atol=1e-5) and type(fused) is type(layer)
        assert isinstance(fused.bias, nn.Parameter) and fused is not layer and (layer.bias is not None) == bias
    layer = nn.Linear(6, 5, bias=bias).eval()
    y = tc.rand(8, 6)
    norm = seen(nn.BatchNorm1d(5, affine=affine), layer(y))
    assert tc.allclose(utils.fuse_linear_bn_eval(layer, norm)(y), norm(layer(y)), atol=1e-5)
    refused(AssertionError, "got linear.out_features=5 and bn.num_features=4", utils.fuse_linear_bn_eval, layer,
            nn.BatchNorm1d(4).eval())
    refused(AssertionError, "Fusion only for eval!", utils.fuse_linear_bn_eval, layer.train(), norm)
    refused(AssertionError, "must not be None", utils.fuse_linear_bn_eval, layer.eval(),
            nn.BatchNorm1d(5, track_running_stats=False).eval())


def test_skip_init():
    tc.manual_seed(6)
    state = tc.get_rng_state()
    layer = utils.skip_init(nn.Linear, 3, 4, bias=False, dtype=tc.float64)
    assert tc.equal(state, tc.get_rng_state())
    assert type(layer) is nn.Linear and layer.weight.shape == (4, 3) and layer.weight.dtype is tc.float64
    layer.reset_parameters()
    assert not tc.equal(state, tc.get_rng_state()) and layer.weight.abs().max() <= 1
    refused(RuntimeError, "Module must support a 'device' arg to skip initialization", utils.skip_init, nn.ReLU)
    refused(RuntimeError, "Expected a Module; got <class 'dict'>", utils.skip_init, dict)


def test_clipping_by_a_known_norm():
    a, b = (nn.Parameter(tc.zeros(2)) for _ in range(2))
    a.grad = tc.tensor([3.0, 4.0])
    utils.clip_grads_with_norm_([a, b], 1.0, tc.tensor(10.0))
    assert tc.allclose(a.grad, tc.tensor([0.3, 0.4])) and b.grad is None
    utils.clip_grads_with_norm_(a, 1.0, utils.get_total_norm([a.grad]))
    assert tc.allclose(a.grad, tc.tensor([0.3, 0.4]))
    with pytest.warns(FutureWarning, match="clip_grad_norm` is now deprecated in favor of"):
        assert abs(utils.clip_grad_norm([a, b], 0.1).item() - 0.5) < 1e-6
    assert abs(a.grad.norm().item() - 0.1) < 1e-5


def test_memory_formats_of_weights():
    net = nn.Sequential(nn.Conv2d(3, 4, 2), nn.ConvTranspose3d(2, 3, 2), nn.Linear(2, 2))
    weight = net[0].weight.detach().clone()
    assert utils.convert_conv2d_weight_memory_format(net, tc.channels_last) is net
    assert net[0].weight.is_contiguous(memory_format=tc.channels_last) and tc.equal(net[0].weight, weight)
    assert net[1].weight.is_contiguous()
    utils.convert_conv3d_weight_memory_format(net, tc.channels_last_3d)
    assert net[1].weight.is_contiguous(memory_format=tc.channels_last_3d) and net[1].weight.requires_grad


OLD = {"uniform": (-1, 2), "normal": (1.0, 0.5), "constant": (3,), "eye": (), "dirac": (), "xavier_uniform": (2,),
       "xavier_normal": (2,), "kaiming_uniform": (1,), "kaiming_normal": (1,), "orthogonal": (), "sparse": (0.5,)}


@pytest.mark.parametrize("name", OLD)
def test_old_names_of_first_values(name):
    x = tc.zeros(4, 3, 3) if name == "dirac" else tc.zeros(4, 3)
    tc.manual_seed(7)
    with pytest.warns(FutureWarning, match=f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`."):
        assert getattr(nn.init, name)(x, *OLD[name]) is x
    tc.manual_seed(7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = getattr(nn.init, f"{name}_")(tc.zeros_like(x), *OLD[name])
    assert tc.equal(x, y) and x.abs().sum() > 0


def test_functional_call():
    call = utils.stateless.functional_call
    net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 3))
    net.eval()
    x = tc.rand(4, 3)
    own = net[0].weight
    weight = tc.rand(3, 3, requires_grad=True)
    y = call(net, {"0.weight": weight, "1.running_mean": tc.ones(3)}, x)
    with tc.no_grad():
        expected = net[2]((x @ weight.T + net[0].bias - 1) / (1 + 1e-5) ** 0.5)
    assert tc.allclose(y, expected, atol=1e-5)
    y.sum().backward()
    assert weight.grad is not None and own.grad is None
    assert net[0].weight is own and net[1].running_mean.tolist() == [0] * 3
    refused(AttributeError, "no parameter or buffer named '0.other'", call, net, {"0.other": weight}, (x,))
    refused(TypeError, "expected a tensor for '0.weight', but got int", call, net, {"0.weight": 1}, (x,))
    refused(RuntimeError, "Missing key(s): ['0.bias'", call, net, {"0.weight": weight}, (x,), strict=True)
    assert tc.equal(call(net, dict(net.state_dict()), (), {"input": x}, strict=True), net(x))
    # The module is as before after an error too.
    refused(RuntimeError, "", call, net, {"0.weight": tc.rand(3, 7)}, x)
    assert net[0].weight is own


def test_functional_call_of_tied_weights():
    call = utils.stateless.functional_call
    net = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))
    net[1].weight = net[0].weight
    x, weight = tc.rand(2, 3), tc.rand(3, 3)
    assert tc.allclose(call(net, {"0.weight": weight}, x), x @ weight.T @ weight.T)
    assert tc.allclose(call(net, {"0.weight": weight}, x, tie_weights=False), x @ weight.T @ net[1].weight.T)
    assert tc.allclose(call(net, {"1.weight": weight}, x, strict=True), x @ weight.T @ weight.T)
    refused(ValueError, "'0.weight' and '1.weight' are tied, but were given different values", call, net,
            {"0.weight": weight, "1.weight": weight + 1}, x)
    assert net[0].weight is net[1].weight
