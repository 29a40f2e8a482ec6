"""Datasets of Norm files for tests: rows drawn at random, their bytes, and what batches hold of them."""

import struct

import numpy as np
import pytest

import tercel as tc
import tercel.data as td

LABELS, DENSE = 2, 3
HOTNESS = (1, 3, 2)
SIZES = (50, 40, 1000)


class Rows:
    """Rows drawn at random; bag (row, slot) has the keys keys[row][slot]."""

    def __init__(self, count, seed=0, ragged=True):
        draw = np.random.default_rng(seed)
        self.labels = draw.integers(0, 2, (count, LABELS)).astype("f4")
        self.dense = draw.random((count, DENSE), "f4")
        first = np.cumsum((0, *SIZES))
        self.keys = [[(first[s] + draw.integers(0, size, draw.integers(0, hot + 1) if ragged else hot)).tolist()
                      for s, (size, hot) in enumerate(zip(SIZES, HOTNESS))] for _ in range(count)]

    def __len__(self):
        return len(self.keys)


def norm_bytes(rows, begin, end, key, check):
    """A Norm file of some rows; `key` is "I" or "q"."""
    def frame(payload):
        return struct.pack("<i", len(payload)) + payload + bytes([sum(payload) % 256]) if check else payload

    out = [frame(struct.pack("<8q", check, end - begin, LABELS, DENSE, len(SIZES), 0, 0, 0))]
    for r in range(begin, end):
        record = rows.labels[r].tobytes() + rows.dense[r].tobytes()
        for bag in rows.keys[r]:
            record += struct.pack(f"<i{len(bag)}{key}", len(bag), *bag)
        out.append(frame(record))
    return b"".join(out)


def write_files(folder, rows, cuts, key="q", check=True, name="train"):
    """Files of the rows between the cuts, and their list, whose path is returned."""
    names = []
    for begin, end in zip((0, *cuts), (*cuts, len(rows))):
        names.append(f"{name}-{begin}.data")
        (folder / names[-1]).write_bytes(norm_bytes(rows, begin, end, key, check))
    path = folder / f"{name}.txt"
    path.write_text("\n".join([str(len(names)), *names]) + "\n")
    return path


def spec(train, **others):
    return {"train_list": train, "label_dim": LABELS, "dense_dim": DENSE, "nnz_per_slot": HOTNESS,
            "slot_size_array": SIZES, "key_type": "i64", "check_mode": "sum", **others}


@pytest.fixture(scope="module")
def rows():
    return Rows(700)


@pytest.fixture(scope="module")
def dataset(rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("norm")
    test = write_files(folder, Rows(90, seed=1), (), name="test")
    return td.open_files("norm", **spec(write_files(folder, rows, (300, 400)), test_list=test))


def bags_of(sparse, rows):
    """Keys of bag (row, slot) as lists, from the tensors."""
    offsets, keys = sparse.row_offsets.tolist(), sparse.keys.tolist()
    bags = [keys[a:b] for a, b in zip(offsets, offsets[1:])]
    assert len(bags) == rows * sparse.slot_num and offsets[-1] == len(keys)
    if sparse.bag_order == "slot_major":
        return [[bags[s * rows + r] for s in range(sparse.slot_num)] for r in range(rows)]
    return [bags[r * sparse.slot_num:(r + 1) * sparse.slot_num] for r in range(rows)]


def joined(batches):
    """(labels, dense, bags) of all rows."""
    labels, dense, keys = [], [], []
    for b in batches:
        assert b.labels.shape == (b.rows, LABELS) and b.dense.shape == (b.rows, DENSE)
        assert b.labels.dtype == b.dense.dtype == tc.float32
        labels += b.labels.tolist()
        dense += b.dense.tolist()
        inputs = [bags_of(sparse, b.rows) for sparse in b.inputs.values()]
        keys += [sum((bags[r] for bags in inputs), []) for r in range(b.rows)]
    return labels, dense, keys


def given(rows, order=None):
    order = range(len(rows)) if order is None else order
    return ([rows.labels[r].tolist() for r in order], [rows.dense[r].tolist() for r in order],
            [rows.keys[r] for r in order])


def order_of(batches, rows):
    """The numbers of the rows, by their dense values, which differ."""
    number = {tuple(values): r for r, values in enumerate(rows.dense.tolist())}
    assert len(number) == len(rows)
    return [number[tuple(values)] for values in joined(batches)[1]]
