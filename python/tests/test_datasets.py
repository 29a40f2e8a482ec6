"""tercel.data: datasets, the files of other tools, and datasets made from text."""

import copy
import dataclasses
import datetime
import gzip
import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest
from norm_files import (  # noqa: F401: fixtures too
    DENSE, HOTNESS, LABELS, SIZES, dataset, given, joined, rows, spec, write_files)

import tercel as tc
import tercel.data as td


# ---- datasets

def test_a_description_of_files(dataset, rows):
    assert dataset.format == "norm" and dataset.folder == ""
    assert dataset.format_options == {"key_type": "i64", "check_mode": "sum"}
    schema = dataset.schema
    assert (schema.label_dim, schema.dense_dim, schema.num_keys) == (LABELS, DENSE, sum(SIZES))
    assert [slot.size for slot in schema.slots] == schema.slot_size_array == list(SIZES)
    assert [slot.hotness for slot in schema.slots] == list(HOTNESS)
    assert [slot.first_key for slot in schema.slots] == [0, 50, 90]
    assert schema.slots[1] == td.Slot("slot1", 40, 50, 3)
    assert [file.rows for file in dataset.train.files] == [300, 100, 300]
    for file in dataset.train.files:
        assert os.path.getsize(file.path) == file.bytes
    assert dataset.train.bytes == sum(file.bytes for file in dataset.train.files)
    assert len(dataset.train) == dataset.train.rows == 700 and len(dataset) == 790
    assert dataset.parts == {"train": dataset.train, "test": dataset.test}
    assert dataset.train.truth is None and dataset.conversion is None
    assert "700 rows" in repr(dataset)
    with pytest.raises(dataclasses.FrozenInstanceError):
        schema.label_dim = 3


def test_a_folder_with_a_description(tmp_path, rows):
    files = write_files(tmp_path, rows, ())
    made = td.open_files("norm", folder=tmp_path / "data", **spec(files))
    assert made.test is None and list(made.parts) == ["train"]
    for path in (tmp_path / "data", str(tmp_path / "data"), tmp_path / "data" / "dataset.json"):
        opened = td.open_dataset(path)
        assert opened.folder == str(tmp_path / "data") and opened.train == made.train and opened.schema == made.schema
    assert td.Dataset(tmp_path / "data").train == made.train
    with pytest.raises(tc.IoError, match="exists already"):
        td.open_files("norm", folder=tmp_path / "data", **spec(files))
    assert td.open_files("norm", folder=tmp_path / "data", replace=True, **spec(files)).train == made.train


@pytest.mark.parametrize("again", [lambda d: pickle.loads(pickle.dumps(d)), copy.deepcopy])
def test_a_dataset_can_be_pickled(dataset, rows, again):
    copied = again(dataset)
    assert copied.train == dataset.train and copied.schema == dataset.schema
    assert joined(copied.batches(batch_size=99)) == given(rows)


def test_file_names_that_are_not_utf8(tmp_path, rows):
    write_files(tmp_path, rows, ())
    (tmp_path / "train-0.data").rename(os.fsdecode(bytes(tmp_path) + b"/train-\xff.data"))
    (tmp_path / "train.txt").write_bytes(b"1\ntrain-\xff.data\n")
    made = td.open_files("norm", **spec(tmp_path / "train.txt"))
    assert os.fsencode(made.train.files[0].path) == bytes(tmp_path) + b"/train-\xff.data"
    assert "700 rows" in repr(made) and os.path.getsize(made.train.files[0].path) == made.train.bytes
    assert joined(made.batches()) == given(rows)
    for copied in (pickle.dumps, copy.deepcopy):
        with pytest.raises(tc.ConfigError, match="expected a path in UTF-8, as descriptions require"):
            copied(made)
    with pytest.raises(tc.ConfigError, match="option 'train_list': expected a string in UTF-8"):
        td.open_files("norm", **spec(bytes(tmp_path) + b"/\xff.txt"))
    folder = td.generate(bytes(tmp_path) + b"/\xff", rows=100, preset="small").dataset
    assert os.fsencode(folder.folder) == bytes(tmp_path) + b"/\xff" and "90 rows" in repr(folder)
    copied = pickle.loads(pickle.dumps(folder))
    assert copied.folder == folder.folder and copied.train == folder.train, "a folder's name is apart from the text"
    assert sum(b.rows for b in copied.batches()) == 90


class Path:
    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return self.path


