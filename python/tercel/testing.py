"""Testing utilities: comparison of tensors within tolerances, with detailed errors, and tensors of random values."""

import cmath
import math
import warnings
from collections.abc import Mapping, Sequence

from tercel import _C
from tercel._C import Tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

# Default rtol and atol; other dtypes must be equal.
_TOLERANCES = {
    _C.float16: (1e-3, 1e-5), _C.bfloat16: (1.6e-2, 1e-5), _C.float32: (1.3e-6, 1e-5), _C.float64: (1e-7, 1e-7),
    _C.complex64: (1.3e-6, 1e-5), _C.complex128: (1e-7, 1e-7),
}
_NUMBER_DTYPES = {float: _C.float64, complex: _C.complex128, int: _C.int64, bool: _C.bool}


class _Options:
    """The options of one comparison, and its position in nested containers."""

    def __init__(self, rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride, allow_subclasses):
        if (rtol is None) != (atol is None):
            missing = "rtol" if rtol is None else "atol"
            raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
        self.rtol, self.atol, self.equal_nan = rtol, atol, equal_nan
        self.check_device, self.check_dtype = check_device, check_dtype
        self.check_layout, self.check_stride = check_layout, check_stride
        self.allow_subclasses = allow_subclasses

    def tolerances(self, *dtypes):
        if self.rtol is not None:
            return self.rtol, self.atol
        pairs = [_TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in dtypes]
        return max(p[0] for p in pairs), max(p[1] for p in pairs)


def _is_numpy(value, kind):
    """The kind of a NumPy scalar, "bool" or "number"; false for other objects."""
    cls = type(value)
    return cls.__module__ == "numpy" and hasattr(value, "dtype") and value.ndim == 0 and cls.__name__ != "ndarray" and (
        (value.dtype.kind == "b") == (kind == "bool"))


def _is_bool(value):
    return isinstance(value, bool) or _is_numpy(value, "bool")


def _is_number(value):
    return isinstance(value, (int, float, complex)) or _is_numpy(value, "number")


def _is_list(value):
    return isinstance(value, Sequence) and not isinstance(value, str)


def _plain(number):
    return number.item() if hasattr(number, "item") else number


def _mapping_keys(actual, expected):
    missing, additional = expected.keys() - actual.keys(), actual.keys() - expected.keys()
    if missing or additional:
        raise AssertionError("The keys of the mappings do not match:\n"
                             f"Missing keys in the actual mapping: {sorted(missing, key=str)}\n"
                             f"Additional keys in the actual mapping: {sorted(additional, key=str)}")
    try:
        return sorted(actual)
    except TypeError:
        return list(actual)


def _pairs(actual, expected, options, place):
    """The leaves of nested lists and mappings, as (comparison, actual, expected, position)."""
    try:
        if _is_list(actual) and _is_list(expected):
            if len(actual) != len(expected):
                raise AssertionError(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}")
            items = range(len(actual))
        elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
            items = _mapping_keys(actual, expected)
        else:
            return [_leaf(actual, expected, options, place)]
    except AssertionError as error:
        raise AssertionError(str(error) + _where(place)) from None
    return [pair for i in items for pair in _pairs(actual[i], expected[i], options, (*place, i))]


def _leaf(actual, expected, options, place):
    if actual is None or expected is None:
        return _compare_none, actual, expected, place
    if _is_bool(actual) and _is_bool(expected):
        return _compare_bools, _plain(actual), _plain(expected), place
    if _is_number(actual) and _is_number(expected):
        return _compare_numbers, _plain(actual), _plain(expected), place
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    if related and (options.allow_subclasses or type(actual) is type(expected)):
        tensors = [_as_tensor(x) for x in (actual, expected)]
        if None not in [id(x) if x is not None else None for x in tensors]:
            return _compare_tensors, *tensors, place
    raise TypeError(f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}."
                    + _where(place))


def _as_tensor(value):
    if isinstance(value, Tensor):
        return value
    if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        return _C.as_tensor(value)
    return None


def _where(place):
    return "\n\nThe failure occurred for item " + "".join(f"[{i!r}]" for i in place) if place else ""


def _compare_none(actual, expected, options):
    if actual is not expected:
        raise AssertionError(f"None mismatch: {actual} is not {expected}")


def _compare_bools(actual, expected, options):
    if actual is not expected:
        raise AssertionError(f"Booleans mismatch: {actual} is not {expected}")


