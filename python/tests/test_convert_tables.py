"""convert(): datasets of frames, arrays, queries and files, encoded or not; weights from text to predictions."""

import datetime
import gzip

import numpy as np
import pytest

import tercel as tc
import tercel.data as td
from tercel import recsys

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

WORDS = ["a", "b", 'tab\tand "quote"', "two\nlines", "ü"]


def draw_columns(rows=600, seed=0):
    rng = np.random.default_rng(seed)
    start = datetime.datetime(2024, 1, 1)
    items = rng.integers(0, 50, rows).tolist()
    items[::7] = [None] * len(items[::7])
    return {
        "click": rng.integers(0, 2, rows).tolist(), "age": rng.random(rows).tolist(),
        "user": [WORDS[i] for i in rng.integers(0, len(WORDS), rows)], "item": items,
        "tags": [[WORDS[i] for i in rng.integers(0, 3, n)] for n in rng.integers(0, 4, rows)],
        "when": [start + datetime.timedelta(hours=int(h)) for h in rng.integers(0, 9999, rows)],
    }


OPTIONS = {"label": "click", "dense": ["age"], "categorical": ["user", "item", "tags"], "min_count": {"item": 3},
           "valid_every": 4, "time_parts": ["when=hour", "when=weekday"]}


def content(dataset):
    return {name: [open(file.path, "rb").read() for file in part.files] for name, part in dataset.parts.items()}


def write_csv(columns, path):
    def cell(value):
        text = "|".join(value) if isinstance(value, list) else "" if value is None else str(value)
        return '"' + text.replace('"', '""') + '"'

    with open(path, "w", newline="") as file:
        file.write(",".join(columns) + "\n")
        file.writelines(",".join(map(cell, row)) + "\n" for row in zip(*columns.values()))


def duckdb_query(columns):
    duckdb_query.connection = pytest.importorskip("duckdb").connect()
    return duckdb_query.connection.from_arrow(pa.table(columns))


PRODUCERS = {
    "dict": dict, "arrays": lambda columns: {**columns, "age": np.array(columns["age"]), "user": np.array(columns["user"])},
    "pyarrow": pa.table, "reader": lambda columns: pa.table(columns).to_reader(max_chunksize=100),
    "polars": lambda columns: pytest.importorskip("polars").DataFrame(columns), "duckdb": duckdb_query,
    "pandas": lambda columns: pytest.importorskip("pandas").DataFrame(columns),
    "pandas of arrow": lambda columns: pa.table(columns).to_pandas(types_mapper=pytest.importorskip("pandas").ArrowDtype),
}


@pytest.mark.parametrize("producer", [*PRODUCERS, "parquet", "csv", "csv.gz"])
def test_the_same_dataset_of_every_source(tmp_path, producer):
    columns, options = draw_columns(), dict(OPTIONS)
    wanted = td.convert(dict(columns), tmp_path / "wanted", **OPTIONS)
    assert {name: len(part) for name, part in wanted.dataset.parts.items()} == {"train": 405, "valid": 135, "test": 60}
    assert [(f.name, f.categories) for f in wanted.fields][:1] == [("user", 5)] and wanted.train_clicks > 0
    assert [slot.hotness for slot in wanted.dataset.schema.slots] == [1, 1, 3, 1, 1]
    if producer in PRODUCERS:
        source = PRODUCERS[producer](columns)
    elif producer == "parquet":
        pq.write_table(pa.table(columns), tmp_path / "t.parquet", row_group_size=100)
        source = tmp_path / "t.parquet"
    else:
        source = tmp_path / "t.csv"
        write_csv(columns, source)
        options.update(list_separator="|", lists=["tags"])
        if producer == "csv.gz":
            packed = tmp_path / "t.csv.gz"
            packed.write_bytes(gzip.compress(source.read_bytes()))
            source = packed
    made = td.convert(source, tmp_path / "made", **options)
    assert made.fields == wanted.fields and made.dataset.schema == wanted.dataset.schema
    assert content(made.dataset) == content(wanted.dataset)


