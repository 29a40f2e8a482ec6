"""Lazy modules: sizes, classes, states, copies, and materialized modules."""

import copy
import pickle

import pytest

import tercel as tc
from tercel import nn
from tercel.nn.lazy import LazyModuleMixin
from tercel.nn.parameter import is_lazy

LAYERS = [
    (lambda: nn.LazyLinear(3), lambda: nn.Linear(5, 3), (2, 5)),
    (lambda: nn.LazyLinear(3, bias=False), lambda: nn.Linear(5, 3, bias=False), (5,)),
    *((lambda d=d: getattr(nn, f"LazyConv{d}d")(4, 3, 2, groups=2), lambda d=d: getattr(nn, f"Conv{d}d")(6, 4, 3, 2, groups=2),
       (2, 6, *[5] * d)) for d in (1, 2, 3)),
    (lambda: nn.LazyConv1d(4, 3, bias=False), lambda: nn.Conv1d(6, 4, 3, bias=False), (6, 5)),
    *((lambda d=d: getattr(nn, f"LazyConvTranspose{d}d")(4, 3, 2), lambda d=d: getattr(nn, f"ConvTranspose{d}d")(6, 4, 3, 2),
       (2, 6, *[5] * d)) for d in (1, 2, 3)),
    *((lambda d=d: getattr(nn, f"LazyBatchNorm{d}d")(), lambda d=d: getattr(nn, f"BatchNorm{d}d")(6), (2, 6, *[5] * d))
      for d in (1, 2, 3)),
    (lambda: nn.LazyBatchNorm1d(affine=False, track_running_stats=False),
     lambda: nn.BatchNorm1d(6, affine=False, track_running_stats=False), (2, 6)),
    *((lambda d=d: getattr(nn, f"LazyInstanceNorm{d}d")(),
       lambda d=d: getattr(nn, f"InstanceNorm{d}d")(6, affine=True, track_running_stats=True), (2, 6, *[5] * d))
      for d in (1, 2, 3)),
    (lambda: nn.LazyInstanceNorm1d(), lambda: nn.InstanceNorm1d(6, affine=True, track_running_stats=True), (6, 5)),
]
IDS = [repr(plain()) for _, plain, _ in LAYERS]


@pytest.mark.parametrize("lazy, plain, sizes", LAYERS, ids=IDS)
def test_the_first_input_makes_the_plain_layer(lazy, plain, sizes):
    x = tc.rand(sizes)
    layer = lazy()
    assert repr(layer).startswith(f"{type(layer).__name__}(") and isinstance(layer, type(plain()))
    tc.manual_seed(0)
    y = layer(x)
    tc.manual_seed(0)
    expected = plain()
    assert type(layer) is type(expected) and repr(layer) == repr(expected)
    assert not layer._forward_pre_hooks and not hasattr(layer, "_initialize_hook")
    # The same initial values as with known sizes, and the same results.
    assert tc.equal(y, expected(x)) and tc.equal(layer(x), expected(x))
    assert list(layer.state_dict()) == list(expected.state_dict())
    for (name, a), b in zip(layer.state_dict().items(), expected.state_dict().values()):
        assert tc.equal(a, b), name
    assert all(type(p) is nn.Parameter and p.requires_grad for p in layer.parameters())
    assert all(type(b) is tc.Tensor for b in layer.buffers())


@pytest.mark.parametrize("lazy, plain, sizes", LAYERS, ids=IDS)
def test_states(lazy, plain, sizes):
    x = tc.rand(sizes)
    known, waiting = plain(), lazy()
    state = waiting.state_dict()
    assert list(state) == list(known.state_dict())
    if waiting.has_uninitialized_params():
        with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter or buffer"):
            known.load_state_dict(state)
        lazy().load_state_dict(state)
    waiting.load_state_dict(known.state_dict())
    assert not waiting.has_uninitialized_params()
    assert tc.equal(waiting(x), known(x)) and type(waiting) is type(known) and repr(waiting) == repr(known)


