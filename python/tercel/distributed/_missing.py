"""Functions of PyTorch's package that Tercel does not have, which say what there is."""

from typing import Any, NoReturn

__all__ = ["irecv", "isend", "new_group", "new_subgroups", "recv", "send"]

_ONE_GROUP = "there is one group, of all processes, so that every process takes part in each collective"
_NO_MESSAGES = "there are no messages between two processes; all_to_all_single(), with split sizes, sends parts of tensors"


def new_group(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: the group of all processes is the only one."""
    raise NotImplementedError(f"new_group: {_ONE_GROUP}")


def new_subgroups(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: the group of all processes is the only one."""
    raise NotImplementedError(f"new_subgroups: {_ONE_GROUP}")


def send(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: all_to_all_single() sends parts of a tensor."""
    raise NotImplementedError(f"send: {_NO_MESSAGES}")


def recv(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: all_to_all_single() receives parts of a tensor."""
    raise NotImplementedError(f"recv: {_NO_MESSAGES}")


def isend(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: all_to_all_single(async_op=True) sends parts of a tensor."""
    raise NotImplementedError(f"isend: {_NO_MESSAGES}")


def irecv(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: all_to_all_single(async_op=True) receives parts of a tensor."""
    raise NotImplementedError(f"irecv: {_NO_MESSAGES}")
