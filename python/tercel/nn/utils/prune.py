"""Pruning: multiplies parameters by a mask before each call of their module.

Note [Pruned parameters]
The parameter is kept as name_orig, the mask as the buffer name_mask. `name` is their product, a tensor of the graph that
the pruning method, a forward pre-hook, recomputes. If a parameter is pruned several times, the hook is a PruningContainer.
"""

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable

from tercel import _C

__all__ = ["BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer",
           "RandomStructured", "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned",
           "l1_unstructured", "ln_structured", "random_structured", "random_unstructured", "remove"]


def _hooks(module):
    """The pruning methods of a module, by the ids of their hooks."""
    return {key: hook for key, (hook, _) in module._forward_pre_hooks.items() if isinstance(hook, BasePruningMethod)}


class BasePruningMethod(ABC):
    """Base of pruning methods: subclasses select elements in compute_mask() and define the scope in PRUNING_TYPE.

    "unstructured": the remaining elements, as a vector; "structured": the remaining slices along `dim`; "global": the whole
    tensor.
    """

    _tensor_name: str

    def __call__(self, module, inputs):
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t, default_mask):
        """A mask of ones and zeros with the sizes of t, by importance scores t; default_mask is the current mask."""

    def apply_mask(self, module):
        """The parameter times its mask."""
        name = getattr(self, "_tensor_name", None)
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, name + "_orig")
        return getattr(module, name + "_mask").to(original.dtype) * original

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **kwargs):
        """Prunes a parameter of the module, in addition to earlier pruning; further arguments go to the class."""
        found = {key: hook for key, hook in _hooks(module).items() if hook._tensor_name == name}
        if len(found) > 1:
            raise AssertionError(f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a "
                                 "PruningContainer.")
        method = cls(*args, **kwargs)
        method._tensor_name = name
        value = getattr(module, name)
        if importance_scores is None:
            importance_scores = value
        elif importance_scores.shape != value.shape:
            raise AssertionError(f"importance_scores should have the same shape as parameter {name} of {module}")
        for key, before in found.items():
            container = PruningContainer(*(before if isinstance(before, PruningContainer) else (before,)), method)
            mask = container.compute_mask(importance_scores, getattr(module, name + "_mask").detach().clone())
            del module._forward_pre_hooks[key]
            method = container
        if not found:  # computed first, so that a failure leaves the module unchanged
            mask = method.compute_mask(importance_scores, _C.ones_like(value))
            del module._parameters[name]
            module.register_parameter(name + "_orig", value)
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t, default_mask=None, importance_scores=None):
        """t times the mask that this method computes, without a module."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        return t * self.compute_mask(importance_scores, _C.ones_like(t) if default_mask is None else default_mask)

    def remove(self, module):
        """Makes the pruning permanent: stores the masked values in the parameter."""
        name = getattr(self, "_tensor_name", None)
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        original = module._parameters.pop(name + "_orig")
        mask = module._buffers.pop(name + "_mask")
        original.data = mask.to(original.dtype) * original.data
        delattr(module, name)
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several methods for one parameter, in the order of application."""

    PRUNING_TYPE = "container"

    def __init__(self, *args):
        self._pruning_methods = ()
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method):
        """Appends a method for the same parameter."""
        if method is not None and not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to "
                             f"PruningContainer {self}. Found '{method._tensor_name}'")
        self._pruning_methods += (method,)

    def __len__(self):
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, idx):
        return self._pruning_methods[idx]

    def compute_mask(self, t, default_mask):
        method, mask = self._pruning_methods[-1], default_mask.to(t.dtype).clone()
        if method.PRUNING_TYPE == "unstructured":
            standing = mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError(f"Pruning methods of PRUNING_TYPE 'structured' need to have the attribute `dim` "
                                     f"defined; {method} has not.")
            dim = method.dim % t.dim()
            kept = mask.sum([d for d in range(t.dim()) if d != dim]) != 0
            standing = (slice(None),) * dim + (kept,)
        elif method.PRUNING_TYPE == "global":
            standing = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        part = method.compute_mask(t[standing], mask[standing])
        mask[standing] = part.to(mask.dtype)
        return mask


def _check_amount(amount):
    if not isinstance(amount, numbers.Number):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if (isinstance(amount, numbers.Integral) and amount < 0) or (
            not isinstance(amount, numbers.Integral) and not 0.0 <= float(amount) <= 1.0):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _count(amount, size):
    """The number of elements to prune."""
    if not isinstance(amount, numbers.Integral):
        return round(amount * size)
    if amount > size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={size}")
    return amount


