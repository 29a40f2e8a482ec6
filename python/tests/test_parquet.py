"""Parquet files that pyarrow, polars, DuckDB and pandas wrote, compared with what pyarrow itself reads."""

import itertools
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import tercel as tc
import tercel.data as td

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def draw_table(rows, seed=0, key="int64", dense="float32", lists=True, nulls=False, list_type="list"):
    """A label, two scalar dense columns, a dense list, two scalar keys, a ragged list of keys, a time."""
    rng = np.random.default_rng(seed)
    columns = {
        "click": pa.array(rng.integers(0, 2, rows).astype("f4")),
        "age": pa.array(rng.random(rows).astype(dense)),
        "price": pa.array(rng.normal(size=rows).astype(dense)),
        "user": pa.array(rng.integers(0, 100, rows).astype(key)),
        "time": pa.array(rng.integers(0, 1 << 40, rows)),
        "item": pa.array(rng.zipf(1.5, rows).clip(0, 60).astype(key)),
    }
    if lists:
        counts = rng.integers(0, 5, rows)
        genres = [rng.integers(0, 50, n).astype(key) for n in counts]
        types = {"list": pa.list_, "large": pa.large_list}
        columns["genres"] = pa.array([g.tolist() for g in genres], types[list_type](pa.from_numpy_dtype(np.dtype(key))))
        columns["vector"] = pa.array(rng.random((rows, 3)).astype(dense).tolist(),
                                     pa.list_(pa.from_numpy_dtype(np.dtype(dense)), 3))
    return pa.table(columns)


def describe(path, **options):
    options.setdefault("label", ["click"])
    return td.open_files("parquet", train=[str(path)], **options)


COLUMNS = {"dense": ["age", "price", "vector"], "categorical": ["user", "item", "genres"]}


def read(dataset, **options):
    """Labels, dense values, and keys of each slot of each row."""
    labels, dense, keys = [], [], []
    slots = len(dataset.schema.slots)
    options.setdefault("batch_size", 37)
    with dataset.batches("train", **options) as reader:
        for batch in reader:
            labels.append(batch.labels.numpy().copy())
            dense.append(batch.dense.numpy().copy())
            if slots:
                all_keys, offsets = batch["keys"].keys.tolist(), batch["keys"].row_offsets.tolist()
                bags = [all_keys[a:b] for a, b in zip(offsets, offsets[1:])]
                keys += [bags[i:i + slots] for i in range(0, len(bags), slots)]
    return np.concatenate(labels), np.concatenate(dense), keys


def expected(path):
    """The same by pyarrow."""
    table = pq.read_table(path)
    names = table.column_names
    labels = table["click"].to_numpy().reshape(-1, 1).astype("f4")
    dense = [table["age"].to_numpy().reshape(-1, 1), table["price"].to_numpy().reshape(-1, 1)]
    slots = [[[k] for k in table["user"].to_pylist()], [[k] for k in table["item"].to_pylist()]]
    if "genres" in names:
        dense.append(np.array(table["vector"].to_pylist()))
        slots.append(table["genres"].to_pylist())
    return labels, np.concatenate(dense, 1).astype("f4"), [list(row) for row in zip(*slots)]


def check_same(dataset, path, **options):
    for found, wanted in zip(read(dataset, **options), expected(path)):
        if isinstance(wanted, list):
            assert found == wanted
        else:
            np.testing.assert_array_equal(found, wanted)


CODECS = ["none", "snappy", "gzip", "brotli", "zstd", "lz4"]
ENCODINGS = [{"use_dictionary": True}, {"use_dictionary": False},
             {"use_dictionary": False, "column_encoding": {"user": "DELTA_BINARY_PACKED", "age": "BYTE_STREAM_SPLIT",
                                                           "price": "PLAIN", "item": "DELTA_BINARY_PACKED"}}]
COMBINATIONS = list(itertools.product(CODECS, ["1.0", "2.0"], range(len(ENCODINGS)), [(64, "int64"), (1000, "int32"),
                                                                                      (100, "uint64")]))
