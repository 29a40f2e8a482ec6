"""Derivatives of single operations: missing ones, and those with special rules; Jacobians."""

import pytest

import tercel as tc


def leaf(*values):
    return tc.tensor(values, dtype=tc.float64, requires_grad=True)


@pytest.mark.parametrize("op, call", [
    ("_unique2", lambda x: tc.unique(x)),
    ("_unique2", lambda x: tc.unique(x, return_inverse=True, return_counts=True)),
    ("unique_dim", lambda x: tc.unique(x.view(2, 2), dim=0)),
    ("unique_consecutive", lambda x: tc.unique_consecutive(x)),
    ("unique_consecutive", lambda x: tc.unique_consecutive(x.view(2, 2), dim=0)),
    ("histogram", lambda x: tc.histogram(x, 3)),
    ("histogram", lambda x: tc.histogram(x.detach(), 3, weight=x)),
    ("bincount", lambda x: tc.bincount(tc.tensor([0, 1, 1, 0]), x)),
    ("binomial", lambda x: tc.binomial(tc.ones_like(x), x)),
    ("geqrf", lambda x: tc.geqrf(x.view(2, 2))),
    ("linalg_ldl_factor_ex", lambda x: tc.linalg.ldl_factor(x.view(2, 2))),
    ("linalg_ldl_solve", lambda x: tc.linalg.ldl_solve(x.view(2, 2), tc.tensor([1, 2], dtype=tc.int32), tc.ones(2, 2).double())),
    ("heaviside", lambda x: tc.heaviside(x, tc.zeros_like(x))),
])
def test_derivatives_that_are_not_there(op, call):
    x = leaf(0.1, 0.4, 0.2, 0.3)
    out = call(x)
    for part in out if isinstance(out, tuple) else (out,):
        assert part.requires_grad == part.is_floating_point()
    with pytest.raises(NotImplementedError, match=f"the derivative for .*'{op}' is not implemented"):
        (out[0] if isinstance(out, tuple) else out).sum().backward()
    with tc.no_grad():
        out = call(x)
        assert not (out[0] if isinstance(out, tuple) else out).requires_grad


def test_arguments_that_get_no_gradient():
    scores, weight = tc.randn(2, 4), tc.ones(4, requires_grad=True)
    target = tc.tensor([0, 3])
    F = tc.nn.functional
    for op, call in [("nll_loss_forward", lambda: F.nll_loss(scores, target, weight)),
                     ("nll_loss_forward", lambda: F.cross_entropy(scores, target, weight)),
                     ("nll_loss2d_forward", lambda: F.nll_loss(scores.view(1, 4, 2), tc.zeros(1, 2).long(), weight)),
                     ("multi_margin_loss", lambda: F.multi_margin_loss(scores, target, weight=weight))]:
        with pytest.raises(RuntimeError, match=f"The function '{op}' is not differentiable with respect to argument "
                                               "'weight'. This input cannot have requires_grad True."):
            call()
        with tc.no_grad():
            call()
    for name in ("running_mean", "running_var"):
        state = {"running_mean": tc.zeros(4), "running_var": tc.ones(4), name: weight}
        with pytest.raises(RuntimeError, match=f"'native_batch_norm' is not differentiable .* argument '{name}'"):
            F.batch_norm(scores, **state)


def test_gradients_of_the_q_of_quantiles():
    x = tc.tensor([4.0, 1.0, 8.0, 2.0], dtype=tc.float64)
    q = leaf(0.1, 0.5, 0.9)
    for function in (tc.quantile, tc.nanquantile):
        (g,) = tc.autograd.grad(function(x, q).sum(), q)
        assert tc.allclose(g, 3 * tc.tensor([1.0, 2.0, 4.0]).double())  # the steps between neighbours, three of them
        assert tc.autograd.gradcheck(lambda q: function(x.view(2, 2), q, dim=1), q)
        assert not function(x, q, interpolation="lower").requires_grad
    gap = tc.tensor([1.0, float("nan"), 3.0], dtype=tc.float64)
    (g,) = tc.autograd.grad(tc.nanquantile(gap, q).sum(), q)
    assert g.tolist() == [2, 2, 2]


