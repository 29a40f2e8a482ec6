"""HugeCTR's JSON files of models: graph_to_json() and construct_from_json()."""

import json
import os
from typing import Any, Dict, List, Sequence, Tuple

from tercel import _C
from tercel.hugectr.solver import bytes_of_row
from tercel.hugectr.translate import is_embedding

__all__ = ["read_graph", "write_graph"]

Layer = Dict[str, Any]


def _rows(hparam: Dict[str, Any], optimizer: Dict[str, Any], gpus: int) -> int:
    """HugeCTR's max_vocabulary_size_global: rows of 4 bytes for each weight and state that fit into all workspaces."""
    row = bytes_of_row(hparam["embedding_vec_size"], optimizer)
    return (int(hparam["workspace_size_per_gpu_in_mb"]) << 20) // row * gpus


def write_graph(path: Any, name: str, layers: Sequence[Layer], gpus: int) -> None:
    """Writes the layers as HugeCTR does; lookups of collections, which its format lacks, as Tercel's graph has them."""
    out: List[Layer] = []
    for layer in layers:
        layer = dict(layer)
        if "sparse_embedding_hparam" in layer and layer["type"] != "EmbeddingLookup":
            hparam = dict(layer["sparse_embedding_hparam"])
            if hparam.get("workspace_size_per_gpu_in_mb"):
                hparam["max_vocabulary_size_global"] = _rows(hparam, layer.get("optimizer", {}), gpus)
            layer["sparse_embedding_hparam"] = hparam
        out.append(layer)
    text = json.dumps({"layers": out, "model_name": name}, indent=2)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "\n")


def _checked(layer: Any, where: str) -> Layer:
    if not isinstance(layer, dict) or not isinstance(layer.get("type"), str):
        raise _C.ConfigError(f"{where}: expected an object with a 'type'")
    if layer["type"] == "Data":
        for key in ("label", "dense", "sparse"):
            if key not in layer:
                raise _C.ConfigError(f"{where}: {key!r} is missing")
        for i, part in enumerate(layer["sparse"]):
            for key in ("top", "slot_num", "nnz_per_slot"):
                if key not in part:
                    raise _C.ConfigError(f"{where}: sparse[{i}]: {key!r} is missing")
    else:
        for key in ("bottom", "top"):
            if key not in layer:
                raise _C.ConfigError(f"{where} ({layer['type']}): {key!r} is missing")
    layer = {key: value for key, value in layer.items() if key != "name"}
    dice = layer.get("prelu_dice_param")
    if isinstance(dice, dict) and "elu_alpha" in dice:  # HugeCTR's reader looks for this name, its writer has the other
        layer["prelu_dice_param"] = {"alpha" if key == "elu_alpha" else key: value for key, value in dice.items()}
    return layer


def _in_order(layer: Layer) -> Layer:
    """One number for all slots as a list of theirs."""
    if layer["type"] != "Data":
        return layer
    sparse = []
    for part in layer["sparse"]:
        nnz = part.get("nnz_per_slot")
        sparse.append({**part, "nnz_per_slot": [nnz] * part["slot_num"]} if isinstance(nnz, int) else dict(part))
    return {**layer, "sparse": sparse}


def read_graph(path: Any, include_dense_network: bool) -> Tuple[str, List[Layer]]:
    """
    (name of the model, layers) of a file of HugeCTR's; without its dense layers if they are not wanted. ConfigError
    that names file and layer.
    """
    name = os.fspath(path)
    with open(path, encoding="utf-8") as file:
        try:
            config = json.load(file)
        except (ValueError, RecursionError) as error:
            raise _C.ConfigError(f"{name}: expected JSON: {error}") from None
    if not isinstance(config, dict) or not isinstance(config.get("layers"), list):
        raise _C.ConfigError(f"{name}: expected an object with a list 'layers'")
    layers = [_in_order(_checked(layer, f"{name}: layers[{i}]")) for i, layer in enumerate(config["layers"])]
    if not layers or layers[0]["type"] != "Data":
        raise _C.ConfigError(f"{name}: layers[0]: expected Data")
    if not include_dense_network:
        layers = [layer for layer in layers if layer["type"] == "Data" or is_embedding(layer)]
    return str(config.get("model_name") or ""), layers