def test_parts_of_their_own_and_formats(tmp_path):
    train, test = draw_columns(), draw_columns(100, seed=1)
    options = {"label": "click", "dense": "age", "categorical": ["user", "tags"], "min_count": 1}
    steps = []
    made = td.convert(train, tmp_path / "a", test=pa.table(test), format="parquet", codec="zstd", progress=lambda *n: steps.append(n),
                      **options)
    assert made.dataset.format == "parquet" and made.dataset.format_options["codec"] == "zstd"
    assert len(made.dataset.train) == 600 and len(made.dataset.test) == 100
    assert steps[0] == (600, 0) and steps[-1][0] == steps[-1][1] > 0
    hashed = td.convert(train, tmp_path / "b", label="click", categorical=["user"], hash_buckets={"user": 16}, test_every=0)
    assert hashed.dataset.schema.slots[0].size in (16, 17) and hashed.dataset.test is None
    structured = np.zeros(40, dtype=[("y", "f4"), ("word", "U5"), ("x", "f8")])
    structured["y"][::2], structured["word"] = 5, ["one", "two"] * 20
    split = td.convert(structured, tmp_path / "c", label="y", dense=["x"], categorical=["word"], positive=[">=4"],
                       dense_transform="raw", min_count=1)
    assert (split.train_clicks, split.test_clicks) == (20, 0)  # rows 9, 19 ... are test rows


def test_keys_as_they_are(tmp_path):
    rng = np.random.default_rng(0)
    keys, dense = rng.integers(0, 9, 50), rng.random((50, 2)).astype("f4")
    columns = {"y": rng.integers(0, 2, 50).astype("f4"), "x": dense, "k": keys}
    options = {"encode": False, "label": "y", "dense": ["x"], "categorical": ["k"], "slot_size_array": [9]}
    table = pa.table({"y": columns["y"], "k": keys, "x": pa.array(dense.tolist(), pa.list_(pa.float32(), 2))})
    pq.write_table(table, tmp_path / "t.parquet")
    wanted = None
    for name, source in (("arrays", columns), ("table", table), ("file", tmp_path / "t.parquet")):
        made = td.convert(source, tmp_path / name, format="raw", **options)
        assert made.fields == () and made.train_clicks == -1 and made.dataset.conversion is None
        wanted = wanted or content(made.dataset)
        assert content(made.dataset) == wanted
    batch = next(iter(made.dataset.batches(batch_size=50)))
    assert np.array_equal(batch.dense.numpy(), dense) and batch["keys"].keys.tolist() == keys.tolist()
    other = td.convert(made.dataset, tmp_path / "norm")
    assert other.dataset.format == "norm" and len(other.dataset) == 50
    parts = td.convert(columns, tmp_path / "parts", valid=table, rows_per_file=20, **options).dataset
    assert len(parts.train.files) == 3 and len(parts.valid) == 50


def test_what_convert_refuses(tmp_path):
    columns, target = draw_columns(20), tmp_path / "out"
    write_csv(columns, tmp_path / "t.csv")
    for error, message, source, options in (
            (ValueError, "'no', found click", columns, {"label": "click", "dense": ["no"]}),
            (ValueError, "option 'label'", columns, {"dense": ["age"]}),
            (ValueError, "'delimiter': it is of text files", columns, {"label": "click", "delimiter": ","}),
            (tc.ConfigError, "did you mean 'dense'", columns, {"label": "click", "dens": ["age"]}),
            (tc.DataError, r"source.tsv: line 2: column \d \(user\): expected a number", columns,
             {"label": "click", "dense": ["user"]}),
            (ValueError, "same number of rows", {"y": [1], "x": [1, 2]}, {"label": "y", "dense": ["x"]}),
            (ValueError, "'weighted': expected names of categorical", columns, {"label": "click", "weighted": ["age"]}),
            (ValueError, "column 'k': expected a weight for each of 2 values, found 1",
             {"y": [1], "k": [["a", "b"]], "k_weight": [[1.0]]}, {"label": "y", "categorical": "k", "weighted": ["k"]}),
            (ValueError, "encode=False", tmp_path / "t.csv", {"label": "click", "encode": False}),
            (tc.ConfigError, "expected integer keys", pa.table(columns),
             {"label": "click", "integers": True, "categorical": ["user"], "encode": False}),
            (TypeError, "expected a path", 3, {"label": "y"}), (TypeError, "encode", columns, {"encode": 1}),
    ):
        with pytest.raises(error, match=message):
            td.convert(source, target, **options)
        assert not target.exists()

    class Stop(Exception):
        pass

    def stop(*_):
        raise Stop

    with pytest.raises(Stop):
        td.convert(columns, target, progress=stop, label="click")
    assert not target.exists()


