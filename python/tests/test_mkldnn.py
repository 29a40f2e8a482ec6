"""Packed weights: Tensor.to_mkldnn(), and utils.mkldnn, which puts them into modules."""

import copy
import io
import pickle

import numpy as np
import pytest

import tercel as tc
from tercel import nn
from tercel.utils import mkldnn

F = nn.functional


def random(*size, dtype=tc.float32):
    return tc.rand(*size, generator=tc.Generator().manual_seed(sum(size)), dtype=dtype) - 0.5


@pytest.mark.parametrize("dtype", [tc.float32, tc.float64])
@pytest.mark.parametrize("rows, size_in, size_out", [(1, 7, 3), (8, 300, 70), (16, 64, 96), (40, 33, 65)])
def test_linear(dtype, rows, size_in, size_out):
    weight, bias = random(size_out, size_in, dtype=dtype), random(size_out, dtype=dtype)
    x = random(rows, size_in, dtype=dtype)
    packed = weight.to_mkldnn()
    want = x.numpy().astype(np.float64) @ weight.numpy().astype(np.float64).T
    tolerance = 1e-5 if dtype is tc.float32 else 1e-13
    np.testing.assert_allclose(F.linear(x, packed).numpy(), want, atol=tolerance)
    np.testing.assert_allclose(F.linear(x, packed, bias).numpy(), want + bias.numpy(), atol=tolerance)
    many = tc.cat([x] * 32)  # more rows than are multiplied as dot products
    assert tc.equal(F.linear(x, packed, bias), F.linear(many, weight, bias)[:rows])
    assert F.linear(x[0], packed).shape == (size_out,)
    assert F.linear(x.expand(2, 3, rows, size_in), packed).shape == (2, 3, rows, size_out)
    out = tc.empty(rows, size_out, dtype=dtype)
    assert tc.equal(F.linear(x, packed), F.linear(x, packed, out=out)) and out.any()


def test_attributes():
    weight = random(4, 5)
    packed = weight.to_mkldnn()
    assert packed.is_mkldnn and not weight.is_mkldnn and not packed.is_sparse
    assert packed.layout is tc._mkldnn and repr(packed.layout) == "tercel._mkldnn"
    assert packed.shape == (4, 5) and packed.dtype is tc.float32 and packed.dim() == 2 and len(packed) == 4
    assert packed.numel() == 20 and packed.nbytes == 80 and packed.device == tc.device("cpu")
    assert tc.equal(packed.to_dense(), weight) and weight.to_dense() is weight
    assert packed.to_dense(tc.float64).dtype is tc.float64
    assert tc.equal(weight.to_mkldnn(tc.float64).to_dense(), weight.double())
    assert tc.equal(weight.t().to_mkldnn().to_dense(), weight.t())
    assert packed._version == 0 and packed.is_leaf and not packed.requires_grad


def test_copies_keep_the_weight():
    weight = random(4, 5)
    packed, want = weight.to_mkldnn(), weight.clone()
    weight.zero_()
    for other in (packed, packed.detach(), packed.clone(), packed.data, nn.Parameter(packed, requires_grad=False)):
        assert other.is_mkldnn and tc.equal(other.to_dense(), want)
    assert packed.clone() is not packed


def test_prints_as_in_pytorch():
    weight = tc.arange(6.0).reshape(2, 3)
    text = "tensor([[0., 1., 2.],\n        [3., 4., 5.]], layout=tercel._mkldnn)"
    assert repr(weight.to_mkldnn()) == str(weight.to_mkldnn()) == f"{weight.to_mkldnn()}" == text
    assert repr(tc.empty(0, 3).to_mkldnn()) == "tensor([], size=(0, 3), layout=tercel._mkldnn)"
    assert repr(weight[:1].to_mkldnn(tc.float64)) == \
        "tensor([[0., 1., 2.]], dtype=tercel.float64, layout=tercel._mkldnn)"
    assert "..." in repr(tc.zeros(50, 50).to_mkldnn())


x, packed = tc.ones(2, 3), tc.ones(4, 3).to_mkldnn()


