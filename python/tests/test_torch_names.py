"""Names, sentences and small rules that programs and tests written for PyTorch rely on."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tercel as tc


def test_a_list_of_sequences_is_a_tuple_of_indices():
    x = tc.arange(6).view(2, 3)
    assert x[[[0, 1], [2, 0]]].tolist() == [2, 3] and x[[slice(0, 1), 2]].tolist() == [2]
    assert x[[None, 0]].shape == (1, 3) and x[[1, 0]].tolist() == [[3, 4, 5], [0, 1, 2]]
    with pytest.raises(IndexError, match="too many indices for tensor of dimension 1"):
        tc.arange(9)[[range(2)] * 31]
    assert tc.arange(9)[[range(2)] * 32].shape == (32, 2)
    x[[[0, 1], [2, 0]]] = -1
    assert x.tolist() == [[0, 1, -1], [-1, 4, 5]]


def test_masks_of_bytes_warn():
    x = tc.arange(3)
    mask = tc.tensor([1, 0, 1], dtype=tc.uint8)
    with pytest.warns(UserWarning, match="indexing with dtype tercel.uint8 is now deprecated"):
        assert x[mask].tolist() == [0, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x[mask.bool()].tolist() == [0, 2]


def test_sentences_of_indexing():
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        tc.tensor(1)[0]
    with pytest.raises(IndexError, match="too many indices for tensor of dimension 0"):
        tc.tensor(1)[0, 0]
    x = tc.zeros(5)
    with pytest.raises(RuntimeError, match=r"The expanded size of the tensor \(5\) must match the existing size \(2\)"):
        x[:] = tc.ones(2)
    x[:] = tc.ones(1, 5)
    x[1:3] = tc.tensor([7.0])
    assert x.tolist() == [1, 7, 7, 1, 1]


def test_sentences_of_types_and_sizes():
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        tc.tensor([1]).add_(1.5)
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        tc.empty((), dtype=tc.float64).resize_([2, 4, 2**29, 2**29])
    with pytest.raises(RuntimeError, match="overflow"):
        tc.empty((), dtype=tc.float64).resize_([8, 8, 2**29, 2**29])
    with pytest.raises(RuntimeError, match="scalar type Long"):
        tc.nonzero(tc.ones(2), out=tc.empty(0))
    with pytest.raises(RuntimeError, match="out kwarg when as_tuple is True"):
        tc.nonzero(tc.ones(2), as_tuple=True, out=tc.empty(0, dtype=tc.int64))


def test_python_types_as_dtypes():
    assert tc.ones(1, dtype=float).dtype is tc.float64 and tc.ones(1, dtype=int).dtype is tc.int64
    assert tc.tensor([1], dtype=bool).dtype is tc.bool


ALIASES = {"absolute": "abs", "negative": "neg", "subtract": "sub", "multiply": "mul", "divide": "div", "clip": "clamp",
           "true_divide": "div", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt",
           "greater_equal": "ge", "fix": "trunc", "arctan2": "atan2"}


@pytest.mark.parametrize("alias", ALIASES)
def test_aliases(alias):
    x = tc.tensor([-1.5, 0.5, 2.0])
    name = ALIASES[alias]
    args = {"abs": (), "neg": (), "trunc": (), "clamp": (0.0, 1.0)}.get(name, (tc.tensor([2.0, 0.5, 1.0]),))
    want = getattr(tc, name)(x, *args).tolist()
    assert getattr(tc, alias)(x, *args).tolist() == getattr(x, alias)(*args).tolist() == want
    assert getattr(x.clone(), alias + "_")(*args).tolist() == want
    assert getattr(tc, alias).__name__ == alias
    with pytest.raises(TypeError, match=rf"{alias}\(\)"):
        getattr(tc, alias)()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-20, 20), min_size=1, max_size=8), st.sampled_from([-7, -3, -1, 1, 2, 5]),
       st.sampled_from(["i4", "i8", "f4", "f8"]))
def test_rounded_division(values, divisor, dtype):
    n = np.array(values, dtype)
    x = tc.from_numpy(n.copy())
    floor, trunc = np.floor_divide(n, n.dtype.type(divisor)), np.trunc(n / divisor).astype(dtype)
    for other in (divisor, tc.tensor([divisor], dtype=x.dtype)):
        np.testing.assert_array_equal(tc.div(x, other, rounding_mode="floor").numpy(), floor)
        np.testing.assert_array_equal(x.divide(other, rounding_mode="trunc").numpy(), trunc)
        np.testing.assert_array_equal(x.clone().div_(other, rounding_mode="trunc").numpy(), trunc)
        np.testing.assert_allclose(tc.div(x, other, rounding_mode=None).numpy(), n / divisor, rtol=1e-6)
    with pytest.raises(RuntimeError, match="div expected rounding_mode to be one of"):
        x.div(2, rounding_mode="up")


def test_clamp_by_tensors():
    x = tc.arange(6.0).view(2, 3)
    low, high = tc.tensor([1.0, 2.0, 3.0]), tc.tensor([[4.0], [3.5]])
    want = np.minimum(np.maximum(x.numpy(), low.numpy()), high.numpy())
    assert tc.clamp(x, low, high).tolist() == x.clip(min=low, max=high).tolist() == want.tolist()
    assert x.clone().clamp_(low, high).tolist() == want.tolist()
    assert tc.clamp(x, max=high).tolist() == np.minimum(x.numpy(), high.numpy()).tolist()
    with pytest.raises(RuntimeError, match="At least one of 'min' or 'max' must not be None"):
        x.clamp()


def test_closeness():
    inf, nan = float("inf"), float("nan")
    x, y = tc.tensor([1.0, inf, nan, inf, 0.0]), tc.tensor([1.000001, inf, nan, -inf, 1e-3])
    assert tc.isclose(x, y).tolist() == [True, True, False, False, False]
    assert x.isclose(y, equal_nan=True).tolist() == np.isclose(x.numpy(), y.numpy(), equal_nan=True).tolist()
    assert tc.isclose(tc.tensor([5, 6]), tc.tensor([5, 7]), atol=1).tolist() == [True, True]
    assert tc.isclose(tc.tensor([True]), tc.tensor([False])).tolist() == [False]
    assert tc.allclose(x[:2], y[:2]) and not x.allclose(y) and tc.equal(x[:2], x[:2]) and not x.equal(x[:2])
    with pytest.raises(RuntimeError, match="did not match"):
        tc.isclose(x, x.double())
    with pytest.raises(RuntimeError, match="greater than or equal to zero"):
        tc.allclose(x, y, rtol=-1)
    with pytest.raises(RuntimeError, match="Expected object of data type float but got data type double"):
        x.equal(x.double())


def test_questions_about_tensors():
    x = tc.ones(2, 2)
    assert x.view(4)._is_view() and not x._is_view() and x.is_same_size(tc.zeros(2, 2))
    assert not (x.is_conj() or x.is_neg() or x.is_distributed() or x.is_pinned() or x.has_names())
    assert not (x.is_quantized or x.is_meta or x.is_mkldnn or x.is_sparse_csr)
    assert x.resolve_conj() is x and x.resolve_neg() is x and tc.positive(x) is x
    assert x.new(2, 3).shape == (2, 3) and x.double().new([1, 2]).dtype is tc.float64
    assert tc.rsub(x, 3, alpha=2)[0, 0].item() == 1 and x.rsub(tc.zeros(2)).sum().item() == -4
    with pytest.raises(RuntimeError, match="on a bool tensor is not supported"):
        tc.tensor(True).positive()


def test_typed_storages_are_storages():
    x = tc.arange(6.0)
    y = tc.tensor(()).set_(x.storage(), 1, tc.Size([2]), [2])
    assert y.tolist() == [1, 3] and y.storage().data_ptr() == x.storage().data_ptr()
    assert tc.Storage is tc.FloatStorage and tc.Storage([1.0, 2.0]).tolist() == [1, 2]
    with pytest.raises(TypeError, match=r"invalid combination of arguments - got \(int\)"):
        x.set_(3)
    bytes_of = tc.zeros(2).untyped_storage()
    assert bytes_of.copy_(tc.Storage([1.0, 2.0])) is bytes_of and tc.Tensor(bytes_of).tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="size does not match, self was 8 bytes but src was 4 bytes"):
        bytes_of.copy_(tc.Storage([1.0]))


def test_result_type():
    byte, ints, floats = tc.tensor([1], dtype=tc.uint8), tc.tensor([1]), tc.tensor([1.0])
    assert tc.result_type(byte, 1) is tc.uint8 and tc.result_type(byte, 1.0) is tc.float32
    assert tc.result_type(ints, floats) is tc.float32 and tc.result_type(1, 1.0) is tc.float32
    assert tc.result_type(floats, tc.tensor(1.0, dtype=tc.float64)) is tc.float32


def test_switches():
    try:
        tc.use_deterministic_algorithms(True, warn_only=True)
        assert tc.are_deterministic_algorithms_enabled() and tc.is_deterministic_algorithms_warn_only_enabled()
        tc.set_deterministic_debug_mode("error")
        assert tc.get_deterministic_debug_mode() == 2
        with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
            tc.set_deterministic_debug_mode(3)
        with pytest.raises(TypeError, match="must be str or int"):
            tc.set_deterministic_debug_mode(None)
        tc.set_float32_matmul_precision("high")
        assert tc.get_float32_matmul_precision() == "high"
        with pytest.raises(RuntimeError, match="is not one of"):
            tc.set_float32_matmul_precision("low")
        tc.set_warn_always(True)
        assert tc.is_warn_always_enabled()
        tc.set_default_tensor_type("tercel.DoubleTensor")
        assert tc.ones(1).dtype is tc.float64 and tc.Storage is tc.DoubleStorage
        tc.set_default_tensor_type(tc.FloatTensor)
        assert tc.ones(1).dtype is tc.float32
        for wrong in ("tercel.OddTensor", int, tc.LongTensor):
            with pytest.raises(TypeError):
                tc.set_default_tensor_type(wrong)
    finally:
        tc.use_deterministic_algorithms(False)
        tc.set_float32_matmul_precision("highest")
        tc.set_warn_always(False)
        tc.set_default_dtype(tc.float32)
