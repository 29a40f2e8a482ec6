"""Modules: contents, printing, saving and loading, and calls of their hooks."""

import copy
import math
import pickle

import numpy as np
import pytest

import tercel as tc
from tercel import nn


def says(error, sentence, call):
    with pytest.raises(error) as info:
        call()
    assert sentence in str(info.value.args[0])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.body = nn.Sequential(nn.ReLU(), nn.Linear(4, 2, bias=False))
        self.scale = nn.Parameter(tc.ones(2))
        self.register_buffer("seen", tc.tensor(0))
        self.register_buffer("scratch", tc.zeros(1), persistent=False)

    def forward(self, x):
        self.seen += 1
        return self.body(self.first(x)) * self.scale


def test_what_a_module_holds():
    net = Net()
    assert [n for n, _ in net.named_parameters()] == ["scale", "first.weight", "first.bias", "body.1.weight"]
    assert [n for n, _ in net.named_buffers()] == ["seen", "scratch"]
    assert [n for n, _ in net.named_children()] == ["first", "body"]
    assert [n for n, _ in net.named_modules()] == ["", "first", "body", "body.0", "body.1"]
    assert [n for n, _ in net.named_parameters(prefix="net", recurse=False)] == ["net.scale"]
    assert len(list(net.parameters())) == 4 and len(list(net.buffers())) == 2
    assert net.get_submodule("body.1") is net.body[1] and net.get_parameter("first.bias") is net.first.bias
    assert net.get_buffer("seen") is net.seen
    net.tied = net.first
    assert len(list(net.parameters())) == 4
    assert len(list(net.named_parameters(remove_duplicate=False))) == 6
    says(AttributeError, "'Net' object has no attribute 'missing'", lambda: net.missing)
    says(AttributeError, "Linear has no attribute `x`", lambda: net.get_submodule("first.x"))


def test_assignment_registers():
    net = Net()
    net.scale = None
    assert net.scale is None and "scale" not in dict(net.named_parameters())
    net.scale = nn.Parameter(tc.zeros(2))
    assert "scale" in dict(net.named_parameters())
    del net.scale
    assert not hasattr(net, "scale")
    net.seen = tc.tensor(5)
    assert dict(net.named_buffers())["seen"].item() == 5
    net.mean = nn.Buffer(tc.ones(1))
    assert "mean" in net.state_dict()

    class Early(nn.Module):
        def __init__(self):
            self.weight = nn.Parameter(tc.ones(1))

    says(AttributeError, "cannot assign parameters before Module.__init__() call", Early)

    def set_to(name, value):
        return lambda: setattr(net, name, value)

    says(TypeError, "as child module 'first' (tercel.nn.Module or None expected)", set_to("first", 3))
    says(TypeError, "cannot assign 'tercel.FloatTensor' as parameter 'weight'",
         lambda: setattr(net.first, "weight", tc.ones(1)))
    says(TypeError, "cannot assign 'int' as buffer 'seen'", set_to("seen", 3))
    says(KeyError, 'parameter name can\'t contain "."', lambda: net.register_parameter("a.b", None))
    says(KeyError, "attribute 'first' already exists", lambda: net.register_buffer("first", None))
    says(TypeError, "is not a Module subclass", lambda: net.add_module("x", 3))
    says(TypeError, "(tercel.nn.Parameter or None required)", lambda: net.register_parameter("x", tc.ones(1)))
    says(TypeError, "unexpected keyword argument 'width'", lambda: nn.Module(width=3))
    says(NotImplementedError, 'Module [Module] is missing the required "forward" function', lambda: nn.Module()(1))


def test_parameters():
    p = nn.Parameter(tc.ones(2))
    assert p.requires_grad and p.is_leaf and isinstance(p, tc.Tensor)
    assert repr(p) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    assert type(p * 2) is tc.Tensor and not nn.Parameter(tc.ones(1), requires_grad=False).requires_grad
    q = copy.deepcopy(p)
    assert type(q) is nn.Parameter and q.data_ptr() != p.data_ptr()
    assert type(pickle.loads(pickle.dumps(p))) is nn.Parameter


