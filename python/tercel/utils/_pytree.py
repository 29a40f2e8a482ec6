"""Flattens nested lists, tuples, dicts and similar containers to lists of leaves, and unflattens them."""

import collections
import dataclasses
import types
from typing import Any, Callable, NamedTuple

from tercel import _C

__all__ = ["GetAttrKey", "LeafSpec", "MappingKey", "SequenceKey", "TreeSpec", "is_namedtuple", "is_namedtuple_class",
           "is_namedtuple_instance", "is_structseq", "key_get", "keystr", "register_pytree_node", "tree_all", "tree_all_only",
           "tree_any", "tree_any_only", "tree_flatten", "tree_flatten_with_path", "tree_is_leaf", "tree_iter", "tree_leaves",
           "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only", "tree_map_only_", "tree_map_with_path",
           "tree_structure", "tree_unflatten"]


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """The index of a child in a sequence."""

    idx: int

    def __str__(self):
        return f"[{self.idx!r}]"

    def get(self, sequence):
        """The child."""
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """The key of a child in a dict."""

    key: Any

    def __str__(self):
        return f"[{self.key!r}]"

    def get(self, mapping):
        """The child."""
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """The name of a child that is an attribute."""

    name: str

    def __str__(self):
        return f".{self.name}"

    def get(self, obj):
        """The child."""
        return getattr(obj, self.name)


class NodeDef(NamedTuple):
    """The functions that flatten and unflatten objects of a type."""

    type: type
    flatten_fn: Callable  # object -> (children, context)
    unflatten_fn: Callable  # (children, context) -> object
    flatten_with_keys_fn: Any  # object -> ([(key, child)], context), or None


def is_namedtuple_class(cls):
    """Whether the argument is a class made by collections.namedtuple or typing.NamedTuple, or derived from one."""
    return isinstance(cls, type) and issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple) and \
        callable(getattr(cls, "_make", None))


def is_namedtuple_instance(obj):
    """Whether the object is an instance of a namedtuple class."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj):
    """Whether the object is a namedtuple class or an instance of one."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq(obj):
    """Whether the object is a named result (tercel.return_types) or another struct sequence, or the class of one."""
    cls = obj if isinstance(obj, type) else type(obj)
    return issubclass(cls, tuple) and hasattr(cls, "n_sequence_fields")


def _keyed(keys_of):
    """Makes flatten_with_keys of a type from its flatten and the keys of an object's children."""
    def flatten(obj):
        children, context = SUPPORTED_NODES[_node_type(obj)].flatten_fn(obj)
        return list(zip(keys_of(obj), children)), context

    return flatten


_by_index = _keyed(lambda obj: map(SequenceKey, range(len(obj))))
_by_key = _keyed(lambda obj: map(MappingKey, obj))

SUPPORTED_NODES = {}


def _add(cls, flatten, unflatten, with_keys):
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten, unflatten, with_keys)


_add(tuple, lambda t: (list(t), None), lambda children, _: tuple(children), _by_index)
_add(list, lambda t: (list(t), None), lambda children, _: list(children), _by_index)
_add(dict, lambda d: (list(d.values()), list(d)), lambda children, keys: dict(zip(keys, children)), _by_key)
_add(collections.namedtuple, lambda t: (list(t), type(t)), lambda children, cls: cls(*children),
     _keyed(lambda t: map(GetAttrKey, t._fields)))
_add(collections.OrderedDict, lambda d: (list(d.values()), list(d)),
     lambda children, keys: collections.OrderedDict(zip(keys, children)), _by_key)
_add(collections.defaultdict, lambda d: (list(d.values()), [d.default_factory, list(d)]),
     lambda children, context: collections.defaultdict(context[0], zip(context[1], children)), _by_key)
_add(collections.deque, lambda d: (list(d), d.maxlen), lambda children, maxlen: collections.deque(children, maxlen), _by_index)
_add(_C.Size, lambda t: (list(t), None), lambda children, _: _C.Size(children), _by_index)


