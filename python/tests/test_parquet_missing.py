"""Missing values in Parquet files: keys, lists, weights beside them."""

import numpy as np
import pytest
from test_parquet import describe, read

import tercel as tc
import tercel.data as td

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def weighted_bags(dataset):
    """Keys and weights of each bag of each row; a slot without weights has ones."""
    bags = []
    with dataset.batches("train", batch_size=2) as reader:
        for batch in reader:
            keys, weights = batch["keys"].keys.tolist(), batch["keys"].key_weights.tolist()
            offsets = batch["keys"].row_offsets.tolist()
            bags += [list(zip(keys[a:b], weights[a:b])) for a, b in zip(offsets, offsets[1:])]
    return bags


def test_an_empty_bag_of_one_weighted_key_is_written_and_read(tmp_path):
    (tmp_path / "a.libffm").write_text("1 0:3:0.5 1:7:1\n0 1:9:1\n1 0:4:2 1:7:1\n0 1:8:1\n")
    made = td.convert_libffm(tmp_path / "a.libffm", tmp_path / "made", values="weights", format="parquet").dataset
    assert [(slot.weighted, slot.hotness) for slot in made.schema.slots] == [(True, 1), (True, 1)]
    bags = weighted_bags(made)
    assert [[weight for _, weight in bag] for bag in bags] == [[0.5], [1], [], [1], [2], [1], [], [1]]
    again = td.convert_dataset(made, tmp_path / "again", "parquet")
    assert weighted_bags(again) == bags


LABELS = pa.array([0, 1, 0, 1], pa.float32())


def test_the_weight_of_a_missing_key_does_not_count(tmp_path):
    path = tmp_path / "a.parquet"
    for weights in ([0.5, 1.5, None, 3.5], [0.5, 1.5, 2.5, 3.5]):
        pq.write_table(pa.table({"click": LABELS, "k": pa.array([1, 2, None, 4]),
                                 "k_weight": pa.array(weights, pa.float32())}), path)
        options = {"categorical": ["k"], "weighted": ["k"]}
        assert weighted_bags(describe(path, missing_keys="empty", **options)) == [
            [(1, 0.5)], [(2, 1.5)], [], [(4, 3.5)]]
        assert weighted_bags(describe(path, fill_null_key=[9], **options)) == [
            [(1, 0.5)], [(2, 1.5)], [(9, 1)], [(4, 3.5)]]
        with pytest.raises(tc.DataError, match=r"row 2: column 'k': expected a value, found none \(null\)"):
            weighted_bags(describe(path, **options))


def test_weights_of_missing_lists_and_of_missing_keys_in_lists(tmp_path):
    path = tmp_path / "a.parquet"
    weights = pa.array([[0.5], [1.5, 2.5], None, [3.5]], pa.list_(pa.float32()))
    pq.write_table(pa.table({"click": LABELS, "k": pa.array([[1], [2, None], None, [4]]), "k_weight": weights}), path)
    options = {"categorical": ["k"], "weighted": ["k"]}
    assert weighted_bags(describe(path, fill_null_key=[0], **options)) == [
        [(1, 0.5)], [(2, 1.5), (0, 1)], [(0, 1)], [(4, 3.5)]]
    pq.write_table(pa.table({"click": LABELS, "k": pa.array([[1], [2, 3], None, [4]]), "k_weight": weights}), path)
    assert weighted_bags(describe(path, missing_keys="empty", **options)) == [
        [(1, 0.5)], [(2, 1.5), (3, 2.5)], [], [(4, 3.5)]]


@pytest.mark.parametrize("weights, row", [([[0.5], [1.5, None], [], [3.5]], 1), ([[0.5], None, [], [3.5]], 1)])
def test_a_missing_weight_is_named_as_one(tmp_path, weights, row):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"click": LABELS, "k": pa.array([[1], [2, 3], [], [4]]),
                             "k_weight": pa.array(weights, pa.list_(pa.float32()))}), path)
    dataset = describe(path, categorical=["k"], weighted=["k"], fill_null_dense=[1])
    with pytest.raises(tc.DataError, match=rf"row {row}: column 'k_weight': expected a value, found none \(null\)"):
        weighted_bags(dataset)


def test_a_missing_list_of_a_fixed_size_is_an_empty_bag(tmp_path):
    path = tmp_path / "a.parquet"
    lists = pa.array([[1, 2], None, [3, 4], None], pa.list_(pa.int64(), 2))
    pq.write_table(pa.table({"click": LABELS, "k": lists}), path)
    assert read(describe(path, categorical=["k"], missing_keys="empty"))[2] == [[[1, 2]], [[]], [[3, 4]], [[]]]
    assert read(describe(path, categorical=["k"], fill_null_key=[9]))[2] == [[[1, 2]], [[9]], [[3, 4]], [[9]]]
    with pytest.raises(tc.DataError, match=r"row 1: column 'k': expected a value, found none \(null\)"):
        read(describe(path, categorical=["k"]))


def test_a_fill_that_f32_does_not_hold_is_refused(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"click": LABELS, "x": pa.array([1, None, 2, 3], pa.float32())}), path)
    with pytest.raises(tc.ConfigError, match="'fill_null_dense': expected a finite number that f32 holds, found 1e.300"):
        describe(path, dense=["x"], fill_null_dense=[1e300])
    assert read(describe(path, dense=["x"], fill_null_dense=[3e38]))[1][1, 0] == np.float32(3e38)


