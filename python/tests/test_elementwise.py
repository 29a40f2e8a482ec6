"""Elementwise operations: all variants compared with NumPy, and PyTorch's names."""

import math
import operator

import numpy as np
import pytest

import tercel as tc
from tercel.nn import functional as F

BETWEEN = np.linspace(0.1, 0.9, 5)
ABOVE = np.linspace(1.5, 4, 5)


def gamma_log(x):
    return np.vectorize(math.lgamma)(x)


UNARY = {
    "tan": (np.tan, BETWEEN), "asin": (np.arcsin, BETWEEN), "acos": (np.arccos, BETWEEN), "atan": (np.arctan, ABOVE),
    "sinh": (np.sinh, ABOVE), "cosh": (np.cosh, ABOVE), "asinh": (np.arcsinh, ABOVE), "acosh": (np.arccosh, ABOVE),
    "atanh": (np.arctanh, BETWEEN), "log2": (np.log2, ABOVE), "log10": (np.log10, ABOVE), "exp2": (np.exp2, ABOVE),
    "erfc": (np.vectorize(math.erfc), BETWEEN), "lgamma": (gamma_log, ABOVE), "i0": (np.i0, ABOVE),
    "sinc": (np.sinc, BETWEEN), "frac": (lambda x: x - np.trunc(x), ABOVE), "sgn": (np.sign, ABOVE),
    "deg2rad": (np.deg2rad, ABOVE), "rad2deg": (np.rad2deg, ABOVE),
    "logit": (lambda x: np.log(x / (1 - x)), BETWEEN), "nan_to_num": (np.nan_to_num, ABOVE),
}


@pytest.mark.parametrize("name", UNARY)
def test_one_operand(name):
    reference, n = UNARY[name]
    x, out, changed = tc.from_numpy(n.copy()), tc.empty(0, dtype=tc.float64), tc.from_numpy(n.copy())
    assert getattr(changed, name + "_")() is changed and getattr(tc, name)(x, out=out) is out
    for got in (getattr(tc, name)(x), getattr(x, name)(), out, changed):
        np.testing.assert_allclose(got.numpy(), reference(n), rtol=1e-12)
    x.requires_grad_()
    getattr(tc, name)(x).sum().backward()
    assert x.grad.shape == x.shape


BINARY = {
    "copysign": np.copysign, "fmax": np.fmax, "fmin": np.fmin, "hypot": np.hypot, "logaddexp2": np.logaddexp2,
    "heaviside": np.heaviside, "nextafter": np.nextafter, "xlogy": lambda a, b: a * np.log(b),
    "ldexp": lambda a, b: a * 2.0**b, "float_power": np.float_power, "atan2": np.arctan2,
}


@pytest.mark.parametrize("name", BINARY)
def test_two_operands(name):
    a, b = ABOVE, BETWEEN[::-1]
    x, y, out = tc.from_numpy(a.copy()), tc.from_numpy(b.copy()), tc.empty(0, dtype=tc.float64)
    results = [getattr(tc, name)(x, y), getattr(x, name)(y), getattr(tc, name)(x, y, out=out),
               getattr(x.clone(), name + "_")(y)]
    for got in results:
        np.testing.assert_allclose(got.numpy(), BINARY[name](a, b), rtol=1e-12)


def test_integers():
    a, b = tc.tensor([12, 18, 7]), tc.tensor([8, 12, 21])
    assert tc.gcd(a, b).tolist() == [4, 6, 7] and a.lcm(b).tolist() == [24, 36, 21]
    assert tc.bitwise_left_shift(a, 2).tolist() == [48, 72, 28] and tc.bitwise_right_shift(1, b).tolist() == [0, 0, 0]
    assert a.bitwise_not_().tolist() == [-13, -19, -8]


