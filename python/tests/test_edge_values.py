"""Edge cases of operations: NaN, empty tensors, numbers out of range; and memory order of results."""

import math

import pytest

import tercel as tc

F = tc.nn.functional
nan, inf = math.nan, math.inf
FLOATS = [tc.float16, tc.bfloat16, tc.float32, tc.float64]


def same(got, want):
    want = tc.tensor(want, dtype=got.dtype)
    assert got.shape == want.shape and tc.allclose(got, want, equal_nan=True, rtol=1e-4), got


@pytest.mark.parametrize("dtype", FLOATS)
def test_sign_of_nan_is_zero(dtype):
    x = tc.tensor([nan, inf, -0.0, 3, -3] * 9, dtype=dtype)
    assert tc.sign(x).tolist() == [0, 1, 0, 1, -1] * 9 == tc.sgn(x).tolist()
    assert tc.sgn(tc.tensor([complex(nan, 1)])).isnan().all()


def test_sinc_of_infinities():
    assert tc.sinc(tc.tensor([inf, -inf, nan])).isnan().all() and tc.sinc(tc.zeros(())).item() == 1


def test_numbers_of_differences_with_nan():
    a, b = tc.tensor([[nan, 1.0], [2, 3]], requires_grad=True), tc.tensor([[nan, 1.0], [2, 1]])
    same(tc.cdist(a, b, p=0).detach(), [[nan, nan], [nan, 1]])
    same(F.pdist(a, 0).detach(), [nan])
    assert tc.dist(a, b, 0).item() == 2
    tc.cdist(a, b, p=0)[1, 1].backward()
    assert a.grad.tolist() == [[0, 0], [0, 0]]


PLACES = [[nan, 0.0], [0, nan], [nan, nan], [inf, 0], [-inf, inf], [1e30, 0], [0.3, 0.2]]


@pytest.mark.parametrize("mode, padding, want", [
    ("bilinear", "zeros", [nan, nan, nan, nan, nan, 0, 9.15]), ("bilinear", "border", [6, 1.5, 0, 9, 12, 9, 9.15]),
    ("bilinear", "reflection", [6, 1.5, 0, 6, 0, 6, 9.15]), ("nearest", "zeros", [0, 0, 0, 0, 0, 0, 10]),
    ("nearest", "border", [8, 2, 0, 11, 12, 11, 10]), ("nearest", "reflection", [8, 2, 0, 8, 0, 8, 10]),
    ("bicubic", "zeros", [nan] * 5 + [0, 8.9366]), ("bicubic", "border", [nan] * 5 + [9, 8.9366]),
])
def test_samples_of_images_where_there_is_no_place(mode, padding, want):
    x, grid = tc.arange(16.0).view(1, 1, 4, 4), tc.tensor([[PLACES]], requires_grad=True)
    got = F.grid_sample(x, grid, mode, padding, True).flatten()
    same(got.detach(), want)
    if padding == "border" and mode == "bilinear":
        got.sum().backward()
        assert grid.grad.isfinite().all()


@pytest.mark.parametrize("padding, want", [("zeros", [0, 0, 0, 0]), ("border", [33, 37.5, 63, 33]),
                                           ("reflection", [33, 37.5, 63, 33])])
def test_samples_of_volumes_where_there_is_no_place(padding, want):
    places = [[nan, 0.0, 0], [0, nan, 0], [nan, nan, nan], [inf, 0, 0]]
    x = tc.arange(64.0).view(1, 1, 4, 4, 4)
    same(F.grid_sample(x, tc.tensor([[[places]]]), "bilinear", padding, True).flatten(), want)


def test_products_of_integers_take_whole_factors():
    i = tc.tensor([5, 7])
    assert tc.addcmul(i, i, i, value=2.5).tolist() == [55, 105] == i.clone().addcmul_(i, i, value=2.5).tolist()
    assert tc.addcmul(i, i, i, value=-2.5).tolist() == [-45, -91]
    assert tc.addcmul(i.float(), i, i, value=2.5).tolist() == [67.5, 129.5]
    with pytest.raises(RuntimeError, match="value cannot be converted to type int64_t without overflow"):
        tc.addcmul(i, i, i, value=1j)
    with pytest.raises(RuntimeError, match="value cannot be converted to type float without overflow"):
        i.float().addcmul_(i, i, value=1j)
    with pytest.raises(RuntimeError, match="Integer division with addcdiv is no longer supported"):
        tc.addcdiv(i, i, i, value=2.5)


