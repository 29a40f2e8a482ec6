"""
HugeCTR's Python interface on a CPU: scripts that train with `hugectr` run as they are, by

    python -m tercel.hugectr SCRIPT.py [ARGS]

or with `import tercel.hugectr as hugectr`. Models are trained by tercel.recsys. docs/guide/from_hugectr.md says which
arguments work, which have no effect on a CPU and what is refused.
"""

from typing import Any

from tercel import _C
from tercel.hugectr import data, inference, tools
from tercel.hugectr.callbacks import TrainingCallback
from tercel.hugectr.data import DataSource, DataSourceParams
from tercel.hugectr.embedding import (EmbeddingCollectionConfig, EmbeddingTableConfig, HybridEmbeddingParam, InitParams,
                                      SparseEmbedding)
from tercel.hugectr.enums import (Activation_t, Alignment_t, AllReduceAlgo, Check_t, CommunicationStrategy,
                                  CommunicationType, CompressionStrategy, DataReaderSparse_t, DataReaderType_t,
                                  DataSourceType_t, DeviceLayout, Distribution_t, Embedding_t, FcPosition_t,
                                  FileSystemType_t, GroupLayer_t, HybridEmbeddingType, Initializer_t, Layer_t,
                                  LrPolicy_t, MetricsRawType, MetricsType, Optimizer_t, PowerLaw_t, Regularizer_t,
                                  Tensor_t, Update_t)
from tercel.hugectr.layers import DenseLayer, DenseLayerComputeConfig, DenseLayerSwitchs, GroupDenseLayer
from tercel.hugectr.model import Model
from tercel.hugectr.reader import AsyncParam, DataReaderParams, DataReaderSparseParam, Input
from tercel.hugectr.schedule import LearningRateScheduler
from tercel.hugectr.solver import CreateOptimizer, CreateSolver
from tercel.hugectr.tools import DataGenerator, DataGeneratorParams

# The classes of what CreateSolver() and CreateOptimizer() give, which annotations name.
Solver, OptParamsPy = CreateSolver, CreateOptimizer

__version__ = "25.03"

__all__ = ["Activation_t", "Alignment_t", "AllReduceAlgo", "AsyncParam", "Check_t", "CommunicationStrategy",
           "CommunicationType", "CompressionStrategy", "CreateOptimizer", "CreateSolver", "DataGenerator",
           "DataGeneratorParams", "DataReaderParams", "DataReaderSparseParam", "DataReaderSparse_t", "DataReaderType_t",
           "DataSource", "DataSourceParams", "DataSourceType_t", "DenseLayer", "DenseLayerComputeConfig",
           "DenseLayerSwitchs", "DeviceLayout", "Distribution_t", "EmbeddingCollectionConfig", "EmbeddingTableConfig",
           "Embedding_t", "FcPosition_t", "FileSystemType_t", "GroupDenseLayer", "GroupLayer_t", "HybridEmbeddingParam",
           "HybridEmbeddingType", "InitParams", "Initializer_t", "Input", "Layer_t", "LearningRateScheduler",
           "LrPolicy_t", "MetricsRawType", "MetricsType", "Model", "OptParamsPy", "Optimizer_t", "PowerLaw_t",
           "Regularizer_t", "Solver", "SparseEmbedding", "Tensor_t", "TrainingCallback", "Update_t", "data",
           "inference", "tools"]

_NO_CACHE = "there is no embedding training cache, since tables are in memory"
_SESSION = "scripts of versions before 3.0, with a Session, are not run; CreateSolver() and Model have its place"
_OLD_COLLECTION = "EmbeddingCollectionConfig, of 23.02 and later, has its place"
_ABSENT = {
    "CreateETC": _NO_CACHE,
    "CreateHMemCache": _NO_CACHE,
    "CreateMOS": _NO_CACHE,
    "TrainPSType_t": _NO_CACHE,
    "Session": _SESSION,
    "solver_parser_helper": _SESSION,
    "get_learning_rate_scheduler": _SESSION,
    "optimizer": _SESSION,
    "EmbeddingPlanner": _OLD_COLLECTION,
    "EmbeddingTablePlaceHolder": _OLD_COLLECTION,
}


def __getattr__(name: str) -> Any:
    if name in _ABSENT:
        raise _C.ConfigError(f"hugectr.{name}: {_ABSENT[name]}")
    raise AttributeError(f"module 'hugectr' has no attribute {name!r}")
