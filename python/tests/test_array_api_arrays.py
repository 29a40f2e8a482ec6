"""The array object of tercel.array_api: indices, conversions, attributes, exchange; names and signatures of the standard."""

import copy
import inspect
import operator
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from hypothesis.extra.array_api import make_strategies_namespace

import tercel as tc
import tercel.array_api as xp
from array_api_draws import BOOLS, COMPLEX, EVERY, INTEGERS, NUMBERS, REALS, SHAPES, agrees, arrays, elements, few, mine, \
    pairs, same, small, theirs

xps = make_strategies_namespace(xp, api_version="2024.12")


@few(12)
@given(st.data())
def test_getitem(data):
    x = data.draw(arrays(data.draw(st.sampled_from(EVERY))))
    key = data.draw(xps.indices(x.shape, allow_newaxis=True))
    same(mine(x)[key], x[key])


@few(12)
@given(st.data())
def test_setitem(data):
    to, of = data.draw(pairs(EVERY).filter(lambda p: np.can_cast(p[1], p[0])))
    x = data.draw(arrays(to))
    key = data.draw(xps.indices(x.shape))
    shape = x[key].shape
    value = data.draw(arrays(of, shape) | arrays(of, st.just(())) | elements(to).map(lambda v: v.item()))
    want, got = x.copy(), mine(x)
    want[key] = value
    got[key] = mine(value) if isinstance(value, np.ndarray) else value
    same(got, want)


@few(12)
@given(st.data())
def test_masks(data):
    x = data.draw(arrays(data.draw(st.sampled_from(EVERY))))
    shape = data.draw(st.sampled_from([x.shape, (), x.shape[:1], tuple(0 for _ in x.shape)]) | SHAPES)
    mask = data.draw(arrays("bool", shape))
    agrees(lambda n, a, m: a[m], x, mask)
    if mask.shape == x.shape:
        value = data.draw(elements(x.dtype))
        for v in (value.item(), np.asarray(value)):
            want, got = x.copy(), mine(x)
            want[mask] = v
            got[mine(mask)] = mine(v) if isinstance(v, np.ndarray) else v
            same(got, want)


@few(12)
@given(st.data())
def test_integer_arrays_as_indices(data):
    """One for each axis, of any integer dtype, broadcast; numbers among them."""
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))
    x = data.draw(arrays(data.draw(st.sampled_from(EVERY)), shape))
    of_shape = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=len(shape), max_dims=2, max_side=3)).input_shapes
    key = []
    for size, s in zip(shape, of_shape):
        dtype = data.draw(st.sampled_from(INTEGERS))
        low = 0 if dtype[0] == "u" else -size
        key.append(data.draw(st.integers(-size, size - 1) | hnp.arrays(dtype, s, elements=st.integers(low, size - 1))))
    own = tuple(k if isinstance(k, int) else mine(k) for k in key)
    same(mine(x)[own], x[tuple(key)])
    if isinstance(key[0], np.ndarray):
        same(mine(x)[own[0]], x[key[0]])
    want, got = x.copy(), mine(x)
    value = np.zeros((), x.dtype)
    want[tuple(key)] = value
    got[own] = mine(value)
    same(got, want)


@few(12)
@given(st.data())
def test_numbers_of_one_element(data):
    dtype = data.draw(st.sampled_from(EVERY))
    v = data.draw(elements(dtype, **({} if dtype in BOOLS + INTEGERS else {"allow_nan": False, "allow_infinity": False})))
    x = mine(v)
    assert bool(x) is bool(v) and x.item() == v.item()
    if dtype in INTEGERS:
        assert int(x) == operator.index(x) == int(v) and type(int(x)) is int and list(range(3))[min(abs(int(x)), 2)] in (0, 1, 2)
    if dtype in INTEGERS + REALS + BOOLS:
        assert float(x) == float(v) and int(x) == int(v) and type(float(x)) is float
    assert complex(x) == complex(v) and type(complex(x)) is complex
    if dtype not in INTEGERS:
        with pytest.raises((TypeError, RuntimeError)):
            operator.index(xp.asarray(1.0))
    for convert in (bool, float, int, complex):
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            convert(xp.ones(2))


