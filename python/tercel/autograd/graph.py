"""The graph: nodes, hooks on several tensors, and hooks on saved tensors."""

import abc
import contextlib
import threading
from collections import namedtuple

from tercel import _C
from tercel._C import Tensor
from tercel.utils.hooks import RemovableHandle

__all__ = ["Node", "GradientEdge", "get_gradient_edge", "increment_version", "saved_tensors_hooks", "save_on_cpu",
           "disable_saved_tensors_hooks", "register_multi_grad_hook"]


class Node(abc.ABC):
    """The type of grad_fn: isinstance(y.grad_fn, Node)."""

    @abc.abstractmethod
    def name(self):
        """The name of the node, such as AddBackward0."""

    @property
    @abc.abstractmethod
    def next_functions(self):
        """For each input, the node that produced it and the index of that node's output."""

    @property
    @abc.abstractmethod
    def metadata(self):
        """A dict for data that the user attaches to the node."""

    @abc.abstractmethod
    def register_hook(self, fn):
        """Calls fn(grad_inputs, grad_outputs) after the node's backward."""

    @abc.abstractmethod
    def register_prehook(self, fn):
        """Calls fn(grad_outputs) before the node's backward."""


Node.register(_C.Node)
Node.register(_C._FunctionBase)

GradientEdge = namedtuple("GradientEdge", ("node", "output_nr"))
GradientEdge.__doc__ = "The destination of a tensor's gradient: a node, and the index of the tensor among its outputs."


def get_gradient_edge(tensor):
    """The node that the tensor's gradient flows to, and the index of the tensor among its outputs."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(*_C._gradient_edge(tensor))


def increment_version(tensor):
    """Increments the version counter of one or several tensors whose data was changed outside the library."""
    for one in (tensor,) if isinstance(tensor, Tensor) else tensor:
        _C._increment_version(one)


_disabled = threading.local()


def _disabled_message():
    return getattr(_disabled, "message", None)


_C._autograd._saved_tensors_hooks_is_enabled = lambda: _disabled_message() is None


class saved_tensors_hooks:  # noqa: N801
    """
    Inside, pack_hook(tensor) is called for each tensor that an operation saves for backward, and its result is stored;
    unpack_hook(result) turns it back into a tensor when backward needs it.
    """

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self):
        if _disabled_message() is not None:
            raise RuntimeError(_disabled_message())
        _disabled.depth = getattr(_disabled, "depth", 0) + 1
        _C._push_saved_tensors_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *_):
        _disabled.depth -= 1
        _C._pop_scope()


class save_on_cpu(saved_tensors_hooks):  # noqa: N801
    """Tensors that operations save inside are kept in CPU memory; pin_memory has no effect without a GPU."""

    def __init__(self, pin_memory=False, device_type="cuda"):
        super().__init__(lambda tensor: (tensor.device, tensor.cpu()), lambda kept: kept[1].to(kept[0]))


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message):
    """Inside, saved_tensors_hooks raises a RuntimeError with that message."""
    if getattr(_disabled, "depth", 0) > 0:
        raise RuntimeError(error_message)
    before, _disabled.message = _disabled_message(), error_message
    try:
        yield
    finally:
        _disabled.message = before


class _Handles:
    def __init__(self, handles):
        self._handles = handles

    def remove(self):
        for handle in self._handles:
            handle.remove()


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """
    Calls fn(gradients) when backward has computed the gradients of all the given tensors that the pass reaches, with None
    for the others; with mode="any", fn(gradient) for the first one.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors = tuple(tensors)
    nodes = [get_gradient_edge(t).node for t in tensors]
    passes = {}
    lock = threading.Lock()

    def see(place, gradient):
        number = _C._current_graph_task_id()
        with lock:
            if mode == "any":
                first = number not in passes
                passes.clear()
                passes[number] = True
            else:
                if number not in passes:
                    passes.clear()
                    passes[number] = [None] * len(tensors), [sum(map(_C._will_engine_execute_node, nodes))]
                seen, left = passes[number]
                seen[place] = gradient
                left[0] -= 1
        if mode == "any":
            if first:
                fn(gradient)
        elif left[0] == 0:
            fn(list(seen))
            passes.pop(number, None)

    handles = [t.register_hook(lambda gradient, place=i: see(place, gradient)) for i, t in enumerate(tensors)]
    return RemovableHandle(_Handles(handles))
