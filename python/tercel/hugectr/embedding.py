"""Embeddings of HugeCTR's scripts: SparseEmbedding, and collections of tables."""

import math
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from tercel import _C
from tercel.hugectr.arguments import check_choice, name_list, number_list
from tercel.hugectr.enums import (CommunicationStrategy, CommunicationType, CompressionStrategy, Embedding_t,
                                  HybridEmbeddingType, Initializer_t, Update_t)
from tercel.hugectr.solver import CreateOptimizer, bytes_of_row

__all__ = ["EmbeddingCollectionConfig", "EmbeddingTableConfig", "HybridEmbeddingParam", "InitParams", "SparseEmbedding"]


@dataclass(init=False)
class HybridEmbeddingParam:
    """
    How GPUs share the rows of a HybridSparseEmbedding; it has no effect here. Older versions have two further
    arguments, use_train_precompute_indices and use_eval_precompute_indices, before communication_type.
    """

    max_num_frequent_categories: int
    max_num_infrequent_samples: int
    p_dup_max: float
    max_all_reduce_bandwidth: float
    max_all_to_all_bandwidth: float
    efficiency_bandwidth_ratio: float
    communication_type: CommunicationType
    hybrid_embedding_type: HybridEmbeddingType

    def __init__(self, max_num_frequent_categories: int = 1, max_num_infrequent_samples: int = -1,
                 p_dup_max: float = 0.01, max_all_reduce_bandwidth: float = 1.3e11,
                 max_all_to_all_bandwidth: float = 1.9e11, efficiency_bandwidth_ratio: float = 1.0, *types: Any,
                 communication_type: CommunicationType = CommunicationType.IB_NVLink,
                 hybrid_embedding_type: HybridEmbeddingType = HybridEmbeddingType.Distributed,
                 use_train_precompute_indices: bool = False, use_eval_precompute_indices: bool = False) -> None:
        self.max_num_frequent_categories = max_num_frequent_categories
        self.max_num_infrequent_samples = max_num_infrequent_samples
        self.p_dup_max = p_dup_max
        self.max_all_reduce_bandwidth = max_all_reduce_bandwidth
        self.max_all_to_all_bandwidth = max_all_to_all_bandwidth
        self.efficiency_bandwidth_ratio = efficiency_bandwidth_ratio
        if len(types) > 2:
            types = types[2:]
        if len(types) > 2:
            raise TypeError(f"HybridEmbeddingParam: expected at most 10 arguments, found {6 + 2 + len(types)}")
        given = (*types, *(communication_type, hybrid_embedding_type)[len(types):])
        self.communication_type = check_choice(given[0], CommunicationType, "HybridEmbeddingParam: communication_type")
        self.hybrid_embedding_type = check_choice(given[1], HybridEmbeddingType,
                                                  "HybridEmbeddingParam: hybrid_embedding_type")


_COMBINERS_OF_3_0 = {0: "sum", 1: "mean"}