@pytest.mark.parametrize("name", ["lshift", "rshift", "and_", "or_", "xor"])
def test_signs_between_integers(name):
    sign, in_place = getattr(operator, name), getattr(operator, "i" + name.strip("_"))
    n, m = np.array([5, 9, 12]), np.array([1, 2, 3])
    x, y = tc.from_numpy(n.copy()), tc.from_numpy(m.copy())
    assert sign(x, y).tolist() == sign(n, m).tolist() and sign(x, 2).tolist() == sign(n, 2).tolist()
    assert sign(40, y).tolist() == sign(40, m).tolist()
    assert in_place(x, y) is x and x.tolist() == sign(n, m).tolist()
    with pytest.raises(TypeError):
        sign(x, "1")


def test_questions():
    x = tc.tensor([-1.0, -math.inf, math.inf, math.nan, 0.0])
    assert x.isinf().tolist() == [False, True, True, False, False]
    assert tc.isposinf(x).tolist() == [False, False, True, False, False]
    assert tc.isneginf(x, out=tc.empty(0, dtype=tc.bool)).tolist() == [False, True, False, False, False]
    assert tc.signbit(x)[:3].tolist() == [True, True, False] and x.isreal().all().item()
    assert tc.angle(tc.tensor([-1.0, 2.0])).tolist() == pytest.approx([math.pi, 0])


def test_parts_of_numbers():
    n = np.array([0.0, 3.5, -0.1, 3e-20, 6e20])
    for parts in (tc.frexp(tc.from_numpy(n)), tc.from_numpy(n).frexp()):
        mantissa, exponent = np.frexp(n)
        assert parts.mantissa.tolist() == mantissa.tolist() and parts.exponent.tolist() == exponent.tolist()
        assert parts.exponent.dtype is tc.int32
    out = tc.empty(0, dtype=tc.float64), tc.empty(0, dtype=tc.int32)
    assert tc.frexp(tc.from_numpy(n), out=out)[0] is out[0] and tc.ldexp(*out).tolist() == n.tolist()
    with pytest.raises(RuntimeError, match="only supports floating-point dtypes"):
        tc.frexp(tc.tensor(1))


def test_rounding_to_digits():
    x = tc.tensor([1234.5678, -0.55], dtype=tc.float64)
    assert tc.round(x, decimals=2).tolist() == [1234.57, -0.55] and x.round(decimals=-2).tolist() == [1200, 0]
    assert x.round().tolist() == [1235, -1] and x.round_(decimals=1).tolist() == pytest.approx([1234.6, -0.6])
    with pytest.raises(RuntimeError, match="\"round_cpu\" not implemented for 'Long'"):
        tc.round(tc.tensor([1]), decimals=1)


def test_gamma_of_several_dimensions():
    x = tc.tensor([2.5, 3.0], dtype=tc.float64)
    want = 1.5 * math.log(math.pi) + sum(gamma_log(x.numpy() - i / 2) for i in range(3))
    for got in (tc.mvlgamma(x, 3), x.mvlgamma(p=3), tc.special.multigammaln(x, 3), x.clone().mvlgamma_(3)):
        np.testing.assert_allclose(got.numpy(), want)
    with pytest.raises(RuntimeError, match="p has to be greater than or equal to 1"):
        x.mvlgamma(0)
    np.testing.assert_allclose(tc.polygamma(1, tc.ones(1)).item(), math.pi**2 / 6, rtol=1e-6)
    assert tc.ones(1).polygamma(1).item() == tc.ones(1).polygamma_(1).item()
    assert tc.ones(1).polygamma(1).item() == tc.special.polygamma(1, tc.ones(1)).item()


def test_powers_in_double():
    x = tc.tensor([2, 3])
    assert tc.float_power(x, 2).dtype is tc.float64 and tc.float_power(2, x).tolist() == [4, 8]
    assert x.double().float_power_(tc.tensor([3, 2])).tolist() == [8, 9]
    with pytest.raises(RuntimeError, match="has dtype Float but the operation's result requires dtype Double"):
        tc.ones(1).float_power_(2)


