"""tercel.data: batches, compared with NumPy's reading of the same bytes."""

import copy
import ctypes
import dataclasses
import gc
import inspect
import itertools
import json
import pathlib
import pickle
import struct

import numpy as np
import pytest
from norm_files import (  # noqa: F401: fixtures too
    HOTNESS, Rows, dataset, given, joined, norm_bytes, order_of, rows, spec, write_files)

import tercel as tc
import tercel.data as td


# ---- batches

@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("key_type, key", [("u32", "I"), ("i64", "q")])
@pytest.mark.parametrize("check_mode", ["none", "sum"])
def test_values_are_those_of_the_bytes(tmp_path, ragged, key_type, key, check_mode):
    rows = Rows(333, ragged=ragged)
    files = write_files(tmp_path, rows, (100,), key, check_mode == "sum")
    dataset = td.open_files("norm", **spec(files, key_type=key_type, check_mode=check_mode))
    for options in ({}, {"bag_order": "slot_major"}, {"narrow_keys": True},
                    {"bag_order": "slot_major", "narrow_keys": True}):
        for inputs in (None, {"a": 1, "b": 2}):
            reader = dataset.batches(batch_size=50, inputs=inputs, **options)
            batches = list(reader)
            assert [b.rows for b in batches] == [50] * 6 + [33]
            assert [b.row for b in batches] == [b.global_row for b in batches] == list(range(0, 333, 50))
            assert joined(batches) == given(rows)
            for b in batches:
                for sparse in b.inputs.values():
                    assert sparse.keys.dtype == sparse.row_offsets.dtype == (
                        tc.int32 if "narrow_keys" in options else tc.int64)
                    assert sparse.bag_order == options.get("bag_order", "sample_major")
                    assert sparse.key_weights is None


def test_inputs(dataset):
    for inputs in ({"user": 1, "item": 2}, [("user", 1), ("item", 2)], (["user", np.int32(1)], {"name": "item",
                                                                                                 "slot_num": 2})):
        batch = next(iter(dataset.batches(batch_size=10, inputs=inputs)))
        assert list(batch.inputs) == ["user", "item"]
        assert batch["user"] is batch.inputs["user"] and batch["item"].slot_num == 2 and batch["item"].name == "item"
        assert "user" in batch and "keys" not in batch
    batch = next(iter(dataset.batches(batch_size=10)))
    assert list(batch.inputs) == ["keys"] and batch["keys"].slot_num == 3
    with pytest.raises(KeyError, match=r"expected one of the inputs \['keys'\], found 'users'"):
        batch["users"]
    with pytest.raises(TypeError, match="not iterable"):
        iter(batch)
    assert "rows=10" in repr(batch) and "slot_num=3" in repr(batch["keys"])
    assert batch.columns == {} and batch.epoch == 0 and batch.global_rows == 10


def test_hotness_is_known_if_all_bags_are_full(tmp_path):
    rows = Rows(64, ragged=False)
    dataset = td.open_files("norm", **spec(write_files(tmp_path, rows, ())))
    batch = next(iter(dataset.batches(inputs={"one": 1, "three": 1, "two": 1})))
    assert [sparse.hotness for sparse in batch.inputs.values()] == list(HOTNESS)
    assert batch["three"].row_offsets.tolist() == list(range(0, 64 * 3 + 1, 3))


def test_shuffling_is_the_same_for_any_workers_and_batches(dataset, rows):
    options = {"shuffle": True, "seed": 5, "shuffle_window": 128, "shuffle_block": 16, "epochs": 2}
    expected = order_of(dataset.batches(batch_size=100, **options), rows)
    assert sorted(expected[:700]) == sorted(expected[700:]) == list(range(700))
    assert expected[:700] != expected[700:] != list(range(700))
    for num_workers in (1, 2, 5):
        for batch_size in (33, 700):
            for prefetch in (1, 4):
                assert order_of(dataset.batches(batch_size=batch_size, num_workers=num_workers, prefetch=prefetch,
                                                **options), rows) == expected
    options["seed"] = 6
    assert order_of(dataset.batches(batch_size=100, **options), rows) != expected


