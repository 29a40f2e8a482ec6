#!/usr/bin/env python3
"""
Batches per second from Parquet files: Tercel with one worker, and pyarrow's to_batches with the same tensors assembled in
NumPy, one thread each; and training from Parquet beside Norm. Runs alternate, the best of each counts. Of elapsed and of
processor time, which other programs on the machine disturb less. Tercel
verifies the checksums of pages, pyarrow only if it is asked to: it runs both ways.

    PYTHONPATH=build/release/python python3 benchmarks/parquet_reader_bench.py [--rows 1000000] [--train]
"""

import argparse
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tercel.data as td


def read_with_tercel(dataset, batch_size):
    rows = 0
    with dataset.batches("train", batch_size=batch_size, num_workers=1) as reader:
        for batch in reader:
            rows += batch.rows
    return rows


def read_with_pyarrow(files, schema, batch_size, checksums):
    labels, dense = list(schema.label_names) or ["label"], list(schema.dense_names)
    keys = [slot.name for slot in schema.slots]
    first = np.array([slot.first_key for slot in schema.slots])
    rows = 0
    for file in files:
        for batch in pq.ParquetFile(file, page_checksum_verification=checksums).iter_batches(
                batch_size=batch_size, columns=labels + dense + keys, use_threads=False):
            count = batch.num_rows
            label = np.empty((count, len(labels)), np.float32)
            values = np.empty((count, len(dense)), np.float32)
            key = np.empty((count, len(keys)), np.int64)
            for names, out in ((labels, label), (dense, values), (keys, key)):
                for i, name in enumerate(names):
                    out[:, i] = batch.column(name).to_numpy(zero_copy_only=False)
            key += first
            rows += count
    return rows


def processor_seconds():
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def best_of(repeats, *functions):
    """Elapsed and processor seconds of each, of runs that alternate."""
    best = np.full((len(functions), 2), np.inf)
    for _ in range(repeats):
        for i, function in enumerate(functions):
            start = np.array([time.perf_counter(), processor_seconds()])
            function()
            best[i] = np.minimum(best[i], np.array([time.perf_counter(), processor_seconds()]) - start)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1000000)
    parser.add_argument("--batch-size", type=int, default=16384)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--train", metavar="TERCEL", help="the program tercel: also compares training")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        norm = td.generate(os.path.join(folder, "norm"), preset="criteo", rows=options.rows, seed=1).dataset
        for codec, dictionary in (("snappy", True), ("zstd", True), ("none", False)):
            dataset = td.convert_dataset(norm, os.path.join(folder, "parquet"), "parquet", codec=codec,
                                         dictionary=dictionary, replace=True)
            files = [pathlib.Path(dataset.folder) / file.path for file in dataset.train.files]
            rows = dataset.train.rows
            own, peer, checked = best_of(options.repeats, lambda: read_with_tercel(dataset, options.batch_size),
                                         lambda: read_with_pyarrow(files, dataset.schema, options.batch_size, False),
                                         lambda: read_with_pyarrow(files, dataset.schema, options.batch_size, True))
            print(f"{codec}{', dictionary' if dictionary else ''}: tercel {rows / own[0] / 1e6:.2f} M rows/s, "
                  f"pyarrow {pa.__version__} and NumPy {rows / peer[0] / 1e6:.2f} M rows/s, "
                  f"ratio {peer[0] / own[0]:.2f}, of processor time {peer[1] / own[1]:.2f}; "
                  f"verifying the checksums of pages as Tercel does {checked[0] / own[0]:.2f} and "
                  f"{checked[1] / own[1]:.2f}")
        if options.train:
            dataset = td.convert_dataset(norm, os.path.join(folder, "parquet"), "parquet", replace=True)

            def train(source):
                run = os.path.join(folder, "run")
                shutil.rmtree(run, ignore_errors=True)
                subprocess.run([options.train, "train", source.folder, "--out", run, "--threads", "2", "--epochs", "1",
                                "--quiet"], check=True)

            own, peer = best_of(options.repeats, lambda: train(dataset), lambda: train(norm))
            print(f"training: from Parquet {own[0]:.2f} s, from Norm {peer[0]:.2f} s, ratio {own[0] / peer[0]:.3f}, "
                  f"of processor time {own[1] / peer[1]:.3f}")


if __name__ == "__main__":
    main()