@pytest.mark.parametrize("name, call", [
    ("to_mkldnn", lambda: packed.to_mkldnn()),
    ("linear", lambda: F.linear(packed, x)),
    ("linear", lambda: F.linear(x, packed, packed)),
    ("linear", lambda: F.linear(x, tc.ones(3), packed)),
    ("add", lambda: packed + packed),
    ("matmul", lambda: x @ packed),
    ("mm", lambda: tc.mm(x, packed)),
    ("t", lambda: packed.t()),
    ("view", lambda: packed.view(12)),
    ("zero_", lambda: packed.zero_()),
    ("copy_", lambda: packed.copy_(tc.ones(4, 3))),
    ("copy_", lambda: tc.ones(4, 3).copy_(packed)),
    ("clone", lambda: packed.clone(memory_format=tc.contiguous_format)),
    ("numpy", lambda: packed.numpy()),
    ("tolist", lambda: packed.tolist()),
    ("stride", lambda: packed.stride()),
    ("data_ptr", lambda: packed.data_ptr()),
    ("requires_grad_", lambda: packed.requires_grad_()),
    ("requires_grad_", lambda: nn.Parameter(packed)),
    ("untyped_storage", lambda: pickle.dumps(packed)),
    ("untyped_storage", lambda: copy.deepcopy(packed)),
    ("equal", lambda: tc.equal(packed, packed)),
    ("bilinear", lambda: F.bilinear(x, x, packed)),
])
def test_nothing_but_linear_takes_it(name, call):
    with pytest.raises(NotImplementedError) as info:
        call()
    assert str(info.value) == f"{name}: not implemented for layout _mkldnn"
    assert not packed.requires_grad


def test_out_is_refused_and_unchanged():
    with pytest.raises(NotImplementedError, match="not implemented for layout _mkldnn"):
        F.linear(tc.ones(4, 5), tc.ones(3, 5), out=packed)
    assert tc.equal(packed.to_dense(), tc.ones(4, 3))


@pytest.mark.parametrize("error, text, call", [
    (RuntimeError, "to_mkldnn: expected a weight [out, in] but got [3]", lambda: tc.ones(3).to_mkldnn()),
    (RuntimeError, "to_mkldnn: expected a float32 or float64 weight but got bfloat16",
     lambda: tc.ones(3, 3).to_mkldnn(tc.bfloat16)),
    (RuntimeError, "to_mkldnn: expected a float32 or float64 weight but got int64",
     lambda: tc.ones(3, 3, dtype=tc.int64).to_mkldnn()),
    (RuntimeError, "to_mkldnn: the weight requires a gradient, but a packed weight has none; use detach() or no_grad()",
     lambda: nn.Linear(3, 3).weight.to_mkldnn()),
    (RuntimeError, "linear: expected one dtype but got input float64, weight float32",
     lambda: F.linear(x.double(), packed)),
    (RuntimeError, "linear: mat1 and mat2 shapes cannot be multiplied (2x4 and 3x4)",
     lambda: F.linear(tc.ones(2, 4), packed)),
    (BufferError, "a tensor of layout _mkldnn, which is a packed weight, cannot be saved or exported as its elements; convert it "
     "with to_dense() first", lambda: packed.__dlpack__()),
])
def test_errors(error, text, call):
    with pytest.raises(error) as info:
        call()
    assert str(info.value) == text


def test_save_is_refused(tmp_path):
    with pytest.raises(RuntimeError, match="a packed weight, cannot be saved"):
        tc.save(packed, tmp_path / "weight.pt")


def test_gradients_of_the_other_operands():
    weight = random(4, 3, dtype=tc.float64)
    found = []
    for w in (weight, weight.to_mkldnn()):
        x, bias = random(5, 3, dtype=tc.float64).requires_grad_(), random(4, dtype=tc.float64).requires_grad_()
        F.linear(x, w, bias).backward(random(5, 4, dtype=tc.float64))
        found.append((x.grad, bias.grad))
    assert all(tc.equal(a, b) for a, b in zip(*found))
    x = random(5, 3, dtype=tc.float64).requires_grad_()
    assert tc.autograd.gradcheck(lambda x: F.linear(x, weight.to_mkldnn()), (x,))
    assert tc.autograd.gradgradcheck(lambda x: F.linear(x, weight.to_mkldnn()).square(), (x,))


