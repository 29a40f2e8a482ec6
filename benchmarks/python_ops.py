#!/usr/bin/env python3
"""Small operations from Python: nanoseconds a call, beside NumPy and torch where they can be imported.

    PYTHONPATH=build/release/python build/venv/bin/python benchmarks/python_ops.py
"""

import importlib
import subprocess
import sys
import timeit

ROWS = [
    ("x + y", "x + y"), ("x + 1.0", "x + 1.0"), ("add_", "x.add_(y)"), ("view", "x.view(24)"), ("x[0]", "x[0]"),
    ("x[1:3]", "x[1:3]"), ("x[0, 1]", "x[0, 1]"), ("t()", "x.t()"), ("empty", "m.empty((2, 3))"), ("sum", "x.sum()"),
    ("sum(0)", "x.sum(0)"), ("item", "s.item()"), ("shape", "x.shape"), ("numpy", "x.numpy()"), ("exp", "m.exp(x)"),
]
NUMPY = {"x.add_(y)": "m.add(x, y, out=x)", "x.view(24)": "x.reshape(24)", "x.t()": "x.T", "x.numpy()": None}


def setup(name):
    if name == "numpy":
        return "import numpy as m; x = m.ones((4, 6), 'f4'); y = m.ones((4, 6), 'f4'); s = x.sum()"
    return f"import {name} as m; x = m.ones(4, 6); y = m.ones(4, 6); s = x.sum()"


def nanoseconds(statement, preparation):
    timer = timeit.Timer(statement, preparation)
    count, _ = timer.autorange()
    return min(timer.repeat(7, max(1, count // 4))) / max(1, count // 4) * 1e9


def importing(name):
    code = f"import numpy, time; b = time.perf_counter(); import {name}; print(time.perf_counter() - b)"
    run = [sys.executable, "-c", code]
    return min(float(subprocess.run(run, capture_output=True, text=True, check=True).stdout) for _ in range(5)) * 1e3


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
    print(f"{'ns':10}" + "".join(f"{n:>10}" for n in names))
    for label, statement in ROWS:
        cells = []
        for name in names:
            own = NUMPY.get(statement, statement) if name == "numpy" else statement
            cells.append(f"{nanoseconds(own, setup(name)):10.0f}" if own else " " * 10)
        print(f"{label:10}" + "".join(cells))
    print(f"import tercel after numpy: {importing('tercel'):.0f} ms")


if __name__ == "__main__":
    main()
