"""Solver and optimizer: what HugeCTR's scripts say about training."""

import secrets
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

from tercel import _C
from tercel.hugectr import _ranks
from tercel.hugectr.arguments import check_choice, given_without_effect
from tercel.hugectr.enums import AllReduceAlgo, DeviceLayout, LrPolicy_t, MetricsType, Optimizer_t, Update_t

__all__ = ["CreateOptimizer", "CreateSolver", "bytes_of_row", "states_of"]


@dataclass(eq=False)
class CreateSolver:
    """
    How a model is trained; names and defaults are HugeCTR's. The batch sizes are those of all GPUs together. What only
    GPUs have is accepted and has no effect; docs/guide/from_hugectr.md lists every argument. Of several processes that
    mpirun starts each is a node of vvgpu, one of its lists.
    """

    model_name: str = ""
    seed: int = 0
    lr_policy: LrPolicy_t = LrPolicy_t.fixed
    lr: float = 0.001
    warmup_steps: int = 1
    decay_start: int = 0
    decay_steps: int = 1
    decay_power: float = 2.0
    end_lr: float = 0.0
    max_eval_batches: int = 100
    batchsize_eval: int = 2048
    batchsize: int = 2048
    vvgpu: List[List[int]] = field(default_factory=lambda: [[0]])
    repeat_dataset: bool = True
    use_mixed_precision: bool = False
    enable_tf32_compute: bool = False
    scaler: float = 1.0
    metrics_spec: Dict[MetricsType, float] = field(default_factory=lambda: {MetricsType.AUC: 1.0})
    i64_input_key: bool = False
    use_algorithm_search: bool = True
    use_cuda_graph: bool = True
    gen_loss_summary: bool = True
    train_intra_iteration_overlap: bool = False
    train_inter_iteration_overlap: bool = False
    eval_intra_iteration_overlap: bool = False
    eval_inter_iteration_overlap: bool = False
    device_layout: DeviceLayout = DeviceLayout.LocalFirst
    use_embedding_collection: bool = False
    all_reduce_algo: AllReduceAlgo = AllReduceAlgo.NCCL
    grouped_all_reduce: bool = False
    num_iterations_statistics: int = 20
    perf_logging: bool = False
    drop_incomplete_batch: bool = True
    kafka_brockers: str = ""
    training_callbacks: List[Any] = field(default_factory=list)
    # Of 23.08 and before.
    async_mlp_wgrad: bool = True
    is_dlrm: bool = False
    overlap_lr: bool = False
    overlap_init_wgrad: bool = False
    overlap_ar_a2a: bool = False
    eval_overlap: bool = False
    use_overlapped_pipeline: bool = False
    use_holistic_cuda_graph: bool = False

    def __post_init__(self) -> None:
        check_choice(self.lr_policy, LrPolicy_t, "CreateSolver: lr_policy")
        for name in ("batchsize", "batchsize_eval", "max_eval_batches"):
            if getattr(self, name) < 1:
                raise _C.ConfigError(f"CreateSolver: {name}: expected at least 1, found {getattr(self, name)}")
        if self.kafka_brockers:
            raise _C.ConfigError("CreateSolver: kafka_brockers: parameters are not published to Kafka here")
        if not isinstance(self.metrics_spec, dict):
            raise TypeError("CreateSolver: metrics_spec: expected a dict from MetricsType to targets")
        for metric in self.metrics_spec:
            check_choice(metric, MetricsType, "CreateSolver: metrics_spec")
        gpus = [gpu for node in self.vvgpu for gpu in node]
        if not gpus:
            raise _C.ConfigError("CreateSolver: vvgpu: expected at least one GPU, found none")
        _ranks.check_nodes(len(self.vvgpu))
        if self.seed == 0:
            self.seed = _ranks.of_first(secrets.randbits(32) | 1)

    def without_effect(self) -> List[str]:
        """The arguments that were given and mean nothing on a CPU."""
        return given_without_effect(self, (
            "vvgpu", "use_mixed_precision", "enable_tf32_compute", "scaler", "use_algorithm_search", "use_cuda_graph",
            "gen_loss_summary", "train_intra_iteration_overlap", "train_inter_iteration_overlap",
            "eval_intra_iteration_overlap", "eval_inter_iteration_overlap", "device_layout", "all_reduce_algo",
            "grouped_all_reduce", "num_iterations_statistics", "perf_logging", "async_mlp_wgrad", "is_dlrm",
            "overlap_lr", "overlap_init_wgrad", "overlap_ar_a2a", "eval_overlap", "use_overlapped_pipeline",
            "use_holistic_cuda_graph"))

    def options(self) -> Dict[str, Any]:
        """The section `solver` of Tercel's configuration."""
        return {"seed": self.seed, "batchsize": self.batchsize, "batchsize_eval": self.batchsize_eval, "lr": self.lr,
                "warmup_steps": self.warmup_steps, "decay_start": self.decay_start,
                # Without a step of decay the rate is end_lr right after decay_start, as with one.
                "decay_steps": max(1, self.decay_steps), "decay_power": self.decay_power, "end_lr": self.end_lr,
                # Of tables that no embedding and no plan places.
                "placement": "replicated"}