@few(12)
@given(xps.arrays(xps.scalar_dtypes(), xps.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)))
def test_attributes(x):
    assert isinstance(x, tc.Tensor) and x.__array_namespace__() is xp and x.__array_namespace__(api_version="2022.12") is xp
    assert x.ndim == len(x.shape) == x.dim() and isinstance(x.shape, tuple)
    assert x.size == np.prod(x.shape, dtype=int) == x.numel() and isinstance(x.size, int)
    assert x.size() == x.shape and all(x.size(i) == n for i, n in enumerate(x.shape))  # as called by PyTorch programs
    assert x.device == xp.__array_namespace_info__().default_device()
    assert x.to_device(x.device) is x and x.to_device("cpu") is x
    assert xp.isdtype(x.dtype, ("bool", "numeric")) and x.dtype == getattr(xp, str(x.dtype).rpartition(".")[2])
    for name, least in (("T", 2), ("mT", 2)):
        if x.ndim == 2 or (name == "mT" and x.ndim > 2):
            same(getattr(x, name), np.swapaxes(theirs(x), -1, -2))
        else:
            with pytest.raises(ValueError, match=f"{name}: expected"):
                getattr(x, name)
    assert [type(row) for row in x] == [type(x)] * x.shape[0] if x.ndim else not x.shape
    for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), xp.from_dlpack(x), xp.asarray(x)):
        assert type(y) is type(x) and y.dtype == x.dtype
        same(y, theirs(x))


def test_tensors_and_arrays(tmp_path):
    """Arrays are accepted wherever tensors are, with tensors as results; the namespace's results are arrays."""
    leaf = tc.ones(3, requires_grad=True)
    x = xp.asarray(leaf)
    assert type(leaf) is tc.Tensor and type(x) is not tc.Tensor and x.data_ptr() == leaf.data_ptr()
    assert type(x + leaf) is type(leaf + x) is type(xp.exp(leaf)) is type(x) and type(tc.exp(x)) is tc.Tensor
    xp.sum(x * xp.asarray([1.0, 2, 3])).backward()
    assert leaf.grad.tolist() == [1, 2, 3]
    assert type(tc.nn.Linear(3, 2)(x)) is tc.Tensor
    tc.save({"x": x, "parts": [x[1:]]}, tmp_path / "x.pt")
    assert type(tc.load(tmp_path / "x.pt")["x"]) is tc.Tensor and f"{x[0]:.2f}" == "1.00"
    y = xp.zeros(3)
    y[1:] = leaf.detach()[:2]
    assert y.tolist() == [0, 1, 1] and repr(y) == "Array([0., 1., 1.])"


@few(15)
@given(st.data())
def test_asarray(data):
    dtype = data.draw(st.sampled_from(EVERY))
    x = data.draw(arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=1, max_side=3)))
    if dtype in ("bool", "int64", "complex64") or (dtype == "float32" and x.size):
        assert xp.asarray(x.tolist()).dtype == getattr(xp, dtype)
    for value in (x.tolist(), tuple(x.tolist()) if x.ndim else x.item(), x):
        same(xp.asarray(value, dtype=getattr(xp, dtype)), x)
        with pytest.raises(ValueError, match="copy"):
            if value is x:
                raise ValueError("a copy is not needed")
            xp.asarray(value, copy=False)
    a = mine(x)
    for flag, shares in ((None, True), (False, True), (True, False)):
        b = xp.asarray(a, copy=flag)
        assert (b.data_ptr() == a.data_ptr()) is shares
        same(b, x)
        same(xp.asarray(a, dtype=a.dtype, device=a.device, copy=flag), x)
    same(xp.asarray(x), x)
    nested = xp.asarray([a, a]) if x.ndim == 0 else None
    assert nested is None or nested.shape == (2,) and nested.dtype == a.dtype


@few(12)
@given(st.data())
def test_dlpack(data):
    dtype = data.draw(st.sampled_from(EVERY))
    x = data.draw(arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)))
    a = mine(x)
    kind, number = a.__dlpack_device__()
    assert (int(kind), number) == (1, 0) and isinstance(number, int)
    for flag in (None, True, False):
        for version in (None, (0, 8), (1, 0), (2, 0)):
            assert "dltensor" in repr(a.__dlpack__(copy=flag, max_version=version, dl_device=(1, 0)))
        b = xp.from_dlpack(a, copy=flag, device=a.device)
        assert not a.size or (b.data_ptr() == a.data_ptr()) is (flag is not True)
        same(b, x)
    same(xp.from_dlpack(np.array(x)), x)
    np.testing.assert_array_equal(np.from_dlpack(a), x)


