"""tercel.array_api compared with NumPy on fixed examples; the other test_array_api files generate examples."""

import inspect

import numpy as np
import pytest

import tercel as tc
import tercel.array_api as xp

KINDS = {"b": ["bool"], "i": ["int8", "int16", "int32", "int64"], "u": ["uint8", "uint16", "uint32", "uint64"],
         "f": ["float32", "float64"], "c": ["complex64", "complex128"]}


def names(kinds):
    return [name for kind in kinds for name in KINDS[kind]]


def sample(shape, dtype, seed=0, low=-4):
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        return np.asarray(rng.integers(max(low, 0 if kind == "u" else low), 6, shape)).astype(dtype)
    x = rng.standard_normal(shape) * 2
    return np.asarray(x + (1j * rng.standard_normal(shape) if kind == "c" else 0)).astype(dtype)


def tensor(x):
    return tc.from_numpy(x.copy()) if x.dtype == bool else tc.from_dlpack(np.array(x))


def same(got, want, tolerance=None):
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for one, other in zip(got, want):
            same(one, other, tolerance)
        return
    want = np.asarray(want)
    assert tuple(got.shape) == want.shape
    assert str(got.dtype) == f"tercel.{want.dtype}"
    got = got.numpy() if got.dtype is tc.bool else np.from_dlpack(got.contiguous())
    if want.dtype.kind in "fc":
        near = tolerance or (1e-10 if want.dtype.itemsize >= 8 + 8 * (want.dtype.kind == "c") else 2e-5)
        np.testing.assert_allclose(got, want, rtol=near, atol=near)
    else:
        np.testing.assert_array_equal(got, want)


def agrees(call, *arrays, tolerance=None):
    """Asserts that call(namespace, *arrays) is the same for both."""
    with np.errstate(all="ignore"):
        want = call(np, *arrays)
    same(call(xp, *(tensor(a) if isinstance(a, np.ndarray) else a for a in arrays)), want, tolerance)


@pytest.mark.parametrize("name", ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "log", "log1p",
                                  "log2", "log10", "sin", "sinh", "sqrt", "tan", "tanh", "isfinite", "isinf", "isnan",
                                  "abs", "conj", "negative", "round", "square"])
def test_complex_numbers_at_the_ends(name):
    parts = [0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan]
    x = np.array([complex(re, im) for re in parts for im in parts])
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x)
    got = getattr(xp, name)(tensor(x))
    got = got.numpy() if got.dtype is tc.bool else np.from_dlpack(got)
    if want.dtype.kind == "c":
        np.testing.assert_allclose(got.real, want.real, rtol=1e-12)
        np.testing.assert_allclose(got.imag, want.imag, rtol=1e-12, atol=1e-15)
    else:
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", names("iuf"))
def test_numbers_of_python(dtype):
    x = np.abs(sample((2, 3), dtype)) + np.ones((), dtype)
    for name in ("add", "subtract", "multiply", "pow", "remainder", "maximum", "less", "equal"):
        agrees(lambda np_or_xp, a: [getattr(np_or_xp, name)(a, 2), getattr(np_or_xp, name)(3, a)], x, tolerance=1e-5)
    assert xp.add(tensor(x)[0, 0], 1).dtype is tensor(x).dtype
    assert xp.add(tc.ones((), dtype=tc.float64), tc.ones(2)).dtype is tc.float64  # alone it counts as much
    with pytest.raises(TypeError, match="add: expected at least one array, but got int and float"):
        xp.add(1, 2.0)


@pytest.mark.parametrize("dtype", KINDS["c"])
def test_complex_numbers_of_python(dtype):
    x = sample((2, 3), dtype)
    for name in ("add", "subtract", "multiply", "divide", "equal"):
        agrees(lambda n, a: [getattr(n, name)(a, 1.5 + 1j), getattr(n, name)(2j, a), getattr(n, name)(a, 2)], x)
    agrees(lambda n, a: [n.where(a == a, a, 1j), n.full((2,), 1j, dtype=a.dtype), n.asarray([1j, 2], dtype=a.dtype)], x)
    assert xp.add(tc.ones(2), 1j).dtype is tc.complex64 and xp.full(2, 1j).dtype is tc.complex64
    same(xp.asarray([2 ** 63], dtype=xp.uint64), np.asarray([2 ** 63], dtype=np.uint64))


