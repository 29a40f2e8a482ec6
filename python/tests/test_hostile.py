"""Objects that change data while it is read, raise, or refer to themselves must cause errors, never crashes.

Former crashes are tested individually here; hostile_calls.py makes random calls of every public entry.
"""

import ctypes
import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest

import tercel as tc

FUZZ_SECONDS = float(os.environ.get("TERCEL_HOSTILE_SECONDS", "10"))


class Acts:
    """A number that performs an action when its value is requested."""

    def __init__(self, act, value=1):
        self.act, self.value = act, value

    def __index__(self):
        self.act()
        return self.value

    def __float__(self):
        self.act()
        return float(self.value)


def self_referential():
    one, two = [0], [0]
    one.append(two)
    two.append(one)
    alone = []
    alone.append(alone)
    return [alone, one, [one, one, [two, two]], (alone, 1)]


@pytest.mark.parametrize("data", self_referential())
@pytest.mark.parametrize("call", [tc.exp, tc.tensor, tc.zeros, tc.cat, tc.rand(3).__getitem__, tc.rand(3).view, tc.asarray,
                                  lambda data: tc.add(data, 1, foo=data)])
def test_lists_that_hold_themselves(call, data):
    with pytest.raises((TypeError, ValueError, RuntimeError, IndexError)):
        call(data)


def test_lists_are_described_one_level_deep():
    with pytest.raises(TypeError, match=r"list of \[list, int\]"):
        tc.exp([[1, "a"], 2])


@pytest.mark.parametrize("call", [
    tc.zeros, tc.tensor, tc.Size, tc.Tensor, tc.UntypedStorage, lambda a: tc.rand(3, 3, 3).permute(a), lambda a: tc.rand(5)[a],
    lambda a: tc.rand(3, 3, 3).sum(a), lambda a: tc.rand(5).__setitem__(a, 1.0), lambda a: tc.Tensor(size=a),
])
@pytest.mark.parametrize("change", [list.clear, lambda a: a.append(1), lambda a: a.__setitem__(slice(None), ["text"] * 3)])
def test_a_list_that_its_items_change(call, change):
    items = []
    items += [Acts(lambda: change(items)) for _ in range(3)]
    try:
        call(items)
    except (TypeError, RuntimeError, IndexError, ValueError):
        pass


class ActsWhenLookedAt(np.ndarray):
    dtype = property(lambda self: (self.act(), np.dtype("int64"))[1])


@pytest.mark.parametrize("call", [tc.cat, tc.stack, lambda tensors, dim: tc.cat(tensors, dim=dim)])
@pytest.mark.parametrize("change", [list.clear, lambda a: a.__setitem__(slice(None), ["text", 1])])
def test_a_list_of_tensors_that_another_argument_changes(call, change):
    tensors, dim = [tc.rand(3), tc.rand(3)], np.array(0).view(ActsWhenLookedAt)
    dim.act = lambda: change(tensors)
    with pytest.raises((TypeError, RuntimeError, ValueError)):
        call(tensors, dim)


def test_a_storage_that_its_argument_resizes():
    for size, value in ((0, 1), (1, 1), (1 << 20, 1)):
        s = tc.UntypedStorage(4096)
        s.fill_(Acts(lambda: s.resize_(size), value))
        assert s.size() == size and set(s._to_bytes()) <= {1}
        s = tc.UntypedStorage(4096)
        if size < 4096:
            with pytest.raises(IndexError, match=f"out of range for storage of size {size}"):
                s[Acts(lambda: s.resize_(size), 4000)]
            s = tc.UntypedStorage(4096)
            with pytest.raises(IndexError):
                s[4000] = Acts(lambda: s.resize_(size))
            s = tc.UntypedStorage(4096)
            with pytest.raises(IndexError):
                s[Acts(lambda: s.resize_(size), 4000)] = 1
        s = tc.UntypedStorage(4096)
        s[:Acts(lambda: s.resize_(size), 4000)] = 1
        assert s.size() == size
        s = tc.UntypedStorage(4096)
        assert len(s[Acts(lambda: s.resize_(size), 0):4000]) == min(size, 4000)


