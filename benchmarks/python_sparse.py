#!/usr/bin/env python3
"""Times of COO tensors from Python, of Tercel or torch; alternate.py compares the two.

    benchmarks/alternate.py --runs 3 --same-names \
      --ours "env PYTHONPATH=build/release/python build/venv/bin/python benchmarks/python_sparse.py tercel 1" \
      --peer "build/venv/bin/python benchmarks/python_sparse.py torch 1"

Arguments: the module and the number of threads. Entries are uniform; a tenth of those that are coalesced occur twice.
"""

import importlib
import sys

from measure import measure

ENTRIES, SIZE = 10_000_000, 1_000_000


def main():
    t = importlib.import_module(sys.argv[1])
    t.set_num_threads(int(sys.argv[2]))
    t.manual_seed(1)
    indices = t.randint(0, SIZE, (2, ENTRIES))
    indices[:, :ENTRIES // 10] = indices[:, ENTRIES // 10:2 * (ENTRIES // 10)]
    x = t.sparse_coo_tensor(indices, t.randn(ENTRIES), (SIZE, SIZE), check_invariants=False)
    measure("coalesce", x.coalesce, 3)
    small = t.sparse_coo_tensor(indices % 1000, t.randn(ENTRIES), (1000, 1000), check_invariants=False)
    measure("coalesce of few", small.coalesce, 3)
    matrix = x.coalesce()
    dense, vector = t.randn(SIZE, 64), t.randn(SIZE)
    measure("matrix-vector", lambda: matrix @ vector, 3)
    measure("matrix-matrix", lambda: matrix @ dense, 3)
    measure("sum of two", lambda: matrix + matrix, 3)
    measure("to_dense", lambda: small.coalesce().to_dense(), 3)


if __name__ == "__main__":
    main()
