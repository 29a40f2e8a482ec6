"""Values, dtypes and errors that once differed from PyTorch 2.15; expected results are PyTorch's."""

import math

import numpy as np
import pytest

import tercel as tc
import tercel.nn.functional as F
from tercel import masked

INF, NAN = math.inf, math.nan


def test_a_number_is_filled_in_as_exactly_as_the_dtype_holds_it():
    place = tc.tensor([0])
    assert tc.zeros(1, dtype=tc.float64).index_fill(0, place, 0.1).item() == 0.1
    assert tc.zeros(1, dtype=tc.float64).index_fill_(0, place, -1 / 3).item() == -1 / 3
    assert tc.zeros(1, dtype=tc.int64).index_fill(0, place, 2**53 + 1).item() == 2**53 + 1


def test_ldexp_of_integers_keeps_the_dtype_and_does_not_overflow_on_the_way():
    for dtype in (tc.bfloat16, tc.float16, tc.float32, tc.float64):
        out = tc.ldexp(tc.tensor([1.0, 2.0], dtype=dtype), tc.tensor([1, 2], dtype=tc.int32))
        assert out.dtype is dtype and out.tolist() == [2.0, 8.0]
    assert tc.ldexp(tc.tensor([1, 2]), tc.tensor([1, 2])).dtype is tc.float32
    assert tc.ldexp(tc.tensor([1e-30]), tc.tensor([140])).item() == np.float32(math.ldexp(np.float32(1e-30), 140))
    assert tc.ldexp(tc.tensor([1e-300], dtype=tc.float64), tc.tensor([1100])).item() == math.ldexp(1e-300, 1100)
    x = tc.tensor([1.5, -2.0], requires_grad=True)
    tc.ldexp(x, tc.tensor([3, -1])).sum().backward()
    assert x.grad.tolist() == [8.0, 0.5]
    with pytest.raises(RuntimeError, match="ldexp can't be cast to the desired output type Long"):
        tc.tensor([1]).ldexp_(tc.tensor([2]))


def test_bounds_of_logit_that_cross():
    x = tc.tensor([0.1, 0.5, 0.7, 0.9], dtype=tc.float64)
    np.testing.assert_allclose(tc.logit(x, 0.6).numpy(), np.log([1.5, 1.5, 2 / 3, 2 / 3]))


def test_threshold_of_integers_stays_integer():
    x = tc.tensor([1, 2, 3])
    assert F.threshold(x, 2, 7.9).tolist() == [7, 7, 3] and F.threshold(x, 2.5, 7).dtype is tc.int64
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
        F.threshold(x.to(tc.uint8), 2, -300)


def test_weights_have_a_part_in_the_dtype_of_cov():
    assert tc.cov(tc.tensor([1.0, 2.0], dtype=tc.bfloat16), aweights=tc.tensor([0.5, 1.0])).dtype is tc.float32
    assert tc.cov(tc.tensor([1, 2]), aweights=tc.tensor([0.5, 1.0], dtype=tc.float64)).dtype is tc.float64
    with pytest.raises(RuntimeError, match="expected fweights to have one or fewer dimensions but got fweights with 2"):
        tc.cov(tc.ones(2), fweights=tc.ones(2, 2))


