"""DLPack: memory shared with NumPy, and everything released once."""

import ctypes
import gc
import subprocess
import sys
import textwrap
import threading
import weakref

import numpy as np
import pytest

import tercel as tc

DTYPES = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "?"]


@pytest.mark.parametrize("kind", DTYPES)
def test_both_ways_with_numpy(kind):
    n = np.arange(6).reshape(2, 3).astype(kind)
    t = tc.from_dlpack(n)
    assert t.tolist() == n.tolist() and t.data_ptr() == n.ctypes.data
    back = np.from_dlpack(t)
    assert back.dtype == n.dtype and back.tolist() == n.tolist()
    t[0, 0] = 1
    assert n[0, 0] == 1


@pytest.mark.parametrize("make", [
    lambda: tc.arange(12).view(3, 4).t(), lambda: tc.arange(12).view(3, 4)[1:, ::2], lambda: tc.tensor(5),
    lambda: tc.empty(0, 3), lambda: tc.ones(2, 1).expand(2, 4),
])
def test_views_empty_and_zero_dim(make):
    x = make()
    n = np.from_dlpack(x)
    assert n.shape == tuple(x.shape) and n.tolist() == x.tolist()
    assert tc.from_dlpack(x).tolist() == x.tolist()
    for capsule in (x.__dlpack__(), x.__dlpack__(max_version=(1, 0)), tc.utils.dlpack.to_dlpack(x)):
        y = tc.utils.dlpack.from_dlpack(capsule)
        assert y.tolist() == x.tolist() and y.shape == x.shape
        assert x.numel() == 0 or y.data_ptr() == x.data_ptr()


def test_kinds_of_capsules_and_their_names():
    x = tc.ones(2)
    old, new = x.__dlpack__(), x.__dlpack__(max_version=(1, 1))
    assert '"dltensor"' in repr(old) and '"dltensor_versioned"' in repr(new)
    assert x.__dlpack__(max_version=(0, 8)).__repr__().count('"dltensor"') == 1
    for capsule in (old, new):
        tc.from_dlpack(capsule)
        assert "used_dltensor" in repr(capsule)
        with pytest.raises(RuntimeError, match="can be consumed only once"):
            tc.from_dlpack(capsule)


def test_device_stream_and_copy():
    x = tc.ones(3)
    assert x.__dlpack_device__() == (1, 0)
    x.__dlpack__(stream=-1, dl_device=(1, 0))
    with pytest.raises(BufferError, match="stream"):
        x.__dlpack__(stream=1)
    with pytest.raises(TypeError, match="stream must be"):
        x.__dlpack__(stream="0")
    with pytest.raises(BufferError, match="DLPack device"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError):
        tc.from_dlpack(x, device="cuda")
    for version in (None, (1, 0)):
        y = tc.from_dlpack(x.__dlpack__(max_version=version, copy=True))
        assert y.tolist() == x.tolist() and y.data_ptr() != x.data_ptr()
    n = np.ones(3)
    assert tc.from_dlpack(n, copy=True).data_ptr() != n.ctypes.data == tc.from_dlpack(n, copy=False).data_ptr()
    assert tc.from_dlpack(x.__dlpack__(), copy=True).data_ptr() != x.data_ptr()


def test_what_is_not_exported():
    w = tc.ones(2, requires_grad=True)
    for version in (None, (1, 0)):
        with pytest.raises(BufferError, match="Can't export tensors that require gradient, use tensor.detach()"):
            w.__dlpack__(max_version=version)
    with pytest.raises(BufferError):
        np.from_dlpack(w)
    with pytest.raises(BufferError):
        w.__dlpack__(copy=True)
    assert np.from_dlpack(w.detach()).tolist() == [1, 1]
    with pytest.raises(TypeError, match="expected a Tensor"):
        tc.utils.dlpack.to_dlpack([1])


def test_read_only_memory_is_copied_or_refused():
    n = np.arange(3.0)
    n.flags.writeable = False
    t = tc.from_dlpack(n)
    t[0] = 7
    assert n[0] == 0 and t.tolist() == [7, 1, 2]
    with pytest.raises(BufferError, match="read-only"):
        tc.from_dlpack(n, copy=False)


def test_what_is_not_imported():
    with pytest.raises(TypeError, match="__dlpack__"):
        tc.from_dlpack([1, 2])
    with pytest.raises(RuntimeError):
        tc.from_dlpack(np.zeros(2, "c8") if not hasattr(tc, "complex64") else np.arange(3)[::-1])

    class Elsewhere:
        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, **_):
            raise AssertionError("not asked")

    with pytest.raises(BufferError, match="device type 2"):
        tc.from_dlpack(Elsewhere())

    class Failing:
        def __dlpack__(self, *, max_version=None):
            raise BufferError("no")

    with pytest.raises(BufferError, match="no"):
        tc.from_dlpack(Failing())


def test_a_producer_from_before_1_0():
    class Old:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, stream=None):
            return self.array.__dlpack__()

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    n = np.arange(3)
    assert tc.from_dlpack(Old(n)).data_ptr() == n.ctypes.data
    assert tc.from_dlpack(Old(n), copy=True).data_ptr() != n.ctypes.data


class Array(np.ndarray):
    """An array that supports weak references."""


def watched(n=3):
    array = np.arange(float(n)).view(Array)
    return array, weakref.ref(array)


