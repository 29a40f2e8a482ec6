"""Questions about classes that take over functions of tensors: none does, as __torch_function__ is not called."""

from tercel._C import Tensor

__all__ = ["has_torch_function", "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like",
           "is_tensor_method_or_property"]


def has_torch_function(relevant_args):
    """Whether an argument takes over the call."""
    return False


def has_torch_function_unary(tensor):
    """Whether an argument has __torch_function__: never asked."""
    return False


def has_torch_function_variadic(*tensors):
    """Whether one of the arguments has __torch_function__: never asked."""
    return False


def is_tensor_like(inp):
    """Whether it is a Tensor, or has __torch_function__."""
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")


def is_tensor_method_or_property(func):
    """Whether the function is a method or an attribute of Tensor."""
    return any(func is value for value in vars(Tensor).values())
