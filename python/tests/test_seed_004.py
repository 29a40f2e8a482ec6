"""The program of document 004 that writes a Norm file, and what is read of it."""

import struct

import numpy as np

import tercel.data as td


def write_norm(path, rows):
    """The bytes that the document's writer makes of rows of user, item and label: no check, a dense value of 0."""
    with open(path, "wb") as file:
        file.write(struct.pack("<8q", 0, len(rows), 1, 1, 2, 0, 0, 0))
        for user, item, label in rows.tolist():
            file.write(struct.pack("<ffiIiI", label, 0, 1, user, 1, item))


def test_the_ncf_writer(tmp_path):
    draw = np.random.default_rng(0)
    data = np.stack([draw.integers(0, 100, 500), draw.integers(100, 300, 500), draw.integers(0, 2, 500)], axis=1)
    write_norm(tmp_path / "huge_ctr_data.dat", data)
    (tmp_path / "list.txt").write_text("1\nhuge_ctr_data.dat\n")
    dataset = td.open_files("norm", train_list=tmp_path / "list.txt", dense_dim=1, nnz_per_slot=[1, 1],
                            key_type="u32", check_mode="none")
    with dataset.batches("train", batch_size=64) as reader:
        batches = list(reader)
    np.testing.assert_array_equal(np.concatenate([b.labels.numpy()[:, 0] for b in batches]), data[:, 2])
    keys = np.concatenate([b["keys"].keys.numpy() for b in batches]).reshape(-1, 2)
    np.testing.assert_array_equal(keys, data[:, :2])