SHRUNK = [
    lambda x: x.sum(), lambda x: x + 1, lambda x: x.add_(1), lambda x: x[999].item(), repr, lambda x: x.tolist(), lambda x: x.clone(),
    lambda x: tc.ones(1000).copy_(x), lambda x: x.numpy(), lambda x: x[tc.tensor([999])], lambda x: x.view(10, 100) @ tc.ones(100),
    lambda x: memoryview(x), tc.utils.dlpack.to_dlpack, lambda x: x.sort(), lambda x: x.index_add_(0, tc.tensor([0]), tc.ones(1)),
    lambda x: tc.nn.functional.embedding(tc.tensor([999]), x.view(1000, 1)), lambda x: x.view(tc.int32).max(),
    lambda x: tc.tensor(x), lambda x: x.unique(), lambda x: x.cumsum(0), lambda x: tc.cat([x, x]), lambda x: x.double(),
    lambda x: x.masked_fill_(x > 0, 1.0), lambda x: tc.io.save_npy("never.npy", x), lambda x: x.__setitem__(tc.tensor([999]), 1.0),
]


@pytest.mark.parametrize("size", [0, 100, 3999])
@pytest.mark.parametrize("use", range(len(SHRUNK)))
def test_a_storage_that_is_too_small_for_its_tensor(use, size, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = tc.arange(1000.0)
    head = x[:25]
    x.untyped_storage().resize_(size)
    with pytest.raises((RuntimeError, BufferError), match=r"made too small for it: sizes \[.*but the storage has " + str(size) + " bytes"):
        SHRUNK[use](x)
    if size >= 100:
        assert head.sum() == 300  # which is still inside
    x.untyped_storage().resize_(4000)
    x.fill_(1)
    assert x.sum() == 1000 and SHRUNK[use] is not None


def test_a_storage_that_is_freed_for_a_while():
    """As in programs that move parameters elsewhere between uses."""
    x = tc.arange(10.0)
    before = x.untyped_storage().size()
    x.untyped_storage().resize_(0)
    assert x.data_ptr() == 0 and x.shape == (10,) and x.view(2, 5).shape == (2, 5)
    x.untyped_storage().resize_(before)
    x.copy_(tc.arange(10.0))
    assert x.tolist() == list(range(10))


def test_gradients_through_a_storage_that_was_freed():
    x = tc.rand(100, requires_grad=True)
    factor = tc.rand(100)
    y = (x * factor).sum()
    factor.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match="too small|modified by an inplace"):
        y.backward()


def test_sizes_beyond_64_bits():
    assert repr(tc.Size([2**100])) == f"tercel.Size([{2**100}])"
    for sizes in ([2**40, 2**40], [2**100]):
        with pytest.raises(RuntimeError, match="(?i)overflow"):
            tc.Size(sizes).numel()
    assert tc.Size([]).numel() == 1 and tc.Size([3, 0]).numel() == 0
    assert repr(tc.Size([3, 4])) == "tercel.Size([3, 4])"


def test_strides_of_sizes_that_are_too_large():
    with pytest.raises(RuntimeError, match="(?i)overflow|too large|fit"):
        tc.empty_permuted([3, 2**62], [0, 1])


# ---- buffers


class PyBuffer(ctypes.Structure):
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
                ("readonly", ctypes.c_int), ("ndim", ctypes.c_int), ("format", ctypes.c_char_p),
                ("shape", ctypes.POINTER(ctypes.c_ssize_t)), ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
                ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)), ("internal", ctypes.c_void_p)]


C_CONTIGUOUS, F_CONTIGUOUS, ANY_CONTIGUOUS, STRIDES, ND, SIMPLE = 0x38, 0x58, 0x98, 0x18, 0x08, 0