def register_pytree_node(cls, flatten_fn, unflatten_fn, *, serialized_type_name=None, to_dumpable_context=None,
                         from_dumpable_context=None, flatten_with_keys_fn=None):
    """Registers cls, without its subclasses, as a node type: flatten_fn(object) returns children and a context, from which
    unflatten_fn(children, context) makes an object."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _add(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)


_register_pytree_node = register_pytree_node  # older name


def _node_type(tree):
    """The node type of a tree: a key of SUPPORTED_NODES, unless the tree is a leaf."""
    cls = type(tree)
    if cls in SUPPORTED_NODES:
        return cls
    if is_namedtuple_class(cls):
        return collections.namedtuple
    if is_structseq(cls):
        _add(cls, lambda t: (list(t), None), lambda children, _: cls(children), _by_index)
    return cls


def _is_leaf(tree, is_leaf):
    return (is_leaf is not None and is_leaf(tree)) or _node_type(tree) not in SUPPORTED_NODES


def tree_is_leaf(tree, is_leaf=None):
    """Whether the tree is a leaf: not of a node type, or is_leaf(tree)."""
    return _is_leaf(tree, is_leaf)


class TreeSpec:
    """The structure of a tree without its leaves; type None means a leaf."""

    def __init__(self, type, context, children):  # noqa: A002
        self.type, self.context, self._children = type, context, list(children)
        self.num_children = len(self._children)
        self.num_nodes = 1 + sum(child.num_nodes for child in self._children)
        self.num_leaves = 1 if type is None else sum(child.num_leaves for child in self._children)

    children_specs = property(lambda self: self._children, doc="The specs of the children.")

    def children(self):
        """The specs of the children."""
        return list(self._children)

    def child(self, index):
        """The spec of one child."""
        return self._children[index]

    def is_leaf(self):
        """Whether the tree is one leaf."""
        return self.type is None

    def __eq__(self, other):
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (self.type, self.context, self._children) == (other.type, other.context, other._children)

    def __hash__(self):
        return hash((self.type, str(self.context), tuple(self._children)))

    def __repr__(self, indent=0):
        if self.is_leaf():
            return "*"
        space = " " * (indent + 2)
        inner = f",\n{space}".join(child.__repr__(indent + 2) for child in self._children)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{inner}])"

    def unflatten(self, leaves):
        """The tree with these leaves."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a "
                             f"pytree that holds {self.num_leaves} items ({self}).")
        return self._made(iter(leaves))

    def _made(self, leaves):
        if self.is_leaf():
            return next(leaves)
        return SUPPORTED_NODES[self.type].unflatten_fn([child._made(leaves) for child in self._children], self.context)

    def flatten_up_to(self, tree):
        """The subtrees at the leaves of this spec; ValueError unless the spec is a prefix of the tree."""
        found = []
        self._collect(tree, found)
        return found

    def _collect(self, tree, found):
        if self.is_leaf():
            found.append(tree)
            return
        kind = _node_type(tree)
        dicts = (dict, collections.OrderedDict, collections.defaultdict)
        if self.type in dicts and kind in dicts:  # dict types are interchangeable, with keys in any order
            keys = self.context[1] if self.type is collections.defaultdict else self.context
            if set(keys) != set(tree):
                raise ValueError(f"Node keys mismatch; expected keys {list(keys)!r}, but got {list(tree)!r}.")
            children = [tree[key] for key in keys]
        else:
            if kind is not self.type:
                raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {type(tree)!r}.")
            children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
            if len(children) != self.num_children:
                raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
            if context != self.context and kind is not collections.deque:
                raise ValueError(f"Node context mismatch for node type {self.type!r}.")
        for spec, child in zip(self._children, children):
            spec._collect(child, found)


_LEAF = TreeSpec(None, None, [])


def LeafSpec():  # noqa: N802
    """The spec of a leaf."""
    return _LEAF


