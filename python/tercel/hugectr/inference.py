"""HugeCTR's module `hugectr.inference`: its names are refused, with the reason."""

from typing import Any

from tercel import _C

__all__: "list[str]" = []

_NAMES = ("CreateEmbeddingCache", "CreateInferenceSession", "CreateParameterServer", "HPS", "InferenceModel",
          "InferenceParams", "InferenceSession", "ParameterServerConfig", "PersistentDatabaseParams",
          "UpdateSourceParams", "VolatileDatabaseParams")


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        raise _C.ConfigError(f"hugectr.inference.{name}: HugeCTR's inference is not part of this front end; "
                             "Model.session predicts, and tercel.recsys.load_model() loads models that are trained")
    raise AttributeError(f"module 'hugectr.inference' has no attribute {name!r}")
