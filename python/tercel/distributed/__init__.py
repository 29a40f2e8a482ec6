"""
PyTorch's distributed package: the processes that mpirun or srun starts together, the ranks of a job, and what they do
together. All ranks make the same calls in the same order, with tensors of the CPU. docs/guide/python_distributed.md is its
guide.
"""

from tercel.distributed._collectives import (ReduceOp, Work, all_gather, all_gather_into_tensor, all_reduce, all_to_all,
                                             all_to_all_single, barrier, broadcast, gather, monitored_barrier, reduce,
                                             reduce_scatter, reduce_scatter_tensor, scatter)
from tercel.distributed._group import (Backend, DistBackendError, DistError, GroupMember, ProcessGroup,
                                       destroy_process_group, get_backend, get_global_rank, get_group_rank,
                                       get_node_local_rank, get_process_group_ranks, get_rank, get_world_size, group,
                                       init_process_group, is_available, is_backend_available, is_gloo_available,
                                       is_initialized, is_mpi_available, is_nccl_available, is_torchelastic_launched,
                                       is_ucc_available, is_xccl_available)
from tercel.distributed._missing import irecv, isend, new_group, new_subgroups, recv, send
from tercel.distributed._objects import all_gather_object, broadcast_object_list, gather_object, scatter_object_list

__all__ = ["Backend", "DistBackendError", "DistError", "GroupMember", "ProcessGroup", "ReduceOp", "Work", "all_gather",
           "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all", "all_to_all_single", "barrier",
           "broadcast", "broadcast_object_list", "destroy_process_group", "gather", "gather_object", "get_backend",
           "get_global_rank", "get_group_rank", "get_node_local_rank", "get_process_group_ranks", "get_rank",
           "get_world_size", "group", "init_process_group", "irecv", "is_available", "is_backend_available",
           "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available", "is_torchelastic_launched",
           "is_ucc_available", "is_xccl_available", "isend", "monitored_barrier", "new_group", "new_subgroups", "recv",
           "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter", "scatter_object_list", "send"]