def test_state_dicts_go_round():
    net, other = Net(), Net()
    net(tc.ones(1, 3))
    state = net.state_dict()
    assert list(state) == ["scale", "seen", "first.weight", "first.bias", "body.1.weight"]
    assert state["scale"].data_ptr() == net.scale.data_ptr() and not state["scale"].requires_grad
    result = other.load_state_dict(pickle.loads(pickle.dumps(state)))
    assert repr(result) == "<All keys matched successfully>" and other.seen.item() == 1
    x = tc.rand(5, 3)
    assert net(x).tolist() == other(x).tolist()
    assert net.state_dict(keep_vars=True)["scale"] is net.scale


def test_state_dicts_that_do_not_fit():
    net = Net()
    before = net.first.bias.tolist()
    state = net.state_dict()
    del state["first.weight"]
    state["first.extra"] = tc.ones(1)
    with pytest.raises(RuntimeError) as info:
        net.load_state_dict(state)
    assert str(info.value) == ('Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: '
                               '"first.weight". \n\tUnexpected key(s) in state_dict: "first.extra". ')
    result = net.load_state_dict(state, strict=False)
    assert result.missing_keys == ["first.weight"] and result.unexpected_keys == ["first.extra"]
    says(RuntimeError, "size mismatch for scale: copying a param with shape tercel.Size([3]) from checkpoint, the shape "
         "in current model is tercel.Size([2]).", lambda: net.load_state_dict({"scale": tc.ones(3)}, strict=False))
    says(TypeError, "Expected state_dict to be dict-like", lambda: net.load_state_dict([1]))
    assert net.first.bias.tolist() == before
    taken = tc.zeros(2)
    net.load_state_dict({**net.state_dict(), "scale": taken}, assign=True)
    assert net.scale.data_ptr() == taken.data_ptr() and isinstance(net.scale, nn.Parameter)


def test_modes_dtypes_and_gradients():
    net = Net()
    assert net.training and net.eval() is net and not net.body[0].training and net.train().body.training
    weight = net.first.weight
    net.double()
    assert net.first.weight is weight and weight.dtype is tc.float64 and net.seen.dtype is tc.int64
    assert net(tc.ones(1, 3, dtype=tc.float64)).dtype is tc.float64
    net.to(tc.float32).sum = None
    assert weight.dtype is tc.float32
    says(TypeError, "nn.Module.to only accepts floating point or complex dtypes", lambda: net.to(tc.int64))
    net(tc.ones(1, 3)).sum().backward()
    assert weight.grad is not None
    net.zero_grad(set_to_none=False)
    assert weight.grad.abs().sum().item() == 0
    net.zero_grad()
    assert weight.grad is None
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())
    says(ValueError, "training mode is expected to be boolean", lambda: net.train(1))
    order = []
    net.apply(lambda m: order.append(type(m).__name__))
    assert order == ["Linear", "ReLU", "Linear", "Sequential", "Net"]


def test_hooks():
    net = nn.Linear(2, 2)
    calls = []
    one = net.register_forward_pre_hook(lambda m, args: calls.append("pre"))
    two = net.register_forward_hook(lambda m, args, out: out * 0)
    net.register_forward_pre_hook(lambda m, args, kwargs: (args, kwargs), with_kwargs=True)
    assert net(tc.ones(1, 2)).abs().sum().item() == 0 and calls == ["pre"]
    one.remove()
    with two:
        pass
    assert net(tc.ones(1, 2)).abs().sum().item() > 0 and calls == ["pre"]


def test_hooks_of_backward():
    net = nn.Linear(2, 3, bias=False)
    nn.init.ones_(net.weight)
    seen = []
    pre = net.register_full_backward_pre_hook(lambda m, grads: (grads[0] * 2,))
    handle = net.register_full_backward_hook(lambda m, gi, go: seen.append((gi[0].tolist(), go[0].tolist())))
    x = tc.ones(1, 2, requires_grad=True)
    (net(x).sum() + (x * 10).sum()).backward()  # another use of x is not the module's
    assert seen == [([[6, 6]], [[2, 2, 2]])] and x.grad.tolist() == [[16, 16]]
    pre.remove()
    handle.remove()
    net.register_full_backward_hook(lambda m, gi, go: (gi[0] * 0,))
    x.grad = None
    net(x).sum().backward()
    assert x.grad.tolist() == [[0, 0]]


