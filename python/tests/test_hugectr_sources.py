"""The files that HugeCTR's scripts name: Norm, Raw, RawAsync and Parquet, with their offsets of keys."""

import numpy as np
import pytest

import tercel as tc
import tercel.hugectr as hugectr
from hugectr_models import SIZES, Format, generate, local, model_of, reader_of


def first_batch(model):
    assert model.train()
    return model._last[hugectr.Tensor_t.Train]


def keys_of(batch):
    return batch["keys"].keys.numpy().reshape(-1, 3)


def test_parquet_keys_are_offset_by_slot_size_array(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    generate(tmp_path, Format.Parquet)
    table = pq.read_table(tmp_path / "train/gen_0.parquet")
    columns = np.stack([table[f"C{i}"].to_numpy() for i in (2, 3, 4)], axis=1)
    for sizes, offsets in ((SIZES, [0, 5, 25]), ([0, 20, 30], [0, 0, 20])):
        reader = reader_of(tmp_path, Format.Parquet, slot_size_array=sizes)
        model = model_of(tmp_path, reader=reader, embedding={"slot_size_array": []})
        model.compile()
        batch = first_batch(model)
        assert np.array_equal(keys_of(batch), columns[:100] + offsets)
        assert np.array_equal(batch.labels.numpy()[:, 0], table["label0"].to_numpy()[:100])
        assert np.array_equal(batch.dense.numpy()[:, 1], table["C1"].to_numpy()[:100])
        assert model.session.tables()["emb"].shape[0] == sum(sizes)


def test_parquet_needs_its_metadata(tmp_path):
    pytest.importorskip("pyarrow")
    generate(tmp_path, Format.Parquet)
    (tmp_path / "train/_metadata.json").unlink()
    with pytest.raises((tc.IoError, tc.ConfigError), match="_metadata.json|label"):
        model_of(tmp_path, reader=reader_of(tmp_path, Format.Parquet)).compile()


@pytest.mark.parametrize("offset", [True, False])
def test_raw_keys_of_tables_without_a_hash(tmp_path, offset, capsys):
    generate(tmp_path, Format.Raw, i64_input_key=False)
    starts = np.array([0, 5, 25])
    rows = np.fromfile(tmp_path / "list.txt", "<i4").reshape(-1, 6)
    if offset:  # as HugeCTR's reader expects them
        for name in ("list.txt", "eval.txt"):
            values = np.fromfile(tmp_path / name, "<i4").reshape(-1, 6)
            values[:, 3:] += starts.astype("<i4")
            values.tofile(tmp_path / name)
    model = model_of(tmp_path, reader=reader_of(tmp_path, Format.Raw, num_samples=500), solver={"i64_input_key": False},
                     embedding={"embedding_type": hugectr.Embedding_t.LocalizedSlotSparseEmbeddingOneHot})
    model.compile()
    assert ("keys begin at 0 in every slot" in capsys.readouterr().out) is not offset
    batch = first_batch(model)
    assert np.array_equal(keys_of(batch), rows[:100, 3:] + starts)
    assert np.allclose(batch.dense.numpy(), np.log(rows[:100, 1:3] + 1.0), rtol=1e-6)
    assert model.get_data_reader_train().rows() == 500 and model.session.tables()["emb"].shape[0] == 55


def test_keys_of_hashed_tables_are_as_in_the_files(tmp_path):
    generate(tmp_path, Format.Raw, i64_input_key=False, float_label_dense=True)
    reader = reader_of(tmp_path, Format.Raw, float_label_dense=True)
    model = model_of(tmp_path, reader=reader, solver={"i64_input_key": False},
                     embedding={"slot_size_array": [], "workspace_size_per_gpu_in_mb": 1})
    model.compile()
    record = np.dtype([("values", "<f4", 3), ("keys", "<i4", 3)])
    rows = np.fromfile(tmp_path / "list.txt", record)
    assert np.array_equal(keys_of(first_batch(model)), rows["keys"][:100])


def test_every_gpu_has_a_workspace(tmp_path):
    generate(tmp_path, Format.Raw, i64_input_key=False, float_label_dense=True)
    for gpus in ([[0]], [[0, 1], [0]]):
        model = model_of(tmp_path, reader=reader_of(tmp_path, Format.Raw, float_label_dense=True),
                         solver={"i64_input_key": False, "vvgpu": gpus},
                         embedding={"slot_size_array": [], "workspace_size_per_gpu_in_mb": 1})
        model.compile()
        count = sum(map(len, gpus))
        assert model._tables["emb"].rows == count * 2**20 // (4 * 4)
        assert model._engine[1]["sparse_embedding_hparam"]["workspace_size_per_gpu_in_mb"] == count
        assert model.layers[1]["sparse_embedding_hparam"]["workspace_size_per_gpu_in_mb"] == 1


@pytest.mark.parametrize("wide, shuffle", [(True, False), (False, True)])
def test_rawasync(tmp_path, wide, shuffle):
    generate(tmp_path, Format.RawAsync, i64_input_key=wide, float_label_dense=True)
    param = hugectr.AsyncParam(1, 2, shuffle=shuffle, multi_hot_reader=True)
    reader = reader_of(tmp_path, Format.RawAsync, async_param=param)
    model = model_of(tmp_path, reader=reader, solver={"i64_input_key": wide}, optimizer=local("AdaGrad"))
    model.compile()
    record = np.dtype([("label", "<i4"), ("dense", "<f4", 2), ("keys", "<i8" if wide else "<u4", 3)])
    rows = np.fromfile(tmp_path / "list.txt", record)
    batches = []
    for _ in range(6):
        batches.append(keys_of(first_batch(model)).copy())
    expected = [rows["keys"][start:start + 100].astype(np.int64) for start in range(0, 600, 100)]
    order = [next(i for i, b in enumerate(expected) if np.array_equal(a, b)) for a in batches]
    assert sorted(order) == list(range(6)) and (order != sorted(order)) is shuffle


def test_the_reader_before_multi_hot_has_integers(tmp_path):
    generate(tmp_path, Format.RawAsync, i64_input_key=False)
    param = hugectr.AsyncParam(32, 4, 552960, 2, 512, False, hugectr.Alignment_t.Auto)
    model = model_of(tmp_path, reader=reader_of(tmp_path, Format.RawAsync, async_param=param),
                     solver={"i64_input_key": False},
                     embedding={"embedding_type": hugectr.Embedding_t.HybridSparseEmbedding,
                                "hybrid_embedding_param": hugectr.HybridEmbeddingParam()})
    model.compile()
    rows = np.fromfile(tmp_path / "list.txt", "<i4").reshape(-1, 6)
    assert np.allclose(first_batch(model).dense.numpy(), np.log(rows[:100, 1:3] + 1.0), rtol=1e-6)


def test_a_key_outside_the_table_names_file_and_record(tmp_path):
    generate(tmp_path)
    model = model_of(tmp_path, embedding={"slot_size_array": [5, 20, 3]})
    model.compile()
    with pytest.raises(tc.DataError, match=r"gen_0.data: record \d+: .*'emb'"):
        for _ in range(6):
            model.train()


def test_labels_that_are_not_binary_are_read(tmp_path):
    generate(tmp_path)
    import struct

    path = tmp_path / "train/gen_0.data"  # a label of 0.25 in the first record; its sum of bytes follows
    content = bytearray(path.read_bytes())
    size = struct.unpack_from("<i", content, 69)[0]
    struct.pack_into("<f", content, 73, 0.25)
    content[73 + size] = sum(content[73:73 + size]) % 256
    path.write_bytes(bytes(content))
    model = model_of(tmp_path)
    model.compile()
    assert first_batch(model).labels[0, 0] == 0.25