@pytest.mark.parametrize("rate", [0, -1, nan])
def test_exponential_numbers_need_a_rate(rate):
    with pytest.raises(RuntimeError, match=f"exponential_ expects lambda > 0.0, but found lambda={rate}"):
        tc.empty(3).exponential_(rate)


def test_norms_of_empty_matrices():
    for shape in ((0, 0), (2, 0), (0, 3), (4, 2, 0), (0, 3, 3)):
        for order in ("fro", "nuc", 1, 2, inf):
            assert tc.linalg.matrix_norm(tc.ones(shape), order).tolist() == [0.0] * (shape[0] if len(shape) == 3 else 1) or \
                tc.linalg.matrix_norm(tc.ones(shape), order).item() == 0
    for shape, order in (((0, 3), -inf), ((2, 0), -1), ((2, 0), -2)):
        with pytest.raises(IndexError, match="to have non-zero size"):
            tc.linalg.matrix_norm(tc.ones(shape), order)
    assert tc.linalg.matrix_norm(tc.ones(2, 0), -inf).item() == 0
    assert tc.linalg.cond(tc.ones(2, 0)).item() == 0 == tc.linalg.cond(tc.ones(0, 0), "fro").item()
    with pytest.raises(RuntimeError, match="must be batches of square matrices"):
        tc.linalg.cond(tc.ones(2, 0), "fro")


def test_views_that_reach_further_than_numbers_go():
    for sizes, strides, offset in (((2**62, 4), (1, 1), 0), ((2**62,), (4,), 0), ((2, 3), (1, 1), 2**62)):
        with pytest.raises(RuntimeError, match=r"Storage size calculation overflowed with sizes=\[.*\] and strides=\["):
            tc.ones(4).as_strided(sizes, strides, offset)
    assert tc.ones(4).as_strided((0, 2**62), (4, 2**61)).numel() == 0


def test_sums_without_nan_in_other_dtypes():
    x = tc.tensor([1.5, nan, 2.25])
    assert tc.nansum(x, dtype=tc.uint8).item() == 3 and tc.nansum(x, dtype=tc.bool).item() is True
    for dtype, word in ((tc.int32, "Int"), (tc.uint8, "Byte"), (tc.bool, "Bool")):
        with pytest.raises(NotImplementedError, match=f"\"nansum_cpu\" not implemented for '{word}'"):
            tc.nansum(x, 0, out=tc.empty((), dtype=dtype))
    assert tc.nansum(tc.tensor([3, 4]), 0, out=tc.empty((), dtype=tc.int32)).item() == 7
    assert tc.nansum(x, 0, out=tc.empty((), dtype=tc.float64)).item() == 3.75


def test_masked_logarithms_of_sums_keep_the_dtype():
    mask = tc.tensor([True, False])
    for dtype in (tc.int32, tc.int64, tc.float16, tc.float32):
        assert tc.masked.logsumexp(tc.ones(2).to(dtype), 0, mask=mask).dtype is dtype
    assert tc.masked.logsumexp(tc.ones(2, dtype=tc.int32), 0, mask=mask, dtype=tc.float64).item() == 1
    with pytest.raises(NotImplementedError, match="identity of logsumexp"):
        tc.masked.logsumexp(mask, 0)


@pytest.mark.parametrize("dtype", [tc.uint8, tc.int32, tc.int64, tc.bool])
def test_negative_powers_of_integers(dtype):
    x = tc.tensor([1, 3]).to(dtype)
    for call in (lambda: x**-1, lambda: tc.pow(x, -2), lambda: x.clone().pow_(-2),
                 lambda: tc.pow(x, -3, out=tc.empty_like(x))):
        with pytest.raises(RuntimeError, match="^Integers to negative integer powers are not allowed.$"):
            call()
    assert tc.pow(x, -1.0)[0].item() == 1