def test_lists_are_given_as_any_path(tmp_path, rows):
    files = write_files(tmp_path, rows, ())
    for path in (files, str(files), bytes(files), Path(bytes(files)), Path(str(files))):
        assert td.open_files("norm", **spec(path)).train.rows == 700


def test_the_working_folder_may_change(tmp_path, rows, monkeypatch):
    write_files(tmp_path, rows, (300,))
    (tmp_path / "rows.csv").write_text("y,x\n" + "1,2\n0,3\n" * 50)
    monkeypatch.chdir(tmp_path)
    files = spec("train.txt")
    made = [td.open_files("norm", **files), td.open_files("norm", folder="a", **files),
            td.generate("b", rows=1000, preset="small").dataset,
            td.convert_csv("rows.csv", "c", label="y", dense="x").dataset, td.open_dataset("a"), td.Dataset("b/dataset.json")]
    readers = [dataset.batches(batch_size=10, num_workers=2) for dataset in made]
    loops = [iter(reader) for reader in readers]
    for loop in loops:
        next(loop)
    monkeypatch.chdir("/")
    for dataset, reader, loop in zip(made, readers, loops):
        assert dataset.folder == "" or os.path.dirname(dataset.folder) == str(tmp_path)
        assert all(os.path.isabs(file.path) for file in dataset.train.files)
        assert sum(b.rows for b in loop) == dataset.train.rows - 10
        assert sum(b.rows for b in pickle.loads(pickle.dumps(dataset)).batches()) == dataset.train.rows


def test_truth_values_and_hashes(dataset, tmp_path):
    made = td.generate(tmp_path / "a", rows=100, preset="small").dataset
    for found in (made, dataset):
        assert found and found.train and hash(found.train) == hash(found.train) and found.train in {found.train}
    assert td.DataPart("train", 0, 0, (), None), "a part without rows, too"


@pytest.mark.parametrize("call, text", [
    (lambda p: td.open_dataset(None), "path: expected a path, as str, bytes or os.PathLike, not NoneType"),
    (lambda p: td.generate(None), "folder: expected a path"),
    (lambda p: td.generate(p / "a", replace=1), "replace: expected True or False, not 1"),
    (lambda p: td.generate(p / "a", format=None), "format: expected a name, as str, not NoneType"),
    (lambda p: td.generate(p / "a", progress=3), "progress: expected a function or None, not int"),
    (lambda p: td.open_files(None), "format: expected a name"),
    (lambda p: td.open_files("norm", folder=3), "folder: expected a path"),
    (lambda p: td.open_files("norm", replace="no"), "replace: expected True or False, not 'no'"),
    (lambda p: td.open_files("norm", nnz_per_slot={1}),
     r"\[norm\] option 'nnz_per_slot': expected a number, a string, a list or a dict, not set"),
    (lambda p: td.convert_csv(3, p / "a", label="y"), "sources: expected a path or an iterable of paths, not int"),
    (lambda p: td.convert_csv([p, None], p / "a", label="y"), r"sources\[1\]: expected a path.*not NoneType"),
    (lambda p: td.convert_criteo(p, p / "a", replace=None), "replace: expected True or False, not None"),
])
def test_wrong_arguments(tmp_path, call, text):
    with pytest.raises(TypeError, match=text):
        call(tmp_path)
    assert os.listdir(tmp_path) == []


def test_lists_of_numbers(tmp_path, rows):
    files = write_files(tmp_path, rows, ())
    for hotness in (np.array(HOTNESS), np.array(HOTNESS, np.uint8), tc.tensor(HOTNESS), tuple(np.array(HOTNESS))):
        made = td.open_files("norm", **spec(files, nnz_per_slot=hotness))
        assert [slot.hotness for slot in made.schema.slots] == list(HOTNESS)
    made = td.generate(tmp_path / "a", rows=10, preset="small", slot_size_array=range(10, 15)).dataset
    assert made.schema.slot_size_array == [10, 11, 12, 13, 14]
    with pytest.raises(tc.ConfigError, match=r"option 'slot_size_array\[0\]': expected an integer, found a list"):
        td.generate(tmp_path / "b", slot_size_array=np.array([[3]]))