def test_printing():
    assert repr(Net()) == """Net(
  (first): Linear(in_features=3, out_features=4, bias=True)
  (body): Sequential(
    (0): ReLU()
    (1): Linear(in_features=4, out_features=2, bias=False)
  )
)"""
    assert repr(nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh()])) == "ModuleList(\n  (0-1): 2 x ReLU()\n  (2): Tanh()\n)"
    for module, text in [
            (nn.Conv2d(2, 4, 3, padding=1, groups=2, bias=False),
             "Conv2d(2, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), groups=2, bias=False)"),
            (nn.ConvTranspose1d(2, 4, 3, output_padding=1, stride=2),
             "ConvTranspose1d(2, 4, kernel_size=(3,), stride=(2,), output_padding=(1,))"),
            (nn.BatchNorm1d(3), "BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)"),
            (nn.LayerNorm(3), "LayerNorm((3,), eps=1e-05, elementwise_affine=True, bias=True)"),
            (nn.LayerNorm(3, bias=False), "LayerNorm((3,), eps=1e-05, elementwise_affine=True, bias=False)"),
            (nn.GroupNorm(2, 4), "GroupNorm(2, 4, eps=1e-05, affine=True, bias=True)"),
            (nn.Embedding(3, 2, padding_idx=-1), "Embedding(3, 2, padding_idx=2)"),
            (nn.MaxPool2d(2), "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)"),
            (nn.AdaptiveAvgPool2d(1), "AdaptiveAvgPool2d(output_size=1)"), (nn.Dropout(), "Dropout(p=0.5, inplace=False)"),
            (nn.GELU(), "GELU(approximate='none')"), (nn.Softmax(dim=1), "Softmax(dim=1)"),
            (nn.Flatten(), "Flatten(start_dim=1, end_dim=-1)"), (nn.CrossEntropyLoss(), "CrossEntropyLoss()"),
            (nn.LeakyReLU(0.2), "LeakyReLU(negative_slope=0.2)"), (nn.Sequential(), "Sequential()")]:
        assert repr(module) == text


def test_containers():
    a, b, c = nn.Linear(1, 1), nn.ReLU(), nn.Tanh()
    both = nn.Sequential(a, b)
    assert both[0] is a and both[-1] is b and len(both) == 2 and list(both[1:]) == [b]
    both.append(c).insert(0, c)
    assert list(both) == [c, a, b, c] and list(both.state_dict()) == ["1.weight", "1.bias"]
    del both[0]
    assert list(both.state_dict()) == ["0.weight", "0.bias"]
    named = nn.Sequential({"in": a, "act": b})
    assert [n for n, _ in named.named_children()] == ["in", "act"] and named.act is b
    says(IndexError, "index 5 is out of range", lambda: both[5])
    modules = nn.ModuleList([a, b])
    modules += [c]
    assert modules.pop(0) is a and list(modules) == [b, c]
    table = nn.ModuleDict({"a": a})
    table["b"] = b
    assert list(table) == ["a", "b"] and "a" in table and table.pop("a") is a and len(table) == 1
    weights = nn.ParameterList([tc.ones(1), tc.zeros(2)])
    assert isinstance(weights[-1], nn.Parameter) and len(list(weights.parameters())) == 2
    by_name = nn.ParameterDict({"w": tc.ones(1)})
    by_name["v"] = nn.Parameter(tc.ones(2))
    assert sorted(by_name.state_dict()) == ["v", "w"] and by_name.pop("v").numel() == 2 and "v" not in by_name
    assert "(w): Parameter containing: [tercel.float32 of size 1]" in repr(by_name)