def exported(x, flags):
    """(ndim, shape, strides) of an exported buffer for flags; None if the export fails."""
    get, release = ctypes.pythonapi.PyObject_GetBuffer, ctypes.pythonapi.PyBuffer_Release
    get.argtypes = [ctypes.py_object, ctypes.c_void_p, ctypes.c_int]
    release.argtypes = [ctypes.c_void_p]
    release.restype = None
    view = ctypes.create_string_buffer(ctypes.sizeof(PyBuffer))
    try:
        get(x, view, flags)
    except BufferError:
        return None
    seen = PyBuffer.from_buffer(view)
    found = (seen.ndim, seen.shape[:seen.ndim] if seen.shape else None, seen.strides[:seen.ndim] if seen.strides else None)
    del seen
    release(view)
    return found


def test_a_buffer_lies_as_it_was_asked_for():
    rows, columns, neither = tc.zeros(2, 3), tc.zeros(3, 2).t(), tc.zeros(2, 6)[:, ::2]
    assert exported(rows, C_CONTIGUOUS) == exported(rows, ANY_CONTIGUOUS) == exported(rows, STRIDES) == (2, [2, 3], [12, 4])
    assert exported(rows, ND) == (2, [2, 3], None)
    assert exported(rows, SIMPLE) == (1, None, None)
    assert exported(rows, F_CONTIGUOUS) is None
    assert exported(columns, F_CONTIGUOUS) == exported(columns, ANY_CONTIGUOUS) == exported(columns, STRIDES) == (2, [2, 3], [4, 8])
    assert [exported(columns, f) for f in (C_CONTIGUOUS, ND, SIMPLE)] == [None] * 3
    assert [exported(neither, f) for f in (C_CONTIGUOUS, F_CONTIGUOUS, ANY_CONTIGUOUS, ND, SIMPLE)] == [None] * 5
    assert exported(neither, STRIDES) == (2, [2, 3], [24, 8])
    assert exported(tc.tensor(1.0), C_CONTIGUOUS)[0] == 0
    assert bytes(memoryview(tc.arange(3, dtype=tc.uint8))) == b"\0\1\2"


def test_a_refused_buffer_leaves_the_tensor_alone():
    x = tc.zeros(3, 2).t()
    assert exported(x, C_CONTIGUOUS) is None
    x.untyped_storage().resize_(100)  # not allowed for an exported one


def test_a_buffer_of_pointers_to_rows_is_no_tensor():
    rows = [(ctypes.c_double * 3)(*range(i, i + 3)) for i in range(2)]
    pointers = (ctypes.c_void_p * 2)(*[ctypes.addressof(r) for r in rows])
    shape, strides, suboffsets = ((ctypes.c_ssize_t * 2)(*v) for v in ((2, 3), (8, 8), (0, -1)))
    view = ctypes.create_string_buffer(ctypes.sizeof(PyBuffer))
    for name, value in dict(buf=ctypes.addressof(pointers), len=48, itemsize=8, readonly=0, ndim=2, format=b"d", shape=shape,
                            strides=strides, suboffsets=suboffsets).items():
        setattr(PyBuffer.from_buffer(view), name, value)
    from_buffer = ctypes.pythonapi.PyMemoryView_FromBuffer
    from_buffer.argtypes, from_buffer.restype = [ctypes.c_void_p], ctypes.py_object
    memory = from_buffer(view)
    assert memory.tolist() == [[0, 1, 2], [1, 2, 3]]
    for call in (tc.tensor, tc.as_tensor, tc.asarray, lambda m: tc.frombuffer(m, dtype=tc.float64)):
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            call(memory)


