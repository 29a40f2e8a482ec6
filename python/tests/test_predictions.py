"""Predictions with ids: files of `tercel predict` as NumPy, pyarrow and pandas read them, and predict(id=...)."""

import csv
import os
import pathlib
import subprocess

import numpy as np
import pytest

import tercel as tc
import tercel.data as td
import tercel.recsys as tr

PROGRAM = pathlib.Path(os.environ.get("TERCEL_PROGRAM", pathlib.Path(tc.__file__).parents[2] / "bin" / "tercel"))
ROWS = 300
IDS = [f"u,{r}" if r % 3 else f"caf\u00e9{r:05}" for r in range(ROWS)]


def run(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def table():
    return {"who": IDS, "y": [r % 2 for r in range(ROWS)], "x": [r % 7 for r in range(ROWS)],
            "c": [f"c{r % 5}" for r in range(ROWS)]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Text rows.csv, its dataset and a run."""
    root = tmp_path_factory.mktemp("predictions")
    with open(root / "rows.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([list(table()), *zip(*table().values())])
    data = td.convert_csv(root / "rows.csv", root / "data", label="y", dense=["x"], categorical=["c"], min_count=1,
                          test_every=0).dataset
    with tr.Trainer("wdl", data, root / "run", solver={"batchsize": 50, "batchsize_eval": 70, "epochs": 1}) as trainer:
        trainer.run()
    return root


def test_ids_of_text_and_of_datasets(folder):
    model = tr.load_model(folder / "run")
    wanted = model.predict_text(folder / "rows.csv")
    found, ids = model.predict_text(folder / "rows.csv", id="who")
    assert ids == IDS and tc.equal(found, wanted)
    data = td.open_dataset(folder / "data")
    found, keys = model.predict(data, "train", id="c")
    assert tc.equal(found, wanted) and keys.dtype == tc.int64
    batch = next(iter(model.batches(data, batch_size=ROWS)))
    (name,) = model.inputs
    assert keys.tolist() == batch.inputs[name].keys.flatten().tolist()
    found, numbers = model.predict(data, "train", id="x")
    assert numbers.dtype == tc.float32 and tc.equal(numbers, batch.dense[:, 0])
    assert model.predict(data, "train").tolist() == wanted.tolist()
    with pytest.raises(tc.ConfigError, match="unknown slot or column 'who'; known: c, x"):
        model.predict(data, "train", id="who")
    with pytest.raises(tc.DataError, match="expected a column 'whom'"):
        model.predict_text(folder / "rows.csv", id="whom")
    with pytest.raises(TypeError, match="id: only the rows of a Dataset"):
        model.predict(batch, id="c")
    for call in (lambda value: model.predict(data, "train", id=value),
                 lambda value: model.predict_text(folder / "rows.csv", id=value)):
        with pytest.raises(TypeError, match="id: expected a name"):
            call(3)
        with pytest.raises(ValueError, match="id: expected the name of a column"):
            call("")


def test_ids_of_a_table_in_memory(folder):
    table_in_memory = {"who": np.arange(ROWS) * 10**12, "time": np.arange(ROWS) / 4, "y": np.arange(ROWS) % 2.0,
                       "k": np.arange(ROWS) % 5}
    data = td.ArrowDataset(table_in_memory, label="y", categorical="k", columns=["who", "time"])
    session = tr.Session("wdl", data, solver={"batchsize": 50})
    probabilities, ids = session.predict(data, "train", id="who")
    assert ids.tolist() == table_in_memory["who"].tolist() and probabilities.shape == (ROWS,)
    assert session.predict(data, "train", id="time")[1].tolist() == table_in_memory["time"].tolist()


@pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")
def test_files_are_what_their_readers_expect(folder):
    model = tr.load_model(folder / "run")
    wanted = model.predict_text(folder / "rows.csv").numpy()
    of = folder / "run", folder / "rows.csv", "--id", "who", "--out"

    run("predict", *of, folder / "p.csv")
    with open(folder / "p.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["who"] for row in rows] == IDS
    assert np.array_equal(np.array([row["probability"] for row in rows], np.float32), wanted)

    run("predict", *of, folder / "p.npy")
    records = np.load(folder / "p.npy")
    assert records.dtype.names == ("who", "probability") and records["who"].tolist() == IDS
    assert records["probability"].dtype == np.float32 and np.array_equal(records["probability"], wanted)

    run("predict", folder / "run", folder / "data", "--part", "train", "--row-number", "--out", folder / "n.npy")
    records = np.load(folder / "n.npy")
    assert records["row"].dtype == np.int64 and records["row"].tolist() == list(range(ROWS))
    assert np.array_equal(records["probability"], wanted)


@pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")
def test_parquet_has_columns_of_the_ids_type(folder):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    wanted = tr.load_model(folder / "run").predict_text(folder / "rows.csv").tolist()
    run("predict", folder / "run", folder / "rows.csv", "--id", "who", "--out", folder / "p.parquet")
    found = parquet.read_table(folder / "p.parquet")
    assert found.schema.names == ["who", "probability"]
    assert found.schema.types == [pa.string(), pa.float32()]
    assert found["who"].to_pylist() == IDS and found["probability"].to_pylist() == wanted
    run("predict", folder / "run", folder / "data", "--part", "train", "--id", "c", "--out", folder / "k.parquet")
    assert parquet.read_table(folder / "k.parquet").schema.types == [pa.int64(), pa.float32()]
    run("predict", folder / "run", folder / "rows.csv", "--out", folder / "plain.parquet")
    assert parquet.read_table(folder / "plain.parquet").to_pydict() == {"probability": wanted}