def test_errors_of_datasets(tmp_path, rows):
    with pytest.raises(tc.IoError, match="nothing: expected a dataset's folder, found nothing"):
        td.open_dataset(tmp_path / "nothing")
    with pytest.raises(tc.DataError, match="expected a folder with dataset.json"):
        td.open_dataset(tmp_path)
    for wrong in (3, None, object()):
        with pytest.raises(TypeError):
            td.open_dataset(wrong)
    files = write_files(tmp_path, rows, ())
    made = td.open_files("norm", folder=tmp_path / "data", **spec(files))
    with open(made.train.files[0].path, "ab") as file:
        file.write(b"x")
    with pytest.raises(tc.DataError, match=f"expected {made.train.bytes} bytes, as dataset.json says"):
        td.open_dataset(tmp_path / "data")
    (tmp_path / "data" / "dataset.json").write_text("{")
    with pytest.raises(tc.DataError, match="dataset.json"):
        td.open_dataset(tmp_path / "data")
    with pytest.raises(tc.ConfigError, match="unknown format 'nrom'; did you mean 'norm'"):
        td.open_files("nrom")
    with pytest.raises(tc.ConfigError, match="option 'train_list': expected a string, found nothing"):
        td.open_files("norm")
    with pytest.raises(tc.ConfigError, match="unknown option 'dense_dims'; did you mean 'dense_dim'"):
        td.open_files("norm", train_list=files, dense_dims=3)
    with pytest.raises(tc.DataError, match="train-0.data"):
        td.open_files("norm", **spec(files, dense_dim=4))
    with pytest.raises(tc.DataError):
        pickle.loads(pickle.dumps(made).replace(b'"version"', b'"Version"'))


# ---- generate and convert

def test_generate(tmp_path):
    calls = []
    made = td.generate(tmp_path / "a", rows=1000, preset="small", seed=3, test_fraction=0.2,
                       progress=lambda rows, of: calls.append((rows, of)))
    assert calls[-1] == (1000, 1000) and made.dataset.folder == str(tmp_path / "a")
    assert (made.dataset.train.rows, made.dataset.test.rows) == (800, 200)
    for part, clicks in (("train", made.train_clicks), ("test", made.test_clicks)):
        assert sum(b.labels.sum().item() for b in made.dataset.batches(part)) == clicks > 0
    assert 0.5 < made.dataset.train.truth["auc"] < 1
    assert made.dataset.conversion["tool"] == "generate"
    assert {s["name"]: s["value"] for s in made.dataset.conversion["settings"]}["seed"] == "3"
    narrow = td.generate(tmp_path / "b", rows=1000, preset="small", seed=3, test_fraction=0.2, key_type="u32").dataset
    assert narrow.format_options["key_type"] == "u32" and narrow.train.bytes < made.dataset.train.bytes
    for one, other in zip(made.dataset.batches(), narrow.batches()):
        assert tc.equal(one["keys"].keys, other["keys"].keys) and tc.equal(one.dense, other.dense)
    with pytest.raises(tc.IoError, match="exists already"):
        td.generate(tmp_path / "a", rows=10, preset="small")
    assert td.generate(tmp_path / "a", rows=10, preset="small", replace=True).dataset.train.rows == 9
    with pytest.raises(tc.ConfigError, match=r"\[generate\] unknown option 'ke_type'; did you mean 'key_type'"):
        td.generate(tmp_path / "c", ke_type="i64")
    with pytest.raises(tc.ConfigError, match="unknown format 'parket'"):
        td.generate(tmp_path / "c", format="parket")
    with pytest.raises(tc.ConfigError, match="option 'ctr': expected at least 0.001"):
        td.generate(tmp_path / "c", ctr=0)
    with pytest.raises(TypeError):
        td.generate(3)


class Stop(Exception):
    pass


def test_exceptions_of_progress_end_the_work(tmp_path):
    def stop(*_):
        raise Stop

    with pytest.raises(Stop):
        td.generate(tmp_path / "a", rows=1000, preset="small", progress=stop)
    text = tmp_path / "rows.csv"
    text.write_text("y,x,c\n" + "1,2,a\n0,3,b\n" * 50)
    with pytest.raises(Stop):
        td.convert_csv(text, tmp_path / "b", label="y", dense=["x"], progress=stop)
    with pytest.raises(TypeError):
        td.generate(tmp_path / "a", rows=1000, preset="small", progress=3)
    assert os.listdir(tmp_path) == ["rows.csv"], "nothing is left"


