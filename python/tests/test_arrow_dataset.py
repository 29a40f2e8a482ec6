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
