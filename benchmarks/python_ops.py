#!/usr/bin/env python3
"""Operations from Python compared with NumPy and torch if installed: nanoseconds per call of small operations.

    PYTHONPATH=build/release/python build/venv/bin/python benchmarks/python_ops.py

With --large, milliseconds of sorting and selecting among millions of elements, on one thread (NumPy's sort returns no
indices); with --medium, of random numbers and of linear layers for small batches; with --optimizers, of optimizer steps,
for 20 parameters of 64 K elements and for 200 of 1 K.
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


LARGE = [
    ("sort 16 M float32", "x.sort()", "m.sort(x)"), ("sort 16 M int64", "k.sort()", "m.sort(k)"),
    ("argsort 16 M float32", "x.argsort()", "m.argsort(x)"),
    ("stable sort 16 M int64", "k.sort(stable=True)", "m.sort(k, kind='stable')"),
    ("sort rows, 16384 x 1024", "a.sort(dim=1)", "m.sort(a, axis=1)"),
    ("topk 100 of 16 M", "x.topk(100)", "m.partition(x, -100)[-100:]"),
    ("topk 10 of rows, 16384 x 1024", "a.topk(10, dim=1)", "m.partition(a, -10, axis=1)[:, -10:]"),
    ("topk 100 of rows, 16384 x 1024", "a.topk(100, dim=1)", "m.partition(a, -100, axis=1)[:, -100:]"),
    ("sort rows, 262144 x 64", "a.view(-1, 64).sort(dim=1)", "m.sort(a.reshape(-1, 64), axis=1)"),
    ("median of rows, 16384 x 1024", "a.median(dim=1)", "m.median(a, axis=1)"),
    ("unique 16 M int64", "m.unique(k)", "m.unique(k)"),
    ("max with indices, 16384 x 1024", "a.max(dim=1)", None),
]
MEDIUM = [
    *((f"linear 512 to 2048, batch {n}", f"m.nn.functional.linear(b{n}, w, c)", f"b{n} @ w.T + c") for n in (1, 4, 8, 16)),
    ("rand 1 M float32", "m.rand(1 << 20)", "numbers.random(1 << 20, 'f4')"),
    ("randn 1 M float32", "m.randn(1 << 20)", "numbers.standard_normal(1 << 20, 'f4')"),
    ("randn 1 M float64", "m.randn(1 << 20, dtype=m.float64)", "numbers.standard_normal(1 << 20)"),
    ("exponential 1 M float32", "x.exponential_()", "numbers.standard_exponential(1 << 20, 'f4')"),
    ("randint 1 M int64", "m.randint(0, 100, (1 << 20,))", "numbers.integers(0, 100, 1 << 20)"),
    ("bernoulli 1 M float32", "x.bernoulli_(0.3)", None),
    ("dropout 1 M float32", "m.nn.functional.dropout(x)", None),
    ("randperm 1 M", "m.randperm(1 << 20)", "numbers.permutation(1 << 20)"),
]
OPTIMIZERS = [(name, options, n, size) for name, options in (
    ("SGD", ""), ("SGD", "momentum=0.9"), ("Adam", ""), ("Adam", "amsgrad=True"), ("AdamW", ""), ("Adagrad", ""), ("RMSprop", ""),
    ("RMSprop", "centered=True"), ("NAdam", "")) for n, size in ((20, 64), (200, 1))]
OPTIMIZERS_SETUP = """
import {name} as m
import {name}.optim
parameters = [m.rand({size} << 10, requires_grad=True) for _ in range({n})]
for p in parameters:
    p.grad = m.rand({size} << 10)
optimizer = m.optim.{optimizer}(parameters, lr=1e-3, {options})
optimizer.step()
"""
MEDIUM_SETUP = """
import numpy, {name} as m
numbers = numpy.random.default_rng(0)
if not {numpy}: import {name}.nn
array = numpy.asarray if {numpy} else m.from_numpy
w, c, x, b1, b4, b8, b16 = (array(numbers.standard_normal(s, dtype='f4'))
                            for s in ((2048, 512), 2048, 1 << 20, (1, 512), (4, 512), (8, 512), (16, 512)))
"""
LARGE_SETUP = """
import numpy, {name} as m
numbers = numpy.random.default_rng(0)
x = numbers.standard_normal(1 << 24, dtype='f4')
k = numbers.integers(0, 1 << 20, 1 << 24)
x, k = (x, k) if {numpy} else (m.from_numpy(x), m.from_numpy(k))
a = x.reshape(16384, 1024)
"""


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


def show_table(names, rows, preparation, repeats, digits):
    print(f"{'ms':32}" + "".join(f"{n:>10}" for n in names))
    for label, statement, of_numpy in rows:
        cells = []
        for name in names:
            own = of_numpy if name == "numpy" else statement
            timer = timeit.Timer(own, preparation.format(name=name, numpy=name == "numpy")) if own else None
            cells.append(f"{min(timer.repeat(repeats, 1)) * 1e3:10.{digits}f}" if timer else " " * 10)
        print(f"{label:32}" + "".join(cells), flush=True)


def show_optimizers(names):
    print(f"{'us a step':40}" + "".join(f"{n:>10}" for n in names))
    for optimizer, options, n, size in OPTIMIZERS:
        times = [min(timeit.Timer("optimizer.step()", OPTIMIZERS_SETUP.format(
            name=name, n=n, size=size, optimizer=optimizer, options=options)).repeat(10, 20)) / 20 for name in names]
        print(f"{f'{optimizer}({options}), {n} x {size} K':40}" + "".join(f"{t * 1e6:10.0f}" for t in times), flush=True)


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
    if "--large" in sys.argv[1:]:
        show_table(names, LARGE, LARGE_SETUP, 5, 1)
        return
    if "--medium" in sys.argv[1:]:
        show_table(names, MEDIUM, MEDIUM_SETUP, 50, 3)
        return
    if "--optimizers" in sys.argv[1:]:
        show_optimizers([name for name in names if name != "numpy"])
        return
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
