"""A module `mpi4py` for scripts that import it where it is not installed: one process, which is all ranks."""

import sys
import time
from types import ModuleType
from typing import Any


class _Communicator:
    """A communicator of one rank: what is sent to all comes back."""

    rank, size = 0, 1

    def Get_rank(self) -> int:
        return 0

    def Get_size(self) -> int:
        return 1

    def Barrier(self) -> None:
        pass

    barrier = Barrier

    def bcast(self, obj: Any, root: int = 0) -> Any:
        return obj

    def gather(self, sendobj: Any, root: int = 0) -> Any:
        return [sendobj]

    def allgather(self, sendobj: Any) -> Any:
        return [sendobj]

    def scatter(self, sendobj: Any, root: int = 0) -> Any:
        return sendobj[0]

    def reduce(self, sendobj: Any, op: Any = None, root: int = 0) -> Any:
        return sendobj

    allreduce = reduce

    def Bcast(self, buf: Any, root: int = 0) -> None:
        pass

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: Any = None) -> None:
        if sendbuf is not MPI.IN_PLACE:
            recvbuf[...] = sendbuf

    def Reduce(self, sendbuf: Any, recvbuf: Any, op: Any = None, root: int = 0) -> None:
        self.Allreduce(sendbuf, recvbuf)

    def Split(self, color: int = 0, key: int = 0) -> "_Communicator":
        return self

    Split_type = Split
    Dup = Split

    def Abort(self, errorcode: int = 1) -> None:
        sys.exit(errorcode)


MPI: Any = ModuleType("mpi4py.MPI")
MPI.COMM_WORLD = MPI.COMM_SELF = _Communicator()
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
