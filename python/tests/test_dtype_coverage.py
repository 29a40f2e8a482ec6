"""Dtypes that an operation takes although its kernels are for others: integers in convolutions and pools, complex
logarithms, squares of bools."""

import numpy as np
import pytest

import tercel as tc

F = tc.nn.functional
INTEGERS = [tc.uint8, tc.int8, tc.int16, tc.int32, tc.int64]
rng = np.random.default_rng(5)


def integers(dtype, *sizes, low=0, high=9):
    return tc.from_numpy(rng.integers(low, high, sizes)).to(dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("dims, options", [
    (1, {}), (1, {"stride": 2, "padding": 1, "dilation": 2}), (2, {"stride": (2, 1), "padding": (0, 2), "groups": 2}),
    (2, {"dilation": (1, 2), "padding": "same"}), (3, {"padding": 1, "groups": 4}),
])
def test_convolutions_of_integers(dtype, dims, options):
    groups = options.get("groups", 1)
    x, weight = integers(dtype, 2, 4, *[7, 6, 5][:dims]), integers(dtype, 4, 4 // groups, *[3, 2, 3][:dims], high=4)
    bias = integers(dtype, 4)
    call = getattr(F, f"conv{dims}d")
    got = call(x, weight, bias, **options)
    want = call(x.double(), weight.double(), bias.double(), **options)
    assert got.dtype is dtype and got.tolist() == want.to(tc.int64).to(dtype).tolist()
    assert call(x[0], weight, **options).tolist() == call(x[:1], weight, **options)[0].tolist()


@pytest.mark.parametrize("dims, options", [
    (1, {}), (1, {"stride": 3, "padding": 1, "output_padding": 2}),
    (2, {"stride": (2, 1), "padding": (1, 3), "output_padding": (1, 0), "dilation": (1, 2), "groups": 2}),
    (3, {"stride": 2, "groups": 4}),
])
def test_transposed_convolutions_of_integers(dims, options):
    groups = options.get("groups", 1)
    x, weight = integers(tc.int64, 2, 4, *[4, 5, 3][:dims]), integers(tc.int64, 4, 3, *[3, 3, 2][:dims], low=-4)
    bias = integers(tc.int64, 3 * groups)
    call = getattr(F, f"conv_transpose{dims}d")
    want = call(x.double(), weight.double(), bias.double(), **options)
    assert call(x, weight, bias, **options).tolist() == want.to(tc.int64).tolist()


def test_integers_are_convolved_exactly():
    x, weight = tc.tensor([[[2**62 + 1, 3, 2**53 + 1]]]), tc.tensor([[[1, 2]]])
    assert F.conv1d(x, weight).tolist() == [[[2**62 + 7, 2**54 + 5]]]
    with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
        F.conv1d(x.bool(), weight.bool())


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("dims", [2, 3])
def test_largest_integers(dtype, dims):
    x = integers(dtype, 2, 3, *[7, 6, 5][:dims], low=0 if dtype is tc.uint8 else -9, high=100)
    call = getattr(F, f"max_pool{dims}d")
    options = {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True, "return_indices": True}
    got, at = call(x, **options)
    want, there = call(x.double(), **options)
    assert got.dtype is dtype and got.tolist() == want.to(dtype).tolist() and at.tolist() == there.tolist()
    assert call(x, 2).tolist() == call(x.double(), 2).to(dtype).tolist()


def test_pools_of_integers_are_exact():
    x = tc.tensor([[[[2**62, 2**62 + 1], [-1, -2**62]]]])
    assert F.max_pool2d(x, 2).item() == 2**62 + 1
    assert F.avg_pool2d(x, 2).item() == 2**60 and F.avg_pool2d(tc.tensor([[[[-1, -2], [0, 0]]]]), 2).item() == 0
    with pytest.raises(NotImplementedError, match="not implemented for 'Int'"):
        F.avg_pool2d(x.int(), 2)
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        F.max_pool1d(x[0], 2)
    with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
        F.max_pool2d(x.bool(), 2)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("options", [
    {"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
    {"kernel_size": 3, "padding": 1, "count_include_pad": False},
])
def test_averages_of_integers(dims, options):
    x = integers(tc.int64, 2, 3, *[7, 6, 5][:dims], low=-50, high=50)
    call = getattr(F, f"avg_pool{dims}d")
    want = call(x.double(), **options)
    assert call(x, **options).tolist() == (want + want.sign() * 1e-9).trunc().to(tc.int64).tolist()
    if dims > 1:
        assert call(x, 2, divisor_override=3).tolist() == (call(x.double(), 2) * 2**dims / 3).trunc().long().tolist()


def test_square_of_bools_is_a_power():
    x = tc.tensor([True, False])
    assert x.square().dtype is tc.int64 and tc.square(x).tolist() == [1, 0]
    assert tc.square(x, out=tc.empty(2)).tolist() == [1, 0]
    with pytest.raises(RuntimeError, match="result type Long can't be cast to the desired output type Bool"):
        tc.square(x, out=x.clone())


complex_numbers = tc.from_numpy(rng.normal(size=(3, 5)) + 1j * rng.normal(size=(3, 5)))


def test_complex_logarithms_of_sums():
    x, y = complex_numbers, complex_numbers.flip(1) * 2
    log, exp = np.log, np.exp
    n, m = x.numpy(), y.numpy()
    np.testing.assert_allclose(tc.logaddexp(x, y).numpy(), log(exp(n) + exp(m)), rtol=1e-12)
    np.testing.assert_allclose(tc.logaddexp(x, y.real).numpy(), log(exp(n) + exp(m.real)), rtol=1e-12)
    np.testing.assert_allclose(tc.logsumexp(x, 1).numpy(), log(exp(n).sum(1)), rtol=1e-12)
    assert tc.logsumexp(x, (0, 1), keepdim=True).shape == (1, 1)
    np.testing.assert_allclose(tc.exp(tc.logcumsumexp(x, 1)).numpy(), exp(n).cumsum(1), rtol=1e-12)
    np.testing.assert_allclose(F.softsign(x).numpy(), n / (1 + abs(n)), rtol=1e-12)
    out = tc.empty(3, 5, dtype=tc.complex128)
    assert tc.logaddexp(x, y, out=out) is out and out.tolist() == tc.logaddexp(x, y).tolist()


def test_complex_logarithms_of_sums_of_what_exp_cannot_hold():
    x = tc.tensor([2000 + 1j, -3000 + 2j, 2000 + 1j, -np.inf + 1j])
    total = tc.logsumexp(x, 0).item()
    assert total == pytest.approx(2000 + np.log(2) + 1j, rel=1e-6)
    assert tc.logcumsumexp(x, 0)[2].item() == pytest.approx(total, rel=1e-6)
    assert tc.logaddexp(x[3], x[3]).item().real == -np.inf and tc.logaddexp(x[0], x[3]).item() == pytest.approx(2000 + 1j)


@pytest.mark.parametrize("name, call", [
    ("logaddexp", lambda x: tc.logaddexp(x, x.flip(1) * 2)), ("logsumexp", lambda x: tc.logsumexp(x, 1)),
    ("logcumsumexp", lambda x: tc.logcumsumexp(x, 1)), ("softsign", F.softsign),
])
def test_gradients_of_complex_logarithms(name, call):
    assert tc.autograd.gradcheck(call, (complex_numbers.clone().requires_grad_(),))


def test_integers_where_nothing_is_calculated():
    for dtype in [tc.bool, *INTEGERS]:
        x = tc.tensor([[1, 0], [1, 1]]).to(dtype)
        assert F.dropout(x, 0.5, False).tolist() == F.dropout(x, 0.0).tolist() == x.tolist()
        assert F.dropout(x, 1.0).tolist() == tc.zeros_like(x).tolist()
        assert F.embedding(tc.tensor([1, 0, 1]), x).tolist() == x[[1, 0, 1]].tolist()
        with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type"):
            F.dropout(x)
        p, lower, upper = tc.lu_unpack(x, tc.tensor([2, 2], dtype=tc.int32))
        assert p.dtype is lower.dtype is upper.dtype is dtype and upper.tolist() == tc.tensor([[1, 0], [0, 1]]).to(dtype).tolist()
        assert p.tolist() == tc.tensor([[0, 1], [1, 0]]).to(dtype).tolist()
        assert lower.tolist() == tc.tensor([[1, 0], [1, 1]]).to(dtype).tolist()


def test_tables_of_complex_numbers():
    weight, index = complex_numbers.clone().requires_grad_(), tc.tensor([[0, 2], [2, 1]])
    assert tc.equal(F.embedding(index, weight), weight[index])
    assert tc.autograd.gradcheck(lambda w: F.embedding(index, w), (weight,))
    F.embedding(index, weight, padding_idx=2).real.sum().backward()
    assert weight.grad.real.sum(1).tolist() == [5, 5, 0]


@pytest.mark.parametrize("dtype", [tc.float16, tc.bfloat16])
def test_matrix_exponentials_of_halves(dtype):
    x = tc.tensor([[0.5, 1], [-1, 0.25]], dtype=dtype)
    assert tc.matrix_exp(x).tolist() == tc.matrix_exp(x.float()).to(dtype).tolist()
    assert tc.lu_unpack(x, tc.tensor([1, 2], dtype=tc.int32))[2].dtype is dtype


def test_complex_rows_of_unit_squares():
    x, weight = complex_numbers, complex_numbers[0]
    n = x.numpy()
    want = n / np.sqrt((n * n).mean(1, keepdims=True) + np.finfo(np.float64).eps)
    np.testing.assert_allclose(F.rms_norm(x, (5,)).numpy(), want, rtol=1e-10)
    np.testing.assert_allclose(F.rms_norm(x, (5,), weight, 0.5).numpy(),
                               n / np.sqrt((n * n).mean(1, keepdims=True) + 0.5) * weight.numpy(), rtol=1e-10)
    assert tc.autograd.gradcheck(lambda x: F.rms_norm(x, (5,), weight, 0.5), (x.clone().requires_grad_(),))


def test_losses_of_other_dtypes():
    x, y = complex_numbers, complex_numbers.flip(0)
    n, m = x.numpy(), y.numpy()
    np.testing.assert_allclose(F.soft_margin_loss(x, y, reduction="none").numpy(), np.log1p(np.exp(-n * m)), rtol=1e-10)
    a, b, sign = tc.tensor([[1, 2], [3, 4]]), tc.tensor([[2, 1], [1, 0]]), tc.tensor([1, -1])
    for dtype in INTEGERS:
        assert F.cosine_embedding_loss(a.to(dtype), b.to(dtype), sign).item() == pytest.approx(
            F.cosine_embedding_loss(a.float(), b.float(), sign).item())


def test_local_responses_of_integers():
    x = tc.arange(12).view(1, 6, 2)
    squares = tc.nn.functional.pad(x * x, (0, 0, 1, 1)).unfold(1, 3, 1).sum(-1) // 3
    np.testing.assert_allclose(F.local_response_norm(x, 3).numpy(), (x / (squares * 1e-4 + 1) ** 0.75).numpy(), rtol=1e-6)


def test_limits_of_unsigned_integers():
    x = tc.tensor([0, 1, 2, 7, 255], dtype=tc.uint8)
    assert F.hardtanh(x).tolist() == [0, 1, 1, 1, 1] and F.hardtanh(x, -3, 200).tolist() == [0, 1, 2, 7, 200]
    with pytest.raises(NotImplementedError, match="Bool inputs not supported for hardtanh"):
        F.hardtanh(x.bool())


@pytest.mark.parametrize("call", [lambda x: tc.cummax(x, 0), lambda x: tc.cummin(x, -1), lambda x: tc.kthvalue(x, 1), tc.mode])
def test_a_complex_number_alone_needs_no_order(call):
    x = tc.tensor(1 + 2j)
    values, indices = call(x)
    assert values.item() == 1 + 2j and indices.item() == 0 and indices.dtype is tc.int64
    with pytest.raises(NotImplementedError):
        call(tc.ones(2, dtype=tc.complex64))


def test_complex_averages_of_all():
    x = tc.randn(2, 3, 4, 5, dtype=tc.complex128)
    assert tc.allclose(F.adaptive_avg_pool2d(x, 1), x.mean((2, 3), keepdim=True))
    assert tc.allclose(F.adaptive_avg_pool1d(x[0], 1), x[0].mean(2, keepdim=True))
    with pytest.raises(NotImplementedError, match="adaptive_max_pool2d"):
        F.adaptive_max_pool2d(x, 1)
    with pytest.raises(NotImplementedError, match="adaptive_avg_pool2d"):
        F.adaptive_avg_pool2d(x, 2)


def test_counts_and_neighbours_of_mixed_dtypes():
    for dtype in INTEGERS:
        assert tc.repeat_interleave(tc.tensor([1, 0, 2]).to(dtype)).tolist() == [0, 2, 2]
        assert tc.nextafter(tc.ones(1), tc.tensor([2]).to(dtype)).item() > 1
    with pytest.raises(NotImplementedError, match="nextafter_cpu"):
        tc.nextafter(tc.tensor([1]), 2 * tc.ones(1, dtype=tc.int32))


def test_pixels_are_whole_after_lines_and_columns():
    x = tc.tensor([[0, 200], [77, 255]], dtype=tc.uint8).view(1, 1, 2, 2)
    lines = (F.interpolate(x.float(), size=(2, 5), mode="bilinear") + 0.5).floor()
    want = (F.interpolate(lines, size=(4, 5), mode="bilinear") + 0.5).floor()
    for options in ({"size": (4, 5)}, {"scale_factor": (2, 2.5)}):
        assert F.interpolate(x, mode="bilinear", **options).tolist() == want.to(tc.uint8).tolist()
    assert F.interpolate(x, size=4, mode="bicubic", align_corners=True).shape == (1, 1, 4, 4)
    assert F.interpolate(x, size=2, mode="bilinear").tolist() == x.tolist()
    # A sum of half a step goes up.
    assert F.interpolate(tc.tensor([[[[0, 1]]]], dtype=tc.uint8), size=(1, 1), mode="bilinear").item() == 1
