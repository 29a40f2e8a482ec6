"""HugeCTR's enumerations, those of 23.08 and of 25.03."""

from enum import Enum

__all__ = ["Activation_t", "Alignment_t", "AllReduceAlgo", "Check_t", "CommunicationStrategy", "CommunicationType",
           "CompressionStrategy", "DataReaderSparse_t", "DataReaderType_t", "DataSourceType_t", "DeviceLayout",
           "Distribution_t", "Embedding_t", "FcPosition_t", "FileSystemType_t", "GroupLayer_t", "HybridEmbeddingType",
           "Initializer_t", "Layer_t", "LrPolicy_t", "MetricsRawType", "MetricsType", "Optimizer_t", "PowerLaw_t",
           "Regularizer_t", "Tensor_t", "Update_t"]


class Layer_t(Enum):
    """Types of dense layers. ReLUHalf, which HugeCTR exports without implementing it, is ReLU."""

    BatchNorm = "BatchNorm"
    LayerNorm = "LayerNorm"
    BinaryCrossEntropyLoss = "BinaryCrossEntropyLoss"
    Reshape = "Reshape"
    Select = "Select"
    Concat = "Concat"
    CrossEntropyLoss = "CrossEntropyLoss"
    Dropout = "Dropout"
    ELU = "ELU"
    InnerProduct = "InnerProduct"
    FusedInnerProduct = "FusedInnerProduct"
    MLP = "MLP"
    Interaction = "Interaction"
    MultiCrossEntropyLoss = "MultiCrossEntropyLoss"
    ReLU = "ReLU"
    ReLUHalf = "ReLUHalf"
    GRU = "GRU"
    MatrixMultiply = "MatrixMultiply"
    MultiHeadAttention = "MultiHeadAttention"
    Scale = "Scale"
    FusedReshapeConcat = "FusedReshapeConcat"
    FusedReshapeConcatGeneral = "FusedReshapeConcatGeneral"
    Softmax = "Softmax"
    PReLU_Dice = "PReLU_Dice"
    ReduceMean = "ReduceMean"
    Sub = "Sub"
    Gather = "Gather"
    Sigmoid = "Sigmoid"
    Slice = "Slice"
    WeightMultiply = "WeightMultiply"
    FmOrder2 = "FmOrder2"
    Add = "Add"
    ReduceSum = "ReduceSum"
    MultiCross = "MultiCross"
    Cast = "Cast"
    SequenceMask = "SequenceMask"
    ElementwiseMultiply = "ElementwiseMultiply"
    DotProduct = "DotProduct"


class GroupLayer_t(Enum):
    """Types of groups of layers."""

    GroupFusedInnerProduct = "GroupFusedInnerProduct"


class Embedding_t(Enum):
    """Types of embeddings. On one machine they are the same: a table of vectors and a lookup in it."""

    DistributedSlotSparseEmbeddingHash = "DistributedSlotSparseEmbeddingHash"
    LocalizedSlotSparseEmbeddingHash = "LocalizedSlotSparseEmbeddingHash"
    LocalizedSlotSparseEmbeddingOneHot = "LocalizedSlotSparseEmbeddingOneHot"
    HybridSparseEmbedding = "HybridSparseEmbedding"


class Optimizer_t(Enum):
    """Rules of optimizers."""

    Ftrl = "Ftrl"
    Adam = "Adam"
    RMSProp = "RMSProp"
    AdaGrad = "AdaGrad"
    MomentumSGD = "MomentumSGD"
    Nesterov = "Nesterov"
    SGD = "SGD"


class Update_t(Enum):
    """The rows of a table that a step changes."""

    Local = "Local"
    Global = "Global"
    LazyGlobal = "LazyGlobal"


class Initializer_t(Enum):
    """Initial values of weights."""

    Default = "Default"
    Uniform = "Uniform"
    XavierNorm = "XavierNorm"
    XavierUniform = "XavierUniform"
    Sinusoidal = "Sinusoidal"
    Zero = "Zero"


class Regularizer_t(Enum):
    """Regularizers of the dense weights."""

    L1 = "L1"
    L2 = "L2"
    Non = "None"


class Activation_t(Enum):
    """What follows a fully connected layer."""

    Relu = "Relu"
    Non = "Non"


class FcPosition_t(Enum):
    """The place of a FusedInnerProduct among others; it has no effect here."""

    Non = "None"
    Head = "Head"
    Body = "Body"
    Tail = "Tail"
    Isolated = "Isolated"


class MetricsType(Enum):
    """Metrics of an evaluation."""

    AUC = "AUC"
    AverageLoss = "AverageLoss"
    HitRate = "HitRate"
    NDCG = "NDCG"
    SMAPE = "SMAPE"


class MetricsRawType(Enum):
    """What metrics are computed from."""

    Loss = "Loss"
    Pred = "Pred"
    Label = "Label"


class Check_t(Enum):
    """Framing of Norm files: a length and a checksum, or nothing."""

    Sum = "Sum"
    Non = "Non"


class DataReaderType_t(Enum):
    """Formats of datasets."""

    Norm = "Norm"
    Raw = "Raw"
    Parquet = "Parquet"
    RawAsync = "RawAsync"


class DataReaderSparse_t(Enum):
    """How GPUs share the keys of a DataReaderSparseParam of 3.0; it has no effect here."""

    Distributed = "Distributed"
    Localized = "Localized"


class Alignment_t(Enum):
    """Padding of dense values; it has no effect here."""

    Auto = "Auto"
    Non = "None"


class AllReduceAlgo(Enum):
    """How GPUs add gradients; it has no effect here."""

    NCCL = "NCCL"
    OneShot = "OneShot"


class DeviceLayout(Enum):
    """The order of GPUs; it has no effect here."""

    LocalFirst = "LocalFirst"
    NodeFirst = "NodeFirst"


class CommunicationStrategy(Enum):
    """How GPUs exchange vectors; it has no effect here."""

    Uniform = "Uniform"
    Hierarchical = "Hierarchical"


class CompressionStrategy(Enum):
    """How vectors are made fewer before they are exchanged; it has no effect here."""

    Reduction = "Reduction"
    Unique = "Unique"


class CommunicationType(Enum):
    """How GPUs of a hybrid embedding are connected; it has no effect here."""

    IB_NVLink_Hier = "IB_NVLink_Hier"
    IB_NVLink = "IB_NVLink"
    NVLink_SingleNode = "NVLink_SingleNode"


class HybridEmbeddingType(Enum):
    """Kind of a hybrid embedding; it has no effect here."""

    Distributed = "Distributed"


class Tensor_t(Enum):
    """Which batch Model.check_out_tensor() looks at: the last one of training, or of evaluation."""

    Train = "Train"
    Evaluate = "Evaluate"


class LrPolicy_t(Enum):
    """Policies of the learning rate."""

    fixed = "fixed"


class FileSystemType_t(Enum):
    """Where files are."""

    Local = "Local"
    HDFS = "HDFS"
    S3 = "S3"
    GCS = "GCS"
    Other = "Other"


DataSourceType_t = FileSystemType_t
"""The name of FileSystemType_t before 23.06."""


class Distribution_t(Enum):
    """The distribution of generated keys."""

    PowerLaw = "PowerLaw"
    Uniform = "Uniform"


class PowerLaw_t(Enum):
    """The exponent of generated keys: 0.9, 1.1, 1.3, or as `alpha` says."""

    Long = "Long"
    Medium = "Medium"
    Short = "Short"
    Specific = "Specific"