def test_jacobians_by_old_names():
    from tercel.autograd.gradcheck import get_analytical_jacobian, get_numerical_jacobian

    a, b = leaf(1, 2), leaf(3, 4)
    want = [tc.diag(b.detach()), tc.diag(a.detach())]
    with pytest.warns(UserWarning, match="get_numerical_jacobian was part of PyTorch's private API"):
        found = get_numerical_jacobian(lambda given: (given[0] * given[1], given[0]), (a, b))
    assert all(map(tc.allclose, found, want))
    with pytest.warns(UserWarning):
        found = get_numerical_jacobian(lambda given: given[0] * given[1], (a, b), target=b)
    assert len(found) == 1 and tc.allclose(found[0], want[1])
    with pytest.warns(UserWarning, match="get_analytical_jacobian was part of PyTorch's private API"):
        found, *fine = get_analytical_jacobian((a, b), a * b)
    assert all(map(tc.equal, found, want)) and fine == [True, True, True]
    with pytest.warns(UserWarning):
        x = leaf(1, 2)
        x.register_hook(lambda g: g + tc.rand_like(g))
        assert get_analytical_jacobian(x, x * 2)[1] is False
    for function, arguments in ((get_numerical_jacobian, (tc.exp, a)), (get_analytical_jacobian, (a, a * b))):
        with pytest.warns(UserWarning), pytest.raises(ValueError, match="Expected grad_out to be 1.0"):
            function(*arguments, grad_out=2.0)


@pytest.mark.parametrize("reduce", ["max", "min"])
def test_gradients_of_the_extremes_of_segments(reduce):
    nan = float("nan")
    x = leaf(1, nan, 3, 3, 3, 2, nan, nan, 9)
    lengths = tc.tensor([2, 3, 1, 0, 2])
    out = tc.segment_reduce(x, reduce, lengths=lengths, unsafe=True)
    out.backward(tc.arange(1.0, 6.0).double())
    assert x.grad.tolist() == [0, 1] + [2 / 3] * 3 + [3, 2.5, 2.5, 0], "all that are largest, or no numbers, share"
    y = leaf(1, 2, 5)
    start = {"max": 5.0, "min": 1.0}[reduce]
    (g,) = tc.autograd.grad(tc.segment_reduce(y, reduce, lengths=tc.tensor([2, 1]), initial=start).sum(), y)
    assert g.tolist() == {"max": [0, 0, 1], "min": [1, 0, 0]}[reduce], "the initial value takes no share"
    z = tc.randn(2, 5, 3, dtype=tc.float64, requires_grad=True)
    each = tc.tensor([[2, 0, 3], [1, 3, 1]])
    call = lambda t: tc.segment_reduce(t, reduce, lengths=each, axis=1, initial=0.0)  # noqa: E731
    assert tc.autograd.gradcheck(call, z) and tc.autograd.gradgradcheck(call, z)


def test_gradients_of_products_of_segments_with_nan():
    nan = float("nan")
    x = leaf(2, nan, 3, 0, nan, 4, nan, nan, 5, 7)
    out = tc.segment_reduce(x, "prod", lengths=tc.tensor([3, 3, 2, 2, 0]), initial=10.0)
    out.backward(tc.tensor([1.0, 1, 1, 2, 1]).double())
    want = [nan, 60, nan, nan, 0, nan, nan, nan, 140, 100]
    assert str(x.grad.tolist()) == str([float(g) for g in want]), "the product of the others, which may be a number"


def test_products_of_segments_beside_nan_have_second_derivatives_and_tangents():
    x = leaf(2, 3, float("nan"), 5)
    lengths = tc.tensor([2, 2])
    (g,) = tc.autograd.grad(tc.segment_reduce(x, "prod", lengths=lengths)[0], x, create_graph=True)
    assert tc.autograd.grad(g[0], x)[0].tolist() == [0, 1, 0, 0]
    with tc.autograd.forward_ad.dual_level():
        dual = tc.autograd.forward_ad.make_dual(x.detach(), tc.ones_like(x.detach()))
        y = tc.segment_reduce(dual, "prod", lengths=lengths)
        assert tc.autograd.forward_ad.unpack_dual(y).tangent[0].item() == 5
