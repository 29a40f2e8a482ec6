"""Overlap of out= with operands, and results of calls with out=."""

import pytest

import tercel as tc

SHARED = "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory"
REPEATED = "unsupported operation: more than one element of the written-to tensor refers to a single memory"
places = tc.tensor([4, 3, 2, 1, 0])


def line():
    return tc.arange(1.0, 7.0)


# Operations that write one element for each element of an operand of five.
SAME_ONLY = {
    "clamp": lambda x, out: tc.clamp(x, 2, 3, out=out), "clamp_min": lambda x, out: tc.clamp_min(x, 2, out=out),
    "cumsum": lambda x, out: tc.cumsum(x, 0, out=out), "cumprod": lambda x, out: tc.cumprod(x, 0, out=out),
    "logcumsumexp": lambda x, out: tc.logcumsumexp(x, 0, out=out), "frac": lambda x, out: tc.frac(x, out=out),
    "exp": lambda x, out: tc.exp(x, out=out), "add": lambda x, out: tc.add(x, 1, out=out),
    "div": lambda x, out: tc.div(x, 2, out=out), "round": lambda x, out: tc.round(x, out=out),
    "sgn": lambda x, out: tc.sgn(x, out=out), "rad2deg": lambda x, out: tc.rad2deg(x, out=out),
    "nan_to_num": lambda x, out: tc.nan_to_num(x, out=out), "angle": lambda x, out: tc.angle(x, out=out),
    "sort": lambda x, out: tc.sort(x, out=(out, tc.empty(0, dtype=tc.int64))),
    "topk": lambda x, out: tc.topk(x, 5, out=(out, tc.empty(0, dtype=tc.int64))),
    "max": lambda x, out: tc.max(x[:, None], 1, out=(out, tc.empty(0, dtype=tc.int64))),
    "min": lambda x, out: tc.min(x[:, None], 1, out=(out, tc.empty(0, dtype=tc.int64))),
    "mode": lambda x, out: tc.mode(x[:, None], 1, out=(out, tc.empty(0, dtype=tc.int64))),
    "msort": lambda x, out: tc.msort(x, out=out), "logit": lambda x, out: tc.logit(x / 8, out=out),
    "scatter": lambda x, out: tc.scatter(x, 0, places, 0.5, out=out),
    "index_add": lambda x, out: tc.index_add(x, 0, places, tc.ones(5), out=out),
    "addmv": lambda x, out: tc.addmv(x, tc.eye(5), tc.ones(5), out=out),
}
APART = {
    "gather": lambda x, out: tc.gather(x, 0, places, out=out), "take": lambda x, out: tc.take(x, places, out=out),
    "index_select": lambda x, out: tc.index_select(x, 0, places, out=out), "cat": lambda x, out: tc.cat([x], out=out),
    "kthvalue": lambda x, out: tc.kthvalue(x[:, None], 1, 1, out=(out, tc.empty(0, dtype=tc.int64))),
    "stack": lambda x, out: tc.stack([x], out=out[None]), "hstack": lambda x, out: tc.hstack([x], out=out),
    "masked_select": lambda x, out: tc.masked_select(x, x > 0, out=out),
    "take_along_dim": lambda x, out: tc.take_along_dim(x, places, 0, out=out),
    "scatter": lambda x, out: tc.scatter(tc.zeros(5), 0, places, x, out=out),
    "scatter_add": lambda x, out: tc.scatter_add(tc.zeros(5), 0, places, x, out=out),
    "scatter_reduce": lambda x, out: tc.scatter_reduce(tc.zeros(5), 0, places, x, "sum", out=out),
    "index_copy": lambda x, out: tc.index_copy(tc.zeros(5), 0, places, x, out=out),
    "index_add": lambda x, out: tc.index_add(tc.zeros(5), 0, places, x, out=out),
}
FREE = {
    "mv": lambda x, out: tc.mv(tc.eye(5), x, out=out), "sum": lambda x, out: tc.sum(x[:, None], 1, out=out),
    "amax": lambda x, out: tc.amax(x[:, None], 1, out=out), "fft": lambda x, out: tc.fft.ifft(x, out=out).real,
    "addmv": lambda x, out: tc.addmv(tc.zeros(5), tc.eye(5), x, out=out),
}


@pytest.mark.parametrize("name", SAME_ONLY)
def test_out_may_be_the_input_but_not_a_part_of_it(name):
    call = SAME_ONLY[name]
    if name != "logit":  # whose operand is a fresh tensor here
        x = line()
        with pytest.raises(RuntimeError, match=SHARED):
            call(x[:5], x[1:])
    x = line()[:5]
    want = line()[:5]
    call(line()[:5], want)
    call(x, x)
    assert tc.allclose(x, want)


@pytest.mark.parametrize("name", APART)
def test_out_may_not_be_the_input(name):
    for operand, out in ((slice(0, 5), slice(1, 6)), (slice(0, 5), slice(0, 5))):
        x = line()
        with pytest.raises(RuntimeError, match=SHARED):
            APART[name](x[operand], x[out])
        assert x.tolist() == line().tolist()
    x = line()
    APART[name](x[:5], tc.empty(5))