def test_ctrl_c_ends_generate(tmp_path):
    def send(rows, _):
        if rows < 1_000_000:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        td.generate(tmp_path / "a", rows=5_000_000, preset="small", progress=send)
    assert os.listdir(tmp_path) == []

    sender = threading.Timer(0.3, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    sender.start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        td.generate(tmp_path / "a", rows=100_000_000, preset="small")
    assert time.monotonic() - begin < 5, "writing takes minutes"
    sender.join()


def test_a_column_may_be_dense_and_categorical(tmp_path):
    text = tmp_path / "a.csv"
    text.write_text("y,x,c\n" + "".join(f"{i % 2},{i % 3},{'ab'[i % 2]}\n" for i in range(12)))
    data = td.convert_csv(text, tmp_path / "data", label="y", dense=["x"], categorical=["c", "x"], min_count=1,
                          test_every=0, dense_transform="raw").dataset
    assert [(slot.name, slot.size) for slot in data.schema.slots] == [("c", 3), ("x", 4)]
    batch = next(iter(data.batches(batch_size=12)))
    assert batch.dense.flatten().tolist() == [float(i % 3) for i in range(12)]
    keys = batch["keys"].keys.reshape(12, 2)[:, 1].tolist()
    assert keys == [keys[i % 3] for i in range(12)] and len(set(keys)) == 3


def test_convert_csv(tmp_path):
    lines = [f"{'yes' if i % 3 == 0 else 'no'},{i},{'abc'[i % 3]}" for i in range(60)]
    plain, zipped = tmp_path / "a.csv", tmp_path / "b.csv.gz"
    plain.write_text("\n".join(["label,number,letter", *lines[:30]]) + "\n")
    zipped.write_bytes(gzip.compress(("\n".join(["label,number,letter", *lines[30:]]) + "\n").encode()))
    calls = []
    made = td.convert_csv([plain, str(zipped)], tmp_path / "data", label="label", dense=["number"],
                          categorical=("letter",), positive="yes", min_count=1, test_every=0, dense_transform="raw",
                          progress=lambda done, of: calls.append((done, of)))
    assert made.train_clicks == 20 and made.test_clicks == 0 and made.categories_seen == (3,)
    assert made.dataset.test is None and made.dataset.schema.dense_names == ("number",)
    assert calls and all(0 <= done <= of for done, of in calls)
    batch = next(iter(made.dataset.batches()))
    assert batch.labels.flatten().tolist() == [float(i % 3 == 0) for i in range(60)]
    assert batch.dense.flatten().tolist() == list(range(60))
    keys = batch["keys"].keys.tolist()
    assert len(set(keys)) == 3 and keys == keys[:3] * 20
    for sources in (iter([plain, zipped]), {plain: 0, zipped: 0}, sorted(tmp_path.glob("?.csv*"))):
        again = td.convert_csv(sources, tmp_path / "data", label="label", dense="number", categorical="letter",
                               positive="yes", min_count=1, test_every=0, replace=True)
        assert again.dataset.train.rows == 60
    with pytest.raises(tc.DataError, match="a.csv: line 1: expected a column 'lable'.*did you mean 'label'"):
        td.convert_csv(plain, tmp_path / "other", label="lable", dense=["number"])
    with pytest.raises(tc.ConfigError, match=r"\[csv\] option 'label': expected a string, found nothing"):
        td.convert_csv(plain, tmp_path / "other")
    with pytest.raises(TypeError):
        td.convert_csv([3], tmp_path / "other", label="label")


def test_convert_options(tmp_path):
    text = tmp_path / "a.csv"
    text.write_text("y,when,tags,c\n" + "".join(
        f"{i % 5},2024-05-{i + 1:02},{'|'.join('pq'[:i % 3])},{'abc'[min(i, 2)]}\n" for i in range(20)))
    options = dict(label="y", categorical=["tags", "c"], list_separator="|", lists="tags", positive=">=3", replace=True)
    made = td.convert_csv(text, tmp_path / "data", min_count={"tags": 1, "c": 2}, time_column="when",
                          test_from=datetime.datetime(2024, 5, 19), valid_from=datetime.date(2024, 5, 17),
                          max_hotness=1, **options)
    assert {name: part.rows for name, part in made.dataset.parts.items()} == {"train": 16, "valid": 2, "test": 2}
    assert made.dataset.valid.rows == 2 and made.valid_clicks == 0 and made.train_clicks == 6
    assert made.cut_values == 6
    assert made.fields[1] == td.FieldSummary("c", 3, 2, 16, 2)
    assert len(made.dataset.batches("valid", batch_size=2)) == 1
    hashed = td.convert_csv(text, tmp_path / "data", hash_buckets={"c": 50}, min_count=1, test_from=np.int64(18), valid=[text],
                            **options)
    assert [slot.size for slot in hashed.dataset.schema.slots] == [3, 50]
    assert [slot.hotness for slot in hashed.dataset.schema.slots] == [2, 1]
    assert (hashed.dataset.valid.rows, hashed.dataset.test.rows) == (20, 2)
    for like in (hashed.dataset, tmp_path / "data"):
        again = td.convert_like(like, text, tmp_path / "later", test_every=4, replace=True)
        assert (len(again.dataset.train), len(again.dataset.test)) == (15, 5) and again.fields == ()
        assert again.dataset.schema == hashed.dataset.schema
    with pytest.raises(tc.ConfigError, match="'test_from' and 'test' exclude each other"):
        td.convert_csv(text, tmp_path / "other", test_from=3, test=text, **options)
    with pytest.raises(tc.ConfigError, match="option 'hash_buckets': expected one of the columns.*found 'd'"):
        td.convert_csv(text, tmp_path / "other", hash_buckets={"d": 3}, **options)
    with pytest.raises(tc.DataError, match="expected rows for option 'test_from', from row 20 on, found 20 rows"):
        td.convert_csv(text, tmp_path / "other", test_from=20, **options)
    with pytest.raises(TypeError, match="like: expected a path"):
        td.convert_like(3, text, tmp_path / "other")
    with pytest.raises(TypeError, match="test: expected a path"):
        td.convert_csv(text, tmp_path / "other", test=3, **options)


def test_convert_features(tmp_path):
    svm, ffm = tmp_path / "a.svm", tmp_path / "a.ffm"
    svm.write_text("+1 1:1 3:1\n-1 3:1 # comment\n")
    ffm.write_text("1 0:1:0.5 2:3:1\n0 2:4:1\n")
    made = td.convert_libsvm(svm, tmp_path / "svm", min_count=1, test_every=0)
    assert [(slot.name, slot.size, slot.hotness) for slot in made.dataset.schema.slots] == [("features", 3, 2)]
    with pytest.raises(tc.ConfigError, match="slot 'field0': expected keys without weights"):
        td.convert_libffm(ffm, tmp_path / "ffm")
    made = td.convert_libffm(ffm, tmp_path / "ffm", min_count=1, test_every=0, values="ignore")
    assert [slot.name for slot in made.dataset.schema.slots] == ["field0", "field2"]


def test_convert_prepares_columns(tmp_path):
    text = tmp_path / "a.csv"
    text.write_text("y,n,c,d\n" + "".join(f"{int(i % 4 == 0)},{i if i % 5 else ''},{'ab'[i % 2]},{i % 3}\n"
                                         for i in range(400)))
    options = dict(label="y", dense="n", categorical=["c", "d"], min_count=1, test_every=0, dense_transform="zscore",
                   fill_missing={"n": 7}, clip_min=5, clip_max={"n": 300.5}, cross="c+d", replace=True)
    made = td.convert_csv(text, tmp_path / "data", **options)
    assert [(slot.name, slot.size) for slot in made.dataset.schema.slots] == [("c_d", 7), ("c", 3), ("d", 4)]
    expected = np.clip([i if i % 5 else 7 for i in range(400)], 5, 300.5)
    expected = (expected - expected.mean()) / expected.std(ddof=1)
    batch = next(iter(made.dataset.batches(batch_size=400)))
    assert np.allclose(np.asarray(batch.dense)[:, 0], expected, atol=1e-6)
    assert made.left_out_negatives == 0 and made.dataset.conversion["negative_rate"] == 1
    some = td.convert_csv(text, tmp_path / "data", negative_rate=0.5, seed=3, **options)
    assert some.dataset.conversion["negative_rate"] == 0.5 and some.train_clicks == 100
    assert 90 < some.left_out_negatives < 210 and some.dataset.train.rows == 400 - some.left_out_negatives
    with pytest.raises(tc.ConfigError, match="option 'cross': expected one of the columns it can be for, found 'e'"):
        td.convert_csv(text, tmp_path / "data", **{**options, "cross": ["c+e"]})


def test_columns_share_keys(tmp_path):
    text = tmp_path / "a.csv"
    text.write_text("y,history,item\n1,a b,c\n0,c,a\n1,,b\n")
    options = dict(label="y", categorical=["history", "item"], list_separator=" ", lists="history", min_count=1,
                   test_every=0)
    for shared in ("history+item", ["history+item"]):
        made = td.convert_csv(text, tmp_path / "data", shared_keys=shared, replace=True, **options)
        assert [(slot.size, slot.first_key) for slot in made.dataset.schema.slots] == [(4, 0), (4, 0)]
        assert [(field.name, field.categories, field.values) for field in made.fields] == [("history+item", 3, 6)]
        batch = next(iter(made.dataset.batches(batch_size=3)))
        assert batch["keys"].keys.tolist() == [1, 2, 3, 3, 1, 2]
        # HugeCTR's array says it, too.
        sizes = made.dataset.schema.slot_size_array
        assert sizes == [0, 4]
        files = td.open_files("norm", train_list=tmp_path / "data/train.txt", label_dim=1, dense_dim=0,
                              nnz_per_slot=[2, 1], slot_size_array=sizes, key_type="i64")
        assert [(slot.size, slot.first_key) for slot in files.schema.slots] == [(4, 0), (4, 0)]
        assert td.verify_dataset(files) == []
    with pytest.raises(tc.ConfigError, match="option 'shared_keys': expected columns with '\\+' between them, found 'item'"):
        td.convert_csv(text, tmp_path / "other", shared_keys="item", **options)


def test_convert_movielens(tmp_path):
    rated = {user: [(user + 3 * k) % 40 for k in range(21)] for user in range(5)}
    source = tmp_path / "ratings.dat"
    source.write_text("".join(f"{user}::{item}::4::{k}\n" for user, items in rated.items()
                              for k, item in enumerate(items)))
    seen = []
    made = td.convert_movielens(source, tmp_path / "data", test_negatives=9, seed=2, progress=seen.append)
    assert (made.train_clicks, made.test_clicks) == (100, 5) and seen and all(0 <= share <= 1 for share in seen)
    assert made.dataset.format_options == {"key_type": "u32", "check_mode": "none"}
    assert [(slot.name, slot.size) for slot in made.dataset.schema.slots] == [("user", 5), ("item", 40)]
    items = (tmp_path / "data" / "items.txt").read_text().split()
    batch = next(iter(made.dataset.batches("test", batch_size=50, inputs={"keys": 2})))
    keys = np.asarray(batch["keys"].keys).reshape(5, 10, 2)
    for user in range(5):
        named = [int(items[key - 5]) for key in keys[user, :, 1]]
        assert named[0] == rated[user][-1] and not set(named[1:]) & set(rated[user]) and len(set(named)) == 10
    with pytest.raises(tc.DataError, match="ratings.txt: line 1: expected a rating"):
        (tmp_path / "ratings.txt").write_text("x")
        td.convert_movielens(tmp_path / "ratings.txt", tmp_path / "x")


def test_convert_criteo(tmp_path):
    draw = np.random.default_rng(0)
    text = tmp_path / "train.txt"
    text.write_text("".join("\t".join([str(i % 2), *map(str, draw.integers(0, 9, 13)),
                                       *(f"{k:08x}" for k in draw.integers(0, 4, 26))]) + "\n" for i in range(200)))
    made = td.convert_criteo(text, tmp_path / "data", test_every=4, min_count=1, dense="log")
    assert (made.dataset.train.rows, made.dataset.test.rows) == (150, 50)
    assert made.train_clicks + made.test_clicks == 100
    assert len(made.categories_seen) == len(made.dataset.schema.slots) == 26
    batch = next(iter(made.dataset.batches(inputs={"first": 13, "second": 13})))
    first = text.read_text().splitlines()[0].split("\t")
    assert tc.allclose(batch.dense[0], tc.tensor([float(v) for v in first[1:14]]).log1p())
    assert batch["second"].keys.shape == (150 * 13,)
    settings = {setting["name"]: setting["value"] for setting in made.dataset.conversion["settings"]}
    assert settings["recipe"] == "none"
    made = td.convert_criteo(text, tmp_path / "nvt", recipe="nvtabular", min_count=1)
    assert [slot.name for slot in made.dataset.schema.slots][:3] == ["C1_C2", "C3_C4", "C1"]
    assert made.dataset.schema.slots[0].size == 17 and made.dataset.valid.rows == 20
    assert made.dataset.conversion["dense_transform"] == "zscore"
    placed = td.convert_criteo(text, tmp_path / "placed", recipe="nvtabular", test_from="180", valid_from="150").dataset
    assert (placed.train.rows, placed.valid.rows, placed.test.rows) == (150, 30, 20)
    with pytest.raises(tc.ConfigError, match="recipe"):
        td.convert_criteo(text, tmp_path / "other", recipe="nvtabula")