class SparseEmbedding:
    """
    A table of vectors, and the sum or mean of the vectors of each slot's keys: [B, slots, embedding_vec_size]. The
    default optimizer is the model's. `workspace_size_per_gpu_in_mb` bounds the table only where the dataset does not
    say how many keys there are. In 3.0 it was `max_vocabulary_size_per_gpu`, a number of rows, and combiners had
    numbers, 0 for the sum and 1 for the mean; both are possible.
    """

    def __init__(self, embedding_type: Embedding_t, workspace_size_per_gpu_in_mb: int = 0, embedding_vec_size: int = 0,
                 combiner: Union[str, int] = "sum", sparse_embedding_name: str = "", bottom_name: str = "",
                 slot_size_array: Sequence[int] = (), optimizer: Optional[CreateOptimizer] = None,
                 hybrid_embedding_param: Optional[HybridEmbeddingParam] = None, *,
                 max_vocabulary_size_per_gpu: int = 0) -> None:
        self.embedding_type = check_choice(embedding_type, Embedding_t, "SparseEmbedding: embedding_type")
        self.name, self.bottom_name = sparse_embedding_name, bottom_name
        if not self.name or not bottom_name:
            raise _C.ConfigError("SparseEmbedding: expected a sparse_embedding_name and a bottom_name")
        where = f"SparseEmbedding {self.name!r}"
        if int(embedding_vec_size) < 1:
            raise _C.ConfigError(f"{where}: embedding_vec_size: expected at least 1, found {embedding_vec_size}")
        if isinstance(combiner, int):
            combiner = _COMBINERS_OF_3_0.get(combiner, str(combiner))
        if combiner not in ("sum", "mean"):
            raise _C.ConfigError(f"{where}: combiner: expected 'sum' or 'mean', found {combiner!r}")
        if optimizer is not None and not isinstance(optimizer, CreateOptimizer):
            raise TypeError(f"{where}: optimizer: expected what CreateOptimizer() gives, not {optimizer!r}")
        for name, number in (("workspace_size_per_gpu_in_mb", workspace_size_per_gpu_in_mb),
                             ("max_vocabulary_size_per_gpu", max_vocabulary_size_per_gpu)):
            if int(number) < 0:
                raise _C.ConfigError(f"{where}: {name}: expected at least 0, found {number}")
        self.workspace_size_per_gpu_in_mb = int(workspace_size_per_gpu_in_mb)
        self.max_vocabulary_size_per_gpu = int(max_vocabulary_size_per_gpu)
        self.embedding_vec_size, self.combiner = int(embedding_vec_size), combiner
        self.slot_size_array = number_list(list(slot_size_array), f"{where}: slot_size_array")
        self.optimizer, self.hybrid_embedding_param = optimizer, hybrid_embedding_param

    def without_effect(self) -> List[str]:
        """The arguments that were given and mean nothing on a CPU."""
        return [] if self.hybrid_embedding_param is None else ["hybrid_embedding_param"]

    def to_json(self, model_optimizer: CreateOptimizer) -> Dict[str, Any]:
        """The embedding in HugeCTR's JSON."""
        optimizer = (self.optimizer or model_optimizer).of_rows()
        workspace = self.workspace_size_per_gpu_in_mb
        if self.max_vocabulary_size_per_gpu:
            row = bytes_of_row(self.embedding_vec_size, optimizer)
            workspace = max(workspace, -(-self.max_vocabulary_size_per_gpu * row // (1 << 20)))
        hparam: Dict[str, Any] = {"workspace_size_per_gpu_in_mb": workspace,
                                  "embedding_vec_size": self.embedding_vec_size, "combiner": self.combiner}
        if self.slot_size_array:
            hparam["slot_size_array"] = self.slot_size_array
        return {"type": self.embedding_type.value, "bottom": self.bottom_name, "top": self.name,
                "sparse_embedding_hparam": hparam, "optimizer": optimizer}


@dataclass
class InitParams:
    """Initial values of a table: uniform in +- `up_bound`. By default the bound is sqrt(1 / max_vocabulary_size)."""

    initializer_type: Initializer_t = Initializer_t.Default
    up_bound: float = 0.0

    def __post_init__(self) -> None:
        check_choice(self.initializer_type, Initializer_t, "InitParams: initializer_type")
        if self.initializer_type not in (Initializer_t.Default, Initializer_t.Uniform):
            raise _C.ConfigError("InitParams: initializer_type: tables begin with uniform values (Default, Uniform), "
                                 f"not {self.initializer_type.name}")
        if self.initializer_type is Initializer_t.Uniform and not self.up_bound > 0:
            raise _C.ConfigError(f"InitParams: up_bound: expected a number above 0, found {self.up_bound}")


class EmbeddingTableConfig:
    """
    A table of a collection: its name, number of keys (-1: any keys, the table grows) and width. Its keys begin at 0.
    An optimizer and initial values of its own, which HugeCTR cannot take from Python, are possible.
    """

    def __init__(self, name: str, max_vocabulary_size: int, ev_size: int,
                 opt_params_or_empty: Optional[CreateOptimizer] = None,
                 init_param_or_empty: Optional[InitParams] = None, *, opt_params: Optional[CreateOptimizer] = None,
                 init_param: Optional[InitParams] = None) -> None:
        self.name, self.max_vocabulary_size, self.ev_size = str(name), int(max_vocabulary_size), int(ev_size)
        self.optimizer = opt_params_or_empty if opt_params is None else opt_params
        self.init = (init_param_or_empty if init_param is None else init_param) or InitParams()
        if not self.name:
            raise _C.ConfigError("EmbeddingTableConfig: expected a name")
        if self.max_vocabulary_size < 1 and self.max_vocabulary_size != -1:
            raise _C.ConfigError(f"EmbeddingTableConfig {name!r}: max_vocabulary_size: expected at least 1, or -1 for "
                                 f"a table that grows, found {max_vocabulary_size}")
        if self.ev_size < 1:
            raise _C.ConfigError(f"EmbeddingTableConfig {name!r}: ev_size: expected at least 1, found {ev_size}")

    def to_json(self, model_optimizer: CreateOptimizer) -> Dict[str, Any]:
        """Its options, as the first lookup of a table has them."""
        hparam: Dict[str, Any] = {"embedding_vec_size": self.ev_size,
                                  "max_vocabulary_size_global": self.max_vocabulary_size}
        if self.init.initializer_type is Initializer_t.Uniform:
            hparam["init_range"] = self.init.up_bound
        elif self.max_vocabulary_size > 0:
            hparam["init_range"] = math.sqrt(1 / self.max_vocabulary_size)
        # Tables of collections have only one update type in HugeCTR, whatever the optimizer says.
        return {"sparse_embedding_hparam": hparam,
                "optimizer": (self.optimizer or model_optimizer).to_json(Update_t.Local)}


@dataclass
class Lookup:
    """A lookup of a collection: inputs, each read from a table, and the tensor that they make together."""

    tables: List[EmbeddingTableConfig]
    bottoms: List[str]
    top: str
    combiners: List[str]
    joined: bool
    """Whether it was given as lists: its output is [B, sum of the widths], else [B, 1, width]."""


_COMBINERS = ("sum", "average", "mean", "concat")


def _planned(kind: str, table: Any) -> str:
    """The name of a table in a list of shard_strategy, which may have a number of parts by columns."""
    if not isinstance(table, (list, tuple)):
        return str(table)
    where = f"shard: shard_strategy: {table!r}: "
    if len(table) != 2 or isinstance(table[1], bool) or not isinstance(table[1], int) or table[1] < 1:
        raise _C.ConfigError(f"{where}expected the name of a table and a number of parts by columns, at least 1")
    if kind != "mp" and table[1] > 1:
        raise _C.ConfigError(f"{where}tables of {kind!r} have no parts by columns; expected its name")
    return str(table[0])


@dataclass(eq=False)
class EmbeddingCollectionConfig:
    """
    Tables and lookups in them. `use_exclusive_keys` and `comm_strategy` are accepted and have no effect. A plan of how
    tables are distributed to GPUs, shard(), places them on the processes that mpirun starts; one process has all.
    """

    use_exclusive_keys: bool = False
    comm_strategy: CommunicationStrategy = CommunicationStrategy.Uniform
    lookups: List[Lookup] = field(default_factory=list, init=False)
    shard_matrix: List[List[str]] = field(default_factory=list, init=False)
    shard_strategy: List[Tuple[str, List[Any]]] = field(default_factory=list, init=False)
    compression_strategy: Dict[CompressionStrategy, List[str]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        check_choice(self.comm_strategy, CommunicationStrategy, "EmbeddingCollectionConfig: comm_strategy")

    def without_effect(self) -> List[str]:
        """The arguments that were given and mean nothing on a CPU."""
        return [name for name, given in (("use_exclusive_keys", self.use_exclusive_keys),
                                         ("comm_strategy", self.comm_strategy is not CommunicationStrategy.Uniform))
                if given]

    @property
    def tables(self) -> List[EmbeddingTableConfig]:
        """The tables, in the order of their first lookups."""
        found: Dict[str, EmbeddingTableConfig] = {}
        for lookup in self.lookups:
            for table in lookup.tables:
                found.setdefault(table.name, table)
        return list(found.values())

    def embedding_lookup(self, table_config: Union[EmbeddingTableConfig, Sequence[EmbeddingTableConfig]],
                         bottom_name: Union[str, Sequence[str]], top_name: str,
                         combiner: Union[str, Sequence[str]]) -> None:
        """
        Adds a lookup: one input of a table, which makes [B, 1, ev_size] (combiner "concat": [B, 1, keys * ev_size]), or
        lists of them, whose vectors are side by side in [B, sum of the widths]. Combiners are "sum", "average" (also
        "mean") and "concat".
        """
        joined = isinstance(table_config, (list, tuple))
        tables: List[Any] = list(table_config) if isinstance(table_config, (list, tuple)) else [table_config]
        if not all(isinstance(table, EmbeddingTableConfig) for table in tables):
            raise TypeError("embedding_lookup: table_config: expected an EmbeddingTableConfig or a list of them")
        bottoms = name_list(bottom_name, "embedding_lookup: bottom_name")
        combiners = name_list(combiner, "embedding_lookup: combiner")
        if not tables or len(bottoms) != len(tables) or len(combiners) != len(tables):
            raise _C.ConfigError(f"embedding_lookup {top_name!r}: expected as many names in bottom_name and combiner "
                                 f"as tables, {len(tables)}, found {len(bottoms)} and {len(combiners)}")
        for name in combiners:
            if name not in _COMBINERS:
                raise _C.ConfigError(f"embedding_lookup {top_name!r}: combiner: expected one of "
                                     f"{', '.join(_COMBINERS)}, found {name!r}")
        known = {table.name: table for table in self.tables}
        for table in tables:
            first = known.setdefault(table.name, table)
            if (first.max_vocabulary_size, first.ev_size) != (table.max_vocabulary_size, table.ev_size):
                raise _C.ConfigError(f"embedding_lookup {top_name!r}: there is another table {table.name!r} with "
                                     f"{first.max_vocabulary_size} keys of width {first.ev_size}")
        self.lookups.append(Lookup(tables, bottoms, str(top_name), combiners, joined))

    def shard(self, shard_matrix: Sequence[Sequence[str]], shard_strategy: Sequence[Tuple[str, Sequence[Any]]],
              compression_strategy: Optional[Dict[CompressionStrategy, Sequence[str]]] = None) -> None:
        """
        Says which GPU has which tables: `shard_matrix` has a list of their names for each GPU of vvgpu, over all its
        nodes, and `shard_strategy` pairs of "mp" or "dp" and a list of tables. Of several processes that mpirun starts,
        each a node, every one has the tables of "dp". Those of "mp" are on the processes of the GPUs that list them: the
        process of a row is the remainder of its key by their number. One process has all tables.

        Of "mp", ("name", k) means tables that are divided by columns into k parts. They are divided by rows instead,
        over the same processes: each needs the same memory, keys and vectors travel once and not k times, and
        optimizers with one state for a row compute what they do in one process. `compression_strategy` has no effect:
        each key of a process travels once, and vectors are combined where they are needed.

        ConfigError for a plan that names a table that there is not, leaves one out or has one twice, and for columns of
        "dp"; TypeError for other than lists.
        """
        known = [table.name for table in self.tables]
        if not isinstance(shard_matrix, (list, tuple)):
            raise TypeError(f"shard: shard_matrix: expected a list of lists of names, not {shard_matrix!r}")
        if not isinstance(shard_strategy, (list, tuple)) or not all(
                isinstance(part, (list, tuple)) and len(part) == 2 and isinstance(part[1], (list, tuple))
                for part in shard_strategy):
            raise TypeError(f"shard: shard_strategy: expected a list of pairs, of 'mp' or 'dp' and a list of tables, not "
                            f"{shard_strategy!r}")
        self.shard_matrix = [name_list(names, "shard: shard_matrix") for names in shard_matrix]
        for gpu, names in enumerate(self.shard_matrix):
            for name in names:
                if names.count(name) > 1:
                    raise _C.ConfigError(f"shard: shard_matrix: the table {name!r} is there twice for GPU {gpu}")
        placed = [name for names in self.shard_matrix for name in names]
        planned = []
        self.shard_strategy = []
        for kind, names in shard_strategy:
            if kind not in ("mp", "dp"):
                raise _C.ConfigError(f"shard: shard_strategy: expected 'mp' or 'dp', found {kind!r}")
            planned += [_planned(kind, name) for name in names]
            self.shard_strategy.append((kind, list(names)))
        for what, names in (("shard_matrix", placed), ("shard_strategy", planned)):
            for name in names:
                if name not in known:
                    raise _C.ConfigError(f"shard: {what}: there is no table {name!r}; known: {', '.join(known)}")
            for name in known:
                if name not in names:
                    raise _C.ConfigError(f"shard: {what}: the table {name!r} is missing")
        for name in known:
            if planned.count(name) > 1:
                raise _C.ConfigError(f"shard: shard_strategy: the table {name!r} is there twice")
        for strategy, names in (compression_strategy or {}).items():
            check_choice(strategy, CompressionStrategy, "shard: compression_strategy")
            for name in names:
                if name not in known:
                    raise _C.ConfigError(f"shard: compression_strategy: there is no table {name!r}; known: "
                                         f"{', '.join(known)}")
            self.compression_strategy[strategy] = list(names)

    def placements(self, vvgpu: Sequence[Sequence[int]]) -> List[Dict[str, Any]]:
        """
        What the plan means for processes that are nodes of vvgpu, as solver.table_placements has it; nothing without a
        plan. ConfigError unless shard_matrix has a list for each GPU.
        """
        if not self.shard_matrix:
            return []
        nodes = [node for node, gpus in enumerate(vvgpu) for _ in gpus]
        if len(nodes) != len(self.shard_matrix):
            raise _C.ConfigError(f"shard: shard_matrix: expected {len(nodes)} lists, one for each GPU of vvgpu, found "
                                 f"{len(self.shard_matrix)}")
        out: List[Dict[str, Any]] = []
        for kind, names in self.shard_strategy:
            for name in (_planned(kind, name) for name in names):
                if kind == "dp":
                    out.append({"table": name, "placement": "replicated"})
                    continue
                having = [node for node, tables in zip(nodes, self.shard_matrix) if name in tables]
                out.append({"table": name, "placement": "distributed", "ranks": list(dict.fromkeys(having))})
        return out

    def to_json(self, model_optimizer: CreateOptimizer) -> List[Dict[str, Any]]:
        """The lookups as layers of Tercel's graph. HugeCTR's JSON has none for collections."""
        out: List[Dict[str, Any]] = []
        described = set()
        for lookup in self.lookups:
            parts = []
            for i, (table, bottom, combiner) in enumerate(zip(lookup.tables, lookup.bottoms, lookup.combiners)):
                top = f"{lookup.top}/{i}" if lookup.joined else lookup.top
                layer: Dict[str, Any] = {"type": "EmbeddingLookup", "bottom": bottom, "top": top, "table": table.name,
                                         "combiner": combiner}
                if table.name not in described:
                    layer.update(table.to_json(model_optimizer))
                    described.add(table.name)
                out.append(layer)
                if lookup.joined:
                    flat = f"{top}/flat" if len(lookup.tables) > 1 else lookup.top
                    out.append({"type": "Reshape", "bottom": top, "top": flat})
                    parts.append(flat)
            if len(parts) > 1:
                out.append({"type": "Concat", "bottom": parts, "top": lookup.top})
        return out
