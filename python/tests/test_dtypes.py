"""Every dtype in exchange between Python, NumPy and tensors: conversions, promotion, errors, files."""

import copy
import io
import pickle

import numpy as np
import pytest

import tercel as tc

INTEGERS = [tc.uint8, tc.uint16, tc.uint32, tc.uint64, tc.int8, tc.int16, tc.int32, tc.int64]
FLOATS = [tc.float16, tc.bfloat16, tc.float32, tc.float64]
COMPLEX = [tc.complex64, tc.complex128]
EVERY = [tc.bool, *INTEGERS, *FLOATS, *COMPLEX]


@pytest.fixture
def default_dtype():
    yield tc.set_default_dtype
    tc.set_default_dtype(tc.float32)


def name_of(dtype):
    return str(dtype).split(".")[1]


@pytest.mark.parametrize("dtype", EVERY, ids=name_of)
def test_values_come_back(dtype):
    values = [[1, 0, 3], [2, 1, 0]]
    t = tc.tensor(values, dtype=dtype)
    kind = bool if dtype is tc.bool else complex if dtype.is_complex else float if dtype.is_floating_point else int
    expected = [[kind(v) for v in row] for row in values]
    assert t.dtype is dtype and t.tolist() == expected
    assert type(t[0, 0].item()) is kind and t[0, 2].item() == expected[0][2]
    assert bool(t[0, 0]) and not bool(t[0, 1]) and complex(t[0, 2]) == complex(expected[0][2])
    assert int(t[1, 1]) == 1 and float(t[1, 1]) == 1.0
    for again in (pickle.loads(pickle.dumps(t)), copy.deepcopy(t), copy.copy(t), t.clone()):
        assert again.dtype is dtype and again.tolist() == expected
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    file = io.BytesIO()
    tc.save(t, file)
    file.seek(0)
    again = tc.load(file)
    assert again.dtype is dtype and again.tolist() == expected
    assert repr(t).startswith("tensor([[")
    for make in (tc.zeros, tc.ones, tc.empty):
        assert make(2, dtype=dtype).dtype is dtype
    assert tc.full((2,), 1, dtype=dtype).tolist() == [kind(1)] * 2 and tc.eye(2, dtype=dtype)[0, 0].item() == 1
    for other in EVERY:
        assert t.to(other).dtype is other and t.to(other).to(tc.float64).count_nonzero().item() == 4


@pytest.mark.parametrize("dtype", [d for d in EVERY if d is not tc.bfloat16], ids=name_of)
def test_numpy_has_the_same(dtype):
    t = tc.tensor([[1, 0], [1, 1]], dtype=dtype)
    n = t.numpy()
    assert n.dtype.name == name_of(dtype) and n.tolist() == t.tolist()
    n[0, 1] = 1
    assert t[0, 1].item() == 1
    back = tc.from_numpy(n[:, ::-1])
    assert back.dtype is dtype and back.stride() == (2, -1) and back.data_ptr() == t[0, 1].data_ptr()
    assert tc.tensor(n).dtype is tc.as_tensor(n).dtype is tc.asarray(n).dtype is dtype
    scalar = n[0, 0]
    assert tc.tensor(scalar).dtype is dtype and tc.tensor([scalar]).dtype is dtype
    assert np.asarray(t).dtype == n.dtype and tc.frombuffer(bytearray(n.tobytes()), dtype=dtype).tolist() == [1] * 4


def test_what_is_inferred(default_dtype):
    assert tc.tensor(1 + 2j).dtype is tc.tensor([1, 2j, True, 1.5]).dtype is tc.complex64
    assert tc.full((1,), 1j).dtype is tc.linspace(0, 1j, 3).dtype is tc.complex64
    assert tc.tensor([np.complex128(1), 1.5]).dtype is tc.complex128
    assert tc.tensor([np.float32(1), 1j]).dtype is tc.complex64
    assert tc.tensor([2**63 - 1]).dtype is tc.int64
    default_dtype(tc.float64)
    assert tc.tensor(1j).dtype is tc.full((1,), 1j).dtype is tc.complex128
    ints = tc.ones(2, dtype=tc.int32)
    assert (ints + 1j).dtype is (1j * ints).dtype is tc.complex128
    assert (ints + 1.5).dtype is (ints / 2).dtype is ints.sqrt().dtype is tc.result_type(ints, 1.5) is tc.float64
    assert tc.complex(tc.ones(1), tc.ones(1)).dtype is tc.complex128
    assert repr(tc.tensor([1j], dtype=tc.complex64)) == "tensor([0.+1.j], dtype=tercel.complex64)"
    with pytest.raises(TypeError, match="only floating-point types are supported as the default type"):
        tc.set_default_dtype(tc.complex64)


