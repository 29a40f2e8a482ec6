"""What reading Parquet files may hold in memory, which TERCEL_ARROW_MEMORY limits."""

import os
import subprocess
import sys

import pytest

pa = pytest.importorskip("pyarrow")

START = """
import sys
import numpy as np
import pyarrow as pa, pyarrow.parquet as pq
import tercel as tc, tercel.data as td

def write(path, rows, add=0, keys=1):
    numbers = np.arange(rows)
    columns = {"click": (numbers % 2).astype("f4"), "age": (numbers % 5 + add).astype("f4")}
    columns.update({f"k{i}": numbers % (7 + i) for i in range(keys)})
    pq.write_table(pa.table(columns), path, row_group_size=rows)

def peak_kib():
    # Of this program alone: ru_maxrss counts that of the parent before it too.
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))

def describe(path, keys=1):
    return td.open_files("parquet", train=[path], label=["click"], dense=["age"],
                         categorical=[f"k{i}" for i in range(keys)])
"""


def run(program, path, limit=None):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    if limit:
        environment["TERCEL_ARROW_MEMORY"] = str(limit)
    result = subprocess.run([sys.executable, "-c", START + program, str(path)], env=environment, capture_output=True,
                            text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


def test_a_row_group_beyond_the_limit_is_read_in_pieces(tmp_path):
    found = run("""
write(sys.argv[1], 1000000)
dataset = describe(sys.argv[1])
for options in ({}, {"num_workers": 4}, {"shuffle": True}):
    total = np.zeros(3)
    for batch in dataset.batches("train", batch_size=10000, **options):
        total += batch.labels.sum().item(), batch.dense.sum().item(), batch["keys"].keys.sum().item()
    print(*total.astype(int))
""", tmp_path / "a.parquet", limit=24 << 20)
    numbers = [500000, 2000000, sum(i % 7 for i in range(1000000))]
    assert found == [str(number) for number in 3 * numbers]


def test_a_file_that_is_replaced_between_pieces_is_noticed(tmp_path):
    found = run("""
import os
write(sys.argv[1], 2000000)
write(sys.argv[1] + ".new", 2000000, add=100)
reader = iter(describe(sys.argv[1]).batches("train", batch_size=1000, prefetch=1))
highest = next(reader).dense.max().item()
os.replace(sys.argv[1] + ".new", sys.argv[1])
try:
    for batch in reader:
        highest = max(highest, batch.dense.max().item())
except tc.DataError as error:
    print(highest, "expected the file as it was when reading began" in str(error))
""", tmp_path / "a.parquet", limit=24 << 20)
    assert found == ["4.0", "True"]


def test_the_limit_is_named_where_it_is_too_small(tmp_path):
    found = run("""
write(sys.argv[1], 100000)
try:
    next(iter(describe(sys.argv[1]).batches("train")))
except MemoryError as error:
    print("TERCEL_ARROW_MEMORY" in str(error))
""", tmp_path / "a.parquet", limit=1000)
    assert found == ["True"]


def test_random_order_holds_a_row_group_once(tmp_path):
    path = tmp_path / "a.parquet"
    run("write(sys.argv[1], 2000000, keys=8)", path)
    # Decoded, 2 M rows of 8 keys and 2 values are 144 MB.
    found = run("""
dataset = describe(sys.argv[1], keys=8)
before = peak_kib()
rows = 0
for batch in dataset.batches("train", batch_size=10000, shuffle=True):
    rows += batch.labels.shape[0]
print(rows, (peak_kib() - before) // 1024)
""", path)
    assert found[0] == "2000000"
    assert 100 < int(found[1]) < 300
