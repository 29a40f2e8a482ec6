#!/usr/bin/env python3
"""Training steps of dlrm_bench's network in PyTorch, on batches generated in advance.

    OMP_NUM_THREADS=T python dlrm_torch.py [batch=2048] [iters=60] [rows=100000] [dim=16] [tables=26] [keys=1]
        [bottom=512-256-64-16] [top=512-256-1] [compile=0]

Tables are EmbeddingBags with sparse gradients; SGD trains every parameter. Prints the median and the minimum of five
rounds in alternate.py's format.
"""

import os
import sys
import time

import torch
from torch import nn


def mlp(width, sizes, last_is_linear):
    layers = []
    for i, size in enumerate(sizes):
        layers += [nn.Linear(width, size)] + [nn.ReLU()] * (not last_is_linear or i + 1 < len(sizes))
        width = size
    return nn.Sequential(*layers)


class DenseHalf(nn.Module):
    """The network without the tables: bottom MLP of 13 numbers, dot products of all pairs of vectors, top MLP."""

    def __init__(self, tables, dim, bottom, top):
        super().__init__()
        vectors = tables + 1
        self.bottom = mlp(13, bottom, last_is_linear=False)
        self.top = mlp(vectors * (vectors - 1) // 2 + dim, top, last_is_linear=True)
        self.register_buffer("pairs", torch.tril_indices(vectors, vectors, -1))

    def forward(self, numbers, embedded):  # [batch, 13], [batch, tables, dim]
        bottom = self.bottom(numbers)
        vectors = torch.cat([bottom.unsqueeze(1), embedded], 1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([bottom, products], 1))


def main():
    options = {"batch": "2048", "iters": "60", "rows": "100000", "dim": "16", "tables": "26", "keys": "1",
               "bottom": "512-256-64-16", "top": "512-256-1", "compile": "0"}
    given = dict(argument.split("=") for argument in sys.argv[1:])
    unknown = given.keys() - options
    if unknown:
        sys.exit(f"dlrm_torch.py: unknown option {min(unknown)}; known: {', '.join(options)}")
    options |= given
    batch, iters, rows, dim, tables, keys = (int(options[name]) for name in list(options)[:6])
    bottom, top = ([int(size) for size in options[name].split("-")] for name in ("bottom", "top"))
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    torch.manual_seed(1)
    bags = nn.ModuleList(nn.EmbeddingBag(rows, dim, mode="sum", sparse=True) for _ in range(tables))
    dense = DenseHalf(tables, dim, bottom, top)
    optimizers = [torch.optim.SGD(module.parameters(), 0.1) for module in (dense, bags)]
    forward = torch.compile(dense) if options["compile"] == "1" else dense
    loss = nn.BCEWithLogitsLoss()
    batches = [(torch.rand(batch, 13), torch.randint(rows, (tables, batch, keys)), torch.randint(2, (batch, 1)).float())
               for _ in range(8)]

    def step(number):
        numbers, keys, labels = batches[number % len(batches)]
        embedded = torch.stack([bag(keys[table]) for table, bag in enumerate(bags)], 1)
        value = loss(forward(numbers, embedded), labels)
        for optimizer in optimizers:
            optimizer.zero_grad()
        value.backward()
        for optimizer in optimizers:
            optimizer.step()

    for number in range(12):
        step(number)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        for number in range(iters):
            step(number)
        times.append((time.perf_counter() - start) / iters * 1e3)
    times.sort()
    print(f"dlrm in torch {torch.__version__}, {torch.get_num_threads()} threads median {times[2]:.2f} ms (min {times[0]:.2f})")


if __name__ == "__main__":
    main()
