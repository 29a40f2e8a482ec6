"""Creation, manipulation, searching, sets, sorting, statistics, linear algebra and transforms, over shapes and dtypes."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tercel.array_api as xp
from array_api_draws import (
    COMPLEX, EVERY, FLOATING, INTEGERS, NUMBERS, PARTS, REAL_NUMBERS, REALS, SHAPES, SIGNED, UNSIGNED, agrees, arrays, axes_of,
    elements, few, mine, pairs, promotes, same, small, theirs)

SOME = hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)
MATRICES = hnp.array_shapes(min_dims=2, max_dims=3, min_side=0, max_side=4)


def drawn(data, dtypes, shape=SHAPES, of=None):
    dtype = data.draw(st.sampled_from(dtypes))
    return data.draw(arrays(dtype, shape, of=of(dtype) if of else None))


@few(12)
@given(st.data())
def test_arange(data):
    dtype = data.draw(st.sampled_from([None, *REAL_NUMBERS, *COMPLEX]))
    if dtype in INTEGERS:
        ends = st.integers(int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
        start, stop = data.draw(ends), data.draw(ends)
        step = max(abs(stop - start) // 20, 1) * (1 if stop >= start or dtype in UNSIGNED else -1)
    else:
        numbers = st.integers(-10 ** 6, 10 ** 6) | st.floats(-1e6, 1e6, width=32)
        start, stop = data.draw(numbers), data.draw(numbers)
        step = data.draw(st.sampled_from([1, 0.5, -1, -0.75, 3])) * max(abs(stop - start) / 20, 1)
    out = xp.arange(start, stop, step, dtype=dtype and getattr(xp, dtype))
    kinds = all(isinstance(v, int) for v in (start, stop, step))
    assert out.dtype == getattr(xp, dtype or ("int64" if kinds else "float32")) and out.ndim == 1
    assert abs(out.size - max(math.ceil((stop - start) / step), 0)) <= 1
    if dtype in INTEGERS or (dtype is None and kinds):
        assert out.tolist() == list(range(start, stop, step))
    elif out.size:
        np.testing.assert_allclose(theirs(out), start + step * np.arange(out.size), rtol=1e-4, atol=1e-4 * abs(step))
    same(xp.arange(5), np.arange(5))
    same(xp.arange(1, 4), np.arange(1, 4))


@few(15)
@given(st.data())
def test_linspace(data):
    dtype = data.draw(st.sampled_from([None, *NUMBERS]))
    kind = np.dtype(dtype or "float32")
    count, endpoint = data.draw(st.integers(0, 9)), data.draw(st.booleans())
    finite = elements(kind, allow_nan=False, allow_infinity=False) if kind.kind in "fc" else elements(kind)
    start = data.draw(finite).item()
    if kind.kind in "iu":
        apart = data.draw(st.integers(0, int(np.iinfo(kind).max) - start) | st.integers(int(np.iinfo(kind).min) - start, 0))
        stop = start + apart // (max(count, 1) + endpoint) * (max(count, 1) + endpoint)
    else:
        stop = data.draw(finite).item()
    out = xp.linspace(start, stop, count, dtype=dtype and getattr(xp, dtype), endpoint=endpoint)
    assert out.dtype == getattr(xp, str(kind)) and out.shape == (count,)
    if count:
        assert out[0] == xp.asarray(start, dtype=out.dtype)
    if count > 1 and endpoint:
        assert out[-1] == xp.asarray(stop, dtype=out.dtype)
    if not endpoint:
        whole = xp.linspace(start, stop, count + 1, dtype=out.dtype)
        assert xp.all(out == whole[:-1])
    assert kind.kind in "iu" or xp.all(xp.isfinite(out))


@few(6)
@given(st.data())
def test_filled(data):
    dtype, shape = data.draw(st.sampled_from(EVERY)), data.draw(SHAPES | st.integers(0, 3))
    value = data.draw(elements(dtype)).item()
    own = getattr(xp, dtype)
    same(xp.full(shape, value, dtype=own), np.full(shape, value, dtype=dtype))
    default = {bool: "bool", int: "int64", float: "float32", complex: "complex64"}[type(value)]
    if dtype not in ("uint64", "float64", "complex128"):
        same(xp.full(shape, value), np.full(shape, value, dtype=default))
    x = data.draw(arrays(data.draw(st.sampled_from(EVERY))))
    same(xp.full_like(mine(x), value, dtype=own), np.full_like(x, value, dtype=dtype))
    for name in ("zeros", "ones"):
        same(getattr(xp, name)(shape, dtype=own), getattr(np, name)(shape, dtype=dtype))
        same(getattr(xp, name)(shape), getattr(np, name)(shape, dtype="float32"))
        same(getattr(xp, f"{name}_like")(mine(x)), getattr(np, f"{name}_like")(x))
        same(getattr(xp, f"{name}_like")(mine(x), dtype=own), getattr(np, f"{name}_like")(x, dtype=dtype))
    assert xp.empty(shape, dtype=own).dtype == own == xp.empty_like(mine(x), dtype=own).dtype
    assert xp.empty_like(mine(x)).shape == x.shape and xp.empty(shape).dtype == xp.float32
    rows, columns, k = (data.draw(s) for s in (st.integers(0, 4), st.none() | st.integers(0, 4), st.integers(-5, 5)))
    same(xp.eye(rows, columns, k=k, dtype=own), np.eye(rows, columns, k=k, dtype=dtype))
    m = data.draw(arrays(dtype, MATRICES))
    k = data.draw(st.integers(-5, 5) | st.sampled_from([2 ** 70, -2 ** 70]))
    if abs(k) < 9:
        agrees(lambda n, a: [n.tril(a, k=k), n.triu(a, k=k)], m)
    else:
        same([xp.tril(mine(m), k=k), xp.triu(mine(m), k=-k)], [m * (k > 0), m * (k > 0)])
    vectors = data.draw(st.lists(arrays(dtype, hnp.array_shapes(max_dims=1, min_side=0, max_side=3)), max_size=3))
    agrees(lambda n, *v: [*n.meshgrid(*v), *n.meshgrid(*v, indexing="ij")], *vectors)


@few(12)
@given(st.data())
def test_new_shapes(data):
    x = drawn(data, EVERY)
    ndim = x.ndim
    axis = data.draw(st.integers(-ndim - 2, ndim + 1))
    agrees(lambda n, a: n.expand_dims(a, axis=axis), x)
    if axis < -ndim - 1 or axis > ndim:
        with pytest.raises(IndexError):
            xp.expand_dims(mine(x), axis=axis)
    axes = data.draw(st.lists(st.integers(-ndim - 4, ndim + 3), max_size=3))
    places = [a % (ndim + len(axes)) for a in axes if -ndim - len(axes) <= a < ndim + len(axes)]
    if len(set(places)) == len(axes):
        agrees(lambda n, a: n.expand_dims(a, axis=tuple(axes)), x)
        assert xp.expand_dims(mine(x), tuple(axes)).shape == np.expand_dims(x, tuple(axes)).shape
    else:
        with pytest.raises(IndexError if len(places) < len(axes) else ValueError):
            xp.expand_dims(mine(x), tuple(axes))
    target = data.draw(st.permutations(x.shape)) or [1]
    if x.size and data.draw(st.booleans()):
        target[data.draw(st.integers(0, len(target) - 1))] = -1
    agrees(lambda n, a: [n.reshape(a, tuple(target)), n.reshape(a, (-1,) if a.size else (0,), copy=True)], x)
    assert np.prod(x.shape) == xp.reshape(mine(x), (x.size,), copy=False).size
    larger = data.draw(hnp.broadcastable_shapes(x.shape, min_side=0, max_dims=4))
    agrees(lambda n, a: n.broadcast_to(a, larger), x)
    y = data.draw(arrays("float64", larger))
    agrees(lambda n, a, b: list(n.broadcast_arrays(a, b)), x, y)
    order = tuple(data.draw(st.permutations(range(ndim))))
    agrees(lambda n, a: n.permute_dims(a, order), x)
    axes = data.draw(axes_of(ndim))
    agrees(lambda n, a: n.flip(a, axis=axes), x)
    shift = data.draw(st.integers(-50, 50))
    agrees(lambda n, a: n.roll(a, shift, axis=axes), x)
    same(xp.roll(mine(x), shift + 10 ** 30 * math.prod(x.shape)), np.roll(x, shift))
    if isinstance(axes, tuple) and axes:
        shifts = tuple(range(shift, shift + len(axes)))
        agrees(lambda n, a: n.roll(a, shifts, axis=axes), x)
        to = data.draw(st.permutations(range(ndim)))[:len(axes)]
        agrees(lambda n, a: n.moveaxis(a, axes, tuple(to)), x)
    elif isinstance(axes, int):
        agrees(lambda n, a: [n.moveaxis(a, axes, 0), *n.unstack(a, axis=axes)], x)
    sizes = [i for i, size in enumerate(x.shape) if size == 1]
    agrees(lambda n, a: [n.squeeze(a, tuple(sizes)), *(n.squeeze(a, i - ndim) for i in sizes)], x)
    for i, size in enumerate(x.shape):
        if size != 1:
            with pytest.raises(ValueError, match="squeeze: expected size 1"):
                xp.squeeze(mine(x), i)
    times = data.draw(st.lists(st.integers(0, 3), max_size=4).map(tuple))
    agrees(lambda n, a: n.tile(a, times), x)
    count = data.draw(st.integers(0, 3))
    agrees(lambda n, a: n.repeat(a, count, axis=None if isinstance(axes, tuple) else axes), x)
    counts = data.draw(hnp.arrays(data.draw(st.sampled_from(SIGNED)), st.sampled_from([(1,), (x.size,)]),
                                  elements=st.integers(0, 3)))
    agrees(lambda n, a, r: n.repeat(a, r), x, counts)
    if ndim:
        counts = data.draw(hnp.arrays("int64", (x.shape[-1],), elements=st.integers(0, 3)))
        agrees(lambda n, a, r: n.repeat(a, r, axis=-1), x, counts)


@few(8)
@given(st.data())
def test_joined(data):
    first, second = data.draw(pairs(NUMBERS))
    shape = data.draw(SHAPES)
    axis = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1)) if shape else None
    other = list(shape)
    if axis is not None:
        other[axis] = data.draw(st.integers(0, 3))
    x, y = data.draw(arrays(first, shape)), data.draw(arrays(second, tuple(other)))
    agrees(lambda n, a, b: [n.concat([a, b], axis=axis), n.concat((b, a, b), axis=axis)], x, y)
    z = data.draw(arrays(second, shape))
    at = data.draw(st.integers(-len(shape) - 1, len(shape)))
    agrees(lambda n, a, b: n.stack([a, b], axis=at), x, z)


@few(8)
@given(st.data())
def test_places(data):
    x = drawn(data, REAL_NUMBERS, SOME, lambda d: elements(d, **({"allow_nan": False} if d in REALS else {})))
    axis, keepdims = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1)), data.draw(st.booleans())
    agrees(lambda n, a: [n.argmax(a, axis=axis, keepdims=keepdims), n.argmin(a, axis=axis, keepdims=keepdims)], x)
    at = -1 if axis is None else axis
    agrees(lambda n, a: [n.sort(a, axis=at), n.argsort(a, axis=at, stable=True)], x)
    for stable in (True, False):
        down = xp.sort(mine(x), axis=at, descending=True, stable=stable)
        same(down, np.flip(np.sort(x, axis=at), axis=at))
        order = np.apply_along_axis(lambda line: sorted(range(line.size), key=line.__getitem__, reverse=True), at, x)
        same(xp.argsort(mine(x), axis=at, descending=True, stable=stable), order)
    z = drawn(data, EVERY, SOME)
    several = data.draw(axes_of(z.ndim).filter(lambda a: a != ()))
    agrees(lambda n, a: n.nonzero(a), z)
    same(xp.count_nonzero(mine(z), axis=several, keepdims=keepdims), np.count_nonzero(z, axis=several, keepdims=keepdims))
    lower = np.sort(x.flatten())
    wanted = data.draw(arrays(x.dtype, of=elements(x.dtype, **({"allow_nan": False} if x.dtype.kind == "f" else {}))))
    for side in ("left", "right"):
        agrees(lambda n, a, b: n.searchsorted(a, b, side=side), lower, wanted)
        agrees(lambda n, a, b, s: n.searchsorted(a, b, side=side, sorter=s), x.flatten(), wanted, np.argsort(x.flatten()))
    index = data.draw(hnp.arrays(data.draw(st.sampled_from(SIGNED)), st.integers(0, 5),
                                 elements=st.integers(-z.shape[-1], z.shape[-1] - 1)))
    agrees(lambda n, a, i: n.take(a, i, axis=-1), z, index)
    lines = np.broadcast_to(index.astype("int64"), (*z.shape[:-1], index.size))
    agrees(lambda n, a, i: n.take_along_axis(a, i), z, lines)
    with pytest.raises((ValueError, RuntimeError)):
        xp.nonzero(mine(z.flatten()[0]))


@few(12)
@given(st.data())
def test_sets(data):
    x = drawn(data, EVERY, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
              lambda d: small(d) | elements(d) if d in FLOATING else elements(d))
    whole = xp.unique_all(mine(x))
    values, first, inverse, counts = (theirs(part) for part in whole)
    assert values.dtype == x.dtype and first.dtype == inverse.dtype == counts.dtype == np.dtype("int64")
    assert values.shape == first.shape == counts.shape and inverse.shape == x.shape
    flat = x.flatten()
    np.testing.assert_array_equal(values[inverse], x)
    np.testing.assert_array_equal(flat[first], values)
    for value, start, count in zip(values, first, counts):
        hits = np.flatnonzero(flat == value)
        assert np.isnan(value) and count == 1 or (start == hits[0] and count == len(hits)) if x.dtype.kind in "fc" else (
            start == hits[0] and count == len(hits))
    assert len(values) == len({v for v in flat.tolist() if v == v}) + np.count_nonzero(flat != flat)
    same(xp.unique_values(mine(x)), values)
    assert [part.tolist().__repr__() for part in xp.unique_counts(mine(x))] == [repr(values.tolist()), repr(counts.tolist())]
    assert xp.unique_inverse(mine(x)).inverse_indices.tolist() == inverse.tolist()
    assert whole._fields == ("values", "indices", "inverse_indices", "counts")


@pytest.mark.parametrize("name, dtypes", [("sum", NUMBERS), ("prod", NUMBERS), ("mean", REALS), ("max", REAL_NUMBERS),
                                          ("min", REAL_NUMBERS), ("std", REALS), ("var", REALS), ("all", EVERY), ("any", EVERY)])
@few(6)
@given(st.data())
def test_statistics(name, dtypes, data):
    ends = name in ("max", "min", "all", "any")
    empty = name not in ("max", "min")
    x = drawn(data, dtypes, SHAPES if empty else hnp.array_shapes(min_dims=0, max_dims=3, min_side=1, max_side=4),
              elements if ends else small)
    kwargs = {"axis": data.draw(axes_of(x.ndim)), "keepdims": data.draw(st.booleans())}
    if name in ("std", "var"):
        kwargs["correction"] = data.draw(st.sampled_from([0, 1, 0.5]))
        assume(x.size > 1)
    if name in ("sum", "prod") and data.draw(st.booleans()):
        kwargs["dtype"] = data.draw(st.sampled_from([d for d in EVERY[1:] if promotes(str(x.dtype), d) and not (
            x.dtype.kind == "c" and d in REALS)]))
    own = {k: getattr(xp, v) if k == "dtype" else v for k, v in kwargs.items()}
    with np.errstate(all="ignore"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = np.asarray(getattr(np, name)(x, **kwargs))
    got = getattr(xp, name)(mine(x), **own)
    if want.dtype.kind in "fc" and name in ("std", "var"):
        want = np.where(np.isinf(want), np.nan, want).astype(want.dtype)  # with no more values than the correction
        got = xp.where(xp.isinf(got), xp.asarray(xp.nan, dtype=got.dtype), got)
    same(got, want, near=1e-4)


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
@few(6)
@given(st.data())
def test_so_far(name, data):
    x = drawn(data, NUMBERS, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4), small)
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    kwargs = {"axis": None if x.ndim == 1 and data.draw(st.booleans()) else axis, "include_initial": data.draw(st.booleans())}
    agrees(lambda n, a: getattr(n, name)(a, **kwargs), x, near=1e-4)
    wide = {"i": "int64", "u": "uint64", "f": "float64", "c": "complex128"}[x.dtype.kind]
    agrees(lambda n, a: getattr(n, name)(a, dtype=getattr(n, wide), **kwargs), x, near=1e-4)
    times = data.draw(st.integers(0, 3))
    agrees(lambda n, a: n.diff(a, axis=axis, n=times) if a.shape[axis] else a, x, near=1e-4)
    agrees(lambda n, a: n.diff(a, axis=axis, prepend=a, append=a) if a.shape[axis] else a, x, near=1e-4)


# -- linear algebra --------------------------------------------------------------------------------------------------------


def stacks(function, x, *, into):
    """Each matrix of a stack gives the same result alone: shape and dtype, and the numbers if there are any."""
    whole = function(x)
    for index in np.ndindex(*x.shape[:-2]):
        one = function(x[index])
        part = whole[index]
        assert part.dtype == one.dtype and part.shape == one.shape and one.ndim == into
        np.testing.assert_allclose(theirs(part), theirs(one), rtol=1e-3, atol=1e-3)
    return whole


def near_of(dtype):
    return 2e-3 if dtype in ("float32", "complex64") else 1e-8


@few(8)
@given(st.data())
def test_decompositions(data):
    dtype = data.draw(st.sampled_from(FLOATING))
    a = data.draw(arrays(dtype, MATRICES, of=small(dtype)))
    x, near = mine(a), near_of(dtype)
    *stack, rows, columns = a.shape
    least, part = min(rows, columns), getattr(xp, PARTS.get(dtype, dtype))
    linalg = xp.linalg
    for mode, inner in (("reduced", least), ("complete", rows)):
        q, r = found = linalg.qr(x, mode=mode)
        assert found._fields == ("Q", "R") and q.dtype == r.dtype == x.dtype
        assert q.shape == (*stack, rows, inner) and r.shape == (*stack, inner, columns) and xp.all(r == xp.triu(r))
        np.testing.assert_allclose(theirs(q @ r), a, rtol=near, atol=near)
        stacks(lambda m: linalg.qr(m, mode=mode).R, x, into=2)
    for full in (True, False):
        u, s, vh = found = linalg.svd(x, full_matrices=full)
        assert found._fields == ("U", "S", "Vh") and u.dtype == vh.dtype == x.dtype and s.dtype == part
        assert u.shape == (*stack, rows, rows if full else least) and vh.shape == (*stack, columns if full else least, columns)
        assert s.shape == (*stack, least) and xp.all(s[..., :-1] >= s[..., 1:])
        back = (u[..., :least] * xp.astype(s, x.dtype)[..., None, :]) @ vh[..., :least, :]
        np.testing.assert_allclose(theirs(back), a, rtol=near, atol=near)
    np.testing.assert_allclose(theirs(stacks(linalg.svdvals, x, into=1)), theirs(s), rtol=near, atol=near)
    if a.size:
        for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
            agrees(lambda n, m: n.linalg.matrix_norm(m, ord=order, keepdims=True), a, near=near)
            stacks(lambda m: linalg.matrix_norm(m, ord=order), x, into=0)
        ranks = linalg.matrix_rank(x)
        assert ranks.tolist() == np.asarray(np.linalg.matrix_rank(a)).tolist() and ranks.dtype == xp.int64
        if xp.all(ranks == least):
            agrees(lambda n, m: n.linalg.pinv(m), a, near=max(near, 2e-2) if near > 1e-4 else 1e-6)
    else:
        assert linalg.matrix_norm(x, ord=2, keepdims=True).shape == (*stack, 1, 1) and linalg.pinv(x).shape == (
            *stack, columns, rows)
    limits = xp.full(tuple(stack), 0.1, dtype=part)
    assert linalg.pinv(x, rtol=limits).shape == (*stack, columns, rows)
    assert linalg.matrix_rank(x, rtol=limits).shape == tuple(stack)


@few(8)
@given(st.data())
def test_square_matrices(data):
    dtype = data.draw(st.sampled_from(FLOATING))
    n_rows = data.draw(st.integers(0, 4))
    stack = data.draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3))
    a = data.draw(arrays(dtype, (*stack, n_rows, n_rows), of=small(dtype))) + 9 * np.eye(n_rows, dtype=dtype)
    x, near, linalg = mine(a), near_of(dtype), xp.linalg
    same(stacks(linalg.inv, x, into=2), np.linalg.inv(a), near)
    same(stacks(linalg.det, x, into=0), np.linalg.det(a), near)
    sign, logarithm = found = linalg.slogdet(x)
    assert found._fields == ("sign", "logabsdet")
    same([sign, logarithm], list(np.linalg.slogdet(a)), near)
    for power in (0, 1, 3, -2):
        same(stacks(lambda m: linalg.matrix_power(m, power), x, into=2), np.linalg.matrix_power(a, power), near)
    assert linalg.matrix_power(x, 100).shape == a.shape
    h = (np.matmul(a, np.swapaxes(a.conj(), -1, -2)) / 9).astype(dtype)
    y = mine(h)
    lower, upper = stacks(linalg.cholesky, y, into=2), linalg.cholesky(y, upper=True)
    assert xp.all(lower == xp.tril(lower)) and xp.all(upper == xp.triu(upper)) and upper.dtype == x.dtype
    same(lower, np.linalg.cholesky(h), near)
    values, vectors = found = linalg.eigh(y)
    assert found._fields == ("eigenvalues", "eigenvectors") and vectors.dtype == x.dtype
    same(values, np.linalg.eigvalsh(h), near)
    same(stacks(linalg.eigvalsh, y, into=1), np.linalg.eigvalsh(h), near)
    np.testing.assert_allclose(theirs(y @ vectors), theirs(vectors * xp.astype(values, x.dtype)[..., None, :]), rtol=near,
                               atol=max(near, 1e-2) if near > 1e-4 else 1e-7)
    other = data.draw(st.sampled_from([d for d in FLOATING if promotes(d, dtype)]))
    width = data.draw(st.integers(0, 3))
    for shape in ((n_rows,), (*stack, n_rows, width), (n_rows, width)):
        b = data.draw(arrays(other, shape, of=small(other)))
        got = linalg.solve(x, mine(b))
        assert got.dtype == xp.result_type(x, mine(b)) and got.shape == (*stack, *((n_rows,) if b.ndim == 1 else b.shape[-2:]))
        back = theirs(x @ got) if b.ndim > 1 else theirs(xp.squeeze(x @ got[..., None], -1))
        np.testing.assert_allclose(back, np.broadcast_to(b, back.shape), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_matrices_without_numbers_are_no_error(dtype, value):
    x = xp.full((2, 3, 3), value, dtype=getattr(xp, dtype))
    for call in (xp.linalg.det, xp.linalg.slogdet, xp.linalg.qr, lambda m: xp.linalg.matrix_power(m, 3),
                 lambda m: xp.linalg.matrix_power(m, 0), xp.linalg.trace, xp.linalg.vector_norm,
                 lambda m: xp.linalg.solve(xp.eye(3, dtype=m.dtype), m)):
        out = call(x)
        assert (out if isinstance(out, xp.ones(1).__class__) else out[0]).dtype == x.dtype or call is xp.linalg.vector_norm
    assert xp.all(xp.linalg.matrix_power(x, 0) == xp.eye(3, dtype=x.dtype))


@few(8)
@given(st.data())
def test_products(data):
    first, second = data.draw(pairs(NUMBERS))
    shapes = data.draw(hnp.mutually_broadcastable_shapes(signature="(n?,k),(k,m?)->(n?,m?)", max_dims=2, min_side=0, max_side=3))
    a, b = (data.draw(arrays(d, s, of=small(d))) for d, s in zip((first, second), shapes.input_shapes))
    agrees(lambda n, x, y: [n.matmul(x, y), n.linalg.matmul(x, y), x @ y], a, b, near=1e-4)
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, min_dims=1, max_dims=3, min_side=0, max_side=3))
    a, b = (data.draw(arrays(d, s, of=small(d))) for d, s in zip((first, second), shapes.input_shapes))
    axis = data.draw(st.integers(-min(a.ndim, b.ndim), -1))
    if a.shape[axis] == b.shape[axis]:
        agrees(lambda n, x, y: [n.vecdot(x, y, axis=axis), n.linalg.vecdot(x, y, axis=axis)], a, b, near=1e-4)
    else:
        with pytest.raises(ValueError, match="vecdot: expected equal sizes"):
            xp.vecdot(mine(a), mine(b), axis=axis)
    three = [tuple(3 if i == axis % len(s) else size for i, size in enumerate(s)) for s in (a.shape, b.shape)]
    c, d = (data.draw(arrays(dt, s, of=small(dt))) for dt, s in zip((first, second), three))
    agrees(lambda n, x, y: n.linalg.cross(x, y, axis=axis), c, d, near=1e-4)
    u, v = (data.draw(arrays(dt, (data.draw(st.integers(0, 4)),), of=small(dt))) for dt in (first, second))
    agrees(lambda n, x, y: n.linalg.outer(x, y), u, v, near=1e-4)
    for count in range(min(a.ndim, b.ndim) + 1):
        e = data.draw(arrays(second, (*a.shape[a.ndim - count:], 2), of=small(second)))
        agrees(lambda n, x, y: [n.tensordot(x, y, axes=count), n.linalg.tensordot(x, y, axes=count)], a, e, near=1e-4)
    order = data.draw(st.permutations(range(a.ndim)))
    f = np.transpose(np.ones(a.shape, second), order)
    agrees(lambda n, x, y: n.tensordot(x, y, axes=(tuple(order), tuple(range(-a.ndim, 0)))), a, f, near=1e-4)
    for wrong in ((), (2, 3)):
        with pytest.raises(RuntimeError):
            xp.matmul(xp.ones(wrong), xp.ones((2, 2)))


@few(8)
@given(st.data())
def test_diagonals_and_norms(data):
    x = drawn(data, NUMBERS, MATRICES, small)
    offset = data.draw(st.integers(-6, 6))
    agrees(lambda n, a: [n.linalg.diagonal(a, offset=offset), n.linalg.trace(a, offset=offset)], x, near=1e-4)
    agrees(lambda n, a: [n.matrix_transpose(a), n.linalg.matrix_transpose(a)], x)
    y = drawn(data, FLOATING, SOME, small)
    axis, keepdims = data.draw(axes_of(y.ndim).filter(lambda a: a != ())), data.draw(st.booleans())
    order = data.draw(st.sampled_from([0, 1, 2, -1, -2, 3, 2.5, np.inf, -np.inf]))
    agrees(lambda n, a: n.linalg.vector_norm(a, axis=axis, keepdims=keepdims, ord=order), y, near=1e-3)
    # NumPy takes no axes to be none; the standard's norms of single elements are magnitudes.
    norm = xp.linalg.vector_norm(mine(y), axis=(), ord=2)
    same(norm, np.abs(y), 1e-5)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@few(12)
@given(st.data())
def test_transforms_of_one_axis(name, data):
    x = drawn(data, REALS if name in ("rfft", "ihfft") else COMPLEX, SOME, small)
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    n = data.draw(st.none() | st.integers(1, 6))
    assume(n or x.shape[axis] > 1)
    norm = data.draw(st.sampled_from(["backward", "ortho", "forward"]))
    agrees(lambda s, a: getattr(s.fft, name)(a, n=n, axis=axis, norm=norm), x, near=1e-3)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
@few(12)
@given(st.data())
def test_transforms_of_several_axes(name, data):
    x = drawn(data, REALS if name == "rfftn" else COMPLEX, SOME, small)
    axes = data.draw(st.none() | st.permutations(range(x.ndim)).map(lambda p: p[:max(1, len(p) - 1)]))
    count = x.ndim if axes is None else len(axes)
    s = data.draw(st.none() | st.lists(st.integers(1, 5), min_size=count, max_size=count))
    assume(s or x.shape[-1 if axes is None else axes[-1]] > 1)
    norm = data.draw(st.sampled_from(["backward", "ortho", "forward"]))
    with_axes = {} if axes is None and s is None else {"axes": list(range(x.ndim)) if axes is None else axes}
    with np.errstate(all="ignore"):
        want = getattr(np.fft, name)(x, s=s, norm=norm, **with_axes)
    same(getattr(xp.fft, name)(mine(x), s=s, norm=norm, axes=axes), want, near=1e-3)
    agrees(lambda n, a: [n.fft.fftshift(a, axes=axes), n.fft.ifftshift(a, axes=axes)], x)


@few(10)
@given(st.integers(1, 40), st.floats(0.1, 5))
def test_frequencies(n, d):
    for name in ("fftfreq", "rfftfreq"):
        same(getattr(xp.fft, name)(n, d=d, dtype=xp.float64), getattr(np.fft, name)(n, d=d), near=1e-9)
        assert getattr(xp.fft, name)(n).dtype == xp.float32 and getattr(xp.fft, name)(n, device="cpu").size


@pytest.mark.parametrize("call, error, text", [
    (lambda m, v: xp.squeeze(m, 2), IndexError, "squeeze: expected axes of an array of 2 dimensions, but got 2"),
    (lambda m, v: xp.squeeze(m, (0, -3)), IndexError, "squeeze: expected axes of an array of 2 dimensions, but got -3"),
    (lambda m, v: xp.squeeze(m, (0, 1)), ValueError, "squeeze: expected size 1 of axis 1, but got 3"),
    (lambda m, v: xp.roll(m, (1, 2)), ValueError, "roll: expected as many shifts as axes, but got 2 and 0"),
    (lambda m, v: xp.roll(m, (1, 2), axis=1), ValueError, "roll: expected as many shifts as axes, but got 2 and 1"),
    (lambda m, v: xp.tril(v), ValueError, "tril: expected at least 2 dimensions, but got 1"),
    (lambda m, v: xp.triu(v[0]), ValueError, "triu: expected at least 2 dimensions, but got 0"),
    (lambda m, v: xp.take(v, v), TypeError, "take: expected integer indices, but got tercel.float32"),
    (lambda m, v: xp.take(v, v > 1), TypeError, "take: expected integer indices, but got tercel.bool"),
    (lambda m, v: xp.take_along_axis(v, v), TypeError, "take_along_axis: expected integer indices, but got tercel.float32"),
])
def test_refused(call, error, text):
    with pytest.raises(error, match=text):
        call(xp.ones((1, 3)), xp.asarray([1.0, 0.0, 2.0]))


@few(12)
@given(st.data())
def test_isin(data):
    x, y = drawn(data, EVERY[1:9] + COMPLEX), drawn(data, EVERY[1:9] + COMPLEX)
    if not promotes(str(x.dtype), str(y.dtype)) and not promotes(str(y.dtype), str(x.dtype)):
        y = y.astype(x.dtype)
    y = np.concatenate([y.flatten(), x.flatten()[::2].astype(y.dtype)])
    wanted = np.isin(x, y)
    for invert in (False, True):
        same(xp.isin(mine(x), mine(y), invert=invert), wanted ^ invert)
    same(xp.isin(mine(x), 3), np.isin(x, 3))
    same(xp.isin(3, mine(y)), np.asarray(np.isin(3, y)))


def test_isin_needs_an_array():
    with pytest.raises(TypeError, match="isin: expected at least one array, but got int and int"):
        xp.isin(1, 2)
    assert xp.isin(xp.asarray([1.0, xp.nan, -0.0]), xp.asarray([xp.nan, 0.0])).tolist() == [False, False, True]


def test_isin_of_complex_arrays():
    """Equal in both parts, wherever the parts occur by themselves."""
    x = np.array([a + b * 1j for a in (-1, 0, 2, np.inf, np.nan) for b in (-0.0, 1, 3, np.nan)]).reshape(4, 5)
    for dtype in ("complex64", "complex128"):
        y = np.array([2 + 1j, -1 + 3j, complex(np.nan, 1), complex(-1, np.nan), 0j, complex(np.inf, 3), 2 + 1j], dtype)
        for invert in (False, True):
            assert xp.isin(mine(x.astype(dtype)), mine(y), invert=invert).tolist() == np.isin(x.astype(dtype), y, invert=invert).tolist()
    assert xp.isin(xp.asarray([1j]), xp.asarray([1j])).tolist() == [True]
    assert xp.isin(xp.asarray([1.0, 2.0]), xp.asarray([2 + 0j, 1 + 1j])).tolist() == [False, True]
    assert xp.isin(xp.asarray([1j]), xp.asarray([], dtype=xp.complex64)).tolist() == [False]


@few(12)
@given(st.data())
def test_shapes_that_broadcast(data):
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=data.draw(st.integers(1, 4)), min_side=0)).input_shapes
    got = xp.broadcast_shapes(*shapes)
    assert type(got) is tuple and got == np.broadcast_shapes(*shapes)
    parts = xp.broadcast_arrays(*(xp.zeros(shape) for shape in shapes))
    assert type(parts) is tuple and all(part.shape == got for part in parts)
    assert xp.broadcast_shapes() == () == xp.broadcast_arrays() == xp.meshgrid()
    assert type(xp.meshgrid(xp.ones(2), xp.ones(3))) is tuple
    with pytest.raises(ValueError, match="broadcast_shapes: "):
        xp.broadcast_shapes((2, 3), (2, 2))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 1, 4, 4), (0, 0), (0, 2, 2)])
def test_eigenvalues_of_any_matrix(dtype, shape):
    x = xp.asarray(np.random.default_rng(0).normal(size=shape), dtype=getattr(xp, dtype))
    x = x + 1j * xp.astype(xp.flip(xp.real(x)), x.dtype) if "complex" in dtype else x
    values, vectors = found = xp.linalg.eig(x)
    kind = xp.complex64 if dtype in ("float32", "complex64") else xp.complex128
    assert found.eigenvalues is values and found.eigenvectors is vectors and type(values) is type(x)
    assert values.dtype is vectors.dtype is kind and values.shape == shape[:-1] and vectors.shape == shape
    left, right = xp.astype(x, kind) @ vectors, vectors * xp.expand_dims(values, -2)
    tolerance = 1e-4 if kind is xp.complex64 else 1e-10
    assert np.allclose(np.asarray(left), np.asarray(right), atol=tolerance)
    ours = xp.linalg.eigvals(x)
    assert ours.dtype is kind and ours.shape == values.shape
    distances = np.abs(np.asarray(ours)[..., None] - np.linalg.eigvals(np.asarray(x).astype("complex128"))[..., None, :])
    if distances.size:
        assert max(distances.min(-1).max(), distances.min(-2).max()) < 10 * tolerance


def test_bounds_between_integers():
    x = xp.asarray([0, 1, 2, 3, 4], dtype=xp.int8)
    assert xp.clip(x, 1.5, 2.5).tolist() == [2, 2, 2, 2, 2] and xp.clip(x, 0.5, 3.5).tolist() == [1, 1, 2, 3, 3]
    assert xp.clip(x, -xp.inf, 1000.5).tolist() == x.tolist() and xp.clip(x, 0.5).dtype is xp.int8


def test_values_that_are_set_come_to_the_dtype_of_the_array():
    x = xp.ones(3, dtype=xp.float32)
    x[x > 0] = xp.asarray([2, 3, 4], dtype=xp.int64)
    x[:1] = xp.asarray([5], dtype=xp.float64)
    assert x.tolist() == [5, 3, 4] and x.dtype is xp.float32
    x = xp.ones(3, dtype=xp.int32)
    x[xp.asarray([0, 2])] = xp.asarray([7, 8], dtype=xp.int8)
    x[1] = True
    assert x.tolist() == [7, 1, 8]
    for value, name in ((xp.asarray(2.5), "tercel.float32"), (2.5, "float"), (1j, "complex")):
        with pytest.raises(TypeError, match=f"__setitem__: expected a value of the kind of tercel.int32 or .* got {name}"):
            x[0] = value
    with pytest.raises(TypeError, match="__setitem__: expected a value of the kind of tercel.bool"):
        xp.ones(1, dtype=xp.bool)[0] = 1