@pytest.mark.parametrize("name", FREE)
def test_out_may_be_a_part_of_what_is_read_before(name):
    dtype = tc.complex64 if name == "fft" else tc.float32
    x, want = line().to(dtype), tc.empty(5, dtype=dtype)
    FREE[name](line().to(dtype)[:5], want)
    FREE[name](x[:5], x[1:])
    assert tc.allclose(x[1:], want)


@pytest.mark.parametrize("name", sorted({*SAME_ONLY, *APART} - {"kthvalue"}))
def test_out_holds_every_element_once(name):
    call = {**SAME_ONLY, **APART}[name]
    with pytest.raises(RuntimeError, match=REPEATED):
        call(line()[:5], tc.zeros(1).expand(5))


def test_indices_may_not_be_written_to():
    i = tc.tensor([1, 0])
    for call in (lambda: tc.gather(tc.tensor([5, 6]), 0, i, out=i), lambda: tc.take(tc.tensor([5, 6]), i, out=i),
                 lambda: tc.index_select(tc.tensor([5, 6]), 0, i, out=i), lambda: i.put_(i, i)):
        with pytest.raises(RuntimeError, match=SHARED):
            call()
    assert i.tolist() == [1, 0]


def test_results_put_into_out_have_a_type_of_their_own():
    x = tc.tensor([[1.0, 5.0], [7.0, 2.0]])
    result = tc.max(x, 1, out=(tc.empty(2), tc.empty(2, dtype=tc.int64)))
    assert type(result) is tc.return_types.max_out and result.values.tolist() == [5, 7]
    assert repr(type(tc.linalg.qr(x, out=(tc.empty(0), tc.empty(0))))) == "<class 'tercel.return_types.linalg_qr_out'>"
    assert type(tc.sort(x)) is tc.return_types.sort is not tc.return_types.sort_out


def test_frequencies_into_out():
    for call in (tc.fft.fftfreq, tc.fft.rfftfreq):
        name = call.__name__.split("_")[-1]
        with pytest.raises(RuntimeError, match=f"{name} requires a floating point or complex dtype"):
            call(5, out=tc.empty(5, dtype=tc.int64))
        with pytest.raises(RuntimeError, match=r"dtype Double does not match dtype of out parameter \(Float\)"):
            call(5, out=tc.empty(5), dtype=tc.float64)
        out = tc.empty(0, dtype=tc.float64)
        assert call(4, 0.5, out=out) is out and out.tolist() == call(4, 0.5).tolist()


def test_what_is_known_of_internal_overlap():
    known = tc._debug_has_internal_overlap
    assert known(tc.zeros(2, 3).t()) == known(tc.zeros(())) == 0 and known(tc.zeros(1).expand(3)) == 1
    assert known(tc.zeros(6)[::2]) == 2 and known(tc.zeros(6).as_strided((2, 3), (1, 1))) == 2


def test_take_along_dim_counts_from_the_end():
    x = tc.arange(12.0).reshape(3, 4).requires_grad_()
    y = tc.take_along_dim(x, tc.tensor([[-1, 0]]), 1)
    assert y.tolist() == [[3, 0], [7, 4], [11, 8]]
    y.sum().backward()
    assert x.grad.tolist() == [[1, 0, 0, 1]] * 3
    with pytest.raises((IndexError, RuntimeError), match="out of bounds"):
        tc.take_along_dim(x, tc.tensor([[4]]), 1)


@pytest.mark.parametrize("sizes, strides, want", [
    ([(3, 1)], [(2, 6)], (1, 3)),
    ([(1, 1, 3)], [(2, 12, 2)], (1, 3, 1)),
    ([(1, 2), (1,), (2,)], [(1, 1), (2,), (1,)], (1, 1)),
    ([(2, 3, 1)] * 3, [(6, 2, 12), (1, 2, 1), (2, 4, 0)], (3, 1, 6)),
    ([(2, 3, 1), (2, 3, 1)], [(3, 1, 7), (3, 1, 7)], (3, 1, 1)),
    ([(1, 2, 2, 1), (1, 2, 2, 1)], [(7, 1, 2, 3), (7, 1, 2, 3)], (4, 1, 2, 2)),
])
def test_results_keep_the_order_of_dimensions_of_size_1(sizes, strides, want):
    operands = [tc.zeros(40).as_strided(size, stride) for size, stride in zip(sizes, strides)]
    call = {1: tc.neg, 2: tc.add, 3: tc.lerp}[len(operands)]
    assert call(*operands).stride() == want


def test_a_number_makes_strides_of_size_1_count():
    x = tc.zeros(8).as_strided((3, 1), (1, 7))
    assert x.is_contiguous() and (x + x).stride() == (1, 1) and (x * 2).stride() == (1, 3)