def test_layers_are_their_functions():
    F = nn.functional
    x, image = tc.rand(4, 6), tc.rand(2, 4, 6, 6)
    linear, conv, up = nn.Linear(6, 3), nn.Conv2d(4, 4, 3, stride=2, groups=2), nn.ConvTranspose2d(4, 2, 3, stride=2)
    for got, expected in [
            (linear(x), F.linear(x, linear.weight, linear.bias)),
            (conv(image), F.conv2d(image, conv.weight, conv.bias, 2, groups=2)),
            (up(image), F.conv_transpose2d(image, up.weight, up.bias, 2)),
            (nn.Unflatten(1, (2, 3))(x), x.view(4, 2, 3)), (nn.Flatten()(image), image.view(2, -1)),
            (nn.AvgPool2d(2)(image), F.avg_pool2d(image, 2)), (nn.AdaptiveMaxPool2d(2)(image),
                                                              F.adaptive_max_pool2d(image, 2)),
            (nn.InstanceNorm2d(4)(image), F.instance_norm(image)), (nn.RMSNorm(6)(x), F.rms_norm(x, (6,))),
            (nn.Mish()(x), F.mish(x)), (nn.Softshrink(0.1)(x), F.softshrink(x, 0.1)), (nn.CELU(2)(x), F.celu(x, 2)),
            (nn.Threshold(0.5, 0)(x), F.threshold(x, 0.5, 0)), (nn.Dropout2d().eval()(image), image),
            (nn.Softmin(1)(x), F.softmin(x, 1)), (nn.GLU()(x), F.glu(x)), (nn.Upsample(scale_factor=2)(image),
                                                                         F.interpolate(image, scale_factor=2)),
            (nn.Fold((6, 6), 3)(nn.Unfold(3)(image)), F.fold(F.unfold(image, 3), (6, 6), 3)),
            (nn.PReLU()(x - 0.5), F.prelu(x - 0.5, tc.tensor([0.25]))), (nn.Identity(3, a=1)(x), x),
            (nn.Bilinear(6, 6, 2, bias=False)(x, x)[:, :0], x[:, :0])]:
        assert got.tolist() == expected.tolist()
    assert up(image, output_size=(14, 14)).shape == (2, 2, 14, 14)
    says(ValueError, "requested an output size of [20, 20]", lambda: up(image, output_size=(20, 20)))
    says(ValueError, "in_channels must be divisible by groups", lambda: nn.Conv2d(3, 4, 1, groups=2))
    says(ValueError, "padding='same' is not supported for strided convolutions",
         lambda: nn.Conv2d(1, 1, 3, stride=2, padding="same"))


def test_borders():
    F = nn.functional
    x = tc.arange(24.0).view(1, 2, 3, 4)
    for module, mode in [(nn.ReflectionPad2d(1), "reflect"), (nn.ReplicationPad2d(1), "replicate"),
                         (nn.CircularPad2d(1), "circular"), (nn.ZeroPad2d(1), "constant")]:
        assert module(x).tolist() == F.pad(x, (1, 1, 1, 1), mode).tolist()
    assert nn.ConstantPad1d((1, 2), 7)(tc.ones(1, 2)).tolist() == [[7, 1, 1, 7, 7]]
    assert nn.ReflectionPad1d((0, 1))(tc.tensor([[1.0, 2.0]])).tolist() == [[1, 2, 1]]
    assert nn.ReplicationPad3d(1)(tc.ones(1, 1, 1, 1)).sum().item() == 27
    assert repr(nn.ConstantPad1d(2, 3.5)) == "ConstantPad1d(padding=(2, 2), value=3.5)"
    assert repr(nn.ZeroPad2d((1, 2, 3, 4))) == "ZeroPad2d((1, 2, 3, 4))"
    says(ValueError, "expected 3D or 4D input (got 1D input)", lambda: nn.CircularPad2d(1)(tc.ones(3)))
    for mode in ("reflect", "replicate", "circular"):
        conv = nn.Conv2d(2, 3, (3, 2), padding=(1, 2), padding_mode=mode)
        assert f"padding=(1, 2), padding_mode={mode})" in repr(conv)
        assert conv(x).tolist() == F.conv2d(F.pad(x, (2, 2, 1, 1), mode), conv.weight, conv.bias).tolist()
        same = nn.Conv2d(2, 3, (3, 2), padding="same", padding_mode=mode)
        assert same(x).tolist() == F.conv2d(F.pad(x, (0, 1, 1, 1), mode), same.weight, same.bias).tolist()
    says(ValueError, "padding_mode must be one of", lambda: nn.Conv2d(1, 1, 3, padding_mode="mirror"))
    says(ValueError, 'Only "zeros" padding mode is supported for ConvTranspose2d',
         lambda: nn.ConvTranspose2d(1, 1, 3, padding_mode="reflect"))


