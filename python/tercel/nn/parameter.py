"""Parameters and buffers of modules."""

from tercel import _C
from tercel._C import Tensor

__all__ = ["Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer", "is_lazy"]


class Parameter(Tensor):
    """A tensor that becomes a parameter when assigned to a Module's attribute; requires a gradient by default."""

    def __new__(cls, data=None, requires_grad=True):
        return _C._make_subclass(cls, _C.empty(0) if data is None else data, requires_grad)


class _BufferType(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferType):
    """A tensor that becomes a buffer when assigned to a Module's attribute; in state dicts if persistent."""

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

    shape = ndim = property(_no_shape, doc="Raises RuntimeError: the sizes are not known yet.")
    size = dim = numel = _no_shape
    cls_to_become: type = Tensor

    def materialize(self, shape, device=None, dtype=None):
        """Allocates uninitialised memory for the sizes and turns the tensor into an ordinary parameter or buffer."""
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


_no_shape.__doc__ = "Raises RuntimeError: the sizes are not known yet."


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
    """Whether the value is an uninitialized parameter or buffer."""
    return isinstance(param, UninitializedTensorMixin)


def _bias(wanted, size, device, dtype):
    """An uninitialised parameter, or None."""
    return Parameter(_C.empty(size, device=device, dtype=dtype)) if wanted else None
