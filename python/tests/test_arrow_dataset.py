"""Tables in memory as datasets: of pyarrow, polars, DuckDB, pandas and NumPy, and producers that break the interface."""

import copy
import ctypes
import gc
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import tercel as tc
import tercel.data as td
from tercel import recsys

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

COLUMNS = {"label": ["click"], "dense": ["age", "price", "vector"], "categorical": ["user", "item", "tags"],
           "columns": ["time"], "slot_size_array": [100, 50, 30]}


def draw_table(rows=1000, seed=0):
    rng = np.random.default_rng(seed)
    return pa.table({
        "click": rng.integers(0, 2, rows).astype("f4"), "age": rng.random(rows),
        "price": rng.normal(size=rows).astype("f4"), "user": rng.integers(0, 100, rows),
        "item": pa.array(rng.integers(0, 50, rows).astype("u4")), "time": rng.integers(0, 1 << 40, rows),
        "tags": pa.array([rng.integers(0, 30, n).tolist() for n in rng.integers(0, 4, rows)], pa.list_(pa.int64())),
        "vector": pa.array(rng.random((rows, 3)).astype("f4").tolist(), pa.list_(pa.float32(), 3)),
    })


def read(dataset, part="train", **options):
    options.setdefault("columns", ["time"])
    return [(batch.labels.tolist(), batch.dense.tolist(), batch["keys"].keys.tolist(),
             batch["keys"].row_offsets.tolist(), [c.tolist() for c in batch.columns.values()])
            for batch in dataset.batches(part, batch_size=77, **options)]


def duckdb_query(table):
    duckdb = pytest.importorskip("duckdb")
    duckdb_query.connection = duckdb.connect()  # a query does not keep its connection
    return duckdb_query.connection.from_arrow(table)


PRODUCERS = {
    "table": lambda table: table,
    "chunks": lambda table: pa.concat_tables([table.slice(0, 1), table.slice(1, 0), table.slice(1)]),
    "batch": lambda table: table.combine_chunks().to_batches()[0].slice(0),
    "reader": lambda table: table.to_reader(max_chunksize=33),
    "polars": lambda table: pytest.importorskip("polars").from_arrow(table),
    "polars chunks": lambda table: pytest.importorskip("polars").concat(
        [pytest.importorskip("polars").from_arrow(t) for t in (table.slice(0, 7), table.slice(7))], rechunk=False),
    "duckdb": duckdb_query,
    "pandas": lambda table: pytest.importorskip("pandas").DataFrame(table.to_pandas()),
}


@pytest.mark.parametrize("producer", PRODUCERS)
@pytest.mark.parametrize("storage", [None, "memory", "disk"])
def test_rows_are_those_of_a_parquet_file(tmp_path, producer, storage):
    table = draw_table()
    if producer == "pandas":  # which has no lists of fixed size
        table = table.set_column(table.column_names.index("vector"), "vector", table["vector"].cast(pa.list_(pa.float32())))
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=150)
    wanted = td.open_files("parquet", train=[str(tmp_path / "t.parquet")], **COLUMNS)
    options = {} if storage is None else {"storage": storage}
    dataset = td.ArrowDataset(PRODUCERS[producer](table), **COLUMNS, **options)
    assert dataset.format == "arrow" and len(dataset) == 1000 and dataset.schema == wanted.schema
    assert read(dataset) == read(wanted)
    shuffled = {"shuffle": True, "seed": 3, "epochs": 2, "shuffle_window": 128, "shuffle_block": 16}
    assert read(dataset, **shuffled) == read(wanted, **shuffled)
    assert read(dataset, columns=[]) == read(wanted, columns=[])
    assert dataset.train.files[0].checksum == td.ArrowDataset(table, **COLUMNS).train.files[0].checksum


