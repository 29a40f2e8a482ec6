"""
HugeCTR's Python interface on a CPU: scripts that train with `hugectr` run as they are, by

    python -m tercel.hugectr SCRIPT.py [ARGS]

or with `import tercel.hugectr as hugectr`. Models are trained by tercel.recsys. docs/guide/from_hugectr.md says which
arguments work, which have no effect on a CPU and what is refused.
"""

from typing import Any

from tercel import _C
from tercel.hugectr import data, tools
from tercel.hugectr.callbacks import TrainingCallback
from tercel.hugectr.data import DataSource, DataSourceParams
from tercel.hugectr.embedding import (EmbeddingCollectionConfig, EmbeddingTableConfig, HybridEmbeddingParam, InitParams,
                                      SparseEmbedding)
from tercel.hugectr.enums import (Activation_t, Alignment_t, AllReduceAlgo, Check_t, CommunicationStrategy,
                                  CommunicationType, CompressionStrategy, DataReaderType_t, DataSourceType_t,
                                  DeviceLayout, Distribution_t, Embedding_t, FcPosition_t, FileSystemType_t,
                                  GroupLayer_t, HybridEmbeddingType, Initializer_t, Layer_t, LrPolicy_t, MetricsRawType,
                                  MetricsType, Optimizer_t, PowerLaw_t, Regularizer_t, Tensor_t, Update_t)
from tercel.hugectr.layers import DenseLayer, DenseLayerComputeConfig, GroupDenseLayer
from tercel.hugectr.model import Model
from tercel.hugectr.reader import AsyncParam, DataReaderParams, DataReaderSparseParam, Input
from tercel.hugectr.schedule import LearningRateScheduler
from tercel.hugectr.solver import CreateOptimizer, CreateSolver
from tercel.hugectr.tools import DataGenerator, DataGeneratorParams

__version__ = "25.03"

__all__ = ["Activation_t", "Alignment_t", "AllReduceAlgo", "AsyncParam", "Check_t", "CommunicationStrategy",
           "CommunicationType", "CompressionStrategy", "CreateOptimizer", "CreateSolver", "DataGenerator",
           "DataGeneratorParams", "DataReaderParams", "DataReaderSparseParam", "DataReaderType_t", "DataSource",
           "DataSourceParams", "DataSourceType_t", "DenseLayer", "DenseLayerComputeConfig", "DeviceLayout",
           "Distribution_t", "EmbeddingCollectionConfig", "EmbeddingTableConfig", "Embedding_t", "FcPosition_t",
           "FileSystemType_t", "GroupDenseLayer", "GroupLayer_t", "HybridEmbeddingParam", "HybridEmbeddingType",
           "InitParams", "Initializer_t", "Input", "Layer_t", "LearningRateScheduler", "LrPolicy_t", "MetricsRawType",
           "MetricsType", "Model", "Optimizer_t", "PowerLaw_t", "Regularizer_t", "SparseEmbedding", "Tensor_t",
           "TrainingCallback", "Update_t", "data", "tools"]

_ABSENT = {
    "CreateETC": "there is no embedding training cache, since tables are in memory",
    "CreateHMemCache": "there is no embedding training cache, since tables are in memory",
    "inference": "models are used for prediction by tercel.recsys",
}


def __getattr__(name: str) -> Any:
    if name in _ABSENT:
        raise _C.ConfigError(f"hugectr.{name}: {_ABSENT[name]}")
    raise AttributeError(f"module 'hugectr' has no attribute {name!r}")