def test_special_functions():
    x = tc.tensor([0.25, 0.5], dtype=tc.float64)
    for name, plain in (("expit", tc.sigmoid), ("erfinv", tc.erfinv), ("psi", tc.digamma), ("gammaln", tc.lgamma)):
        assert getattr(tc.special, name)(x).tolist() == plain(x).tolist()
        assert getattr(tc.special, name)(x, out=tc.empty(0, dtype=tc.float64)).tolist() == plain(x).tolist()
    assert tc.special.entr(x).tolist() == pytest.approx((-x * x.log()).tolist())
    assert tc.special.zeta(2.0, tc.ones(1)).item() == pytest.approx(math.pi**2 / 6)
    assert tc.special.xlog1py(x, 1.0).tolist() == pytest.approx((x * math.log(2)).tolist())
    assert tc.special.i1e(x).shape == (2,) and tc.special.logit(x, eps=1e-3).shape == (2,)
    assert tc.special.softmax(x, 0).sum().item() == pytest.approx(1) and tc.special.ndtr(tc.zeros(1)).item() == 0.5
    for name in ("i1", "i1e", "i0e", "special_entr"):
        assert not hasattr(tc, name) and not hasattr(tc.Tensor, name)


def test_numbers_in_the_place_of_tensors():
    assert tc.add(1, 2).item() == 3 and tc.add(1, 2.5, alpha=2).item() == 6 and tc.mul(2, tc.ones(2)).tolist() == [2, 2]
    assert tc.sub(5, tc.tensor([1, 2]), alpha=2).tolist() == [3, 1] and tc.true_divide(1, 2).item() == 0.5
    assert tc.div(7, 2, rounding_mode="floor").item() == 3
    assert tc.floor_divide(7, 2).dtype is tc.int64 and tc.pow(2, tc.tensor([3])).item() == 8
    assert tc.add(1, 2).dtype is tc.int64 and tc.add(tc.ones(1, dtype=tc.float64), tc.add(1, 2.0)).dtype is tc.float64
    with pytest.raises(TypeError, match=r"maximum\(\): argument 'other' \(position 2\) must be Tensor, not int"):
        tc.maximum(tc.ones(1), 1)
    with pytest.raises(TypeError, match=r"exp\(\): argument 'input' \(position 1\) must be Tensor, not float"):
        tc.exp(1.0)


def test_bounds():
    x = tc.tensor([-2.0, 0.5, math.nan, 3.0])
    low, high = tc.tensor([-1.0, 1.0, 0.0, 0.0]), tc.tensor([0.0, 2.0, 1.0, 1.0])
    assert tc.clamp(x, low, high)[:2].tolist() == [-1, 1] and x.clip(min=low)[1].item() == 1
    assert tc.clamp_min(x, low)[0].item() == -1 and x.clamp_max(high)[3].item() == 1 and x.clamp(max=1.0)[3].item() == 1
    assert x.clone().clamp_max_(tc.tensor(1.0))[3].item() == 1 and math.isnan(tc.clamp(x, low, high)[2].item())
    with pytest.raises(RuntimeError, match="At least one of 'min' or 'max' must not be None"):
        tc.clamp(x)


def test_choice_between_numbers():
    condition = tc.tensor([True, False])
    assert tc.where(condition, 1, 2).dtype is tc.int64 and tc.where(condition, 1, 2.5).tolist() == [1, 2.5]
    assert tc.where(condition, tc.ones(2), 3).tolist() == [1, 3] and tc.ones(2).where(condition, 0.0).tolist() == [1, 0]
    with pytest.warns(UserWarning, match="where received a uint8 condition tensor"):
        assert tc.where(condition.byte(), 1, 2).tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="where expected condition to be a boolean tensor"):
        tc.where(tc.ones(2), 1, 2)


