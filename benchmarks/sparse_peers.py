#!/usr/bin/env python3
"""The lines of sparse_bench with PyTorch or SciPy, for alternate.py.

    benchmarks/alternate.py --runs 3 --same-names --ours "build/release/bin/sparse_bench threads=1" \
      --peer "env OMP_NUM_THREADS=1 python benchmarks/sparse_peers.py torch 1"

Arguments: torch or scipy, the number of threads (SciPy has one), int64 (the default) or int32. SciPy always has int32.
"""

import sys
import warnings

import numpy as np
from measure import measure

ROWS, PER_ROW, COLUMNS = 1_000_000, 10, 64


def entries(rows, seed):
    rng = np.random.default_rng(seed)
    n = rows * PER_ROW
    return rng.integers(0, rows, n), rng.integers(0, rows, n), rng.random(n, dtype=np.float32)


def with_torch(threads, index):
    import torch
    torch.set_num_threads(threads)
    row, column, values = entries(ROWS, 1)
    coo = torch.sparse_coo_tensor(torch.from_numpy(np.stack([row, column])), torch.from_numpy(values), (ROWS, ROWS),
                                  check_invariants=False)
    a = coo.to_sparse_csr()
    if index == "int32":
        a = torch.sparse_csr_tensor(a.crow_indices().int(), a.col_indices().int(), a.values(), a.shape)
    vector, dense = torch.rand(ROWS), torch.rand(ROWS, COLUMNS)
    measure("csr @ vector", lambda: a @ vector)
    measure("csr @ dense", lambda: a @ dense, 3)
    measure("csr.T @ vector", lambda: a.t() @ vector)
    measure("csr.T @ dense", lambda: a.t() @ dense, 3)
    measure("sampled", lambda: torch.sparse.sampled_addmm(a, dense, dense.t(), beta=0), 3)
    measure("uncoalesced coo to csr", coo.to_sparse_csr, 2)
    measure("csr to csc", a.to_sparse_csc, 3)
    b = a.t().to_sparse_csr()
    measure("csr + csr", lambda: a + b, 3)
    measure("csr * csr", lambda: a * b, 3)
    row, column, values = entries(ROWS // 10, 2)
    s = torch.sparse_coo_tensor(torch.from_numpy(np.stack([row, column])), torch.from_numpy(values),
                                (ROWS // 10, ROWS // 10), check_invariants=False).to_sparse_csr()
    measure("csr @ csr (a tenth of the rows)", lambda: s @ s, 3)


def with_scipy():
    from scipy.sparse import coo_array
    row, column, values = entries(ROWS, 1)
    coo = coo_array((values, (row.astype(np.int32), column.astype(np.int32))), (ROWS, ROWS))
    a = coo.tocsr()
    vector, dense = np.random.rand(ROWS).astype(np.float32), np.random.rand(ROWS, COLUMNS).astype(np.float32)
    measure("csr @ vector", lambda: a @ vector)
    measure("csr @ dense", lambda: a @ dense, 3)
    measure("csr.T @ vector", lambda: a.T @ vector)
    measure("csr.T @ dense", lambda: a.T @ dense, 3)
    measure("uncoalesced coo to csr", coo.tocsr, 3)
    measure("csr to csc", a.tocsc, 3)
    b = a.T.tocsr()
    b.sort_indices()
    measure("csr + csr", lambda: a + b, 3)
    measure("csr * csr", lambda: a * b, 3)
    row, column, values = entries(ROWS // 10, 2)
    s = coo_array((values, (row.astype(np.int32), column.astype(np.int32))), (ROWS // 10, ROWS // 10)).tocsr()
    measure("csr @ csr (a tenth of the rows)", lambda: s @ s, 3)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1] == "torch":
        with_torch(int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "int64")
    else:
        with_scipy()