def _allowed(tolerance, exact):
    return "" if exact else f" (up to {tolerance} allowed)"


def _number_mismatch(actual, expected, rtol, atol):
    exact = rtol == 0 and atol == 0
    apart = abs(actual - expected)
    relative = math.inf if expected == 0 else apart / abs(expected)
    return (f"Scalars are not {'equal' if exact else 'close'}!\n\nExpected {expected} but got {actual}.\n"
            f"Absolute difference: {apart}{_allowed(atol, exact)}\n"
            f"Relative difference: {relative}{_allowed(rtol, exact)}")


def _is_close(actual, expected, rtol, atol, equal_nan):
    if actual == expected:
        return True
    if cmath.isnan(actual) or cmath.isnan(expected):
        return bool(equal_nan and cmath.isnan(actual) and cmath.isnan(expected))
    apart = abs(actual - expected)
    return math.isfinite(apart) and apart <= atol + rtol * abs(expected)


def _compare_numbers(actual, expected, options):
    if options.check_dtype and type(actual) is not type(expected):
        raise AssertionError(f"The (d)types do not match: {type(actual)} != {type(expected)}.")
    rtol, atol = options.tolerances(_NUMBER_DTYPES[type(actual)], _NUMBER_DTYPES[type(expected)])
    if not _is_close(actual, expected, rtol, atol, options.equal_nan):
        raise AssertionError(_number_mismatch(actual, expected, rtol, atol))


def _compare_attributes(actual, expected, options):
    for name, checked in (("shape", True), ("layout", options.check_layout), ("device", options.check_device),
                          ("dtype", options.check_dtype), ("stride()", options.check_stride)):
        one, two = (x.stride() if name == "stride()" else getattr(x, name) for x in (actual, expected))
        if checked and one != two:
            raise AssertionError(f"The values for attribute '{name}' do not match: {one} != {two}.")


def _tensor_mismatch(actual, expected, matches, rtol, atol):
    exact = rtol == 0 and atol == 0
    if not (actual.dtype.is_floating_point or actual.dtype.is_complex):
        actual, expected = actual.long(), expected.long()
    apart = (actual - expected).abs().masked_fill(matches, 0)
    relative = (apart / expected.abs()).masked_fill(matches, 0)
    mismatches, total = int((~matches).sum()), matches.numel()
    lines = [f"Tensor-likes are not {'equal' if exact else 'close'}!\n",
             f"Mismatched elements: {mismatches} / {total} ({mismatches / total:.1%})"]
    for name, values, tolerance in (("absolute", apart, atol), ("relative", relative, rtol)):
        at = int(values.flatten().argmax())
        index = []
        for size in reversed(values.shape):
            at, i = divmod(at, size)
            index.insert(0, i)
        lines.append(f"Greatest {name} difference: {values[tuple(index)].item()} at index {tuple(index)}"
                     + _allowed(tolerance, exact))
    return "\n".join(lines)


def _compare_tensors(actual, expected, options):
    actual, expected = actual.detach(), expected.detach()
    _compare_attributes(actual, expected, options)
    rtol, atol = options.tolerances(actual.dtype, expected.dtype)
    if actual.dtype is not expected.dtype:
        dtype = _C.promote_types(actual.dtype, expected.dtype)
        actual, expected = actual.to(dtype), expected.to(dtype)
    matches = _C.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=options.equal_nan)
    if matches.all():
        return
    if actual.dim() == 0:
        raise AssertionError(_number_mismatch(actual.item(), expected.item(), rtol, atol))
    raise AssertionError(_tensor_mismatch(actual, expected, matches, rtol, atol))


def assert_close(actual, expected, *, allow_subclasses=True, rtol=None, atol=None, equal_nan=False, check_device=True,
                 check_dtype=True, check_layout=True, check_stride=False, msg=None):
    """Raises AssertionError unless |actual - expected| <= atol + rtol * |expected| for all elements.

    Compares numbers, tensors, arrays, and nested lists and mappings of them; tolerances depend on the dtypes unless both
    are given. `msg` replaces the error's text, or is a function of it.
    """
    __tracebackhide__ = True
    options = _Options(rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride, allow_subclasses)
    try:
        for compare, one, two, place in _pairs(actual, expected, options, ()):
            try:
                compare(one, two, options)
            except AssertionError as error:
                raise AssertionError(str(error) + _where(place)) from None
    except AssertionError as error:
        text = str(error)
        raise AssertionError(text if msg is None else msg(text) if callable(msg) else msg) from None


