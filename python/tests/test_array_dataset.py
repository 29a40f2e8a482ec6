"""Rows that are given as arrays."""

import warnings

import numpy as np
import pytest

import tercel as tc
import tercel.data as td


def small():
    return td.ArrayDataset({"user": np.array([0, 2, 1, 0]), "item": np.array([[1, 0], [3, 3], [2, 1], [0, 0]], np.int32)},
                           dense=np.arange(8.0).reshape(4, 2), labels=[0, 1, 1, 0])


def test_schema_has_consecutive_keys():
    schema = small().schema
    assert schema.slots == (td.Slot("user", 3, 0, 1), td.Slot("item", 4, 3, 2))
    assert (schema.label_dim, schema.dense_dim, schema.num_keys) == (1, 2, 7)
    assert len(small()) == 4


def test_batches_have_all_rows_in_order():
    batches = list(small().batches(3))
    assert [(b.row, b.rows) for b in batches] == [(0, 3), (3, 1)]
    first = batches[0]
    assert first["keys"].keys.tolist() == [0, 4, 3, 2, 6, 6, 1, 5, 4]
    assert first["keys"].row_offsets.tolist() == [0, 1, 3, 4, 6, 7, 9]
    assert first.labels.tolist() == [[0], [1], [1]] and first.labels.dtype is tc.float32
    assert first.dense.tolist() == [[0, 1], [2, 3], [4, 5]]
    by_input = next(iter(small().batches(2, inputs={"u": 1, "i": 1})))
    assert by_input["i"].keys.tolist() == [4, 3, 6, 6] and by_input["i"].row_offsets.tolist() == [0, 2, 4]
    assert by_input["u"].hotness == 1 and by_input["i"].hotness == 2


def reference(fields, firsts, rows):
    """Keys and offsets of rows, from lists of lists."""
    keys, offsets = [], [0]
    for row in rows:
        for name, first in firsts.items():
            keys += [first + key for key in fields[name][row]]
            offsets.append(len(keys))
    return keys, offsets


@pytest.mark.parametrize("seed", range(5))
def test_ragged_fields_against_lists(seed):
    draw = np.random.default_rng(seed)
    rows = int(draw.integers(1, 40))
    fields = {name: [draw.integers(0, 9, draw.integers(0, 4)).tolist() for _ in range(rows)] for name in "abc"}
    fields["c"] = [[int(draw.integers(0, 9))] for _ in range(rows)]
    given = {}
    for name, lists in fields.items():
        given[name] = (np.array([k for keys in lists for k in keys], np.int64),
                       np.cumsum([0] + [len(keys) for keys in lists]))
    of = td.ArrayDataset(given, labels=np.arange(rows), sizes=dict.fromkeys("abc", 9))
    seen = []
    for batch in of.batches(7, shuffle=seed % 2 == 1, seed=seed):
        order = [int(label) for label in batch.labels[:, 0]]
        seen += order
        keys, offsets = reference(fields, {"a": 0, "b": 9, "c": 18}, order)
        assert batch["keys"].keys.tolist() == keys and batch["keys"].row_offsets.tolist() == offsets
    assert sorted(seen) == list(range(rows)) and (seed % 2 == 1 or seen == list(range(rows)))


def test_order_is_a_function_of_seed_and_epoch():
    of = td.ArrayDataset({"k": np.arange(50)}, labels=np.arange(50))

    def order(**options):
        return [int(x) for batch in of.batches(8, shuffle=True, **options) for x in batch.labels[:, 0]]

    two = order(seed=3, epochs=2)
    assert two == order(seed=3, epochs=2) and two[:50] == order(seed=3) and two[:50] != two[50:]
    assert order(seed=4) != two[:50]
    assert sum(b.rows for b in of.batches(8, drop_last=True)) == 48


def test_like_keeps_the_schema():
    train = small()
    more = train.like({"item": [[0, 3]], "user": [1]}, dense=[[1, 2]])
    assert more.schema == train.schema
    batch = next(iter(more.batches(5)))
    assert batch["keys"].keys.tolist() == [1, 3, 6] and tuple(batch.labels.shape) == (1, 0)
    for keys, dense, labels, text in [({"item": [[0, 4]], "user": [1]}, [[1, 2]], None, "keys 'item': row 0: expected a key"),
                                      ({"item": [[0, 1, 2]], "user": [1]}, [[1, 2]], None, "at most 2 keys"),
                                      ({"user": [1]}, [[1, 2]], None, "expected the fields user, item"),
                                      ({"item": [[0, 0]], "user": [1]}, [[1, 2, 3]], None, "dense: expected 2 columns"),
                                      ({"item": [[0, 0]], "user": [1]}, [[1, 2]], [[1, 0]], "labels: expected 1 columns")]:
        with pytest.raises(ValueError, match=text):
            train.like(keys, dense=dense, labels=labels)


def test_arrays_are_copied():
    keys, dense = np.array([0, 1]), np.zeros((2, 1), np.float32)
    of = td.ArrayDataset({"k": keys}, dense=dense)
    keys[0], dense[0] = 1, 5
    batch = next(iter(of.batches(2)))
    assert batch["keys"].keys.tolist() == [0, 1] and batch.dense.tolist() == [[0], [0]]
    batch.dense[0] = 7
    assert next(iter(of.batches(2))).dense.tolist() == [[0], [0]]


