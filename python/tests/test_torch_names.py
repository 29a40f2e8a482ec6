"""Names, messages and small rules that PyTorch programs and tests rely on."""

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
    assert x[:1].equal(x[:1].double()) and tc.equal(tc.tensor([1, 0]), tc.tensor([True, False]))


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


def test_diagonals_filled():
    for sizes, wrap in (((7, 3), False), ((7, 3), True), ((8, 3), True), ((3, 7), True), ((3, 3, 3), False)):
        n = np.zeros(sizes)
        np.fill_diagonal(n, 4, wrap)
        x = tc.zeros(sizes)
        assert x.fill_diagonal_(4, wrap) is x and x.tolist() == n.tolist()
    part = tc.zeros(7, 3, 3)[:, 1]
    assert part.fill_diagonal_(1, wrap=True).sum().item() == 6
    with pytest.raises(RuntimeError, match="dimensions must larger than 1"):
        tc.zeros(3).fill_diagonal_(1)
    with pytest.raises(RuntimeError, match="all dimensions of input must be of equal length"):
        tc.zeros(2, 2, 3).fill_diagonal_(1)
    leaf = tc.ones(2, 2, requires_grad=True)
    leaf.clone().fill_diagonal_(3).sum().backward()
    assert leaf.grad.tolist() == [[0, 1], [1, 0]]


def test_masks_of_bytes_select_and_scatter():
    x, mask = tc.arange(3), tc.tensor([1, 0, 1], dtype=tc.uint8)
    with pytest.warns(UserWarning, match="masked_select received a mask with dtype tercel.uint8"):
        assert x.masked_select(mask).tolist() == [0, 2]
    for scatter in (x.masked_scatter, x.clone().masked_scatter_):
        with pytest.warns(UserWarning, match="masked_scatter_ received a mask with dtype tercel.uint8"):
            assert scatter(mask, tc.tensor([7, 8])).tolist() == [7, 1, 8]


def test_selecting_from_nothing_checks_the_indices():
    for sizes, dim, index, sentence in (((0, 3), 0, [0, 1], "self indexing axis dim should be positive"),
                                        ((0, 3), 1, [0, 5], "INDICES element is out of DATA bounds, id=5 axis_dim=3"),
                                        ((3, 0), 0, [0, -1], "INDICES element is out of DATA bounds, id=-1 axis_dim=3")):
        with pytest.raises(RuntimeError, match=sentence):
            tc.zeros(sizes).index_select(dim, tc.tensor(index))
    assert tc.zeros(3, 0).index_select(0, tc.tensor([0, 2])).shape == (2, 0)
    assert tc.zeros(0, 3).index_select(0, tc.tensor([], dtype=tc.int64)).shape == (0, 3)


def test_what_is_written_to_may_not_be_read():
    y, ind = tc.zeros(6), tc.tensor([2, 1, 0])
    for call in (lambda: ind.put_(ind, ind), lambda: ind.put_(ind, ind.clone()), lambda: ind.put_(ind.clone(), ind),
                 lambda: y.put_(ind, y[:3]), lambda: y.put_(ind[0], y[0])):
        with pytest.raises(RuntimeError, match="unsupported operation"):
            call()
    assert y[:3].put_(ind, y[3:] + 1).tolist() == [1, 1, 1]


def test_results_of_scans_have_their_dtype():
    x = tc.ones(3)
    for call, wanted, found in ((lambda: tc.cummax(x, 0, out=(tc.empty(0).short(), tc.empty(0).long())), "Float", "Short"),
                                (lambda: tc.cummin(x, 0, out=(tc.empty(0), tc.empty(0).int())), "Long", "Int"),
                                (lambda: tc.logcumsumexp(x.double(), 0, out=tc.empty(3)), "Double", "Float")):
        with pytest.raises(RuntimeError, match=f"expected scalar_type {wanted} but found {found}"):
            call()


def test_asserted_truth():
    tc._assert_async(tc.tensor(0.1j))
    for x, sentence in ((tc.ones(0), "Boolean value of Tensor with no values"), (tc.ones(2), "with more than one value"),
                        (tc.tensor(0), "Expected Tensor with single nonzero value, but got zero")):
        with pytest.raises(RuntimeError, match=sentence):
            tc._assert_async(x)
    with pytest.raises(RuntimeError, match="because"):
        tc._assert_async(tc.tensor(0), "because")


