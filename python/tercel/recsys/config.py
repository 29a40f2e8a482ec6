"""Configurations of models: dicts like the JSON files of `tercel train`."""

import json
import os
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Union

from tercel import _C
from tercel.data._options import name_of

if TYPE_CHECKING:
    from tercel.recsys.graph import Graph

__all__ = ["layer_types", "preset", "preset_names", "resolve_config"]

Config = Dict[str, Any]
Section = Optional[Mapping[str, Any]]
ModelLike = Union[str, "os.PathLike[str]", Mapping[str, Any], "Graph"]


def preset_names() -> List[str]:
    """The names of the models that Tercel has: "autoint", ..., "deepfm", "dlrm", "xdeepfm"."""
    names: List[str] = _C._preset_names()
    return names


def preset(name: str) -> Config:
    """The configuration of one of these models, to be changed; ConfigError with the nearest name for another name."""
    config: Config = _C._preset(name_of(name, "preset"))
    return config


def layer_types() -> List[str]:
    """The types of layers that a graph can have, besides Data. docs/guide/config.md describes them."""
    return [layer[0] for layer in _C._describe_layers()]


def _read(path: "Union[str, os.PathLike[str]]") -> Any:
    with open(path, encoding="utf-8") as file:
        try:
            return json.load(file)
        except (ValueError, RecursionError) as error:
            raise _C.ConfigError(f"{os.fspath(path)}: expected JSON: {error}") from None


def _config_of(model: Any, solver: Section, optimizer: Section, data: Section) -> Any:
    """The library's configuration."""
    from tercel.recsys.graph import Graph

    if isinstance(model, Graph):
        name, config = "model", {"model_name": model.name, "layers": model.layers}
    elif isinstance(model, Mapping):
        name, config = str(model.get("model_name") or "model"), dict(model)
    elif isinstance(model, str) and os.sep not in model and not model.endswith(".json"):
        name, config = model, preset(model)
    elif isinstance(model, str) or hasattr(type(model), "__fspath__"):
        name, config = os.fspath(model), _read(model)
        if not isinstance(config, dict):
            raise _C.ConfigError(f"{name}: expected a JSON object")
    else:
        raise TypeError(f"model: expected the name of a preset, the path of a JSON file, a dict or a Graph, not "
                        f"{type(model).__name__}")
    for section, values in (("solver", solver), ("optimizer", optimizer), ("data", data)):
        if values is None:
            continue
        if not isinstance(values, Mapping):
            raise TypeError(f"{section}: expected a dict of options, not {type(values).__name__}")
        before = config.get(section) or {}
        config[section] = {**before, **values} if isinstance(before, Mapping) else before
    return _C._ModelConfig.parse(config, name)


def resolve_config(model: ModelLike, *, solver: Section = None, optimizer: Section = None,
                   data: Section = None) -> Config:
    """
    The whole configuration of a model, all options of its sections included. `model` is the name of a preset, the path
    of a JSON file, a dict like such a file, or a Graph; `solver`, `optimizer` and `data` set single options.
    ConfigError that names the entry. Layers are checked when the model is built for a dataset.
    """
    config: Config = _config_of(model, solver, optimizer, data).to_dict()
    return config
