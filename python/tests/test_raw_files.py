"""Raw and RawAsync files that NumPy wrote, conversion between formats, and verify_dataset."""

import numpy as np
import pytest

import tercel as tc
import tercel.data as td

DCNV2_HOTNESS = [3, 2, 1, 2, 6, 1, 1, 1, 1, 7, 3, 8, 1, 6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1]


def batches(dataset, **options):
    """Labels, dense values and keys of the train part, as arrays."""
    with dataset.batches("train", **options) as reader:
        parts = [(b.labels.numpy().copy(), b.dense.numpy().copy(), b["keys"].keys.numpy().copy()) for b in reader]
    return [np.concatenate(arrays) for arrays in zip(*parts)]


def kaggle_rows(rows, seed=1):
    """Rows as HugeCTR's DLRM script writes them: 40 integers."""
    rng = np.random.default_rng(seed)
    record = np.dtype([("label", "<i4"), ("dense", "<i4", 13), ("keys", "<i4", 26)])
    assert record.itemsize == 160
    values = np.zeros(rows, record)
    values["label"] = rng.integers(0, 2, rows)
    values["dense"] = rng.integers(0, 10 ** rng.integers(1, 8, (rows, 13)))
    values["keys"] = rng.integers(0, 1000, (rows, 26))
    return values


def test_records_of_dlrms_kaggle_script(tmp_path):
    values = kaggle_rows(5000)
    path = tmp_path / "train_data.bin"
    values.tofile(path)
    dataset = td.open_files("raw", train=[str(path)], dense_dim=13, nnz_per_slot=[1] * 26)
    assert dataset.train.rows == 5000
    for workers in (1, 3):
        labels, dense, keys = batches(dataset, batch_size=777, num_workers=workers)
        assert np.array_equal(labels[:, 0], values["label"])
        expected = np.log(values["dense"].astype(np.float32) + np.float32(1))
        np.testing.assert_allclose(dense, expected, rtol=3e-7)
        assert np.array_equal(keys.reshape(5000, 26), values["keys"])
    sizes = [1000] * 26
    added = td.open_files("raw", train=[str(path)], dense_dim=13, nnz_per_slot=[1] * 26, slot_size_array=sizes,
                          slot_offsets="add", num_samples=10)
    assert np.array_equal(batches(added)[2].reshape(10, 26), values["keys"][:10] + 1000 * np.arange(26))


def test_records_of_mlperfs_dlrm_dcnv2(tmp_path):
    rng = np.random.default_rng(2)
    record = np.dtype([("label", "<i4"), ("dense", "<f4", 13), ("keys", "<i4", sum(DCNV2_HOTNESS))])
    assert record.itemsize == 912
    values = np.zeros(3000, record)
    values["label"] = rng.integers(0, 2, 3000)
    values["dense"] = rng.normal(size=(3000, 13))
    values["keys"] = rng.integers(0, 2 ** 31, (3000, 214))
    values.tofile(tmp_path / "train_data.bin")
    dataset = td.open_files("rawasync", train=[str(tmp_path / "train_data.bin")], dense_dim=13,
                            nnz_per_slot=DCNV2_HOTNESS)
    labels, dense, keys = batches(dataset, num_workers=4)
    assert np.array_equal(labels[:, 0], values["label"])
    assert np.array_equal(dense, values["dense"])
    assert np.array_equal(keys.reshape(3000, 214), values["keys"])


