"""Parametrized tensors: values, states, assignment, several in a row, copies, and their removal."""

import copy
import pickle

import pytest

import tercel as tc
from tercel import nn
from tercel.nn.utils import parametrizations, parametrize


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).T


class Twice(nn.Module):
    def forward(self, x):
        return 2 * x

    def right_inverse(self, x):
        return x / 2


class Product(nn.Module):
    def forward(self, a, b):
        return a @ b

    def right_inverse(self, x):
        return x, tc.eye(x.size(1))


class First(nn.Module):
    def forward(self, x):
        return x[:1]


def refused(error, sentence, call, *args, **kwargs):
    with pytest.raises(error) as info:
        call(*args, **kwargs)
    assert sentence in str(info.value)


def test_a_parametrized_weight():
    tc.manual_seed(0)
    layer = nn.Linear(3, 3)
    before = layer.weight.detach().clone()
    assert parametrize.register_parametrization(layer, "weight", Symmetric()) is layer
    assert type(layer).__name__ == "ParametrizedLinear" and isinstance(layer, nn.Linear)
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    assert parametrize.is_parametrized(layer) and parametrize.is_parametrized(layer, "weight")
    assert not parametrize.is_parametrized(layer, "bias") and not parametrize.is_parametrized(nn.Linear(2, 2))
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert tc.equal(layer.weight, layer.weight.T) and tc.equal(layer.weight, before.triu() + before.triu(1).T)
    x = tc.rand(2, 3)
    assert tc.allclose(layer(x), x @ layer.weight.T + layer.bias)
    layer(x).sum().backward()
    original = layer.parametrizations.weight.original
    assert isinstance(original, nn.Parameter) and original.grad.triu().abs().sum() > 0
    assert original.grad.tril(-1).abs().sum() == 0
    assert "(weight): ParametrizationList(\n      (0): Symmetric()" in repr(layer)
    # Other layers of the class are as they were.
    assert "weight" in nn.Linear(3, 3).state_dict() and not hasattr(nn.Linear, "weight")


def test_several_and_assignment():
    layer = nn.Linear(3, 3)
    before = layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", Twice())
    assert tc.allclose(layer.weight, before)  # by its right inverse
    assert tc.allclose(layer.parametrizations.weight.original, before / 2)
    parametrize.register_parametrization(layer, "weight", Twice())
    assert tc.allclose(layer.weight, 2 * before)
    layer.weight = tc.ones(3, 3)
    assert layer.weight.tolist() == [[1] * 3] * 3
    assert layer.parametrizations.weight.original.tolist() == [[0.25] * 3] * 3
    parametrize.register_parametrization(layer, "bias", Twice())
    assert parametrize.is_parametrized(layer, "bias") and len(layer.parametrizations) == 2
    other = nn.Linear(3, 3)
    for name in ("weight", "weight", "bias"):
        parametrize.register_parametrization(other, name, Twice())
    other.load_state_dict(layer.state_dict())
    x = tc.rand(2, 3)
    assert tc.allclose(other(x), layer(x))


def test_of_several_tensors_and_of_buffers():
    layer = nn.Linear(3, 3)
    before = layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", Product())
    names = ["bias", "parametrizations.weight.original0", "parametrizations.weight.original1"]
    assert list(layer.state_dict()) == names and [n for n, _ in layer.named_parameters()] == names
    assert tc.allclose(layer.weight, before)
    refused(ValueError, "Cannot leave unparametrized", parametrize.remove_parametrizations, layer, "weight", False)
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and list(layer.state_dict()) == ["bias", "weight"]
    norm = nn.BatchNorm1d(4)
    parametrize.register_parametrization(norm, "running_mean", Twice())
    assert [n for n, _ in norm.named_buffers()][-1] == "parametrizations.running_mean.original"
    parametrize.remove_parametrizations(norm, "running_mean")
    assert "running_mean" in dict(norm.named_buffers())


@pytest.mark.parametrize("leave", [True, False])
def test_removal(leave):
    layer = nn.Linear(3, 3)
    weight = layer.weight
    before = weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", Symmetric())
    parametrize.register_parametrization(layer, "bias", Symmetric(), unsafe=True)
    value = layer.weight.detach().clone()
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=leave)
    assert parametrize.is_parametrized(layer, "bias") and not parametrize.is_parametrized(layer, "weight")
    assert tc.equal(layer.weight, value if leave else before) and isinstance(layer.weight, nn.Parameter)
    assert layer.weight is weight
    parametrize.remove_parametrizations(layer, "bias", leave_parametrized=False)
    assert type(layer) is nn.Linear and not hasattr(layer, "parametrizations")


