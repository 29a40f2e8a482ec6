"""Numbers beyond the range of a dtype, sizes beyond memory, and state after errors."""

import math

import pytest

import tercel as tc
from tercel.nn import functional as F

INTEGERS = [tc.uint8, tc.int8, tc.int16, tc.int32, tc.int64, tc.uint16, tc.uint32, tc.uint64]
FAR = 2**63 - 1


# ---- numbers that a dtype cannot represent

@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
def test_a_bound_beyond_the_range_bounds_nothing(dtype):
    least, most = tc.iinfo(dtype).min, tc.iinfo(dtype).max
    x = tc.tensor([least, 5, most], dtype=dtype)
    below, above = -FAR - 1, max(FAR, most)
    for got in (x.clamp(below, above), x.clamp(min=below), x.clamp(max=above), tc.clamp_min(x, below),
                tc.clamp_max(x, above), x.clone().clamp_(below, above)):
        assert got.tolist() == x.tolist() and got.dtype is dtype
    assert x.clamp(below, 7).tolist() == [least, 5, 7]


def test_a_bound_that_nothing_is_within():
    x = tc.tensor([5, 250], dtype=tc.uint8)
    assert x.clamp(-5, 300).tolist() == [5, 250]
    for call, which in ((lambda: x.clamp(min=300), "min value 300"), (lambda: x.clamp_(max=-1), "max value -1")):
        with pytest.raises(RuntimeError, match=f"Clamp {which} is outside the representable range of Byte"):
            call()
    assert x.tolist() == [5, 250]
    assert F.hardtanh(tc.tensor([5, -7], dtype=tc.int8), -300, 300).tolist() == [5, -7]


@pytest.mark.parametrize("number", [300, -129, math.nan, math.inf])
def test_numbers_that_do_not_fit_are_refused(number):
    x = tc.tensor([1, 2], dtype=tc.int8)
    calls = [lambda: x.index_fill_(0, tc.tensor([0]), number), lambda: x.index_fill(0, tc.tensor([0]), number)]
    if isinstance(number, int):  # others give a floating-point result
        calls += [lambda: tc.where(tc.tensor([True, False]), x, number),
                  lambda: tc.where(tc.tensor([True, False]), number, x)]
    for call in calls:
        with pytest.raises(RuntimeError, match="value cannot be converted to type int8_t without overflow"):
            call()
    assert x.tolist() == [1, 2]
    assert tc.where(tc.tensor([False]), tc.ones(1, dtype=tc.float16), 1e10).tolist() == [math.inf]


def test_integers_are_added_a_whole_number_of_times():
    x, at, more = tc.tensor([5, 6]), tc.tensor([0]), tc.tensor([3])
    assert [x.index_add(0, at, more, alpha=a)[0].item() for a in (0.5, 1.5, -2, True)] == [5, 8, -1, 8]
    assert tc.tensor([True, False]).index_add(0, tc.tensor([1]), tc.tensor([True]), alpha=0.5).tolist() == [True, True]
    z = tc.tensor([5, 6j]).index_add(0, at, tc.tensor([3j]), alpha=1 + 2j)
    assert z.tolist() == [-1 + 3j, 6j]
    with pytest.raises(RuntimeError, match="without overflow"):
        tc.ones(2).index_add_(0, at, tc.ones(1), alpha=1 + 2j)


def test_one_number_goes_through_a_mask_whatever_its_dtype():
    mask = tc.tensor([True, False])
    x = tc.zeros(3, 2, dtype=tc.int64)
    x[1:, mask] = tc.tensor([[7.5]])
    assert x.tolist() == [[0, 0], [7, 0], [7, 0]]
    assert tc.zeros(2, 2).index_put_((mask,), tc.tensor([[4]])).tolist() == [[4, 4], [0, 0]]
    with pytest.raises(RuntimeError, match="source and destination dtypes match"):
        x[tc.tensor([0])] = tc.tensor(7.5)
    with pytest.raises(IndexError, match="shape of the mask"):
        x[:, tc.tensor([True, False, True])] = tc.tensor(7.5)


def test_the_median_of_no_integers():
    assert tc.median(tc.empty(0, dtype=tc.int32)).item() == 0 and tc.nanmedian(tc.empty(0, dtype=tc.int8)).item() == 0
    assert math.isnan(tc.median(tc.empty(0)).item())


# ---- empty reductions

@pytest.mark.parametrize("p", [-1, -math.inf, math.inf])
def test_norms_of_nothing(p):
    for call in (lambda: tc.norm(tc.ones(0, 3), p), lambda: tc.ones(0, 3).norm(p, dim=0),
                 lambda: tc.linalg.vector_norm(tc.ones(2, 0), p, dim=1)):
        with pytest.raises(RuntimeError, match="cannot compute the .* norm on an empty tensor"):
            call()
    assert tc.ones(0, 3).norm(p, dim=1).shape == (0,)
    assert tc.norm(tc.ones(0, 3), 2).item() == 0


def test_an_empty_list_of_dimensions():
    x = tc.tensor([[0.0, 2.0], [math.nan, 0.0]])
    for f in (tc.any, tc.all):
        assert f(x, dim=()).tolist() == f(x, dim=[], keepdim=True).tolist() == [[False, True], [True, False]]
    assert tc.any(tc.tensor([0, 7], dtype=tc.uint8), dim=[]).tolist() == [0, 1]
    assert tc.sum(tc.ones(2, 3), dim=[]).item() == 6


