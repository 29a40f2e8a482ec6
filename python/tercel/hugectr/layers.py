"""Dense layers of HugeCTR's scripts."""

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Sequence, Tuple, Union

from tercel import _C
from tercel.hugectr.arguments import check_choice, given_without_effect, name_list
from tercel.hugectr.enums import (Activation_t, FcPosition_t, GroupLayer_t, Initializer_t, Layer_t, Regularizer_t)

__all__ = ["DenseLayer", "DenseLayerComputeConfig", "DenseLayerSwitchs", "GroupDenseLayer"]

LOSSES = (Layer_t.BinaryCrossEntropyLoss, Layer_t.CrossEntropyLoss, Layer_t.MultiCrossEntropyLoss)


@dataclass
class DenseLayerComputeConfig:
    """How a GPU computes a layer; it has no effect here."""

    async_wgrad: bool = False
    fuse_wb: bool = False


@dataclass
class DenseLayerSwitchs:
    """What DenseLayerComputeConfig is in older versions, with HugeCTR's spelling; it has no effect here."""

    fuse_wb: bool = False


@dataclass(eq=False)
class DenseLayer:
    """
    A layer of a model: its type, the tensors that it reads and makes, and the arguments of all types, of which it uses
    its own. Names and defaults are HugeCTR's.
    """

    layer_type: Layer_t
    bottom_names: Union[str, Sequence[str]]
    top_names: Union[str, Sequence[str]]
    factor: float = 1.0
    eps: float = 1e-5
    gamma_init_type: Initializer_t = Initializer_t.Default
    beta_init_type: Initializer_t = Initializer_t.Default
    dropout_rate: float = 0.5
    elu_alpha: float = 1.0
    num_output: int = 1
    weight_init_type: Initializer_t = Initializer_t.Default
    bias_init_type: Initializer_t = Initializer_t.Default
    num_layers: int = 0
    leading_dim: int = 0
    time_step: int = 0
    batchsize: int = 1
    SeqLength: int = 1
    vector_size: int = 1
    selected: bool = False
    selected_slots: List[int] = field(default_factory=list)
    ranges: List[Tuple[int, int]] = field(default_factory=list)
    indices: List[int] = field(default_factory=list)
    weight_dims: List[int] = field(default_factory=list)
    projection_dim: int = 0
    out_dim: int = 0
    axis: int = 1
    max_sequence_len_from: int = 1
    max_sequence_len_to: int = 1
    num_attention_heads: int = 1
    transpose_b: bool = False
    target_weight_vec: List[float] = field(default_factory=list)
    use_regularizer: bool = False
    regularizer_type: Regularizer_t = Regularizer_t.L1
    # `lambda` is a word of Python: scripts give it as **{"lambda": 0.1}, or by this name.
    lambda_: float = 0.0
    pos_type: FcPosition_t = FcPosition_t.Non
    act_type: Activation_t = Activation_t.Relu
    num_outputs: List[int] = field(default_factory=list)
    use_bias: bool = True
    activations: List[Activation_t] = field(default_factory=list)
    biases: List[bool] = field(default_factory=list)
    compute_config: DenseLayerComputeConfig = field(default_factory=DenseLayerComputeConfig)
    shape: List[int] = field(default_factory=list)
    dim: int = 0
    index: List[int] = field(default_factory=list)
    # Of older versions.
    dense_layer_switches: DenseLayerSwitchs = field(default_factory=DenseLayerSwitchs)

    def __post_init__(self) -> None:
        check_choice(self.layer_type, Layer_t, "DenseLayer: layer_type")
        where = f"DenseLayer {self.layer_type.name}"
        self.bottom_names = name_list(self.bottom_names, f"{where}: bottom_names")
        self.top_names = name_list(self.top_names, f"{where}: top_names")
        if not self.bottom_names or not self.top_names:
            raise _C.ConfigError(f"{where}: expected names of tensors in bottom_names and top_names")
        for name, kind in (("act_type", Activation_t), ("pos_type", FcPosition_t), ("regularizer_type", Regularizer_t),
                           ("weight_init_type", Initializer_t), ("bias_init_type", Initializer_t),
                           ("gamma_init_type", Initializer_t), ("beta_init_type", Initializer_t)):
            check_choice(getattr(self, name), kind, f"{where}: {name}")

    def without_effect(self) -> List[str]:
        """The arguments that were given and mean nothing on a CPU."""
        return given_without_effect(self, ("pos_type", "compute_config", "dense_layer_switches"))

    def to_json(self) -> Dict[str, Any]:
        """The layer in HugeCTR's JSON."""
        out: Dict[str, Any] = {"type": self.layer_type.value, "bottom": one_or_list(self.bottom_names),
                               "top": one_or_list(self.top_names)}
        write = _WRITERS.get(self.layer_type)
        if write is not None:
            out.update(write(self))
        return out


