"""A module `mpi4py` for scripts that import it where it is not installed: the processes that mpirun started."""

import functools
import sys
import time
from types import ModuleType
from typing import Any, Callable, Dict, List, Optional

import numpy as np

from tercel import distributed as dist
from tercel.hugectr import _ranks


class _Communicator:
    """The communicator of all ranks, or of this one alone."""

    def __init__(self, is_alone: bool) -> None:
        self._is_alone = is_alone

    def Get_rank(self) -> int:
        of = self._group()
        return 0 if of is None else int(of.rank())

    def Get_size(self) -> int:
        of = self._group()
        return 1 if of is None else int(of.size())

    rank, size = property(Get_rank), property(Get_size)

    def _group(self) -> Optional[Any]:
        return None if self._is_alone else _ranks.group()

    def Barrier(self) -> None:
        if self._group() is not None:
            dist.barrier()

    barrier = Barrier

    def bcast(self, obj: Any, root: int = 0) -> Any:
        things = [obj]
        if self._group() is not None:
            dist.broadcast_object_list(things, root)
        return things[0]

    def allgather(self, sendobj: Any) -> List[Any]:
        things = [sendobj] * self.Get_size()
        if self._group() is not None:
            dist.all_gather_object(things, sendobj)
        return things

    def gather(self, sendobj: Any, root: int = 0) -> Optional[List[Any]]:
        things = self.allgather(sendobj)
        return things if self.Get_rank() == root else None

    def scatter(self, sendobj: Any, root: int = 0) -> Any:
        if self._group() is None:
            return sendobj[0]
        things = [None]
        dist.scatter_object_list(things, sendobj, root)
        return things[0]

    def allreduce(self, sendobj: Any, op: Any = "SUM") -> Any:
        return functools.reduce(_REDUCE[op], self.allgather(sendobj))

    def reduce(self, sendobj: Any, op: Any = "SUM", root: int = 0) -> Any:
        value = self.allreduce(sendobj, op)
        return value if self.Get_rank() == root else None

    def Bcast(self, buf: Any, root: int = 0) -> None:
        buf[...] = self.bcast(buf, root)

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: Any = "SUM") -> None:
        recvbuf[...] = self.allreduce(recvbuf if sendbuf is MPI.IN_PLACE else sendbuf, op)

    def Reduce(self, sendbuf: Any, recvbuf: Any, op: Any = "SUM", root: int = 0) -> None:
        value = self.allreduce(recvbuf if sendbuf is MPI.IN_PLACE else sendbuf, op)
        if self.Get_rank() == root:
            recvbuf[...] = value

    def Split(self, color: int = 0, key: int = 0) -> "_Communicator":
        if self.Get_size() > 1 and len(set(self.allgather(color))) > 1:
            raise NotImplementedError("mpi4py: Split: there are no groups of some processes; install mpi4py")
        return self

    def Split_type(self, split_type: Any = None, key: int = 0) -> "_Communicator":
        return self

    def Dup(self) -> "_Communicator":
        return self

    def Abort(self, errorcode: int = 1) -> None:
        if dist.is_initialized():  # else mpirun ends the others
            _ranks.abort(errorcode)
        sys.exit(errorcode)


_REDUCE: Dict[str, Callable[[Any, Any], Any]] = {
    "SUM": lambda a, b: a + b, "PROD": lambda a, b: a * b, "MAX": np.maximum, "MIN": np.minimum, "LAND": np.logical_and,
    "LOR": np.logical_or}

MPI: Any = ModuleType("mpi4py.MPI")
MPI.COMM_WORLD, MPI.COMM_SELF = _Communicator(False), _Communicator(True)
MPI.IN_PLACE = object()
for _name in ("SUM", "MAX", "MIN", "PROD", "LAND", "LOR", "COMM_TYPE_SHARED"):
    setattr(MPI, _name, _name)
MPI.Wtime = time.perf_counter
MPI.Init = MPI.Finalize = lambda: None
MPI.Is_initialized = lambda: True
MPI.Is_finalized = lambda: False
MPI.Get_processor_name = lambda: __import__("platform").node()

mpi4py: Any = ModuleType("mpi4py")
mpi4py.__path__ = []
mpi4py.MPI = MPI
mpi4py.rc = ModuleType("mpi4py.rc")
