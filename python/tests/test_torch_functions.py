"""Functions and module paths that PyTorch programs use outside of nn.functional and nn; eigenvectors of large matrices."""

import collections
import importlib

import numpy as np
import pytest

import tercel as tc
from tercel import nn
from tercel.autograd.graph import GradientEdge, get_gradient_edge

F = nn.functional


def test_losses_by_numbers_of_reductions():
    x, y = tc.randn(4, 3), tc.randn(4, 3)
    sign, third = tc.tensor([1.0, -1, 1, -1]), tc.randn(4, 3)
    calls = {
        "binary_cross_entropy_with_logits": ((x, y.sigmoid()), ()), "cosine_embedding_loss": ((x, y, sign), (0.5,)),
        "hinge_embedding_loss": ((x, y.sign()), (0.5,)), "margin_ranking_loss": ((x, y, third.sign()), (0.5,)),
        "triplet_margin_loss": ((x, y, third), (0.5,)),
    }
    for name, (tensors, margin) in calls.items():
        options = {"margin": margin[0]} if margin else {}
        for number, word in enumerate(("none", "mean", "sum")):
            want = getattr(F, name)(*tensors, reduction=word, **options)
            assert tc.equal(getattr(tc, name)(*tensors, *margin, reduction=number), want)
    assert tc.allclose(tc.kl_div(x.log_softmax(1), y.softmax(1)), F.kl_div(x.log_softmax(1), y.softmax(1), reduction="none").mean())
    assert tc.poisson_nll_loss(x, y.exp(), True, False, 1e-8, 2) == F.poisson_nll_loss(x, y.exp(), reduction="sum")
    log_probs, lengths = tc.randn(5, 1, 3).log_softmax(2), (tc.tensor([5]), tc.tensor([2]))
    assert tc.ctc_loss(log_probs, tc.tensor([[1, 2]]), *lengths) == F.ctc_loss(log_probs, tc.tensor([[1, 2]]), *lengths)
    with pytest.raises(RuntimeError, match="expected reduction to be 0"):
        tc.kl_div(x, y, "mean")


def test_layers_with_all_their_arguments():
    x, weight, bias = tc.randn(2, 4, 3, 3), tc.randn(4), tc.randn(4)
    mean, var = tc.randn(4), tc.rand(4) + 1
    assert tc.equal(tc.batch_norm(x, weight, bias, mean, var, False, 0.1, 1e-5, True), F.batch_norm(x, mean, var, weight, bias))
    assert tc.equal(tc.instance_norm(x, weight, bias, None, None, True, 0.1, 1e-5, True),
                    F.instance_norm(x, weight=weight, bias=bias))
    assert tc.equal(tc.convolution(x, tc.ones(2, 4, 2, 2), None, [1, 1], [1, 0], [1, 2], False, [0, 0], 1),
                    F.conv2d(x, tc.ones(2, 4, 2, 2), padding=(1, 0), dilation=(1, 2)))
    assert tc.equal(tc.convolution(x, tc.ones(4, 1, 2, 2), None, [2, 2], [0, 0], [1, 1], True, [1, 0], 2),
                    F.conv_transpose2d(x, tc.ones(4, 1, 2, 2), stride=2, output_padding=(1, 0), groups=2))
    assert tc.allclose(tc.norm_except_dim(x, 2, 1), x.norm(dim=(0, 2, 3), keepdim=True))
    assert tc.norm_except_dim(x, 1, -1) == x.norm(1)


def test_norms_with_their_moments():
    x = tc.randn(2, 4, 3, 3, dtype=tc.float64)
    out, mean, rstd = tc.native_layer_norm(x, (3, 3), None, None, 0.1)
    assert tc.allclose(out, (x - mean) * rstd) and mean.shape == rstd.shape == (2, 4, 1, 1)
    out, mean, rstd = tc.native_group_norm(x, None, None, 2, 4, 9, 2, 0.1)
    assert tc.allclose(out, ((x.view(2, 2, -1) - mean[..., None]) * rstd[..., None]).view_as(x))
    out, mean, rstd = tc.native_batch_norm(x, None, None, None, None, True, 0.1, 0.1)
    assert tc.allclose(out, (x - mean.view(4, 1, 1)) * rstd.view(4, 1, 1))
    out, *nothing = tc.native_batch_norm(x, None, None, mean, mean**2, False, 0.1, 0.1)
    assert [t.shape for t in nothing] == [(0,), (0,)] and out.shape == x.shape


