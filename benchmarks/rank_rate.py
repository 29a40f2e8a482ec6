#!/usr/bin/env python3
"""What `tercel plan` promises compared with what `tercel train` does, with 1 and 2 local ranks.

Alternates both for each number of ranks, batch and placement, on the network and the rows of train_rate.py: medians of
samples per second, their ratio, what the plan has measured with all ranks, and how these scale. One epoch without an
evaluation, which is no part of a step. With --keys, each slot has so many keys.

example:
  benchmarks/rank_rate.py --batch 2048 --placement distributed
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

from train_rate import make_dataset


def run(ranks, words):
    """The JSON that a command prints under mpirun."""
    mpirun = ["mpirun", "-n", str(ranks), "--oversubscribe", "--bind-to", "none"]
    if os.geteuid() == 0:
        mpirun.append("--allow-run-as-root")
    return json.loads(subprocess.run(mpirun + [str(word) for word in words], check=True, capture_output=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default="build/release/bin", help="folder of the programs")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--batch", type=int, nargs="+", default=[256, 2048])
    parser.add_argument("--placement", nargs="+", default=["replicated", "distributed"])
    parser.add_argument("--keys", type=int, default=1, help="of each slot")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_dataset(arguments.bin / "tercel", folder, arguments.rows, arguments.keys)
        for batch in arguments.batch:
            for placement in arguments.placement:
                of_one = None
                for ranks in arguments.ranks:
                    options = ["--model", folder / "config.json", "--threads", 1, "--json", "--set",
                               f"solver.batchsize={batch}", "--set", f"solver.placement={placement}"]
                    once = ["--epochs", 1, "--validation", "none"]
                    planned, measured, trained = [], [], []
                    for number in range(arguments.runs):
                        plan = run(ranks, [arguments.bin / "tercel", "plan", folder / "data", *options])
                        planned.append(plan["samples_per_second"])
                        measured.append(plan.get("measured_samples_per_second", plan["samples_per_second"]))
                        out = folder / f"run-{batch}-{placement}-{ranks}-{number}"
                        trained.append(run(ranks, [arguments.bin / "tercel", "train", folder / "data", "--out", out,
                                                   *options, *once])["samples_per_second"])
                    plan, found, rate = (statistics.median(rates) for rates in (planned, measured, trained))
                    of_one = of_one or rate / ranks
                    print(f"batch {batch}, {placement}, {ranks} ranks: planned {plan:,.0f}, trained {rate:,.0f} "
                          f"samples/s; {plan / rate:.2f} of it promised, {found / rate:.2f} measured by the plan, "
                          f"{rate / of_one:.2f} of one rank", flush=True)


if __name__ == "__main__":
    main()