def test_row_groups_without_rows_are_passed_over(tmp_path):
    path, empty = tmp_path / "a.parquet", tmp_path / "b.parquet"
    table = pa.table({"click": LABELS, "k": pa.array([[1], [2, 3], [], [4]])})
    with pq.ParquetWriter(path, table.schema) as writer:
        for part in (table.slice(0, 0), table.slice(0, 3), table.slice(0, 0), table.slice(3)):
            writer.write_table(part)
    assert pq.ParquetFile(path).metadata.num_row_groups == 4
    pq.write_table(table.slice(0, 0), empty)
    dataset = describe(path, categorical=["k"])
    assert read(dataset)[2] == [[[1]], [[2, 3]], [[]], [[4]]]
    dataset = td.open_files("parquet", train=[str(empty), str(path)], label=["click"], categorical=["k"])
    for options in ({}, {"shuffle": True}):
        assert len(read(dataset, **options)[2]) == 4


def test_a_column_of_nothing_but_missing_values(tmp_path):
    pd = pytest.importorskip("pandas")
    pd.DataFrame({"click": np.zeros(2, "f4"), "x": [None, None], "v": [None, None], "k": [None, None],
                  "ks": [None, None], "n": [None, None]}).to_parquet(tmp_path / "0.parquet")
    assert pq.read_schema(tmp_path / "0.parquet").field("x").type == pa.null()
    pd.DataFrame({"click": np.ones(2, "f4"), "x": np.array([1, 2], "f4"), "v": [[1.5, 2], [3, 4]], "k": [5, 6],
                  "ks": [[7, 8], [9]], "n": [10, 11]}).to_parquet(tmp_path / "1.parquet")
    names = {"dense": ["x", "v"], "categorical": ["k", "ks"]}
    _, dense, keys = read(describe(tmp_path, fill_null_dense=[-1], fill_null_key=[0], **names))
    assert dense.tolist() == [[-1, -1, -1], [-1, -1, -1], [1, 1.5, 2], [2, 3, 4]]
    assert keys == [[[0], [0]], [[0], [0]], [[5], [7, 8]], [[6], [9]]]
    options = {"fill_null_dense": [-1], "missing_keys": "empty"}
    assert read(describe(tmp_path, **options, **names))[2] == [[[], []], [[], []], [[5], [7, 8]], [[6], [9]]]
    assert read(describe(tmp_path, **options, **names), shuffle=True, shuffle_window=1)[2] != []
    for name in ("x", "v", "k", "ks"):
        kind = "dense" if name in ("x", "v") else "categorical"
        with pytest.raises(tc.DataError, match=rf"0.parquet: .*row 0: column '{name}': expected a value, found none"):
            read(describe(tmp_path, **{kind: [name]}))
    dataset = describe(tmp_path, columns=["n"])
    assert [(column.name, column.type) for column in dataset.schema.columns] == [("n", "i64")]
    with pytest.raises(tc.DataError, match="column 'n': expected a value, found none"):
        read(dataset, columns=["n"])


def test_lists_without_any_element_have_no_type(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"click": LABELS, "k": pa.array([[], [None], None, []], pa.list_(pa.null()))}), path)
    assert read(describe(path, categorical=["k"], fill_null_key=[3]))[2] == [[[]], [[3]], [[3]], [[]]]


def dense_of(dataset, **options):
    with dataset.batches("train", batch_size=100, **options) as reader:
        return [row for batch in reader for row in batch.dense.tolist()]


@pytest.mark.parametrize("lists, fill, expected", [
    ([[1, 2], None, [3, 4]], [9], [[1, 2], [9, 9], [3, 4]]),
    ([[1, 2, 3], None], [9], [[1, 2, 3], [9, 9, 9]]),
    ([None, None, [1, 2], [3, None]], [9], [[9, 9], [9, 9], [1, 2], [3, 9]]),
    ([None] * 50 + [[1, 2]], [0], [[0, 0]] * 50 + [[1, 2]]),
    ([[1, 2], [3], [4, 5, 6], [], None, [7, 8]], [], [[1, 2], [7, 8]]),
    ([[1], [2, 3, 4]], [], [[1]]),
], ids=str)
@pytest.mark.parametrize("row_group_size", [1, 3, 100])
def test_the_width_of_lists_is_that_of_the_first(tmp_path, lists, fill, expected, row_group_size):
    table = pa.table({"click": pa.array([1] * len(lists), pa.float32()), "x": pa.array(lists, pa.list_(pa.float64()))})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=row_group_size)
    dataset = describe(tmp_path / "a.parquet", dense=["x"], fill_null_dense=fill)
    memory = td.ArrowDataset(table, label="click", dense="x", fill_null_dense=fill)
    assert dataset.schema == memory.schema and dataset.schema.dense_dim == len(expected[0])
    assert dense_of(dataset, on_bad_record="skip") == dense_of(memory, on_bad_record="skip") == expected
    if len(expected) < len(lists):
        with pytest.raises(tc.DataError, match=f"row 1: column 'x': expected a list of {len(expected[0])} values"):
            dense_of(dataset)


def test_the_first_list_may_be_far_behind_the_start(tmp_path):
    for i, lists in enumerate(([None] * 3000, [None] * 3000 + [[1, 2, 3]])):
        pq.write_table(pa.table({"click": pa.array([1] * len(lists), pa.float32()), "x": pa.array(lists, pa.list_(pa.float32()))}),
                       tmp_path / f"{i}.parquet", row_group_size=2000)
    dataset = describe(tmp_path, dense=["x"], fill_null_dense=[0])
    assert dense_of(dataset)[-2:] == [[0, 0, 0], [1, 2, 3]] and len(dataset) == 6001
    assert describe(tmp_path / "0.parquet", dense=["x"], fill_null_dense=[0]).schema.dense_dim == 1
