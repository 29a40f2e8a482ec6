"""hugectr.tools.DataGenerator: files byte by byte, by a reader of the test's own, and the truth that is planted."""

import json
import struct

import numpy as np
import pytest

import tercel as tc
import tercel.data as td
import tercel.hugectr as hugectr
from tercel.hugectr.tools import DataGenerator, DataGeneratorParams

Format = hugectr.DataReaderType_t


def generate(folder, format, logit=None, **options):
    defaults = dict(label_dim=1, dense_dim=2, num_slot=3, i64_input_key=True, slot_size_array=[5, 20, 30],
                    num_files=2, eval_num_files=1, num_samples_per_file=300, num_samples=500, eval_num_samples=200,
                    source=str(folder / "list.txt"), eval_source=str(folder / "eval.txt"))
    generator = DataGenerator(DataGeneratorParams(format, **{**defaults, **options}), logit)
    generator.generate()
    return generator


def norm_records(path, label_dim, dense_dim, slots, key, check):
    """(labels, dense, keys of each slot) of each record; everything that a file says is checked."""
    content, at = path.read_bytes(), 0

    def block(size):
        nonlocal at
        if check:
            assert struct.unpack_from("<i", content, at) == (size,)
            payload = content[at + 4:at + 4 + size]
            assert content[at + 4 + size] == sum(payload) % 256
            at += size + 5
        else:
            payload = content[at:at + size]
            at += size
        return payload

    error_check, rows, *dims = struct.unpack("<8q", block(64))
    assert error_check == int(check) and dims == [label_dim, dense_dim, len(slots), 0, 0, 0]
    size = 4 * (label_dim + dense_dim) + sum(4 + n * struct.calcsize(key) for n in slots)
    out = []
    for _ in range(rows):
        payload = block(size)
        values = struct.unpack_from(f"<{label_dim + dense_dim}f", payload)
        offset, keys = 4 * (label_dim + dense_dim), []
        for nnz in slots:
            assert struct.unpack_from("<i", payload, offset) == (nnz,)
            keys.append(struct.unpack_from(f"<{nnz}{key}", payload, offset + 4))
            offset += 4 + nnz * struct.calcsize(key)
        out.append((values[:label_dim], values[label_dim:], keys))
    assert at == len(content)
    return out


@pytest.mark.parametrize("check", [hugectr.Check_t.Sum, hugectr.Check_t.Non])
@pytest.mark.parametrize("wide", [True, False])
def test_norm_files(tmp_path, check, wide):
    generate(tmp_path, Format.Norm, check_type=check, i64_input_key=wide, nnz_array=[1, 2, 1])
    lines = (tmp_path / "list.txt").read_text().split()
    assert lines[0] == "2" and lines[1:] == [str(tmp_path / f"train/gen_{i}.data") for i in range(2)]
    framed = check is hugectr.Check_t.Sum
    rows = norm_records(tmp_path / "train/gen_1.data", 1, 2, [1, 2, 1], "q" if wide else "I", framed)
    assert len(rows) == 300
    for labels, dense, keys in rows:
        assert labels[0] in (0, 1) and all(0 <= value < 1 for value in dense)
        for of, first, size in zip(keys, (0, 5, 25), (5, 20, 30)):  # they continue from slot to slot
            assert all(first <= key < first + size for key in of)
    assert len({keys[2] for _, _, keys in rows}) > 10


def test_raw_files(tmp_path):
    generate(tmp_path, Format.Raw, i64_input_key=False)
    rows = np.fromfile(tmp_path / "list.txt", "<i4").reshape(-1, 6)
    assert len(rows) == 500 and set(rows[:, 0]) == {0, 1} and rows[:, 1:3].min() >= 0
    assert (rows[:, 3:] < [5, 20, 30]).all() and rows[:, 3:].min() == 0
    generate(tmp_path, Format.Raw, i64_input_key=False, float_label_dense=True)
    assert set(np.fromfile(tmp_path / "list.txt", "<f4").reshape(-1, 6)[:, 0]) == {0, 1}


def test_rawasync_files(tmp_path):
    generate(tmp_path, Format.RawAsync, i64_input_key=True, nnz_array=[1, 3, 1], float_label_dense=True)
    record = np.dtype([("label", "<i4"), ("dense", "<f4", 2), ("keys", "<i8", 5)])
    rows = np.fromfile(tmp_path / "list.txt", record)
    assert len(rows) == 500 and set(rows["label"]) == {0, 1} and (rows["keys"][:, 1:4] < 20).all()


