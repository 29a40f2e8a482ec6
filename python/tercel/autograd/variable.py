"""Variable, the wrapper that tensors once needed for gradients; now every tensor is one."""

from tercel import _C
from tercel._C import Tensor


class _Engine:
    """The engine that runs backward passes."""

    @staticmethod
    def queue_callback(callback):
        """Calls callback() when the backward pass running on this thread has finished all nodes."""
        _C._queue_callback(callback)


class _VariableType(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableType):
    """Variable(data, requires_grad=False) is a tensor over the same data; isinstance(x, Variable) tests for Tensor."""

    _execution_engine = _Engine()

    def __new__(cls, data=None, requires_grad=False):
        if data is None:
            data = _C.empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)
