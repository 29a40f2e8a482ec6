"""Names of PyTorch's compiler of Python code: every operation runs when it is called."""

from tercel._dynamo import config  # noqa: F401
from tercel._dynamo.eval_frame import OptimizedModule
from tercel.compiler import (allow_in_graph, assume_constant_result, compile as _compile, disable, is_compiling,
                             list_backends, reset, set_stance)

__all__ = ["OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "graph_break", "is_compiling",
           "list_backends", "mark_dynamic", "mark_static", "optimize", "reset", "set_stance"]


def optimize(backend="inductor", *args, **kwargs):
    """A decorator that does what tercel.compile() does."""
    return _compile


def graph_break(msg=""):
    """Nothing: there is no graph."""


def mark_dynamic(t, index, **kwargs):
    """Nothing: sizes are never compiled in."""


def mark_static(t, index=None):
    """Nothing: sizes are never compiled in."""