def test_parquet_files(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    generate(tmp_path, Format.Parquet, nnz_array=[1, 2, 1], label_dim=2)
    metadata = json.loads((tmp_path / "train/_metadata.json").read_text())
    assert [part["index"] for group in ("labels", "conts", "cats") for part in metadata[group]] == list(range(7))
    table = pq.read_table(tmp_path / "train/gen_0.parquet")
    assert table.column_names == ["label0", "label1", "C0", "C1", "C2", "C3", "C4"] and table.num_rows == 300
    assert all(len(row) == 2 and max(row) < 20 for row in table["C3"].to_pylist())
    assert metadata["file_stats"][0] == {"file_name": "gen_0.parquet", "num_rows": 300}


def test_the_same_arguments_give_the_same_rows(tmp_path):
    for name in ("a", "b"):
        generate(tmp_path / name, Format.Norm)
    first, second = ((tmp_path / name / "train/gen_1.data").read_bytes() for name in ("a", "b"))
    assert first == second != (tmp_path / "a/val/gen_0.data").read_bytes()


def test_a_linear_model_finds_the_truth(tmp_path):
    generator = generate(tmp_path, Format.Norm, num_samples_per_file=4000)
    sizes = [5, 20, 30]
    dataset = td.open_files("norm", train_list=str(tmp_path / "list.txt"), test_list=str(tmp_path / "eval.txt"),
                            dense_dim=2, nnz_per_slot=[1] * 3, slot_size_array=sizes, key_type="i64")
    rows = {part: [(b.labels.numpy()[:, 0], b.dense.numpy(), b["keys"].keys.numpy().reshape(-1, 3))
                   for b in dataset.batches(part, batch_size=10000)] for part in ("train", "test")}

    def features(part):
        labels, dense, keys = rows[part][0]
        return labels, np.concatenate([dense, *(np.eye(55)[keys[:, i]] for i in range(3))], axis=1)

    labels, x = features("train")
    weights = np.linalg.lstsq(x, labels, rcond=None)[0]
    labels, x = features("test")
    scores = x @ weights
    order = np.argsort(scores)
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    n = labels.sum()
    auc = (ranks[labels > 0].sum() - n * (n + 1) / 2) / (n * (len(labels) - n))
    assert generator.true_auc["eval"] > 0.75
    assert auc - 0.5 > 0.95 * (generator.true_auc["eval"] - 0.5)


def test_labels_of_a_given_truth(tmp_path):
    seen = []

    def odd(dense, keys):
        """Label 1 is whether the sum of the second slot's keys is odd, label 0 whether it is even."""
        seen.append((dense, keys))
        return np.where(keys[1].sum(axis=1, keepdims=True) % 2, [-800.0, 800.0], [800.0, -800.0])

    generator = generate(tmp_path, Format.Norm, odd, label_dim=2, nnz_array=[1, 2, 1])
    assert [(dense.shape, [of.shape for of in keys]) for dense, keys in seen] == [
        ((300, 2), [(300, 1), (300, 2), (300, 1)])] * 3
    assert all(0 <= of.min() and of.max() < size for _, keys in seen for of, size in zip(keys, (5, 20, 30)))
    for labels, _, keys in norm_records(tmp_path / "train/gen_0.data", 2, 2, [1, 2, 1], "q", True):
        assert labels == (1 - sum(keys[1]) % 2, sum(keys[1]) % 2)  # in the file two keys begin at 5 each
    assert generator.true_auc == {"train": 1, "eval": 1}


def test_one_truth_of_all_labels_from_the_dense_values_of_the_file(tmp_path):
    generate(tmp_path, Format.Raw, lambda dense, keys: np.where(dense[:, 0] > 9, 50, -50), label_dim=2)
    rows = np.fromfile(tmp_path / "list.txt", "<i4").reshape(-1, 7)
    assert (rows[:, :2] == (rows[:, 2:3] > 9)).all() and 0 < rows[:, 0].mean() < 1


@pytest.mark.parametrize("logit, text", [
    (lambda dense, keys: np.zeros(7), r"logit: expected an array of shape \(300,\) or \(300, 2\), found \(7,\)"),
    (lambda dense, keys: np.zeros((300, 1)), r"logit: .* or \(300, 2\), found \(300, 1\)"),
    (lambda dense, keys: 1.0, r"logit: .*, found \(\)"),
    (lambda dense, keys: np.log(np.arange(300) != 4), "logit: expected finite numbers, found -inf in row 4")])
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_mistakes_of_a_given_truth(tmp_path, logit, text):
    with pytest.raises(tc.ConfigError, match=text):
        generate(tmp_path, Format.Norm, logit, label_dim=2)


@pytest.mark.parametrize("law, first", [(hugectr.PowerLaw_t.Long, 0.1), (hugectr.PowerLaw_t.Short, 0.3)])
def test_keys_follow_a_power_law(tmp_path, law, first):
    generate(tmp_path, Format.Raw, i64_input_key=False, power_law_type=law, slot_size_array=[1000] * 3,
             num_samples=3000)
    keys = np.fromfile(tmp_path / "list.txt", "<i4").reshape(-1, 6)[:, 3:]
    share = np.mean(keys < 10)
    generate(tmp_path, Format.Raw, i64_input_key=False, dist_type=hugectr.Distribution_t.Uniform,
             slot_size_array=[1000] * 3, num_samples=3000)
    uniform = np.mean(np.fromfile(tmp_path / "list.txt", "<i4").reshape(-1, 6)[:, 3:] < 10)
    assert share > first > uniform


@pytest.mark.parametrize("options, text", [
    (dict(slot_size_array=[5]), "DataGeneratorParams: slot_size_array: expected 3 numbers of at least 1"),
    (dict(nnz_array=[1, 0, 1]), "DataGeneratorParams: nnz_array: expected 3 numbers"),
    (dict(label_dim=0), "DataGeneratorParams: label_dim: expected at least 1, found 0")])
def test_mistakes(tmp_path, options, text):
    with pytest.raises(tc.ConfigError, match=text):
        generate(tmp_path, Format.Norm, **options)
    with pytest.raises(TypeError, match="format: expected one of DataReaderType_t.Norm"):
        generate(tmp_path, "Norm")