# `lambda` as a keyword argument, as HugeCTR has it.
_init = DenseLayer.__init__


def _init_with_lambda(self: DenseLayer, *args: Any, **kwargs: Any) -> None:
    if "lambda" in kwargs:
        kwargs["lambda_"] = kwargs.pop("lambda")
    _init(self, *args, **kwargs)


_init_with_lambda.__wrapped__ = _init  # type: ignore[attr-defined]
DenseLayer.__init__ = _init_with_lambda  # type: ignore[method-assign]


def one_or_list(names: Any) -> Any:
    """HugeCTR writes a list of one name as that name."""
    return names[0] if len(names) == 1 else list(names)


def _initial(options: Dict[str, Any], **initializers: Initializer_t) -> Dict[str, Any]:
    """The options with the initializers that are not the default."""
    options.update({name: of.value for name, of in initializers.items() if of is not Initializer_t.Default})
    return options


def _whole(number: float) -> Union[int, float]:
    """2.0 as 2: factors that count things are floats in HugeCTR's interface."""
    return int(number) if float(number).is_integer() else number


def _inner_product(of: DenseLayer) -> Dict[str, Any]:
    return {"fc_param": _initial({"num_output": of.num_output}, weight_init=of.weight_init_type,
                                 bias_init=of.bias_init_type)}


def _fused_inner_product(of: DenseLayer) -> Dict[str, Any]:
    return {"position": of.pos_type.value, "activation": of.act_type.value, **_inner_product(of)}


def _mlp(of: DenseLayer) -> Dict[str, Any]:
    options: Dict[str, Any] = {"num_outputs": list(of.num_outputs)} if of.num_outputs else {"num_output": of.num_output}
    options.update({"biases": list(of.biases)} if of.biases else {"use_bias": of.use_bias})
    options.update({"activations": [act.value for act in of.activations]} if of.activations
                   else {"activation": of.act_type.value})
    return {"mlp_param": _initial(options, weight_init=of.weight_init_type, bias_init=of.bias_init_type)}


def _multi_cross(of: DenseLayer) -> Dict[str, Any]:
    options = {"num_layers": of.num_layers, **({"projection_dim": of.projection_dim} if of.projection_dim else {})}
    return {"mc_param": _initial(options, weight_init=of.weight_init_type, bias_init=of.bias_init_type)}


def _batch_norm(of: DenseLayer) -> Dict[str, Any]:
    return {"bn_param": _initial({"factor": of.factor, "eps": of.eps}, gamma_init=of.gamma_init_type,
                                 beta_init=of.beta_init_type)}


def _layer_norm(of: DenseLayer) -> Dict[str, Any]:
    return {"ln_param": _initial({"eps": of.eps}, gamma_init=of.gamma_init_type, beta_init=of.beta_init_type)}


def _reshape(of: DenseLayer) -> Dict[str, Any]:
    if of.shape:
        return {"shape": list(of.shape)}
    if of.selected:
        return {"selected": list(of.selected_slots)}
    return {"leading_dim": of.leading_dim, **({"time_step": of.time_step} if of.time_step else {})}


def _gru(of: DenseLayer) -> Dict[str, Any]:
    options = {"num_output": of.num_output, "batchsize": of.batchsize, "SeqLength": of.SeqLength,
               "vector_size": of.vector_size}
    return {"gru_param": _initial(options, weight_init=of.weight_init_type, bias_init=of.bias_init_type)}


