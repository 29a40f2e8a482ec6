"""One object per tensor and storage; ownership between objects and tensors."""

import copy
import gc
import pickle
import sys
import threading
import weakref

import pytest

import tercel as tc


def test_a_leaf_comes_back_as_itself():
    w = tc.ones(2, requires_grad=True)
    (w * 2).sum().backward()
    assert w.grad is w.grad
    assert (w * 2).grad_fn.next_functions[0][0] is not None


def test_attributes_survive_while_only_cpp_holds_the_tensor():
    w = tc.ones(2, requires_grad=True)
    g = tc.tensor([1.0, 2.0])
    g.note = "mine"
    w.grad = g
    seen = id(g)
    del g
    gc.collect()
    assert w.grad.note == "mine" and id(w.grad) == seen
    w.grad = None


def test_a_plain_object_may_die_before_its_tensor():
    w = tc.ones(2, requires_grad=True)
    w.grad = tc.ones(2)
    assert w.grad.tolist() == [1, 1]


def test_weak_references_live_as_long_as_the_tensor():
    w = tc.ones(2, requires_grad=True)
    g = tc.ones(2)
    ref = weakref.ref(g)
    w.grad = g
    del g
    assert ref() is w.grad
    w.grad = None
    assert ref() is None


class Named(tc.Tensor):
    """A tensor subclass."""


def test_subclasses_keep_their_class():
    n = Named([1.0, 2.0])
    assert type(n) is Named and n.tolist() == [1, 2]
    w = tc.ones(2, requires_grad=True)
    w.grad = n
    n.extra = 7
    del n
    gc.collect()
    assert type(w.grad) is Named and w.grad.extra == 7
    assert type(tc.ones(2).as_subclass(Named)) is Named
    with pytest.raises(RuntimeError, match="from a class that does not inherit from Tensor"):
        tc.ones(2).as_subclass(dict)
    for not_a_class in (1, None, Named(2)):
        with pytest.raises(TypeError, match="must be type, not"):
            tc.ones(2).as_subclass(not_a_class)


def test_finalizers_of_subclasses_run_once():
    log = []

    class Watched(tc.Tensor):
        __slots__ = ("held",)

        def __del__(self):
            log.append(1)

    t = Watched([1.0])
    t.held = [1, 2]
    held = weakref.ref(tc.ones(1))
    del t
    gc.collect()
    assert log == [1] and held() is None


def test_cycles_are_collected():
    t = tc.ones(2)
    t.me = t
    ref = weakref.ref(t)
    del t
    gc.collect()
    assert ref() is None


def test_operations_do_not_leak():
    a, b = tc.ones(3), tc.ones(3)
    before = sys.getrefcount(a), sys.getrefcount(None), sys.getrefcount(tc.float32), len(gc.get_objects())
    for _ in range(1000):
        c = a + b
        c.add_(1)
        c = c.view(3, 1)[0, 0]
        c.shape, c.dtype, c.item(), c.device
        tc.sum(a, dim=0, keepdim=True)
        with pytest.raises(TypeError):
            a.add("x")
    after = sys.getrefcount(a), sys.getrefcount(None), sys.getrefcount(tc.float32), len(gc.get_objects())
    assert after[0] == before[0]
    assert all(abs(x - y) < 100 for x, y in zip(after[1:], before[1:]))


def test_storages_are_one_object():
    x = tc.arange(6)
    y = x.view(2, 3)
    s = x.untyped_storage()
    assert s is y.untyped_storage()
    s.note = 1
    del s
    gc.collect()
    assert y.untyped_storage().note == 1
    assert id(x.untyped_storage()) == id(y.untyped_storage())


def test_typed_storages_are_one_object():
    x = tc.arange(6)
    y = x.view(2, 3)
    seen = id(x.storage())
    others = [tc.ones(1).storage() for _ in range(100)]  # freed memory would be reused
    assert id(y.storage()) == seen and x.storage() is y[1:].storage() and x.storage() is not x.view(tc.float64).storage()
    assert seen not in map(id, others) and x.view(tc.float64).storage() is y.view(tc.float64).storage()
    x.storage().note = weakref.ref(x)
    gc.collect()
    assert y.storage().note() is x
    kept = weakref.ref(y.storage())
    assert kept() is x.storage() and kept().tolist() == list(range(6))
    del x, y
    assert kept() is None