def test_products_added():
    x, a, b = tc.ones(2), tc.tensor([2.0, 3.0]), tc.tensor([4.0, 5.0])
    assert tc.addcmul(x, a, b, value=2).tolist() == [17, 31]
    assert x.clone().addcdiv_(a, b, value=4).tolist() == pytest.approx([3, 3.4])
    memory = tc.ones(4)
    for call in (tc.addcmul, tc.addcdiv, tc.lerp):
        with pytest.raises(RuntimeError, match="unsupported operation: some elements of the input tensor"):
            call(a[:2], memory[:2], memory[:2], out=memory[1:3])


IN_PLACE = {"relu": (), "relu6": (), "selu": (), "silu": (), "mish": (), "hardswish": (), "hardsigmoid": (),
            "elu": (0.5,), "celu": (0.5,), "leaky_relu": (0.1,), "hardtanh": (-0.5, 0.5), "threshold": (0.1, 7.0)}


@pytest.mark.parametrize("name", IN_PLACE)
def test_activations_in_place(name):
    x = tc.linspace(-2, 2, 9)
    want = getattr(F, name)(x, *IN_PLACE[name]).tolist()
    changed = x.clone()
    assert getattr(F, name)(changed, *IN_PLACE[name], inplace=True) is changed and changed.tolist() == want
    assert getattr(F, name + "_")(x, *IN_PLACE[name]).tolist() == want
    modules = {"relu6": "ReLU6", "hardtanh": "Hardtanh", "leaky_relu": "LeakyReLU", "silu": "SiLU", "relu": "ReLU",
               "elu": "ELU", "celu": "CELU", "selu": "SELU"}
    module = getattr(tc.nn, modules.get(name, name.capitalize()))(*IN_PLACE[name], inplace=True)
    x = tc.linspace(-2, 2, 9)
    assert module(x) is x and x.tolist() == want


def test_activations_that_are_functions_of_the_module_too():
    x = tc.linspace(-1, 1, 5)
    assert tc.celu(x).tolist() == F.celu(x).tolist() and tc.selu(x).tolist() == F.selu(x).tolist()
    assert tc.threshold(x, 0.1, 7, out=tc.empty(0)).tolist() == F.threshold(x, 0.1, 7).tolist()
    assert x.hardshrink().tolist() == tc.hardshrink(x).tolist() and x.prelu(tc.tensor([0.5])).tolist()[0] == -0.5
    with pytest.raises(ValueError, match="min_val cannot be greater than max_val"):
        F.hardtanh(x, 1, 0)


def test_sentences_about_bools():
    x = tc.tensor([True])
    with pytest.raises(RuntimeError, match="Subtraction, the `-` operator, with two bool tensors is not supported"):
        x - x
    for subtract in (lambda: x - True, lambda: tc.ones(1) - x, lambda: 1 - x, lambda: tc.rsub(x, 1)):
        with pytest.raises(RuntimeError, match="Subtraction, the `-` operator, with (a|two) bool tensors? is not"):
            subtract()
    with pytest.raises(RuntimeError, match="Negation, the `-` operator, on a bool tensor is not supported"):
        -x
    with pytest.raises(RuntimeError, match="Boolean alpha only supported for Boolean results"):
        tc.add(tc.ones(1), 1, alpha=True)
    assert (~x).tolist() == [False] and (x ^ x).tolist() == [False] and (x + x).tolist() == [True]


