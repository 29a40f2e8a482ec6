"""pickle and copy: sharing is preserved, and so are a tensor's attributes."""

import copy
import gc
import io
import pickle
import weakref

import pytest

import tercel as tc

PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


class Named(tc.Tensor):
    """A tensor subclass."""


def both(obj):
    yield copy.deepcopy(obj)
    for protocol in PROTOCOLS:
        yield pickle.loads(pickle.dumps(obj, protocol))


@pytest.mark.parametrize("make", [
    lambda: tc.arange(6.0), lambda: tc.arange(6).view(2, 3).t(), lambda: tc.arange(10)[2:8:3], lambda: tc.tensor(True),
    lambda: tc.empty(0, 3), lambda: tc.ones(2, 1).expand(2, 4), lambda: tc.ones(3, dtype=tc.bfloat16),
    lambda: tc.ones(1, 2, 3, 4).contiguous(memory_format=tc.channels_last),
])
def test_values_and_strides(make):
    x = make()
    for y in both(x):
        assert y is not x and y.tolist() == x.tolist() and y.dtype is x.dtype
        assert y.stride() == x.stride() and y.storage_offset() == x.storage_offset()
        assert x.numel() == 0 or y.data_ptr() != x.data_ptr()


def test_sharing():
    x = tc.arange(4)
    for a, view, again in both([x, x[1:], x]):
        view[0] = 50
        assert a.tolist() == [0, 50, 2, 3] and again is a and x[1].item() == 1
    for x_copy, storage in both([x, x.untyped_storage()]):
        assert x_copy.untyped_storage() is storage
    for x_copy, storage in both([x, x.storage()]):
        storage[0] = 9
        assert x_copy[0].item() == 9


def test_gradients_classes_and_attributes():
    x = Named([1.0, 2.0])
    x.requires_grad_()
    x.grad = tc.ones(2)
    x.note = ["n"]
    x.me = x
    y = copy.deepcopy(x)
    assert type(y) is Named and y.requires_grad and y.is_leaf and y.me is y and y.note == ["n"]
    assert y.note is not x.note and y.grad.tolist() == [1, 1] and y.grad is not x.grad
    x.me = None
    for y in both(x):
        assert type(y) is Named and y.requires_grad and y.note == ["n"] and y.tolist() == [1, 2]


def test_a_copy_shares_the_memory():
    x = tc.arange(3.0, requires_grad=True)
    x.note = 1
    y = copy.copy(x)
    assert y is not x and y.data_ptr() == x.data_ptr() and y.requires_grad and y.note == 1


def test_only_leaves_are_copied():
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(tc.ones(2, requires_grad=True) * 2)


def test_bytes_out_of_band():
    x = tc.arange(100_000)
    buffers = []
    data = pickle.dumps([x, x[5:]], protocol=5, buffer_callback=buffers.append)
    assert len(data) < 1000 and len(buffers) == 1 and buffers[0].raw().nbytes == x.nbytes
    a, b = pickle.loads(data, buffers=buffers)
    assert a.data_ptr() == x.data_ptr() and b[0].item() == 5
    a, b = pickle.loads(data, buffers=[bytes(buffers[0])])
    a[5] = 7  # bytes are read-only: there is a copy
    assert a.data_ptr() != x.data_ptr() and b[0].item() == 7 and x[5].item() == 5
    buffer = bytearray(buffers[0])
    a, _ = pickle.loads(data, buffers=[buffer])
    a[0] = 1
    assert buffer[0] == 1
    with pytest.raises(BufferError):
        buffer.clear()


def test_a_pickle_leaves_the_tensor_as_it_is():
    x = tc.ones(2)
    for protocol in (2, 3, 4):
        pickle.dumps(x, protocol)
    copy.deepcopy(x)
    assert x.resize_(4).shape == (4,)


def test_what_is_no_tensor():
    for obj in (tc.float32, tc.device("cpu"), tc.device("cuda:1"), tc.Size([2, 3]), tc.strided, tc.channels_last):
        for same in both(obj):
            assert same == obj and type(same) is type(obj)
    for obj in both(tc.float32):
        assert obj is tc.float32
    for storage in both(tc.arange(3.0).storage()):
        assert storage.tolist() == [0, 1, 2] and storage.dtype is tc.float32


def test_damaged_pickles_do_not_crash():
    data = pickle.dumps([tc.arange(10.0), tc.ones(2)], 2)
    start = data.index(b"_rebuild")
    for at in range(start, len(data), 3):
        for wrong in (data[:at], data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]):
            try:
                pickle.load(io.BytesIO(wrong))
            except Exception:
                pass
    with pytest.raises(RuntimeError, match="cannot allocate"):
        tc._tensor._rebuild(tc.Tensor, tc.ones(2).untyped_storage(), tc.float32, 0, (2**40,), (1,), False, {})


def test_nothing_stays():
    x = tc.ones(1000)
    alive = weakref.ref(x)
    copies = list(both([x, x[1:]]))
    watched = [weakref.ref(c[0]) for c in copies]
    del x, copies
    gc.collect()
    assert alive() is None and all(w() is None for w in watched)


def test_modules():
    model = tc.nn.Sequential(tc.nn.Linear(3, 4), tc.nn.ReLU(), tc.nn.Linear(4, 1))
    model.tied = model[0].weight
    x = tc.rand(2, 3)
    for other in both(model):
        assert other(x).tolist() == model(x).tolist() and type(other.tied) is tc.nn.Parameter
        assert other.tied is other[0].weight and other.tied is not model.tied
        assert [n for n, _ in other.named_parameters()] == [n for n, _ in model.named_parameters()]