@pytest.mark.parametrize("dtype", names("iuf"))
def test_order_and_sums_so_far(dtype):
    for axis in (0, 1, -1):
        x = sample((3, 4), dtype, axis + 2)
        agrees(lambda n, a: [n.sort(a, axis=axis), n.argsort(a, axis=axis, stable=True)], x)
        agrees(lambda n, a: [n.cumulative_sum(a, axis=axis, include_initial=flag) for flag in (False, True)], x)
        agrees(lambda n, a: [n.cumulative_prod(a, axis=axis, include_initial=flag) for flag in (False, True)], x,
               tolerance=1e-4)
        agrees(lambda n, a: [n.diff(a, axis=axis), n.diff(a, axis=axis, n=2, prepend=a, append=a)], x)
    down = xp.argsort(xp.asarray([1, 2, 1, 2]), descending=True)
    assert down.tolist() == [1, 3, 0, 2]
    y = np.sort(sample((5,), dtype, 7))
    agrees(lambda n, a, b: [n.searchsorted(a, b, side=side) for side in ("left", "right")], y, sample((2, 3), dtype, 8))
    agrees(lambda n, a: list(n.unique_all(a)), sample((3, 4), dtype, 9))
    agrees(lambda n, a: [n.unique_counts(a).counts, n.unique_inverse(a).inverse_indices, n.unique_values(a)],
           sample((0,), dtype))
    agrees(lambda n, a: [n.clip(a, 1, 3), n.clip(a, min=2), n.clip(a, max=a[0, 0]), n.clip(a)], sample((2, 3), dtype))


@pytest.mark.parametrize("dtype", names("biufc"))
def test_shapes_and_places(dtype):
    x, y, z = sample((2, 3, 4), dtype, 1), sample((3,), dtype, 2), sample((1, 3, 1), dtype, 3)
    for call in (
            lambda n, a: [n.reshape(a, (6, 4)), n.reshape(a, (-1,), copy=True), n.expand_dims(a, axis=-4)],
            lambda n, a: [n.permute_dims(a, (2, 0, 1)), n.moveaxis(a, (0, 1), (2, 0)), n.matrix_transpose(a)],
            lambda n, a: [n.flip(a), n.flip(a, axis=-1), n.flip(a, axis=(0, 2))],
            lambda n, a: [n.roll(a, 2), n.roll(a, (1, 2), axis=(0, -1)), n.roll(a, 1, axis=(0, 1))],
            lambda n, a: [n.concat([a, a], axis=1), n.concat([a, a[0, ...]], axis=None), n.stack([a, a], axis=-1)],
            lambda n, a: [n.tile(a, (2,)), n.tile(a, (1, 1, 2, 1)), n.repeat(a, 2), n.repeat(a, 2, axis=1)],
            lambda n, a: [n.unstack(a), n.unstack(a, axis=-1), n.tril(a, k=1), n.triu(a, k=-1), n.nonzero(a)],
            lambda n, a: [n.zeros_like(a), n.ones_like(a, dtype=n.float64), n.full_like(a, 1), n.empty_like(a) == 0][:3],
            lambda n, a: [n.take(a, n.asarray([1, -1]), axis=1), n.take_along_axis(a, n.asarray([[[0], [2]]]), axis=1)]):
        agrees(call, x)
    agrees(lambda n, a: [n.squeeze(a, 0), n.squeeze(a, (0, 2)), n.broadcast_to(a, (2, 3, 4))], z)
    agrees(lambda n, a, b: list(n.broadcast_arrays(a, b)), x, z)
    agrees(lambda n, a: [*n.meshgrid(a, a[:2]), *n.meshgrid(a, a[:2], indexing="ij"), *n.meshgrid(a)], y)
    agrees(lambda n, a, b: n.where(a == a[0], a, b), y, z)
    agrees(lambda n, a: n.repeat(a, n.asarray([1, 0, 2])), y)
    if dtype[0] != "c":
        agrees(lambda n, a: [n.astype(a, getattr(n, other)) for other in ("bool", "int64", "float32", "complex128")], x)