@pytest.mark.parametrize("call, sentence", [
    (lambda: tc.tensor([1.0]) & tc.tensor([1.0]), "\"bitwise_and_cpu\" not implemented for 'Float'"),
    (lambda: tc.tensor([1.0]) << 1, "\"bitwise_left_shift_cpu\" not implemented for 'Float'"),
    (lambda: tc.gcd(tc.ones(1), tc.ones(1)), "\"gcd_cpu\" not implemented for 'Float'"),
    (lambda: tc.nextafter(tc.tensor([1]), tc.tensor([1])), "\"nextafter_cpu\" not implemented for 'Long'"),
    (lambda: F.elu(tc.tensor([1])), "\"elu_cpu\" not implemented for 'Long'"),
    (lambda: F.conv1d(tc.ones(1, 1, 1), tc.ones(1, 1, 1).double()), "Input type (Float) and weight type (Double)"),
    (lambda: tc.lerp(tc.ones(1), tc.ones(1).double(), 0.5), "expected dtype float for `end` but got dtype double"),
    (lambda: tc.lerp(tc.ones(1), tc.ones(1), tc.ones(1).half()), "expected dtype float for `weight` but got dtype c10"),
    (lambda: tc.heaviside(tc.ones(1), tc.ones(1).double()), "not yet implemented for tensors with different dtypes"),
    (lambda: tc.addcdiv(*[tc.tensor([1])] * 3), "Integer division with addcdiv is no longer supported"),
    (lambda: tc.ones(2).byte().fill_(300), "value cannot be converted to type uint8_t without overflow"),
    (lambda: tc.full((2,), 1e10, dtype=tc.float16), "value cannot be converted to type at::Half without overflow"),
    (lambda: tc.eye(-1), "n must be greater or equal to 0, got -1"),
    (lambda: tc.zeros(1, device="cpu:x"), "Invalid device string: 'cpu:x'"),
    (lambda: tc.device("tpu"), "device type at start of device string: tpu"),
    (lambda: tc.amax(tc.ones(2), 0, out=tc.ones(1).double()), "Expected the dtype for input and out to match"),
    (lambda: tc.gather(tc.ones(2), 0, tc.tensor([0]), out=tc.ones(1).double()), "Expected out tensor to have dtype"),
])
def test_sentences_about_dtypes(call, sentence):
    with pytest.raises(RuntimeError) as info:
        call()
    assert sentence in str(info.value)


def test_a_cpu_may_have_an_index():
    assert tc.device("cpu:0").index == 0 and repr(tc.device("cpu", 0)) == "device(type='cpu', index=0)"
    assert tc.device("cpu:0") != tc.device("cpu")
    for x in (tc.zeros(1, device="cpu:0"), tc.zeros(1).to("cpu:0"), tc.tensor([1], device=tc.device("cpu", 0))):
        assert x.device == tc.device("cpu")


def test_masks():
    x = tc.zeros(3)
    mask = tc.tensor([True, False, True])
    assert x.masked_fill(mask, tc.tensor(2)).tolist() == [2, 0, 2]
    assert x.masked_fill(tc.ones(2, 1) > 0, 1).shape == (2, 3) and mask.masked_fill(mask, 10).dtype is tc.bool
    assert tc.tensor([1, 2, 3]).masked_fill_(mask, 1.5).dtype is tc.int64
    with pytest.raises(RuntimeError, match=r"doesn't match the broadcast shape \[2, 3\]"):
        x.masked_fill_(tc.ones(2, 3) > 0, 1)
    with pytest.raises(RuntimeError, match="only supports boolean masks, but got mask with dtype long int"):
        x.masked_fill(tc.tensor([1, 0, 0]), 1)
    with pytest.raises(RuntimeError, match="only supports a 0-dimensional value tensor, but got tensor with 1"):
        x.masked_fill(mask, tc.ones(1))
    with pytest.warns(UserWarning, match="masked_fill_ received a mask with dtype tercel.uint8"):
        assert x.masked_fill_(mask.byte(), 1).tolist() == [1, 0, 1]
    with pytest.warns(UserWarning, match="indexing with dtype tercel.uint8 is now deprecated"):
        assert x.index_put_([mask.byte()], tc.tensor(4.0)).tolist() == [4, 0, 4]