@pytest.mark.parametrize("shuffle", [False, True])
def test_parts_of_ranks(dataset, rows, shuffle):
    options = {"batch_size": 64, "shuffle": shuffle, "seed": 2}
    whole = list(dataset.batches(**options))
    parts = [list(dataset.batches(rank=rank, ranks=3, **options)) for rank in range(3)]
    for step, batch in enumerate(whole):
        pieces = [part[step] for part in parts]
        assert {(p.global_row, p.global_rows) for p in pieces} == {(batch.row, batch.rows)}
        assert [p.row for p in pieces] == [batch.row + sum(q.rows for q in pieces[:r]) for r in range(3)]
        assert max(p.rows for p in pieces) - min(p.rows for p in pieces) <= 1
        assert joined(pieces) == joined([batch])


def test_epochs_and_loops(dataset, rows):
    reader = dataset.batches(batch_size=300, epochs=2)
    assert len(reader) == 6 and reader.epoch_batches == 3 and reader.epoch_rows == 700
    assert [(b.epoch, b.rows) for b in reader] == [(0, 300), (0, 300), (0, 100), (1, 300), (1, 300), (1, 100)]
    assert [b.epoch for b in reader] == [2] * 3 + [3] * 3, "the next loop reads the next epochs"
    first = dataset.batches(batch_size=300, shuffle=True)
    loops = [order_of(first, rows) for _ in range(3)]
    assert loops[0] != loops[1] != loops[2]
    assert sum(loops, []) == order_of(dataset.batches(batch_size=300, shuffle=True, epochs=3), rows)
    reader.rewind()
    taken = []
    for batch in reader:
        taken.append(batch.row)
        if len(taken) == 2:
            break
    assert len(reader) == 4 and next(iter(reader)).row == 600, "a loop that was left is continued"
    assert [b.epoch for b in reader] == [1] * 3, "and ends where it would have ended"
    dropped = dataset.batches(batch_size=300, drop_last=True)
    assert len(dropped) == 2 and [b.rows for b in dropped] == [300, 300]
    assert len(dropped) == 2, "of the next loop"
    endless = dataset.batches(batch_size=700, epochs=0)
    with pytest.raises(TypeError, match="no last batch"):
        len(endless)
    batches = iter(endless)
    assert [next(batches).epoch for _ in range(5)] == list(range(5))
    assert len(dataset.batches("test")) == 1 and dataset.batches("test").part == "test"


