"""convert(): datasets of frames, arrays, queries and files, encoded or not; weights from text to predictions."""

import datetime
import gzip
import os
import shutil
import tempfile

import numpy as np
import pytest
from object_stores import WebServer

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


def files_below(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


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
    "dict": dict, "arrays": lambda columns: {**columns, "age": np.array(columns["age"]), "user": np.array(columns["user"]),
                                             "when": np.array(columns["when"], "M8[ns]")},
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
    if not producer.startswith("csv"):
        assert files_below(tmp_path / "made") == files_below(tmp_path / "wanted")
        assert made.dataset.conversion["sources"] == ["source.tsv"]


def test_the_description_of_parts_does_not_depend_on_the_run(tmp_path, monkeypatch):
    train, test = draw_columns(), draw_columns(100, seed=1)
    options = {"label": "click", "categorical": ["user"], "valid_every": 5}
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / name))
        td.convert(train, tmp_path / f"of {name}", test=test, **options)
        assert os.listdir(tmp_path / name) == []
    assert files_below(tmp_path / "of a") == files_below(tmp_path / "of b")
    conversion = td.open_dataset(tmp_path / "of a").conversion
    assert conversion["sources"] == ["source.tsv"]
    assert [one["value"] for one in conversion["settings"] if one["name"] == "test"] == ['["test.tsv"]']
    with pytest.raises(tc.DataError, match=r"^test.tsv: line 2: column 1 \(click\): expected"):
        td.convert(train, tmp_path / "bad", test={**test, "click": ["no"] * 100}, **options)


TIMES = np.array(["2024-05-01T00:00:00", "2024-05-01T01:02:03.5", "2024-05-01T01:02:03.000004", "NaT", "2024-05-02T10:00:00.123456789",
                  "1969-12-31T23:59:59.999999"], "M8[ns]")


@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s"])
def test_times_have_the_same_texts_in_arrays_and_frames(tmp_path, unit):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    times = np.tile(TIMES.astype(f"M8[{unit}]"), 10)
    columns = {"y": np.tile([0.0, 1.0], 30), "c": times, "time": np.where(np.isnat(times), times[0], times)}
    structured = np.zeros(60, [("y", "f8"), ("c", times.dtype), ("time", times.dtype)])
    for name, values in columns.items():
        structured[name] = values
    options = {"label": "y", "categorical": ["c"], "time_column": "time", "test_from": datetime.datetime(2024, 5, 2),
               "time_parts": ["time=weekday"], "min_count": 1}
    frame = pd.DataFrame(columns)
    wanted = td.convert(frame, tmp_path / "wanted", **options)
    assert (len(wanted.dataset.train), len(wanted.dataset.test)) == (50, 10)
    assert wanted.fields[0].categories == len(set(times[[0, 1, 2, 5]].tolist()))
    sources = {"arrays": columns, "structured": structured, "series": {name: frame[name] for name in frame}, "scalars": {
        name: list(values) for name, values in columns.items()}}
    if unit != "s":  # polars has none
        sources["polars"] = pl.DataFrame(columns)
    for name, source in sources.items():
        made = td.convert(source, tmp_path / name, **options)
        assert files_below(tmp_path / name) == files_below(tmp_path / "wanted"), name
        assert made.fields == wanted.fields


def test_dates_and_lists_of_times(tmp_path):
    options = {"label": "y", "categorical": ["c"], "min_count": 1}
    days = np.array(["2024-05-01", "2024-05-03", "NaT"] * 10, "M8[D]")
    y = [0, 1, 1] * 10
    sources = [({"y": y, "c": days}, {"y": y, "c": days.tolist()}),
               ({"y": y, "c": days.astype("M8[M]")}, {"y": y, "c": days.astype("M8[M]").tolist()}),
               ({"y": y, "c": days.astype("M8[h]")}, {"y": y, "c": days.astype("M8[us]").tolist()}),
               ({"y": y, "c": np.stack([days.astype("M8[ns]")] * 2, 1)}, {"y": y, "c": [[t, t] for t in days.astype("M8[us]").tolist()]})]
    hidden = np.ma.array(days, mask=[True, False, False] * 10)
    sources.append(({"y": y, "c": hidden}, {"y": y, "c": hidden.tolist()}))
    for i, pair in enumerate(sources):
        for j, source in enumerate(pair):
            td.convert(source, tmp_path / f"{i}{j}", **options)
        assert files_below(tmp_path / f"{i}0") == files_below(tmp_path / f"{i}1")


