"""Tensors that a module trains."""

from tercel import _C
from tercel._C import Tensor

__all__ = ["Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer", "is_lazy"]


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


def _no_shape(self, *args, **kwargs):
    raise RuntimeError("Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
                       "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call "
                       "`forward` to initialize the parameters before accessing their attributes.")


class UninitializedTensorMixin:
    """A tensor whose sizes are not known yet; it becomes a plain parameter or buffer in materialize()."""

    shape = ndim = property(_no_shape, doc="Not known yet: a RuntimeError.")
    size = dim = numel = _no_shape
    cls_to_become: type = Tensor

    def materialize(self, shape, device=None, dtype=None):
        """Takes memory for these sizes, not filled; the tensor is then of an ordinary class."""
        like = self.data
        self.data = _C.empty(tuple(shape), device=like.device if device is None else device,
                             dtype=like.dtype if dtype is None else dtype)
        self.__class__ = self.cls_to_become

    def __deepcopy__(self, memo):
        like = self.data
        copy = type(self)(self.requires_grad, like.device, like.dtype)
        memo[id(self)] = copy
        return copy

    def __reduce_ex__(self, protocol):
        return type(self), (self.requires_grad, None, self.data.dtype)

    def __repr__(self):
        return f"<{type(self).__name__}>"


_no_shape.__doc__ = "Not known yet: a RuntimeError."


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter of a lazy module before its first input."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        return _C._make_subclass(cls, _C.empty(0, device=device, dtype=dtype), requires_grad)


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer of a lazy module before its first input."""

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        buffer = _C._make_subclass(cls, _C.empty(0, device=device, dtype=dtype), requires_grad)
        buffer.persistent, buffer._is_buffer = persistent, True
        return buffer


def is_lazy(param):
    """Whether it is a parameter or buffer that has no sizes yet."""
    return isinstance(param, UninitializedTensorMixin)


def _bias(wanted, size, device, dtype):
    """The parameter, not yet filled, or None."""
    return Parameter(_C.empty(size, device=device, dtype=dtype)) if wanted else None