def test_frombuffer_where_elements_cannot_lie():
    data = bytearray(64)
    base = np.frombuffer(data, np.uint8).ctypes.data
    odd = memoryview(data)[1 + base % 2:]
    with pytest.raises(ValueError, match="not aligned to elements of float32 from byte 0 on"):
        tc.frombuffer(odd, dtype=tc.float32, count=2)
    with pytest.raises(ValueError, match="multiple of the element size"):
        tc.frombuffer(data, dtype=tc.float32, count=2, offset=1)
    assert tc.frombuffer(odd, dtype=tc.uint8).numel() == len(odd)
    assert tc.frombuffer(data, dtype=tc.complex64, offset=8).numel() == 7


LENDERS = [memoryview, lambda x: x.numpy(), np.asarray, lambda x: np.from_dlpack(x), tc.utils.dlpack.to_dlpack]


@pytest.mark.parametrize("lend", LENDERS)
def test_lent_memory_stays(lend):
    """Exported memory stays valid whatever happens to the tensor."""
    x = tc.arange(1000.0)
    lent = lend(x)
    with pytest.raises(RuntimeError, match="not resizable"):
        x.untyped_storage().resize_(0)
    x.data = tc.zeros(3)
    x.set_(tc.zeros(2).untyped_storage())
    del x
    tc.zeros(1000)
    seen = tc.from_dlpack(lent) if type(lent).__name__ == "PyCapsule" else np.asarray(lent)
    assert float(seen.sum()) == 499500


# ---- NumPy


def holds_itself():
    a = np.empty((), dtype=object)
    a[()] = a
    return a


class Lies(np.ndarray):
    """An array whose attributes are not NumPy's."""

    dtype = property(lambda self: self.answer)
    ndim = property(lambda self: 0)

    def item(self):
        return self


class Kind:
    kind = ""


@pytest.mark.parametrize("answer", ["", None, Kind(), Kind, 1])
@pytest.mark.parametrize("call", [tc.tensor, tc.zeros, tc.add, tc.as_tensor, lambda a: tc.rand(3)[a], lambda a: tc.zeros([a, a]),
                                  lambda a: tc.tensor([a]), lambda a: tc.rand(3) + a, lambda a: tc.rand(3).sum(a)])
def test_arrays_that_lie(call, answer):
    array = np.zeros(3).view(Lies)
    array.answer = answer
    try:
        call(array)
    except (TypeError, ValueError, RuntimeError, IndexError, AttributeError, RecursionError):
        pass


def test_an_array_that_holds_itself():
    for data in (holds_itself(), [holds_itself()], [1.0, holds_itself()]):
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            tc.tensor(data)
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            tc.tensor(data, dtype=tc.float32)


def test_a_class_that_is_called_numpy():
    for name in ("numpy.ndarray", "numpy.float64"):
        fake = type(name, (), {"dtype": property(lambda self: 1 / 0), "kind": "f"})()
        with pytest.raises((TypeError, RuntimeError)):
            tc.tensor(fake)
        with pytest.raises((TypeError, RuntimeError)):
            tc.rand(3).sum(fake)


# ---- objects


def test_objects_that_were_never_made():
    for cls, use in ((tc.Generator, lambda g: tc.rand(3, generator=g)), (type(tc.float32), lambda d: tc.zeros(3, dtype=d)),
                     (tc.device, lambda d: tc.zeros(3, device=d)), (tc.memory_format, lambda f: tc.rand(3).clone(memory_format=f)),
                     (tc.layout, lambda f: tc.zeros(3, layout=f))):
        with pytest.raises((TypeError, RuntimeError)):
            use(cls.__new__(cls))


def test_attributes_are_not_deleted():
    for name in ("names", "data", "requires_grad", "real", "_grad_fn", "_backward_hooks"):
        with pytest.raises(RuntimeError, match=f"Can't delete Tensor.{name}"):
            delattr(tc.rand(2), name)


def test_methods_of_a_generator_are_its_own():
    for call in (lambda g: tc.Generator.manual_seed(g, 1), lambda g: tc.Generator.set_state(g, tc.zeros(16, dtype=tc.uint8))):
        for other in ("text", 1, tc.rand(2), tc.Generator.__new__(tc.Generator)):
            with pytest.raises(TypeError):
                call(other)


