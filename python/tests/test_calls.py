"""Calls of functions and methods, and messages for invalid calls."""

import copy
import pickle

import numpy as np
import pytest

import tercel as tc


def says(error, sentence, call):
    with pytest.raises(error) as info:
        call()
    assert sentence in str(info.value)


x = tc.arange(6.0).reshape(2, 3)


def test_functions_and_methods_agree():
    assert tc.add(x, x).tolist() == x.add(x).tolist() == (x + x).tolist() == [[0, 2, 4], [6, 8, 10]]
    assert tc.add(input=x, other=1).tolist() == x.add(other=1).tolist()
    assert tc.add(x, x, alpha=2).tolist() == [[0, 3, 6], [9, 12, 15]]


def test_lists_may_be_spread_out():
    assert x.view(3, 2).shape == x.view((3, 2)).shape == x.view([3, 2]).shape == x.view(size=(3, 2)).shape == (3, 2)
    assert x.permute(1, 0).shape == (3, 2)
    assert tc.zeros(2, 3).shape == tc.zeros((2, 3)).shape == tc.zeros(size=[2, 3]).shape == (2, 3)
    assert tc.zeros(()).shape == ()
    assert x.reshape(-1).shape == (6,)


def test_numpy_names_are_accepted():
    assert tc.sum(x, axis=0).tolist() == [3, 5, 7]
    assert x.sum(dim=1, keepdims=True).shape == (2, 1)


def test_whole_numbers_of_others_are_ints():
    assert tc.zeros(np.int64(2), tc.tensor(3)).shape == (2, 3)
    assert x[np.int32(1)].tolist() == [3, 4, 5]
    assert x.sum(np.int64(0)).tolist() == [3, 5, 7]


def test_wrong_types_are_named():
    says(TypeError, "add(): argument 'other' (position 2) must be Tensor, not str", lambda: tc.add(x, "a"))
    says(TypeError, "add(): argument 'other' (position 1) must be Tensor, not str", lambda: x.add("a"))
    says(TypeError, "zeros(): argument 'size' (position 1) must be tuple of ints, not str", lambda: tc.zeros("a"))
    says(TypeError, "zeros(): argument 'dtype' must be tercel.dtype, not str", lambda: tc.zeros(2, 3, dtype="float"))
    says(TypeError, "got an unexpected keyword argument 'nonsense'", lambda: x.view(2, 3, nonsense=1))
    assert tc.sort(x, stable=None).values.shape == x.shape
    says(TypeError, "but found element of type float at pos 1", lambda: x.reshape((2, 3.5)))
    says(TypeError, "expected Tensor as element 1 in argument 0, but got int", lambda: tc.cat([x, 1]))
    says(TypeError, "argument 'keepdim' must be bool, not int", lambda: tc.argmax(x, dim=1, keepdim=1))


def test_wrong_counts_and_names():
    says(TypeError, "add() missing 1 required positional arguments: \"other\"", lambda: tc.add(x))
    says(TypeError, "add() got an unexpected keyword argument 'foo'", lambda: tc.add(x, x, foo=1))
    says(TypeError, "add() got multiple values for argument 'other'", lambda: tc.add(x, x, other=x))
    says(TypeError, "takes 2 positional arguments but 3 were given", lambda: tc.mm(x, x, x))


def test_overloads_are_listed():
    says(TypeError, "max() received an invalid combination of arguments - got (Tensor, str), but expected one of:",
         lambda: tc.max(x, "a"))


def test_operators_leave_strangers_to_python():
    says(TypeError, "unsupported operand type(s) for +: 'Tensor' and 'str'", lambda: x + "a")
    with pytest.raises(TypeError):
        x + None

    class Other:
        def __radd__(self, _):
            return "other's"

    assert x + Other() == "other's"