SIGNATURES = """
arange(start, /, stop=None, step=1, *, dtype=None, device=None)
asarray(obj, /, *, dtype=None, device=None, copy=None)
empty(shape, *, dtype=None, device=None) zeros ones
empty_like(x, /, *, dtype=None, device=None) zeros_like ones_like
eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)
from_dlpack(x, /, *, device=None, copy=None)
full(shape, fill_value, *, dtype=None, device=None)
full_like(x, /, fill_value, *, dtype=None, device=None)
linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True)
meshgrid(*arrays, indexing='xy')
tril(x, /, *, k=0) triu
astype(x, dtype, /, *, copy=True, device=None)
can_cast(from_, to, /)
finfo(type, /) iinfo
isdtype(dtype, kind)
result_type(*arrays_and_dtypes)
abs(x, /) acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan log log1p
 log2 log10 logical_not negative positive real reciprocal round sign signbit sin sinh square sqrt tan tanh trunc nonzero
 matrix_transpose unique_all unique_counts unique_inverse unique_values
add(x1, x2, /) atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal floor_divide
 greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum minimum multiply nextafter
 not_equal pow remainder subtract matmul
clip(x, /, min=None, max=None)
take(x, indices, /, *, axis=None)
take_along_axis(x, indices, /, *, axis=-1)
tensordot(x1, x2, /, *, axes=2)
vecdot(x1, x2, /, *, axis=-1)
broadcast_arrays(*arrays)
broadcast_shapes(*shapes)
broadcast_to(x, /, shape)
concat(arrays, /, *, axis=0) stack
expand_dims(x, /, axis=0)
flip(x, /, *, axis=None)
moveaxis(x, source, destination, /)
permute_dims(x, /, axes)
repeat(x, repeats, /, *, axis=None)
reshape(x, /, shape, *, copy=None)
roll(x, /, shift, *, axis=None)
squeeze(x, /, axis)
tile(x, repetitions, /)
unstack(x, /, *, axis=0)
argmax(x, /, *, axis=None, keepdims=False) argmin count_nonzero all any max mean min
searchsorted(x1, x2, /, *, side='left', sorter=None)
where(condition, x1, x2, /)
isin(x1, x2, /, *, invert=False)
argsort(x, /, *, axis=-1, descending=False, stable=True) sort
cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False) cumulative_prod
prod(x, /, *, axis=None, dtype=None, keepdims=False) sum
std(x, /, *, axis=None, correction=0.0, keepdims=False) var
diff(x, /, *, axis=-1, n=1, prepend=None, append=None)
__array_namespace_info__()
linalg.cholesky(x, /, *, upper=False)
linalg.cross(x1, x2, /, *, axis=-1) linalg.vecdot
linalg.det(x, /) linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh linalg.inv linalg.matrix_transpose linalg.slogdet linalg.svdvals
linalg.diagonal(x, /, *, offset=0)
linalg.matmul(x1, x2, /) linalg.outer linalg.solve
linalg.matrix_norm(x, /, *, keepdims=False, ord='fro')
linalg.matrix_power(x, n, /)
linalg.matrix_rank(x, /, *, rtol=None) linalg.pinv
linalg.qr(x, /, *, mode='reduced')
linalg.svd(x, /, *, full_matrices=True)
linalg.tensordot(x1, x2, /, *, axes=2)
linalg.trace(x, /, *, offset=0, dtype=None)
linalg.vector_norm(x, /, *, axis=None, keepdims=False, ord=2)
fft.fft(x, /, *, n=None, axis=-1, norm='backward') fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft
fft.fftn(x, /, *, s=None, axes=None, norm='backward') fft.ifftn fft.rfftn fft.irfftn
fft.fftfreq(n, /, *, d=1.0, dtype=None, device=None) fft.rfftfreq
fft.fftshift(x, /, *, axes=None) fft.ifftshift
"""


def signatures():
    """(name, parameters) of every function; names after a signature have the same."""
    for line in SIGNATURES.replace("\n ", " ").strip().splitlines():
        head, _, rest = line.partition("(")
        parameters, _, others = rest.partition(")")
        for name in (head, *others.split()):
            yield name, f"({parameters})"


