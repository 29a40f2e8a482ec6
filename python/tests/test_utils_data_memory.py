"""DataLoader with worker processes: the memory of batches, and what batches may hold."""

import collections
import gc
import os
import pathlib
import random
import resource

import numpy as np
import pytest
from loader_helpers import Calls, descriptors, maps, nothing_is_left, same, samples, servers  # noqa: F401: two are fixtures

import tercel as tc
from tercel.utils.data import DataLoader, TensorDataset
from tercel.utils.data._utils import segments

Point = collections.namedtuple("Point", "x y")


def test_tensors_arrive_in_shared_memory():
    loader = DataLoader(TensorDataset(tc.rand(100, 500)), batch_size=10, num_workers=1)
    (batch,) = next(iter(loader))
    lines = pathlib.Path("/proc/self/maps").read_text().splitlines()
    where = batch.data_ptr()
    (line,) = [ln for ln in lines if int(ln.split("-")[0], 16) <= where < int(ln.split()[0].split("-")[1], 16)]
    assert "memfd:tercel-batch" in line
    batch += 1
    del batch
    gc.collect()
    assert maps() == 0


def test_memory_is_written_again_only_when_nobody_sees_it():
    draw = random.Random(3)
    kept, most = {}, 0
    loader = DataLoader(Calls(lambda i: {"a": tc.full((1000,), i), "b": np.full(2000, i)}, 400), batch_size=None, num_workers=2,
                        collate_fn=lambda x: x)
    for i, batch in enumerate(loader):
        assert batch["a"].eq(i).all() and (batch["b"] == i).all()
        most = max(most, maps())
        if draw.random() < 0.2:
            kept[i] = (batch["a"][10:20], batch["b"][::2]) if draw.random() < 0.5 else (batch["a"].numpy(), batch["b"])
        if len(kept) > 10:
            del kept[draw.choice(list(kept))]
        for j, (a, b) in kept.items():
            assert (a == j).all() and (b == j).all()
    assert most < 60  # of 800


def test_a_forked_process_keeps_what_it_sees():
    loader = iter(DataLoader(Calls(lambda i: tc.full((5000,), i), 60), batch_size=None, num_workers=1))
    batch = next(loader)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(read, 1)  # the parent has read on
        os._exit(0 if batch.eq(0).all() else 1)
    del batch
    for i, later in enumerate(loader, 1):
        assert later.eq(i).all()
    os.write(write, b"x")
    assert os.waitpid(child, 0)[1] == 0
    os.close(read), os.close(write)


def test_an_epoch_of_many_batches_leaves_no_descriptors():
    loader = DataLoader(TensorDataset(tc.arange(20000).view(-1, 2)), batch_size=1, num_workers=2)
    total, before = 0, None
    for k, (row,) in enumerate(loader):
        total += int(row.sum())
        if k % 1000 == 100:
            before = before or (descriptors(), maps())
            assert descriptors() == before[0] and maps() < before[1] + 10
    assert k == 9999 and total == sum(range(20000))


def test_many_kept_batches_need_no_descriptors():
    import resource
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors() + 40, hard))
    try:
        batches = list(DataLoader(Calls(lambda i: tc.tensor([i]), 700), batch_size=None, num_workers=1))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert tc.cat(batches).tolist() == list(range(700))


@pytest.mark.parametrize("free, lent", [(1, 2), (64, 1), (1, 512)])
def test_few_segments(monkeypatch, free, lent):
    """A worker that forgets segments, while batches are kept and released in any order."""
    monkeypatch.setattr(segments.Shelf, "FREE", free)
    monkeypatch.setattr(segments.Shelf, "LENT", lent)
    draw, kept = random.Random(1), []
    for i, batch in enumerate(samples_of_sizes(200)):
        assert batch.eq(i).all()
        kept.append((i, batch))
        while len(kept) > draw.randrange(8):
            j, old = kept.pop(draw.randrange(len(kept)))
            assert old.eq(j).all()
    kept.clear()
    del batch, old
    gc.collect()
    assert maps() == 0


def samples_of_sizes(count):
    return iter(DataLoader(Calls(lambda i: tc.full((500 * (i % 5 + 1),), i), count), batch_size=None, num_workers=2))


def test_without_room_for_maps(monkeypatch):
    loader = samples_of_sizes(30)
    monkeypatch.setattr(segments, "_map", lambda descriptor, size: None)
    assert all(batch.eq(i).all() for i, batch in enumerate(loader)) and maps() == 0


def test_without_memfd(monkeypatch):
    monkeypatch.delattr(os, "memfd_create")
    assert all(batch.eq(i).all() for i, batch in enumerate(samples_of_sizes(30)))


def test_without_room_for_descriptors():
    import resource
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    loader = iter(DataLoader(Calls(lambda i: [tc.ones(i + 1) for _ in range(20)], 9), batch_size=None, num_workers=1))
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors() + 20, hard))
    fill = []
    try:
        with pytest.raises(OSError):
            while True:
                fill.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(5):
            os.close(fill.pop())
        with pytest.raises(RuntimeError, match="Too many open files. Communication with the workers is no longer possible"):
            list(loader)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for number in fill:
            os.close(number)


class Own(tc.Tensor):
    pass


