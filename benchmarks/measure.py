"""Measures calls for the benchmarks that alternate.py compares line by line."""

import statistics
import time


def measure(name, call, rounds=5):
    """Prints the median and the least time of a call, in milliseconds, after one that is not counted."""
    call()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1e3)
    print(f"{name:34s} median {statistics.median(times):.1f} ms (min {min(times):.1f})", flush=True)