def test_parquet_sources_are_those_that_open_files_takes(tmp_path):
    columns = draw_columns(40)
    folder = tmp_path / "files"
    folder.mkdir()
    table = pa.table({"click": pa.array(columns["click"], pa.float32()), "user": columns["user"], "key": list(range(40))})
    for i in range(2):
        pq.write_table(table.slice(20 * i, 20), folder / f"part-{i}.parquet")
    (folder / "._part-0.parquet").write_bytes(b"no Parquet")
    (folder / "_SUCCESS").write_bytes(b"")
    pq.write_table(table, tmp_path / "all.pq")
    both = ({"categorical": ["user"], "min_count": 1, "test_every": 0}, {"categorical": ["key"], "encode": False})

    def keys(source, options):
        made = td.convert(source, tmp_path / "made", replace=True, label="click", **options)
        return [batch["keys"].keys.tolist() for batch in made.dataset.batches(batch_size=100)]

    wanted = [keys(tmp_path / "all.pq", options) for options in both]
    assert wanted[1] == [list(range(40))]
    web = WebServer({name: (folder / name).read_bytes() for name in ("part-0.parquet", "part-1.parquet")})
    try:
        parts = [folder / "part-0.parquet", folder / "part-1.parquet"]
        for source in (folder, str(folder).encode(), str(folder / "part-*.parquet"), str(folder / "p*"), parts, [str(parts[0]), parts[1]],
                       str(folder / "part-[01].parquet"), [web.url + "/part-0.parquet", web.url + "/part-1.parquet"]):
            for options, like in zip(both, wanted):
                assert keys(source, options) == like, source
        with pytest.raises(OSError, match="no.parquet: HTTP: expected the file, found status 404"):
            td.convert(web.url + "/no.parquet", tmp_path / "made", replace=True, label="click", **both[0])
    finally:
        web.close()
    (folder / "below").mkdir()
    pq.write_table(table, folder / "below" / "a.parquet")
    (tmp_path / "empty").mkdir()
    for source, message in ((folder, "found some in its subfolder"), (tmp_path / "empty", "a folder with files"),
                            (str(tmp_path / "*.parquet"), "files that match the pattern")):
        for options in both:
            with pytest.raises(OSError, match=message):
                td.convert(source, tmp_path / "none", label="click", **options)
    assert not (tmp_path / "none").exists()
    (tmp_path / "text[1].csv").write_text("click,user\n" + "0,a\n1,b\n" * 10)
    assert len(td.convert(tmp_path / "text[1].csv", tmp_path / "text", label="click", categorical=["user"]).dataset) == 20


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


def nested_columns():
    """(what it is, its type in pyarrow, values)."""
    yield "struct", pa.struct({"a": pa.int64()}), [{"a": 1}, {"a": 2}, None]
    yield "map", pa.map_(pa.string(), pa.int64()), [[("k", 1)], [("j", 2)], None]
    yield "list", pa.list_(pa.list_(pa.int64())), [[[1], [2]], [], None]
    yield "list of structs", pa.list_(pa.struct({"a": pa.int64()})), [[{"a": 1}], [], None]


@pytest.mark.parametrize("name, kind, values", list(nested_columns()), ids=lambda v: v if isinstance(v, str) else "")
def test_structs_maps_and_lists_of_lists_are_refused(tmp_path, name, kind, values):
    pl, pd, duckdb = (pytest.importorskip(module) for module in ("polars", "pandas", "duckdb"))
    column = pa.array(values, kind)
    table = pa.table({"y": [1, 0, 1], "c": column})
    pq.write_table(table, tmp_path / "t.parquet")
    connection = duckdb.connect()
    objects = np.empty(3, object)
    objects[:] = values
    typed = {"pyarrow": table, "reader": table.to_reader(), "polars": pl.from_arrow(table), "duckdb": connection.from_arrow(table),
             "Parquet": tmp_path / "t.parquet", "pandas of Arrow": table.to_pandas(types_mapper=pd.ArrowDtype), "array": {"y": [1, 0, 1], "c": column},
             "series": {"y": [1, 0, 1], "c": pl.Series(column)}, "all missing": table.slice(2)}
    untyped = {"lists": {"y": [1, 0, 1], "c": values}, "objects": {"y": [1, 0, 1], "c": objects}, "pandas": table.to_pandas()}
    for source in typed.values():
        with pytest.raises(tc.ConfigError, match="column 'c': expected numbers, texts, times or lists of these, found "
                                                 "(struct<a: int64|map<|list<|Struct|List|Map)"):
            td.convert(source, tmp_path / "a", label="y", categorical="c")
    for source in untyped.values():
        with pytest.raises(tc.DataError, match="train table: row 0: column 'c': expected numbers, texts, times or lists of these, "
                                               "found (a dict|a list in a list)"):
            td.convert(source, tmp_path / "a", label="y", categorical="c")
    assert not (tmp_path / "a").exists()