def test_numbers_on_the_left():
    assert (1 + tc.tensor([1.0])).item() == 2
    assert (3 - tc.tensor([1.0])).item() == 2
    assert (6 / tc.tensor([2])).item() == 3
    assert (2 ** tc.tensor([3])).item() == 8
    assert (np.float64(2) * tc.tensor([3.0])).tolist() == [6]


def test_in_place_gives_the_same_object():
    y = tc.ones(3)
    before = y
    y += 1
    assert y is before and y.tolist() == [2, 2, 2]
    assert y.add_(1) is y and y.exp_() is y and y.zero_() is y


def test_out():
    out = tc.empty(0)
    assert tc.add(x, 1, out=out) is out and out.shape == (2, 3)
    assert tc.exp(x, out=out) is out
    assert tc.sum(x, 0, out=tc.empty(3)).tolist() == [3, 5, 7]
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        tc.add(x, x, out=tc.empty(5))
    says(RuntimeError, "result type Float can't be cast to the desired output type Long",
         lambda: tc.matmul(x, x.t(), out=tc.empty(0, dtype=tc.int64)))
    w = tc.ones(3, requires_grad=True)
    says(RuntimeError, "add(): functions with out=... arguments don't support automatic differentiation",
         lambda: tc.add(w, w, out=tc.empty(3)))


def test_named_results():
    result = x.max(dim=1)
    assert result.values.tolist() == [2, 5] and result.indices.tolist() == [2, 2]
    values, indices = x.sort(descending=True)
    assert values[0].tolist() == [2, 1, 0] and indices[0].tolist() == [2, 1, 0]


def test_exceptions_are_pythons():
    says(IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got 5)", lambda: x.sum(5))
    says(IndexError, "index 7 is out of bounds for dimension 0 with size 2", lambda: x[7])
    says(RuntimeError, "shape '[4]' is invalid for input of size 6", lambda: x.view(4))
    assert issubclass(tc.OutOfMemoryError, RuntimeError) and issubclass(tc.OutOfMemoryError, MemoryError)
    assert issubclass(tc.IoError, OSError) and issubclass(tc.DataError, ValueError)


def test_conversions_to_python():
    assert float(tc.tensor(2.5)) == 2.5 and int(tc.tensor(2.9)) == 2 and bool(tc.tensor([1]))
    assert [10, 20, 30][tc.tensor(1)] == 20
    says(RuntimeError, "Boolean value of Tensor with more than one value is ambiguous", lambda: bool(x))
    says(TypeError, "len() of a 0-d tensor", lambda: len(tc.tensor(1)))
    says(TypeError, "iteration over a 0-d tensor", lambda: list(tc.tensor(1)))
    assert [row.tolist() for row in x] == x.tolist()
    assert 3.0 in x and 9.0 not in x


def test_every_operation_has_a_document():
    assert "Tensor input" in tc.add.__doc__ and tc.add.__name__ == "add" and tc.Tensor.add.__qualname__ == "Tensor.add"


@pytest.mark.parametrize("op", [tc.add, tc.Tensor.add, tc.Tensor.add_, tc.nn.functional.relu, tc.linalg.norm,
                                tc.special.erf, tc.fft.fft], ids=repr)
def test_an_operation_is_copied_and_pickled_as_itself(op):
    assert copy.copy(op) is op and copy.deepcopy([op])[0] is op
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(op, protocol)) is op


def test_indexing():
    y = tc.arange(12).view(3, 4)
    assert y[1, 2].item() == 6 and y[-1].tolist() == [8, 9, 10, 11]
    assert y[::-1, 1].tolist() == [9, 5, 1]
    assert y[..., None].shape == (3, 4, 1)
    assert y[[0, 2]].tolist() == [[0, 1, 2, 3], [8, 9, 10, 11]]
    assert y[y > 8].tolist() == [9, 10, 11]
    y[0] = 5
    y[1, 1:3] = tc.tensor([7, 8])
    y[y > 8] = 0
    assert y.tolist() == [[5, 5, 5, 5], [4, 7, 8, 7], [8, 0, 0, 0]]
    says(ValueError, "slice step cannot be zero", lambda: y[::0])


