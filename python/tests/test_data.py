"""Tensors from lists, arrays and buffers; dtypes, devices, storages."""

import array
import types
import warnings

import numpy as np
import pytest

import tercel as tc


def test_inferred_dtypes():
    assert tc.tensor([1, 2]).dtype is tc.int64
    assert tc.tensor([1, 2.5]).dtype is tc.float32
    assert tc.tensor([True]).dtype is tc.bool
    assert tc.tensor([True, 2]).dtype is tc.int64
    assert tc.tensor([]).dtype is tc.float32
    assert tc.tensor(np.float64(1.5)).dtype is tc.float64
    assert tc.tensor([np.int16(1)]).dtype is tc.int16
    assert tc.tensor([tc.tensor(1), tc.tensor(2)]).tolist() == [1, 2]
    assert tc.tensor([1.7, 2], dtype=tc.int32).tolist() == [1, 2]


@pytest.mark.parametrize("error, sentence, data", [
    (ValueError, "expected sequence of length 2 at dim 1 (got 3)", [[1, 2], [1, 2, 3]]),
    (TypeError, "not a sequence", [[1], 2]),
    (ValueError, "too many dimensions 'str'", ["ab"]),
    (TypeError, "new(): invalid data type 'str'", "ab"),
    (RuntimeError, "Could not infer dtype of NoneType", None),
])
def test_bad_data(error, sentence, data):
    with pytest.raises(error) as info:
        tc.tensor(data)
    assert sentence in str(info.value)


def test_too_large_numbers():
    with pytest.raises(RuntimeError):
        tc.tensor([300], dtype=tc.uint8)
    with pytest.raises(RuntimeError, match="Overflow when unpacking long"):
        tc.tensor([2**70])


def test_numpy_shares_memory_both_ways():
    n = np.arange(6.0).reshape(2, 3)
    t = tc.from_numpy(n)
    t[0, 0] = 9
    n[1, 1] = 8
    assert n[0, 0] == 9 and t[1, 1].item() == 8
    back = t.numpy()
    back[0, 1] = 7
    assert n[0, 1] == 7 and np.asarray(t)[0, 1] == 7
    assert tc.tensor(n).data_ptr() != t.data_ptr() == tc.as_tensor(n).data_ptr()


def test_negative_strides_are_views():
    n = np.arange(4)
    t = tc.from_numpy(n[::-1])
    t[0] = 30
    assert n[3] == 30 and t.stride() == (-1,)
    assert tc.arange(4)[::-1].numpy().tolist() == [3, 2, 1, 0]


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "?"])
def test_dtypes_of_arrays(kind):
    n = np.array([[1, 0, 1]], dtype=kind)
    t = tc.from_numpy(n)
    assert t.numpy().dtype == n.dtype and t.tolist() == n.tolist()
    assert tc.from_numpy(np.zeros((0, 3), kind)).shape == (0, 3)
    assert tc.from_numpy(np.array(1, kind)).shape == ()


def test_what_numpy_may_not_give():
    with pytest.raises(ValueError, match="byte order"):
        tc.from_numpy(np.arange(3, dtype=">i4"))
    with pytest.raises(TypeError, match="can't convert np.ndarray of type numpy.datetime64"):
        tc.from_numpy(np.zeros(2, "M8[s]"))
    with pytest.raises(ValueError, match="strides not a multiple"):
        tc.from_numpy(np.zeros(3, dtype=[("a", "i1"), ("b", "f4")])["b"])
    with pytest.raises(ValueError, match="not aligned"):
        tc.from_numpy(np.zeros(3).view("u1")[1:9].view("f8"))
    # A complex number is aligned as its parts are.
    halves = np.zeros(6)
    halves[:] = range(6)
    for start in (0, 1):
        z = halves[start:start + 4].view("c16")
        assert tc.from_numpy(z).tolist() == z.tolist()
    with pytest.raises(TypeError, match="expected np.ndarray"):
        tc.from_numpy([1])


def test_what_is_not_given_to_numpy():
    w = tc.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Can't call numpy\\(\\) on Tensor that requires grad"):
        w.numpy()
    assert w.numpy(force=True).tolist() == [1, 1]
    with pytest.raises(TypeError, match="Got unsupported ScalarType BFloat16"):
        tc.ones(1, dtype=tc.bfloat16).numpy()