def test_large_unsigned_numbers():
    top = 2**64 - 1
    t = tc.tensor([top, 0, 2**63], dtype=tc.uint64)
    assert t.tolist() == [top, 0, 2**63] and t[0].item() == int(t[0]) == t[0].__index__() == top
    assert float(t[2]) == 2.0**63 and repr(t[0]) == "tensor(18446744073709551615, dtype=tercel.uint64)"
    assert (t + 1).tolist() == [0, 1, 2**63 + 1] and (t == top).tolist() == [True, False, False]
    t[1] = top
    assert t[1].item() == top and tc.full((1,), top, dtype=tc.uint64).item() == top
    assert tc.from_numpy(np.array([top], dtype=np.uint64)).item() == top
    assert (tc.zeros(1) + 2**63).item() == 2.0**63
    assert tc.tensor(2**70, dtype=tc.float32).item() == 2.0**70


@pytest.mark.parametrize("make,error,sentence", [
    (lambda: tc.tensor(2**63), RuntimeError, "Overflow when unpacking long"),
    (lambda: tc.zeros(1) + 2**64, RuntimeError, "Overflow when unpacking long"),
    (lambda: tc.zeros(1) + (-2**63 - 1), RuntimeError, "Overflow when unpacking long"),
    (lambda: tc.tensor(2**64, dtype=tc.uint64), OverflowError, "int too big to convert"),
    (lambda: tc.tensor(-1, dtype=tc.uint64), OverflowError, "can't convert negative int to unsigned"),
    (lambda: tc.tensor(256, dtype=tc.uint8), RuntimeError, "type uint8 without overflow"),
    (lambda: tc.tensor([2**32], dtype=tc.uint32), RuntimeError, "type uint32 without overflow"),
    (lambda: tc.tensor(1e10, dtype=tc.int32), RuntimeError, "type int32 without overflow"),
    (lambda: tc.tensor(float("nan"), dtype=tc.int32), RuntimeError, "type int32 without overflow"),
    (lambda: tc.tensor(2.0**63, dtype=tc.int64), RuntimeError, "type int64 without overflow"),
    (lambda: tc.tensor(1j, dtype=tc.float32), TypeError, "must be real number, not complex"),
    (lambda: tc.Tensor([1j]), TypeError, "must be real number, not complex"),
    (lambda: tc.tensor([1j], dtype=tc.int32), TypeError, "'complex' object cannot be interpreted as an integer"),
    (lambda: tc.ones(1).fill_(1j), RuntimeError, "value cannot be converted to type float without overflow"),
    (lambda: tc.ones(1).fill_(1e300), RuntimeError, "value cannot be converted to type float without overflow"),
    (lambda: tc.ones(1, dtype=tc.uint8).fill_(300), RuntimeError, "type uint8_t without overflow"),
    (lambda: tc.ones(1, dtype=tc.int32).fill_(1e20), RuntimeError, "type int without overflow"),
    (lambda: tc.full((1,), -1.0, dtype=tc.uint8), RuntimeError, "type uint8_t without overflow"),
    (lambda: tc.full((1,), float("nan"), dtype=tc.int64), RuntimeError, "type int64_t without overflow"),
    (lambda: tc.ones(2).masked_fill(tc.tensor([True, False]), 1j), RuntimeError, "type float without overflow"),
    (lambda: tc.ones(2).__setitem__(0, 1j), RuntimeError, "type float without overflow"),
    (lambda: tc.arange(1j), RuntimeError, "type double without overflow"),
    (lambda: int(tc.tensor(1 + 2j)), RuntimeError, "value cannot be converted to type int64_t without overflow"),
    (lambda: float(tc.tensor(1 + 2j)), RuntimeError, "value cannot be converted to type double without overflow"),
    (lambda: int(tc.tensor(float("nan"))), ValueError, "cannot convert float NaN to integer"),
    (lambda: int(tc.tensor(float("inf"))), OverflowError, "cannot convert float infinity to integer"),
    (lambda: tc.tensor(1j).__index__(), TypeError, "only integer tensors of a single element"),
    (lambda: tc.ones(1).add_(1j), RuntimeError, "result type ComplexFloat can't be cast to the desired output type"),
    (lambda: tc.add(tc.ones(1), 1, alpha=1j), RuntimeError, "argument alpha must not be a complex number"),
    (lambda: tc.int32.to_complex(), RuntimeError, "Unknown Complex ScalarType for Int"),
    (lambda: tc.iinfo(tc.bool), TypeError, "tercel.bool is not supported by tercel.iinfo"),
    (lambda: tc.finfo(tc.int32), TypeError, "requires a floating point input type"),
    (lambda: tc.ones(1, dtype=tc.int32, requires_grad=True), RuntimeError, "floating point and complex dtype"),
])
def test_errors(make, error, sentence):
    with pytest.raises(error) as info:
        make()
    assert sentence in str(info.value)