def test_missing_values_are_errors_or_filled():
    table = pa.table({"y": [1.0, 0.0, 1.0], "x": [1.0, None, 3.0], "k": [1, 2, None], "t": [[1], None, [2, None]]})
    columns = {"label": "y", "dense": ["x"], "categorical": ["k", "t"]}
    dataset = td.ArrowDataset(table, **columns)
    with pytest.raises(tc.DataError, match=r"train table: row 1: column 'x': expected a value, found none \(null\)"):
        next(iter(dataset.batches()))
    filled = td.ArrowDataset(table, **columns, fill_null_dense=-1, fill_null_key=7)
    batch = next(iter(filled.batches(batch_size=3)))
    assert batch.dense.tolist() == [[1], [-1], [3]] and batch["keys"].keys.tolist() == [1, 1, 2, 7, 7, 2, 7]
    empty = td.ArrowDataset(table.slice(0, 2), **columns, fill_null_dense=0, missing_keys="empty")
    assert next(iter(empty.batches(batch_size=2)))["keys"].row_offsets.tolist() == [0, 1, 2, 3, 3]
    skipping = td.ArrowDataset(table, **columns).batches(batch_size=3, on_bad_record="skip", max_bad_records=2)
    assert next(iter(skipping)).rows == 1


def test_weights_of_keys():
    table = pa.table({"y": [1.0, 0.0], "k": [[1, 2], []], "k_weight": pa.array([[0.5, 2.0], []], pa.list_(pa.float64()))})
    dataset = td.ArrowDataset(table, label="y", categorical="k", weighted="k")
    assert next(iter(dataset.batches(batch_size=2)))["keys"].key_weights.tolist() == [0.5, 2.0]
    with pytest.raises(tc.ConfigError, match="'k_weight'"):
        td.ArrowDataset(table.drop_columns("k_weight"), label="y", categorical="k", weighted="k")


def test_arrays_and_structured_arrays():
    rng = np.random.default_rng(0)
    y, x, k = rng.integers(0, 2, 50), rng.random((50, 4)).astype("f4"), rng.integers(0, 9, (50, 2))
    columns = {"label": "y", "dense": "x", "categorical": "k", "integers": True, "slot_size_array": [9]}
    batch = next(iter(td.ArrowDataset({"y": y, "x": x, "k": tc.tensor(k)}, **columns).batches(batch_size=50)))
    assert np.array_equal(batch.dense.numpy(), x) and batch["keys"].keys.tolist() == k.ravel().tolist()
    rows = np.zeros(50, dtype=[("y", "u1"), ("x", "f8"), ("k", "i2")])
    rows["y"], rows["x"], rows["k"] = y, x[:, 0], k[:, 0]
    batch = next(iter(td.ArrowDataset(rows, **columns).batches(batch_size=50)))
    assert batch["keys"].keys.tolist() == k[:, 0].tolist() and batch.labels.tolist() == y.reshape(-1, 1).tolist()
    with pytest.raises(ValueError, match="same number of rows"):
        td.ArrowDataset({"y": y, "k": k[:5]}, **columns)
    with pytest.raises(ValueError, match="column 'k'"):
        td.ArrowDataset({"y": y, "x": x, "k": ["a"] * 50}, **columns)
    assert len(td.ArrowDataset({"y": y, "x": x, "k": k, "other": ["a"] * 50}, **columns)) == 50
    with pytest.raises(tc.ConfigError, match="expected a column 'x' in train table, found y, k"):
        td.ArrowDataset({"y": y, "k": k, "other": ["a"] * 50}, **columns)


def rows_of(dataset, **options):
    batch = next(iter(dataset.batches(batch_size=100, **options)))
    if not dataset.schema.slots:
        return batch.dense.tolist(), []
    keys, ends = batch["keys"].keys.tolist(), batch["keys"].row_offsets.tolist()
    return batch.dense.tolist(), [keys[begin:end] for begin, end in zip(ends, ends[1:])]


def in_memory(column, as_dense=False, **options):
    column = {"y": np.array([1.0, 0.0, 1.0]), "c": column} if not hasattr(column, "num_columns") else column
    return td.ArrowDataset(column, label="y", dense="c" if as_dense else [], categorical=[] if as_dense else "c", **options)


def missing_columns():
    """[1, missing, 3] of several kinds."""
    yield "masked", np.ma.array([1, 999, 3], mask=[False, True, False])
    yield "masked f64", np.ma.array([1, 1e20, 3], mask=[False, True, False])
    for kind in (pa.int64(), pa.float64()):
        yield f"pyarrow {kind}", pa.array([1, None, 3], kind)
        yield f"chunks {kind}", pa.chunked_array([pa.array([1], kind), pa.array([None, 3], kind)])
    pl, pd = pytest.importorskip("polars"), pytest.importorskip("pandas")
    yield "polars", pl.Series([1, None, 3])
    yield "pandas", pd.Series([1, None, 3], dtype="Int64")


