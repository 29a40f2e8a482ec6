"""tercel._foreach_*: operations on every tensor of a list."""

import math

import pytest

import tercel as tc


def tensors():
    return [tc.tensor([1.0, 4.0]), tc.tensor([[9.0]])]


def listed(values):
    return [v.tolist() for v in values]


def test_one_operand():
    x = tensors()
    roots = tc._foreach_sqrt(x)
    assert isinstance(roots, tuple) and listed(roots) == [[1, 2], [[3]]] and listed(x) == [[1, 4], [[9]]]
    changed = tc._foreach_neg_(x)
    assert changed[0] is x[0] and listed(x) == [[-1, -4], [[-9]]]
    assert listed(tc._foreach_zero_(x)) == [[0, 0], [[0]]]
    assert listed(tc._foreach_norm(tensors(), 1)) == [5, 9]
    assert listed(tc._foreach_copy_(x, tensors())) == listed(tensors())


def test_two_operands():
    x = tensors()
    assert listed(tc._foreach_add(x, 1)) == [[2, 5], [[10]]]
    assert listed(tc._foreach_add(x, x, alpha=2)) == [[3, 12], [[27]]]
    assert listed(tc._foreach_mul(x, [2, 3.0])) == [[2, 8], [[27]]]
    assert listed(tc._foreach_mul(x, tc.tensor(2.0))) == [[2, 8], [[18]]]
    assert listed(tc._foreach_maximum(x, 2)) == [[2, 4], [[9]]]
    assert listed(tc._foreach_minimum(x, [2, 3])) == [[1, 2], [[3]]]
    assert listed(tc._foreach_pow(2, x)) == [[2, 16], [[512]]] and listed(tc._foreach_pow(x, 2)) == [[1, 16], [[81]]]
    assert tc._foreach_div_(x, [1, 9])[1] is x[1] and listed(x) == [[1, 4], [[1]]]
    assert listed(tc._foreach_lerp(x, tc._foreach_neg(x), 0.5)) == [[0, 0], [[0]]]
    assert tc._foreach_lerp_(x, x, [0.1, 0.2])[0] is x[0]


def test_three_operands_and_gradients():
    x = tensors()
    assert listed(tc._foreach_addcmul(x, x, x, [1, 2])) == [[2, 20], [[171]]]
    assert listed(tc._foreach_addcdiv(x, x, x, value=3)) == [[4, 7], [[12]]]
    assert listed(tc._foreach_addcmul(x, x, x, tc.tensor([0.0, 1.0]))) == [[1, 4], [[90]]]
    assert tc._foreach_addcdiv_(x, tensors(), tensors(), 1)[1] is x[1] and x[1].item() == 10
    leaf = tc.ones(2, requires_grad=True)
    tc._foreach_exp([leaf])[0].sum().backward()
    assert leaf.grad.tolist() == pytest.approx([math.e] * 2)


def test_lists_that_do_not_fit():
    x = tensors()
    with pytest.raises(RuntimeError, match="must have at least one tensor"):
        tc._foreach_exp([])
    with pytest.raises(RuntimeError, match="must have the same number of tensors, got 2 and 1"):
        tc._foreach_add(x, x[:1])
    with pytest.raises(RuntimeError, match="same number of elements as scalar list"):
        tc._foreach_add(x, [1])
    with pytest.raises(AttributeError):
        tc._foreach_nothing([])