def test_small_rules():
    assert tc.cov(tc.arange(4.0).view(1, 4)).shape == () and tc.arange(3).roll(1, None).tolist() == [2, 0, 1]
    with pytest.raises(TypeError, match="expected Tensor as element 0 in argument 0, but got list"):
        tc.cartesian_prod([tc.ones(1)])
    for wrong in (1.5, (1.5,)):
        with pytest.raises(RuntimeError, match="should be of type ints, a tuple of ints, or a list of ints, got 1.5"):
            tc.broadcast_shapes(wrong)
    with pytest.raises(TypeError, match="apply_: the function must return numbers, not str"):
        tc.ones(1).apply_(lambda _: "text")
    with pytest.raises(RuntimeError, match=r"Can't call map2_\(\) on Variable that requires grad"):
        tc.ones(1).map2_(tc.ones(1), tc.ones(1, requires_grad=True), lambda a, b, c: a)
    with pytest.raises(RuntimeError, match="pin_memory"):
        tc.ones(1).pin_memory()
    with pytest.raises(RuntimeError, match=r"^block_diag\(\): Input tensors must have 2 or fewer dimensions"):
        tc.block_diag(tc.ones(1, 1, 1))


def test_determinism_is_remembered():
    try:
        for mode in (True, False):
            for warn_only in (True, False):
                tc.use_deterministic_algorithms(mode, warn_only=warn_only)
                assert tc.are_deterministic_algorithms_enabled() is mode
                assert tc.is_deterministic_algorithms_warn_only_enabled() is warn_only
                assert tc.get_deterministic_debug_mode() == (mode and (1 if warn_only else 2))
        with pytest.raises(TypeError, match=r"'mode' \(position 1\) must be bool, not int"):
            tc.use_deterministic_algorithms(1)
        with pytest.raises(TypeError, match="'warn_only' must be bool, not int"):
            tc.use_deterministic_algorithms(True, warn_only=1)
    finally:
        tc.set_deterministic_debug_mode(0)


def test_an_out_that_holds_more_changes_no_result():
    half, byte = tc.tensor(33000.0, dtype=tc.float16), tc.tensor(5, dtype=tc.uint8)
    assert tc.add(half, half, out=tc.empty(0, dtype=tc.float64)).item() == float("inf")
    assert tc.exp(tc.tensor(11.5, dtype=tc.float16), out=tc.empty(0)).item() == float("inf")
    assert tc.sub(byte, byte + 3, out=tc.empty(0, dtype=tc.int64)).item() == 253
    assert tc.neg(byte, out=tc.empty(0, dtype=tc.uint8)).item() == 251
    for op in (tc.neg, tc.floor, tc.ceil, tc.round, tc.trunc, tc.frac, tc.sign, tc.sgn):
        with pytest.raises(RuntimeError, match="Found dtype Double but expected Float"):
            op(tc.ones(1), out=tc.empty(0, dtype=tc.float64))
    for op in (tc.complex, tc.polar):
        with pytest.raises(RuntimeError, match="Expected object of scalar type ComplexFloat but got scalar type Float"):
            op(tc.ones(2), tc.ones(2), out=tc.empty(2))


def test_both_bounds_make_the_dtype():
    one, zero = tc.ones((), dtype=tc.float64), tc.zeros(3)
    assert tc.clamp(tc.tensor([1, 2, 3], dtype=tc.int32), one, zero + 2).dtype is tc.float32
    assert tc.clamp(tc.tensor([1, 2, 3], dtype=tc.int32), zero, one * 2).tolist() == [1, 2, 2]


def test_copies_of_views_go_into_out():
    x = tc.arange(4.0).view(2, 2)
    calls = {"alias_copy": (), "detach_copy": (), "t_copy": (), "as_strided_copy": ((2,), (1,)), "diagonal_copy": (),
             "expand_copy": ((3, 2, 2),), "narrow_copy": (0, 0, 1), "permute_copy": ((1, 0),), "select_copy": (0, 1),
             "slice_copy": (1, 0, 1), "squeeze_copy": (), "transpose_copy": (0, 1), "unfold_copy": (0, 2, 1),
             "unsqueeze_copy": (0,), "view_copy": ((4,),)}
    for name, args in calls.items():
        out = tc.empty(0)
        assert getattr(tc, name)(x, *args, out=out) is out, name
        assert out.tolist() == getattr(tc, name)(x, *args).tolist() and out.data_ptr() != x.data_ptr()
    assert tc.view_copy(tc.ones(2), tc.int32, out=tc.empty(0, dtype=tc.int32)).tolist() == [0x3F800000] * 2
    for name, args in {"split_copy": (1,), "split_with_sizes_copy": ([1, 1],), "unbind_copy": ()}.items():
        outs = (tc.empty(0), tc.empty(0))
        getattr(tc, name)(x, *args, out=outs)
        assert [o.flatten().tolist() for o in outs] == x.tolist()
        with pytest.raises(RuntimeError, match=rf"{name}\(\) expected an out= argument of size 2, got size 1"):
            getattr(tc, name)(x, *args, out=outs[:1])


