"""Bool tensors with bytes other than 0 and 1: every operation treats nonzero bytes as true."""

import pytest

import tercel as tc

METHOD = 2
PLACES = {1: (tc._C, ""), METHOD: (tc.Tensor, ""), 8: (tc._C._nn, ""), 16: (tc._C._linalg, "linalg_"),
          32: (tc._C._special, "special_"), 64: (tc._C._fft, "fft_")}
# Operations that expose memory, overwrite it, or block.
LEFT_OUT = {"data_ptr", "view", "view_copy", "set_", "untyped_storage", "storage", "is_set_to", "_version", "resize_", "empty_like",
            "new_empty", "new_empty_strided", "empty_strided", "empty", "register_hook", "backward", "_backward",
            "is_same_size", "pin_memory", "element_size"}
SHAPES = [(3, 4), (4, 4), (6,), (1, 2, 3, 4), (2, 3, 4), ()]
PLAIN = {"int": 1, "float": 0.5, "bool": False, "Scalar": 1, "int[]": [0], "float[]": [1.0], "dtype": tc.float32,
         "memory_format": tc.contiguous_format, "str": "mean"}


def with_other_bytes(x):
    bytes_ = tc.arange(2, 2 + x.numel()).mul(37).remainder(253).add(2).to(tc.uint8).view(x.shape)
    return (bytes_ * x.to(tc.uint8)).view(tc.bool)


def pattern(shape):
    n = tc.zeros(shape).numel()
    return tc.tensor([(i * 7 + 3) % 5 in (0, 2, 3) for i in range(n)]).reshape(shape)


def arguments(parameters, shape, others):
    """Arguments for the required parameters; `others`: the kind of tensors after the first, "bool", "float" or "index"."""
    result = []
    for k, (name, kind, default, *_) in enumerate(parameters):
        if default is not None:
            break
        tensor = (pattern(shape) if k == 0 or others == "bool" or "mask" in name or name == "condition" else
                  tc.ones(shape) if others == "float" else tc.zeros(shape, dtype=tc.int64))
        if k == 0 and others == "float-first":
            tensor = tc.arange(float(tensor.numel())).reshape(shape)
        if "Tensor[" in kind:
            result.append([tensor, tensor.clone()])
        elif "Tensor" in kind:
            result.append(tensor)
        elif kind.rstrip("?") in PLAIN:
            result.append(PLAIN[kind.rstrip("?")])
        elif kind.startswith("int["):
            result.append([1] * max(1, len(shape) if kind == "int[]" else int(kind[4:-1].rstrip("]?") or 1)))
        else:
            return None
    return result


def changed(value):
    if isinstance(value, list):
        return [changed(v) for v in value]
    if isinstance(value, tc.Tensor):
        return with_other_bytes(value) if value.dtype is tc.bool else value.clone()
    return value


def unchanged(value):
    return [unchanged(v) for v in value] if isinstance(value, list) else (
        value.clone() if isinstance(value, tc.Tensor) else value)


def seen(value):
    """The values and dtype of a result, also of tensors that were changed."""
    if isinstance(value, tc.Tensor):
        return str(value.dtype), value.tolist()
    if isinstance(value, (list, tuple)):
        return [seen(v) for v in value]
    return value


def outcome(function, given):
    tc.manual_seed(1)
    return seen(function(*given)), seen(given)


def cases():
    found = {}
    for flags, name, parameters, _ in tc._C._describe_ops():
        for flag, (part, prefix) in PLACES.items():
            if flags & flag and name not in LEFT_OUT:
                key = ("Tensor." if flag == METHOD else "") + name
                found.setdefault(key, (getattr(part, name[len(prefix):]), []))[1].append(parameters)
    return found


def test_tensordot_of_no_dimensions_has_none_to_sum_over():
    with pytest.raises(IndexError, match="tensor has no dimensions"):
        tc.tensordot(tc.tensor(2.0), tc.tensor(3.0), dims=([0], [0]))


def test_every_operation_reads_bools():
    compared, wrong = set(), []
    for key, (function, overloads) in cases().items():
        for parameters in overloads:
            for shape in SHAPES:
                for others in ("bool", "float", "index", "float-first"):
                    given = arguments(parameters, shape, others)
                    if given is None or "bool" not in repr(seen(given)):
                        continue
                    try:
                        want = outcome(function, unchanged(given))
                    except Exception:  # it does not take these
                        continue
                    compared.add(key)
                    got = outcome(function, changed(given))
                    if repr(got) != repr(want):
                        wrong.append((key, shape, others, repr(want)[:80], repr(got)[:80]))
    assert not wrong
    assert len(compared) > 650


@pytest.mark.parametrize("make", [
    lambda bytes_: bytes_.view(tc.bool),
    lambda bytes_: tc.frombuffer(bytearray(bytes_.tolist()), dtype=tc.bool),
    lambda bytes_: tc.from_numpy(bytes_.numpy().view("?")),
])
def test_bools_from_elsewhere(make):
    x = make(tc.tensor([0, 2, 255, 0, 1, 128], dtype=tc.uint8))
    assert x.tolist() == [False, True, True, False, True, True]
    assert x.sum().item() == 4 and x.count_nonzero().item() == 4 and x.to(tc.int64).tolist() == [0, 1, 1, 0, 1, 1]
    assert (x == tc.tensor([False, True, True, False, True, True])).all() and x.unique().tolist() == [False, True]
    assert x.nonzero().flatten().tolist() == [1, 2, 4, 5] and tc.arange(6)[x].tolist() == [1, 2, 4, 5]
    assert [bool(e) for e in x] == x.tolist() and str(x[1]) == "tensor(True)" and x[1].item() is True
    assert x.sort().values.tolist() == [False, False, True, True, True, True]


def test_bytes_of_bools_stay_where_they_are_only_moved():
    x = tc.tensor([0, 2, 255], dtype=tc.uint8).view(tc.bool)
    assert x.clone().view(tc.uint8).tolist() == x.flip(0).flip(0).view(tc.uint8).tolist() == [0, 2, 255]
    assert tc.logical_or(x, x).view(tc.uint8).tolist() == (x | x).view(tc.uint8).tolist() == [0, 1, 1]
