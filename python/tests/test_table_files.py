"""Vectors of embedding tables in files: out of a session, and into one."""

import math

import numpy as np
import pytest

import tercel as tc
import tercel.data as td
import tercel.recsys as tr


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return td.generate(tmp_path_factory.mktemp("tables") / "data", rows=1500, preset="small", seed=1).dataset


def session_of(dataset, **solver):
    return tr.Session("dlrm", dataset, solver={"batchsize": 100, **solver})


@pytest.mark.parametrize("suffix", ["npz", "npy", "parquet"])
def test_tables_out_and_in(dataset, tmp_path, suffix):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    session = session_of(dataset)
    for _ in range(3):
        session.step()
    path = tmp_path / f"vectors.{suffix}"
    (name,) = session.tables()
    keys, vectors = session.table_rows(name)
    assert session.dump_table(name, path) == keys.shape[0] == session.tables()[name].shape[0]
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    other = session_of(dataset, seed=9)
    assert not tc.equal(other.table_rows(name)[1], vectors)
    assert other.load_table(name, path) == keys.shape[0]
    assert all(tc.equal(a, b) for a, b in zip(other.table_rows(name), (keys, vectors)))
    other.freeze(name)
    other.step()
    assert tc.equal(other.table_rows(name)[1], vectors)
    other.unfreeze(name)
    assert other.load_table(name, (np.array([3], dtype=np.int32), np.zeros((1, vectors.shape[1])))) == 1
    assert other.table_rows(name)[1][3].abs().sum() == 0
    other.step()
    other.forward_backward(next(iter(other.batches(dataset))))
    with pytest.raises(RuntimeError, match="load_table: within a step"):
        other.load_table(name, path)
    other.discard()


def test_tables_of_other_programs(dataset, tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq
    session = session_of(dataset)
    (name,) = session.tables()
    width = session.tables()[name].shape[1]
    path = str(tmp_path / "table.parquet")
    rows = [[0.25] * width, [0.5] * width]

    def write(**columns):
        pq.write_table(pa.table(columns), path)

    write(extra=pa.array([1, 2]), key=pa.array([4, 2], pa.uint32()), vector=pa.array(rows, pa.list_(pa.float64())))
    assert session.load_table(name, path) == 2
    assert session.table_rows(name)[1][2][0] == 0.5 and session.table_rows(name)[1][4][0] == 0.25
    before = session.table_rows(name)[1]
    for error, match, columns in [
            (tc.DataError, "expected 'key' and 'vector', found 'key'", {"key": pa.array([1])}),
            (tc.DataError, "expected integers, found string", {"key": pa.array(["a"]), "vector": pa.array(rows[:1])}),
            (tc.DataError, "expected lists of float, found list<.*int64>",
             {"key": pa.array([1]), "vector": pa.array([[1]])}),
            (tc.DataError, "nulls", {"key": pa.array([1, None]), "vector": pa.array(rows)}),
            (tc.DataError, "row 1: a vector of 1 numbers",
             {"key": pa.array([1, 2]), "vector": pa.array([rows[0], [0.5]])}),
            (tc.DataError, "column 'key'", {"key": pa.array([2**63], pa.uint64()), "vector": pa.array(rows[:1])}),
            (ValueError, r"expected vectors \[2, ", {"key": pa.array([1, 2]), "vector": pa.array([[0.5], [0.5]])}),
            (ValueError, "key 1 occurs twice", {"key": pa.array([1, 1]), "vector": pa.array(rows)}),
            (ValueError, "vector of key 2 has nan",
             {"key": pa.array([1, 2]), "vector": pa.array([rows[0], [math.nan] * width])}),
            (IndexError, name, {"key": pa.array([1, 10**9]), "vector": pa.array(rows)})]:
        write(**columns)
        with pytest.raises(error, match=match):
            session.load_table(name, path)
    (tmp_path / "table.parquet").write_bytes(b"PAR1 damaged")
    with pytest.raises(tc.DataError, match="table.parquet"):
        session.load_table(name, path)
    with pytest.raises(tc.IoError, match="missing.parquet"):
        session.load_table(name, tmp_path / "missing.parquet")
    with pytest.raises(ValueError, match=r"ends in \.parquet, \.npz or \.npy"):
        session.dump_table(name, tmp_path / "table.csv")
    with pytest.raises(tc.ConfigError, match="did you mean"):
        session.load_table(name + "s", session.table_rows(name))
    with pytest.raises(TypeError, match="name of a file, or keys and vectors"):
        session.load_table(name, 3)
    assert tc.equal(session.table_rows(name)[1], before)


def test_records_of_other_programs(dataset, tmp_path):
    session = session_of(dataset)
    (name,) = session.tables()
    width = session.tables()[name].shape[1]
    path = tmp_path / "table.npy"

    def records(key, vector, count=2):
        made = np.zeros(count, [("extra", "i1"), ("key", key), ("vector", *vector)])
        made["key"] = [4, 2][:count] if made["key"].dtype.kind in "iu" else made["key"]
        made["vector"] = 0.25
        return made

    np.save(path, records(">u4", (">f8", (width,))))  # packed, and of the other byte order
    assert session.load_table(name, path) == 2
    before = session.table_rows(name)[1]
    assert before[4].tolist() == before[2].tolist() == [0.25] * width
    for match, made in [
            ("expected 'key' and 'vector', found 'key'", np.zeros(2, [("key", "i8")])),
            ("expected 'key' and 'vector', found nothing", np.zeros((2, 3))),
            ("field 'key': expected an integer", records("f4", ("f4", (width,)))),
            ("field 'key': expected an integer", records("i8", ("f4", (width,))).reshape(2, 1)),
            ("field 'vector': expected a list of floats", records("i8", ("i4", (width,)))),
            ("field 'vector': expected a list of floats", records("i8", ("f4", ()))),
            ("Object arrays cannot be loaded", np.array([{}]))]:
        np.save(path, made)
        with pytest.raises(tc.DataError, match=match):
            session.load_table(name, path)
    large = records("u8", ("f4", (width,)))
    large["key"] = 2**63
    np.save(path, large)
    with pytest.raises(tc.DataError, match="keys that fit in int64"):
        session.load_table(name, path)
    for damaged in (b"", b"\x93NUMPY damaged", path.read_bytes()[:-5]):
        path.write_bytes(damaged)
        with pytest.raises(tc.DataError, match="table.npy"):
            session.load_table(name, path)
    with pytest.raises(tc.IoError, match="missing.npy"):
        session.load_table(name, tmp_path / "missing.npy")
    assert tc.equal(session.table_rows(name)[1], before)