def parameters_of(function):
    """Names, kinds and defaults."""
    found = inspect.signature(function)
    return str(found.replace(parameters=[p.replace(annotation=p.empty) for p in found.parameters.values()],
                             return_annotation=found.empty))


@pytest.mark.parametrize("name, parameters", list(signatures()))
def test_signature(name, parameters):
    assert parameters_of(operator.attrgetter(name)(xp)) == parameters


def test_every_function_has_its_signature_here():
    listed = {name for name, _ in signatures()}
    for prefix, module in (("", xp), ("linalg.", xp.linalg), ("fft.", xp.fft)):
        functions = {prefix + n for n in module.__all__ if inspect.isfunction(getattr(module, n))}
        assert functions == {n for n in listed if n.startswith(prefix) and ("." in n) == bool(prefix)}


METHODS = {
    "()": "abs invert neg pos dlpack_device",
    "(other, /)": " ".join(f"{p}{n}" for p in ("", "r", "i") for n in (
        "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift").split()) + " eq ne lt le gt ge",
    "(key, /)": "getitem", "(key, value, /)": "setitem", "(*, api_version=None)": "array_namespace",
    "(*, stream=None, max_version=None, dl_device=None, copy=None)": "dlpack"}


@pytest.mark.parametrize("parameters", METHODS)
def test_methods(parameters):
    for name in METHODS[parameters].split():
        assert parameters_of(getattr(xp.ones(1), f"__{name}__")) == parameters, name


def test_names():
    x = xp.ones((1, 1))
    for name in "bool complex float index int".split():
        assert callable(getattr(x, f"__{name}__"))
    for name in ("dtype", "device", "mT", "ndim", "shape", "size", "T", "to_device"):
        assert hasattr(x, name)
    assert parameters_of(x.to_device) == "(device, /, *, stream=None)"
    for name in EVERY:
        assert getattr(xp, name) == getattr(xp, name) and getattr(xp, name) in xp.__array_namespace_info__().dtypes().values()
    assert xp.e == np.e and xp.pi == np.pi and xp.inf == np.inf and xp.nan != xp.nan and xp.newaxis is None
    assert all(type(getattr(xp, name)) is float for name in ("e", "pi", "inf", "nan"))
    assert set(dir(xp)) >= set(xp.__all__) and xp.__array_api_version__ == "2025.12"


@few(10)
@given(st.data())
def test_inspection(data):
    info = xp.__array_namespace_info__()
    kinds = ["bool", "signed integer", "unsigned integer", "real floating", "complex floating", "integral", "numeric"]
    kind = data.draw(st.none() | st.sampled_from(kinds) | st.lists(st.sampled_from(kinds), min_size=1).map(tuple))
    device = data.draw(st.none() | st.sampled_from(info.devices()))
    assert info.dtypes(kind=kind, device=device) == {
        name: getattr(xp, name) for name in info.dtypes() if kind is None or xp.isdtype(getattr(xp, name), kind)}
    defaults = info.default_dtypes(device=device)
    assert {k: xp.asarray(v).dtype for k, v in (("real floating", 1.0), ("complex floating", 1j), ("integral", 1))} == {
        k: defaults[k] for k in ("real floating", "complex floating", "integral")}
    assert defaults["indexing"] == xp.argmax(xp.ones(2)).dtype
    assert isinstance(info.capabilities()["max dimensions"], int)
    assert xp.empty(1, device=info.default_device()).device in info.devices()


@pytest.mark.parametrize("dtype", EVERY)
def test_casts(dtype):
    for other in EVERY:
        if dtype in COMPLEX and other in INTEGERS + REALS:
            with pytest.raises(TypeError, match=f"astype: expected a complex dtype or bool .* but got tercel.{other}"):
                xp.astype(xp.ones(2, dtype=getattr(xp, dtype)), getattr(xp, other))
            continue
        x = np.array([0, 1, 3, 0], dtype)
        same(xp.astype(mine(x), getattr(xp, other)), x.astype(other))
    x = xp.ones(3, dtype=getattr(xp, dtype))
    assert xp.astype(x, x.dtype, copy=False).data_ptr() == x.data_ptr() != xp.astype(x, x.dtype).data_ptr()
    assert type(xp.isdtype(x.dtype, "bool")) is bool and xp.isdtype(x.dtype, x.dtype)
    for limits, names in ((xp.finfo, ("eps", "max", "min", "smallest_normal")), (xp.iinfo, ("max", "min"))):
        if dtype in (NUMBERS if limits is xp.finfo else INTEGERS) and (dtype in INTEGERS) == (limits is xp.iinfo):
            for asked in (x, x.dtype):
                found = limits(asked)
                assert type(found.bits) is int
                assert all(type(getattr(found, n)) is (float if limits is xp.finfo else int) for n in names)
                assert found.dtype == getattr(xp, str(np.zeros((), dtype).real.dtype))