def test_missing_values_of_arrays(recwarn):
    for name, column in missing_columns():
        is_float = "f64" in name or "double" in name
        options = {"as_dense": is_float}
        with pytest.raises(tc.DataError, match="train table: row 1: column 'c': expected a value, found none"):
            rows_of(in_memory(column, **options))
        if is_float:
            assert rows_of(in_memory(column, fill_null_dense=-1, **options))[0] == [[1], [-1], [3]], name
        else:
            assert rows_of(in_memory(column, fill_null_key=7))[1] == [[1], [7], [3]], name
            assert rows_of(in_memory(column, missing_keys="empty"))[1] == [[1], [], [3]], name
    assert len(recwarn) == 0


def test_masked_arrays_of_lists_and_structured_ones():
    lists = np.ma.array([[1, 2], [999, 4], [5, 6]], mask=[[0, 0], [1, 0], [0, 0]])
    with pytest.raises(tc.DataError, match="row 1: column 'c': expected a value, found none"):
        rows_of(in_memory(lists))
    assert rows_of(in_memory(lists, fill_null_key=7))[1] == [[1, 2], [7, 4], [5, 6]]
    assert rows_of(in_memory(lists * 0.5, as_dense=True, fill_null_dense=7))[0] == [[0.5, 1], [7, 2], [2.5, 3]]
    assert rows_of(in_memory(np.ma.array([4, 5, 6])))[1] == [[4], [5], [6]]
    rows = np.ma.array([(1, 2), (0, 3)], mask=[(0, 0), (0, 1)], dtype=[("y", "f4"), ("c", "i4")])
    dataset = td.ArrowDataset(rows, label="y", categorical="c", fill_null_key=9)
    assert rows_of(dataset)[1] == [[2], [9]]


def test_arrays_of_arrow_in_a_dict(recwarn):
    pl, pd = pytest.importorskip("polars"), pytest.importorskip("pandas")
    y = [1.0, 0.0, 1.0]
    for c in (pa.array([1, 2, 3]), pa.array([1, 2, 3], pa.uint8()), pl.Series([1, 2, 3]), pd.Series([1, 2, 3], index=[7, 8, 9]),
              pa.array([1, 2, 3]).dictionary_encode(), pd.Series([1, 2, 3]).astype("category")):
        assert rows_of(td.ArrowDataset({"y": pl.Series(y), "c": c}, label="y", categorical="c"))[1] == [[1], [2], [3]]
    pairs = pl.Series([[1, 2], [3, 4], [5, 6]], dtype=pl.Array(pl.Int64, 2))
    assert rows_of(td.ArrowDataset({"y": pa.array(y), "c": pairs}, label="y", categorical="c"))[1] == [[1, 2], [3, 4], [5, 6]]
    assert len(recwarn) == 0
    with pytest.raises(TypeError, match="column 'c': "):
        td.ArrowDataset({"y": y, "c": pa.array(["a", "b", "c"])}, label="y", categorical="c")


def test_masked_arrays_where_no_value_may_be_missing():
    masked = np.ma.array([1, 2], mask=[False, True])
    for keys, labels, message in (({"c": masked}, [1, 0], "keys 'c': row 1: "), ({"c": [1, 2]}, masked, "labels: row 1: ")):
        with pytest.raises(ValueError, match=message + "expected a value, found a missing one"):
            td.ArrayDataset(keys, labels=labels)
    rows = {"y": np.array([0.0, 1.0] * 50), "d": np.arange(100) / 100, "k": np.arange(100) % 10}
    dataset = td.ArrowDataset(rows, label="y", dense="d", categorical="k", slot_size_array=[10])
    session = recsys.Session("wdl", dataset, solver={"batchsize": 20})
    wanted = session.predict({"dense": [[0.5], [0.25]], "k": [3, 4]}).tolist()
    assert session.predict({"dense": np.ma.array([[0.5], [0.25]]), "k": pa.array([3, 4])}).tolist() == wanted
    for name, values in (("k", np.ma.array([3, 4], mask=[0, 1])), ("k", pa.array([3, None])),
                         ("dense", np.ma.array([[0.5], [0.25]], mask=[[0], [1]]))):
        with pytest.raises(ValueError, match=f"input '{name}': row 1: expected a value, found a missing one"):
            session.predict({"dense": [[0.5], [0.25]], "k": [3, 4], name: values})
    with pytest.raises(ValueError, match="labels: row 0: expected a value"):
        session.step({"dense": [[0.5]], "k": [3]}, labels=np.ma.array([1.0], mask=[True]))


