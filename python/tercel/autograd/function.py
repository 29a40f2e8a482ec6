"""Custom functions: operations with a backward written in Python."""

import functools

from tercel import _C
from tercel._C import Tensor

__all__ = ["Function", "FunctionCtx", "BackwardCFunction", "InplaceFunction", "once_differentiable"]


class FunctionCtx:
    """State shared by forward() and backward() of one call. Users may add attributes."""

    to_save = dirty_tensors = non_differentiable = saved_for_forward = None
    materialize_grads = True
    needs_input_grad = ()

    def save_for_backward(self, *tensors):
        """Saves inputs or outputs of forward(), or other tensors; backward() reads them from `saved_tensors`."""
        self.to_save = tensors

    def save_for_forward(self, *tensors):
        """Saves tensors for jvp(), which reads them from `saved_tensors`."""
        self.saved_for_forward = tensors

    def mark_dirty(self, *args):
        """Marks inputs that forward() changed in place; it must also return them."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args):
        """Marks outputs that need no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value):
        """Sets whether backward() gets zeros (the default) or None for outputs that nothing depends on."""
        self.materialize_grads = value

    @property
    def saved_variables(self):
        """The old name of saved_tensors."""
        import warnings
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors


_NO_NODE = ("You attempted to access the anomaly metadata of a custom autograd function but the underlying PyNode has "
            "already been deallocated. The most likely reason this occurred is because you assigned x.grad_fn to a local "
            "variable and then let the original variable get deallocated. Keep the tensor as long as its grad_fn.")


class BackwardCFunction(_C._FunctionBase, FunctionCtx):
    """The context of a call, which is also the node in the graph. See Note [Contexts] in src/function.cpp."""

    @property
    def metadata(self):
        """A dict for data that the user attaches to the node."""
        if not self._has_node():
            raise RuntimeError(_NO_NODE)
        return self.__dict__.setdefault("_metadata", {})

    def apply(self, *args):
        """Calls backward(), or vjp(), with gradients of the outputs."""
        backward, vjp = self._forward_cls.backward, self._forward_cls.vjp
        if backward is not Function.backward and vjp is not Function.vjp:
            raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should "
                               "only implement one of them.")
        return (vjp if vjp is not Function.vjp else backward)(self, *args)

    @property
    def _has_jvp(self):
        return self._forward_cls.jvp is not Function.jvp

    def _forward_jvp(self, *tangents):
        return self._forward_cls.jvp(self, *tangents)

    def __repr__(self):
        return f"<tercel.autograd.function.{type(self).__name__} object at {id(self):#x}>"


_NODE_ATTRIBUTES = {"name", "next_functions", "register_hook", "register_prehook", "_register_hook_dict",
                    "saved_tensors", "_raw_saved_tensors", "_sequence_nr"}


class _FunctionMeta(type):
    def __init__(cls, name, bases, attributes):
        super().__init__(name, bases, attributes)
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls})


class Function(FunctionCtx, metaclass=_FunctionMeta):
    """
    Base class of custom functions: define the static methods forward(ctx, ...) and backward(ctx, *gradients), or
    forward(...) without ctx and setup_context(ctx, inputs, output). Call the operation with apply(...).
    """

    def __init__(self, *args, **kwargs):
        import warnings
        warnings.warn(f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you "
                      "should invoke them on the class itself.", DeprecationWarning, stacklevel=2)

    def __getattr__(self, name):
        if name == "metadata":
            raise RuntimeError(_NO_NODE)
        if name in _NODE_ATTRIBUTES:
            raise RuntimeError(f"Attribute '{name}' is invalid for this instance of {type(self).__name__}: only the "
                               "grad_fn of a result of apply() has it.")
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __call__(self, *args, **kwargs):
        raise RuntimeError("Legacy autograd function with non-static forward method is deprecated. Please use new-style "
                           "autograd function with static forward method.")

    @staticmethod
    def forward(*args, **kwargs):
        """Computes the outputs: forward(ctx, ...), or without ctx if setup_context() is defined."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Called after a forward() without ctx, to save what backward() needs."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """Computes a gradient for each argument of forward() from the gradients of its outputs."""
        raise NotImplementedError("You must implement either the backward or vjp method for your custom "
                                  "autograd.Function to use it with backward mode AD.")

    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        """
        Computes the tangents of the outputs from those of the arguments of forward() (None for arguments that are not
        tensors), in forward mode. Without it, forward mode differentiates backward().
        """
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with "
                                  "forward mode AD.")

    @classmethod
    def _run_forward(cls, ctx, args):
        if cls.setup_context is Function.setup_context:
            return cls.forward(ctx, *args)
        output = cls.forward(*args)
        cls.setup_context(ctx, args, output)
        return output

    @classmethod
    def apply(cls, *args):
        """Calls the operation, and records it if one of the tensors among the arguments requires a gradient."""
        return _C._apply_function(cls, args)


class _Refused(Function):
    """Returns tensors as they are, with a backward that raises. Its node is called Error."""

    @staticmethod
    def forward(ctx, message, *tensors):
        ctx.message = message
        return tuple(t.detach() for t in tensors)

    @staticmethod
    def backward(ctx, *gradients):
        raise RuntimeError(ctx.message)


_Refused._backward_cls.__name__ = "Error"


def once_differentiable(fn):
    """Decorates a backward() that is not differentiable: it runs without recording, and its results raise in backward."""

    @functools.wraps(fn)
    def wrapper(ctx, *args):
        before = _C.is_grad_enabled()
        _C._set_grad_enabled(False)
        try:
            outputs = fn(ctx, *args)
        finally:
            _C._set_grad_enabled(before)
        if not before or not any(isinstance(a, Tensor) and a.requires_grad for a in args):
            return outputs
        several = outputs if isinstance(outputs, tuple) else (outputs,)
        tracked = []
        for output in several:
            # A missing gradient is passed as a tensor, so that positions are kept.
            tracked.append(_C.empty(0) if output is None else output.detach().requires_grad_())
        refused = _Refused.apply("trying to differentiate twice a function that was marked with @once_differentiable",
                                 *tracked)
        return tuple(None if output is None else result for output, result in zip(several, refused))

    return wrapper


class InplaceFunction(Function):
    """A Function with an inplace flag, used by old programs."""

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace
