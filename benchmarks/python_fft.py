#!/usr/bin/env python3
"""Fourier transforms from Python on one thread: microseconds per call, compared with NumPy and torch if installed.

    PYTHONPATH=build/release/python build/venv/bin/python benchmarks/python_fft.py
"""

import importlib
import timeit

ROWS = [((1, 64), 1), ((1, 1024), 1), ((256, 256), 1), ((1024, 256), 0), ((64, 4096), 1), ((128, 1000), 1),
        ((64, 1009), 1), ((1, 2 ** 18), 1)]
CALLS = [("fft", "f.fft(z, {0}=a)"), ("rfft", "f.rfft(x, {0}=a)"), ("irfft", "f.irfft(f.rfft(x, {0}=a), {0}=a)")]


def inputs(name, shape):
    import numpy
    x = numpy.random.default_rng(1).standard_normal(shape).astype("f4")
    z = (x + 1j * x[::-1]).astype("c8")
    if name == "numpy":
        return {"f": numpy.fft, "x": x, "z": z}
    module = importlib.import_module(name)
    return {"f": module.fft, "x": module.from_dlpack(x), "z": module.from_dlpack(z)}


def main():
    names = []
    for name in ("tercel", "numpy", "torch"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        if hasattr(module, "set_num_threads"):
            module.set_num_threads(1)
        names.append(name)
    print(f"{'microseconds':32}" + "".join(f"{n:>10}" for n in names))
    for shape, axis in ROWS:
        for label, call in CALLS:
            cells = []
            for name in names:
                statement = call.format("axis" if name == "numpy" else "dim")
                timer = timeit.Timer(statement, globals={**inputs(name, shape), "a": axis})
                count, _ = timer.autorange()
                count = max(1, count // 8)
                cells.append(f"{min(timer.repeat(5, count)) / count * 1e6:10.1f}")
            print(f"{label + ' of ' + str(shape) + f', axis {axis}':32}" + "".join(cells))


if __name__ == "__main__":
    main()