def test_columns_without_any_value(tmp_path):
    categories = pa.DictionaryArray.from_arrays(pa.nulls(3, pa.int8()), pa.nulls(0))
    for name, column in (("null", pa.nulls(3)), ("lists", pa.array([None] * 3, pa.list_(pa.null()))), ("categories", categories)):
        table = pa.table({"y": [1.0, 0.0, 1.0], "c": column})
        pq.write_table(table, tmp_path / f"{name}.parquet")
        file = {"train": str(tmp_path / f"{name}.parquet"), "label": ["y"]}
        for options, names in (({"fill_null_dense": [3]}, {"dense": ["c"]}), ({"fill_null_key": [3]}, {"categorical": ["c"]}),
                               ({"missing_keys": "empty"}, {"categorical": ["c"]}), ({}, {"dense": ["c"]}), ({}, {"categorical": ["c"]})):
            datasets = [td.ArrowDataset(table, label="y", **names, **options), td.open_files("parquet", **file, **names, **options)]
            assert datasets[0].schema == datasets[1].schema
            if options:
                found = [next(iter(d.batches(batch_size=3))) for d in datasets]
                for batch in found:
                    if "dense" in names:
                        assert batch.dense.tolist() == [[3]] * 3
                    else:
                        assert batch["keys"].keys.tolist() == [3] * 3 * (options != {"missing_keys": "empty"}), name
            else:
                for d in datasets:
                    with pytest.raises(tc.DataError, match="row 0: column 'c': expected a value, found none"):
                        next(iter(d.batches(batch_size=3)))


def test_missing_keys_are_empty_bags_but_not_within_lists():
    table = pa.table({"y": [1.0, 0.0, 1.0], "c": [[1, 2], None, []]})
    assert rows_of(in_memory(table, missing_keys="empty"))[1] == [[1, 2], [], []]
    table = pa.table({"y": [1.0, 0.0, 1.0], "c": [[1, 2], [3, None], []]})
    with pytest.raises(tc.DataError, match="row 1: column 'c': expected a value, found none"):
        rows_of(in_memory(table, missing_keys="empty"))


def test_large_keys_are_printed_as_they_are():
    table = pa.table({"y": [1.0], "c": pa.array([2**64 - 1], pa.uint64())})
    with pytest.raises(tc.DataError, match="expected a key from 0 to 4 in slot 0 .*, found 18446744073709551615"):
        rows_of(in_memory(table, slot_size_array=[5]))


def test_types_are_named_as_arrow_names_them():
    import datetime
    import decimal

    day = datetime.date(2024, 5, 1)
    for column, text in (
            (pa.array([decimal.Decimal("1.5")]), r"decimal128\(2, 1\)"), (pa.array([[1]], pa.list_view(pa.int64())), "list_view<int64>"),
            (pa.array([1]).cast(pa.int32()).cast(pa.date32()), r"date32\[day\]"), (pa.array([[day]]), r"list<date32\[day\]>"),
            (pa.array([b"ab"], pa.binary(2)), r"fixed_size_binary\[2\]"), (pa.array([{"a": 1}]), "struct"),
            (pa.array(["a"]).dictionary_encode(), "dictionary<values=string, indices=int32>"),
            (pa.array([datetime.datetime(2024, 5, 1)], pa.timestamp("us", "UTC")), r"timestamp\[us, tz=UTC\]")):
        with pytest.raises(tc.ConfigError, match=f"train table: column 'c': expected integer keys.*, found {text}$"):
            in_memory(pa.table({"y": [1.0], "c": column}))
    keys = pa.table({"y": [1.0], "c": [1]})
    with pytest.raises(tc.DataError, match=r"test table: column 'c': expected integers, found date32\[day\]"):
        in_memory(keys, test=pa.table({"y": [1.0], "c": [day]}))
    with pytest.raises(RuntimeError, match=r"from_arrow: column '': large_list<string> is not a number type"):
        tc.from_arrow(pa.array([["a"]], pa.large_list(pa.string())))


