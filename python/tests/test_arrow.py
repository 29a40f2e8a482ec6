"""Arrow's PyCapsule interface: round trips, hand-made columns, and pyarrow if installed."""

import ctypes
import gc
import sys
import weakref

import pytest

import tercel as tc
from tercel.io import RecordBatch

DTYPES = [tc.bool, tc.uint8, tc.int8, tc.int16, tc.int32, tc.int64, tc.float16, tc.float32, tc.float64]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 70])
def test_a_column_comes_back(dtype, n):
    x = (tc.arange(n) % 2).to(dtype)
    y = tc.from_arrow(x)
    assert y.dtype is dtype and y.tolist() == x.tolist()
    assert n == 0 or (y.data_ptr() == x.data_ptr()) == (dtype is not tc.bool)
    assert n == 0 or tc.from_arrow(x, copy=True).data_ptr() != x.data_ptr()


@pytest.mark.parametrize("make", [lambda: tc.arange(12).view(2, 3, 2), lambda: tc.arange(6.0).view(2, 3).t(),
                                  lambda: tc.arange(9)[::2], lambda: tc.empty(0, 3), lambda: tc.empty(3, 0)])
def test_tensors_come_back(make):
    x = make()
    y = tc.from_arrow(x)
    assert y.shape == x.shape and y.tolist() == x.tolist()


def test_batches_come_back():
    x, y = tc.arange(3), tc.ones(3, 2)
    got = tc.from_arrow(RecordBatch({"x": x, "y": y}))
    assert list(got) == ["x", "y"] and got["y"].shape == (3, 2) and got["x"].data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError):
        RecordBatch({"x": x, "y": tc.ones(2)}).__arrow_c_array__()
    with pytest.raises(TypeError, match="from names to tensors"):
        RecordBatch({"x": [1]}).__arrow_c_array__()


def test_what_is_refused():
    for bad in (tc.tensor(1), tc.ones(2, requires_grad=True)):
        with pytest.raises(RuntimeError):
            bad.__arrow_c_array__()
    with pytest.raises(TypeError):
        tc.ones(2, dtype=tc.bfloat16).__arrow_c_array__()
    with pytest.raises(TypeError, match="__arrow_c_array__"):
        tc.from_arrow([1])
    with pytest.raises(RuntimeError, match="bools cannot be imported without a copy"):
        tc.from_arrow(tc.ones(2, dtype=tc.bool), copy=False)
    with pytest.raises(TypeError, match="'copy'"):
        tc.from_arrow(tc.ones(2), copy=1)

    class Used:
        capsules = tc.ones(2).__arrow_c_array__()

        def __arrow_c_array__(self):
            return self.capsules

    assert tc.from_arrow(Used()).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="neither released nor consumed"):
        tc.from_arrow(Used())

    class Swapped:
        def __arrow_c_array__(self):
            return tc.ones(2).__arrow_c_array__()[::-1]

    with pytest.raises(ValueError):
        tc.from_arrow(Swapped())


def test_everything_is_given_back():
    x = tc.ones(5)
    count = sys.getrefcount(x)
    alive = weakref.ref(x.untyped_storage())
    capsules = x.__arrow_c_array__()
    schema = x.__arrow_c_schema__()
    y = tc.from_arrow(x)
    del x, capsules, schema
    gc.collect()
    assert y.tolist() == [1] * 5 and alive() is not None
    del y
    assert alive() is None
    x = tc.ones(5)
    for _ in range(100):
        tc.from_arrow(x)
        x.__arrow_c_array__()
    assert sys.getrefcount(x) == count


class ArrowSchema(ctypes.Structure):
    pass


class ArrowArray(ctypes.Structure):
    pass


RELEASE_SCHEMA = ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowSchema))
RELEASE_ARRAY = ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowArray))
ArrowSchema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("children", ctypes.c_void_p), ("dictionary", ctypes.c_void_p),
    ("release", RELEASE_SCHEMA), ("private_data", ctypes.c_void_p),
]
ArrowArray._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.c_void_p), ("dictionary", ctypes.c_void_p), ("release", RELEASE_ARRAY),
    ("private_data", ctypes.c_void_p),
]