def test_copies_and_the_cache():
    calls = []

    class Counted(nn.Module):
        def forward(self, x):
            calls.append(1)
            return x * 3

    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Counted())
    calls.clear()
    with parametrize.cached():
        with parametrize.cached():
            assert layer.weight is layer.weight
        assert layer.weight is layer.weight and len(calls) == 1
    assert layer.weight is not layer.weight and len(calls) == 3
    again = copy.deepcopy(layer)
    assert tc.equal(again.weight, layer.weight)
    parametrize.remove_parametrizations(again, "weight")
    assert type(again) is nn.Linear and parametrize.is_parametrized(layer, "weight")
    assert tc.equal(again.weight, layer.weight)
    refused(RuntimeError, "Serialization of parametrized modules is only supported through state_dict()", pickle.dumps,
            layer)


def test_what_is_refused():
    layer = nn.Linear(3, 3)
    register = parametrize.register_parametrization
    refused(ValueError, "does not have a parameter, a buffer, or a parametrized element with name 'other'", register,
            layer, "other", Twice())
    refused(ValueError, "may not change the shape of the tensor, unless `unsafe` flag is enabled.", register, layer,
            "weight", First())
    pair, none = Product(), Product()
    pair.forward = lambda a, b=None: (a, a)
    none.right_inverse = lambda x: (x, None)
    refused(ValueError, "A parametrization must return a tensor. Got tuple.", register, layer, "weight", pair)
    refused(ValueError, "Got element 1 of the sequence with type NoneType.", register, layer, "weight", none)
    double = Twice()
    double.right_inverse = lambda x: x.double()
    refused(ValueError, "it may not change the dtype", register, layer, "weight", double)
    none.right_inverse = lambda x: None
    refused(ValueError, "'right_inverse' must return a Tensor or a Sequence of tensors", register, layer, "weight", none)
    assert type(layer) is nn.Linear and "weight" in layer.state_dict()
    register(layer, "weight", Symmetric())
    refused(ValueError, "may not change the shape of the tensor", register, layer, "weight", First())
    refused(ValueError, "must return a tensor. Got tuple", register, layer, "weight", pair)
    wrong = Twice()
    wrong.right_inverse = lambda x: (x, x)
    refused(ValueError, "parametrization.right_inverse must return a tensor. Got: tuple", register, layer, "weight", wrong)
    wrong.right_inverse = lambda x: x.double()
    refused(ValueError, "right_inverse must have the same dtype as module.weight", register, layer, "weight", wrong)
    assert len(layer.parametrizations.weight) == 1
    refused(RuntimeError, "parametrization Symmetric does not implement right_inverse.", setattr, layer, "weight",
            tc.ones(3, 3))
    refused(ValueError, "does not have a parametrization on bias", parametrize.remove_parametrizations, layer, "bias")
    register(layer, "weight", First(), unsafe=True)
    assert layer.weight.shape == (1, 3)


@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm(dim):
    layer = nn.Linear(3, 4)
    before = layer.weight.detach().clone()
    parametrizations.weight_norm(layer, dim=dim)
    assert list(layer.state_dict())[1:] == ["parametrizations.weight.original0", "parametrizations.weight.original1"]
    assert tc.allclose(layer.weight, before)
    with tc.no_grad():
        layer.parametrizations.weight.original0 *= 3
        layer.parametrizations.weight.original1 *= 5
    assert tc.allclose(layer.weight, 3 * before, atol=1e-6)
    layer.weight = before
    assert tc.allclose(layer.weight, before, atol=1e-6)


def test_the_power_method_of_spectral_norm():
    tc.manual_seed(2)
    layer = parametrizations.spectral_norm(nn.Linear(5, 7, dtype=tc.float64))
    weight, v = layer.parametrizations.weight.original.detach(), layer.parametrizations.weight[0]._v.clone()
    u = weight @ v / (weight @ v).norm()
    v = weight.T @ u / (weight.T @ u).norm()
    assert tc.allclose(layer.weight, weight / (u @ weight @ v))