def failing_reader(error):
    schema = pa.schema({"y": pa.float32(), "c": pa.int64()})

    def batches():
        yield pa.record_batch({"y": [1.0], "c": [1]}, schema)
        raise error

    return pa.RecordBatchReader.from_batches(schema, batches())


def test_a_generator_that_is_interrupted(tmp_path):
    class Behind:
        def __init__(self, reader):
            self.reader = reader

        def __arrow_c_stream__(self, requested_schema=None):
            return self.reader.__arrow_c_stream__(requested_schema)

    calls = (lambda source: td.ArrowDataset(source, label="y", categorical="c"),
             lambda source: td.convert(source, tmp_path / "a", label="y", categorical="c"),
             lambda source: td.convert(source, tmp_path / "a", label="y", categorical="c", encode=False), tc.from_arrow)
    for error in (KeyboardInterrupt, KeyboardInterrupt("now")):
        for call in calls:
            for source in (failing_reader(error), Behind(failing_reader(error))):
                with pytest.raises(KeyboardInterrupt):
                    call(source)
    for call in calls:
        for source in (failing_reader(ValueError("no KeyboardInterrupt")), Behind(failing_reader(ValueError("no KeyboardInterrupt")))):
            with pytest.raises((ValueError, RuntimeError), match="no KeyboardInterrupt"):
                call(source)
    assert not (tmp_path / "a").exists()


SOLVER = {"batchsize": 100, "epochs": 2, "eval_interval": 5, "seed": 1}


def test_training_has_the_bits_of_training_from_files(tmp_path):
    table, test = draw_table(800).drop_columns("vector"), draw_table(300, seed=1).drop_columns("vector")
    columns = {**COLUMNS, "dense": ["age", "price"]}
    for name, rows in (("train", table), ("test", test)):
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    files = td.open_files("parquet", train=[str(tmp_path / "train.parquet")], test=[str(tmp_path / "test.parquet")],
                          nnz_per_slot=[1, 1, 3], **columns)
    memory = td.ArrowDataset(table.to_reader(), test=test, **columns)
    metrics = {}
    for name, dataset in (("files", files), ("memory", memory)):
        with recsys.Trainer("wdl", dataset, tmp_path / name, solver=SOLVER) as trainer:
            assert trainer.run()
            metrics[name] = trainer.metrics, trainer.session.predict(dataset).tolist(), trainer.session.evaluate()
    assert metrics["files"] == metrics["memory"]
    # A run knows the table again by its content, and refuses another one.
    again = td.ArrowDataset(pa.concat_tables([table.slice(0, 9), table.slice(9)]), test=test, **columns)
    with pytest.warns(UserWarning, match="end of the run"):
        longer = recsys.Trainer("wdl", again, tmp_path / "memory", resume="auto", solver={**SOLVER, "epochs": 3})
    with longer as trainer:
        assert trainer.run() and trainer.step == 24
    with pytest.raises(tc.DataError, match="train: file 1 of 1, train table: expected checksum"):
        recsys.Trainer("wdl", td.ArrowDataset(table.slice(0, 800).set_column(1, "age", [np.zeros(800)]), test=test,
                                              **columns), tmp_path / "memory", resume="auto", solver=SOLVER)
    loaded = recsys.load_model(tmp_path / "memory")
    assert loaded.evaluate(memory)["auc"] > 0 and loaded.predict(files).shape == (300,)
    session = recsys.Session("wdl", memory, solver=SOLVER)
    while session.step():
        pass
    assert session.steps == 16


def test_it_is_no_dataset_of_files():
    dataset = td.ArrowDataset(draw_table(10), **COLUMNS)
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            copied(dataset)
    with pytest.raises(tc.ConfigError, match="tables in memory"):
        td.verify_dataset(dataset)
    assert sum(batch.rows for batch in dataset.batches(verify_checksums=True)) == 10
    assert repr(dataset) == "ArrowDataset(train: 10 rows)"


def test_a_table_lives_as_long_as_its_readers():
    reader = td.ArrowDataset(draw_table(500), **COLUMNS).batches(batch_size=100)
    gc.collect()
    assert sum(batch.rows for batch in reader) == 500


