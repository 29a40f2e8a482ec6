"""Graphs of layers, written in Python."""

import inspect
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Sequence, Tuple, Union

from tercel import _C
from tercel.data._options import name_of

__all__ = ["Graph"]

_Option = Tuple[str, bool, str, Any, str, str]
Tops = Union[str, Tuple[str, ...]]


class Graph:
    """
    A list of layers, in the order in which they run. Each type of layer is a method, which takes the tensors that the
    layer reads, its options by name and `top`, the name of what it makes, and returns that name:

        graph = Graph("click", sparse={"user": 2, "item": 3})
        vectors = graph.SparseEmbedding("item", embedding_vec_size=8)
        logit = graph.MLP(graph.Reshape(vectors), num_outputs=[16, 1], activations=["Relu", "Non"])
        graph.BinaryCrossEntropyLoss(logit, "click")

    layer_types() has the types; docs/guide/config.md and help(Graph.MLP) describe them. A model that is built of the
    graph checks it, with the sizes of the dataset.
    """

    name: str
    """The name of the model."""
    layers: List[Dict[str, Any]]
    """The layers as in the JSON files of `tercel train`; it may be changed."""

    def __init__(self, label: Any = "label", *, dense: str = "dense", sparse: Any = ("categories",),
                 name: str = "model") -> None:
        """
        `label` names the tensor of labels; a dict from names to numbers of columns makes several. `sparse` names the
        inputs of keys; a dict from names to numbers of slots says which slots they take, in the dataset's order.
        """
        self.name = name_of(name, "name")
        labels = {"top": list(label), "label_dim": list(label.values())} if isinstance(label, dict) else {"top": label}
        if isinstance(sparse, str):
            sparse = (sparse,)
        inputs = [{"top": top} for top in sparse]
        if isinstance(sparse, dict):
            inputs = [{"top": top, "slot_num": slots} for top, slots in sparse.items()]
        self.layers = [{"type": "Data", "label": labels, "dense": {"top": dense}, "sparse": inputs}]

    def add(self, type: str, bottoms: Sequence[str], *, top: Any = None, **options: Any) -> Tops:
        """
        Adds a layer by the name of its type; the methods call it. Options of a group, such as fc_param, may be given
        without it. Returns the name of the top, or a tuple of several. TypeError for options that are required or
        unknown.
        """
        described: List[_Option] = _LAYERS[type][1] if type in _LAYERS else []
        if not described and type not in _LAYERS:
            raise _C.ConfigError(f"graph: unknown type of layer {type!r}; known: {', '.join(_LAYERS)}")
        layer: Dict[str, Any] = {"type": type}
        names = [name_of(bottom, f"{type}: bottom") for bottom in bottoms]
        layer["bottom"] = names[0] if len(names) == 1 else names
        layer["top"] = self._free_name(type) if top is None else top if isinstance(top, str) else list(top)
        groups = {name: group for group, _, name, _, _, _ in described}
        for name, value in options.items():
            if name == "optimizer" and type in _EMBEDDINGS or name in groups.values():
                layer.setdefault(name, {}).update(value)
            elif name not in groups:
                raise TypeError(f"{type}: unknown option {name!r}; known: {', '.join(groups) or 'none'}")
            elif groups[name]:
                layer.setdefault(groups[name], {})[name] = value
            else:
                layer[name] = value
        for group, required, name, _, _, _ in described:
            if required and name not in layer and name not in layer.get(group, {}):
                raise TypeError(f"{type}: option {name!r} is missing")
        self.layers.append(layer)
        return layer["top"] if isinstance(layer["top"], str) else tuple(layer["top"])

    def _free_name(self, type: str) -> str:
        taken = set()
        for layer in self.layers[1:]:
            taken.update([layer["top"]] if isinstance(layer["top"], str) else layer["top"])
        return next(name for name in (f"{type}{i}" for i in range(1, len(taken) + 2)) if name not in taken)

    if TYPE_CHECKING:  # the methods are made below
        def __getattr__(self, type: str) -> Callable[..., Any]: ...

    def __repr__(self) -> str:
        return f"Graph({self.name!r}, {len(self.layers)} layers)"


_EMBEDDINGS = ("SparseEmbedding", "EmbeddingLookup")
_LAYERS: Dict[str, Tuple[bool, List[_Option]]] = {
    type: (is_loss, [tuple(option) for option in options]) for type, is_loss, options in _C._describe_layers()}


def _method(type: str) -> Callable[..., Tops]:
    def method(self: Graph, *bottoms: str, top: Any = None, **options: Any) -> Tops:
        return self.add(type, bottoms, top=top, **options)

    parameter, keyword = inspect.Parameter, inspect.Parameter.KEYWORD_ONLY
    parameters = [parameter("self", parameter.POSITIONAL_OR_KEYWORD), parameter("bottoms", parameter.VAR_POSITIONAL),
                  parameter("top", keyword, default=None)]
    lines = [f"Adds a layer {type}, and returns the name of its top.", ""]
    for _, required, name, default, text, _ in _LAYERS[type][1]:
        parameters.append(parameter(name, keyword, default=parameter.empty if required else default))
        lines.append(f"{name}: {text}.")
    method.__name__, method.__qualname__ = type, f"Graph.{type}"
    method.__doc__ = "\n".join(lines)
    method.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return method


for _type in _LAYERS:
    setattr(Graph, _type, _method(_type))