@few(12)
@given(st.lists(st.sampled_from(EVERY), min_size=1, max_size=3))
def test_result_types(names):
    try:
        for a in names:
            for b in names:
                assert {np.dtype(a).kind, np.dtype(b).kind} in ({"b"}, {"i"}, {"u"}, {"f"}, {"c"}, {"f", "c"})
    except AssertionError:
        return
    want = getattr(xp, str(np.result_type(*names)))
    dtypes = [getattr(xp, n) for n in names]
    assert xp.result_type(*dtypes) == want == xp.result_type(*(xp.ones((1,) * i, dtype=d) for i, d in enumerate(dtypes)))
    number = {"b": True, "i": 1, "u": 1, "f": 1.5, "c": 1j}[np.dtype(names[0]).kind]
    if len({np.dtype(n).kind for n in names}) == 1:
        assert xp.result_type(*dtypes, number) == want == xp.result_type(number, *dtypes)


@few(15)
@given(st.data())
def test_draws_of_hypothesis(data):
    """Its strategies build arrays by setting elements, and look at them."""
    x = data.draw(xps.arrays(data.draw(xps.scalar_dtypes()), data.draw(xps.array_shapes()), unique=data.draw(st.booleans())))
    assert x.size == np.asarray(x.tolist()).size
    agrees(lambda n, a: n.broadcast_to(a, (2, *a.shape)), data.draw(arrays("float32", of=small("float32"))))


def test_arrays_of_numpy_as_operands():
    x, other = xp.asarray([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 2.0])
    for got, want in ((x + other, [3, 4, 5]), (x * other, [2, 4, 6]), (other / x, [2, 1, 2 / 3]),
                      (x == other, [False, True, False]), (np.greater(x, 2), [False, False, True])):
        assert type(got) is type(x) and np.allclose(np.asarray(got), want)
        assert got.dtype is (xp.bool if isinstance(want[0], bool) else xp.float64)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_numbers_become_real_ones_only_by_part(dtype):
    z = xp.asarray(3 + 4j, dtype=getattr(xp, dtype))
    for convert in (float, int, operator.index):
        with pytest.raises(TypeError):
            convert(z)
    assert xp.astype(z, xp.bool).item() is True and xp.astype(xp.imag(z), xp.int8).item() == 4
    assert float(xp.real(z)) == 3.0 and int(xp.real(z)) == 3


@pytest.mark.parametrize("dtype", [np.float64, "float64", float, None])
def test_astype_takes_dtypes_alone(dtype):
    with pytest.raises(TypeError, match="astype: expected a dtype"):
        xp.astype(xp.ones(2), dtype)


def test_numbers_may_be_arrays_without_dimensions():
    for wrap in (np.int64, xp.asarray, np.asarray):
        assert xp.arange(wrap(3)).tolist() == xp.arange(0, wrap(3), wrap(1)).tolist() == [0, 1, 2]
        assert xp.linspace(wrap(0), wrap(4), 5).tolist() == [0, 1, 2, 3, 4]
    assert xp.arange(np.int8(2)).dtype is xp.int64
    assert xp.full(2, xp.asarray(7, dtype=xp.int16)).dtype is xp.int16
    assert xp.full(2, np.int64(7)).tolist() == [7, 7]
    for call in (lambda x: xp.arange(x), lambda x: xp.linspace(0, x, 3), lambda x: xp.full(2, x)):
        for wrong in ("3", [3], np.ones(2)):
            with pytest.raises(TypeError, match=r"(arange|linspace|full): expected a number, but got"):
                call(wrong)


def test_dlpack_of_other_objects():
    for x in (5, [1.0], "a"):
        with pytest.raises(AttributeError, match="from_dlpack: expected an object with __dlpack__"):
            xp.from_dlpack(x)