@pytest.mark.parametrize("dtype", names("iufc"))
def test_products(dtype):
    x, y, v = sample((2, 3, 4), dtype, 1), sample((4, 3), dtype, 2), sample((4,), dtype, 3)
    agrees(lambda n, a, b, c: [n.matmul(a, b), n.matmul(a, c), n.tensordot(a, b, axes=1), n.linalg.outer(c, c)], x, y, v)
    agrees(lambda n, a, b, c: [n.tensordot(a, b, axes=((2, 1), (0, 1))), n.vecdot(a, c), n.vecdot(b, b, axis=-2)], x, y, v)
    agrees(lambda n, a, b, c: [n.linalg.diagonal(a), n.linalg.trace(a, offset=1), n.linalg.cross(b, b[1:2, ...])], x, y, v)


@pytest.mark.parametrize("dtype", names("fc"))
def test_linear_algebra(dtype):
    x, y, v = sample((2, 3, 3), dtype, 1), sample((2, 4, 3), dtype, 2), sample((3,), dtype, 3)
    h = np.matmul(x, x.conj().mT) + 3 * np.eye(3, dtype=dtype)
    tolerance = 1e-3 if dtype in ("float32", "complex64") else 1e-9
    for call in (lambda n, a, b: [n.det(a), n.inv(a), *n.slogdet(a), n.matrix_power(a, -2), n.svdvals(b)],
                 lambda n, a, b: [n.pinv(b), n.pinv(a, rtol=0.1), n.matrix_rank(b), n.matrix_rank(a, rtol=0.2)],
                 lambda n, a, b: [n.matrix_norm(b, ord=o, keepdims=o == 2) for o in ("fro", "nuc", 1, -1, 2, -2, np.inf)],
                 lambda n, a, b: [n.vector_norm(b, ord=o, axis=i) for o in (0, 1, 2, 3, -np.inf) for i in (None, 1, (0, 2))],
                 lambda n, a, b: [n.svd(b).S, n.svd(b, full_matrices=False).Vh.shape, abs(n.qr(b).R)]):
        agrees(lambda n, a, b: [r if isinstance(r, (np.ndarray, np.generic, tc.Tensor)) else n.asarray(tuple(r))
                                for r in call(n.linalg, a, b)], x, y, tolerance=tolerance)
    agrees(lambda n, a: [n.linalg.cholesky(a), n.linalg.eigvalsh(a), n.linalg.eigh(a).eigenvalues], h, tolerance=tolerance)
    solve = xp.linalg.solve
    same(solve(tensor(x), tensor(v)), np.linalg.solve(x, v), tolerance)
    # PyTorch would take (2, 3) for a batch of two vectors; in the standard it is a matrix.
    same(solve(tensor(x), tensor(x[0])), np.linalg.solve(x, x[0]), tolerance)
    with pytest.raises(RuntimeError):
        solve(tensor(x), tc.ones(2, 3, dtype=tensor(x).dtype))


def test_transforms():
    z, x = sample((2, 4, 6), "complex128"), sample((2, 4, 6), "float64")
    for name in ("fft", "ifft", "irfft", "hfft"):
        agrees(lambda n, a: [getattr(n.fft, name)(a, axis=1), getattr(n.fft, name)(a, n=5, norm="ortho")], z)
    for name in ("fftn", "ifftn", "irfftn"):
        agrees(lambda n, a: [getattr(n.fft, name)(a), getattr(n.fft, name)(a, s=(3, 5), axes=(0, 2))], z)
    agrees(lambda n, a: [n.fft.rfft(a), n.fft.ihfft(a, axis=0), n.fft.rfftn(a, axes=(0, 1))], x)
    agrees(lambda n, a: [n.fft.fftshift(a), n.fft.ifftshift(a, axes=(0, 1))], x)
    same(xp.fft.fftfreq(5, d=0.5, dtype=xp.float64), np.fft.fftfreq(5, 0.5))
    same(xp.fft.rfftfreq(6, dtype=xp.float64), np.fft.rfftfreq(6))