def test_tables():
    table = nn.Embedding(5, 2, padding_idx=0)
    assert table.weight[0].tolist() == [0, 0] and table(tc.tensor([[1, 0]])).shape == (1, 2, 2)
    table(tc.tensor([0, 1, 1])).sum().backward()
    assert table.weight.grad[:2].tolist() == [[0, 0], [2, 2]]
    rows = tc.arange(6.0).view(3, 2)
    bag = nn.EmbeddingBag.from_pretrained(rows, mode="sum")
    assert bag(tc.tensor([0, 1, 2]), tc.tensor([0, 2])).tolist() == [[2, 4], [4, 5]]
    assert not bag.weight.requires_grad and nn.Embedding.from_pretrained(rows).weight.tolist() == rows.tolist()
    says(ValueError, "offsets has to be a 1D Tensor but got None", lambda: bag(tc.tensor([1])))
    says(IndexError, "index 9 (at position 0) is out of range for a weight of 5 rows", lambda: table(tc.tensor([9])))


def test_tables_of_bounded_rows():
    rows = tc.arange(12.0).view(4, 3)
    index = tc.tensor([1, 1, 2, 0])
    table = nn.Embedding.from_pretrained(rows.clone(), freeze=False, max_norm=3.0, norm_type=1.0)
    expected = [[0, 1, 2], [0.75, 1, 1.25], [6 / 7, 1, 8 / 7], [9, 10, 11]]
    np.testing.assert_allclose(table(index).detach().numpy(), np.array(expected)[[1, 1, 2, 0]], rtol=1e-6)
    np.testing.assert_allclose(table.weight.detach().numpy(), expected, rtol=1e-6)
    bag = nn.EmbeddingBag.from_pretrained(rows.clone(), max_norm=3.0, mode="sum", freeze=False)
    assert bag(index.view(1, 4)).shape == (1, 3) and bag.weight[3].tolist() == [9, 10, 11]
    np.testing.assert_allclose(bag.weight[1].detach().numpy(), np.array([3, 4, 5]) * 3 / np.sqrt(50), rtol=1e-6)
    assert repr(nn.Embedding(3, 2, 0, 1.0, 1, True, True)) == (
        "Embedding(3, 2, padding_idx=0, max_norm=1.0, norm_type=1, scale_grad_by_freq=True, sparse=True)")
    assert repr(nn.EmbeddingBag(3, 2, 1.0, 1.0, True, mode="sum", padding_idx=1)) == (
        "EmbeddingBag(3, 2, max_norm=1.0, norm_type=1.0, scale_grad_by_freq=True, mode='sum', padding_idx=1)")


