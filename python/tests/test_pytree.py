"""Flattening of nested containers. Expected results are PyTorch 2.15's."""

import dataclasses
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


def test_dataclasses():
    @dataclasses.dataclass
    class Batch:
        x: int
        y: object = None
        made: int = dataclasses.field(init=False, default=5)

    pytree.register_dataclass(Batch, serialized_type_name="Batch")
    assert pytree.tree_leaves([Batch(1, 2), Batch(None, 3)]) == [1, 2, 3]
    assert pytree.tree_map(lambda v: v + 1, Batch(1)) == Batch(2) and pytree.tree_unflatten([4], pytree.tree_structure(Batch(1))) == Batch(4)
    assert [pytree.keystr(path) for path, _ in pytree.tree_leaves_with_path(Batch(1, [2]))] == [".x", ".y[0]"]
    spec = pytree.tree_structure([Batch(1), 2])
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec

    @dataclasses.dataclass
    class Part:
        x: int
        y: int = 3

    with pytest.raises(ValueError, match=r"\['y'\] are neither in field_names"):
        pytree.register_dataclass(Part, field_names=["x"])
    with pytest.raises(ValueError, match=r"field_names has \['z'\]"):
        pytree.register_dataclass(Part, field_names=["x", "y", "z"])
    with pytest.raises(ValueError, match="as it is not a dataclass"):
        pytree.register_dataclass(int)
    pytree.register_dataclass(Part, field_names=["x"], drop_field_names=["y"])
    assert pytree.tree_map(lambda v: v + 1, Part(1, 7)) == Part(2, 3)


def test_constants():
    @dataclasses.dataclass(frozen=True)
    class Mode:
        name: str

    pytree.register_constant(Mode)
    assert pytree.tree_map(lambda v: v + 1, [Mode("a"), 2]) == [Mode("a"), 3] and pytree.is_constant_class(Mode)
    assert pytree.tree_structure(Mode("a")) == pytree.tree_structure(Mode("a")) != pytree.tree_structure(Mode("b"))
    assert pytree.tree_leaves_with_path([Mode("a")]) == []
    with pytest.raises(TypeError, match="non-default `__eq__`"):
        pytree.register_constant(type("Plain", (), {}))
    with pytest.raises(TypeError, match="non-default `__hash__`"):
        pytree.register_constant(dataclasses.make_dataclass("Mutable", ["x"]))


@pytest.mark.parametrize("tree", [
    [1, 2], {"a": [1, (2, 3)]}, OrderedDict(a=1), defaultdict(int, {"a": 1}), defaultdict(None, b=1),
    deque([1], 3), 1, tc.Size([1, 2]), {1: 2}])
def test_specs_as_text(tree):
    spec = pytree.tree_structure(tree)
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec


def test_texts_of_specs():
    text = pytree.treespec_dumps(pytree.tree_structure({"a": (1,)}))
    leaf = '{"type": null, "context": null, "children_spec": []}'
    assert text == ('[1, {"type": "builtins.dict", "context": "[\\"a\\"]", "children_spec": [{"type": "builtins.tuple", '  # PyTorch 2.15's
                    f'"context": "null", "children_spec": [{leaf}]}}]}}]')
    with pytest.raises(NotImplementedError, match="was registered without a serialized_type_name"):
        pytree.treespec_dumps(pytree.tree_structure(Point(1, 2)))
    with pytest.raises(NotImplementedError, match="no type is registered as 'nonsense'"):
        pytree.treespec_loads('[1, {"type": "nonsense", "context": "null", "children_spec": []}]')
    for call in (lambda: pytree.treespec_dumps(pytree.tree_structure(1), protocol=7), lambda: pytree.treespec_loads("[7, 0]")):
        with pytest.raises(ValueError, match=r"Unknown protocol 7. Available protocols: \[1\]"):
            call()
    with pytest.raises(TypeError, match="expected a TreeSpec"):
        pytree.treespec_dumps([1])
    assert pytree.PyTree is not None


def test_leaves_for_more_places():
    spec = pytree.tree_structure([1, (2, 3)])
    assert pytree._broadcast_to_and_flatten(0, spec) == [0, 0, 0]
    assert pytree._broadcast_to_and_flatten([5, 6], spec) == [5, 6, 6]
    assert pytree._broadcast_to_and_flatten([5, [6, 7]], spec) is None
