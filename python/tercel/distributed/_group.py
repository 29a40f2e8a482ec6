"""
The group of all processes of a job.

Note [The end of a program]
A program that ends without destroy_process_group() closes the group together with the others, in an atexit handler.
After an exception that nobody caught, which Python has printed and kept in sys.last_value by then, the handler ends the
job on all ranks instead: they would wait for this one. A child that was forked has neither a part in the group nor
handlers for it.
"""

import atexit
import datetime
import os
import sys
import traceback
import warnings
from typing import Any, List, Optional

from tercel import _C

DistError = _C._DistError
DistBackendError = _C._DistBackendError

_DEFAULT_TIMEOUT = datetime.timedelta(minutes=30)
_NOT_INITIALIZED = "Default process group has not been initialized, please make sure to call init_process_group."
_COMMUNICATION = 7  # exit codes, docs/guide/training.md
_INTERRUPTED = 130


class Backend(str):
    """The name of a backend, in small letters; "mpi" is the one that there is."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    XCCL = "xccl"
    MPI = "mpi"

    def __new__(cls, name: str) -> "Backend":
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish, not {type(name).__name__}")
        return super().__new__(cls, name.lower())


class ProcessGroup:
    """The processes of a job; init_process_group() makes it, group.WORLD is it."""

    def __init__(self, of: Any, timeout: datetime.timedelta) -> None:
        self._of, self._timeout = of, timeout

    def rank(self) -> int:
        """The number of this process, from 0."""
        rank: int = self._of.rank()
        return rank

    def size(self) -> int:
        """The number of processes."""
        size: int = self._of.size()
        return size

    def name(self) -> str:
        """The name of the backend: "mpi"."""
        return Backend.MPI

    def __repr__(self) -> str:
        return f"<ProcessGroup: rank {self.rank()} of {self.size()}>"


class _State:
    """Of the module: the group, and the connection to close, which there is also after an error of init_process_group()."""

    world: Optional[ProcessGroup] = None
    open: Any = None
    process = 0
    has_ended = False
    handles_exit = False


class _WorldType(type):
    @property
    def WORLD(cls) -> Optional[ProcessGroup]:
        return _State.world


class group(metaclass=_WorldType):
    """group.WORLD is the group of all processes, None before init_process_group()."""


class GroupMember(metaclass=_WorldType):
    """GroupMember.WORLD is the group of all processes, None before init_process_group()."""

    NON_GROUP_MEMBER = -100


def is_available() -> bool:
    """Always: one process alone can form a group, too."""
    return True


def is_mpi_available() -> bool:
    """Whether Tercel was built with MPI, which several processes need."""
    has: bool = _C._has_mpi_module()
    return has


def is_nccl_available() -> bool:
    """Never."""
    return False


def is_gloo_available() -> bool:
    """Never."""
    return False


def is_ucc_available() -> bool:
    """Never."""
    return False


def is_xccl_available() -> bool:
    """Never."""
    return False


def is_torchelastic_launched() -> bool:
    """Never: mpirun starts the processes."""
    return False


def is_backend_available(backend: str) -> bool:
    """Whether it is "mpi", and is_mpi_available()."""
    return str(backend).lower() == Backend.MPI and is_mpi_available()


def is_initialized() -> bool:
    """Whether there is a group."""
    return _State.world is not None


def seconds_of(timeout: Any, name: str = "timeout") -> float:
    """Of a timedelta; TypeError, ValueError if it is not positive."""
    if not isinstance(timeout, datetime.timedelta):
        raise TypeError(f"Expected {name} argument to be of type datetime.timedelta, got {timeout!r}")
    if timeout <= datetime.timedelta(0):
        raise ValueError(f"{name}: expected a positive time, found {timeout}")
    return timeout.total_seconds()


def _check_backend(backend: Any) -> None:
    if backend is None:
        return
    if not isinstance(backend, str):
        raise ValueError(f"init_process_group: backend: expected 'mpi' or None, found {backend!r}")
    if backend.lower() not in (Backend.MPI, "cpu:mpi"):
        raise ValueError(f"init_process_group: backend: expected 'mpi' or None, found {backend!r}: processes are started by "
                         "mpirun or srun, and there are no other backends")


def _number(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"init_process_group: {name}: expected an int, not {type(value).__name__}")
    return value


def init_process_group(backend: Optional[str] = None, init_method: Optional[str] = None,
                       timeout: Optional[datetime.timedelta] = None, world_size: int = -1, rank: int = -1, store: Any = None,
                       group_name: str = "", pg_options: Any = None, device_id: Any = None) -> None:
    """
    Makes the group of the processes that mpirun or srun started together, which all must call it; a process that was
    started without them is alone. Once for a job.

    The backend is "mpi". MPI knows the processes, so `init_method` is not needed and has no effect; `world_size` and
    `rank`, or the variable WORLD_SIZE of launchers that are no MPI, are checked: ValueError if they differ. A rank that
    comes `timeout` (30 minutes) later to a collective than the others is an error. DistBackendError without MPI.
    """
    if _State.world is not None:
        raise ValueError("trying to initialize the default process group twice!")
    _check_backend(backend)
    timeout = _DEFAULT_TIMEOUT if timeout is None else timeout
    seconds = seconds_of(timeout)
    world_size, rank = _number(world_size, "world_size"), _number(rank, "rank")
    if init_method is not None and not isinstance(init_method, str):
        raise TypeError(f"init_process_group: init_method: expected a str or None, not {type(init_method).__name__}")
    if store is not None:
        raise ValueError("init_process_group: store: expected None, since MPI knows the processes")
    if _State.has_ended:
        raise RuntimeError("init_process_group: the group was destroyed, and MPI starts once in a process")
    is_job = _C._is_started_by_mpi()
    if not is_job and world_size < 0:
        world_size = int(os.environ.get("WORLD_SIZE", "-1"))
    if not is_job and world_size > 1:
        raise ValueError(f"init_process_group: expected {world_size} processes, found this one alone; start them by "
                         f"mpirun -n {world_size}")
    tasks = _C._unconnected_tasks()
    if tasks > 1:
        warnings.warn(f"init_process_group: srun started {tasks} tasks, which are not connected: each of them is alone; "
                      "srun --mpi=pmix starts the processes of one group", RuntimeWarning, stacklevel=2)
    if _State.open is None or _State.process != os.getpid():  # not after a call that was refused below
        _State.open = _C._mpi_group(seconds) if is_job else _C._single_group()
        _State.process = os.getpid()
    of = _State.open
    if not _State.handles_exit:
        atexit.register(_at_exit)
        _State.handles_exit = True
    if world_size >= 0 and world_size != of.size() or rank >= 0 and rank != of.rank():
        raise ValueError(f"init_process_group: expected rank {rank} of {world_size} processes, as the arguments say, found "
                         f"rank {of.rank()} of {of.size()}; leave them out, MPI knows them")
    _State.world = ProcessGroup(of, timeout)


def _close(of: Any) -> None:
    """Together with the other ranks. The barrier can be interrupted, close() cannot."""
    of.barrier().wait(None)
    of.close()


def end_job(of: Any, code: int) -> None:
    """Ends all processes of the job, this one too."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):  # None, broken or closed
            pass
    of.abort(code)