def test_loops_end_at_multiples_of_epochs(dataset):
    def loop(reader, count=None):
        return [(b.epoch, b.row) for b in itertools.islice(reader, count)]

    def whole(*epochs):
        return [(epoch, row) for epoch in epochs for row in (0, 300, 600)]

    one = dataset.batches(batch_size=300)
    assert [loop(one, 3) for _ in range(3)] == [whole(0), whole(1), whole(2)], "loops that are left at their end"
    one.rewind()
    assert len(one) == 3 and loop(one) == whole(0), "not the epochs of all loops before"
    assert loop(one, 1) == [(1, 0)] and len(one) == 2
    resumed = dataset.batches(batch_size=300, start=one.position)
    assert len(resumed) == 2 and loop(resumed) == [(1, 300), (1, 600)]
    assert len(resumed) == 3 and loop(resumed) == whole(2)
    resumed.seek(resumed.position)
    assert len(resumed) == 3 and loop(resumed) == whole(3), "seeking where it is changes nothing"

    two = dataset.batches(batch_size=300, epochs=2)
    for epoch, length in ((0, 6), (1, 3), (2, 6), (7, 3)):
        two.seek(dataclasses.replace(one.position, epoch=epoch, row=0))
        assert len(two) == length and loop(two) == whole(*range(epoch, epoch // 2 * 2 + 2))
        two.seek(dataclasses.replace(one.position, epoch=epoch, row=700))
        assert len(two) == 9 - length and two.position.row == 0 and loop(two)[0] == (epoch + 1, 0)
    found = []
    two.rewind()
    for batch in two:
        found.append((batch.epoch, batch.row))
        assert len(two) == (6 - len(found) if len(found) < 6 else 6), "it counts down"
    assert found == whole(0, 1)
    batches = iter(two)
    assert next(batches).epoch == 2
    two.rewind()
    assert [b.epoch for b in batches] == [0] * 3 + [1] * 3, "moving in a loop moves its end"
    assert next(batches, None) is None, "an iterator that has ended stays ended"

    dropped = dataset.batches(batch_size=300, drop_last=True)
    dropped.seek(dataclasses.replace(one.position, epoch=4, row=500))
    assert (dropped.position.epoch, dropped.position.row) == (5, 0) and loop(dropped) == [(5, 0), (5, 300)]

    far = dataset.batches(batch_size=300, epochs=2**63 - 1)
    far.seek(dataclasses.replace(one.position, epoch=2**53, row=600))
    assert loop(far, 2) == [(2**53, 600), (2**53 + 1, 0)]
    with pytest.raises(tc.ConfigError, match="of an epoch from 0 to 9007199254740992, found row 0 of epoch 92233720"):
        far.seek(dataclasses.replace(one.position, epoch=2**63 - 1, row=0))


@pytest.mark.parametrize("shuffle", [False, True])
def test_positions(dataset, rows, shuffle):
    options = {"batch_size": 150, "shuffle": shuffle, "seed": 9, "epochs": 2}
    whole = order_of(dataset.batches(**options), rows)
    reader = dataset.batches(**options)
    taken = 0
    for batch in reader:
        taken += batch.rows
        position = pickle.loads(pickle.dumps(reader.position))
        assert position == reader.position and hash(position) == hash(reader.position)
        assert td.ReaderPosition(**json.loads(json.dumps(dataclasses.asdict(position)))) == position
        assert (position.epoch, position.row) == divmod(taken, 700)
        resumed = dataset.batches(start=position, num_workers=2, **options)
        assert resumed.position == position and len(resumed) == len(reader)
        assert order_of(resumed, rows) == (whole[taken:] or [
            row for epoch in (2, 3) for row in order_of(dataset.batches(
                start=dataclasses.replace(position, epoch=epoch), **{**options, "epochs": 1}), rows)])
    end = reader.position
    assert repr(end).startswith("ReaderPosition(epoch=2, row=0, epoch_rows=700") and end != td.ReaderPosition(2, 0, 701)
    following = dataset.batches(start=end, **options)
    assert following.position == end and len(following) == 10
    assert {b.epoch for b in following} == {2, 3}, "the end of a loop is the start of the next one"
    reader.seek(dataclasses.replace(end, epoch=1, row=690))
    assert order_of(reader, rows) == whole[-10:]


def test_positions_of_another_order(dataset):
    reader = dataset.batches(shuffle=True, seed=1)
    with pytest.raises(tc.ConfigError, match="expected seed 2, found 1"):
        dataset.batches(shuffle=True, seed=2, start=reader.position)
    with pytest.raises(tc.ConfigError, match="with another number of rows: expected epoch_rows 90, found 700"):
        dataset.batches("test", shuffle=True, seed=1, start=reader.position)
    with pytest.raises(tc.ConfigError, match="expected shuffle false, found true"):
        dataset.batches(start=reader.position)
    for wrong in (3, (0, 0), {"epoch": 0}):
        with pytest.raises(TypeError, match="expected a ReaderPosition, not"):
            reader.seek(wrong)
    with pytest.raises(tc.ConfigError, match="option 'row': expected an integer, found \"x\""):
        reader.seek(dataclasses.replace(reader.position, row="x"))
    assert [field.name for field in dataclasses.fields(td.ReaderPosition)] == [
        name for name, *_ in tc._C._dataset_options()["position"]]


# ---- options

def test_every_option_is_a_keyword():
    shown = inspect.signature(td.Dataset.batches).parameters
    table = tc._C._dataset_options()["batches"]
    for name, default, text, _ in table:
        assert shown[name].kind is inspect.Parameter.KEYWORD_ONLY and shown[name].default == default
        assert f"{name}: {text}." in td.Dataset.batches.__doc__
    assert {"batch_size", "inputs", "rank", "columns", "start"} <= set(shown)
    assert "rows of a batch (integer, at least 1 and at most 16777216, default 1024)" in td.BatchReader.__init__.__doc__


def test_options_in_effect(dataset):
    reader = dataset.batches(batch_size=np.int64(7), shuffle=np.bool_(True), seed=2**64 - 1, prefetch=tc.tensor(3),
                             num_workers=None)
    names = [name for name, *_ in tc._C._dataset_options()["batches"]]
    assert list(reader.options) == names
    assert (reader.options["batch_size"], reader.options["shuffle"], reader.options["seed"], reader.options["prefetch"],
            reader.options["num_workers"]) == (7, True, 2**64 - 1, 3, 1)
    assert reader.schema == dataset.schema and "seed=18446744073709551615" in repr(reader)


class Hostile:
    def __init__(self, *made):
        self.made = made

    def __index__(self):
        raise ZeroDivisionError

    def __fspath__(self):
        raise ZeroDivisionError


class Growing:
    """An index that changes the list that it is in."""

    def __init__(self, items):
        self.items = items

    def __index__(self):
        self.items.append(self)
        return 1


def nested():
    inner = []
    inner.append(inner)
    return inner


@pytest.mark.parametrize("options, error, text", [
    ({"bach_size": 3}, tc.ConfigError, r"\[reader\] unknown option 'bach_size'; did you mean 'batch_size'"),
    ({"batch_size": "3"}, tc.ConfigError, "option 'batch_size': expected an integer, found \"3\""),
    ({"batch_size": 0}, tc.ConfigError, "expected at least 1"),
    ({"batch_size": 2.5}, tc.ConfigError, "expected an integer, found 2.5"),
    ({"batch_size": 2**70}, tc.ConfigError, r"expected an integer, found 1.18\S+, which is too large"),
    ({"seed": 2**64}, tc.ConfigError, r"option 'seed': expected an integer, found 1.84\S+, which is too large"),
    ({"batch_size": 10**400}, OverflowError, None),
    ({"batch_size": True}, tc.ConfigError, "expected an integer, found true"),
    ({"batch_size": float("nan")}, tc.ConfigError, "expected an integer, found nan"),
    ({"batch_size": float("inf")}, tc.ConfigError, "expected an integer, found inf"),
    ({"shuffle": 1}, tc.ConfigError, "option 'shuffle': expected true or false, found 1"),
    ({"seed": -1}, tc.ConfigError, "not negative, found -1"),
    ({"bag_order": "rows"}, tc.ConfigError, "expected one of sample_major, slot_major"),
    ({"bag_order": "\udc80"}, UnicodeEncodeError, None),
    ({"columns": ["weight"]}, tc.ConfigError, "found 'weight'"),
    ({"rank": 2, "ranks": 2}, tc.ConfigError, "option 'rank': expected one below 2"),
    ({"drop_last": True, "batch_size": 701}, tc.ConfigError, "expected at most 700"),
    ({"inputs": {"a": 1}}, tc.ConfigError, "expected 3 slots in all, found 1"),
    ({"inputs": {"a": 4}}, tc.ConfigError, "found more"),
    ({"inputs": [("a", 1), ("a", 2)]}, tc.ConfigError, "'a' occurs twice"),
    ({"inputs": {"a": "3"}}, tc.ConfigError, r"option 'inputs\[0\].slot_num': expected an integer"),
    ({"inputs": {3: 3}}, tc.ConfigError, r"option 'inputs\[0\].name': expected a string"),
    ({"inputs": [{"name": "a", "slots": 3}]}, tc.ConfigError, "unknown option"),
    ({"inputs": [{3: "a"}]}, TypeError, "expected names of type str, not int"),
    ({"inputs": 3}, TypeError, "expected a dict from names to numbers of slots"),
    ({"inputs": ["abc"]}, TypeError, "not 'abc'"),
    ({"batch_size": object()}, TypeError, r"\[reader\] option 'batch_size': expected a number, a string, a list "
     "or a dict, not object"),
    ({"batch_size": 1j}, TypeError, "not complex"),
    ({"batch_size": Hostile()}, ZeroDivisionError, None),
    ({"columns": nested()}, RecursionError, None),
])
def test_wrong_options(dataset, options, error, text):
    with pytest.raises(error, match=text):
        dataset.batches(**options)


class Listed:
    """Looks like an array, and its list is itself."""

    def tolist(self):
        return self


def test_wrong_arrays(dataset):
    with pytest.raises(RecursionError):
        dataset.batches(columns=Listed())


def test_lists_that_change_while_they_are_read(dataset):
    items = [1]
    items.insert(0, Growing(items))
    with pytest.raises(RuntimeError, match="changed its size"):
        dataset.batches(columns=items)


def test_wrong_parts(dataset, tmp_path, rows):
    with pytest.raises(tc.ConfigError, match="expected a part 'train', 'valid' or 'test', found 'val'"):
        dataset.batches("val")
    for wrong in (3, None, b"train"):
        with pytest.raises(TypeError, match=f"part: expected a name, as str, not {type(wrong).__name__}"):
            dataset.batches(wrong)
    one = td.open_files("norm", **spec(write_files(tmp_path, rows, ())))
    with pytest.raises(tc.ConfigError, match="reader: expected a dataset with a test part, found one without"):
        one.batches("test")


def test_objects_without_a_constructor_call():
    for cls in (tc._C._BatchReader, tc._C._Dataset):
        empty = cls.__new__(cls)
        with pytest.warns(RuntimeWarning, match="uninitialized"), pytest.raises(TypeError):
            empty.part("train") if cls is tc._C._Dataset else empty.position()


# ---- errors in the data

def test_damage_is_reported_in_the_place_of_its_batch(tmp_path, rows):
    files = write_files(tmp_path, rows, (300,), check=False)
    damaged = tmp_path / "train-300.data"
    content = bytearray(damaged.read_bytes())
    record = len(norm_bytes(rows, 300, 350, "q", False))  # where record 50 of the file begins
    content[record + 8:record + 12] = struct.pack("<f", float("nan"))
    damaged.write_bytes(content)
    dataset = td.open_files("norm", **spec(files, check_mode="none"))
    reader = dataset.batches(batch_size=100, num_workers=2)
    taken = []
    with pytest.raises(tc.DataError, match=rf"train-300.data: record 50: byte {record + 8}: expected dense value 0 "
                       "to be a finite number, found nan"):
        for batch in reader:
            taken.append(batch)
    assert joined(taken) == given(rows, range(300))
    for _ in range(2):
        with pytest.raises(tc.DataError, match="record 50"):
            next(iter(reader))
    assert reader.position.row == 300
    assert joined(dataset.batches(batch_size=50, start=dataclasses.replace(reader.position, row=400))) == given(
        rows, range(400, 700))


def test_labels_and_keys_are_checked(tmp_path):
    rows = Rows(10)
    rows.labels[3, 1] = 0.5
    rows.keys[7][1] = [50 + 40]
    dataset = td.open_files("norm", **spec(write_files(tmp_path, rows, ())))
    with pytest.raises(tc.DataError, match="record 3.*label.*0.5"):
        list(dataset.batches())
    with pytest.raises(tc.DataError, match="record 7.*slot1"):
        list(dataset.batches(binary_labels=False))
    loose = {**spec(tmp_path / "train.txt"), "slot_size_array": []}
    assert joined(td.open_files("norm", **loose).batches(binary_labels=False)) == given(rows)


def test_checksums_are_verified_on_request(tmp_path):
    made = td.generate(tmp_path / "made", rows=500, preset="small", check_mode="none").dataset
    path = made.train.files[0].path
    content = bytearray(pathlib.Path(path).read_bytes())
    content[64 + 4] ^= 1  # the lowest bit of a dense value
    pathlib.Path(path).write_bytes(content)
    assert sum(b.rows for b in made.batches()) == 450
    with pytest.raises(tc.DataError, match="checksum.*the content has changed"):
        made.batches(verify_checksums=True)


# ---- ownership

@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("options", [{}, {"bag_order": "slot_major", "narrow_keys": True}])
def test_batches_that_are_kept_never_change(tmp_path, ragged, options):
    rows = Rows(2000, ragged=ragged)
    dataset = td.open_files("norm", **spec(write_files(tmp_path, rows, ())))
    reader = dataset.batches(batch_size=64, num_workers=3, prefetch=4, epochs=5, **options)
    kept, copies, parts = [], [], []
    for step, batch in enumerate(reader):
        sparse = batch["keys"]
        tensors = {"labels": batch.labels, "dense": batch.dense, "keys": sparse.keys, "offsets": sparse.row_offsets}
        if step % 3 == 0:
            kept.append(batch)
            copies.append({name: t.clone() for name, t in tensors.items()})
        elif step % 3 == 1:  # only a part of the batch, or its memory
            parts.append((batch.labels[1:3], sparse.keys.numpy()[2:9], batch.labels[1:3].clone(),
                          sparse.keys.numpy()[2:9].copy()))
        del batch, sparse, tensors
    assert len(kept) > 50
    for batch, copied in zip(kept, copies):
        sparse = batch["keys"]
        for name, t in (("labels", batch.labels), ("dense", batch.dense), ("keys", sparse.keys),
                        ("offsets", sparse.row_offsets)):
            assert tc.equal(t, copied[name]), name
    for labels, keys, labels_before, keys_before in parts:
        assert tc.equal(labels, labels_before) and (keys == keys_before).all()


@pytest.mark.parametrize("ragged", [False, True])
def test_writing_to_a_batch_changes_no_other(tmp_path, ragged):
    rows = Rows(900, ragged=ragged)
    dataset = td.open_files("norm", **spec(write_files(tmp_path, rows, ())))
    reader = dataset.batches(batch_size=100, prefetch=1)
    batches = []
    for batch in reader:
        batches.append(joined([batch]))
        sparse = batch["keys"]
        for t in (batch.labels, batch.dense, sparse.keys, sparse.row_offsets):
            assert t.is_contiguous()
            t.fill_(7)
            t.resize_(1)
            t.note = "mine"
        assert sparse.row_offsets is sparse.row_offsets and sparse.row_offsets.tolist() == [7]
    assert [row for labels, _, _ in batches for row in labels] == rows.labels.tolist()
    assert [row for _, _, keys in batches for row in keys] == rows.keys
    assert not hasattr(next(iter(reader)).labels, "note")


def test_a_reader_is_true_and_no_pickle(dataset):
    reader = dataset.batches(epochs=0)
    assert reader and dataset.batches()
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"reader: it cannot be pickled or copied: pickle its dataset and its pos"):
            copied(reader)


def test_batches_outlive_their_reader(dataset, rows):
    batches = list(dataset.batches(batch_size=100))
    gc.collect()
    assert joined(batches) == given(rows)


# ---- use

def test_a_model_learns_from_batches(tmp_path):
    dataset = td.generate(tmp_path / "clicks", rows=4000, preset="small", seed=1).dataset
    tc.manual_seed(0)
    slots = len(dataset.schema.slots)
    table = tc.nn.EmbeddingBag(dataset.schema.num_keys, 4, mode="sum")
    top = tc.nn.Linear(dataset.schema.dense_dim + 4 * slots, 1)
    optimizer = tc.optim.Adam([*table.parameters(), *top.parameters()], lr=0.02)
    losses = []
    for batch in dataset.batches(batch_size=200, shuffle=True, seed=1, epochs=4):
        sparse = batch["keys"]
        bags = table(sparse.keys, sparse.row_offsets[:-1]).view(batch.rows, -1)
        loss = tc.nn.functional.binary_cross_entropy_with_logits(top(tc.cat([batch.dense, bags], 1)), batch.labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert sum(losses[-10:]) < 0.97 * sum(losses[:10])


def test_addresses_are_not_shared(dataset):
    """Tensors are the reader's memory without a copy: distinct while they are alive, and aligned."""
    batches = list(dataset.batches(batch_size=100))
    addresses = [t.data_ptr() for b in batches for t in (b.labels, b.dense, b["keys"].keys)]
    assert len(set(addresses)) == len(addresses) and all(a % ctypes.sizeof(ctypes.c_double) == 0 for a in addresses)