def test_tables_with_gradients_by_frequency_and_maxima():
    index, offsets = tc.tensor([1, 1, 2, 0]), tc.tensor([0, 2, 2])
    table = nn.Embedding(4, 3, scale_grad_by_freq=True)
    table(index).sum().backward()
    assert table.weight.grad[:, 0].tolist() == [1, 1, 1, 0]
    bag = nn.EmbeddingBag(4, 3, scale_grad_by_freq=True)
    bag(index, offsets).sum().backward()
    assert bag.weight.grad[:, 0].tolist() == [0.5, 0.5, 0.5, 0]
    rows = tc.arange(12.0).view(4, 3)
    largest = nn.EmbeddingBag.from_pretrained(rows, mode="max", freeze=False)
    out = largest(index, offsets)
    assert out.tolist() == [[3, 4, 5], [0, 0, 0], [6, 7, 8]]
    out.sum().backward()
    assert largest.weight.grad[:, 0].tolist() == [0, 1, 1, 0]
    F = nn.functional
    assert F.embedding_bag(index, rows, offsets, mode="max", padding_idx=1)[0].tolist() == [0, 0, 0]
    for error, sentence, options in [
            (ValueError, "max mode does not support sparse weights", {"mode": "max", "sparse": True}),
            (ValueError, "max mode does not support scaling", {"mode": "max", "scale_grad_by_freq": True}),
            (NotImplementedError, "only supported for mode='sum' (got mode='max')",
             {"mode": "max", "per_sample_weights": tc.ones(4)}),
            (ValueError, "mode has to be one of sum, mean or max", {"mode": "median"}),
            (RuntimeError, "scale_grad_by_freq not supported with sparse gradients",
             {"sparse": True, "scale_grad_by_freq": True})]:
        says(error, sentence, lambda: F.embedding_bag(index, rows, offsets, **options))  # noqa: B023


def test_batch_norm_keeps_statistics():
    norm = nn.BatchNorm1d(2)
    x = tc.tensor([[1.0, 10.0], [3.0, 30.0]])
    norm(x)
    np.testing.assert_allclose(norm.running_mean.numpy(), [0.2, 2.0], rtol=1e-6)
    np.testing.assert_allclose(norm.running_var.numpy(), [1.1, 20.9], rtol=1e-6)
    assert norm.num_batches_tracked.item() == 1
    norm.eval()
    expected = (x.numpy() - [0.2, 2.0]) / np.sqrt(np.array([1.1, 20.9]) + 1e-5)
    np.testing.assert_allclose(norm(x).detach().numpy(), expected, rtol=1e-5)
    mean = nn.BatchNorm1d(2, momentum=None)
    mean(x)
    mean(x + 1)
    np.testing.assert_allclose(mean.running_mean.numpy(), [2.5, 20.5], rtol=1e-6)
    alone = nn.BatchNorm1d(2, track_running_stats=False, affine=False).eval()
    assert abs(alone(x).sum().item()) < 1e-5 and not alone.state_dict()
    says(ValueError, "expected 4D input (got 2D input)", lambda: nn.BatchNorm2d(2)(x))


def test_losses_are_their_functions():
    x, y = tc.rand(4, 3), tc.tensor([0, 2, 1, 1])
    weight = tc.tensor([1.0, 2.0, 3.0])
    loss = nn.CrossEntropyLoss(weight, ignore_index=1, label_smoothing=0.1)
    F = nn.functional
    assert loss(x, y).item() == F.cross_entropy(x, y, weight, ignore_index=1, label_smoothing=0.1).item()
    assert nn.NLLLoss(reduction="sum")(x, y).item() == F.nll_loss(x, y, reduction="sum").item()
    assert nn.MSELoss(size_average=False)(x, x * 0).item() == F.mse_loss(x, x * 0, reduction="sum").item()
    assert nn.BCEWithLogitsLoss(pos_weight=weight)(x, x).item() == F.binary_cross_entropy_with_logits(
        x, x, pos_weight=weight).item()
    assert nn.HuberLoss(delta=0.1)(x, x * 0).item() == F.huber_loss(x, x * 0, delta=0.1).item()
    assert nn.TripletMarginLoss(margin=2)(x, x, x + 1).item() == F.triplet_margin_loss(x, x, x + 1, margin=2.0).item()
    assert nn.GaussianNLLLoss()(x, x, x + 1).item() == F.gaussian_nll_loss(x, x, x + 1).item()
    assert nn.HingeEmbeddingLoss().margin == 1.0 and nn.CosineEmbeddingLoss().margin == 0.0