def test_new_arrays():
    for call in (lambda n: [n.arange(3), n.arange(5, 1, -2), n.arange(1, 7, 2, dtype=n.uint8), n.arange(5, 1)],
                 lambda n: [n.eye(3, 4, k=1, dtype=n.int16), n.eye(2, 3, k=-1, dtype=n.bool), n.eye(2, k=5, dtype=n.float32)],
                 lambda n: [n.linspace(0, 1, 5, endpoint=e, dtype=n.float64) for e in (True, False)],
                 lambda n: [n.linspace(2.0, -3, 1, dtype=n.float64), n.linspace(0, 1 + 2j, 3, dtype=n.complex128)],
                 lambda n: [n.full((2,), 3), n.full(2, True), n.full((), 2, dtype=n.uint16), n.zeros(3, dtype=n.float64)],
                 lambda n: [n.asarray([[1, 2], [3, 4]]), n.asarray(True), n.asarray(5, dtype=n.uint8), n.ones(2, dtype=n.int8)]):
        same(call(xp), call(np))
    x = xp.asarray([1.0, 2.0])
    assert x.dtype is tc.float32 and xp.asarray(x).data_ptr() == x.data_ptr() != xp.asarray(x, copy=True).data_ptr()
    assert xp.meshgrid() == ()
    for refused in (lambda: xp.asarray([1], copy=False), lambda: xp.asarray(x, dtype=xp.int64, copy=False),
                    lambda: xp.reshape(tc.ones(2, 3).mT, (6,), copy=False), lambda: xp.squeeze(tc.ones(2, 3), 0),
                    lambda: xp.nonzero(tc.ones(())), lambda: xp.cumulative_sum(tc.ones(2, 2)),
                    lambda: xp.take(tc.ones(2, 2), tc.tensor([0])), lambda: xp.arange(1, 3, 0), lambda: xp.result_type()):
        with pytest.raises(ValueError):
            refused()


def test_dtypes():
    every = names("biufc")
    for a in every:
        for kind in ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating",
                     "numeric", ("bool", "integral")):
            assert xp.isdtype(getattr(xp, a), kind) == np.isdtype(getattr(np, a), kind)
        for b in every:
            signs = {np.dtype(a).kind, np.dtype(b).kind}
            if (len(signs) == 1 or signs in ({"i", "u"}, {"f", "c"})) and not ("uint64" in (a, b) and "i" in signs):
                assert str(xp.result_type(getattr(xp, a), getattr(xp, b))) == f"tercel.{np.result_type(a, b)}"
                assert xp.can_cast(getattr(xp, a), getattr(xp, b)) == np.can_cast(getattr(np, a), getattr(np, b))
    for a in names("fc"):
        mine, theirs = xp.finfo(getattr(xp, a)), np.finfo(a)
        assert (mine.bits, mine.eps, mine.max, mine.min, mine.smallest_normal) == (
            theirs.bits, theirs.eps, theirs.max, theirs.min, theirs.smallest_normal)
    for a in names("iu"):
        assert (xp.iinfo(getattr(xp, a)).max, xp.iinfo(getattr(xp, a)).min) == (np.iinfo(a).max, np.iinfo(a).min)
    assert xp.result_type(tc.int8, 1.0) is tc.float32 and xp.result_type(tc.float64, 1j) is tc.complex128
    with pytest.raises(ValueError, match="expected a kind of 'bool'"):
        xp.isdtype(tc.int8, "number")


def test_namespace():
    x = tc.ones(2)
    assert x.__array_namespace__() is xp is x.__array_namespace__(api_version="2024.12") is x.__array_namespace__(api_version="2025.12")
    with pytest.raises(ValueError, match="but got '2050.01'"):
        x.__array_namespace__(api_version="2050.01")
    assert xp.__array_api_version__ == "2025.12"
    assert x.to_device("cpu") is x and x.to_device(x.device) is x
    with pytest.raises(ValueError, match="expected no stream"):
        x.to_device("cpu", stream=1)
    info = xp.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}
    assert info.devices() == (tc.device("cpu"),) and info.default_device() == tc.device("cpu")
    assert info.default_dtypes()["real floating"] is tc.float32 and info.default_dtypes()["integral"] is tc.int64
    assert sorted(info.dtypes()) == sorted(names("biufc"))
    assert list(info.dtypes(kind="unsigned integer")) == KINDS["u"]
    with pytest.raises(ValueError):
        info.dtypes(device="cuda")
    assert xp.from_dlpack(np.ones(2)).tolist() == [1, 1]
    for module in (xp, xp.linalg, xp.fft):
        for name in module.__all__:
            function = getattr(module, name)
            if inspect.isfunction(function):
                assert function.__doc__, name
                first = next(iter(inspect.signature(function).parameters.values()), None)
                assert first is None or first.kind is not first.POSITIONAL_OR_KEYWORD or name in (
                    "empty", "zeros", "ones", "full", "isdtype", "isin", "expand_dims"), name
