"""New tensors: what PyTorch's factories infer, refuse, and do with a tensor that they are given."""

import warnings

import pytest

import tercel as tc


def test_out_decides_the_dtype():
    assert tc.full((2,), 1.0, out=tc.empty(2, dtype=tc.int64)).tolist() == [1, 1]
    assert tc.linspace(0, 1, 3, out=tc.empty(0, dtype=tc.int64)).tolist() == [0, 0, 1]
    assert tc.arange(0, 5.5, out=tc.empty(0, dtype=tc.int32)).dtype is tc.int32
    for call in (lambda out: tc.zeros(2, dtype=tc.float64, out=out), lambda out: tc.ones(2, dtype=tc.int64, out=out),
                 lambda out: tc.full((2,), 1, dtype=tc.int64, out=out), lambda out: tc.eye(2, dtype=tc.bool, out=out),
                 lambda out: tc.arange(2, dtype=tc.int64, out=out), lambda out: tc.empty(2, dtype=tc.int64, out=out),
                 lambda out: tc.logspace(0, 1, 2, dtype=tc.float64, out=out)):
        with pytest.raises(RuntimeError, match=r"dtype \w+ does not match dtype of out parameter \(Float\)"):
            call(tc.empty(2))


@pytest.mark.parametrize("make, want", [
    (lambda out: tc.arange(4, out=out), [0, 1, 2, 3]), (lambda out: tc.arange(1, 9, 2, out=out), [1, 3, 5, 7]),
    (lambda out: tc.linspace(0, 3, 4, out=out), [0, 1, 2, 3]), (lambda out: tc.range(0, 3, out=out), [0, 1, 2, 3]),
    (lambda out: tc.logspace(0, 3, 4, base=2, out=out), [1, 2, 4, 8]),
])
@pytest.mark.filterwarnings("ignore:tercel.range")
def test_numbers_in_a_row_fill_any_sizes(make, want):
    x = tc.zeros(2, 3)
    make(x.narrow(1, 1, 2))
    assert x.tolist() == [[0, *want[:2]], [0, *want[2:]]]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", message="tercel.range")
        assert make(tc.empty(0)).tolist() == want
    with pytest.warns(UserWarning, match="The out tensor will be resized"):
        assert make(tc.empty(1, 3)).tolist() == want
    with pytest.raises(RuntimeError, match="unsupported operation"):
        make(tc.empty(1).expand(4))


def test_ranges():
    with pytest.warns(UserWarning, match="tercel.range is deprecated"):
        assert tc.range(0, 2, dtype=tc.int64).tolist() == [0, 1, 2]
    assert tc.arange(True).tolist() == [0] and tc.arange(0.5, 5.5, 1.5, dtype=tc.int64).tolist() == [0, 1, 2, 3]
    for call, text in ((lambda: tc.arange(0, float("inf")), "unsupported range"), (lambda: tc.arange(0, 1, 0), "nonzero"),
                       (lambda: tc.arange(1e-38, 3e38), "overflow"), (lambda: tc.eye(-1, 1), "greater or equal to"),
                       (lambda: tc.linspace(0, 1, -1), "number of steps must be non-negative"),
                       (lambda: tc.empty_permuted((2, 3), (0, 0)), "Duplicate dim"),
                       (lambda: tc.empty_permuted((2, 3), (0, 2)), "Dimension out of range"),
                       (lambda: tc.empty_permuted((2, 3), (0,)), "Number of dimensions in size")):
        with pytest.raises(RuntimeError, match=text):
            call()
    assert tc.empty_permuted((2, 3, 4), (0, 2, 1)).stride() == (12, 1, 3)


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hann", "kaiser"])
def test_windows(name):
    window = getattr(tc, name + "_window")
    assert window(5).shape == (5,) and window(5, dtype=tc.float64).dtype is tc.float64
    assert window(5, requires_grad=True).requires_grad and window(0).shape == (0,) and window(1).tolist() == [1]
    assert window(6, False)[:5].sub(window(5)).abs().max() < 1e-6
    with pytest.raises(RuntimeError, match="floating point"):
        window(3, dtype=tc.int64)
    with pytest.raises(RuntimeError, match="not implemented for sparse types"):
        window(3, layout=tc.sparse_coo)
    with pytest.raises(RuntimeError, match="requires non-negative window_length, got window_length=-1"):
        window(-1)


def test_window_parameters():
    assert tc.hamming_window(3, False, 0.5, 0.25).tolist() == [0.25, 0.75, 0.25]
    assert tc.hamming_window(3, periodic=False, alpha=0.5).tolist() == tc.hamming_window(3, False, 0.5, 0.46).tolist()
    assert not tc.kaiser_window(5, beta=3.0).equal(tc.kaiser_window(5))


def test_meshgrid_wants_to_be_told():
    with pytest.warns(UserWarning, match="will be required to pass the indexing arg"):
        assert tc.meshgrid(tc.ones(2), tc.ones(3))[0].shape == (2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tc.meshgrid(tc.ones(2), tc.ones(3), indexing="xy")[0].shape == (3, 2)