def test_buffers():
    a = array.array("f", [1, 2, 3])
    assert tc.frombuffer(a, dtype=tc.float32).tolist() == [1, 2, 3]
    assert tc.tensor(a).dtype is tc.float32
    assert memoryview(tc.arange(3)).tolist() == [0, 1, 2]
    data = bytearray(b"\1\2\3\4")
    t = tc.frombuffer(data, dtype=tc.uint8, offset=1, count=2)
    t[0] = 9
    assert data[1] == 9


def test_arrays_keep_their_owner():
    t = tc.from_numpy(np.arange(1000.0))
    assert t.sum().item() == 499500
    n = tc.arange(1000.0).numpy()
    assert n.sum() == 499500


def test_dtypes():
    assert tc.float32 is tc.float and tc.long is tc.int64
    assert tc.float16.is_floating_point and not tc.int8.is_floating_point and tc.int64.itemsize == 8
    assert tc.int8.is_signed and not tc.uint8.is_signed
    assert tc.finfo(tc.float32).eps == np.finfo(np.float32).eps and tc.iinfo(tc.int16).max == 32767
    assert tc.promote_types(tc.uint8, tc.int8) is tc.int16 and not tc.can_cast(tc.float32, tc.int32)
    tc.set_default_dtype(tc.float64)
    try:
        assert tc.tensor(1.5).dtype is tc.zeros(1).dtype is tc.get_default_dtype() is tc.float64
    finally:
        tc.set_default_dtype(tc.float32)
    with pytest.raises(TypeError):
        tc.set_default_dtype(tc.int64)


def test_devices_and_sizes():
    d = tc.device("cuda", 1)
    assert d.type == "cuda" and d.index == 1 and d == tc.device("cuda:1") and tc.device("cpu").index is None
    s = tc.zeros(2, 3, 4).shape
    assert isinstance(s, tuple) and s.numel() == 24 and isinstance(s[1:], tc.Size) and s[1:] == (3, 4)
    assert isinstance(s + (1,), tc.Size)
    with pytest.raises(TypeError):
        tc.Size([1.5])


def test_a_number_of_elements_that_does_not_fit_64_bits_is_an_error():
    huge = (2**40, 2**40)
    for make in (
        lambda: tc.Size(huge).numel(),
        lambda: tc.Size((2**32, 2**31)).numel(),
        lambda: tc.empty(huge),
        lambda: tc.empty_strided(huge, (0, 0)),
        lambda: tc.zeros(1).expand(huge),
        lambda: tc.zeros(1).as_strided(huge, (0, 0)),
    ):
        with pytest.raises(RuntimeError, match="overflow"):
            make()
    assert tc.Size((0, *huge)).numel() == 0 and tc.Size((2**32, 2**30)).numel() == 2**62


def test_storages():
    a = tc.arange(6)
    b, c = a.view(2, 3), a[2:]
    a[1] = 100
    assert b[0, 1].item() == 100 and c.storage_offset() == 2
    assert c.data_ptr() - a.data_ptr() == 16 and len(c.storage()) == 6
    f = c.float()
    assert f.storage().dtype is tc.float32
    d = tc.Tensor(tc.arange(6.0)[2:].storage())
    assert d.storage_offset() == 0 and d.numel() == 6
    with pytest.raises(RuntimeError, match="Expected a Storage of type Float or an UntypedStorage, but got type Long"):
        tc.Tensor(a.storage())
    assert str(tc.tensor([1.0, 2.5]).storage()) == " 1.0\n 2.5\n[tercel.FloatStorage of size 2]"
    s = a.storage()
    s[0] = 50
    assert a[0].item() == 50 == s[0] and s.tolist()[1] == 100 and s.nbytes() == 48
    with pytest.raises(IndexError):
        s[6]


def test_old_constructors():
    assert tc.Tensor(2, 3).shape == (2, 3) and tc.Tensor([1, 2]).dtype is tc.float32 and tc.Tensor().shape == (0,)
    assert tc.Tensor(3, True).shape == (3, 1) == tc.ones(2).new(3, True).shape and tc.FloatTensor(2, True).shape == (2, 1)
    for wrong in ((True, 3), (True,), (3, 1.0), (3, None)):
        with pytest.raises(TypeError):
            tc.Tensor(*wrong)
    assert tc.LongTensor([1, 2]).dtype is tc.int64 and tc.FloatTensor(2).shape == (2,)
    assert isinstance(tc.ones(1), tc.FloatTensor) and not isinstance(tc.ones(1), tc.LongTensor)
    x = tc.ones(0)
    assert x.new(size=(3, 4)).shape == (3, 4) and x.new([3, 4]).tolist() == [3, 4] and x.new(()).shape == (0,)
    assert x.int().type(tc.Tensor).dtype is tc.float32
    with pytest.raises(TypeError, match="new.. received an invalid combination of arguments"):
        tc.LongTensor((6, 0), 1, 1, 0)
    with pytest.raises(TypeError, match="type 'tercel.FloatTensor' is not an acceptable base type"):
        types.new_class("Sub", (tc.FloatTensor,))
    assert tc.ones(1).type() == "tercel.FloatTensor" and tc.ones(1).type(tc.int64).dtype is tc.int64