def test_joins_keep_channels_last():
    x = tc.arange(48.0).view(2, 3, 2, 4)
    last = x.contiguous(memory_format=tc.channels_last)
    for dim in range(-4, 4):
        got = tc.cat([last, last[:, :, :, :]], dim)
        assert got.is_contiguous(memory_format=tc.channels_last) and got.tolist() == tc.cat([x, x], dim).tolist()
        assert tc.cat([last, x], dim).is_contiguous() and not got._is_view()
    part = tc.cat([last[:, :, :, :3], last[:, :, :, 3:].double()], -1)
    assert part.tolist() == x.tolist() and part.stride() == last.stride() and part.dtype is tc.float64
    deep = tc.ones(2, 3, 2, 2, 2).to(memory_format=tc.channels_last_3d)
    assert tc.cat([deep, deep], 1).is_contiguous(memory_format=tc.channels_last_3d)
    leaf = last.clone().requires_grad_()
    (tc.cat([leaf, leaf], 1) * tc.cat([x, -3 * x], 1)).sum().backward()
    assert leaf.grad.tolist() == (-2 * x).tolist()
    assert tc.cat([tc.ones(0), tc.ones(0)], 5).shape == (0,)


def test_strides_and_kinds_of_reshaped_tensors():
    x = tc.arange(5.0)
    assert x.expand(1, 1, 5).stride() == x.unsqueeze(0).unsqueeze(0).stride() == (5, 5, 1)
    assert x.expand(2, 1, 5).stride() == (0, 5, 1) and tc.tensor(1.0).expand(1, 1).stride() == (0, 0)
    turned = tc.arange(6.0).view(2, 3).T.requires_grad_(False)
    copy = turned.flatten()
    assert not copy._is_view() and copy._base is None and copy.tolist() == [0, 3, 1, 4, 2, 5]
    leaf = tc.arange(6.0).view(2, 3).requires_grad_()
    (leaf.T.reshape(6) * tc.arange(6.0)).sum().backward()
    assert leaf.grad.tolist() == [[0, 2, 4], [1, 3, 5]]
    copied = leaf.T.reshape(6)
    copied.mul_(2)  # not a view of the leaf
    assert type(copied.grad_fn).__name__ and leaf.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_indices_place_numbers_of_one_dtype():
    x = tc.zeros(2, 2, dtype=tc.float64)
    for key in ([0], (slice(None), [1])):
        with pytest.raises(RuntimeError, match="Index put requires the source and destination dtypes match"):
            x[key] = tc.ones(1, dtype=tc.int32)
    x[[0]] = 2
    x[x > 0] = tc.tensor([3])
    x[1] = tc.tensor([4, 5])
    assert x.tolist() == [[3, 3], [4, 5]]
    with pytest.raises(RuntimeError, match="shape mismatch"):
        tc.arange(4)[[0, 1]] = tc.ones(3)


def test_layouts():
    names = ["strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged"]
    for name in names:
        layout = getattr(tc, name)
        assert isinstance(layout, tc.layout) and repr(layout) == f"tercel.{name}" and layout.__reduce__() == name
        if name == "jagged":
            with pytest.raises(NotImplementedError, match="is not implemented for sparse types"):
                tc.zeros(2, layout=layout)
        elif name not in ("strided", "sparse_coo"):
            with pytest.raises(RuntimeError, match="Only batched sparse compressed .non-block. tensors are supported"):
                tc.zeros(2, layout=layout)


def test_factories_with_out_may_require_a_gradient():
    for make in (tc.empty, tc.zeros, tc.ones, lambda *a, **k: tc.full(*a, 2, **k)):
        out = tc.empty(0)
        assert make((2, 3), out=out, requires_grad=True) is out and out.requires_grad and out.shape == (2, 3)
    assert tc.arange(3.0, out=tc.empty(0), requires_grad=True).requires_grad
