"""Untyped and typed storages: slices, conversions, files and buffers."""

import copy
import sys

import numpy as np
import pytest

import tercel as tc


def test_parts_of_bytes_share_them():
    s = tc.UntypedStorage([1, 2, 3, 4, 5])
    part = s[1:4]
    assert part.tolist() == list(part) == [2, 3, 4] and part.nbytes() == 3
    part[0] = 20
    s[2:] = 9
    assert s.tolist() == [1, 20, 9, 9, 9] and part.tolist() == [20, 9, 9]
    assert not s.resizable() and s[5:].tolist() == [] and s[-2:].tolist() == [9, 9]
    del s
    assert part.tolist() == [20, 9, 9]
    for change in (lambda: part[::2], lambda: part.__setitem__(slice(None, None, 2), 1)):
        with pytest.raises(RuntimeError, match="Trying to slice with a step of 2, but only a step of 1 is supported"):
            change()
    with pytest.raises(TypeError, match="can only set storage content with a int, but got float"):
        part[0] = 1.5
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        tc.UntypedStorage(size=2)
    with pytest.raises(TypeError, match="at most 1 positional argument"):
        tc.UntypedStorage(2, 3)


def test_questions():
    for s, name in ((tc.UntypedStorage(8), "UntypedStorage"), (tc.FloatStorage(2), "FloatStorage")):
        assert s.type() == f"tercel.{name}" and s.cpu() is s and not s.is_cuda and not s.is_shared()
        assert not s.is_pinned() and s.untyped().nbytes() == 8 == s.element_size() * s.size()
        assert type(s).is_cuda is False and sys.getsizeof(s) - sys.getsizeof(type(s)(0)) == 8
        assert copy.copy(s).untyped()._cdata != s.untyped()._cdata and s.type(name) is s
    assert tc.ones(1, dtype=tc.int16).storage_type() is tc.ShortStorage
    assert tc.storage._dtype_to_storage_type_map()[tc.int16] == "ShortStorage"
    assert tc.storage._storage_type_to_dtype_map()["ShortStorage"] is tc.int16


CONVERSIONS = {"double": tc.float64, "float": tc.float32, "half": tc.float16, "bfloat16": tc.bfloat16, "long": tc.int64,
               "int": tc.int32, "short": tc.int16, "char": tc.int8, "byte": tc.uint8, "bool": tc.bool,
               "complex_double": tc.complex128, "complex_float": tc.complex64}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversions(name):
    s = tc.IntStorage([0, 1, 4])
    got = getattr(s, name)()
    assert got.dtype is CONVERSIONS[name] and got.tolist() == ([False, True, True] if name == "bool" else [0, 1, 4])
    got[0] = 1
    assert s[0] == 0 and s.type(type(got)).tolist()[1:] == got.tolist()[1:]


def test_how_storages_are_made():
    s = tc.TypedStorage([1, 2], dtype=tc.int8)
    assert type(s) is tc.CharStorage and tc.TypedStorage(wrap_storage=s.untyped(), dtype=tc.int8) is s
    cases = [
        (RuntimeError, "'device' cannot be specified", lambda: tc.IntStorage(device="cpu")),
        (RuntimeError, "'dtype' cannot be specified", lambda: tc.IntStorage(dtype=tc.float32)),
        (RuntimeError, "Too many positional arguments", lambda: tc.IntStorage(0, 0)),
        (TypeError, "invalid data type", lambda: tc.IntStorage("text")),
        (TypeError, "Argument type not recognized", lambda: tc.IntStorage(tc.ones(1))),
        (RuntimeError, "No positional arguments", lambda: tc.IntStorage(0, wrap_storage=s.untyped())),
        (TypeError, "must be UntypedStorage, but got CharStorage", lambda: tc.IntStorage(wrap_storage=s)),
        (RuntimeError, "Argument 'dtype' must be specified", lambda: tc.TypedStorage(wrap_storage=s.untyped())),
        (TypeError, "'dtype' must be tercel.dtype, not int", lambda: tc.TypedStorage(dtype=0)),
        (RuntimeError, "'device' should not be specified",
         lambda: tc.TypedStorage(wrap_storage=s.untyped(), dtype=tc.int8, device="cpu")),
        (RuntimeError, "Storage device not recognized", lambda: tc.TypedStorage(dtype=tc.int8, device="cuda")),
        (RuntimeError, "Only child classes of _LegacyStorage can be instantiated", lambda: tc.storage._LegacyStorage()),
        (RuntimeError, "cannot set item with value type", lambda: s.fill_(s)),
        (RuntimeError, "slices are only supported in UntypedStorage", lambda: s[:1]),
        (RuntimeError, "Expected a storage class for CharStorage", lambda: s.type("NoStorage")),
    ]
    for error, sentence, call in cases:
        with pytest.raises(error, match=sentence):
            call()
    s[:] = 7
    assert s.tolist() == [7, 7]