# ---- sizes beyond memory

@pytest.mark.parametrize("call", [
    lambda n: F.interpolate(tc.ones(1, 1, 4), size=n),
    lambda n: F.interpolate(tc.ones(1, 1, 4, 4), size=(n, 1), mode="bicubic"),
    lambda n: F.adaptive_avg_pool1d(tc.ones(1, 1, 4), n), lambda n: F.adaptive_max_pool2d(tc.ones(1, 1, 4, 4), (1, n)),
    lambda n: tc.vander(tc.ones(3), n), lambda n: tc.empty(n), lambda n: tc.ones(1).expand(n) + 1,
])
@pytest.mark.parametrize("size", [2**45, 2**62])
def test_a_result_too_large_is_refused_at_once(call, size):
    with pytest.raises((RuntimeError, MemoryError), match="cannot allocate|overflow"):
        call(size)


def test_powers_from_a_running_product():
    x = tc.tensor([1, 2, 3], dtype=tc.int16)
    assert tc.vander(x, 4).tolist() == [[1, 1, 1, 1], [8, 4, 2, 1], [27, 9, 3, 1]]
    assert tc.vander(x, 1).tolist() == [[1]] * 3 and tc.vander(x, 0).shape == (3, 0)
    y = tc.tensor([0.0, 2.0], requires_grad=True)
    tc.vander(y, 3, increasing=True).sum().backward()
    assert y.grad.tolist() == [1, 5]


# ---- after an error

def test_out_keeps_its_sizes_when_the_result_cannot_go_there():
    x, out = tc.ones(2, 3), tc.zeros(4, dtype=tc.uint8)
    for call in (lambda: tc.mul(x, x, out=out), lambda: tc.exp(x, out=out), lambda: tc.atan2(x, x, out=out),
                 lambda: tc.sum(x, 0, dtype=tc.float32, out=out), lambda: tc.neg(x, out=out)):
        with pytest.raises(RuntimeError, match="can't be cast|Expected out|Found dtype"):
            call()
        assert out.tolist() == [0, 0, 0, 0]
    with pytest.warns(UserWarning, match="resized"):
        assert tc.mul(x, x, out=tc.zeros(4)).shape == (2, 3)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        tc.add(row := tc.ones(3), x, out=row)
    assert row.tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype long int, but got float instead"):
        tc.argmax(x, 0, out=tc.empty(3))


def test_no_result_is_written_before_all_are_found_to_fit():
    least, most = tc.zeros(3), tc.zeros(3, dtype=tc.int32)
    with pytest.raises(RuntimeError, match="can't be cast"):
        tc.aminmax(tc.ones(2, 3), dim=0, out=(least, most))
    assert least.tolist() == most.tolist() == [0, 0, 0]


# ---- far from 1

def test_incomplete_gamma_functions_of_large_numbers():
    a = tc.tensor([1e7, 1e7, 1e10, 1e15, 1e300, 1e7], dtype=tc.float64)
    x = tc.tensor([1e7 + 1000, 1e7, 1e10 - 3e4, 1e15, 1e299, 1e-300], dtype=tc.float64)
    lower, upper = tc.special.gammainc(a, x), tc.special.gammaincc(a, x)
    # 1/2 + 1/(3 sqrt(2 pi a)) at x = a; elsewhere Temme's expansion in exact arithmetic.
    at = [0.5 + 1 / (3 * math.sqrt(2 * math.pi * s)) for s in (1e7, 1e15)]
    assert lower[[1, 3]].tolist() == pytest.approx(at, rel=1e-10)
    assert (lower + upper).tolist() == pytest.approx([1] * 6, abs=1e-15)
    assert lower[[4, 5]].tolist() == [0, 0]
    # Both algorithms at their boundary.
    for x in (0.9995e6, 1e6, 1.0005e6):
        below, above = (tc.special.gammainc(tc.tensor(s, dtype=tc.float64), tc.tensor(x, dtype=tc.float64)).item()
                        for s in (1e6, 1e6 + 1e-3))
        assert above == pytest.approx(below, rel=5e-6)


def test_digamma_beside_a_pole():
    x = -1 + 1e-12
    assert tc.special.digamma(tc.tensor(x, dtype=tc.float64)).item() == pytest.approx(-1 / (x + 1), rel=1e-11)


def test_degrees_and_arguments_without_end():
    one = tc.ones(1, dtype=tc.float64)
    for name in ("legendre_polynomial_p", "laguerre_polynomial_l", "hermite_polynomial_h", "chebyshev_polynomial_t"):
        assert math.isnan(getattr(tc.special, name)(one, math.inf).item()), name
        assert getattr(tc.special, name)(one, -math.inf).item() == 0, name
    assert tc.special.airy_ai(tc.tensor([1e300, 200], dtype=tc.float64)).tolist() == [0, 0]


def test_losses_of_infinite_logits_and_negative_targets():
    losses = F.binary_cross_entropy_with_logits(tc.tensor([math.inf, -math.inf, math.inf]), tc.tensor([0.0, 1, 0.5]),
                                                reduction="none")
    assert losses.tolist() == [math.inf] * 3
    log, target = tc.tensor([-1.0, -2.0]), tc.tensor([0.0, -0.5])
    assert F.kl_div(log, target, reduction="none")[0].item() == 0
    assert math.isnan(F.kl_div(log, target, reduction="none")[1].item())