def test_scatter_with_its_older_reductions():
    index = tc.tensor([0, 0, 2])
    source = tc.tensor([2.0, 3.0, 4.0])
    assert tc.ones(3).scatter(0, index, source, reduce="add").tolist() == [6, 1, 5]
    assert tc.ones(3).scatter_(0, index, source, reduce="multiply").tolist() == [6, 1, 4]
    assert tc.ones(3).scatter_(0, index, 2, reduce="add").tolist() == [5, 1, 3]
    assert tc.scatter(tc.ones(3), 0, index, 3.0, reduce="multiply").tolist() == [9, 1, 3]
    with pytest.raises(RuntimeError, match="reduce argument must be either add or multiply."):
        tc.ones(3).scatter(0, index, source, reduce="mean")


def test_functions_of_python_applied():
    x = tc.arange(6.0).view(2, 3)
    assert x.clone().apply_(lambda v: v * 2).tolist() == (x * 2).tolist() and x.t().clone().apply_(abs).shape == (3, 2)
    assert x.clone().map_(x + 1, lambda a, b: a * b).tolist() == (x * (x + 1)).tolist()
    assert x.clone().map2_(x, tc.ones(3), lambda a, b, c: a + b + c).tolist() == (2 * x + 1).tolist()
    assert tc.tensor([1, 2]).apply_(lambda v: 2.5).tolist() == [2, 2] and tc.zeros(0).apply_(abs).shape == (0,)
    with pytest.raises(RuntimeError, match=r"Can't call apply_\(\) on Variable that requires grad"):
        tc.ones(1, requires_grad=True).apply_(abs)
    with pytest.raises(TypeError, match="expected tercel.FloatTensor for 'other' \\(got tercel.LongTensor\\)"):
        x.map_(tc.zeros(3, dtype=tc.int64), max)
    with pytest.raises(TypeError, match="'int' object is not callable"):
        x.apply_(3)


def test_products_of_other_dtypes():
    n = np.arange(6).reshape(2, 3)
    for dtype in (tc.int32, tc.uint8, tc.float16, tc.bfloat16, tc.complex64):
        a = tc.from_numpy(n).to(dtype)
        want = (2 + 3 * (n @ n.T)).tolist()
        assert tc.addmm(tc.ones(2, 2).to(dtype), a, a.t(), beta=2, alpha=3).to(tc.float32).tolist() == want
        assert tc.addmv(tc.ones(2).to(dtype), a, a[0], beta=2, alpha=3).to(tc.float32).tolist() == [r[0] for r in want]
        batch = tc.baddbmm(tc.ones(1).to(dtype), a[None], a.t()[None], beta=2, alpha=3)
        assert batch.dtype is dtype and batch[0].to(tc.float32).tolist() == want


def test_the_other_operand_comes_before_a_dimension():
    assert tc.max(tc.tensor([1, 5]), tc.tensor(3)).tolist() == [3, 5]
    assert tc.tensor([1, 5]).min(tc.tensor(3)).tolist() == [1, 3]
    assert tc.max(tc.tensor([1, 5]), 0).values.item() == 5
    assert tc.norm(tc.eye(3), "nuc").item() == pytest.approx(3)
    out = tc.empty(0), tc.empty(0)
    assert tc.aminmax(tc.tensor([2.0, 1.0]), out=out).min.item() == out[0].item() == 1
    assert [g.tolist() for g in tc.gradient(tc.ones(2, 2), spacing=[1.0, 2.0])] == [[[0, 0], [0, 0]]] * 2
    assert F.hardtanh(tc.tensor([-3, 0, 3]), -1.5, 1.5).tolist() == [-1, 0, 1]
    assert F.tanhshrink(tc.tensor([0])).dtype is tc.float32