def _loss(of: DenseLayer) -> Dict[str, Any]:
    out: Dict[str, Any] = {}
    if of.layer_type is Layer_t.MultiCrossEntropyLoss and of.target_weight_vec:
        out["target_weight"] = list(of.target_weight_vec)
    if of.use_regularizer:
        out.update({"regularizer": of.regularizer_type.value, "lambda": of.lambda_})
    return out


_WRITERS: Dict[Layer_t, Callable[[DenseLayer], Dict[str, Any]]] = {
    Layer_t.InnerProduct: _inner_product,
    Layer_t.FusedInnerProduct: _fused_inner_product,
    Layer_t.MLP: _mlp,
    Layer_t.MultiCross: _multi_cross,
    Layer_t.BatchNorm: _batch_norm,
    Layer_t.LayerNorm: _layer_norm,
    Layer_t.Reshape: _reshape,
    Layer_t.GRU: _gru,
    Layer_t.Dropout: lambda of: {"rate": of.dropout_rate},
    Layer_t.ELU: lambda of: {"elu_param": {"alpha": of.elu_alpha}},
    Layer_t.PReLU_Dice: lambda of: {"prelu_dice_param": {"alpha": of.elu_alpha, "eps": of.eps}},
    Layer_t.Scale: lambda of: {"scale_param": {"axis": of.axis, "factor": _whole(of.factor)}},
    Layer_t.Softmax: lambda of: {} if of.factor == 1.0 else {"factor": of.factor},
    Layer_t.Concat: lambda of: {"axis": of.axis},
    Layer_t.ReduceSum: lambda of: {"axis": of.axis},
    Layer_t.ReduceMean: lambda of: {"axis": of.axis},
    Layer_t.Slice: lambda of: {"ranges": [list(part) for part in of.ranges]},
    Layer_t.WeightMultiply: lambda of: _initial({"weight_dims": list(of.weight_dims)},
                                                weight_init=of.weight_init_type),
    Layer_t.FmOrder2: lambda of: {"out_dim": of.out_dim},
    Layer_t.Gather: lambda of: {"indices": list(of.indices)},
    Layer_t.Select: lambda of: {"dim": of.dim, "index": list(of.index)},
    Layer_t.SequenceMask: lambda of: {"max_sequence_len_from": of.max_sequence_len_from,
                                      "max_sequence_len_to": of.max_sequence_len_to},
    Layer_t.MultiHeadAttention: lambda of: {"num_attention_heads": of.num_attention_heads,
                                            "transpose_b": of.transpose_b},
    **{loss: _loss for loss in LOSSES},
}


class GroupDenseLayer:
    """
    Several fully connected layers, one after the other, each with ReLU and the last one with `last_act_type`; each
    makes the tensor of its name. HugeCTR has it before 23.06; MLP is its successor.
    """

    def __init__(self, group_layer_type: GroupLayer_t, bottom_name: str = "", top_name_list: Sequence[str] = (),
                 num_outputs: Sequence[int] = (), last_act_type: Activation_t = Activation_t.Relu, *,
                 bottom_name_list: Sequence[str] = ()) -> None:
        check_choice(group_layer_type, GroupLayer_t, "GroupDenseLayer: group_layer_type")
        check_choice(last_act_type, Activation_t, "GroupDenseLayer: last_act_type")
        bottoms = name_list(bottom_name or list(bottom_name_list), "GroupDenseLayer: bottom_name")
        tops = name_list(list(top_name_list), "GroupDenseLayer: top_name_list")
        if len(bottoms) < 1 or not tops or len(tops) != len(num_outputs):
            raise _C.ConfigError("GroupDenseLayer: expected a bottom_name, and as many names in top_name_list as "
                                 f"widths in num_outputs, found {len(bottoms)}, {len(tops)} and {len(num_outputs)}")
        names = [bottoms[0], *tops]
        self.layers = [
            DenseLayer(Layer_t.MLP, [names[i]], [names[i + 1]], num_output=width,
                       act_type=last_act_type if i + 1 == len(tops) else Activation_t.Relu)
            for i, width in enumerate(num_outputs)]