class Handmade:
    """A column of int32 whose fields may be invalid; counts releases."""

    def __init__(self, values, valid=None, **fields):
        self.released = []
        n = len(values)
        self.data = (ctypes.c_int32 * n)(*values)
        bits = sum(1 << i for i, v in enumerate(valid or ()) if v)
        self.bits = (ctypes.c_uint8 * 8)(*bits.to_bytes(8, "little"))
        self.buffers = (ctypes.c_void_p * 2)(ctypes.addressof(self.bits) if valid else None,
                                             ctypes.addressof(self.data))
        self.schema_release = RELEASE_SCHEMA(lambda s: (self.released.append("schema"), self.clear(s)))
        self.array_release = RELEASE_ARRAY(lambda a: (self.released.append("array"), self.clear(a)))
        self.schema = ArrowSchema(b"i", b"", None, 2, 0, None, None, self.schema_release, None)
        self.array = ArrowArray(n, valid.count(False) if valid else 0, 0, 2, 0, self.buffers, None, None,
                                self.array_release, None)
        for name, value in fields.items():
            setattr(self.schema if name == "format" else self.array, name, value)

    @staticmethod
    def clear(pointer):
        pointer.contents.release = type(pointer.contents.release)()

    def __arrow_c_array__(self, requested_schema=None):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return (new(ctypes.addressof(self.schema), b"arrow_schema", None),
                new(ctypes.addressof(self.array), b"arrow_array", None))


def test_handmade_columns():
    column = Handmade([1, 2, 3], offset=1, length=2)
    t = tc.from_arrow(column)
    assert t.dtype is tc.int32 and t.tolist() == [2, 3] and column.released == ["schema"]
    del t
    assert column.released == ["schema", "array"]


def test_missing_values():
    column = Handmade([1, 2, 3], [True, False, True])
    with pytest.raises(RuntimeError, match="1 of 3 values are missing"):
        tc.from_arrow(column)
    assert sorted(column.released) == ["array", "schema"]
    values, valid = tc.from_arrow(Handmade([1, 2, 3], [True, False, True]), mask=True)
    assert valid.tolist() == [True, False, True] and values[valid].tolist() == [1, 3]
    assert tc.from_arrow(Handmade([1]), mask=True)[1] is None


@pytest.mark.parametrize("fields", [{"format": b"u"}, {"format": b"+w:99999999999"}, {"length": -1}, {"offset": 2**62},
                                    {"n_buffers": 1}, {"n_children": 3}, {"null_count": 9}])
def test_wrong_columns_are_refused_and_given_back(fields):
    column = Handmade([1, 2, 3], **fields)
    with pytest.raises(RuntimeError, match="from_arrow"):
        tc.from_arrow(column)
    assert sorted(column.released) == ["array", "schema"]


def test_with_pyarrow():
    pa = pytest.importorskip("pyarrow")
    assert pa.array(tc.arange(3)).to_pylist() == [0, 1, 2]
    assert tc.from_arrow(pa.array([1.5, 2.5])).tolist() == [1.5, 2.5]
    table = pa.table({"a": [1, 2], "b": [True, False]})
    twice = pa.concat_tables([table, table])
    got = tc.from_arrow(twice)
    assert got["a"].tolist() == [1, 2, 1, 2] and got["b"].tolist() == [True, False, True, False]
    with pytest.raises(RuntimeError, match="without a copy"):
        tc.from_arrow(twice, copy=False)
    assert tc.from_arrow(pa.chunked_array([[1], [2]])).tolist() == [1, 2]
    empty = tc.from_arrow(pa.table({"a": pa.chunked_array([], pa.int16())}))
    assert empty["a"].shape == (0,) and empty["a"].dtype is tc.int16
    batch = pa.record_batch(RecordBatch({"x": tc.arange(3), "y": tc.ones(3)}))
    assert batch.to_pydict() == {"x": [0, 1, 2], "y": [1, 1, 1]}
    with pytest.raises(RuntimeError, match="duplicate column"):
        tc.from_arrow(pa.table([[1], [2]], names=["a", "a"]))
    values, valid = tc.from_arrow(pa.chunked_array([[1], [None]], pa.int64()), mask=True)
    assert valid.tolist() == [True, False] and values[0].item() == 1