@pytest.mark.parametrize("width", ["u32", "i64"])
@pytest.mark.parametrize("is_float", [True, False])
def test_files_are_written_as_numpy_writes_them(tmp_path, width, is_float):
    source = td.generate(tmp_path / "norm", rows=2000, preset="small").dataset
    if not is_float:
        values = kaggle_rows(2000)
        values["dense"] %= 100000
        values.tofile(tmp_path / "in.bin")
        source = td.open_files("raw", train=[str(tmp_path / "in.bin")], dense_dim=13, nnz_per_slot=[1] * 26)
    labels, dense, keys = batches(source)
    made = td.convert_dataset(source, tmp_path / "async", "rawasync", key_type=width, is_dense_float=is_float)
    assert made.format == "rawasync" and made.format_options["key_type"] == width
    dim, slots = dense.shape[1], keys.size // len(labels)
    record = np.dtype([("label", "<i4"), ("dense", "<f4" if is_float else "<i4", dim),
                       ("keys", "<u4" if width == "u32" else "<i8", slots)])
    found = np.concatenate([np.fromfile(file.path, record) for file in made.train.files])
    assert np.array_equal(found["label"], labels[:, 0])
    assert np.array_equal(found["dense"], dense if is_float else values["dense"])
    assert np.array_equal(found["keys"], keys.reshape(-1, slots))


def test_files_of_the_wrong_generator_are_named(tmp_path):
    # DataGenerator(format=Raw, float_label_dense=True)
    values = np.zeros((100, 4), "<f4")
    values[:, 0] = np.arange(100) % 2
    values[:, 1] = np.arange(100) / 8
    path = tmp_path / "gen.bin"
    values.tofile(path)
    common = dict(train=[str(path)], dense_dim=1, nnz_per_slot=[1, 1])
    with pytest.raises(tc.DataError, match=r"label 0 as i32, found 1065353216 \(the bits of the float 1: written with f32"):
        td.open_files("rawasync", **common)
    with pytest.raises(tc.DataError, match="written with float_label_dense"):
        td.open_files("raw", **common)
    assert td.open_files("raw", float_label_dense=True, **common).train.rows == 100
    with pytest.raises(tc.DataError, match="expected a multiple of 12 bytes"):
        td.open_files("raw", float_label_dense=True, **{**common, "nnz_per_slot": [1]}, num_samples=100)


def test_conversion_there_and_back(tmp_path):
    source = td.generate(tmp_path / "norm", rows=3000, preset="small", files=3, check_mode="none").dataset
    calls = []
    raw = td.convert_dataset(source, tmp_path / "raw", "raw", slot_offsets="add",
                             progress=lambda rows, of: calls.append((rows, of)))
    assert calls[-1] == (3000, 3000)
    assert [file.rows for file in raw.train.files] == [file.rows for file in source.train.files]
    back = td.convert_dataset(raw, tmp_path / "back", "norm")
    assert back.format_options == source.format_options
    assert [file.checksum for file in back.train.files] == [file.checksum for file in source.train.files]
    assert back.train.truth == source.train.truth
    assert td.open_dataset(tmp_path / "back").train == back.train
    with pytest.raises(tc.DataError, match="the format raw cannot hold it"):
        td.convert_dataset(source, tmp_path / "integers", "raw", float_label_dense=False)
    assert not (tmp_path / "integers").exists()
    with pytest.raises(tc.ConfigError, match="unknown format 'rwa'"):
        td.convert_dataset(source, tmp_path / "x", "rwa")
    with pytest.raises(TypeError, match="source: expected a Dataset"):
        td.convert_dataset("norm", tmp_path / "x", "raw")

    def stop(rows, of):
        raise KeyError("stop")

    with pytest.raises(KeyError):
        td.convert_dataset(source, tmp_path / "stopped", "raw", progress=stop)
    assert not (tmp_path / "stopped").exists()


def test_verify(tmp_path):
    dataset = td.generate(tmp_path / "data", rows=500, preset="small").dataset
    calls = []
    assert td.verify_dataset(dataset, progress=lambda done, of: calls.append((done, of))) == []
    assert calls[-1][0] == calls[-1][1] > 0
    path = dataset.train.files[0].path
    content = bytearray(open(path, "rb").read())
    for at in (100, len(content) - 10):
        content[at] ^= 1
    open(path, "wb").write(content)
    assert len(td.verify_dataset(dataset)) == 1
    faults = td.verify_dataset(dataset, max_faults=100)
    assert len(faults) == 3 and "record 0: " in faults[0] and "record 449: " in faults[1] and "XXH3" in faults[2]
    with pytest.raises(TypeError, match="dataset: expected a Dataset"):
        td.verify_dataset(str(tmp_path / "data"))