def strided(name):
    base = tc.arange(120.0).view(2, 3, 4, 5)
    return {"plain": base, "transposed": base.transpose(1, 3), "channels_last": base.contiguous(memory_format=tc.channels_last),
            "sliced": base[:, :, ::2], "expanded": base[:, :1].expand(2, 3, 4, 5)}[name]


LAYOUTS = [  # of the operand, of what is sorted, rolled along one dimension, rolled by nothing, filled
    ("plain", (60, 20, 5, 1), (60, 20, 5, 1), (60, 20, 5, 1), (60, 20, 5, 1)),
    ("transposed", (60, 1, 5, 20), (60, 12, 3, 1), (60, 12, 3, 1), (60, 12, 3, 1)),
    ("channels_last", (60, 1, 15, 3), (60, 1, 15, 3), (60, 20, 5, 1), (60, 20, 5, 1)),
    ("sliced", (30, 10, 5, 1), (30, 10, 5, 1), (30, 10, 5, 1), (30, 10, 5, 1)),
    ("expanded", (60, 20, 5, 1), (60, 20, 5, 1), (60, 20, 5, 1), (60, 20, 5, 1)),
]


@pytest.mark.parametrize("name, order, rolled, still, filled", LAYOUTS)
def test_how_results_lie_in_memory(name, order, rolled, still, filled):
    x = strided(name)
    for dim in (0, 1, -1):
        values, indices = tc.sort(x, dim)
        assert values.stride() == indices.stride() == order == tc.argsort(x, dim).stride()
        assert tc.equal(values, tc.sort(x.contiguous(), dim).values) and tc.equal(values, x.gather(dim, indices))
    assert tc.roll(x, 1, 1).stride() == rolled and tc.roll(x, 0, 1).stride() == still
    assert tc.equal(tc.roll(x, 1, 1), tc.roll(x.contiguous(), 1, 1))
    for value in (1.0, tc.tensor(1.0)):
        got = x.masked_fill(x > 3, value)
        assert got.stride() == filled and tc.equal(got, tc.where(x > 3, 1.0, x))


def test_gradients_of_filling():
    x = tc.rand(3, 4, dtype=tc.float64, requires_grad=True)
    value = tc.tensor(2.0, dtype=tc.float64, requires_grad=True)
    mask = tc.rand(2, 3, 4) > 0.5
    assert tc.autograd.gradcheck(lambda x: x.masked_fill(mask, 2.0), (x,))
    assert tc.autograd.gradcheck(lambda x, v: x.masked_fill(mask, v), (x, value))
    assert tc.autograd.gradgradcheck(lambda x, v: x.t().masked_fill(mask[0].t(), v), (x, value))
    assert x.masked_fill(mask, 2.0).grad_fn.name() == "MaskedFillBackward0"


def attention(**more):
    q, kv = tc.rand(3, 2, 4), tc.rand(5, 2, 4)
    return F.multi_head_attention_forward(q, kv, kv, 4, 2, tc.rand(12, 4), tc.zeros(12), None, None, False, 0.0,
                                          tc.eye(4), tc.zeros(4), **more)


def test_attention_to_given_keys_and_values():
    keys, values = tc.rand(4, 6, 2), tc.zeros(4, 6, 2)
    output, shares = attention(static_k=keys, static_v=values)
    assert shares.shape == (2, 3, 6) and output.shape == (3, 2, 4) and output.abs().sum() == 0
    ones, _ = attention(static_k=keys, static_v=values + 1)
    assert tc.allclose(ones, tc.ones(3, 2, 4))
    mask = tc.zeros(2, 6, dtype=tc.bool)
    mask[:, 3:] = True
    assert attention(static_k=keys, static_v=values, key_padding_mask=mask)[1][:, :, 3:].abs().sum() == 0
    with pytest.raises(AssertionError, match=r"expecting static_k.size\(0\) of 4, but got 3"):
        attention(static_k=keys[:3], static_v=values)
    with pytest.raises(AssertionError, match=r"expecting static_v.size\(2\) of 2, but got 1"):
        attention(static_k=keys, static_v=values[:, :, :1])