def test_weighted_text_to_parquet_to_training_to_predictions(tmp_path):
    rng = np.random.default_rng(0)
    rows = 400
    tags = [sorted(rng.choice(20, n, replace=False).tolist()) for n in rng.integers(1, 4, rows)]
    weights = [rng.integers(1, 9, len(t)).tolist() for t in tags]
    label = [int(sum(w for t, w in zip(*row) if t < 10) > sum(w for t, w in zip(*row) if t >= 10))
             for row in zip(tags, weights)]
    age = rng.random(rows).tolist()
    with open(tmp_path / "t.csv", "w") as file:
        file.write("click,age,tags\n")
        file.writelines(f"{y},{x},{'|'.join(f't{t}:{w / 4}' for t, w in zip(*row))}\n"
                        for y, x, row in zip(label, age, zip(tags, weights)))
    options = {"label": "click", "dense": ["age"], "categorical": ["tags"], "weighted": ["tags"], "min_count": 1,
               "test_every": 4, "format": "parquet"}
    text = td.convert(tmp_path / "t.csv", tmp_path / "text", list_separator="|", **options).dataset
    table = {"click": label, "age": age, "tags": [[f"t{i}" for i in t] for t in tags],
             "tags_weight": [[w / 4 for w in ws] for ws in weights]}
    assert text.schema == td.convert(table, tmp_path / "table", **options).dataset.schema
    assert text.schema.slots[0].weighted and text.schema.slots[0].hotness == 3

    with recsys.Trainer("wdl", text, tmp_path / "run", solver={"batchsize": 50, "epochs": 10}) as trainer:
        assert trainer.run()
    model = recsys.load_model(tmp_path / "run")
    wanted = model.predict(text)
    assert model.evaluate(text)["auc"] > 0.8

    # The same rows as arrays, with their weights: by slot, and without row offsets where every bag is full.
    batch = next(iter(text.batches("test", batch_size=100)))
    keys, offsets, key_weights = batch["keys"].keys, batch["keys"].row_offsets, batch["keys"].key_weights
    arrays = {"dense": batch.dense, **dict.fromkeys(model.inputs, (keys, offsets, key_weights))}
    assert model.predict(arrays).tolist() == wanted.tolist()
    unweighted = model.predict({**arrays, **dict.fromkeys(model.inputs, (keys, offsets))})
    assert unweighted.tolist() != wanted.tolist()
    doubled = dict.fromkeys(model.inputs, (keys, offsets, key_weights * 2))
    assert model.predict({**arrays, **doubled}).tolist() != wanted.tolist()
    one = {"dense": batch.dense, **dict.fromkeys(model.inputs, (keys[:100].view(100, 1), None, np.ones((100, 1))))}
    assert model.predict(one).shape == (100,)
    with pytest.raises(ValueError, match="expected a weight for each key"):
        model.predict({**arrays, **dict.fromkeys(model.inputs, (keys, offsets, key_weights[1:]))})
    # And the Parquet files of the test part as a table in memory.
    files = [file.path for file in text.test.files]
    memory = td.ArrowDataset(pa.concat_tables([pq.read_table(file) for file in files]), label="click", dense="age",
                             categorical="tags", weighted="tags", slot_size_array=[text.schema.slots[0].size])
    assert model.predict(memory, "train").tolist() == wanted.tolist()