def test_sizes_of_storages_are_integers_of_any_kind():
    assert len(tc.FloatStorage(np.int16(3))) == len(tc.FloatStorage(np.uint8(3))) == 3
    with pytest.raises(TypeError, match="Argument type not recognized: Tensor"):
        tc.FloatStorage(tc.tensor(3))


def test_tensors_of_storages():
    a = tc.arange(6.0, dtype=tc.float64)
    assert tc.tensor(a.storage()).tolist() == a.tolist() and tc.tensor(a.storage()).data_ptr() != a.data_ptr()
    assert tc.as_tensor(a.untyped_storage(), dtype=tc.float64).data_ptr() == a.data_ptr()
    assert tc.tensor(tc.UntypedStorage([1, 2])).dtype is tc.uint8
    wrong = "Expected a Storage of type Float or an UntypedStorage, but got type Double"
    for call in (lambda: tc.tensor(a.storage(), dtype=tc.float32), lambda: tc.ones(1).set_(a.storage()),
                 lambda: tc.ones(1).set_(a.storage(), 0, (2,), (1,))):
        with pytest.raises(RuntimeError, match=wrong):
            call()
    assert tc.empty(0, dtype=tc.float64).set_(a.storage(), 1, (2,), (2,)).tolist() == [1, 3]


def test_elements_lie_where_their_dtype_can():
    whole = tc.UntypedStorage(33)
    whole.fill_(0)
    odd, rest = whole[1:33], tc.arange(33, dtype=tc.uint8)[1:]
    for call in (lambda: tc.empty(0).set_(whole[1:], 0, (8,)), lambda: tc.empty(0).set_(odd), lambda: tc.asarray(odd, dtype=tc.float32),
                 lambda: tc.tensor(odd, dtype=tc.float32), lambda: tc.FloatTensor(odd), lambda: tc.FloatStorage(wrap_storage=odd),
                 lambda: tc.TypedStorage(wrap_storage=odd, dtype=tc.float32), lambda: tc.HalfTensor(odd),
                 lambda: tc.frombuffer(memoryview(bytearray(33))[1:], dtype=tc.uint8).view(tc.float32)):
        with pytest.raises(ValueError, match="the memory is not aligned to elements of float(32|16). Copy it first."):
            call()
    assert tc.asarray(odd).shape == (32,) and tc.TypedStorage(wrap_storage=odd, dtype=tc.uint8).size() == 32
    assert tc.FloatTensor(whole[4:]).shape == (7,) and tc.asarray(whole[33:], dtype=tc.float32).shape == (0,)
    with pytest.raises(RuntimeError, match="storage_offset"):
        rest.view(tc.float32)
    assert rest.clone().view(tc.float32).shape == (8,)


def test_storages_of_buffers():
    assert tc.ShortStorage.from_buffer(bytes([1, 2, 3, 4]), "big").tolist() == [258, 772]
    assert tc.IntStorage.from_buffer(bytearray([1, 2, 3, 4]), "little").tolist() == [67305985]
    assert tc.BoolStorage.from_buffer(b"\0\2\1").tolist() == [False, True, True]
    assert tc.ByteStorage.from_buffer(b"abcd", count=2, offset=1).tolist() == [98, 99]
    assert tc.UntypedStorage.from_buffer(b"ab").tolist() == [97, 98]
    one = tc.ComplexFloatStorage.from_buffer(bytes([64, 0, 0, 0, 63, 128, 0, 0]), "big")
    assert one.tolist() == [2 + 1j]
    for sentence, call in (("invalid byte_order 'middle'", lambda: tc.ByteStorage.from_buffer(b"a", "middle")),
                           ("must be a multiple of element size", lambda: tc.IntStorage.from_buffer(b"abc")),
                           ("offset must be non-negative", lambda: tc.ByteStorage.from_buffer(b"a", offset=1)),
                           ("specified a size of 3", lambda: tc.ByteStorage.from_buffer(b"ab", count=3))):
        with pytest.raises(ValueError, match=sentence):
            call()


def test_storages_and_tensors_of_files(tmp_path):
    path = tmp_path / "numbers"
    a = tc.FloatStorage.from_file(str(path), True, 4)
    a[:] = 2
    assert path.stat().st_size == 16
    shared = tc.from_file(path, True, 3, dtype=tc.float32)
    shared[1] = 5
    assert a.tolist() == [2, 5, 2, 2]
    own = tc.from_file(path, size=2)
    own[0] = 9
    assert a[0] == 2 and own.tolist() == [9, 5]
    assert tc.from_file(path, True, 6).shape == (6,) and path.stat().st_size == 24
    assert tc.UntypedStorage.from_file(path, False, 4).tolist() == [0, 0, 0, 64] and tc.from_file(path).shape == (0,)
    with pytest.raises(RuntimeError, match="smaller than the required mapping size"):
        tc.from_file(path, False, 7)
