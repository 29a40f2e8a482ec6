"""Collectives of Python objects, which are sent as pickles: from processes of one job, which trust each other."""

import pickle
from typing import Any, List, Optional, Sequence

from tercel import _C
from tercel._C import Tensor
from tercel.distributed._collectives import gather_counts, gather_rows, scatter
from tercel.distributed._group import ProcessGroup, group_of, rank_of


def _packed(thing: Any) -> Tensor:
    return _C.frombuffer(bytearray(pickle.dumps(thing)), dtype=_C.uint8)


def _unpacked(values: Tensor) -> Any:
    return pickle.loads(bytes(values.numpy()))


def all_gather_object(object_list: List[Any], obj: Any, group: Optional[ProcessGroup] = None) -> None:
    """Gives object_list[r] the object of rank r, for all ranks."""
    of = group_of(group)
    if len(object_list) != of.size():
        raise ValueError(f"object_list: expected {of.size()} entries, one for each rank, found {len(object_list)}")
    packed = _packed(obj)
    counts = gather_counts(of, packed.numel())
    for rank, values in enumerate(gather_rows(of, packed, counts).split(counts)):
        object_list[rank] = _unpacked(values)


def gather_object(obj: Any, object_gather_list: Optional[List[Any]] = None, dst: Optional[int] = None,
                  group: Optional[ProcessGroup] = None, group_dst: Optional[int] = None) -> None:
    """Gives object_gather_list[r] of rank dst (0) the object of rank r; the others give no list."""
    of = group_of(group)
    root, size = rank_of(of, dst, group_dst, "dst", 0), of.size()
    if of.rank() != root and object_gather_list:
        raise ValueError("Argument ``object_gather_list`` must NOT be specified on non-destination ranks.")
    if of.rank() == root and (object_gather_list is None or len(object_gather_list) != size):
        raise ValueError(f"object_gather_list: expected {size} entries, one for each rank, on the destination rank")
    packed = _packed(obj)
    sizes = gather_counts(of, packed.numel())
    sent = [packed.numel() if rank == root else 0 for rank in range(size)]
    received = sizes if of.rank() == root else [0] * size
    out = _C.empty(sum(received), dtype=_C.uint8)
    of.all_to_all(out, packed, received, sent).wait(None)
    if of.rank() == root and object_gather_list is not None:
        for rank, values in enumerate(out.split(received)):
            object_gather_list[rank] = _unpacked(values)


def broadcast_object_list(object_list: List[Any], src: Optional[int] = None, group: Optional[ProcessGroup] = None,
                          device: Any = None, group_src: Optional[int] = None) -> None:
    """Gives the list the objects of rank src's (0), which has the same length."""
    of = group_of(group)
    root = rank_of(of, src, group_src, "src", 0)
    if not isinstance(object_list, list) or not object_list:
        raise ValueError("object_list: expected a list with at least one entry")
    packed = [_packed(thing) for thing in object_list] if of.rank() == root else []
    sizes = _C.tensor([values.numel() for values in packed] or [0] * len(object_list), dtype=_C.int64)
    of.broadcast(sizes, root).wait(None)
    values = _C.cat(packed) if packed else _C.empty(int(sizes.sum()), dtype=_C.uint8)
    of.broadcast(values, root).wait(None)
    if of.rank() != root:
        object_list[:] = [_unpacked(part) for part in values.split(sizes.tolist())]


def scatter_object_list(scatter_object_output_list: List[Any], scatter_object_input_list: Optional[Sequence[Any]] = None,
                        src: Optional[int] = None, group: Optional[ProcessGroup] = None,
                        group_src: Optional[int] = None) -> None:
    """Gives the first entry of rank r's output list the object scatter_object_input_list[r] of rank src (0)."""
    of = group_of(group)
    root, size = rank_of(of, src, group_src, "src", 0), of.size()
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    packed: List[Tensor] = []
    if of.rank() == root:
        if scatter_object_input_list is None or len(scatter_object_input_list) != size:
            raise ValueError(f"scatter_object_input_list: expected {size} entries, one for each rank, on the source rank")
        packed = [_packed(thing) for thing in scatter_object_input_list]
    own = _C.empty(1, dtype=_C.int64)
    scatter(own, [_C.tensor([values.numel()]) for values in packed], root)
    values = _C.empty(int(own), dtype=_C.uint8)
    scatter(values, packed, root)
    scatter_object_output_list[0] = _unpacked(values)
