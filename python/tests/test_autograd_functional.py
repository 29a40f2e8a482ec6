"""Jacobians, Hessians, products with them, and the checks of gradients."""

import pytest

import tercel as tc
from tercel.autograd import functional as F
from tercel.autograd import gradcheck, gradgradcheck
from tercel.autograd.gradcheck import GradcheckError


def leaf(*values):
    return tc.tensor(values, dtype=tc.float64, requires_grad=True)


X, V = tc.tensor([1.0, 2.0, 3.0]), tc.tensor([1.0, 10.0, 100.0])


def test_products():
    out, product = F.vjp(lambda x: x ** 2, X, V)
    assert out.tolist() == [1, 4, 9] and product.tolist() == [2, 40, 600] and not product.requires_grad
    out, product = F.jvp(lambda x: (x.sum(), x ** 2), X, V)
    assert [o.tolist() for o in product] == [111, [2, 40, 600]]
    out, product = F.vjp(lambda x, y: (x * y).sum(), (X, V))
    assert product[0].tolist() == V.tolist() and product[1].tolist() == X.tolist()
    for f in (F.vhp, F.hvp):
        out, product = f(lambda x: (x ** 3).sum(), X, V)
        assert out.item() == 36 and product.tolist() == [6, 120, 1800]


def test_jacobian_and_hessian():
    assert F.jacobian(lambda x: x ** 2, X).tolist() == [[2, 0, 0], [0, 4, 0], [0, 0, 6]]
    both = F.jacobian(lambda x, y: (x.sum(), x * y), (X, V))
    assert [[j.shape for j in row] for row in both] == [[(3,), (3,)], [(3, 3), (3, 3)]]
    assert both[1][1].diagonal().tolist() == X.tolist() and both[0][1].tolist() == [0, 0, 0]
    assert F.hessian(lambda x: (x ** 3).sum(), X, vectorize=True).tolist() == [[6, 0, 0], [0, 12, 0], [0, 0, 18]]
    mixed = F.hessian(lambda x, y: (x * y).sum(), (X, V))
    assert mixed[0][1].tolist() == tc.eye(3).tolist() and mixed[0][0].abs().sum() == 0
    x = leaf(1, 2)
    F.jacobian(lambda t: t ** 3, x, create_graph=True).sum().backward()
    assert x.grad.tolist() == [6, 12]
    assert gradcheck(lambda t: F.hessian(lambda s: (s ** 4).sum(), t, create_graph=True), x)


@pytest.mark.parametrize("call, error, sentence", [
    (lambda: F.vjp(lambda x: x, (X, 3), V), TypeError, "the value at index 1 has type <class 'int'>"),
    (lambda: F.vjp(lambda x: 3, X), TypeError, "given outputs of the user-provided function has type <class 'int'>"),
    (lambda: F.vjp(lambda x: x, X), RuntimeError, "can only be None if the user-provided function returns a single"),
    (lambda: F.jvp(lambda x: x, X), RuntimeError, "can only be None if the input to the user-provided function"),
    (lambda: F.vjp(lambda x: x, X, (V, V)), RuntimeError, "The given v should contain a single Tensor."),
    (lambda: F.vjp(lambda x: (x, x), X, V), RuntimeError, "v is a tuple of invalid length: should be 2 but got 1"),
    (lambda: F.vjp(lambda x: x, X, V[:2]), RuntimeError, "v has invalid size"),
    (lambda: F.vjp(lambda x: V, X, V, strict=True), RuntimeError, "Output 0 of .* does not require gradients"),
    (lambda: F.vjp(lambda x, y: x, (X, X), V, strict=True), RuntimeError, "is independent of input 1"),
    (lambda: F.jacobian(lambda x, y: x, (X, X), strict=True), RuntimeError, "Output 0 of .* is independent of input 1"),
    (lambda: F.hessian(lambda x: x, X), RuntimeError, "should contain a single element"),
    (lambda: F.vhp(lambda x: (x.sum(), x.sum()), X, V), RuntimeError, "should return a single Tensor"),
    (lambda: F.hvp(lambda x: x.sum(), X, V, strict=True), RuntimeError, "jacobian of the .* with respect to input 0 is"),
    (lambda: F.jacobian(lambda x: x, X, strict=True, vectorize=True), RuntimeError, "not supported together"),
])
def test_errors(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()


class Wrong(tc.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 3


class Constant(tc.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 0 + 2


def test_gradcheck():
    x = leaf(0.5, 2)
    assert gradcheck(lambda t: (t * t, t.exp()), x) and gradcheck(lambda t: t * t, x, fast_mode=True)
    assert gradcheck(lambda t: tc.ones(2, dtype=tc.float64), x)
    for fast in (True, False):
        with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
            gradcheck(Wrong.apply, x, fast_mode=fast)
    assert gradcheck(Wrong.apply, x, raise_exception=False) is False
    with pytest.raises(GradcheckError, match="not multiplied by grad_output"):
        gradcheck(lambda t: Constant.apply(t), leaf(1))
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(lambda t: t, tc.ones(1))
    with pytest.raises(RuntimeError, match="The 0th input has a dimension with stride 0"):
        gradcheck(lambda t: t, leaf(1).detach().expand(3).requires_grad_())
    with pytest.warns(UserWarning, match="not a double precision"):
        gradcheck(lambda t: t * 2, tc.ones(1, requires_grad=True), atol=1)
    with pytest.raises(AssertionError, match="outputs with the same shape when inputs are perturbed"):
        gradcheck(lambda t: t if t[0] >= 0.5 else t[:1], x)
    with pytest.raises(NotImplementedError, match="check_batched_grad"):
        gradcheck(lambda t: t, x, check_batched_grad=True)
    with pytest.raises(GradcheckError, match="Numerical gradient for function expected to be zero"):
        gradcheck(lambda t: t.detach() * 2, x)


def test_gradgradcheck():
    x = leaf(0.5, 2)
    assert gradgradcheck(lambda t: t.sin() * t, x) and gradgradcheck(lambda t: t ** 3, x, leaf(1, 1), fast_mode=True)
    assert gradgradcheck(lambda t: t ** 3, x, gen_non_contig_grad_outputs=True)
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradgradcheck(lambda t: t * t.detach() * t, x)