def test_initial_values():
    tc.manual_seed(5)
    w = tc.empty(200, 100)
    init = nn.init
    assert init.uniform_(w, -2, 1) is w and w.min().item() >= -2 and abs(w.mean().item() + 0.5) < 0.05
    for fill, std in [(lambda: init.xavier_normal_(w), math.sqrt(2 / 300)),
                      (lambda: init.xavier_uniform_(w, gain=2), 2 * math.sqrt(2 / 300)),
                      (lambda: init.kaiming_normal_(w, nonlinearity="relu"), math.sqrt(2 / 100)),
                      (lambda: init.kaiming_uniform_(w, mode="fan_out"), math.sqrt(2 / 200)),
                      (lambda: init.normal_(w, 1, 3), 3)]:
        assert fill().std().item() == pytest.approx(std, rel=0.05)
    assert init.trunc_normal_(w, std=2, a=-1, b=1).abs().max().item() <= 1
    q = init.orthogonal_(tc.empty(3, 5, dtype=tc.float64), gain=2)
    np.testing.assert_allclose((q @ q.t()).numpy(), 4 * np.eye(3), atol=1e-12)
    assert init.eye_(tc.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]] and init.ones_(tc.empty(1)).item() == 1
    x = tc.rand(1, 2, 4)
    same = nn.functional.conv1d(x, init.dirac_(tc.empty(2, 2, 3)), padding=1)
    assert same.tolist() == x.tolist()
    bound = 1 / math.sqrt(100)
    linear = nn.Linear(100, 50)
    assert 0.9 * bound < linear.weight.abs().max().item() <= bound and linear.bias.abs().max().item() <= bound
    assert init.calculate_gain("leaky_relu", math.sqrt(5)) == pytest.approx(math.sqrt(1 / 3))
    says(ValueError, "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions",
         lambda: init.xavier_normal_(tc.empty(3)))
    says(ValueError, "Unsupported nonlinearity step", lambda: init.calculate_gain("step"))
    sparse = init.sparse_(tc.empty(10, 4), 0.3)
    assert (sparse == 0).sum(0).tolist() == [3] * 4


def test_vectors_of_parameters():
    net = nn.Linear(2, 2)
    vector = nn.utils.parameters_to_vector(net.parameters())
    assert vector.shape == (6,)
    nn.utils.vector_to_parameters(tc.arange(6.0), net.parameters())
    assert net.weight.tolist() == [[0, 1], [2, 3]] and net.bias.tolist() == [4, 5]


def test_modules_are_copied_and_pickled():
    net = Net()
    twin, thawed = copy.deepcopy(net), pickle.loads(pickle.dumps(net))
    x = tc.rand(2, 3)
    assert net(x).tolist() == twin(x).tolist() == thawed(x).tolist()
    assert twin.first.weight is not net.first.weight


def test_networks_learn():
    tc.manual_seed(0)
    x = tc.rand(256, 2) * 2 - 1
    y = ((x[:, 0] * x[:, 1]) > 0).long()
    net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
    optimizer = tc.optim.Adam(net.parameters(), lr=0.02)
    for _ in range(150):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.15


def test_convolutional_networks_learn():
    tc.manual_seed(0)
    images, labels = tc.rand(64, 1, 8, 8) * 0.5, tc.randint(0, 2, (64,))
    images[labels == 0, :, 2] += 1  # a line across, or one down
    images[labels == 1, :, :, 2] += 1
    net = nn.Sequential(nn.Conv2d(1, 8, 3, padding="same"), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                        nn.Conv2d(8, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2))
    optimizer = tc.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    schedule = tc.optim.lr_scheduler.CosineAnnealingLR(optimizer, 40)
    for _ in range(40):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    net.eval()
    assert loss.item() < 0.1 and (net(images).argmax(1) == labels).sum().item() >= 62


def test_sequences_are_repeated():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    assert [type(m).__name__ for m in net * 2] == [type(m).__name__ for m in 2 * net] == ["Linear", "ReLU"] * 2
    assert (net * 2)[2] is net[0]
    net *= 3
    assert list(net._modules) == list("012345")
    with pytest.raises(TypeError, match="unsupported operand type"):
        net * 1.5
    with pytest.raises(ValueError, match="Non-positive multiplication factor 0"):
        net * 0


