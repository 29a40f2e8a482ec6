"""Pruned parameters: masks of each method, several methods in a row, all parameters together, and their removal."""

import copy
import pickle

import pytest

import tercel as tc
from tercel import nn
from tercel.nn.utils import prune


def layer(*rows):
    made = nn.Linear(len(rows[0]), len(rows), bias=False)
    made.weight.data = tc.tensor(rows, dtype=tc.float32)
    return made


def test_smallest_elements_go():
    made = layer([1, -5, 3], [-2, 4, 6])
    weight = made.weight
    assert prune.l1_unstructured(made, "weight", amount=2) is made and prune.is_pruned(made)
    assert made.weight.tolist() == [[0, -5, 3], [0, 4, 6]] and made.weight_mask.tolist() == [[0, 1, 1], [0, 1, 1]]
    assert list(made.state_dict()) == ["weight_orig", "weight_mask"] and made.weight_orig is weight
    made(tc.ones(1, 3)).sum().backward()
    assert weight.grad.tolist() == [[0, 1, 1], [0, 1, 1]]
    with tc.no_grad():
        weight.mul_(2)
    assert made(tc.ones(1, 3)).tolist() == [[-4, 20]]  # the hook multiplies again
    assert prune.remove(made, "weight") is made and not prune.is_pruned(made)
    assert made.weight is weight and weight.tolist() == [[0, -10, 6], [0, 8, 12]] and list(made.state_dict()) == ["weight"]
    assert made(tc.ones(1, 3)).tolist() == [[-4, 20]] and not made._buffers


def test_shares_of_elements():
    made = layer([1, -5, 3], [-2, 4, 6])
    prune.l1_unstructured(made, "weight", amount=0.5)
    assert made.weight_mask.sum() == 3
    prune.l1_unstructured(made, "weight", amount=1 / 3)  # of the remaining ones
    assert made.weight.tolist() == [[0, -5, 0], [0, 0, 6]]
    assert len(made._forward_pre_hooks) == 1
    container = next(iter(made._forward_pre_hooks.values()))[0]
    assert isinstance(container, prune.PruningContainer) and len(container) == 2
    assert [type(m) for m in container] == [prune.L1Unstructured] * 2 and container[0].amount == 0.5
    prune.remove(made, "weight")
    assert made.weight.tolist() == [[0, -5, 0], [0, 0, 6]]


def test_other_values_may_say_what_counts():
    made = layer([1, -5, 3], [-2, 4, 6])
    prune.l1_unstructured(made, "weight", 1, importance_scores=tc.tensor([[9, 0.5, 9], [9, 9, 9]]))
    assert made.weight.tolist() == [[1, 0, 3], [-2, 4, 6]]
    with pytest.raises(AssertionError, match="importance_scores should have the same shape as parameter weight"):
        prune.l1_unstructured(made, "weight", 1, importance_scores=tc.ones(2))


def test_random_elements():
    tc.manual_seed(0)
    made = nn.Linear(10, 10)
    prune.random_unstructured(made, "weight", 30)
    assert made.weight_mask.sum() == 70 and made.weight_mask.any(0).all()
    prune.random_unstructured(made, "weight", 70)
    assert made.weight_mask.sum() == 0


@pytest.mark.parametrize("dim, n, want", [(0, 1, [[0, 0, 0], [-2, 4, 6], [3, 3, 3.5]]), (1, 2, [[0, -5, 1], [0, 4, 6], [0, 3, 3.5]]),
                                          (-1, float("-inf"), [[1, -5, 0], [-2, 4, 0], [3, 3, 0]])])
def test_slices_of_least_norm(dim, n, want):
    rows = [1, -5, 1], [-2, 4, 6], [3, 3, 3.5]
    made = layer(*rows)
    if n == float("-inf"):
        made.weight.data[0, 2] = 0.5
    prune.ln_structured(made, "weight", amount=1, n=n, dim=dim)
    assert made.weight.tolist() == want


def test_random_slices_of_what_stands():
    tc.manual_seed(0)
    made = nn.Conv2d(4, 6, 3)
    prune.random_structured(made, "weight", amount=0.5, dim=0)
    assert sorted(made.weight_mask.sum((1, 2, 3)).tolist()) == [0] * 3 + [36] * 3
    prune.random_structured(made, "weight", amount=1, dim=0)
    assert sorted(made.weight_mask.sum((1, 2, 3)).tolist()) == [0] * 4 + [36] * 2
    prune.l1_unstructured(made, "weight", amount=0.25)
    assert made.weight_mask.sum() == 54


def test_masks_that_are_given():
    made = layer([1, -5, 3], [-2, 4, 6])
    prune.identity(made, "weight")
    assert made.weight_mask.all()
    prune.custom_from_mask(made, "weight", mask=tc.tensor([[1, 0, 1], [1, 1, 0]]))
    assert made.weight.tolist() == [[1, 0, 3], [-2, 4, 0]]