def test_what_is_a_list(tmp_path):
    pl = pytest.importorskip("polars")
    lists = [[1, 2], [3], [], None]
    wanted = td.convert({"y": [1, 0, 1, 0], "c": lists}, tmp_path / "wanted", label="y", categorical="c", min_count=1, test_every=0)
    for column in ([(1, 2), np.array([3]), pl.Series([], dtype=pl.Int64), None], pl.Series(lists), [[1, 2], [tc.tensor(3)], [], None]):
        td.convert({"y": [1, 0, 1, 0], "c": column}, tmp_path / "a", label="y", categorical="c", min_count=1, test_every=0, replace=True)
        assert files_below(tmp_path / "a") == files_below(tmp_path / "wanted")
    assert wanted.fields[0].categories == 3
    structured = np.zeros(2, [("y", "i4"), ("c", [("a", "i4"), ("b", "i4")])])
    for source, message in (({"y": [1], "c": [{1, 2}]}, "row 0: column 'c': .*found a set"), ({"y": [1], "c": [bytearray(b"a")]}, "found a bytearray"),
                            ({"y": [1, 0], "c": np.zeros((2, 2, 2), int)}, "found a list in a list"), (structured, "found a struct"),
                            ({"y": [1] * 40000, "c": ["a"] * 39999 + [{}]}, "train table: row 39999: column 'c'")):
        with pytest.raises(ValueError, match=message):
            td.convert(source, tmp_path / "b", label="y", categorical="c")
    numbers = [np.float64(1.5), np.int8(2), np.str_("b"), np.bool_(True), np.array(2), 1.5, 2, "b", True, 2.0]
    td.convert({"y": [1, 0] * 5, "c": numbers}, tmp_path / "c", label="y", categorical="c", min_count=1, test_every=0)
    keys = next(iter(td.open_dataset(tmp_path / "c").batches(batch_size=10)))["keys"].keys.tolist()
    assert keys[:4] == keys[5:9] and keys[4] == keys[9] == keys[1] and len(set(keys)) == 4
    masked = {"y": [1, 0, 1, 0], "c": np.ma.array([1, 9, 3, 3], mask=[0, 1, 0, 0])}
    for column in (masked["c"], [1, np.ma.masked, 3, 3]):
        td.convert({**masked, "c": column}, tmp_path / "c", label="y", categorical="c", min_count=1, test_every=0, replace=True)
        assert next(iter(td.open_dataset(tmp_path / "c").batches(batch_size=4)))["keys"].keys.tolist() == [2, 0, 1, 1]