def test_statistics_that_are_no_longer_tracked():
    norm = nn.BatchNorm1d(2)
    norm.track_running_stats = False
    norm(tc.randn(4, 2))
    assert norm.num_batches_tracked.item() == 0 and norm.running_mean.tolist() == [0, 0]
    old = {name: value for name, value in nn.BatchNorm1d(2).state_dict().items() if name != "num_batches_tracked"}
    nn.BatchNorm1d(2).load_state_dict(old)


def test_backward_hooks_of_second_passes():
    net = nn.Sequential(nn.Linear(2, 2))
    seen = []
    net[0].register_full_backward_hook(lambda module, inputs, outputs: seen.append(inputs[0] is not None))
    x = tc.ones(1, 2, requires_grad=True)
    out = net(x).pow(2).sum()
    out.backward(retain_graph=True)
    out.backward(retain_graph=True)
    assert seen == [True, True]
    loss = nn.MSELoss()
    loss.register_full_backward_hook(lambda *_: seen.append("loss"))
    (g,) = tc.autograd.grad(loss(x, tc.zeros(1, 2)), x, create_graph=True)
    tc.autograd.grad(g.sum(), x)
    assert seen[2:] == ["loss"], "a second derivative reaches the input by another way than through the output"


@pytest.mark.parametrize("make, shape", [
    (lambda **o: nn.BatchNorm1d(4, **o), (3, 4)), (lambda **o: nn.BatchNorm2d(4, **o), (3, 4, 2, 2)),
    (lambda **o: nn.InstanceNorm1d(4, affine=True, **o), (3, 4, 5)), (lambda **o: nn.GroupNorm(2, 4, **o), (3, 4, 5)),
    (lambda **o: nn.LayerNorm(4, **o), (3, 4))])
def test_norms_without_a_bias(make, shape):
    x = tc.randn(shape)
    with_bias, without = make(), make(bias=False)
    assert without.bias is None and list(without.state_dict()) == [k for k in with_bias.state_dict() if k != "bias"]
    assert "bias=False" in repr(without) and "bias=True" in repr(with_bias)
    with tc.no_grad():
        for net in (with_bias, without):
            net.weight.copy_(tc.arange(4.0))
    tc.testing.assert_close(without(x), with_bias(x))


def test_submodules_are_replaced_by_path():
    net = nn.Sequential(nn.Sequential(nn.Linear(1, 1)), nn.ReLU())
    net.set_submodule("0.0", nn.Identity())
    net.set_submodule("0.other", nn.Tanh())
    assert type(net[0][0]) is nn.Identity and type(net[0].other) is nn.Tanh and len(net[0]) == 2
    for target, module, strict, error, message in (
            ("", nn.ReLU(), False, ValueError, "without a target name"), ("0", 3, False, ValueError, "is not an nn.Module"),
            ("0.none", nn.ReLU(), True, AttributeError, "Sequential has no attribute `none`"),
            ("0.training", nn.ReLU(), False, AttributeError, "`training` is not an nn.Module"),
            ("9.x", nn.ReLU(), False, AttributeError, "has no attribute `9`")):
        with pytest.raises(error, match=message):
            net.set_submodule(target, module, strict)
    for move in (net.append(nn.Linear(1, 1)).cuda, tc.ones(1).cuda):
        with pytest.raises(AssertionError, match="Tercel not compiled with CUDA enabled"):
            move()


def test_layers_derived_from_convolutions():
    class Standardized(nn.Conv2d):
        def forward(self, input):
            weight = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
            return self._conv_forward(input, weight, self.bias)

    x = tc.ones(1, 2, 5, 5)
    layer = Standardized(2, 3, 3, padding=1, padding_mode="replicate")
    assert tc.allclose(layer(x), layer.bias[:, None, None].expand(1, 3, 5, 5), atol=1e-6)
    plain = nn.Conv2d(2, 3, 3)
    assert tc.equal(plain._conv_forward(x, plain.weight, plain.bias), plain(x))