def test_what_wraps_or_is_cut_off():
    assert tc.tensor(-1, dtype=tc.uint8).item() == 255 and tc.tensor([-1], dtype=tc.uint32).item() == 2**32 - 1
    assert tc.tensor(1.9, dtype=tc.int32).item() == 1 and tc.tensor(-1.9, dtype=tc.int8).item() == -1
    assert tc.ones(1, dtype=tc.uint8).fill_(-1).item() == 255 and tc.full((1,), 2 + 0j, dtype=tc.float32).item() == 2
    assert tc.tensor(1e300, dtype=tc.float32).item() == float("inf") and tc.full((1,), float("inf")).item() > 1e300
    assert tc.tensor(1j, dtype=tc.bool).item() is True and tc.zeros(1, dtype=tc.bool).fill_(1j).item() is True
    assert (tc.ones(1, dtype=tc.uint8) + 300).item() == 45 and (tc.ones(1) * 1e300).item() == float("inf")
    assert tc.tensor([1.5 + 2j]).to(tc.int32).tolist() == [1]
    assert float(tc.tensor(1 + 0j)) == 1 and int(tc.tensor(2 + 0j)) == 2 and bool(tc.tensor(2j))


def test_what_dtypes_say_of_themselves():
    for dtype in EVERY:
        assert dtype.is_signed == tc.zeros(1, dtype=dtype).is_signed() == (
            dtype is not tc.bool and not name_of(dtype).startswith("u"))
        assert dtype.is_complex == tc.is_complex(tc.zeros(1, dtype=dtype)) == (dtype in COMPLEX)
        assert dtype.is_floating_point == tc.is_floating_point(tc.zeros(1, dtype=dtype)) == (dtype in FLOATS)
        assert dtype.to_real() is {tc.complex64: tc.float32, tc.complex128: tc.float64}.get(dtype, dtype)
    assert tc.float32.to_complex() is tc.complex64.to_complex() is tc.complex64 is tc.cfloat
    assert tc.float64.to_complex() is tc.complex128 is tc.cdouble
    assert tc.finfo(tc.complex64) == tc.finfo(tc.float32) and tc.finfo(tc.complex128).eps == np.finfo(np.float64).eps
    for dtype in INTEGERS:
        info, expected = tc.iinfo(dtype), np.iinfo(name_of(dtype))
        assert (info.min, info.max, info.bits) == (expected.min, expected.max, expected.bits)
    ones = tc.ones(2)
    assert ones.cfloat().dtype is tc.complex64 and ones.cdouble().dtype is tc.complex128
    assert ones.to(complex).dtype is tc.complex128 and ones.cfloat().float().dtype is tc.float32