def test_rows_of_one_kind_only():
    assert next(iter(td.ArrayDataset({}, dense={"age": [1, 2], "price": [3.5, 4]}).batches(2))).dense.tolist() == [[1, 3.5], [2, 4]]
    assert td.ArrayDataset({}, dense={"age": [1, 2]}).schema.dense_names == ("age",)
    assert next(iter(td.ArrayDataset({"k": [0, 1]}).batches(2))).dense.shape == (2, 0)
    empty = td.ArrayDataset({"k": np.zeros(0, np.int64)}, labels=np.zeros(0))
    assert list(empty.batches(2)) == [] and len(empty) == 0


@pytest.mark.parametrize("arguments, error, text", [
    (dict(keys=[1, 2]), TypeError, "keys: expected a dict"),
    (dict(keys={}), ValueError, "at least one array"),
    (dict(keys={"k": [1.5]}), TypeError, "keys 'k': expected integers"),
    (dict(keys={"k": [[[1]]]}), ValueError, r"keys 'k': expected keys \[rows\]"),
    (dict(keys={"k": [-1]}), ValueError, "keys 'k': row 0: expected a key from 0"),
    (dict(keys={"k": [0, 5]}, sizes={"k": 5}), ValueError, "keys 'k': row 1: expected a key from 0 to 4, got 5"),
    (dict(keys={"k": [0]}, sizes={"j": 5}), ValueError, "no field 'j'; known: k"),
    (dict(keys={"k": [0], "j": [0, 1]}), ValueError, "keys 'j': has 2 rows, but keys 'k' has 1"),
    (dict(keys={"k": [0]}, labels=[0, 1]), ValueError, "labels: has 2 rows"),
    (dict(keys={"k": [0]}, dense=[[np.nan]]), ValueError, "dense: row 0: expected finite"),
    (dict(keys={"k": [0]}, dense={"a": [1], "b": [[1, 2]]}), ValueError, "dense 'b'"),
    (dict(keys={"k": ([0, 1], [0, 1])}), ValueError, "ascending row offsets from 0 to 2"),
    (dict(keys={"k": ([0, 1], [0, 2, 1, 2])}), ValueError, "ascending row offsets"),
    (dict(keys={"k": ([0], [])}), ValueError, "keys 'k'"),
    (dict(keys={1: [0]}), TypeError, "keys: expected a name"),
    (dict(keys={"k": [0]}, labels=[1e39]), ValueError, "labels: row 0"),
    (dict(keys={"k": ["a"]}), (TypeError, ValueError), "keys 'k'"),
    (dict(keys={"k": [2**63 - 1]}), ValueError, r"keys 'k': expected keys below 2\*\*62"),
    (dict(keys={"k": [2**70]}), ValueError, "keys 'k'"),
    (dict(keys={"k": [0]}, sizes={"k": 5.5}), TypeError, "sizes: 'k'"),
    (dict(keys={"k": [0]}, sizes={"k": 0}), ValueError, "sizes: 'k'"),
    (dict(keys={"k": [0]}, sizes=[3]), TypeError, "sizes: expected a dict"),
    (dict(keys={"k": [0]}, labels=[1j]), TypeError, "labels: expected integers"),
])
def test_wrong_arrays_are_named(arguments, error, text):
    with pytest.raises(error, match=text):
        td.ArrayDataset(**arguments)


@pytest.mark.parametrize("options, error, text", [
    (dict(batch_size=0), ValueError, "batch_size"), (dict(batch_size=True), TypeError, "batch_size"),
    (dict(epochs=0), ValueError, "epochs"), (dict(seed=-1), ValueError, "seed"), (dict(seed=1.0), TypeError, "seed"),
    (dict(inputs={"u": 1}), ValueError, "expected 2 slots in all"),
    (dict(inputs={"u": 3}), ValueError, "expected 2 slots in all"),
    (dict(inputs={"u": 2, "i": 0}), ValueError, "input 'i'"), (dict(inputs={"u": 3, "i": -1}), ValueError, "input|slots"),
    (dict(inputs=[("u", 1), ("u", 1)]), ValueError, "'u' is given twice"), (dict(inputs=[{"nm": 1}]), TypeError, "inputs")])
def test_wrong_options_are_named(options, error, text):
    with pytest.raises(error, match=text):
        small().batches(**options)


def test_arrays_of_other_dtypes():
    read_only = np.arange(3)
    read_only.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        of = td.ArrayDataset({"k": read_only}, dense=np.array([True, False, True]), labels=np.arange(3) > 1)
    batch = next(iter(of.batches(np.int64(3))))
    assert batch.labels.tolist() == [[0], [0], [1]] and batch.dense.tolist() == [[1], [0], [1]]
    assert td.ArrayDataset({"k": np.array([1, 2], np.uint8)}).schema.slots[0].size == 3
    assert len(td.ArrayDataset({"a": []})) == 0 and len(td.ArrayDataset({"a": ([], [0, 0, 0])})) == 2


def test_the_default_dtype_does_not_matter():
    before = tc.get_default_dtype()
    tc.set_default_dtype(tc.float64)
    try:
        batch = next(iter(td.ArrayDataset({"k": [0]}, labels=[1]).batches()))
    finally:
        tc.set_default_dtype(before)
    assert batch.dense.dtype is batch.labels.dtype is tc.float32