def test_droppings():
    tc.manual_seed(0)
    x = tc.ones(40, 50, 2)
    out, mask = tc.native_dropout(x, 0.25, True)
    assert tc.allclose(out, mask / 0.75) and 0.7 < mask.float().mean() < 0.8
    assert tc.native_dropout(x, 1.0, True)[0].sum() == 0
    out, mask = tc.native_dropout(x, 0.25, False)
    assert tc.equal(out, x) and out is not x and mask.all()
    out = tc.feature_dropout(x, 0.5, True)
    assert set(out.flatten().tolist()) == {0.0, 2.0} and tc.equal(out[..., 0], out[..., 1])
    for name in ("dropout_", "alpha_dropout_", "feature_dropout_", "feature_alpha_dropout_"):
        y = x.clone()
        assert getattr(tc, name)(y, 0.5, True) is y and not tc.equal(y, x)
    assert tc.alpha_dropout(x, 0.5, False).equal(x) and tc.feature_alpha_dropout(x, 0.5, True).shape == x.shape
    with pytest.raises(RuntimeError, match="Feature dropout requires at least 2 dimensions in the input"):
        tc.feature_dropout(tc.ones(3), 0.5, True)


def test_methods_as_functions():
    assert tc.gcd_(tc.tensor([4]), tc.tensor([6])).item() == 2 and tc.lcm_(tc.tensor([4]), tc.tensor([6])).item() == 12
    x = tc.ones(2)
    assert tc.addmv_(x, tc.ones(2, 3), tc.ones(3)) is x and x.tolist() == [4, 4]
    assert tc.xlogy_(x, tc.ones(2)).tolist() == [0, 0] and tc.as_strided_(x, (1,), (1,), 1).shape == (1,)
    assert [p.tolist() for p in tc.unsafe_chunk(tc.arange(3), 2)] == [[0, 1], [2]] == [p.tolist() for p in tc.unsafe_split(tc.arange(3), 2)]
    assert tc.unsafe_split_with_sizes(tc.arange(3), [1, 2])[1].tolist() == [1, 2]
    z = tc.tensor([[1.0, 2.0]])
    assert tc.view_as_complex_copy(z).item() == 1 + 2j and tc.view_as_complex_copy(z).data_ptr() != z.data_ptr()
    out = tc.empty(0)
    assert tc.view_as_real_copy(tc.tensor([1 + 2j]), out=out) is out and out.tolist() == [[1, 2]]


@pytest.mark.parametrize("path, name", [
    ("batchnorm", "_BatchNorm"), ("conv", "_ConvNd"), ("loss", "_Loss"), ("module", "Module"), ("activation", "ReLU"),
    ("pooling", "MaxPool2d"), ("dropout", "Dropout"), ("container", "Sequential"), ("normalization", "LayerNorm"),
    ("sparse", "Embedding"), ("distance", "CosineSimilarity"), ("upsampling", "Upsample"), ("transformer", "Transformer"),
])
def test_paths_of_layers(path, name):
    module = importlib.import_module(f"tercel.nn.modules.{path}")
    assert getattr(module, name) and getattr(nn.modules, path) is module
    if not name.startswith("_"):
        assert getattr(nn.modules, name) is getattr(nn, name) is getattr(module, name)


def test_helpers_of_layers():
    from tercel.nn.modules.utils import _pair, _reverse_repeat_tuple, _triple, consume_prefix_in_state_dict_if_present
    assert _pair(3) == (3, 3) and _pair([1, 2]) == (1, 2) and _triple(1) == (1, 1, 1)
    assert _reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
    state = collections.OrderedDict({"module.weight": 1, "other": 2})
    state._metadata = {"": 0, "module": 1, "module.a": 2}
    consume_prefix_in_state_dict_if_present(state, "module.")
    assert dict(state) == {"weight": 1, "other": 2} and state._metadata == {"": 1, "a": 2}