def test_promotion_with_complex_numbers():
    of = {d: tc.ones(2, dtype=d) for d in EVERY}
    for dtype, t in of.items():
        wide = dtype in (tc.float64, tc.complex128)
        expected = tc.complex128 if wide else tc.complex64
        assert tc.result_type(t, 1j) is (t + 1j).dtype is (t * 1j).dtype is (1j / t).dtype is expected
        if dtype is not tc.bool:  # which has no subtraction
            assert (1j - t).dtype is expected
        assert tc.promote_types(dtype, tc.complex64) is expected
        assert (t + tc.tensor(1j, dtype=tc.complex128)).dtype is (
            expected if dtype.is_floating_point or dtype.is_complex else tc.complex128)
        assert (t + 1j)[0].item() == 1 + 1j and (t ** 1j)[0].item() == 1
        assert not tc.can_cast(tc.complex64, dtype) or dtype.is_complex
        assert tc.can_cast(dtype, tc.complex64)
    assert tc.result_type(1j, 1.5) is tc.complex64 and (of[tc.float32] == 1j).tolist() == [False, False]
    assert tc.add(tc.zeros(1, dtype=tc.float64), 0.1, alpha=3).item() == 0.1 * 3
    assert tc.sub(tc.ones(1, dtype=tc.complex64), 1, alpha=1j).item() == 1 - 1j
    assert tc.where(tc.tensor([True, False]), 1j, tc.ones(2)).tolist() == [1j, 1]


@pytest.mark.parametrize("dtype", COMPLEX, ids=name_of)
def test_random_complex_numbers(dtype):
    tc.manual_seed(3)
    u, n = tc.rand(2000, dtype=dtype), tc.randn(2000, dtype=dtype)
    for part in (u.real, u.imag):
        assert 0 <= part.min() and part.max() < 1 and abs(part.mean().item() - 0.5) < 0.05
    for part in (n.real, n.imag):
        assert abs(part.mean().item()) < 0.05 and abs(part.var().item() - 0.5) < 0.05
    assert abs((u.real * u.imag).mean().item() - 0.25) < 0.05
    assert tc.randn_like(u).dtype is tc.rand_like(tc.ones(1), dtype=dtype).dtype is dtype
    assert tc.rand_like(tc.ones(3, 2).t()).stride() == (1, 2)


def test_new_tensors_have_version_0():
    x = tc.ones(2)
    made = [tc.zeros(2), x, tc.full((2,), 2), tc.arange(2), tc.eye(2), tc.linspace(0, 1, 2), tc.tensor([1]),
            tc.zeros_like(x), tc.ones_like(x), tc.full_like(x, 2), x.new_zeros(2), x.new_ones(2), x.new_full((2,), 3)]
    assert [t._version for t in made] == [0] * len(made)
    assert tc.zeros(2, out=x)._version == 1 and x.normal_()._version == 2 and x.zero_()._version == 3
    assert x.fill_(2)._version == 4 and x.uniform_()._version == 5 and x.bernoulli_()._version == 6


@pytest.mark.parametrize("make,text", [
    (lambda: tc.tensor([1 + 2j, 3]), "tensor([1.+2.j, 3.+0.j])"),
    (lambda: tc.tensor(1.5 - 2j), "tensor(1.5000-2.j)"),
    (lambda: tc.tensor([complex(1.5, -2), complex(-10, 3)]), "tensor([  1.5000-2.j, -10.0000+3.j])"),
    (lambda: tc.tensor([[1.5 + 2j, 1e10]]), "tensor([[1.5000e+00+2.j, 1.0000e+10+0.j]])"),
    (lambda: tc.tensor([complex("nan+2j"), complex(1, float("inf"))]), "tensor([nan+2.j, 1.+infj])"),
    (lambda: tc.tensor([complex(-0.0, -0.0)]), "tensor([-0.-0.j])"),
    (lambda: tc.tensor([1.5 - 2.25j], dtype=tc.complex128), "tensor([1.5000-2.2500j], dtype=tercel.complex128)"),
    (lambda: tc.tensor([1, 2], dtype=tc.uint16), "tensor([1, 2], dtype=tercel.uint16)"),
    (lambda: tc.empty(0, dtype=tc.complex64), "tensor([], dtype=tercel.complex64)"),
    (lambda: tc.ones(1, dtype=tc.complex64, requires_grad=True), "tensor([1.+0.j], requires_grad=True)"),
])
def test_printing(make, text):
    assert repr(make()) == text