def everything(i):
    base = tc.arange(12.0).view(3, 4) + i
    return {
        "tensor": base, "again": base, "transposed": base.t(), "row": base[1], "empty": tc.empty(0, 3), "scalar": tc.tensor(i),
        "bfloat": base.bfloat16(), "complex": base + 1j, "bool": base > 5, "leaf": base.clone().requires_grad_(),
        "parameter": tc.nn.Parameter(base), "own": base.as_subclass(Own), "expanded": tc.tensor([1.0]).expand(5),
        "array": np.arange(3000) + i, "fortran": np.asfortranarray(np.arange(6000.0).reshape(2, 3000)),
        "objects": np.array([None, "a"]), "text": "x" * 200_000, "bytes": bytearray(b"a" * 9), "none": None, "set": {1, 2},
        "point": Point(i, [tc.ones(2)]), "many": [tc.tensor([float(k)]) for k in range(300)], "small": np.arange(2), "storage":
        tc.ones(3).untyped_storage(), "typed": tc.ones(2).storage(),
    }


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_what_a_batch_may_hold(method):
    for i, got in enumerate(samples(everything, 3, multiprocessing_context=method, collate_fn=same)):
        want = everything(i)
        assert got.keys() == want.keys() and got["tensor"] is got["again"]
        for name, value in want.items():
            other = got[name]
            assert type(other) is type(value), name
            if isinstance(value, tc.Tensor):
                assert tc.equal(other, value) and other.dtype is value.dtype and other.stride() == value.stride(), name
                assert other.requires_grad == value.requires_grad and other.is_leaf, name
            elif isinstance(value, np.ndarray):
                assert (other == value).all() and other.flags.f_contiguous == value.flags.f_contiguous, name
                other[...] = 0  # it is writable
            elif name in ("storage", "typed"):
                assert other.tolist() == value.tolist()
            elif name not in ("point", "many"):
                assert other == value, name
        assert got["point"].x == i and got["point"].y[0].tolist() == [1, 1]
        assert [t.item() for t in got["many"]] == list(range(300))
        assert got["transposed"].data_ptr() == got["tensor"].data_ptr()
        got["tensor"][0, 1] = 99
        assert got["transposed"][1, 0].item() == 99


def test_a_row_does_not_bring_its_table():
    table = tc.rand(1000, 1000)
    for i, row in enumerate(samples(lambda i: table[i])):
        assert tc.equal(row, table[i]) and row.untyped_storage().nbytes() <= 8000
    assert table.untyped_storage().resizable()


def test_a_dataset_may_change_what_it_has_returned():
    buffer = tc.zeros(2000)

    def next_values(i):
        buffer.resize_(2000 + i).fill_(i)
        return buffer

    assert [batch[0].item() for batch in samples(next_values, collate_fn=same)] == list(range(8))


def test_a_batch_that_fails_half_way_returns_its_memory():
    def item(i):
        return [tc.full((3000,), i), lambda: 0] if i % 3 else [tc.full((3000,), i)]

    loader = iter(DataLoader(Calls(item, 60), batch_size=None, num_workers=1, collate_fn=same, multiprocessing_context="fork"))
    for i in range(60):
        if i % 3:
            with pytest.raises((AttributeError, RuntimeError)):
                next(loader)
        else:
            assert next(loader)[0].eq(i).all()
        assert maps() < 12


@pytest.mark.parametrize("lent", [1, 512])
def test_a_batch_of_more_tensors_than_segments_are_kept(monkeypatch, lent):
    monkeypatch.setattr(segments.Shelf, "LENT", lent)

    def item(i):
        return [tc.tensor([i]) for _ in range(600)] + ([lambda: 0] if i == 1 else [])

    loader = iter(DataLoader(Calls(item, 4), batch_size=None, num_workers=1, collate_fn=same))
    for i in range(4):
        if i == 1:
            with pytest.raises((AttributeError, RuntimeError)):
                next(loader)
        else:
            assert all(t.item() == i for t in next(loader))


def test_batches_outlive_their_loader():
    kept = samples(lambda i: tc.full((3000,), i))
    gc.collect()
    assert all(batch.eq(i).all() for i, batch in enumerate(kept)) and maps() == 8


def test_a_batch_of_more_tensors_than_the_process_may_open_files():
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
    try:
        loader = DataLoader(Calls(lambda i: (tc.full((7,), float(i)), np.full(2000, i)), 1200), batch_size=600, num_workers=2,
                            collate_fn=list)
        seen, kept = 0, []
        for batch in loader:
            kept.append(batch[599])
            for tensor, array in batch:
                assert tensor.eq(seen).all() and (array == seen).all()
                tensor += 1  # each has memory of its own
                seen += 1
        assert seen == 1200 and [tensor[0].item() for tensor, _ in kept] == [600, 1200]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    del batch, tensor, array, kept
    gc.collect()
    assert maps() == 0


def test_a_batch_that_cannot_be_mapped_is_read_in_parts(monkeypatch):
    pread = os.pread
    monkeypatch.setattr(segments, "_map", lambda descriptor, size: None)
    monkeypatch.setattr(os, "pread", lambda descriptor, size, offset: pread(descriptor, min(size, 1000), offset))
    mapped, descriptor = segments.Mapped(), segments._new_file(5000)
    os.pwrite(descriptor, bytes(range(250)) * 20, 0)
    mapped.add(1, descriptor)
    assert bytes(mapped.lease(1, 5000)) == bytes(range(250)) * 20 and mapped.take_returned() == [-2]
