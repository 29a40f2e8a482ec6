"""Tensors that a module trains."""

from tercel import _C
from tercel._C import Tensor

__all__ = ["Parameter", "Buffer"]


class Parameter(Tensor):
    """A tensor that, as an attribute of a Module, is one of its parameters; it requires a gradient unless told not to."""

    def __new__(cls, data=None, requires_grad=True):
        return _C._make_subclass(cls, _C.empty(0) if data is None else data, requires_grad)


class _BufferType(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferType):
    """A tensor that, as an attribute of a Module, is one of its buffers; in state dicts if it is persistent."""

    def __new__(cls, data=None, *, persistent=True):
        data = _C.empty(0) if data is None else data.detach().requires_grad_(data.requires_grad)
        data.persistent, data._is_buffer = persistent, True
        return data


def _bias(wanted, size, device, dtype):
    """The parameter, not yet filled, or None."""
    return Parameter(_C.empty(size, device=device, dtype=dtype)) if wanted else None
