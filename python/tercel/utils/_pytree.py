"""Flattens nested lists, tuples, dicts and similar containers to lists of leaves, and unflattens them."""

import collections
import dataclasses
import functools
import importlib
import json
import types
from typing import Any, Callable, NamedTuple

from tercel import _C

__all__ = ["GetAttrKey", "LeafSpec", "MappingKey", "PyTree", "SequenceKey", "TreeSpec", "is_constant_class", "is_namedtuple",
           "is_namedtuple_class", "is_namedtuple_instance", "is_structseq", "key_get", "keystr", "register_constant",
           "register_dataclass", "register_pytree_node", "tree_all", "tree_all_only",
           "tree_any", "tree_any_only", "tree_flatten", "tree_flatten_with_path", "tree_is_leaf", "tree_iter", "tree_leaves",
           "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only", "tree_map_only_", "tree_map_with_path",
           "tree_structure", "tree_unflatten", "treespec_dumps", "treespec_loads"]

PyTree = Any


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
    serialized_type_name: Any = None  # for treespec_dumps(), or None
    to_dumpable_context: Any = None  # context -> what JSON can hold; by default the context itself
    from_dumpable_context: Any = None


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


def _add(cls, *rest):
    SUPPORTED_NODES[cls] = NodeDef(cls, *rest)


def _named_class(context):
    return {"default_factory_module": getattr(context[0], "__module__", None),
            "default_factory_name": getattr(context[0], "__qualname__", None), "dict_context": context[1]}


def _class_of(named):
    if named["default_factory_module"] is None:
        return [None, named["dict_context"]]
    module = importlib.import_module(named["default_factory_module"])
    return [functools.reduce(getattr, named["default_factory_name"].split("."), module), named["dict_context"]]


_add(tuple, lambda t: (list(t), None), lambda children, _: tuple(children), _by_index, "builtins.tuple")
_add(list, lambda t: (list(t), None), lambda children, _: list(children), _by_index, "builtins.list")
_add(dict, lambda d: (list(d.values()), list(d)), lambda children, keys: dict(zip(keys, children)), _by_key, "builtins.dict")
_add(collections.namedtuple, lambda t: (list(t), type(t)), lambda children, cls: cls(*children),
     _keyed(lambda t: map(GetAttrKey, t._fields)))
_add(collections.OrderedDict, lambda d: (list(d.values()), list(d)),
     lambda children, keys: collections.OrderedDict(zip(keys, children)), _by_key, "collections.OrderedDict")
_add(collections.defaultdict, lambda d: (list(d.values()), [d.default_factory, list(d)]),
     lambda children, context: collections.defaultdict(context[0], zip(context[1], children)), _by_key,
     "collections.defaultdict", _named_class, _class_of)
_add(collections.deque, lambda d: (list(d), d.maxlen), lambda children, maxlen: collections.deque(children, maxlen), _by_index,
     "collections.deque")
_add(_C.Size, lambda t: (list(t), None), lambda children, _: _C.Size(children), _by_index, "torch.Size")


def register_pytree_node(cls, flatten_fn, unflatten_fn, *, serialized_type_name=None, to_dumpable_context=None,
                         from_dumpable_context=None, flatten_with_keys_fn=None):
    """Registers cls, without its subclasses, as a node type: flatten_fn(object) returns children and a context, from which
    unflatten_fn(children, context) makes an object. treespec_dumps() needs a serialized_type_name."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    _add(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn, serialized_type_name, to_dumpable_context, from_dumpable_context)


_register_pytree_node = register_pytree_node  # older name


def register_dataclass(cls, *, field_names=None, drop_field_names=None, serialized_type_name=None):
    """Objects of a dataclass are nodes with the fields of __init__() as children; those of drop_field_names have their
    default value in a tree that is put together. Another class needs field_names."""
    if field_names is None and not dataclasses.is_dataclass(cls):
        raise ValueError(f"field_names must be specified with a list of all fields used to initialize {cls}, as it is not a "
                         "dataclass.")
    dropped = list(drop_field_names or ())
    if dataclasses.is_dataclass(cls):
        fields = [field.name for field in dataclasses.fields(cls) if field.init]
        names = [name for name in fields if name not in dropped] if field_names is None else list(field_names)
        if missing := set(fields) - set(names) - set(dropped):
            raise ValueError(f"field_names does not include all dataclass fields: {sorted(missing)} are neither in field_names "
                             "nor in drop_field_names.")
        if unknown := set(names) - set(fields):
            raise ValueError(f"field_names has {sorted(unknown)}, which are no fields that {cls.__name__}() takes.")
    else:
        names = list(field_names)

    def flatten(obj):
        # A field that is None is not a child: its name is kept apart.
        present = [name for name in names if getattr(obj, name) is not None]
        return [getattr(obj, name) for name in present], [present, [name for name in names if name not in present]]

    def unflatten(children, context):
        return cls(**dict(zip(context[0], children)), **dict.fromkeys(context[1]))

    def with_keys(obj):
        children, context = flatten(obj)
        return list(zip(map(GetAttrKey, context[0]), children)), context

    _add(cls, flatten, unflatten, with_keys, serialized_type_name)


_CONSTANTS = set()


@dataclasses.dataclass(frozen=True)
class ConstantNode:
    """The context of a constant: the object itself."""

    value: Any


def register_constant(cls):
    """Objects of cls are part of what a tree is without its leaves. They are compared and hashed."""
    for name, default in (("__eq__", object.__eq__), ("__hash__", object.__hash__)):
        if getattr(cls, name) in (default, None):
            raise TypeError(f"register_constant(cls) expects `cls` to have a non-default `{name}` implementation.")
    _add(cls, lambda obj: ([], ConstantNode(obj)), lambda _, context: context.value, lambda obj: ([], ConstantNode(obj)))
    _CONSTANTS.add(cls)


def is_constant_class(cls):
    """Whether it was given to register_constant()."""
    return cls in _CONSTANTS


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


_PROTOCOL = 1


def _dumped(treespec):
    if treespec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    node = SUPPORTED_NODES[treespec.type]
    if node.serialized_type_name is None:
        raise NotImplementedError(f"treespec_dumps: {treespec.type.__name__} was registered without a serialized_type_name")
    context = treespec.context
    context = json.dumps(context) if node.to_dumpable_context is None else node.to_dumpable_context(context)
    return {"type": node.serialized_type_name, "context": context, "children_spec": list(map(_dumped, treespec.children()))}


def _loaded(dumped):
    if dumped["type"] is None:
        return _LEAF
    for node in SUPPORTED_NODES.values():
        if node.serialized_type_name == dumped["type"]:
            break
    else:
        raise NotImplementedError(f"treespec_loads: no type is registered as {dumped['type']!r}")
    context = dumped["context"]
    context = json.loads(context) if node.from_dumpable_context is None else node.from_dumpable_context(context)
    return TreeSpec(node.type, context, map(_loaded, dumped["children_spec"]))


def treespec_dumps(treespec, protocol=None):
    """What a tree is without its leaves, as JSON; keys of dicts must be what JSON can hold."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"treespec_dumps(treespec): expected a TreeSpec, but got {type(treespec)}")
    if protocol not in (None, _PROTOCOL):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{_PROTOCOL}]")
    return json.dumps([_PROTOCOL, _dumped(treespec)])


def treespec_loads(serialized):
    """The TreeSpec that treespec_dumps() wrote."""
    protocol, dumped = json.loads(serialized)
    if protocol != _PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{_PROTOCOL}]")
    return _loaded(dumped)