class Identity(BasePruningMethod):
    """Prunes nothing: the parameter gets a mask of ones."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        return default_mask


class _Amount(BasePruningMethod):
    """Prunes a fraction (float) or a number (int) of elements or slices."""

    def __init__(self, amount):
        _check_amount(amount)
        self.amount = amount


class _Unstructured(_Amount):
    """Prunes the elements with the lowest ranks()."""

    PRUNING_TYPE = "unstructured"

    def ranks(self, t):
        """A number for each element."""
        raise NotImplementedError(type(self).__name__)

    def compute_mask(self, t, default_mask):
        count = _count(self.amount, t.nelement())
        mask = default_mask.clone(memory_format=_C.contiguous_format)
        if count:
            lowest = self.ranks(t).reshape(-1).topk(count, largest=False).indices
            mask.view(-1)[lowest] = 0
        return mask

    @classmethod
    def apply(cls, module, name, amount, importance_scores=None):
        """Prunes an amount of a parameter; importance_scores replace its values."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class RandomUnstructured(_Unstructured):
    """Prunes elements at random."""

    def ranks(self, t):
        return _C.rand_like(t)


class L1Unstructured(_Unstructured):
    """Prunes the elements with the smallest magnitude."""

    def ranks(self, t):
        return t.detach().abs()


class _Structured(_Amount):
    """Prunes the slices along a dimension with the lowest ranks()."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount, dim=-1):
        super().__init__(amount)
        self.dim = dim

    def ranks(self, t):
        """A number for each slice."""
        raise NotImplementedError(type(self).__name__)

    def compute_mask(self, t, default_mask):
        if t.dim() <= 1:
            raise ValueError("Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                             f"{t.shape} with {t.dim()} dims")
        if self.dim >= t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        size = t.shape[self.dim]
        count = _count(self.amount, size)
        if count == 0:
            return default_mask
        kept = _C.zeros_like(default_mask)
        highest = self.ranks(t).topk(size - count).indices
        kept.index_fill_(self.dim, highest, 1)
        return kept * default_mask


class RandomStructured(_Structured):
    """Prunes slices along a dimension at random."""

    def ranks(self, t):
        return _C.rand(t.shape[self.dim])

    @classmethod
    def apply(cls, module, name, amount, dim=-1):
        """Prunes an amount of slices of a parameter."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """Prunes the slices along a dimension with the smallest n-norm."""

    def __init__(self, amount, n, dim=-1):
        super().__init__(amount, dim)
        self.n = n

    def ranks(self, t):
        return _C.norm(t.detach(), self.n, [d for d in range(t.dim()) if d != self.dim % t.dim()])

    @classmethod
    def apply(cls, module, name, amount, n, dim, importance_scores=None):
        """Prunes an amount of slices of a parameter; importance_scores replace its values."""
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes where a given mask is zero."""

    PRUNING_TYPE = "global"

    def __init__(self, mask):
        self.mask = mask

    def compute_mask(self, t, default_mask):
        if default_mask.shape != self.mask.shape:
            raise AssertionError(f"expected a mask of shape {default_mask.shape}, but got {self.mask.shape}")
        return default_mask * self.mask.to(default_mask.dtype)

    @classmethod
    def apply(cls, module, name, mask):
        """Prunes a parameter where the mask is zero."""
        return super().apply(module, name, mask=mask)


def identity(module, name):
    """Registers a parameter as pruned, with a mask of ones; returns the module, as do all functions below."""
    Identity.apply(module, name)
    return module


def random_unstructured(module, name, amount):
    """Prunes a fraction (float) or number (int) of a parameter's elements at random."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module, name, amount, importance_scores=None):
    """Prunes the elements with the smallest magnitude of the parameter or of importance_scores."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module, name, amount, dim):
    """Prunes slices along a dimension at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module, name, amount, n, dim, importance_scores=None):
    """Prunes the slices along a dimension with the smallest n-norm."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module, name, mask):
    """Prunes a parameter where the mask is zero."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs):
    """Prunes parameters, given as pairs of module and name, as if they were one vector, by an unstructured method.

    importance_scores: a dict from such pairs to values used in place of the parameters. kwargs go to the method.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    parameters = list(parameters)
    values = [getattr(module, name) for module, name in parameters]
    masks = [getattr(module, name + "_mask", _C.ones_like(value)) for (module, name), value in zip(parameters, values)]
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} '
                        f"of type {method.PRUNING_TYPE}")
    method._tensor_name = "temp"
    counted = [scores.get(pair, value) for pair, value in zip(parameters, values)]
    final = PruningContainer(method).compute_mask(_C.cat([v.detach().reshape(-1) for v in counted]),
                                                  _C.cat([m.reshape(-1) for m in masks]))
    for (module, name), mask in zip(parameters, final.split([v.numel() for v in values])):
        custom_from_mask(module, name, mask.view_as(getattr(module, name)))


def remove(module, name):
    """Makes the pruning permanent: stores the masked values and removes the hook."""
    for key, hook in _hooks(module).items():
        if hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module):
    """Whether the module or a submodule is pruned."""
    return any(_hooks(part) for _, part in module.named_modules())