def tree_iter(tree, is_leaf=None):
    """An iterator over the leaves."""
    if _is_leaf(tree, is_leaf):
        yield tree
        return
    for child in SUPPORTED_NODES[_node_type(tree)].flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree, is_leaf=None):
    """The list of leaves."""
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree, is_leaf=None):
    """The spec of a tree."""
    if _is_leaf(tree, is_leaf):
        return _LEAF
    kind = _node_type(tree)
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [tree_structure(child, is_leaf) for child in children])


def tree_flatten(tree, is_leaf=None):
    """The leaves and the spec of a tree."""
    return tree_leaves(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_unflatten(leaves, treespec):
    """The tree with these leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec but got item of "
                        f"type {type(treespec)}.")
    return treespec.unflatten(leaves)


def tree_map(func, tree, *rests, is_leaf=None):
    """The tree with each leaf replaced by func(leaf, subtrees at the same position in the other trees)."""
    spec = tree_structure(tree, is_leaf)
    columns = [tree_leaves(tree, is_leaf), *(spec.flatten_up_to(rest) for rest in rests)]
    return spec.unflatten(func(*row) for row in zip(*columns))


def tree_map_(func, tree, *rests, is_leaf=None):
    """Calls func as tree_map() does, and returns the tree unchanged."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def _tester(what):
    union = getattr(types, "UnionType", ())
    if isinstance(what, (type, tuple, union)):
        return lambda x: isinstance(x, what)
    if callable(what):
        return what
    raise TypeError(f"Argument must be a type, a tuple of types, or a callable, but got {what!r}")


def map_only(type_or_types_or_pred, /):
    """Decorates a function of one argument to return objects of other types unchanged."""
    test = _tester(type_or_types_or_pred)
    return lambda func: lambda x: func(x) if test(x) else x


def tree_map_only(type_or_types_or_pred, /, func, tree, is_leaf=None):
    """tree_map() of the leaves that have a type, one of several types, or satisfy a predicate; others are unchanged."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred, /, func, tree, is_leaf=None):
    """tree_map_() of the leaves that have a type, one of several types, or satisfy a predicate."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None):
    """Whether pred holds for all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None):
    """Whether pred holds for any leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types, /, pred, tree, is_leaf=None):
    """Whether pred holds for all leaves of these types."""
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(type_or_types, /, pred, tree, is_leaf=None):
    """Whether pred holds for any leaf of these types."""
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def _leaves_with_path(path, tree, is_leaf):
    if _is_leaf(tree, is_leaf):
        yield path, tree
        return
    node = SUPPORTED_NODES[_node_type(tree)]
    if node.flatten_with_keys_fn is None:
        raise ValueError(f"Did not find a flatten_with_keys_fn for type: {node.type}. Please pass a flatten_with_keys_fn "
                         "argument to register_pytree_node.")
    for key, child in node.flatten_with_keys_fn(tree)[0]:
        yield from _leaves_with_path((*path, key), child, is_leaf)


def tree_leaves_with_path(tree, is_leaf=None):
    """The leaves, each with its key path."""
    return list(_leaves_with_path((), tree, is_leaf))


def tree_flatten_with_path(tree, is_leaf=None):
    """The leaves with their key paths, and the spec of the tree."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func, tree, *rests, is_leaf=None):
    """The tree with each leaf replaced by func(path, leaf, subtrees at the same position in the other trees)."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    columns = [*zip(*pairs)] if pairs else [(), ()]
    columns += [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(func(*row) for row in zip(*columns))


def keystr(kp):
    """The key path as text: ['a'][0].x"""
    return "".join(map(str, kp))


def key_get(obj, kp):
    """The object at a key path."""
    for key in kp:
        obj = key.get(obj)
    return obj


def _broadcast_to_and_flatten(tree, treespec, is_leaf=None):
    """The leaves of a prefix tree of the spec, each repeated for the spec's leaves below it; None if the structures do not
    match."""
    if treespec.is_leaf():
        return [tree] if _is_leaf(tree, is_leaf) else None
    if _is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    kind = _node_type(tree)
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    if kind is not treespec.type or len(children) != treespec.num_children or context != treespec.context:
        return None
    found = []
    for child, spec in zip(children, treespec.children_specs):
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        found += part
    return found