def _at_exit() -> None:
    """See Note [The end of a program]."""
    of, _State.open = _State.open, None
    if of is None or os.getpid() != _State.process:
        return
    error = getattr(sys, "last_value", None)
    if error is None or of.size() == 1:
        try:
            _close(of)
            return
        except BaseException as raised:  # noqa: B902: Ctrl-C too
            traceback.print_exc()
            error = raised
    end_job(of, _COMMUNICATION if isinstance(error, DistError) else _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1)


def destroy_process_group(group: Optional[ProcessGroup] = None) -> None:
    """Ends the group, when all processes call it. MPI allows no other one afterwards. In a forked child it only forgets."""
    group_of(group)
    of = _State.open
    if os.getpid() == _State.process:
        _close(of)
        _State.has_ended = of.size() > 1 or _C._is_started_by_mpi()
    _State.world = _State.open = None


def group_of(group: Optional[ProcessGroup]) -> Any:
    """The C++ group of an argument `group`; ValueError if there is none."""
    if _State.world is None:
        raise ValueError(_NOT_INITIALIZED)
    if group is not None and group is not _State.world:
        raise ValueError(f"group: expected None or group.WORLD, found {group!r}: the group of all processes is the only one")
    return _State.world._of


def rank_of(group: Any, rank: Any, group_rank: Any, name: str, default: Optional[int] = None) -> int:
    """A rank that arguments like `src` and `group_src` give; ValueError if none does or there is no such one."""
    if rank is not None and group_rank is not None:
        raise ValueError(f"Can't specify both {name} and group_{name}")
    value = group_rank if rank is None else rank
    if value is None:
        value = default
    if value is None:
        raise ValueError(f"Must specify {name} or group_{name}")
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}: expected the int of a rank, not {type(value).__name__}")
    if not 0 <= value < group.size():
        raise ValueError(f"{name}: expected a rank from 0 to {group.size() - 1}, found {value}")
    return value


def get_rank(group: Optional[ProcessGroup] = None) -> int:
    """The number of this process, from 0."""
    rank: int = group_of(group).rank()
    return rank


def get_world_size(group: Optional[ProcessGroup] = None) -> int:
    """The number of processes."""
    size: int = group_of(group).size()
    return size


def get_backend(group: Optional[ProcessGroup] = None) -> Backend:
    """The backend: "mpi"."""
    group_of(group)
    return Backend(Backend.MPI)


def get_process_group_ranks(group: Optional[ProcessGroup]) -> List[int]:
    """All ranks, in order."""
    return list(range(group_of(group).size()))


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The rank itself, as the group has all processes; ValueError if there is no such one."""
    return rank_of(group_of(group), None, group_rank, "rank")


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The rank itself, as the group has all processes; ValueError if there is no such one."""
    return rank_of(group_of(group), global_rank, None, "rank")


def get_node_local_rank(fallback_rank: Optional[int] = None) -> int:
    """The number of this process among those of its machine, as mpirun or srun say, else `fallback_rank`."""
    for name in ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"):
        if name in os.environ:
            return int(os.environ[name])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError("get_node_local_rank: no variable of the environment says it, such as OMPI_COMM_WORLD_LOCAL_RANK; start "
                       "the program by mpirun, or give fallback_rank")