def test_a_tensor_that_is_gone():
    class Named(tc.Tensor):
        pass
    leaf = tc.rand(3, requires_grad=True)
    kept = tc.rand(3).as_subclass(Named)
    leaf.grad = kept
    weak = weakref.ref(kept)
    del kept
    gone = weak()
    leaf.grad = None
    if gone is not None:
        for name in dir(tc.Tensor):
            try:
                value = getattr(gone, name)
                value() if callable(value) and name not in ("__init_subclass__", "__subclasshook__") else None
            except Exception:  # noqa: B902: any error will do
                pass


def test_a_function_whose_context_is_none():
    class Same(tc.autograd.Function):
        forward = staticmethod(lambda ctx, x: x.clone())
        backward = staticmethod(lambda ctx, g: g)
    for other in (list, dict, object):
        Same._backward_cls = other
        with pytest.raises((TypeError, RuntimeError)):
            Same.apply(tc.rand(3, requires_grad=True))


class Short(tuple):
    def __iter__(self):
        return iter(())


def test_a_tuple_with_an_iterator_of_its_own():
    class Two(tc.autograd.Function):
        forward = staticmethod(lambda ctx, x: Short((x.clone(), x + 1)))
        backward = staticmethod(lambda ctx, g, h: Short((g,)))
        jvp = staticmethod(lambda ctx, t: Short((t, t)))
    x = tc.rand(3, requires_grad=True)
    one, two = Two.apply(x)[:2]
    (one + two).sum().backward()
    with tc.autograd.forward_ad.dual_level():
        tc.autograd.forward_ad.unpack_dual(Two.apply(tc.autograd.forward_ad.make_dual(x.detach(), tc.ones(3)))[0])


def test_a_collection_during_tolist():
    """Finalizers may resize the storage that is being read and reuse its memory."""
    x, others = tc.ones(200, 200), []

    class Shrinks:
        def __init__(self):
            self.me = self

        def __del__(self):
            x.untyped_storage().resize_(0)
            others.append(tc.zeros(200, 200))
    before = gc.get_threshold()
    gc.collect()
    gc.disable()
    gc.set_threshold(20)
    Shrinks()
    gc.enable()
    try:
        assert x.tolist() == [[1.0] * 200] * 200
    except RuntimeError as e:
        assert "too small" in str(e)
    finally:
        gc.set_threshold(*before)


def test_lists_that_another_thread_changes():
    tensors, stop = [tc.rand(2), tc.rand(2)], threading.Event()
    items = []

    def change():
        while not stop.is_set():
            items.clear()
            items.extend([Acts(lambda: sum(range(20))) for _ in range(50)])
            tensors.clear()
            tensors.extend([tc.rand(2), tc.rand(2)])
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    changer = threading.Thread(target=change)
    changer.start()
    try:
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            for call in (lambda: tc.tensor([items, items]), lambda: tc.cat(tensors), lambda: tc.zeros(items),
                         lambda: tc.rand(2, 2, 2)[items], lambda: tc.tensor(items), lambda: tc.UntypedStorage(items)):
                try:
                    call()
                except (RuntimeError, ValueError, TypeError, IndexError):
                    pass
    finally:
        stop.set()
        changer.join()
        sys.setswitchinterval(before)


def test_random_calls():
    """Runs for TERCEL_HOSTILE_SECONDS in a separate process, which a crash would end; a failure shows seed and last case."""
    seed = int(os.environ.get("TERCEL_HOSTILE_SEED", "0"))
    script = Path(__file__).with_name("hostile_calls.py")
    run = subprocess.run([sys.executable, str(script), "--seed", str(seed), "--seconds", str(FUZZ_SECONDS)],
                         capture_output=True, text=True, timeout=60 + 20 * FUZZ_SECONDS)
    assert run.returncode == 0, f"TERCEL_HOSTILE_SEED={seed}\n" + (run.stdout + run.stderr)[-6000:]