def test_without_pyarrow():
    """polars hands over its tables where there is no pyarrow."""
    pytest.importorskip("polars")
    code = """
import sys
sys.modules["pyarrow"] = None
import polars as pl, tercel.data as td
frame = pl.DataFrame({"y": [0.0, 1.0], "k": [[1, 2], [3]], "s": ["a", "b"]})
batch = next(iter(td.ArrowDataset(frame, label="y", categorical=["k"]).batches(batch_size=2)))
assert batch["keys"].keys.tolist() == [1, 2, 3]
class Opaque:
    def __arrow_c_stream__(self, requested_schema=None):
        return frame.__arrow_c_stream__()
import tempfile
folder = tempfile.mkdtemp()
made = td.convert(Opaque(), folder + "/a", label="y", categorical=["s"], test_every=0, min_count=1)
assert len(made.dataset) == 2
try:
    import pandas as pd
except ImportError:
    sys.exit()
columns = {"y": [0.0, 1.0] * 5, "k": [1, 2] * 5}
assert len(td.ArrowDataset(pd.DataFrame(columns), label="y", categorical=["k"])) == 10
assert len(td.convert(pd.DataFrame(columns), folder + "/b", label="y", categorical=["k"]).dataset) == 10
sys.modules["polars"] = None
try:
    td.convert(Opaque(), folder + "/c", label="y", categorical=["s"])
except ImportError as error:
    assert "pip install pyarrow" in str(error)
else:
    raise AssertionError
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_options_and_columns_that_do_not_fit():
    table = draw_table(20).append_column("text", [["a"] * 20])
    for change, message in (
            ({"label": []}, "option 'label'"), ({"dense": ["no"]}, "expected a column 'no' in train table, found click"),
            ({"categorical": ["text"]}, r"expected integer keys.*tercel.data.convert\(\).*found string"),
            ({"categorical": ["user", "user"]}, "found 'user' twice"), ({"dens": ["age"]}, "did you mean 'dense'"),
            ({"storage": "moon"}, "storage"), ({"label": ["time"], "columns": []}, "option 'integers'"),
            ({"slot_size_array": [1] * 9}, "at most 3 sizes")):
        with pytest.raises(tc.ConfigError, match=message):
            td.ArrowDataset(table, **{**COLUMNS, **change})
    with pytest.raises(tc.DataError, match="test table: expected a column 'age', found none"):
        td.ArrowDataset(table, test=table.drop_columns("age"), **COLUMNS)
    with pytest.raises(tc.DataError, match="train table: expected rows, found none"):
        td.ArrowDataset(table.slice(0, 0), **COLUMNS)
    twice = pa.Table.from_arrays([table["click"], table["click"]], names=["click", "click"])
    with pytest.raises(tc.DataError, match="expected one column 'click', found several"):
        td.ArrowDataset(twice, label="click")
    with pytest.raises(TypeError, match="expected a table with __arrow_c_stream__"):
        td.ArrowDataset([1, 2], label="y")


class Giving:
    """An object whose __arrow_c_stream__ gives what a function makes."""

    def __init__(self, make):
        self._make = make

    def __arrow_c_stream__(self, requested_schema=None):
        return self._make()


def test_a_stream_is_read_once():
    reader = draw_table(20).to_reader()
    assert len(td.ArrowDataset(reader, **COLUMNS)) == 20
    with pytest.raises((ValueError, tc.DataError, pa.ArrowInvalid)):
        td.ArrowDataset(reader, **COLUMNS)
    capsule = draw_table(20).__arrow_c_stream__()
    assert len(td.ArrowDataset(Giving(lambda: capsule), **COLUMNS)) == 20
    with pytest.raises(ValueError, match="it can be read once"):
        td.ArrowDataset(Giving(lambda: capsule), **COLUMNS)


def test_producers_that_fail():
    def raising():
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        td.ArrowDataset(Giving(raising), **COLUMNS)
    for made, message in ((None, "found NoneType"), ("stream", "found str"), (draw_table(2).schema.__arrow_c_schema__(),
                                                                            "a capsule of another name")):
        with pytest.raises(TypeError, match=message):
            td.ArrowDataset(Giving(lambda value=made: value), **COLUMNS)

    batches = draw_table(20).to_batches()

    def broken():
        yield batches[0]
        raise RuntimeError("the source broke")

    with pytest.raises(tc.DataError, match="train table: Arrow: .*the source broke"):
        td.ArrowDataset(pa.RecordBatchReader.from_batches(batches[0].schema, broken()), **COLUMNS)

    class Stop(Exception):
        pass

    def stop(rows):
        assert rows == 20
        raise Stop

    with pytest.raises(Stop):
        td.ArrowDataset(draw_table(20), progress=stop, **COLUMNS)
    with pytest.raises(TypeError, match="progress"):
        td.ArrowDataset(draw_table(20), progress=3, **COLUMNS)


class CSchema(ctypes.Structure):
    pass


CSchema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p),
                    ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64),
                    ("children", ctypes.POINTER(ctypes.POINTER(CSchema))), ("dictionary", ctypes.POINTER(CSchema)),
                    ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]


class CArray(ctypes.Structure):
    pass


CArray._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
                   ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64),
                   ("buffers", ctypes.POINTER(ctypes.c_void_p)), ("children", ctypes.POINTER(ctypes.POINTER(CArray))),
                   ("dictionary", ctypes.POINTER(CArray)), ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]

capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype, capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class Damaged:
    """A batch of pyarrow whose structs a function changes."""

    def __init__(self, change):
        self._batch, self._change = draw_table(20).combine_chunks().to_batches()[0], change

    def __arrow_c_array__(self, requested_schema=None):
        schema, array = self._batch.__arrow_c_array__()
        self._change(CSchema.from_address(capsule_pointer(schema, b"arrow_schema")),
                     CArray.from_address(capsule_pointer(array, b"arrow_array")))
        return schema, array


def set_child(name, **values):
    """Changes the array of a column."""
    index = draw_table(1).column_names.index(name)

    def change(schema, array):
        for key, value in values.items():
            setattr(array.children[index].contents, key, value)
    return change


def null_buffer(name, buffer):
    index = draw_table(1).column_names.index(name)

    def change(schema, array):
        array.children[index].contents.buffers[buffer] = None
    return change


def set_schema(**values):
    def change(schema, array):
        for key, value in values.items():
            setattr(schema, key, value)
    return change


def child_format(name, text):
    index = draw_table(1).column_names.index(name)

    def change(schema, array):
        change.kept = text
        schema.children[index].contents.format = text
    return change


@pytest.mark.parametrize("change, message", [
    (set_child("user", length=3), "expected 20 rows in each column, found 3"),
    (set_child("user", length=-1), "rows in each column"),
    (set_child("user", offset=-1), "rows in each column"),
    (set_child("user", n_buffers=1), "an array of 2 buffers"),
    (set_child("tags", n_children=0), "an array of 2 buffers and 1 children"),
    (null_buffer("user", 1), "expected a buffer of values, found none"),
    (null_buffer("age", 1), "expected a buffer of values, found none"),
    (null_buffer("tags", 1), "expected a buffer of offsets, found none"),
    (lambda schema, array: setattr(array, "length", 21), "expected 21 rows in each column, found 20"),
    (lambda schema, array: setattr(array, "length", 1 << 62), "rows in each column, found 20"),
    (lambda schema, array: setattr(array, "n_children", 2), "expected a batch of 8 columns"),
    (set_schema(format=b"+l"), "the fields of a struct"), (set_schema(format=None), "the fields of a struct"),
    (set_schema(n_children=-3), "columns, found -3"),
    (child_format("user", b"nonsense"), "expected integer keys.*found format 'nonsense'"),
    (child_format("user", b"g"), "expected integer keys.*found double"),
    (child_format("user", None), "expected integer keys"), (child_format("vector", b"+w:-3"), "expected numbers"),
    (child_format("vector", b"+w:4"), "more elements"),
])
def test_structs_that_contradict_each_other(change, message):
    with pytest.raises((tc.DataError, tc.ConfigError), match=message):
        td.ArrowDataset(Damaged(change), **COLUMNS)


def test_several_threads_read_a_table():
    dataset = td.ArrowDataset(draw_table(3000), **COLUMNS)
    wanted, found = read(dataset), []
    threads = [threading.Thread(target=lambda: found.append(read(dataset, num_workers=3))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 4