def test_bessel_functions_of_infinity():
    x = tc.tensor([INF, -INF], dtype=tc.float64)
    for name in ("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "airy_ai"):
        assert all(math.isnan(v) for v in getattr(tc.special, name)(x).tolist()), name


def test_degrees_of_polynomials_are_cut_off():
    n = tc.tensor([-0.5, -1.0, -1.5, 0.5, 1.5])
    assert tc.special.chebyshev_polynomial_t(tc.tensor(2.0), n).tolist() == [1, 0, 0, 1, 2]
    assert tc.special.hermite_polynomial_h(tc.tensor(2.0), n).tolist() == [1, 0, 0, 1, 4]


def test_masked_operations_of_integers_and_of_complex_numbers():
    x, mask = tc.tensor([3, 1, 2], dtype=tc.int8), tc.tensor([True, False, True])
    assert masked.cumsum(x, 0, mask=mask).dtype is tc.int8 and masked.cumsum(x, 0, mask=mask).tolist() == [3, 3, 5]
    assert masked.cumprod(x, 0).dtype is tc.int8 and masked.cumprod(x, 0, dtype=tc.float32).dtype is tc.float32
    assert masked.median(x, 0).dtype is tc.int8 and masked.median(x, 0, mask=mask).item() == 2
    assert masked.median(x, 0, mask=mask).dtype is tc.int8
    with pytest.raises(ValueError, match="masked median expects no fully masked out rows"):
        masked.median(x, 0, mask=tc.zeros(3, dtype=tc.bool))
    with pytest.raises(ValueError, match="Input dtype must be either a floating point or complex dtype. Got: tercel.int8"):
        masked.mean(x, 0)
    assert masked.mean(x, 0, dtype=tc.float32).item() == 2
    z = tc.tensor([1 + 2j, 3 - 1j], dtype=tc.complex128)
    assert tc.allclose(masked.logsumexp(z, 0), z.exp().sum().log())
    assert tc.allclose(masked.logsumexp(z, 0, mask=tc.tensor([True, False])), z[0])


def test_shapes():
    assert tc.linalg.vander(tc.tensor(2.0), N=3).tolist() == [[1.0, 2.0, 4.0]]
    x = tc.ones(5, 4, 3).permute(0, 2, 1)
    assert tc.view_copy(x, (15, 4)).shape == (15, 4)
    assert F.multi_margin_loss(tc.tensor(1.0), tc.tensor(0)).item() == 0


def test_distances_of_nothing_have_a_gradient():
    x = tc.zeros(0, 3, requires_grad=True)
    out = tc.cdist(x, tc.ones(2, 3))
    assert out.requires_grad and out.shape == (0, 2)
    out.sum().backward()
    assert x.grad.shape == (0, 3)
    y = tc.ones(1, 3, requires_grad=True)
    assert F.pdist(y).requires_grad and F.pdist(y).shape == (0,)


@pytest.mark.parametrize("call", [
    lambda x, out: F.softplus(x, 2, out=out), lambda x, out: F.gelu(x, out=out), lambda x, out: F.logsigmoid(x, out=out),
    lambda x, out: F.hardshrink(x, 0.1, out=out), lambda x, out: F.softshrink(x, out=out),
    lambda x, out: F.linear(x, tc.ones(3, 4), out=out), lambda x, out: F.avg_pool2d(x.view(1, 2, 4), 2, out=out),
    lambda x, out: F.avg_pool3d(x.view(1, 1, 2, 4), (1, 2, 2), out=out),
])
def test_functions_of_networks_take_out(call):
    x = tc.linspace(-2, 2, 8).view(2, 4)
    expected, out = call(x, None), tc.empty(0)
    assert call(x, out) is out and out.tolist() == expected.tolist()


Z = tc.ones(2, dtype=tc.complex64)
B = tc.ones(2, dtype=tc.bool)


@pytest.mark.parametrize("call,error,sentence", [
    (lambda: tc.maximum(Z, Z), TypeError, "maximum not implemented for complex tensors."),
    (lambda: tc.fmin(Z, Z), TypeError, "fmin not implemented for complex tensors."),
    (lambda: Z.max(0), TypeError, "max(): does not support complex input"),
    (lambda: Z.argmin(), TypeError, "argmin(): does not support complex input"),
    (lambda: Z.sort(), TypeError, "Sort does not support complex dtypes on CPU"),
    (lambda: tc.isposinf(Z), TypeError, "isposinf does not support complex inputs."),
    (lambda: tc.view_as_real(tc.ones(2)), TypeError, "view_as_real is only supported for complex tensors"),
    (lambda: tc.view_as_complex(Z), TypeError, "view_as_complex is not supported for complex tensors"),
    (lambda: tc.ones(2).imag, TypeError, "imag is not implemented for tensors with non-complex dtypes."),
    (lambda: tc.unravel_index(tc.ones(2), (2, 2)), TypeError, "expected 'indices' to be integer dtype"),
    (lambda: tc.cat([]), ValueError, "expected a non-empty list of Tensors"),
    (lambda: tc.complex(tc.ones(2), tc.ones(2).int()), NotImplementedError, "Expected both inputs to be Half, Float or Double"),
    (lambda: +B, NotImplementedError, "The `+` operator, on a bool tensor is not supported."),
    (lambda: B.mean(), NotImplementedError, "mean(): could not infer output dtype."),
    (lambda: B.var(), NotImplementedError, "std and var only support floating point and complex dtypes"),
    (lambda: tc.cov(B), NotImplementedError, "cov(): bool dtype is not supported for input"),
    (lambda: tc.trapezoid(B), NotImplementedError, "received a bool input for `y`, but bool is not supported"),
    (lambda: tc.arange(0, -3, 2), RuntimeError, "upper bound and lower bound inconsistent with step sign"),
    (lambda: F.max_pool2d(tc.ones(1, 4, 4), 2, padding=2), RuntimeError, "pad should be at most half of effective kernel size"),
    (lambda: F.poisson_nll_loss(Z.real, Z.real, reduction="abc"), ValueError, "abc is not a valid value for reduction"),
    (lambda: F.group_norm(tc.ones(1, 0, 2), 1), RuntimeError, "Expected number of channels to be greater than 0, got 0"),
    (lambda: F.group_norm(tc.ones(1, 2, 0), 1), RuntimeError, "Expected HxW to be greater than 0, got 0"),
    (lambda: tc.multinomial(tc.ones(2).int(), 1), RuntimeError, "only supports floating-point dtypes for input, got: Int"),
    (lambda: tc.multinomial(tc.tensor([1.0, -1.0, NAN]), 1, True), RuntimeError, "probability entry < 0"),
    (lambda: tc.zeros(2).masked_fill(B, tc.tensor(1j)), RuntimeError, "value cannot be converted to type float without overflow"),
    (lambda: tc.zeros(2).masked_fill(B, tc.ones(1)), RuntimeError, "masked_fill_ only supports a 0-dimensional value tensor"),
])
def test_refusals(call, error, sentence):
    with pytest.raises(error) as raised:
        call()
    assert sentence in str(raised.value)


def test_factories_resize_out_without_a_warning(recwarn):
    for make in (lambda out: tc.ones(3, out=out), lambda out: tc.zeros(3, out=out), lambda out: tc.full((3,), 2, out=out),
                 lambda out: tc.empty(3, out=out), lambda out: tc.rand(3, out=out), lambda out: tc.randn(3, out=out),
                 lambda out: tc.randint(5, (3,), out=out), lambda out: tc.eye(3, 1, out=out)):
        out = tc.zeros(2, 2)
        assert make(out) is out and out.numel() == 3
    assert not recwarn.list
    turned = tc.zeros(2, 3).t()
    assert tc.ones(3, 2, out=turned).stride() == (1, 3)
    with pytest.raises(RuntimeError, match="requires? grad|automatic differentiation"):
        tc.ones(3, out=tc.zeros(2, 2, requires_grad=True))


def test_out_of_a_whole_mean_and_of_slice_scatter():
    out = tc.empty(0)
    assert tc.mean(tc.tensor([1.0, 2.0]), out=out) is out and out.item() == 1.5
    out = tc.empty(0, dtype=tc.float64)
    assert tc.mean(tc.tensor([1, 2]), dtype=tc.float64, out=out) is out and out.item() == 1.5
    out = tc.empty(0)
    assert tc.slice_scatter(tc.ones(3), tc.zeros(1), 0, 0, 1, out=out) is out and out.tolist() == [0, 1, 1]


def test_cat_of_single_elements_with_any_strides():
    # A dimension of one element may have any stride; of another library's tensors it does.
    numbers = tc.arange(4.0)
    for sizes, strides in (((2, 1, 1, 2), (2, 1, 1, 1)), ((2, 1, 2), (2, 7, 1)), ((1, 2, 1, 2), (9, 2, 5, 1))):
        x = numbers.as_strided(sizes, strides)
        assert tc.cat([x, x + 4], -1).flatten().tolist() == [0, 1, 4, 5, 2, 3, 6, 7]
        assert tc.cat([x, x], 0).flatten().tolist() == tc.cat([x.clone()] * 2, 0).flatten().tolist()
