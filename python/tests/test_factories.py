"""Factories: inferred dtypes, errors, and out= tensors, as in PyTorch."""

import warnings

import numpy as np
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


def test_frombuffer():
    for data, dtype, want in ((np.ones((2, 2)), tc.float64, [1, 1, 1, 1]), (np.array(3.0), tc.float64, [3]),
                              (memoryview(np.ones(3, dtype=bool)), tc.bool, [True] * 3),
                              (np.array([-1, 0, 0, 0, -1, 0, 0, 0], dtype=np.int8), tc.int32, [255, 255])):
        x = tc.frombuffer(data, dtype=dtype)
        assert x.tolist() == want and x.data_ptr() == np.asarray(data).__array_interface__["data"][0]
    with pytest.warns(UserWarning, match="The given buffer is not writable"):
        assert tc.frombuffer(b"1234", dtype=tc.uint8, count=2, offset=1).tolist() == [50, 51]
    for options, text in ((dict(count=0), r"both buffer length \(16\) and count \(0\)"),
                          (dict(offset=-8), r"offset \(-8 bytes\) must be"),
                          (dict(offset=16), r"offset \(16 bytes\) must be .* buffer length \(16 bytes\)"),
                          (dict(offset=7), r"buffer length \(9 bytes\) after offset \(7 bytes\) must be"),
                          (dict(count=3), r"requested buffer length \(3 \* 8 bytes\)")):
        with pytest.raises(ValueError, match=text):
            tc.frombuffer(np.ones(2), dtype=tc.float64, **options)
    with pytest.raises(RuntimeError, match="could not retrieve a contiguous buffer"):
        tc.frombuffer(np.ones((4, 4))[:, ::2], dtype=tc.float64)
    with pytest.raises(ValueError, match="does not implement Python buffer protocol"):
        tc.frombuffer([1], dtype=tc.int32)


def test_asarray():
    x, n = tc.ones(3), np.ones(3, dtype=np.float32)
    assert tc.asarray(x) is x and tc.asarray(x, copy=True).data_ptr() != x.data_ptr()
    for o in (n, memoryview(n)):
        for options in ({}, {"copy": False}, {"dtype": tc.float32}, {"dtype": tc.float32, "copy": False}):
            y = tc.asarray(o, **options)
            assert y.tolist() == [1, 1, 1] and y.data_ptr() == n.__array_interface__["data"][0]
        assert tc.asarray(o, copy=True).data_ptr() != n.__array_interface__["data"][0]
    assert tc.asarray(tc.utils.dlpack.to_dlpack(x)).data_ptr() == x.data_ptr()
    assert tc.asarray(n, dtype=tc.int64).tolist() == [1, 1, 1] and tc.asarray(range(3)).tolist() == [0, 1, 2]
    assert tc.asarray(bytearray(b"1234"), dtype=tc.int16).tolist() == [12849, 13363]
    assert tc.asarray(b"12", copy=True).tolist() == [49, 50]
    for call, text in ((lambda: tc.asarray(x, dtype=tc.float64, copy=False), "with dtype '.*' into dtype '.*'"),
                       (lambda: tc.asarray([1, 2], copy=False), "can't alias arbitrary sequence")):
        with pytest.raises(ValueError, match=text):
            call()
    made = tc.ones(2, requires_grad=True).clone()
    for options in ({}, {"copy": True}, {"requires_grad": True}, {"requires_grad": True, "copy": True}):
        y = tc.asarray(made, **options)
        assert y.requires_grad == (y.grad_fn is not None) == ("requires_grad" in options)
    assert tc.asarray([1.0], requires_grad=True).is_leaf


def test_read_only_arrays():
    n = np.arange(3.0)
    n.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tc.tensor(n).tolist() == [0, 1, 2] and tc.as_tensor(n, dtype=tc.float32).tolist() == [0, 1, 2]
    with pytest.warns(UserWarning, match="The given NumPy array is not writable"):
        tc.from_numpy(n)


def test_sentences():
    class Odd:
        def __len__(self):
            return 3

        def __getitem__(self, i):
            raise TypeError

    with pytest.raises(ValueError, match="could not determine the shape of object type 'Odd'"):
        tc.tensor(Odd())
    for legacy in (lambda: tc.Tensor(tc.ones(1), device="cpu"), lambda: tc.ones(1).new(tc.ones(1), device="cpu")):
        with pytest.raises(RuntimeError, match="Legacy tensor constructor"):
            legacy()
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        tc.empty([2, 4, 2**29, 2**29], dtype=tc.float64)
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype long int, but got float instead"):
        tc.sort(tc.ones(3), out=(tc.empty(0), tc.empty(0)))
    for convert in (int, float, complex):
        with pytest.raises(ValueError):
            convert(tc.ones(2))