def network():
    tc.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 40), nn.ReLU(), nn.Sequential(nn.Linear(40, 3, bias=False), nn.Dropout(0.1))).eval()


def test_modules():
    net, x = network(), random(64, 5)
    want = net(x)
    packed = mkldnn.to_mkldnn(net)
    assert packed is net and tc.equal(net(x), want)
    assert repr(net[0]) == "MkldnnLinear(in_features=5, out_features=40, bias=True)"
    assert repr(net[2][0]) == "MkldnnLinear(in_features=40, out_features=3, bias=False)"
    assert not list(net.parameters()) and [name for name, _ in net.named_buffers()] == ["0.weight", "0.bias", "2.0.weight"]
    assert not net[0].training and type(mkldnn.to_mkldnn(net)[0]) is mkldnn.MkldnnLinear
    linear = nn.Linear(5, 2)
    alone = mkldnn.to_mkldnn(linear)
    assert type(alone) is mkldnn.MkldnnLinear and alone.weight.is_mkldnn and alone.training
    linear.weight.data.zero_()
    linear.bias.data.zero_()
    assert alone(x).all()


def test_modules_keep_subclasses():
    class Twice(nn.Linear):
        def forward(self, input):
            return 2 * super().forward(input)

    net = nn.Sequential(Twice(3, 2))
    assert type(mkldnn.to_mkldnn(net)[0]) is Twice


def test_modules_that_occur_twice():
    linear = nn.Linear(4, 4)
    net = mkldnn.to_mkldnn(nn.Sequential(linear, nn.Sequential(linear)))
    assert type(net[0]) is mkldnn.MkldnnLinear and net[1][0] is net[0]


def test_dtype_of_modules():
    net = mkldnn.to_mkldnn(network(), tc.float64)
    assert net[0].weight.dtype is net[0].bias.dtype is net(random(2, 5).double()).dtype is tc.float64
    assert mkldnn.to_mkldnn(network().double())(random(2, 5).double()).dtype is tc.float64
    with pytest.raises(RuntimeError, match="^to_mkldnn: expected a float32 or float64 weight but got float16$"):
        mkldnn.to_mkldnn(network(), tc.float16)
    net = mkldnn.to_mkldnn(network()).double()
    assert net[0].weight.is_mkldnn and net[0].weight.dtype is tc.float64
    x = random(2, 5).double()
    want = net(x)
    with pytest.raises(RuntimeError, match="but got bfloat16$"):
        net.bfloat16()
    assert net[0].weight.is_mkldnn and tc.equal(net(x), want)


def test_state_of_modules():
    dense, x = network(), random(64, 5)
    want = dense(x)
    net = mkldnn.to_mkldnn(copy.deepcopy(dense))
    state = net.state_dict()
    assert {name: tensor.layout for name, tensor in state.items()} == dict.fromkeys(dense.state_dict(), tc.strided)
    file = io.BytesIO()
    tc.save(state, file)
    file.seek(0)
    other = mkldnn.to_mkldnn(nn.Sequential(nn.Linear(5, 40), nn.ReLU(),
                                           nn.Sequential(nn.Linear(40, 3, bias=False), nn.Dropout(0.1))).eval())
    assert not tc.equal(other(x), want)
    other.load_state_dict(tc.load(file))
    assert tc.equal(other(x), want) and other[0].weight.is_mkldnn
    dense[0].weight.data.mul_(2)
    dense.load_state_dict(state)
    assert tc.equal(dense(x), want)
    for again in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert again[0].weight.is_mkldnn and tc.equal(again(x), want)
    with pytest.raises(RuntimeError, match="size mismatch for 0.weight"):
        other.load_state_dict({**state, "0.weight": tc.ones(2, 2)})
    assert other[0].weight.is_mkldnn and tc.equal(other(x), want)
    other.load_state_dict(dict(dense.named_parameters()), assign=True)
    assert tc.equal(other(x), dense(x)) and not list(other.parameters())