def test_gradients_at_edges_of_the_graph():
    x = tc.ones(2, requires_grad=True)
    y = x * 2
    z = (y * 3).sum()
    edge = get_gradient_edge(y)
    assert tc.autograd.grad(z, edge, retain_graph=True)[0].tolist() == [3, 3]
    assert tc.autograd.grad(edge, x, grad_outputs=tc.tensor([1.0, 5]), retain_graph=True)[0].tolist() == [2, 10]
    assert tc.autograd.grad(z, [GradientEdge(y.grad_fn, 0), get_gradient_edge(x)], retain_graph=True)[1].tolist() == [6, 6]
    other = get_gradient_edge(x * 4)
    assert tc.autograd.grad(z, other, allow_unused=True, retain_graph=True) == (None,)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for"):
        tc.autograd.grad(edge, x)
    with pytest.raises(RuntimeError, match="materialize_grads cannot be used when the given input is a GradientEdge"):
        tc.autograd.grad(z, edge, materialize_grads=True)


def test_names_of_functions():
    found = tc.overrides.get_overridable_functions()
    assert tc.add in found[tc] and tc.Tensor.add in found[tc.Tensor] and F.relu in found[F] and tc.linalg.qr in found[tc.linalg]
    assert tc.overrides.resolve_name(tc.Tensor.add) == "tercel.Tensor.add" and tc.overrides.resolve_name(tc.sin) == "tercel.sin"
    assert tc.overrides.resolve_name(F.cross_entropy) == "tercel.nn.functional.cross_entropy"
    assert tc.overrides.resolve_name(print) is None


def symmetric(*sizes):
    a = tc.randn(*sizes, dtype=tc.float64)
    return a @ a.mT


def test_a_few_eigenvectors():
    tc.manual_seed(0)
    a = symmetric(2, 40, 40)
    every = tc.linalg.eigvalsh(a)
    for largest, want in ((True, every.flip(-1)[..., :3]), (None, every.flip(-1)[..., :3]), (False, every[..., :3])):
        values, vectors = tc.lobpcg(a, 3, largest=largest, niter=-1, tol=1e-9)
        np.testing.assert_allclose(values.numpy(), want.numpy(), rtol=1e-6, atol=1e-9)
        assert tc.allclose(a @ vectors, vectors * values.unsqueeze(-2), atol=1e-5)
        assert tc.allclose(vectors.mT @ vectors, tc.eye(3).double().expand(2, 3, 3), atol=1e-9)


def test_eigenvectors_of_pairs_of_matrices():
    tc.manual_seed(0)
    a, b = symmetric(30, 30), symmetric(30, 30) + 30 * tc.eye(30).double()
    steps = []
    values, vectors = tc.lobpcg(a, 2, B=b, iK=tc.linalg.inv(a + tc.eye(30)), niter=-1, tracker=lambda s: steps.append(s.istep))
    lower = tc.linalg.inv(tc.linalg.cholesky(b))
    np.testing.assert_allclose(values.numpy(), tc.linalg.eigvalsh(lower @ a @ lower.mT).flip(0)[:2].numpy(), rtol=1e-6)
    assert tc.allclose(a @ vectors, b @ vectors * values, atol=1e-3) and steps == list(range(len(steps)))
    guess, found = vectors + 1e-9, []
    tc.lobpcg(a, X=guess, B=b, tracker=lambda s: found.append(s.converged_count))
    assert len(found) <= 3 and found[-1] == 2
    assert len(steps) > 3 and tc.lobpcg(a, 1, niter=0)[0].shape == (1,)


def test_gradients_of_a_few_eigenvectors():
    tc.manual_seed(0)
    s = tc.randn(9, 9, dtype=tc.float64, requires_grad=True)

    def pairs(s):
        values, vectors = tc.lobpcg(s + s.mT, 2, niter=-1, tol=1e-13)
        return values, vectors**2

    assert tc.autograd.gradcheck(pairs, (s,), atol=1e-5)
    with pytest.raises(RuntimeError, match="gradients are supported for A only"):
        tc.lobpcg(s + s.mT, B=tc.eye(9).double())
    for error, sentence, call in [(ValueError, "smaller than 3 x the number", lambda: tc.lobpcg(tc.eye(5), 2)),
                                  (ValueError, "real square matrices", lambda: tc.lobpcg(tc.ones(3, 4))),
                                  (ValueError, "method has to be", lambda: tc.lobpcg(tc.eye(5), method="lanczos"))]:
        with pytest.raises(error, match=sentence):
            call()