assert len(COMBINATIONS) >= 100


@pytest.mark.parametrize("codec, page, encoding, rows_and_key", COMBINATIONS)
def test_what_pyarrow_writes_is_read_as_pyarrow_reads_it(tmp_path, codec, page, encoding, rows_and_key):
    rows, key = rows_and_key
    path = tmp_path / "a.parquet"
    table = draw_table(300, seed=len(codec) + rows, key=key, dense="float64" if page == "2.0" else "float32",
                       list_type="large" if rows == 64 else "list")
    pq.write_table(table, path, compression=codec, data_page_version=page, row_group_size=rows, data_page_size=512,
                   **ENCODINGS[encoding])
    dataset = describe(path, **COLUMNS)
    assert [slot.hotness for slot in dataset.schema.slots] == [1, 1, 4]
    check_same(dataset, path, num_workers=2)


@pytest.mark.parametrize("key", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("dense", ["float16", "float32", "float64"])
def test_every_width_of_numbers_is_read(tmp_path, key, dense):
    path = tmp_path / "a.parquet"
    pq.write_table(draw_table(90, key=key, dense=dense), path)
    check_same(describe(path, **COLUMNS), path)


def test_polars_files_are_read(tmp_path):
    pl = pytest.importorskip("polars")
    path = tmp_path / "a.parquet"
    table = draw_table(500)
    table = table.set_column(7, "vector", pa.array(table["vector"].to_pylist(), pa.list_(pa.float32())))
    for codec, row_group in (("zstd", 100), ("snappy", None), ("uncompressed", 33), ("lz4", 500)):
        pl.from_arrow(table).write_parquet(path, compression=codec, row_group_size=row_group)
        check_same(describe(path, **COLUMNS), path)


def test_duckdb_files_are_read(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "a.parquet"
    table = draw_table(5000)
    table = table.set_column(7, "vector", pa.array(table["vector"].to_pylist(), pa.list_(pa.float32())))
    connection = duckdb.connect()
    connection.register("t", table)
    for version in ("V1", "V2"):
        connection.execute(f"copy (select * from t) to '{path}' (format parquet, row_group_size 2048, "
                           f"parquet_version {version})")
        check_same(describe(path, **COLUMNS), path)


def test_pandas_files_are_read(tmp_path):
    pytest.importorskip("pandas")
    path = tmp_path / "a.parquet"
    frame = draw_table(200, lists=False).to_pandas()
    frame["user"] = frame["user"].astype("category")
    frame.to_parquet(path)
    dataset = describe(path, dense=["age", "price"], categorical=["user", "item"])
    labels, dense, keys = read(dataset)
    assert [row[0][0] for row in keys] == frame["user"].tolist()
    np.testing.assert_array_equal(labels[:, 0], frame["click"])
    np.testing.assert_array_equal(dense[:, 0], frame["age"])


def test_files_are_patterns_folders_and_lists(tmp_path):
    tables = [draw_table(40, seed) for seed in range(3)]
    for i, table in enumerate(tables):
        pq.write_table(table, tmp_path / f"part-{i}.parquet")
    (tmp_path / "list.txt").write_text("3\n" + "".join(f"part-{i}.parquet\n" for i in range(3)))
    pq.write_table(pa.concat_tables(tables), tmp_path / "all.pq")
    for source in (tmp_path, tmp_path / "part-*.parquet", tmp_path / "list.txt"):
        dataset = describe(source, **COLUMNS)
        assert len(dataset.train.files) == 3
        check_same(dataset, tmp_path / "all.pq")
    with pytest.raises(tc.IoError, match="expected files that match the pattern, found none"):
        describe(tmp_path / "x*.parquet", **COLUMNS)


def test_random_order_has_every_row_once_and_is_that_of_norm(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(draw_table(1000), path, row_group_size=130)
    dataset = describe(path, **COLUMNS)
    options = {"shuffle": True, "seed": 3, "shuffle_block": 16, "shuffle_window": 128, "epochs": 2}
    shuffled = read(dataset, **options)
    order = read(dataset, epochs=2)
    assert shuffled[2] != order[2] and sorted(shuffled[2]) == sorted(order[2])
    norm = td.convert_dataset(dataset, tmp_path / "norm", "norm")
    for found, wanted in zip(shuffled, read(norm, **options)):
        assert found == wanted if isinstance(wanted, list) else (found == wanted).all()


def test_slot_size_array_has_the_semantics_of_hugectr(tmp_path):
    path = tmp_path / "a.parquet"
    keys = {f"c{i}": pa.array([0, 1, 2]) for i in range(5)}
    pq.write_table(pa.table({"click": pa.array([0, 1, 0], pa.float32()), **keys}), path)

    def keys_of(sizes):
        dataset = describe(path, categorical=list(keys), slot_size_array=sizes)
        return [[bag[0] for bag in row] for row in read(dataset)[2]][0], dataset.schema.slots

    assert keys_of([])[0] == [0, 0, 0, 0, 0]
    assert keys_of([10, 20, 30, 40, 50])[0] == [0, 10, 30, 60, 100]
    # Zeros share the keys of the next slot; slots behind the array are not offset.
    found, slots = keys_of([10, 0, 0, 40])
    assert found == [0, 10, 10, 10, 0]
    assert [(slot.first_key, slot.size) for slot in slots] == [(0, 10), (10, 40), (10, 40), (10, 40), (0, 0)]
    # Zeros at the end have an offset, and no range.
    found, slots = keys_of([10, 20, 0, 0])
    assert found == [0, 10, 30, 30, 0] and slots[2].size == 0
    with pytest.raises(tc.DataError, match=r"row 2: column 'c1': expected a key from 10 to 11 in slot 1 \('c1'\), "
                                           r"found 2 \(12 with the slot's offset\)"):
        read(describe(path, categorical=list(keys), slot_size_array=[10, 2, 5, 5, 5]))


def test_metadata_selects_columns_by_sorted_index(tmp_path):
    path = tmp_path / "0.parquet"
    table = draw_table(20, lists=False)
    pq.write_table(table, path)
    index = {name: i for i, name in enumerate(table.column_names)}

    def entry(*names, wrong=False):
        return [{"col_name": "ignored" if wrong else name, "index": index[name]} for name in names]

    metadata = {"file_stats": [{"file_name": "elsewhere/0.parquet", "num_rows": 20},
                               {"file_name": "gone.parquet", "num_rows": 3}],
                "labels": entry("click"), "conts": entry("price", "age", wrong=True),
                "cats": entry("item", "user", "item")}
    target = tmp_path / "_metadata.json"
    target.write_text(json.dumps(metadata))
    dataset = td.open_files("parquet", train=[str(path)])
    assert dataset.schema.dense_names == ("age", "price")
    assert [slot.name for slot in dataset.schema.slots] == ["user", "item"]
    check_same(dataset, path)

    metadata["conts"] = entry("price", "age")
    metadata["cats"] = entry("item", "user")
    target.write_text(json.dumps(metadata))
    dataset = td.open_files("parquet", train=[str(path)], by_name=True)
    assert dataset.schema.dense_names == ("price", "age")
    assert [slot.name for slot in dataset.schema.slots] == ["item", "user"]

    for change, message in (({"file_stats": [{"file_name": "0.parquet", "num_rows": 21}]}, "expected num_rows 20"),
                            ({"file_stats": []}, "expected an entry of '0.parquet', found none"),
                            ({"cats": [{"col_name": "x", "index": 6}]}, "expected an index below 6"),
                            ({"labels": []}, "labels: expected at least one"),
                            ({"cats": None}, "expected a list 'cats'")):
        target.write_text(json.dumps({**metadata, **change}))
        with pytest.raises(tc.DataError, match=message):
            td.open_files("parquet", train=[str(path)])

    inside = tmp_path / "described"
    td.open_files("parquet", train=[str(path)], label=["click"], categorical=["user"], folder=inside)
    (inside / "m.json").write_text(json.dumps(metadata))
    with pytest.raises(tc.ConfigError, match="m.json: lies in .*, which is to be replaced"):
        td.open_files("parquet", train=[str(path)], metadata=str(inside / "m.json"), folder=inside, replace=True)
    assert (inside / "m.json").exists()


def test_nulls_are_errors_with_row_and_column_or_filled(tmp_path):
    path = tmp_path / "a.parquet"
    table = pa.table({"click": pa.array([0, 1, 0, 1], pa.float32()), "age": pa.array([1.5, None, 2.5, 3], pa.float32()),
                      "user": pa.array([1, 2, None, 4]), "genres": pa.array([[1], [2, None], [], None])})
    pq.write_table(table, path, row_group_size=3)
    with pytest.raises(tc.DataError, match=r"a.parquet: row group 0: row 1: column 'age': expected a value, found none"):
        read(describe(path, dense=["age"]))
    with pytest.raises(tc.DataError, match=r"row 2: column 'user': expected a value, found none \(null\)"):
        read(describe(path, categorical=["user"]))
    with pytest.raises(tc.DataError, match=r"row 1: column 'genres': expected a value"):
        read(describe(path, categorical=["genres"]))
    dense = read(describe(path, dense=["age"], fill_null_dense=[0]))[1]
    assert dense[:, 0].tolist() == [1.5, 0, 2.5, 3]
    keys = ["user", "genres"]
    assert read(describe(path, categorical=keys, fill_null_key=[9]))[2] == [
        [[1], [1]], [[2], [2, 9]], [[9], []], [[4], [9]]]
    assert read(describe(path, categorical=["user"], missing_keys="empty"))[2] == [[[1]], [[2]], [[]], [[4]]]


def test_integers_are_labels_and_dense_values_when_asked(tmp_path):
    path = tmp_path / "a.parquet"
    table = pa.table({"click": pa.array([True, False, True]), "age": pa.array([-3, 5, 1 << 20]),
                      "user": pa.array([1, 2, 3])})
    pq.write_table(table, path)
    with pytest.raises(tc.ConfigError, match="column 'click': expected float or double .*'integers'.*found bool"):
        describe(path, dense=["age"])
    labels, dense, _ = read(describe(path, dense=["age"], categorical=["user"], integers=True))
    assert labels[:, 0].tolist() == [1, 0, 1] and dense[:, 0].tolist() == [-3, 5, 1 << 20]


def test_weights_and_further_columns(tmp_path):
    path = tmp_path / "a.parquet"
    table = pa.table({"click": pa.array([0, 1, 1], pa.float32()), "items": pa.array([[1, 2], [], [3]]),
                      "items_weight": pa.array([[0.5, 2.0], [], [4.0]], pa.list_(pa.float64())),
                      "user": pa.array([7, 8, 9]), "when": pa.array([10, 20, 30], pa.timestamp("us")),
                      "score": pa.array([1.0, 2.0, 3.0])})
    pq.write_table(table, path)
    dataset = describe(path, categorical=["items", "user"], weighted=["items"], columns=["when", "score"])
    with dataset.batches("train", batch_size=3, columns=["when", "score"]) as reader:
        batch = next(iter(reader))
    assert batch["keys"].keys.tolist() == [1, 2, 7, 8, 3, 9]
    assert batch["keys"].key_weights.tolist() == [0.5, 2, 1, 1, 4, 1]
    assert {name: values.tolist() for name, values in batch.columns.items()} == {"when": [10, 20, 30],
                                                                                "score": [1, 2, 3]}
    table = table.set_column(2, "items_weight", pa.array([[0.5], [], [4.0]], pa.list_(pa.float64())))
    pq.write_table(table, path)
    dataset = describe(path, categorical=["items"], weighted=["items"])
    with pytest.raises(tc.DataError, match="row 0: column 'items': expected a weight for each key, found 1 weights"):
        next(iter(dataset.batches("train", batch_size=3)))


def test_rules_of_rows_name_file_group_row_and_column(tmp_path):
    path = tmp_path / "a.parquet"

    def refused(message, **columns):
        table = {"click": pa.array([0, 1, 1, 0], pa.float32()), **columns}
        pq.write_table(pa.table(table), path, row_group_size=2)
        names = {"dense": [n for n in ("x",) if n in columns], "categorical": [n for n in ("k",) if n in columns]}
        with pytest.raises(tc.DataError, match=message):
            read(describe(path, **names, **({"nnz_per_slot": [2]} if "k" in columns else {})), batch_size=2)

    refused(r"a.parquet: row group 1: row 3: column 'x': expected dense value 0 to be a finite number, found inf",
            x=pa.array([0, 1, 2, np.inf], pa.float32()))
    refused(r"row 2: column 'click': expected label 0 to be 0 or 1, found 0.5", click=pa.array([0, 1, .5, 1], pa.float32()))
    refused(r"row 1: column 'k': expected 0 to 2 keys in slot 0 \('k'\), found 3",
            k=pa.array([[1], [1, 2, 3], [], []], pa.list_(pa.int64())))
    refused(r"row 3: column 'x': expected a list of 2 values, found 1",
            x=pa.array([[1, 2], [3, 4], [5, 6, 7], [8]], pa.list_(pa.float32())).take(pa.array([0, 1, 0, 3])))


def test_what_cannot_be_columns_of_rows_is_refused(tmp_path):
    path = tmp_path / "a.parquet"
    table = pa.table({"click": pa.array([0, 1], pa.float32()), "name": ["a", "b"], "pair": [{"x": 1}, {"x": 2}],
                      "lists": [[[1]], [[2]]], "structs": [[{"x": 1}], []], "map": pa.array([[(1, 2)], []],
                                                                                   pa.map_(pa.int64(), pa.int64())),
                      "real": [0.5, 1.5], "decimal": pa.array([1, 2], pa.decimal128(5, 2))})
    pq.write_table(table, path)
    for name, found in (("name", "string"), ("pair", "struct"), ("lists", "list of lists"), ("map", "list of structs"),
                        ("structs", "list of structs"), ("real", "double"), ("decimal", "decimal")):
        with pytest.raises(tc.ConfigError, match=f"column '{name}': expected integer keys.*found {found}"):
            describe(path, categorical=[name])
    with pytest.raises(tc.ConfigError, match="column 'name': expected numbers, or lists of numbers, found string"):
        describe(path, dense=["name"])
    with pytest.raises(tc.ConfigError, match="expected a column 'nmae' in .*found click, name"):
        describe(path, dense=["nmae"])
    with pytest.raises(tc.ConfigError, match="option 'label': expected the names of columns"):
        td.open_files("parquet", train=[str(path)])


def test_another_schema_in_a_later_file_is_named(tmp_path):
    pq.write_table(draw_table(10, lists=False), tmp_path / "0.parquet")
    pq.write_table(draw_table(10, lists=False, key="int32"), tmp_path / "1.parquet")
    with pytest.raises(tc.DataError, match=r"1.parquet: column 'user': expected int64, .*found int32"):
        describe(tmp_path, dense=["age"], categorical=["user"])
    pq.write_table(draw_table(10, lists=False).drop_columns(["user"]), tmp_path / "1.parquet")
    with pytest.raises(tc.DataError, match=r"1.parquet: expected a column 'user'"):
        describe(tmp_path, dense=["age"], categorical=["user"])


def test_numbers_beyond_63_bits(tmp_path):
    path = tmp_path / "a.parquet"
    big = (1 << 63) + 5
    pq.write_table(pa.table({"click": pa.array([0, 1, 1], pa.float32()), "k": pa.array([1, big, 2], pa.uint64()),
                             "n": pa.array([3, None, big], pa.uint64())}), path)
    dataset = describe(path, categorical=["k"], columns=["n"])
    with pytest.raises(tc.DataError, match=f"row 1: column 'k': expected a key from 0 to 9 .*found {big}"):
        read(describe(path, categorical=["k"], slot_size_array=[10]))
    with pytest.raises(tc.DataError, match=r"row 1: column 'n': expected a value, found none"):
        read(dataset, columns=["n"], batch_size=3)
    pq.write_table(pa.table({"click": pa.array([0, 1, 1], pa.float32()), "k": pa.array([1, big, 2], pa.uint64()),
                             "n": pa.array([3, 4, big], pa.uint64())}), path)
    dataset = describe(path, categorical=["k"], columns=["n"])
    with pytest.raises(tc.DataError, match=f"row 2: column 'n': expected an integer up to {(1 << 63) - 1}, found {big}"):
        read(dataset, columns=["n"], batch_size=3)
    assert [row[0][0] % (1 << 64) for row in read(dataset)[2]] == [1, big, 2]


def test_lists_that_are_too_long_for_labels_are_refused(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"click": pa.FixedSizeListArray.from_arrays(np.zeros((1 << 20) + 1, "f4"), (1 << 20) + 1)}),
                   path)
    with pytest.raises(tc.DataError, match="column 'click': expected lists of at most 1048576 values, found 1048577"):
        describe(path)


def test_a_file_that_changes_is_noticed(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(draw_table(600000, lists=False), path, row_group_size=100000)
    dataset = describe(path, dense=["age", "price"], categorical=["user", "item"])
    reader = iter(dataset.batches("train", batch_size=100000, prefetch=1))
    next(reader)
    pq.write_table(draw_table(10, lists=False), path)
    with pytest.raises(tc.DataError, match="a.parquet"):
        list(reader)
    with pytest.raises(tc.DataError, match="as the dataset's description says"):
        dataset.batches("train")


@pytest.mark.parametrize("options", [{}, {"key_type": "u32", "codec": "zstd"}, {"dictionary": False, "codec": "none"},
                                     {"row_group_rows": 7, "codec": "gzip"}])
def test_what_tercel_writes_is_read_by_pyarrow(tmp_path, options):
    made = td.generate(tmp_path / "norm", preset="small", rows=200, seed=4)
    dataset = td.convert_dataset(made.dataset, tmp_path / "parquet", "parquet", **options)
    files = [pathlib.Path(dataset.folder) / file.path for file in dataset.train.files]
    table = pa.concat_tables([pq.read_table(file) for file in files])
    schema = dataset.schema
    metadata = json.loads((tmp_path / "parquet" / "train" / "_metadata.json").read_text())
    names = [[entry["col_name"] for entry in metadata[group]] for group in ("labels", "conts", "cats")]
    assert [table.column_names[entry["index"]] for entry in metadata["cats"]] == names[2]
    assert sum(entry["num_rows"] for entry in metadata["file_stats"]) == len(table)
    labels, dense, keys = read(made.dataset)
    np.testing.assert_array_equal(np.stack([table[n].to_numpy() for n in names[0]], 1), labels)
    np.testing.assert_array_equal(np.stack([table[n].to_numpy() for n in names[1]], 1), dense)
    for s, name in enumerate(names[2]):
        wanted = [[key - schema.slots[s].first_key for key in row[s]] for row in keys]
        found = table[name].to_pylist()
        assert [value if isinstance(value, list) else [value] for value in found] == wanted
        assert table.schema.field(name).type == (pa.uint32() if "key_type" in options else pa.int64())
    # HugeCTR's way back: the folder, its metadata, and the sizes of the slots.
    again = td.open_files("parquet", train=[str(files[0].parent)], slot_size_array=schema.slot_size_array,
                          missing_keys="empty", nnz_per_slot=[slot.hotness for slot in schema.slots])
    norm = td.convert_dataset(again, tmp_path / "again", "norm")
    back = td.convert_dataset(dataset, tmp_path / "back", "norm")
    for file in made.dataset.train.files:
        content = (tmp_path / "norm" / file.path).read_bytes()
        assert (tmp_path / "back" / file.path).read_bytes() == content
        assert (tmp_path / "again" / file.path).read_bytes() == content
    assert norm.train.rows == back.train.rows


def test_files_of_other_tools_are_written_again_as_they_were(tmp_path):
    path = tmp_path / "a.parquet"
    for key, dense in (("uint8", "float64"), ("int16", "float16"), ("int32", "float32")):
        table = draw_table(50, key=key, dense=dense)
        pq.write_table(table, path)
        dataset = describe(path, columns=["time"], slot_size_array=[100, 61, 50], **COLUMNS)
        again = td.convert_dataset(dataset, tmp_path / "again", "parquet", replace=True)
        found = pq.read_table(pathlib.Path(again.folder) / again.train.files[0].path)
        for name in table.column_names:
            wanted = table[name].to_pylist()
            if dense == "float64" and name in ("age", "price", "vector"):  # they are f32 between
                wanted = np.array(wanted).astype("f4").tolist()
            assert found[name].to_pylist() == wanted
            types = [of.schema.field(name).type for of in (table, found)]
            assert len({getattr(of, "value_type", of) for of in types}) == 1


def test_an_epoch_of_parquet_is_that_of_norm(tmp_path):
    made = td.generate(tmp_path / "norm", preset="small", rows=2000, seed=4)
    parquet = td.convert_dataset(made.dataset, tmp_path / "parquet", "parquet")
    options = {"batch_size": 100, "shuffle": True, "seed": 9}
    for found, wanted in zip(read(parquet, **options), read(made.dataset, **options)):
        assert found == wanted if isinstance(wanted, list) else (found == wanted).all()


def test_without_its_arrow_parquet_says_what_to_install(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(draw_table(10), path)
    (tmp_path / "libarrow.so.100").write_bytes(b"")
    program = ("import tercel.data as td\n"
               "try:\n"
               f"    td.open_files('parquet', train=[{str(path)!r}], label=['click'], categorical=['genres'])\n"
               "except RuntimeError as error:\n"
               "    print(error)\n")
    python_path = os.pathsep.join(sys.path)
    for folder, found in ((tmp_path, "found libarrow.so.100 in"), (tmp_path / "none", "found that the loader says")):
        environment = {**os.environ, "PYTHONPATH": python_path, "TERCEL_ARROW_LIBRARIES": str(folder)}
        text = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True,
                              check=True).stdout
        assert "expected Arrow " in text and found in text and "pip install 'pyarrow==" in text


def test_a_bad_record_is_left_out(tmp_path):
    path = tmp_path / "a.parquet"
    table = pa.table({"click": pa.array([0, 1, 0, 1, 0], pa.float32()),
                      "age": pa.array([0, np.nan, 2, None, 4], pa.float32()), "k": [[0], [1], [2, 2], [3], [4, 4]]})
    pq.write_table(table, path)
    dataset = describe(path, dense=["age"], categorical=["k"])
    for options in ({}, {"shuffle": True, "seed": 1}):
        labels, dense, keys = read(dataset, batch_size=4, on_bad_record="skip", **options)
        assert sorted(zip(dense[:, 0].tolist(), keys)) == [(0, [[0]]), (2, [[2, 2]]), (4, [[4, 4]])]


def test_times_of_every_width_are_further_columns(tmp_path):
    path = tmp_path / "a.parquet"
    table = pa.table({"click": pa.array([0, 1], pa.float32()), "d": pa.array([3, 4], pa.date32()),
                      "d64": pa.array([86400000, 172800000], pa.date64()), "s": pa.array([5, 6], pa.time32("s")),
                      "ms": pa.array([7, 8], pa.time32("ms")), "us": pa.array([9, 10], pa.time64("us")),
                      "at": pa.array([11, 12], pa.timestamp("ms"))})
    pq.write_table(table, path)
    names = table.column_names[1:]
    with describe(path, columns=names).batches("train", batch_size=2, columns=names) as reader:
        found = {name: values.tolist() for name, values in next(iter(reader)).columns.items()}
    arrow = pq.read_table(path)
    numbers = {name: arrow[name].combine_chunks().view(f"int{arrow[name].type.bit_width}").to_pylist() for name in names}
    assert found == numbers
    assert found["d"] == [3, 4] and found["ms"] == [7, 8] and found["at"] == [11, 12]
    with pytest.raises(tc.ConfigError, match=r"column 'ms': expected integer keys.*found time\[ms\]"):
        describe(path, categorical=["ms"])
    with pytest.raises(tc.ConfigError, match="column 'd': expected numbers.*found date"):
        describe(path, dense=["d"], integers=True)
    pq.write_table(table.select(["click", "at"]), path, use_deprecated_int96_timestamps=True)
    with pytest.raises(tc.ConfigError, match="column 'at': expected numbers or times, found INT96"):
        describe(path, columns=["at"])


def test_types_that_arrow_keeps_in_its_own_schema(tmp_path):
    # What Parquet has no type for; pyarrow reads them back from the metadata ARROW:schema, and so does Tercel.
    path = tmp_path / "a.parquet"
    seconds = pa.array([11, 12, 13, 14], pa.int64())
    table = pa.table({"click": pa.array([0, 1, 1, 0], pa.float32()), "half": pa.array(np.float16([0.5, 1, -2, 4])),
                      "fixed": pa.array([[1, 2], [3, 4], [5, 6], [7, 8]], pa.list_(pa.float32(), 2)),
                      "user": pa.array([7, 9, 7, 8]).dictionary_encode(),
                      "items": pa.array([[1], [], [1, 5], [5]], pa.large_list(pa.uint16())),
                      "zone": seconds.cast(pa.timestamp("s", "Europe/Vienna")), "wait": seconds.cast(pa.duration("ns"))})
    pq.write_table(table, path, row_group_size=3)
    found = pq.read_table(path).schema
    assert [str(found.field(n).type) for n in ("half", "zone", "wait")] == [
        "halffloat", "timestamp[ms, tz=Europe/Vienna]", "duration[ns]"]
    dataset = describe(path, dense=["half", "fixed"], categorical=["user", "items"], nnz_per_slot=[1, 2],
                       columns=["zone", "wait"])
    with dataset.batches("train", batch_size=4, columns=["zone", "wait"]) as reader:
        batch = next(iter(reader))
    assert batch.dense.tolist() == [[0.5, 1, 2], [1, 3, 4], [-2, 5, 6], [4, 7, 8]]
    assert batch["keys"].keys.tolist() == [7, 1, 9, 7, 1, 5, 8, 5]
    assert batch.columns["zone"].tolist() == [11000, 12000, 13000, 14000]
    assert batch.columns["wait"].tolist() == [11, 12, 13, 14]


def test_hidden_files_and_subfolders(tmp_path):
    pq.write_table(draw_table(10, lists=False), tmp_path / "a.parquet")
    for name in (".a.parquet", "._a.parquet", "_a.parquet"):
        (tmp_path / name).write_bytes(b"no Parquet file")
    (tmp_path / "_temporary").mkdir()
    pq.write_table(draw_table(5, lists=False), tmp_path / "_temporary" / "b.parquet")
    options = {"dense": ["age"], "categorical": ["user"]}
    assert len(read(describe(tmp_path, **options))[0]) == 10
    (tmp_path / "empty" / "deeper").mkdir(parents=True)
    assert len(read(describe(tmp_path, **options))[0]) == 10
    pq.write_table(draw_table(5, lists=False), tmp_path / "empty" / "deeper" / "b.parquet")
    with pytest.raises(OSError, match="expected Parquet files in the folder itself, found some in .*empty/deeper"):
        describe(tmp_path, **options)


def test_a_module_that_is_not_there_is_no_lack_of_arrow(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(draw_table(10), path)
    program = ("import tercel.data as td\n"
               "try:\n"
               f"    td.open_files('parquet', train=[{str(path)!r}], label=['click'], categorical=['genres'])\n"
               "except RuntimeError as error:\n"
               "    print(error)\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERCEL_ARROW_MODULE": str(tmp_path / "no.so")}
    text = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True,
                          check=True).stdout
    assert "TERCEL_ARROW_MODULE: expected the path of libtercel_arrow.so" in text and "install" not in text
