"""Answers for programs that may be compiled: nothing is, and Python runs every function."""

__all__ = ["annotate", "export", "ignore", "is_scripting", "is_tracing", "script", "script_if_tracing", "trace", "unused"]


def is_scripting():
    """Whether a compiler runs the function: never."""
    return False


def is_tracing():
    """Whether a call is being recorded as a graph: never."""
    return False


def annotate(the_type, the_value):
    """The value; its type would be for the compiler."""
    return the_value


def export(fn):
    """The function itself."""
    return fn


def unused(fn):
    """The function itself."""
    return fn


def ignore(drop=False, **kwargs):
    """Decorates what the compiler should leave alone; with or without arguments."""
    return drop if callable(drop) else lambda fn: fn


def script_if_tracing(fn):
    """The function itself."""
    return fn


def script(obj, *args, **kwargs):
    """NotImplementedError: nothing is compiled."""
    raise NotImplementedError("tercel.jit.script: functions are not compiled; call them as they are")


def trace(func, *args, **kwargs):
    """NotImplementedError: nothing is compiled."""
    raise NotImplementedError("tercel.jit.trace: calls are not recorded as a graph; call the function as it is")
