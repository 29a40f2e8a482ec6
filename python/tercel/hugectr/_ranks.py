"""
The processes of a script that mpirun starts several times: the ranks, of which each trains its part of every batch. All
make the same calls; rank 0 prints, and writes files.
"""

from typing import Any, Callable, Dict, Optional

from tercel import _C
from tercel import distributed as dist
from tercel._C import Tensor
from tercel.distributed._collectives import gather_counts, gather_rows
from tercel.distributed._group import end_job, group_of

__all__ = ["abort", "check_nodes", "group", "is_first", "of_first", "once", "part", "rows_of_all"]


def group() -> Optional[Any]:
    """The C++ group of several processes, None of one; made when it is first asked for."""
    if not dist.is_initialized() and _C._is_started_by_mpi():
        dist.init_process_group()
    return group_of(None) if dist.is_initialized() and dist.get_world_size() > 1 else None


def check_nodes(nodes: int) -> None:
    """ConfigError unless each of several processes is a node of vvgpu. One process does the work of all nodes."""
    of = group()
    if of is not None and of.size() != nodes:
        raise _C.ConfigError(f"CreateSolver: vvgpu: expected {of.size()} lists, one for each process that mpirun started, "
                             f"found {nodes}: start {nodes}, or give each process a list of its GPUs")


def is_first() -> bool:
    """Whether this process prints and writes."""
    return not dist.is_initialized() or dist.get_rank() == 0


def part() -> Dict[str, int]:
    """The options of a reader: its part of each batch."""
    of = group()
    return {} if of is None else {"rank": of.rank(), "ranks": of.size()}


def of_first(thing: Any) -> Any:
    """What rank 0 gives, on all ranks."""
    if group() is None:
        return thing
    things = [thing]
    dist.broadcast_object_list(things, 0)
    return things[0]


def once(work: Callable[[], Any]) -> None:
    """Rank 0 does it while the others wait; its exception is raised on all ranks."""
    if group() is None:
        work()
        return
    error: Optional[Exception] = None
    if is_first():
        try:
            work()
        except Exception as raised:  # noqa: B902: the others must hear of it
            error = raised
    said = of_first(None if error is None else f"rank 0: {error}")
    if error is not None:
        raise error
    if said is not None:
        raise RuntimeError(said)


def abort(code: int) -> None:
    """Ends all processes."""
    end_job(group_of(None), code)


def rows_of_all(rows: Tensor) -> Tensor:
    """The rows of a whole batch, of whose part this process has some."""
    of = group()
    return rows if of is None else gather_rows(of, rows, gather_counts(of, rows.shape[0]))
