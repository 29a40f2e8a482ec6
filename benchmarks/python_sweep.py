#!/usr/bin/env python3
"""Compares about 1,200 calls of common operations from Python with torch's, alternating in the same process.

    PYTHONPATH=build/release/python PYTHON benchmarks/python_sweep.py [--threads N] [--least 1.0] [WORDS]

Prints microseconds per call, the minimum of several rounds of each side, and the ratio of torch's time to ours; rows with
a ratio below --least are marked, and counted at the end. WORDS select rows that contain one of them. PYTHON needs NumPy
and torch.
"""

import argparse
import functools
import timeit

SIZES = {"1k": (32, 32), "16k": (128, 128), "256k": (512, 512), "1M": (1024, 1024)}
# x and y: matrices; v: changed in place; r: a row; c: a column, all of one dtype; z is x transposed.
BOTH = [
    "x + y", "x - y", "x * y", "x + 1", "x + r", "x + c", "z + y", "z + r", "m.maximum(x, y)", "m.where(x > 0, x, y)",
    "x == y", "x < y", "x > 0", "-x", "m.abs(x)", "m.clamp(x, -1, 1)", "m.sign(x)", "v.add_(1)", "v.copy_(y)",
    "x.sum()", "x.sum(0)", "x.sum(1)", "z.sum(1)", "x.amax()", "x.amax(0)", "x.amax(1)", "z.amax(1)", "x.max(1)",
    "x.max(0)", "x.argmax()", "x.argmax(1)", "x.argmin(0)", "x.prod(1)", "x.any()", "x.all(1)", "m.cumsum(x, 0)",
    "m.cumsum(x, 1)", "x.cummax(1)", "x.cummin(0)", "x.cumprod(1)", "x.sort(1)", "x.sort(0)", "x.topk(5)",
    "x.topk(1)", "x.kthvalue(3)", "x.median(1)", "m.unique(w)", "x.t().contiguous()", "m.cat([x, y])",
    "m.cat([x, y], 1)", "m.stack([x, y])", "x[:, ::2].contiguous()", "x[i]", "m.index_select(x, 1, i)", "x[b]",
    "m.masked_select(x, b)", "x.masked_fill(b, 0)", "m.nonzero(b)", "m.gather(x, 1, g)", "x.scatter(1, g, y)",
    "x.index_add(0, i, y)", "m.roll(x, 3, 1)", "m.flip(x, [1])", "m.tril(x)", "m.zeros_like(x)", "x.clone()",
    "x.repeat(2, 1)", "m.bincount(p)", "x.to(m.float64)", "x.to(m.int32)", "m.searchsorted(s, x)", "x.diff()",
    "x.flatten()", "m.nn.functional.pad(x, (1, 1))", "m.isin(w, p[:50])", "x // 3", "x % 3", "v.fill_(1)",
    "x.expand(2, -1, -1).contiguous()", "m.tensordot(r, r, 1)", "m.outer(r, r)", "m.count_nonzero(x)",
    "x.diagonal().clone()", "m.take_along_dim(x, g, 1)", "x.scatter_add(1, g, y)", "m.repeat_interleave(x, 2, 0)",
]
FLOATS = [
    "x / y", "m.exp(x)", "m.log(u)", "m.sqrt(u)", "m.rsqrt(u)", "m.sin(x)", "m.cos(x)", "m.tanh(x)", "m.sigmoid(x)",
    "m.erf(x)", "m.pow(u, 1.5)", "x ** 2", "m.pow(u, y)", "m.log1p(u)", "m.expm1(x)", "m.atan2(x, y)", "m.floor(x)",
    "m.round(x)", "m.relu(x)", "F.gelu(x)", "F.silu(x)", "F.softplus(x)", "F.leaky_relu(x)", "F.elu(x)",
    "F.hardswish(x)", "F.mish(x)", "F.softmax(x, 1)", "F.softmax(x, 0)", "F.log_softmax(x, 1)", "m.logsumexp(x, 1)",
    "x.mean()", "x.mean(0)", "x.mean(1)", "x.std()", "x.std(1)", "x.var(0)", "x.norm()", "x.norm(dim=1)",
    "m.linalg.norm(x, 1, 0)", "m.dist(x, y)", "F.layer_norm(x, x.shape[1:])", "F.normalize(x)", "F.mse_loss(x, y)",
    "F.l1_loss(x, y)", "F.smooth_l1_loss(x, y)", "F.cross_entropy(x, p2)", "F.nll_loss(x, p2)",
    "F.binary_cross_entropy_with_logits(x, u)", "F.cosine_similarity(x, y)", "m.lerp(x, y, 0.3)",
    "m.addcmul(x, y, y)", "x @ y", "x @ y.t()", "x @ r", "m.addmm(x, x, y)", "m.bmm(q, q)", "F.dropout(x)",
    "m.rand_like(x)", "m.randn_like(x)", "m.isnan(x)", "m.isfinite(x)", "m.nan_to_num(x)", "m.quantile(x, 0.5, 1)",
    "m.cdist(x, y)", "m.histc(x, 50)", "m.logcumsumexp(x, 1)", "x.cov()", "m.trapezoid(x)", "F.embedding(p2, x)",
    "F.embedding_bag(g, x)", "F.glu(x)", "m.addmv(c[:, 0], x, r)", "m.fft.rfft(x)", "F.one_hot(p2)", "F.prelu(x, r[:1])",
    "F.rms_norm(x, x.shape[1:])", "F.scaled_dot_product_attention(q, q, q)", "m.heaviside(x, y)", "m.frac(x)",
    "m.hypot(x, y)", "m.atan(x)", "m.special.erfinv(x)", "m.digamma(u)", "m.lgamma(u)", "m.bucketize(x, s)",
    "F.gelu(x, approximate='tanh')", "m.log2(u)", "m.log10(u)", "m.exp2(x)", "m.tan(x)", "m.erfc(x)", "F.selu(x)",
]
# Rows of 16 and 64 elements: 64k elements of each.
ROWS = ["x.topk(5)", "x.topk(1)", "x.max(1)", "x.min(1)", "x.argmax(1)", "m.cumsum(x, 1)", "x.cummax(1)", "x.sort(1)",
        "x.sum(1)", "x.amax(1)", "x.median(1)", "x.kthvalue(3)", "m.logcumsumexp(x, 1)", "x.cumprod(1)", "x.prod(1)"]
