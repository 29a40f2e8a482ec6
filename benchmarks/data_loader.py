#!/usr/bin/env python3
"""DataLoader compared with PyTorch's: milliseconds of an epoch, both libraries in turns in one run.

    PYTHONPATH=build/release/python python benchmarks/data_loader.py --peer /path/to/python-with-torch

Datasets: TensorDataset of a million rows of 40 float32 and a label, batches of 1,024; a dataset written in Python whose
samples are 28x28 images of bytes and a class, batches of 64; large images (3x224x224 float32), batches of 32, whose time is
that of the memory they pass through. Each shuffled, without workers and with two. Without --peer, Tercel alone.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

CASES = ("tensors", "images", "large")


def dataset(case, m, data):
    class Images(data.Dataset):
        def __init__(self, count):
            self.images = m.randint(0, 255, (count, 28, 28)).to(m.uint8)

        def __getitem__(self, i):
            return self.images[i].float() / 255, i % 10

        def __len__(self):
            return len(self.images)

    class Large(data.Dataset):
        def __init__(self, count):
            self.images = m.rand(8, 3, 224, 224)
            self.count = count

        def __getitem__(self, i):
            return self.images[i % 8], i

        def __len__(self):
            return self.count

    if case == "tensors":
        return data.TensorDataset(m.rand(1_000_000, 40), m.randint(0, 2, (1_000_000,))), 1024
    return (Images(20_000), 64) if case == "images" else (Large(1_000), 32)


def measure(library, case, workers):
    """Prints the seconds of an epoch."""
    if library == "torch":
        import torch as m
        from torch.utils import data
    else:
        import tercel as m
        from tercel.utils import data
    m.set_num_threads(1)
    samples, batch = dataset(case, m, data)
    begin = time.perf_counter()
    for x, _ in data.DataLoader(samples, batch_size=batch, shuffle=True, num_workers=workers):
        x[0, 0].sum().item()
    print(time.perf_counter() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="a Python that has torch")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        return measure(given.one[0], given.one[1], int(given.one[2]))
    sides = [("tercel", sys.executable)] + ([("torch", given.peer)] if given.peer else [])
    for case in CASES:
        for workers in (0, 2):
            times = {name: [] for name, _ in sides}
            for _ in range(given.runs):
                for name, python in sides:
                    done = subprocess.run([python, os.path.abspath(__file__), "--one", name, case, str(workers)], check=True,
                                          capture_output=True, text=True)
                    times[name].append(1e3 * float(done.stdout))
            medians = {name: statistics.median(values) for name, values in times.items()}
            ratio = f"  ratio {medians['torch'] / medians['tercel']:.1f}" if given.peer else ""
            texts = "  ".join(f"{name} median {median:.0f} ms (min {min(times[name]):.0f})" for name, median in medians.items())
            print(f"{case:8} workers {workers}  {texts}{ratio}", flush=True)
    return None


if __name__ == "__main__":
    sys.exit(main())