def test_lists_and_columns_of_one_name_in_the_users_words(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame([[1, 2, 3], [0, 2, 3]], columns=["y", "c", "c"])
    table = pa.Table.from_arrays([pa.array([1, 0]), pa.array([1, 2]), pa.array([1, 2])], names=["y", "c", "c"])
    for source in (frame, table):
        with pytest.raises(ValueError, match="expected one column 'c', found several"):
            td.convert(source, tmp_path / "a", label="y", categorical="c")
    vectors = {"y": [1, 0], "v": [1.0, [2.0, 3.0]], "c": [1, 2]}
    with pytest.raises(tc.DataError, match="train table: row 1: column 'v': expected one value, found a list, which only categorical"):
        td.convert(vectors, tmp_path / "a", label="y", dense="v", categorical="c")
    with pytest.raises(tc.DataError, match="test table: row 0: column 'y': expected one value, found a list"):
        td.convert({"y": [1, 0], "c": [1, 2]}, tmp_path / "a", test={"y": [[1]], "c": [1]}, label="y", categorical="c")
    rows = pa.table({"y": [1, 0], "c": ["a", "b"]}).to_struct_array()
    for source in (rows, rows.combine_chunks()):
        assert len(td.convert(source, tmp_path / "b", label="y", categorical="c", test_every=0, replace=True).dataset) == 2


@pytest.mark.parametrize("keys, weights, message", [
    ([["a"], ["b"]], [None, [0.5]], "row 0: column 'k': expected a weight for each of 1 values, found none"),
    ([["a"], ["b", "c"]], [[1], [0.5, None]], "row 1: column 'k': expected a weight for each value, found a missing one"),
    ([["a"], ["b"]], [[1], [float("nan")]], "row 1: column 'k': expected a weight for each value, found a missing one"),
    ([["a"], ["b"]], [[1], 0.5], "row 1: column 'k': expected a weight for each of 1 values, found 0.5"),
    ([["a"], []], [[1], [0.5]], "row 1: column 'k': expected a weight for each of 0 values, found 1"),
    ([["a"], [None]], [[1], [0.5]], "row 1: column 'k': expected a value for each weight, found a missing one"),
    (["a", "b"], [1, None], "row 1: column 'k': expected a weight for each value, found a missing one"),
])
def test_missing_weights_are_errors(tmp_path, keys, weights, message):
    options = {"label": "y", "categorical": "k", "weighted": "k", "format": "parquet", "min_count": 1, "test_every": 0}
    columns = {"y": [1, 0], "k": keys, "k_weight": weights}
    with pytest.raises(tc.DataError, match="train table: " + message):
        td.convert(columns, tmp_path / "a", **options)
    assert not (tmp_path / "a").exists()
    columns = {"y": [1, 0], "k": [["a"], None], "k_weight": [[0.25], None]}
    batch = next(iter(td.convert(columns, tmp_path / "b", **options).dataset.batches(batch_size=2)))
    assert batch["keys"].key_weights.tolist() == [0.25]


def test_options_with_commas_are_those_of_the_command_line(tmp_path):
    columns = {"y": [1, 0] * 4, "c": list("aabb") * 2, "e": list("abab") * 2, "d": [1.0, None] * 4, "when": ["2024-05-01T05:00:00"] * 8}
    write_csv({name: ["" if v is None else v for v in values] for name, values in columns.items()}, tmp_path / "t.csv")
    base = {"label": "y", "dense": ["d"], "categorical": ["c", "e"], "min_count": 1, "test_every": 0, "dense_transform": "raw"}
    forms = (("time_parts", ["when=hour", "when=weekday"], ["when=hour,weekday", ["when=hour", "weekday"], {"when": ["hour", "weekday"]},
                                                            {"when": "hour,weekday"}]),
             ("cross", ["c+e", "e+c"], ["c+e,e+c", ("c+e", "e+c")]), ("fill_missing", {"d": -1}, ["0,d=-1", ["0", "d=-1"]]),
             ("min_count", {"c": 5, "e": 2}, ["2,c=5", ["2", "c=5"]]), ("hash_buckets", {"c": 10, "e": 20}, ["20,c=10"]))
    for option, plain, others in forms:
        for source in (columns, tmp_path / "t.csv"):
            wanted = content(td.convert(source, tmp_path / "a", replace=True, **{**base, option: plain}).dataset)
            for other in others:
                assert content(td.convert(source, tmp_path / "a", replace=True, **{**base, option: other}).dataset) == wanted
    with pytest.raises(tc.ConfigError, match="'time_parts'"):
        td.convert_csv(tmp_path / "t.csv", tmp_path / "b", **base, time_parts="when=hour,day of the week")
    shutil.rmtree(tmp_path / "a")
    assert td.convert(columns, tmp_path / "a", **{**base, "cross": "c+e"}).dataset.schema.slots[0].name == "c_e"


def test_parquet_in_file_systems_of_python(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    table = pa.table({"y": [1, 0, 1, 0], "c": list("abab"), "k": [1, 2, 3, 4]})
    pq.write_table(table, tmp_path / "t.parquet")
    content_of_file = (tmp_path / "t.parquet").read_bytes()
    for name in ("a", "b"):
        memory.pipe(f"/tercel-convert/{name}.parquet", content_of_file)
    td.register_filesystem("converted", memory)
    for scheme in ("memory", "converted"):
        for source, rows in ((f"{scheme}://tercel-convert", 8), (f"{scheme}://tercel-convert/a.parquet", 4),
                             (f"{scheme}://tercel-convert/*.parquet", 8)):
            for options in ({"categorical": "c", "min_count": 1, "test_every": 0}, {"categorical": ["k"], "encode": False, "integers": True}):
                assert len(td.convert(source, tmp_path / "a", label="y", replace=True, **options).dataset) == rows
    memory.rm("/tercel-convert", recursive=True)
    with pytest.raises(OSError, match="converted://tercel-convert/a.parquet"):
        td.convert("converted://tercel-convert/a.parquet", tmp_path / "a", label="y", categorical="c", replace=True)


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
