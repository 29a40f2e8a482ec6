#!/usr/bin/env python3
"""Cost of reading, metrics and progress: alternates `tercel train` from Norm files with dlrm_bench.

Both train the same network on rows of the same kind: 13 dense values, 26 keys, each drawn uniformly from 100,000. Prints
the medians of samples per second and their ratio.

example:
  benchmarks/train_rate.py --threads 2
"""
import argparse
import json
import pathlib
import random
import re
import statistics
import struct
import subprocess
import tempfile

TABLES, KEYS, DENSE, BATCH = 26, 100_000, 13, 2048


def write_norm(path, rows, hotness):
    """Rows without sums, with so many keys u32 in each slot; docs/formats/norm.md."""
    generator = random.Random(1)
    record = struct.Struct(f"<{1 + DENSE}f" + f"i{hotness}I" * TABLES)
    with open(path, "wb") as out:
        out.write(struct.pack("<8q", 0, rows, 1, DENSE, TABLES, 0, 0, 0))
        for _ in range(rows):
            slots = []
            for s in range(TABLES):
                slots += [hotness, *(s * KEYS + key for key in generator.choices(range(KEYS), k=hotness))]
            out.write(record.pack(generator.random() < 0.25, *(generator.gauss(0, 1) for _ in range(DENSE)), *slots))


def make_dataset(program, folder, rows, hotness=1):
    write_norm(folder / "rows.norm", rows, hotness)
    (folder / "list.txt").write_text(f"1\n{folder / 'rows.norm'}\n")
    spec = ["--train-list", folder / "list.txt", "--dense-dim", DENSE, "--nnz-per-slot", ",".join([str(hotness)] * TABLES),
            "--slot-size-array", ",".join([str(KEYS)] * TABLES), "--check-mode", "none"]
    subprocess.run([program, "convert", "norm", folder / "data", *map(str, spec)], check=True, capture_output=True)
    config = json.loads(subprocess.run([program, "train", "--model", "dlrm", "--print-config"], check=True,
                                       capture_output=True).stdout)
    config["solver"]["batchsize"] = BATCH
    config["optimizer"] = {"type": "SGD"}
    for layer in config["layers"]:
        if layer.get("top") == "bottom":
            layer["mlp_param"]["num_outputs"] = [512, 256, 64, 16]
        elif layer.get("top") == "logit":
            layer["mlp_param"]["num_outputs"] = [512, 256, 1]
    (folder / "config.json").write_text(json.dumps(config))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default="build/release/bin", help="folder of the programs")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    rates = {"tercel train": [], "dlrm_bench": []}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_dataset(arguments.bin / "tercel", folder, arguments.rows)
        for run in range(arguments.runs):
            train = [arguments.bin / "tercel", "train", folder / "data", "--model", folder / "config.json", "--out",
                     folder / f"run-{run}", "--threads", str(arguments.threads), "--json"]
            result = json.loads(subprocess.run(train, check=True, capture_output=True).stdout)
            rates["tercel train"].append(result["samples_per_second"])
            bench = subprocess.run([arguments.bin / "dlrm_bench", f"threads={arguments.threads}"], check=True,
                                   capture_output=True, text=True)
            rates["dlrm_bench"].append(float(re.search(r"(\d+) samples/s", bench.stdout).group(1)))
    medians = {name: statistics.median(values) for name, values in rates.items()}
    print(", ".join(f"{name} {rate:,.0f} samples/s" for name, rate in medians.items()),
          f"= {100 * medians['tercel train'] / medians['dlrm_bench']:.0f} %")


if __name__ == "__main__":
    main()