SETUP = """
import numpy, {name} as m
{more}
F = m.nn.functional
numbers = numpy.random.default_rng(0)
n, k = {shape}
def array(a): return m.from_numpy(numpy.ascontiguousarray(a)).to(m.{dtype})
def draw(*shape): return array(numbers.standard_normal(shape) * {scale})
x, y, r, c = draw(n, k), draw(n, k), draw(k), draw(n, 1)
z, u, w = x.t() if n == k else x, abs(draw(n, k)) + 1, array(numbers.integers(0, 1000, n * k))
b = m.from_numpy(numbers.random((n, k)) < 0.5)
i = m.from_numpy(numbers.permutation(min(n, k)))
g = m.from_numpy(numbers.integers(0, k, (n, k)))
p, p2 = m.from_numpy(numbers.integers(0, 100, n * k)), m.from_numpy(numbers.integers(0, min(n, k), n))
s, v = m.sort(r)[0], y.clone()
q = x.view(4, -1, k)
"""
ALONE = {
    "avg 1x1": ("F.adaptive_avg_pool2d(im, 1)", "im"), "avg 7x7": ("F.adaptive_avg_pool2d(im, 7)", "im"),
    "avg_pool 2": ("F.avg_pool2d(im, 2)", "im"), "avg_pool 3/2": ("F.avg_pool2d(im, 3, 2, 1)", "im"),
    "max_pool 2": ("F.max_pool2d(im, 2)", "im"), "max_pool 3/2": ("F.max_pool2d(im, 3, 2, 1)", "im"),
    "interpolate": ("F.interpolate(im, scale_factor=2)", "im"),
    "bilinear": ("F.interpolate(im, scale_factor=2, mode='bilinear')", "im"),
    "group_norm": ("F.group_norm(im, 8)", "im"), "batch_norm": ("F.batch_norm(im, mean, var)", "im"),
    "batch_norm train": ("F.batch_norm(im, None, None, training=True)", "im"),
    "conv 3x3": ("F.conv2d(im, w3, padding=1)", "im"), "conv 1x1": ("F.conv2d(im, w1)", "im"),
    "conv depthwise": ("F.conv2d(im, wd, padding=1, groups=64)", "im"),
    "conv 7x7/2 of 3": ("F.conv2d(photo, w7, stride=2, padding=3)", "photo"),
    "conv 3x3/2": ("F.conv2d(im, w3, stride=2, padding=1)", "im"),
    "conv_transpose": ("F.conv_transpose2d(im, w3, padding=1)", "im"),
}
IMAGES = """
import numpy, {name} as m
{more}
F = m.nn.functional
numbers = numpy.random.default_rng(0)
def draw(*shape): return m.from_numpy(numbers.standard_normal(shape, dtype='f4'))
im, photo = draw(4, 64, 56, 56), draw(2, 3, 224, 224)
w3, w1, wd, w7 = draw(64, 64, 3, 3), draw(64, 64, 1, 1), draw(64, 1, 3, 3), draw(64, 3, 7, 7)
mean, var = draw(64), abs(draw(64))
if {last}: im, photo = im.to(memory_format=m.channels_last), photo.to(memory_format=m.channels_last)
"""
RECURRENT = """
import numpy, {name} as m
{more}
numbers = numpy.random.default_rng(0)
def draw(*shape): return m.from_numpy(numbers.standard_normal(shape, dtype='f4'))
x = draw({time}, {n}, {size})
net = m.nn.{kind}({size}, {size})
cell = m.nn.{kind}Cell({size}, {size})
m.set_grad_enabled({grad})
def backward():
    for p in net.parameters(): p.grad = None
    net(x)[0].sum().backward()
"""
# Shapes of small models: a matrix for many vectors, a filter along one dimension of one channel.
SHAPED = """
import numpy, {name} as m
{more}
F = m.nn.functional
numbers = numpy.random.default_rng(0)
def draw(*shape): return m.from_numpy(numbers.standard_normal(shape, dtype='f4')).requires_grad_()
a, v, a2, x2 = draw(221, 32), draw(512, 32, 1).detach(), draw(64, 48), draw(64, 48, 20).detach()
x, w = draw(256, 1, 26, 8), draw(4, 1, 6, 1)
def backward(result, *leaves):
    for leaf in leaves: leaf.grad = None
    result.sum().backward()
"""
SHAPED_ROWS = ["a @ v", "backward(a @ v, a)", "backward(a2 @ x2, a2)", "F.conv2d(x, w)",
               "backward(F.conv2d(x, w), x, w)"]