def test_generators():
    g = tc.Generator().manual_seed(5)
    state = g.get_state()
    a = tc.rand(3, generator=g)
    g.set_state(state)
    assert tc.rand(3, generator=g).tolist() == a.tolist() and g.initial_seed() == 5
    tc.manual_seed(3)
    b = tc.randn(2)
    tc.manual_seed(3)
    assert tc.randn(2).tolist() == b.tolist() and tc.initial_seed() == 3


def test_set_and_resize():
    a = tc.zeros(2)
    a.set_(tc.arange(4.0).untyped_storage(), 1, (2,), (2,))
    assert a.tolist() == [1, 3]
    assert tc.ones(2).resize_(4).shape == (4,)


def test_lists_of_arrays_and_empty_arrays():
    with pytest.warns(UserWarning, match="Creating a tensor from a list of numpy.ndarrays is extremely slow"):
        assert tc.tensor([np.array([0]), np.array([1])]).tolist() == [[0], [1]]
    for dtype in (tc.complex128, tc.float64, tc.bool):
        assert tc.from_numpy(tc.empty(0, 5, 4, dtype=dtype).numpy()).shape == (0, 5, 4)


def test_a_sequence_that_changes_while_it_is_read():
    class Element:
        def __float__(self):
            rows[0].clear()
            del rows[1:]
            return 1.0

    for at in (0, 3):
        rows = [[1.0] * 10 for _ in range(100)]
        rows[0][at] = Element()
        with pytest.raises(RuntimeError, match="a list changed its size while it was read"):
            tc.tensor(rows, dtype=tc.float64)


def test_large_results_of_objects_of_python():
    class Ends(list):
        def __getitem__(self, i):
            return super().__getitem__(i) / 2

    x = tc.linspace(0, 1, 100000)
    assert tc.histogram(x, 2, range=Ends([0, 2])).hist.tolist() == [50000, 50000]
    assert x.norm("fro").item() == pytest.approx(x.norm(2).item()) and x.view(2, -1).norm("nuc").item() > 0
    assert x.nonzero(as_tuple=True)[0].numel() == x.nonzero(as_tuple=False).shape[0] == 99999
    n = x.numpy()
    assert tc.tensor(n).equal(x) and tc.asarray(n, dtype=tc.float64, copy=True).sum() == x.double().sum()


@pytest.mark.parametrize("dtype", [tc.float32, tc.int64, tc.bool])
def test_arrays_of_numpy_in_operators(dtype):
    t = tc.tensor([[1, 0, 3], [1, 1, 0]]).to(dtype)
    for array in (t.numpy().copy(), np.array([1, 0, 3], "u2"), np.array([[1.0], [0.0]]), np.array(1), np.array([True])):
        want = tc.from_numpy(np.equal(t.numpy(), array))
        for got in (t == array, array == t):
            assert type(got) is tc.Tensor and got.dtype is tc.bool and got.tolist() == want.tolist()
    frozen = np.ones(3)
    frozen.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (t == frozen).tolist() == (t == 1).tolist()
    for nothing in (np.array(["a", "b", "c"]), np.array([1, 2, 3], dtype=object), [1, 0, 3]):
        assert (t == nothing) is False
    with pytest.raises(RuntimeError, match="size of tensor a .3. must match"):
        t == np.ones(2)
    with pytest.raises(ValueError, match="byte order"):
        t == np.ones(3, ">f8")


@pytest.mark.parametrize("kind", ["f4", "f8", "i8"])
def test_arrays_of_numpy_divided_by_tensors(kind):
    t, array = tc.tensor([1.0, 2, 4]), np.array([3, 1, 2], kind)
    got = array / t
    assert type(got) is tc.Tensor and got.dtype is (tc.float32 if kind == "f4" else tc.float64)
    assert got.tolist() == [3, 0.5, 0.5] and (np.array(2.0) / t).tolist() == [2, 1, 0.5]
    assert (array / tc.tensor([1, 2, 4])).tolist() == got.tolist()
    with pytest.raises(TypeError):
        [1] / t
    with pytest.raises(RuntimeError, match="requires grad"):
        array / t.requires_grad_()
