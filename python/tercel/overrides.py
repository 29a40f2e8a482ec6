"""PyTorch's override API: __torch_function__ is never called, so no class overrides functions on tensors."""

import functools
import inspect

import tercel
from tercel._C import Tensor

__all__ = ["get_overridable_functions", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like",
           "is_tensor_method_or_property", "resolve_name"]


def has_torch_function(relevant_args):
    """Whether an argument overrides the call."""
    return False


def has_torch_function_unary(tensor):
    """Whether an argument has __torch_function__: always False."""
    return False


def has_torch_function_variadic(*tensors):
    """Whether one of the arguments has __torch_function__: always False."""
    return False


def is_tensor_like(inp):
    """Whether the object is a Tensor, or has __torch_function__."""
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")


def is_tensor_method_or_property(func):
    """Whether the function is a method or an attribute of Tensor."""
    return any(func is value for value in vars(Tensor).values())


@functools.lru_cache(None)
def _names():
    """(namespace, its name, {name: function}) of the functions that take tensors."""
    found = []
    for namespace, name in ((tercel, "tercel"), (tercel.nn.functional, "tercel.nn.functional"),
                            (tercel.nn.init, "tercel.nn.init"), (Tensor, "tercel.Tensor"), (tercel.linalg, "tercel.linalg"),
                            (tercel.fft, "tercel.fft"), (tercel.special, "tercel.special")):
        public = {key: getattr(namespace, key) for key in dir(namespace) if not key.startswith("__")}
        found.append((namespace, name, {
            key: value for key, value in public.items()
            if callable(value) and not key.startswith("_") and not inspect.isclass(value) and not inspect.ismodule(value)}))
    return found


def get_overridable_functions():
    """The public functions on tensors, by namespace: those that a class can override in PyTorch."""
    return {namespace: list(functions.values()) for namespace, _, functions in _names()}


def resolve_name(f):
    """The qualified name of a function on tensors, such as "tercel.Tensor.add"; None for others."""
    for _, name, functions in _names():
        for key, function in functions.items():
            if function is f:
                return f"{name}.{key}"
    return None