def test_signs_and_their_dtypes():
    with pytest.raises(TypeError, match="only implemented on integer and Boolean-type tensors"):
        ~tc.ones(1)
    with pytest.raises(RuntimeError, match="The `\\+` operator, on a bool tensor is not supported"):
        +tc.tensor([True])
    for name in ("isposinf", "isneginf", "signbit"):
        with pytest.raises(RuntimeError, match=f"{name} does not support non-boolean outputs"):
            getattr(tc, name)(tc.ones(1), out=tc.ones(1))
    with pytest.raises(RuntimeError, match="the output given to float_power has dtype Float"):
        tc.float_power(tc.ones(1), 2, out=tc.ones(1))
    with pytest.raises(RuntimeError, match="dtype of out: Double should be same as input: Float"):
        tc.nan_to_num(tc.ones(1), out=tc.ones(1).double())


def test_bessel_functions_and_their_kin():
    x = tc.tensor([0.5, 2.5, 9.0], dtype=tc.float64)
    special = tc.special
    # The Wronskians: of J and Y 2 / (pi x), of I and K 1 / x.
    cross = special.bessel_j1(x) * special.bessel_y0(x) - special.bessel_j0(x) * special.bessel_y1(x)
    assert (cross * x).tolist() == pytest.approx([2 / math.pi] * 3)
    k0, k1 = special.modified_bessel_k0(x), special.modified_bessel_k1(x)
    cross = special.modified_bessel_i0(x) * k1 + special.modified_bessel_i1(x) * k0
    assert (cross * x).tolist() == pytest.approx([1] * 3)
    assert special.scaled_modified_bessel_k0(x).tolist() == pytest.approx((k0 * x.exp()).tolist())
    assert special.scaled_modified_bessel_k1(x).tolist() == pytest.approx((k1 * x.exp()).tolist())
    assert special.spherical_bessel_j0(x).tolist() == pytest.approx((x.sin() / x).tolist())
    assert special.spherical_bessel_j0(tc.zeros(1)).item() == 1
    assert special.erfcx(x).tolist() == pytest.approx((x.square().exp() * x.erfc()).tolist(), rel=1e-6)
    assert special.erfcx(tc.tensor(1e4, dtype=tc.float64)).item() == pytest.approx(1e-4 / math.sqrt(math.pi))
    # Ai'' = x Ai, by differences.
    at, h = tc.tensor([-5.0, -2.1, -1.0, 0.0, 1.0, 4.0], dtype=tc.float64), 1e-3
    bend = (special.airy_ai(at + h) - 2 * special.airy_ai(at) + special.airy_ai(at - h)) / h**2
    assert bend.tolist() == pytest.approx((at * special.airy_ai(at)).tolist(), abs=1e-6)
    assert special.airy_ai(tc.zeros(1, dtype=tc.float64)).item() == pytest.approx(0.3550280538878172)
    for name in ("bessel_y0", "bessel_y1"):
        assert getattr(special, name)(tc.zeros(1)).item() == -math.inf
        assert math.isnan(getattr(special, name)(-tc.ones(1)).item())
    with pytest.raises(NotImplementedError, match="derivative for 'self' of 'special_airy_ai'"):
        special.airy_ai(tc.ones(1, requires_grad=True)).sum().backward()


def test_orthogonal_polynomials():
    x = tc.linspace(-0.9, 0.9, 5, dtype=tc.float64)
    angle, half = x.acos(), x.acos() / 2
    for n in (0, 1, 2, 5, 63, 64, 65, 1000):
        expected = {
            "t": (n * angle).cos(), "u": ((n + 1) * angle).sin() / angle.sin(),
            "v": ((2 * n + 1) * half).cos() / half.cos(), "w": ((2 * n + 1) * half).sin() / half.sin(),
        }
        for kind, values in expected.items():
            function = getattr(tc.special, f"chebyshev_polynomial_{kind}")
            shifted = getattr(tc.special, f"shifted_chebyshev_polynomial_{kind}")
            assert function(x, n).tolist() == pytest.approx(values.tolist(), abs=1e-9)
            assert shifted((x + 1) / 2, n).tolist() == pytest.approx(values.tolist(), abs=1e-6)
    big = tc.tensor([-3.0, 1.0, 3.0], dtype=tc.float64)
    for kind in "tuvw":
        function = getattr(tc.special, f"chebyshev_polynomial_{kind}")
        assert (2 * big * function(big, 70) - function(big, 69)).tolist() == pytest.approx(function(big, 71).tolist())
    n = tc.tensor([-1, 0, 1, 2, 3])
    assert tc.special.hermite_polynomial_h(2.0, n).tolist() == [0, 1, 4, 14, 40]
    assert tc.special.hermite_polynomial_he(2.0, n).tolist() == [0, 1, 2, 3, 2]
    assert tc.special.laguerre_polynomial_l(2.0, n).tolist() == pytest.approx([0, 1, -1, -1, -1 / 3])
    assert tc.special.legendre_polynomial_p(2.0, n).tolist() == pytest.approx([0, 1, 2, 5.5, 17])
    assert math.isnan(tc.special.legendre_polynomial_p(tc.zeros(1), math.nan).item())