_HPARAMS = {Optimizer_t.Adam: ("adam_hparam", ("beta1", "beta2", "epsilon")),
            Optimizer_t.AdaGrad: ("adagrad_hparam", ("initial_accu_value", "epsilon")),
            Optimizer_t.MomentumSGD: ("momentum_sgd_hparam", ("momentum_factor",)),
            Optimizer_t.Nesterov: ("nesterov_hparam", ("momentum_factor",)),
            Optimizer_t.Ftrl: ("ftrl_hparam", ("beta", "lambda1", "lambda2")),
            Optimizer_t.SGD: ("sgd_hparam", ("atomic_update",))}

# Rules that HugeCTR has in the other update types too; of the rest it has Local only.
_WITH_UPDATE_TYPES = (Optimizer_t.Adam, Optimizer_t.MomentumSGD, Optimizer_t.Nesterov, Optimizer_t.AdaGrad,
                      Optimizer_t.SGD)


@dataclass(eq=False)
class CreateOptimizer:
    """A rule and its numbers; names and defaults are HugeCTR's. The learning rate is the solver's."""

    optimizer_type: Optimizer_t = Optimizer_t.Adam
    update_type: Update_t = Update_t.Global
    beta: float = 0.0
    lambda1: float = 0.0
    lambda2: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-7
    initial_accu_value: float = 0.0
    momentum_factor: float = 0.0
    atomic_update: bool = True

    def __post_init__(self) -> None:
        check_choice(self.optimizer_type, Optimizer_t, "CreateOptimizer: optimizer_type")
        check_choice(self.update_type, Update_t, "CreateOptimizer: update_type")

    def to_json(self, update_type: Optional[Update_t] = None) -> Dict[str, Any]:
        """The object `optimizer` of HugeCTR's JSON, with another update type if one is given."""
        out: Dict[str, Any] = {"update_type": (update_type or self.update_type).value,
                               "type": self.optimizer_type.value}
        if self.optimizer_type in _HPARAMS:
            group, names = _HPARAMS[self.optimizer_type]
            out[group] = {name: getattr(self, name) for name in names}
        return out

    def of_rows(self) -> Dict[str, Any]:
        """For a SparseEmbedding: update type Local where HugeCTR has no other for the rule."""
        return self.to_json(None if self.optimizer_type in _WITH_UPDATE_TYPES else Update_t.Local)


# Numbers that optimizers keep for each weight.
_STATES = {"SGD": 0, "AdaGrad": 1, "MomentumSGD": 1, "Nesterov": 1, "Adam": 2, "Ftrl": 2, "RMSProp": 1}


def states_of(optimizer: Dict[str, Any]) -> int:
    """Numbers that an optimizer of HugeCTR's JSON keeps for each weight of a table."""
    return _STATES.get(optimizer.get("type", "Adam"), 0) + (optimizer.get("update_type") == "LazyGlobal")


def bytes_of_row(width: int, optimizer: Dict[str, Any]) -> int:
    """Bytes of a row of a table with the states of its optimizer, as HugeCTR's workspaces count them."""
    return (1 + states_of(optimizer)) * 4 * width
