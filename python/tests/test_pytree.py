"""Flattening of nested containers. Expected results are PyTorch 2.15's."""

from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

import tercel as tc
from tercel.utils import _pytree as pytree

Point = namedtuple("Point", "x y")
TREES = [
    3, None, [], (), {}, [1, (2, [3])], {"b": 1, "a": [2, (3, None)]}, OrderedDict(z=1, a=2), Point(1, [2]),
    defaultdict(list, a=[1], b=2), deque([1, [2]], maxlen=3), tc.Size([2, 3]),
]


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_there_and_back(tree):
    leaves, spec = pytree.tree_flatten(tree)
    again = pytree.tree_unflatten(leaves, spec)
    assert again == tree and type(again) is type(tree) and spec == pytree.tree_structure(tree)
    assert spec.num_leaves == len(leaves) == len(pytree.tree_leaves(tree)) and hash(spec) == hash(pytree.tree_structure(tree))
    paths, same = pytree.tree_flatten_with_path(tree)
    assert same == spec and [leaf for _, leaf in paths] == leaves
    assert [pytree.key_get(tree, path) for path, _ in paths] == leaves
    if isinstance(tree, defaultdict):
        assert again.default_factory is list
    if isinstance(tree, deque):
        assert again.maxlen == 3


def test_what_a_spec_says():
    leaves, spec = pytree.tree_flatten({"b": 1, "a": [2, (3, None)], "c": OrderedDict(z=4)})
    assert leaves == [1, 2, 3, None, 4]
    assert repr(spec) == ("TreeSpec(dict, ['b', 'a', 'c'], [*,\n  TreeSpec(list, None, [*,\n    TreeSpec(tuple, None, [*,\n"
                          "      *])]),\n  TreeSpec(OrderedDict, ['z'], [*])])")
    assert (spec.num_leaves, spec.num_nodes, spec.num_children, spec.type, spec.context) == (5, 9, 3, dict, ["b", "a", "c"])
    assert spec.child(0).is_leaf() and spec.child(0) == pytree.LeafSpec() and not spec.is_leaf()
    assert spec != pytree.tree_structure({"b": 1}) and spec.children() == spec.children_specs
    with pytest.raises(ValueError, match="`leaves` has length 1 but the spec refers to a pytree that holds 5 items"):
        spec.unflatten([1])
    with pytest.raises(TypeError, match="Expected `treespec` to be instance of TreeSpec"):
        pytree.tree_unflatten([1], None)


def test_maps():
    tree = {"x": tc.ones(2), "y": [3, "text"]}
    doubled = pytree.tree_map_only(tc.Tensor, lambda t: t * 2, tree)
    assert doubled["x"].tolist() == [2, 2] and doubled["y"] == [3, "text"]
    assert pytree.tree_map(lambda a, b: a + b, [1, {"k": 2}], [10, {"k": 20}]) == [11, {"k": 22}]
    assert pytree.tree_map(str, [1, (2,)], is_leaf=lambda x: isinstance(x, tuple)) == ["1", "(2,)"]
    seen = []
    assert pytree.tree_map_(seen.append, tree) is tree and len(seen) == 3
    assert pytree.tree_map_only_(int, seen.append, tree) is tree and len(seen) == 4
    assert pytree.tree_map_with_path(lambda path, x: pytree.keystr(path) + str(x), {"a": [1, Point(2, 3)]}) == {
        "a": ["['a'][0]1", Point("['a'][1].x2", "['a'][1].y3")]}
    assert pytree.tree_map_with_path(lambda path, x: x, []) == []
    assert pytree.tree_all(bool, [1, (2,)]) and pytree.tree_any(bool, [0, (2,)]) and not pytree.tree_any(bool, [0])
    assert pytree.tree_all_only(int, bool, [1, ""]) and not pytree.tree_any_only(str, bool, [1, ""])
    for wrong, message in (([1], "Node arity mismatch; expected 2, but got 1"), ((1, 2), "Node type mismatch"), (5, "type mismatch")):
        with pytest.raises(ValueError, match=message):
            pytree.tree_map(lambda a, b: a, [1, 2], wrong)
    assert pytree.tree_map(lambda a, b: (a, b), {"a": 1, "b": 2}, {"b": 3, "a": 4}) == {"a": (1, 4), "b": (2, 3)}
    with pytest.raises(ValueError, match="Node keys mismatch"):
        pytree.tree_map(lambda a, b: a, {"a": 1}, {"b": 1})


def test_results_with_names():
    found = tc.tensor([1.0, 5.0]).max(0)
    leaves, spec = pytree.tree_flatten(found)
    assert [x.item() for x in leaves] == [5, 1] and spec.num_leaves == 2
    assert type(pytree.tree_map(lambda x: x + 1, found)) is type(found) and pytree.is_structseq(found)
    assert pytree.is_namedtuple(Point) and pytree.is_namedtuple_instance(Point(1, 2)) and not pytree.is_namedtuple((1,))


def test_types_of_ones_own():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    assert pytree.tree_leaves(Pair(1, 2))[0].a == 1
    pytree.register_pytree_node(
        Pair, lambda p: ([p.a, p.b], None), lambda children, _: Pair(*children),
        flatten_with_keys_fn=lambda p: ([(pytree.GetAttrKey("a"), p.a), (pytree.GetAttrKey("b"), p.b)], None))
    tripled = pytree.tree_map(lambda x: 3 * x, [Pair(1, (2,))])
    assert tripled[0].a == 3 and tripled[0].b == (6,)
    assert [pytree.keystr(path) for path, _ in pytree.tree_leaves_with_path(Pair(1, [2]))] == [".a", ".b[0]"]
    with pytest.raises(ValueError, match="is already registered as pytree node"):
        pytree.register_pytree_node(Pair, None, None)


def test_leaves_for_more_places():
    spec = pytree.tree_structure([1, (2, 3)])
    assert pytree._broadcast_to_and_flatten(0, spec) == [0, 0, 0]
    assert pytree._broadcast_to_and_flatten([5, 6], spec) == [5, 6, 6]
    assert pytree._broadcast_to_and_flatten([5, [6, 7]], spec) is None