def test_results_into_wider_tensors_are_those_of_their_own_dtype():
    byte, half = tc.tensor([200], dtype=tc.uint8), tc.tensor([60000.0], dtype=tc.float16)
    assert tc.add(byte, byte, out=tc.zeros(1, dtype=tc.int64)).tolist() == [144]
    assert tc.pow(2, tc.tensor([17], dtype=tc.uint8), out=tc.zeros(1, dtype=tc.int64)).tolist() == [0]
    assert tc.bitwise_left_shift(byte, 1, out=tc.zeros(1, dtype=tc.int32)).tolist() == [144]
    assert tc.mul(half, 2, out=tc.zeros(1)).tolist() == [math.inf]
    assert tc.exp(tc.ones(1), out=tc.zeros(1, dtype=tc.float64)).item() == tc.ones(1).exp().item()


def test_corners_as_pytorch_has_them():
    far = tc.tensor([math.inf, -math.inf, 5.0])
    assert tc.angle(far).tolist() == pytest.approx([0, math.pi, 0]) and tc.angle(tc.tensor(math.nan)).isnan()
    assert F.hardshrink(tc.tensor([0.3, 0.5, -0.3], dtype=tc.bfloat16), 0.3).tolist() == [0, 0.5, 0]
    assert tc.logit(tc.tensor([True, False])).tolist() == [math.inf, -math.inf]
    for complex_function, same in ((tc.sinc, lambda z: (math.pi * z).sin() / (math.pi * z)),):
        z = tc.tensor([0.5 + 1j, -2j], dtype=tc.complex128)
        tc.testing.assert_close(complex_function(z), same(z))
    assert tc.dist(tc.tensor([1j, 2]), tc.tensor([1j, 3])).item() == 1
    assert tc.dist(tc.tensor([1.0, 2]), tc.tensor([1, 4])).item() == 2
    yes = tc.tensor([True, False])
    assert tc.add(yes, yes, alpha=0).tolist() == [True, False] and tc.add(yes, True, alpha=2).dtype == tc.bool
    ones = tc.ones(1, dtype=tc.int8)
    with pytest.raises(RuntimeError, match="argument alpha must not be a floating point number"):
        tc.add(ones, ones, alpha=1.0)
    with pytest.raises(NotImplementedError, match="heaviside is not yet implemented for complex tensors"):
        tc.heaviside(tc.ones(1, dtype=tc.complex64), tc.ones(1, dtype=tc.complex64))
    with pytest.raises(RuntimeError, match="expects exponent to have int dtype but got float"):
        tc.frexp(tc.ones(1), out=(tc.empty(0), tc.empty(0)))
    large = tc.tensor(2**53)
    assert not tc.isclose(large, large + 1, rtol=0, atol=0) and tc.isclose(large, large + 1, rtol=0, atol=1)
    x = tc.arange(3.0)
    x[1:2] = x[1:2]  # the same element, seen twice
    assert tc.add(x1=x, x2=x).tolist() == [0, 2, 4] and tc.sum(a=x, axis=0).item() == 3