def test_numbers_before_tensors_are_an_old_form():
    a, b = tc.full((2, 2), 2.0), tc.full((2, 2), 3.0)
    batch = a.expand(1, 2, 2)
    calls = {
        "add": (lambda: tc.add(a, 4, b), lambda: a.add(4, b), 14), "sub": (lambda: tc.sub(a, 2, b), lambda: a.sub(2, b), -4),
        "addcmul": (lambda: tc.addcmul(a, 2, a, b), lambda: a.addcmul(2, a, b), 14),
        "addcdiv": (lambda: tc.addcdiv(a, 3, a, b), lambda: a.addcdiv(3, a, b), 4),
        "addmm": (lambda: tc.addmm(2, a, 3, a, b), lambda: a.addmm(2, 3, a, b), 40),
        "addbmm": (lambda: tc.addbmm(2, a, batch, batch), lambda: a.addbmm(2, batch, batch), 12),
        "baddbmm": (lambda: tc.baddbmm(2, batch, 1, batch, batch), lambda: batch.baddbmm(2, 1, batch, batch), 12),
        "addmv": (lambda: tc.addmv(2, a[0], 1, a, b[0]), lambda: a[0].addmv(2, 1, a, b[0]), 16),
        "addr": (lambda: tc.addr(2, a, 1, a[0], b[0]), lambda: a.addr(2, 1, a[0], b[0]), 10),
        "add_": (lambda: tc.Tensor.add_(a.clone(), 4, b), lambda: a.clone().add_(4, b), 14),
        "addmm_": (lambda: a.clone().addmm_(2, 3, a, b), lambda: a.clone().addmm_(2, a, b), None),
    }
    for name, (function, method, value) in calls.items():
        for call in (function, method):
            with pytest.warns(UserWarning, match=f"This overload of {name} is deprecated"):
                got = call()
            assert value is None or (got == value).all().item(), name
    out = tc.empty(2, 2)
    with pytest.warns(UserWarning, match="This overload of add is deprecated"):
        assert tc.add(a, 4, b, out=out) is out
    assert (out == 14).all().item()
    with pytest.warns(UserWarning, match="This overload of add is deprecated"):
        assert tc.add(tc.tensor(True), tc.tensor(True), True).item() is True
    with pytest.raises(TypeError, match=r"addmm\(\) takes 3 positional arguments but 5 were given"):
        tc.addmm(a, 1, 1, a, b)


def test_what_tensors_are_made_of_is_an_operation_like_others():
    says(TypeError, 'tensor() missing 1 required positional arguments: "data"', lambda: tc.tensor())
    says(TypeError, "tensor(): argument 'dtype' must be tercel.dtype, not str", lambda: tc.tensor(1, dtype="float"))
    says(TypeError, "as_tensor() got an unexpected keyword argument 'copy'", lambda: tc.as_tensor(1, copy=True))
    assert tc.tensor(data=[1], dtype=tc.float64).dtype is tc.float64 and tc.from_numpy(np.ones(2)).shape == (2,)
    # A tensor in a list is a number.
    assert tc.tensor([tc.ones(1), tc.tensor(2)]).tolist() == [1, 2] and tc.tensor([[tc.ones(1, 1)]]).shape == (1, 1)
    with pytest.raises(ValueError, match="only one element tensors can be converted to Python scalars"):
        tc.tensor([tc.ones(2), tc.ones(2)])


def test_arrays_of_one_integer_are_sizes():
    assert tc.ones(np.array(3), np.int64(4)).shape == tc.ones((np.int64(3), np.array(4))).shape == (3, 4)
    for wrong in (np.array(3.0), np.array([3]), np.array(True)):
        with pytest.raises(TypeError):
            tc.ones((wrong, 2))