def test_the_producer_lives_as_long_as_the_tensor():
    array, alive = watched()
    t = tc.from_dlpack(array)
    view = t[1:]
    del array, t
    gc.collect()
    assert alive() is not None and view.tolist() == [1, 2]
    del view
    assert alive() is None


def test_the_tensor_lives_as_long_as_its_consumer():
    t = tc.arange(3.0)
    base = tc.from_dlpack(t.__dlpack__())
    alive = weakref.ref(t)
    n = np.from_dlpack(t)
    del t, base
    gc.collect()
    assert n.tolist() == [0, 1, 2]
    del n
    assert alive() is None


@pytest.mark.parametrize("version", [None, (1, 0)])
@pytest.mark.parametrize("consume", [False, True])
def test_a_deleter_runs_once(version, consume):
    array, alive = watched()
    capsule = array.__dlpack__(max_version=version)
    t = tc.from_dlpack(capsule) if consume else None
    references = sys.getrefcount(array)
    del capsule
    gc.collect()
    assert sys.getrefcount(array) == references - (0 if consume else 1)
    del t
    assert sys.getrefcount(array) == references - 1
    del array
    assert alive() is None


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_a_refused_capsule_is_given_back(version):
    array, alive = watched()
    capsule = array[::-1].__dlpack__(max_version=version)
    del array
    with pytest.raises(RuntimeError, match="negative"):
        tc.from_dlpack(capsule)
    gc.collect()
    assert alive() is None
    del capsule


class DLManagedTensor(ctypes.Structure):
    pass


DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(DLManagedTensor))
DLManagedTensor._fields_ = [
    ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
    ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
    ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
    ("byte_offset", ctypes.c_uint64), ("context", ctypes.c_void_p), ("deleter", DELETER),
]


def handmade(calls, **fields):
    """A capsule over three floats; its deleter counts."""
    data, shape = (ctypes.c_float * 3)(1, 2, 3), (ctypes.c_int64 * 1)(3)
    deleter = DELETER(lambda _: calls.append((managed, data, shape)))
    managed = DLManagedTensor(ctypes.addressof(data), 1, 0, 1, 2, 32, 1, shape, None, 0, None, deleter)
    for name, value in fields.items():
        setattr(managed, name, value)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(ctypes.addressof(managed), b"dltensor", None), managed, deleter


def test_handmade_tensors():
    calls = []
    capsule, *kept = handmade(calls)
    t = tc.from_dlpack(capsule)
    assert t.tolist() == [1, 2, 3] and not calls
    del t
    assert len(calls) == 1
    capsule, *kept = handmade(calls)
    assert tc.from_dlpack(capsule, copy=True).tolist() == [1, 2, 3] and len(calls) == 2


@pytest.mark.parametrize("fields", [
    {"lanes": 4}, {"bits": 7}, {"code": 9}, {"device_type": 2}, {"ndim": -1}, {"ndim": 1000}, {"data": None},
    {"byte_offset": 2**63},
])
def test_damaged_tensors_are_refused_and_given_back(fields):
    calls = []
    capsule, *kept = handmade(calls, **fields)
    with pytest.raises(RuntimeError, match="from_dlpack"):
        tc.from_dlpack(capsule)
    assert len(calls) == 1


def test_any_thread_may_free():
    arrays = [watched(1000) for _ in range(20)]
    alive = [ref for _, ref in arrays]
    tensors = [tc.from_dlpack(a) for a, _ in arrays]
    arrays.clear()

    def work(part):
        while part:
            part.pop().sum()

    threads = [threading.Thread(target=work, args=(tensors[i::4],)) for i in range(4)]
    tensors.clear()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    del threads, thread
    gc.collect()
    assert all(ref() is None for ref in alive)


def test_a_graph_gives_back_what_it_kept():
    """Without the GIL, while backward runs."""
    for _ in range(20):
        array, alive = watched(50_000)
        w = tc.ones(50_000, dtype=tc.float64, requires_grad=True)
        y = (w * tc.from_dlpack(array)).sum()
        del array
        gc.collect()
        assert alive() is not None
        y.backward()
        assert w.grad[3].item() == 3
        del y
        assert alive() is None


def test_nothing_leaks():
    x, n = tc.ones(4), np.ones(4)
    for _ in range(2):
        before = sys.getrefcount(x), sys.getrefcount(n), len(gc.get_objects())
        for _ in range(300):
            tc.from_dlpack(x.__dlpack__())
            x.__dlpack__(max_version=(1, 0))
            np.from_dlpack(x)
            tc.from_dlpack(n)
            with pytest.raises(BufferError):
                x.__dlpack__(dl_device=(2, 0))
        after = sys.getrefcount(x), sys.getrefcount(n), len(gc.get_objects())
    assert after[:2] == before[:2] and after[2] - before[2] < 50


def test_a_process_may_end_while_threads_give_back():
    done = subprocess.run([sys.executable, "-c", textwrap.dedent("""
        import threading, time
        import numpy as np
        import tercel as tc

        def work():
            while True:
                t = tc.from_dlpack(np.ones(50_000))
                n = np.from_dlpack(t + 1)
                tc.from_arrow(t).sum()
                del t

        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        kept = tc.from_dlpack(np.ones(3)), np.from_dlpack(tc.ones(3)), tc.ones(3).__dlpack__()
        time.sleep(0.3)
    """)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
