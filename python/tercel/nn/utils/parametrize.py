"""Parameters that are functions of other parameters.

Note [Parametrized modules]
A parametrized tensor moves from its module to module.parametrizations[name], a ParametrizationList with the parameters
that it is computed from. The module's class becomes a new subclass with a property of that name that computes the tensor.
So the module's methods are unchanged.
"""

import contextlib
import copy

from tercel._C import Tensor
from tercel.autograd import no_grad
from tercel.nn.containers import ModuleDict, ModuleList
from tercel.nn.parameter import Parameter

__all__ = ["ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
           "type_before_parametrizations"]

_cache: dict = {}
_cached = 0  # the number of open cached() contexts


@contextlib.contextmanager
def cached():
    """Inside, each parametrized tensor is computed once."""
    global _cached
    _cached += 1
    try:
        yield
    finally:
        _cached -= 1
        if _cached == 0:
            _cache.clear()


def _check_same(what, old, new):
    if not isinstance(new, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(new).__name__}.")
    if new.dtype is not old.dtype:
        raise ValueError(f"{what} may not change the dtype of the tensor, unless `unsafe` flag is enabled.\n"
                         f"unparametrized dtype: {old.dtype}\nparametrized dtype: {new.dtype}")
    if new.shape != old.shape:
        raise ValueError(f"{what} may not change the shape of the tensor, unless `unsafe` flag is enabled.\n"
                         f"unparametrized shape: {old.shape}\nparametrized shape: {new.shape}")


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor in the order of application, and the parameters that they are applied to.

    These are the parameter or buffer `original`, or original0, original1 ... if right_inverse() returns several tensors.
    """

    def __init__(self, modules, original, unsafe=False):
        modules = list(modules)
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        with no_grad():
            value = original
            for module in reversed(modules):
                if hasattr(module, "right_inverse"):
                    value = module.right_inverse(value)
        self.is_tensor = isinstance(value, Tensor)
        if not self.is_tensor and not isinstance(value, (tuple, list)):
            raise ValueError("'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                             f"Got {type(value).__name__}")
        if self.is_tensor and not unsafe and value.dtype is not original.dtype:
            raise ValueError("When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                             f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {value.dtype}")
        self.ntensors = 1 if self.is_tensor else len(value)
        for i, part in enumerate(() if self.is_tensor else value):
            if not isinstance(part, Tensor):
                raise ValueError("'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                                 f"Got element {i} of the sequence with type {type(part).__name__}.")
        for name, part in zip(self._names(), [value] if self.is_tensor else value):
            if not isinstance(original, Parameter):
                self.register_buffer(name, part)
            elif part is original:
                self.register_parameter(name, original)
            else:
                self.register_parameter(name, Parameter(part.detach(), original.requires_grad))
        if not unsafe:
            with no_grad():
                _check_same("Registering a parametrization", original, self())

    def _names(self):
        return ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]

    def right_inverse(self, value):
        """Sets the original parameters so that the tensor takes the value."""
        with no_grad():
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            parts = [value] if self.is_tensor else list(value)
            if len(parts) != self.ntensors:
                raise ValueError("'right_inverse' must return a sequence of tensors of length "
                                 f"{self.ntensors}. Got a sequence of length {len(parts)}.")
            originals = [getattr(self, name) for name in self._names()]
            if not self.unsafe:
                for original, part in zip(originals, parts):
                    _check_same("Assigning to a parametrized tensor", original, part)
            for original, part in zip(originals, parts):
                original.data = part.detach().clone()

    def forward(self):
        first, *others = self
        x = first(*(getattr(self, name) for name in self._names()))
        for module in others:
            x = module(x)
        return x


def _of(name):
    """The property that computes the tensor."""

    def get(module):
        if not _cached:
            return module.parametrizations[name]()
        key = id(module), name
        if key not in _cache:
            _cache[key] = module.parametrizations[name]()
        return _cache[key]

    def set_(module, value):
        module.parametrizations[name].right_inverse(value)

    return property(get, set_, doc="Computed by the module's parametrizations.")


def _no_state(module):
    raise RuntimeError("Serialization of parametrized modules is only supported through state_dict().")


def _copy(module, memo):
    """Copies a parametrized module with a separate class, so that its parametrizations can be removed."""
    made = object.__new__(_subclass(type(module).__bases__[0], type(module)))
    memo[id(module)] = made
    made.__dict__.update(copy.deepcopy(module.__dict__, memo))
    return made


def _subclass(cls, like=None):
    tensors = {} if like is None else {name: value for name, value in vars(like).items() if isinstance(value, property)}
    return type(f"Parametrized{cls.__name__}", (cls,), {"__module__": cls.__module__, "__doc__": cls.__doc__,
                                                        "__getstate__": _no_state, "__deepcopy__": _copy, **tensors})


def is_parametrized(module, tensor_name=None):
    """Whether the module, or its tensor of that name, is parametrized."""
    found = getattr(module, "parametrizations", None)
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def type_before_parametrizations(module):
    """The module's class before parametrization."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """Applies the module `parametrization` to a parameter or buffer, after its existing parametrizations.

    If the parametrization defines right_inverse(), its result is the initial original value. Shape and dtype must not
    change unless unsafe is True.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            with no_grad():
                value = getattr(module, tensor_name)
                result = parametrization(value)
                _check_same("Registering a parametrization", value, result)
                if hasattr(parametrization, "right_inverse"):
                    inverse = parametrization.right_inverse(result)
                    if not isinstance(inverse, Tensor):
                        raise ValueError("parametrization.right_inverse must return a tensor. "
                                         f"Got: {type(inverse).__name__}")
                    for what in ("dtype", "shape"):
                        if getattr(inverse, what) != getattr(value, what):
                            raise ValueError(f"The tensor returned by parametrization.right_inverse must have the same "
                                             f"{what} as module.{tensor_name}: {getattr(value, what)}, but got "
                                             f"{getattr(inverse, what)}.")
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
    elif tensor_name in module._parameters or tensor_name in module._buffers:
        found = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            module.__class__ = _subclass(type(module))
            module.parametrizations = ModuleDict()
        setattr(type(module), tensor_name, _of(tensor_name))
        module.parametrizations[tensor_name] = found
    else:
        raise ValueError(f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
                         f"'{tensor_name}'")
    return module


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Makes the tensor a parameter or buffer again, with its current value or the original one."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    found = module.parametrizations[tensor_name]
    if not leave_parametrized and not found.is_tensor:
        raise ValueError("Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms "
                         "of a sequence of tensors.")
    originals = [getattr(found, name) for name in found._names()]
    trained = any(isinstance(t, Parameter) for t in originals)
    value = originals[0]
    if leave_parametrized:
        with no_grad():
            result = getattr(module, tensor_name).detach().clone()
        if found.is_tensor and result.dtype is value.dtype:  # optimizers that refer to the original keep working
            value.data = result
        else:
            value = result
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if len(module.parametrizations) == 0:
        module.__class__ = type(module).__bases__[0]
        del module.parametrizations
    if trained:
        kept = value if isinstance(value, Parameter) else Parameter(value, any(t.requires_grad for t in originals))
        module.register_parameter(tensor_name, kept)
    else:
        module.register_buffer(tensor_name, value)
    return module