@pytest.mark.parametrize("make", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["copy", "pickle"])
def test_copies_wait_for_themselves(make):
    net = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
    again = make(net)
    assert again(tc.rand(2, 3, 6, 6)).shape == (2, 2) and not is_lazy(again[0].weight)
    assert type(again[3]) is nn.Linear and again[3].in_features == 64
    assert is_lazy(net[0].weight) and net(tc.rand(2, 1, 5, 5)).shape == (2, 2) and net[0].in_channels == 1
    assert make(net)(tc.rand(2, 1, 5, 5)).shape == (2, 2)


def test_dtypes_and_training():
    net = nn.Sequential(nn.LazyLinear(4, dtype=tc.float64), nn.LazyBatchNorm1d()).double()
    assert isinstance(net[1].running_mean, nn.UninitializedBuffer)
    optimizer = tc.optim.SGD(net.parameters(), 0.1)
    loss = net(tc.rand(5, 3, dtype=tc.float64)).pow(3).sum()
    assert net[1].running_mean.dtype is tc.float64 and net[0].weight.dtype is tc.float64
    before = net[0].weight.clone()
    loss.backward()
    optimizer.step()
    assert not tc.equal(before, net[0].weight)
    assert net[1].num_batches_tracked.item() == 1


def test_uninitialized_tensors():
    p, b = nn.UninitializedParameter(dtype=tc.float64), nn.UninitializedBuffer()
    assert repr(p) == "<UninitializedParameter>" and repr(b) == "<UninitializedBuffer>"
    assert isinstance(p, nn.Parameter) and isinstance(b, nn.Buffer) and p.requires_grad and not b.requires_grad
    assert is_lazy(p) and is_lazy(b) and not is_lazy(nn.Parameter()) and not is_lazy(None)
    for question in (lambda: p.shape, lambda: p.size(), lambda: p.dim(), lambda: p.numel(), lambda: b.ndim):
        with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized"):
            question()
    p.materialize((2, 3))
    assert type(p) is nn.Parameter and p.shape == (2, 3) and p.dtype is tc.float64 and p.is_leaf and p.requires_grad
    b.materialize((4,), dtype=tc.int64)
    assert type(b) is tc.Tensor and b.shape == (4,) and b.dtype is tc.int64
    assert not nn.UninitializedParameter(requires_grad=False).requires_grad


def test_own_lazy_modules():
    class Scale(LazyModuleMixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = nn.UninitializedParameter()

        def initialize_parameters(self, x, *, start=1.0):
            if self.has_uninitialized_params():
                self.factor.materialize((x.shape[-1],))
                nn.init.constant_(self.factor, start)

        def forward(self, x, *, start=1.0):
            return x * self.factor

    layer = Scale()
    assert layer(tc.ones(2, 3), start=5.0).tolist() == [[5.0] * 3] * 2
    assert type(layer) is Scale and not layer._forward_pre_hooks

    class Forgetful(Scale):
        def initialize_parameters(self, x):
            pass

    with pytest.raises(RuntimeError, match="module Forgetful has not been fully initialized"):
        Forgetful()(tc.ones(2))

    class Bare(LazyModuleMixin, nn.Module):
        pass

    with pytest.raises(NotImplementedError, match="initialize_parameters is not implemented for Bare"):
        Bare()(tc.ones(2))


def test_what_lazy_layers_refuse():
    with pytest.raises(RuntimeError, match=r"Expected 3D \(unbatched\) or 4D \(batched\) input to LazyConv2d, but got "):
        nn.LazyConv2d(3, 2)(tc.ones(2, 6))
    with pytest.raises(ValueError, match="in_channels must be divisible by groups"):
        (layer := nn.LazyConv2d(4, 2, groups=2))(tc.ones(2, 5, 4, 4))
    assert layer(tc.ones(2, 6, 4, 4)).shape == (2, 4, 3, 3)
    with pytest.raises(ValueError, match=r"expected 4D input \(got 2D input\)"):
        nn.LazyBatchNorm2d()(tc.ones(2, 3))
    layer = nn.LazyLinear(3)
    layer.reset_parameters()
    assert layer.has_uninitialized_params()
    layer.load_state_dict(nn.Linear(5, 3).state_dict())
    with pytest.raises(AssertionError, match="The in_features inferred from input: 6 is not equal to in_features from"):
        layer(tc.ones(2, 6))
