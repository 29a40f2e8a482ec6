"""HugeCTR's JSON of a model (Data, embeddings, dense layers) as a graph of Tercel's."""

from typing import Any, Dict, List, Mapping, Optional, Sequence

from tercel import _C
from tercel.hugectr.enums import Embedding_t, Layer_t

__all__ = ["bottoms_of", "engine_layers", "is_embedding", "label_columns_swapped", "tops_of"]

Layer = Dict[str, Any]

_EMBEDDINGS = tuple(kind.value for kind in Embedding_t) + ("SparseEmbedding", "EmbeddingLookup")
_LOSSES = ("BinaryCrossEntropyLoss", "CrossEntropyLoss", "MultiCrossEntropyLoss")
# The further outputs of these are memory of HugeCTR's backward pass.
_WITH_MEMORY = ("FusedInnerProduct", "Interaction")


def _names(value: Any) -> List[str]:
    return [value] if isinstance(value, str) else list(value)


def bottoms_of(layer: Mapping[str, Any]) -> List[str]:
    """The names of the tensors that a layer reads."""
    return _names(layer.get("bottom", ()))


def tops_of(layer: Mapping[str, Any]) -> List[str]:
    """The names of the tensors that a layer makes; those of Data's labels, dense values and inputs."""
    if layer["type"] != "Data":
        return _names(layer["top"])
    return [*_names(layer["label"]["top"]), layer["dense"]["top"], *(part["top"] for part in layer["sparse"])]


def is_embedding(layer: Mapping[str, Any]) -> bool:
    """Whether the layer reads an input of keys."""
    return layer["type"] in _EMBEDDINGS


def is_loss(layer: Mapping[str, Any]) -> bool:
    """Whether the layer is a loss."""
    return layer["type"] in _LOSSES


def label_columns_swapped(names: Sequence[str]) -> bool:
    """Whether HugeCTR, which takes labels in alphabetical order, would give them other columns."""
    return list(names) != sorted(names)


def _fused(layer: Layer) -> Layer:
    """FusedInnerProduct: a fully connected layer and its activation."""
    param = dict(layer["fc_param"])
    param["activation"] = layer.get("activation", "Relu")
    return {"type": "MLP", "bottom": bottoms_of(layer)[0], "top": tops_of(layer)[0], "mlp_param": param}


def _without_memory(layer: Layer, memory: "set[str]") -> Layer:
    """Without the tensors that are memory of a backward pass, also as inputs."""
    bottoms = [name for name in bottoms_of(layer) if name not in memory]
    tops = tops_of(layer)
    if layer["type"] in _WITH_MEMORY:
        memory.update(tops[1:])
        tops = tops[:1]
    return {**layer, "bottom": bottoms[0] if len(bottoms) == 1 else bottoms, "top": tops[0] if len(tops) == 1 else tops}


def _dense_layer(layer: Layer) -> Layer:
    kind = layer["type"]
    if kind == "FusedInnerProduct":
        return _fused(layer)
    if kind == Layer_t.DotProduct.value:
        return {**layer, "type": "ElementwiseMultiply"}
    if kind == Layer_t.ReLUHalf.value:
        return {**layer, "type": "ReLU"}
    return dict(layer)


def _embedding(layer: Layer, gpus: int) -> Layer:
    """
    With one workspace of the size of all GPUs' together. The number of rows that HugeCTR derives from it is not an
    option of its own here.
    """
    hparam = dict(layer.get("sparse_embedding_hparam", {}))
    if hparam.get("workspace_size_per_gpu_in_mb"):
        hparam["workspace_size_per_gpu_in_mb"] *= gpus
        hparam.pop("max_vocabulary_size_global", None)
    return {**layer, "sparse_embedding_hparam": hparam} if hparam else dict(layer)


def _without_unread(layers: List[Layer]) -> List[Layer]:
    """
    Without layers that nothing reads, as long as there are some, and without the parts of a Slice that nothing reads:
    HugeCTR computes them for nothing.
    """
    while True:
        read = {name for layer in layers for name in bottoms_of(layer)}
        kept: List[Layer] = []
        for layer in layers:
            tops = tops_of(layer)
            if layer["type"] == "Data" or is_loss(layer) or all(top in read for top in tops):
                kept.append(layer)
            elif layer["type"] == "Slice" and any(top in read for top in tops):
                wanted = [i for i, top in enumerate(tops) if top in read]
                kept.append({**layer, "top": [tops[i] for i in wanted], "ranges": [layer["ranges"][i] for i in wanted]})
            elif any(top in read for top in tops):
                kept.append(layer)
        if kept == layers:
            return layers
        layers = kept


def engine_layers(layers: Sequence[Layer], weights: Optional[Mapping[str, float]] = None,
                  gpus: int = 1) -> List[Layer]:
    """
    The layers as Tercel's graph has them. `weights` are factors of the losses by the names of their labels; `gpus` is
    the number of GPUs that have a workspace each. ConfigError for a label without a loss.
    """
    memory: "set[str]" = set()
    out: List[Layer] = []
    for layer in layers:
        if layer["type"] == "Data":
            out.append({**layer, "allow_unread": True})
        elif is_embedding(layer):
            out.append(_embedding(layer, gpus))
        else:
            out.append(_dense_layer(_without_memory(layer, memory)))
    found = set()
    for layer in out:
        if is_loss(layer):
            label = bottoms_of(layer)[-1]
            found.add(label)
            if weights and label in weights:
                layer["weight"] = float(weights[label])
    for label in weights or ():
        if label not in found:
            raise _C.ConfigError(f"Model: compile: there is no loss of the label {label!r}; known: "
                                 f"{', '.join(sorted(found))}")
    return _without_unread(out)