LINALG = """
import numpy, {name} as m
{more}
numbers = numpy.random.default_rng(0)
a = m.from_numpy(numbers.standard_normal(({n}, {n}), dtype='f4'))
spd = a @ a.t() + {n} * m.eye({n})
"""


def rows():
    """Label, statement, setup of every row."""
    for size, shape in SIZES.items():
        for dtype in ("float32", "int64"):
            for statement in BOTH + (FLOATS if dtype == "float32" else []):
                if "cdist" in statement and shape[0] > 512:
                    continue
                yield f"{statement} | {dtype} {size}", statement, (SETUP, {
                    "shape": shape, "dtype": dtype, "scale": 1 if dtype == "float32" else 100})
    for width in (16, 64):
        for dtype in ("float32", "int64"):
            for statement in ROWS:
                yield f"{statement} | {dtype} rows of {width}", statement, (SETUP, {
                    "shape": (65536 // width, width), "dtype": dtype, "scale": 1 if dtype == "float32" else 1000})
    for last in (False, True):
        for label, (statement, _) in ALONE.items():
            yield f"{label} | {'NHWC' if last else 'NCHW'}", statement, (IMAGES, {"last": last})
    for kind in ("RNN", "GRU", "LSTM"):
        for n, size in ((1, 64), (1, 256), (8, 64), (8, 256), (32, 128)):
            for statement, grad in (("net(x)", False), ("backward()", True), ("cell(x[0])", False)):
                yield f"{kind} {statement} | n {n}, size {size}", statement, (RECURRENT, {
                    "kind": kind, "n": n, "size": size, "time": 20, "grad": grad})
    for statement in SHAPED_ROWS:
        yield f"{statement} | small model", statement, (SHAPED, {})
    for n in (16, 64, 256):
        for op in ("svd(a)", "qr(a)", "eigh(spd)", "cholesky(spd)", "inv(a)", "solve(a, a)", "det(a)", "eig(a)",
                   "lstsq(a, a)", "pinv(a)", "matrix_exp(a / 100)", "lu(a)"):
            yield f"linalg.{op} | {n}", f"m.linalg.{op}", (LINALG, {"n": n})


@functools.lru_cache(maxsize=4)
def names_of(name, setup):
    names = {}
    exec(setup.format(name=name, more=f"import {name}.nn"), names)
    return names


def timer_of(name, statement, setup):
    text, words = setup
    words = {key: repr(value) if isinstance(value, tuple) else value for key, value in words.items()}
    return timeit.Timer(statement, globals=names_of(name, text.format(name="{name}", more="{more}", **words)))


def least_times(statement, setup, rounds=7, seconds=0.01):
    timers = [timer_of(name, statement, setup) for name in ("tercel", "torch")]
    counts = []
    for timer in timers:
        once = min(timer.repeat(2, 1))
        counts.append(max(1, min(10000, int(seconds / max(once, 1e-7)))))
    least = [float("inf")] * 2
    for _ in range(rounds):
        for side, (timer, count) in enumerate(zip(timers, counts)):
            least[side] = min(least[side], timer.timeit(count) / count)
    return [t * 1e6 for t in least]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--least", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only-slow", action="store_true")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    import tercel
    import torch

    tercel.set_num_threads(options.threads)
    torch.set_num_threads(options.threads)
    count = slow = 0
    print(f"{'us':56}{'tercel':>10}{'torch':>10}{'ratio':>8}")
    for label, statement, setup in rows():
        if options.words and not any(word in label for word in options.words):
            continue
        try:
            ours, theirs = least_times(statement, setup, options.rounds)
        except Exception as error:  # a row that one side does not support
            print(f"{label:56} {type(error).__name__}: {str(error)[:80]}", flush=True)
            continue
        count += 1
        below = theirs / ours < options.least
        slow += below
        if below or not options.only_slow:
            print(f"{label:56}{ours:10.1f}{theirs:10.1f}{theirs / ours:8.2f}{' <' if below else ''}", flush=True)
    print(f"{count} rows, {slow} below {options.least}")


if __name__ == "__main__":
    main()