@pytest.mark.parametrize("make, dim", [(lambda: nn.Linear(5, 7), 0), (lambda: nn.ConvTranspose2d(4, 3, 2), 1)])
def test_spectral_norm(make, dim):
    tc.manual_seed(1)
    layer = make()
    before = layer.weight.detach().clone()
    parametrizations.spectral_norm(layer, n_power_iterations=50)
    assert list(layer.state_dict())[1:] == ["parametrizations.weight.original", "parametrizations.weight.0._u",
                                            "parametrizations.weight.0._v"]
    largest = tc.linalg.matrix_norm(before.movedim(dim, 0).flatten(1), 2)
    assert tc.allclose(layer.weight, before / largest, atol=1e-4)
    layer.eval()
    u = layer.parametrizations.weight[0]._u.clone()
    assert tc.equal(layer.weight, layer.weight) and tc.equal(u, layer.parametrizations.weight[0]._u)
    layer.train()
    (layer.weight.sum() + layer.weight.sum()).backward()
    assert layer.parametrizations.weight.original.grad.abs().sum() > 0
    bias = parametrizations.spectral_norm(nn.Linear(3, 4), "bias").bias
    assert abs(bias.norm().item() - 1) < 1e-5
    refused(ValueError, "has no parameter or buffer with name 'other'", parametrizations.spectral_norm, layer, "other")
    refused(IndexError, "expected to be in range of [-2, 1] but got 3", parametrizations.spectral_norm, nn.Linear(3, 4),
            dim=3)
    refused(ValueError, "Expected n_power_iterations to be positive", parametrizations.spectral_norm, nn.Linear(3, 4),
            n_power_iterations=0)


def test_a_refused_assignment_changes_none_of_the_originals():
    class Halves(nn.Module):
        second = staticmethod(lambda x: x)

        def forward(self, a, b):
            return a + b

        def right_inverse(self, x):
            return x / 2, self.second(x / 2)

    layer, halves = nn.Linear(2, 2), Halves()
    parametrize.register_parametrization(layer, "weight", halves)
    before = layer.weight.tolist()
    halves.second = lambda x: x.double()
    with pytest.raises(ValueError, match="may not change the dtype"):
        layer.weight = tc.zeros(2, 2)
    assert layer.weight.tolist() == before


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3)])
@pytest.mark.parametrize("kind", [None, "matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivial", [True, False])
def test_orthogonal_weights(shape, kind, trivial):
    tc.manual_seed(0)
    layer = nn.Module()
    layer.weight = nn.Parameter(tc.randn(shape, dtype=tc.float64))
    if not trivial and (kind in ("matrix_exp", "cayley") or (kind is None and shape[-1] == shape[-2])):
        refused(NotImplementedError, "It is not possible to assign to the matrix exponential", parametrizations.orthogonal, layer,
                orthogonal_map=kind, use_trivialization=False)
        return
    before = layer.weight.detach().clone()
    parametrizations.orthogonal(layer, orthogonal_map=kind, use_trivialization=trivial)

    def has_orthonormal_columns(w):
        tall = w if w.size(-2) >= w.size(-1) else w.mT
        return tc.allclose(tall.mT @ tall, tc.eye(tall.size(-1), dtype=w.dtype), atol=1e-12)

    assert layer.weight.shape == shape and has_orthonormal_columns(layer.weight)
    q, _ = tc.linalg.qr(before if shape[-2] >= shape[-1] else before.mT)
    start = layer.weight if shape[-2] >= shape[-1] else layer.weight.mT
    assert tc.allclose((q.mT @ start).abs(), tc.eye(q.size(-1), dtype=q.dtype), atol=1e-9)  # but for signs, its QR factor
    optimizer = tc.optim.SGD(layer.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (layer.weight * before).sum().backward()
        optimizer.step()
    assert has_orthonormal_columns(layer.weight) and not tc.allclose(start, layer.weight if start is layer.weight else q)
    tc.nn.init.orthogonal_(value := tc.empty(shape[-2:], dtype=tc.float64))
    value = value.expand(shape).contiguous()
    layer.weight = value
    assert tc.allclose(layer.weight, value, atol=1e-9)
    parametrize.remove_parametrizations(layer, "weight")
    assert isinstance(layer.weight, nn.Parameter) and tc.allclose(layer.weight, value, atol=1e-9)


def test_unitary_weights():
    layer = nn.Module()
    layer.weight = nn.Parameter(tc.randn(4, 3, dtype=tc.complex128))
    parametrizations.orthogonal(layer)
    w = layer.weight
    assert layer.parametrizations.weight[0].orthogonal_map == "matrix_exp"
    assert tc.allclose(w.mH @ w, tc.eye(3, dtype=w.dtype), atol=1e-12)
    refused(ValueError, "Expected a matrix or batch of matrices of shape", setattr, layer, "weight",
            tc.eye(3, dtype=tc.complex128))


def test_what_orthogonal_refuses():
    layer = nn.Linear(3, 3)
    refused(ValueError, "has no parameter or buffer with name 'w'", parametrizations.orthogonal, layer, "w")
    refused(ValueError, "Expected a matrix or batch of matrices. Got a tensor of 1 dimensions.", parametrizations.orthogonal,
            layer, "bias")
    refused(ValueError, 'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: qr',
            parametrizations.orthogonal, layer, "weight", "qr")
    layer.weight = nn.Parameter(tc.zeros(3, 3, dtype=tc.complex64))
    refused(ValueError, "does not support complex tensors", parametrizations.orthogonal, layer, "weight", "householder")