def test_parameters_together():
    net = nn.Sequential(layer([1, -5, 3], [-2, 4, 6]), layer([0.5, 7]))
    prune.global_unstructured([(net[0], "weight"), (net[1], "weight")], prune.L1Unstructured, amount=3)
    assert net[0].weight.tolist() == [[0, -5, 3], [0, 4, 6]] and net[1].weight.tolist() == [[0, 7]]
    assert prune.is_pruned(net)
    prune.global_unstructured([(net[0], "weight"), (net[1], "weight")], prune.L1Unstructured, amount=1,
                              importance_scores={(net[1], "weight"): tc.tensor([[9.0, 1]])})
    assert net[1].weight.tolist() == [[0, 0]]
    for error, sentence, call in [
            (TypeError, "parameters is not an Iterable", lambda: prune.global_unstructured(3, prune.L1Unstructured, amount=1)),
            (TypeError, "importance_scores must be of type dict",
             lambda: prune.global_unstructured([(net[0], "weight")], prune.L1Unstructured, [1], amount=1)),
            (TypeError, 'Only "unstructured" PRUNING_TYPE supported',
             lambda: prune.global_unstructured([(net[0], "weight")], prune.RandomStructured, amount=1))]:
        with pytest.raises(error, match=sentence):
            call()


def test_what_is_refused():
    made = layer([1, -5, 3], [-2, 4, 6])
    for error, sentence, call in [
            (TypeError, "Invalid type for amount", lambda: prune.l1_unstructured(made, "weight", "2")),
            (ValueError, "should either be a float in the range", lambda: prune.l1_unstructured(made, "weight", 1.5)),
            (ValueError, "should either be a float in the range", lambda: prune.random_unstructured(made, "weight", -1)),
            (ValueError, "amount=7 should be smaller than the number of parameters to prune=6",
             lambda: prune.l1_unstructured(made, "weight", 7)),
            (IndexError, "Invalid index 2 for tensor of size", lambda: prune.ln_structured(made, "weight", 1, 2, 2)),
            (ValueError, "has to be pruned before pruning can be removed", lambda: prune.remove(made, "weight"))]:
        with pytest.raises(error, match=sentence):
            call()
        assert list(made.state_dict()) == ["weight"] and not made._forward_pre_hooks
    with pytest.raises(ValueError, match="Structured pruning can only be applied to multidimensional tensors"):
        prune.random_structured(nn.Linear(2, 2), "bias", 1, 0)
    container = prune.PruningContainer()
    container._tensor_name = "weight"
    with pytest.raises(TypeError, match="is not a BasePruningMethod subclass"):
        container.add_pruning_method(3)
    other = prune.L1Unstructured(1)
    other._tensor_name = "bias"
    with pytest.raises(ValueError, match="Can only add pruning methods acting on the parameter named 'weight'"):
        container.add_pruning_method(other)


def test_methods_of_tensors_and_of_ones_own():
    class Odd(prune.BasePruningMethod):
        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t, default_mask):
            mask = default_mask.clone()
            mask.view(-1)[1::2] = 0
            return mask

    t = tc.arange(4.0)
    assert Odd().prune(t).tolist() == [0, 0, 2, 0]
    assert Odd().prune(t, default_mask=tc.tensor([0.0, 1, 1, 1])).tolist() == [0, 0, 2, 0]
    assert prune.L1Unstructured(2).prune(t, importance_scores=-t + 3).tolist() == [0, 1, 0, 0]
    made = layer([1, -5, 3], [-2, 4, 6])
    Odd.apply(made, "weight")
    assert made.weight.tolist() == [[1, 0, 3], [0, 4, 0]]
    with pytest.raises(TypeError, match="abstract"):
        prune.BasePruningMethod()


def test_copies_and_files_of_pruned_modules():
    made = layer([1, -5, 3], [-2, 4, 6])
    prune.l1_unstructured(made, "weight", amount=2)
    again = pickle.loads(pickle.dumps(layer([1, 2])))
    assert again.weight.tolist() == [[1, 2]]
    other = layer([0, 0, 0], [0, 0, 0])
    prune.identity(other, "weight")
    other.load_state_dict(made.state_dict())
    assert other(tc.ones(1, 3)).tolist() == made(tc.ones(1, 3)).tolist() == [[-2, 10]]
    with tc.no_grad():
        made.weight = made.weight.detach()  # a tensor of a graph is not copied
        twin = copy.deepcopy(made)
    assert twin(tc.ones(1, 3)).tolist() == [[-2, 10]] and twin.weight_orig is not made.weight_orig