_OLD_TOLERANCES = {_C.float16: (1e-3, 1e-3), _C.float32: (1e-4, 1e-5), _C.float64: (1e-5, 1e-8)}


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg=""):
    """The deprecated predecessor of assert_close(): dtypes may differ, and tolerances are wider."""
    warnings.warn("`tercel.testing.assert_allclose()` is deprecated. Please use `tercel.testing.assert_close()` "
                  "instead.", FutureWarning, stacklevel=2)
    if not isinstance(actual, Tensor):
        actual = _C.tensor(actual)
    if not isinstance(expected, Tensor):
        expected = _C.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        pairs = [_OLD_TOLERANCES.get(x.dtype, (0.0, 0.0)) for x in (actual, expected)]
        rtol, atol = (max(p[i] for p in pairs) for i in (0, 1))
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


def _range_of(dtype, low, high):
    """The bounds of random values: the given ones or the defaults, limited to the dtype's range."""
    if dtype is _C.bool:
        least, end, default = 0, 2, (0, 2)
    elif dtype.is_floating_point or dtype.is_complex:
        info = _C.finfo(_C.float64 if dtype is _C.complex128 else _C.float32 if dtype.is_complex else dtype)
        least, end, default = info.min, info.max, (-9, 9)
    else:
        info = _C.iinfo(dtype)
        least, end, default = info.min, info.max + 1, (-9 if dtype.is_signed else 0, 10)
    low, high = (given if given is not None else usual for given, usual in zip((low, high), default))
    if any(isinstance(x, float) and math.isnan(x) for x in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low} and high={high}")
    if low == high and (dtype.is_floating_point or dtype.is_complex):
        warnings.warn("Passing `low==high` to `tercel.testing.make_tensor` for floating or complex types is "
                      "deprecated. Use `tercel.full(...)` instead.", FutureWarning, stacklevel=3)
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < least or low >= end:
        raise ValueError(f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only "
                         f"supports [{least}, {end})")
    return max(low, least), min(high, end)


def _uniform(shape, dtype, low, high):
    real = _C.empty(shape, dtype=dtype)
    if high - low >= _C.finfo(dtype).max:
        return real.uniform_(low / 2, high / 2).mul_(2)
    return real.fill_(low) if low == high else real.uniform_(low, high)


def make_tensor(*shape, dtype, device, low=None, high=None, requires_grad=False, noncontiguous=False,
                exclude_zero=False, memory_format=None):
    """A tensor of uniform random values in [low, high): by default -9 to 9 for floating-point and complex numbers (both
    parts), -9 to 10 for signed integers, 0 to 10 for unsigned ones, 0 to 2 for bool; exclude_zero replaces 0 by 1 or the
    smallest normal number."""
    if len(shape) == 1 and isinstance(shape[0], Sequence):
        shape = shape[0]
    if not isinstance(dtype, _C.dtype):
        raise TypeError(f"The requested dtype '{dtype}' is not supported by tercel.testing.make_tensor().")
    continuous = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not continuous:
        raise ValueError("`requires_grad=True` is not supported for boolean and integral dtypes, but got "
                         f"dtype={dtype}")
    if noncontiguous and memory_format is not None:
        raise ValueError("The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
                         f"noncontiguous={noncontiguous} and memory_format={memory_format}")
    low, high = _range_of(dtype, low, high)
    shape = tuple(shape)
    if dtype.is_complex:
        part = _C.float64 if dtype is _C.complex128 else _C.float32
        result = _C.complex(_uniform(shape, part, low, high), _uniform(shape, part, low, high))
    elif continuous:
        result = _uniform(shape, dtype, low, high)
    else:
        low, high = math.ceil(low), math.ceil(high)
        result = _C.randint(low, min(high, 2**63 - 1), shape, dtype=dtype)
    result = result.to(device)
    if noncontiguous and result.numel() > 1:
        result = _C.repeat_interleave(result, 2, dim=-1)[..., ::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        tiny = _C.finfo(dtype if not dtype.is_complex else part).tiny if continuous else 1
        result[result == 0] = complex(tiny, tiny) if dtype.is_complex else tiny
    return result.requires_grad_() if requires_grad else result