def test_a_typed_storage_holds_its_memory():
    s = tc.arange(3).storage()
    u = s.untyped()
    assert s.tolist() == [0, 1, 2] and u is s._untyped_storage
    seen, note = id(s), s.__dict__
    note["self"] = "kept"
    del s, note
    again = tc.tensor([], dtype=tc.int64).set_(u).storage()
    assert id(again) == seen and again.self == "kept"
    weak = weakref.ref(again)
    del again, u
    assert weak() is None


def test_a_typed_storage_found_by_a_weak_reference_holds_its_memory():
    x = tc.arange(3)
    for touch in (True, False):
        weak = weakref.ref(x.storage())
        s = weak()
        if touch:
            assert s.untyped().nbytes() == 24
        view = x[1:]
        del x
        assert s.tolist() == [0, 1, 2] and s is view.storage()
        x = view.storage()._tensor()
        del view, s
    weak = weakref.ref(x.storage())
    s = weak()
    del x
    assert s.tolist() == [] and s.untyped() is s.untyped()  # the memory was not requested in time
    s.resize_(1)[0] = 5
    assert s.tolist() == [5]


def test_what_is_no_storage_has_no_typed_storages():
    for wrong in ((tc.ones(1), tc.FloatStorage), (tc.ones(1).untyped_storage(), int), (tc.ones(1).untyped_storage(), 1)):
        with pytest.raises(TypeError, match="expected a tercel.UntypedStorage and a class of typed storages"):
            tc._C._typed_twin(*wrong)


def test_hash_is_by_identity():
    a, b = tc.ones(1), tc.ones(1)
    assert hash(a) == id(a) and hash(a) != hash(b) and len({a, b, a}) == 2 and {a: 1}[a] == 1


def test_copies_and_pickles():
    x = tc.arange(6.0).view(2, 3).requires_grad_()
    x.note = "n"
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert y.tolist() == x.tolist() and y.requires_grad and y.note == "n" and y is not x
    a = tc.ones(4)
    b, c = copy.deepcopy([a, a[1:]])
    b[1] = 5
    assert c[0].item() == 5
    assert pickle.loads(pickle.dumps(tc.float32)) is tc.float32
    assert pickle.loads(pickle.dumps(tc.Size([2, 3]))) == (2, 3)


def test_threads_may_free_what_others_made():
    kept = [tc.ones(3) for _ in range(1000)]
    for t in kept[:10]:
        t.note = object()
    leaf = tc.ones(2000, 20, requires_grad=True)

    def work(part):
        for t in part:
            (t + 1).sum()
        (leaf * 2).sum().backward()
        part.clear()

    threads = [threading.Thread(target=work, args=(kept[i::4],)) for i in range(4)]
    kept.clear()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert leaf.grad[0, 0].item() == 8


def test_an_object_from_a_weak_reference_can_take_its_tensor_over():
    x, y = tc.ones(2), tc.ones(2)
    x.note = 1
    y.grad = x
    ref = weakref.ref(x)
    del x
    x = ref()
    x._fix_weakref()
    x._fix_weakref()
    del y
    assert x.note == 1 and x.tolist() == [1, 1] and ref() is x
    del x
    assert ref() is None


def test_collected_cycles_leave_the_collector_in_order():
    """An object that the collector has cleared is still in its lists when it is freed."""
    for _ in range(3):
        for _ in range(2000):  # more than the free list keeps
            x = tc.ones(2)
            x.first = None  # from here on the collector tracks it, before the list
            x.me = [x]
        del x
        gc.collect()
        kept = [bytearray(200) for _ in range(5000)]
        gc.collect()
        assert not any(map(any, kept))
