"""Containers of modules or parameters, by index or by name."""

import operator
from collections.abc import Iterable, Mapping

from tercel._C import Tensor
from tercel.nn.module import Module, _indented
from tercel.nn.parameter import Parameter

__all__ = ["Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"]


class _Ordered(Module):
    """Children named "0", "1" and so on."""

    def _key(self, index):
        index = operator.index(index)
        n = len(self)
        if not -n <= index < n:
            raise IndexError(f"index {index} is out of range")
        return str(index % n)

    def _replace_all(self, modules):
        self._modules.clear()
        for i, module in enumerate(modules):
            self.add_module(str(i), module)

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, module):
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules):
        """Adds several modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"{type(self).__name__}.extend should be called with an iterable, but got "
                            + type(modules).__name__)
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index, module):
        """Inserts a module before an index."""
        modules = list(self)
        if not -len(modules) <= index <= len(modules):
            raise IndexError(f"Index out of range: {index}")
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        modules.insert(index, module)
        self._replace_all(modules)
        return self

    def pop(self, key):
        module = self[key]
        del self[key]
        return module

    def __iadd__(self, modules):
        return self.extend(modules)


class Sequential(_Ordered):
    """Modules in sequence, each called with the result of the previous one."""

    def __init__(self, *args):
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], Mapping) else enumerate(args)
        for name, module in named:
            self.add_module(str(name), module)

    def forward(self, input):  # noqa: A002
        for module in self._modules.values():
            input = module(input)  # noqa: A001
        return input

    def _name_at(self, index):
        return list(self._modules)[int(self._key(index))]

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(dict(list(self._modules.items())[index]))
        return self._modules[self._name_at(index)]

    def __setitem__(self, index, module):
        setattr(self, self._name_at(index), module)

    def __delitem__(self, index):
        names = list(self._modules)
        for name in names[index] if isinstance(index, slice) else [self._name_at(index)]:
            delattr(self, name)
        if all(name.isdigit() for name in names):
            self._replace_all(list(self))

    def __add__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError("add operator supports only objects of Sequential class, but "
                             f"{type(other)} is given.")
        return Sequential(*self, *other)

    def __mul__(self, count):
        self._check_count(count)
        return Sequential(*list(self) * count)

    __rmul__ = __mul__

    def __imul__(self, count):
        self._check_count(count)
        modules = list(self)
        for _ in range(count - 1):
            for module in modules:
                self.append(module)
        return self

    @staticmethod
    def _check_count(count):
        if not isinstance(count, int):
            raise TypeError(f"unsupported operand type(s) for *: {Sequential} and {type(count)}")
        if count <= 0:
            raise ValueError(f"Non-positive multiplication factor {count} for {Sequential}")


class ModuleList(_Ordered):
    """A list of modules, all of them registered."""

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return self._modules[self._key(index)]

    def __setitem__(self, index, module):
        setattr(self, self._key(index), module)

    def __delitem__(self, index):
        modules = list(self)
        del modules[index if isinstance(index, slice) else int(self._key(index))]
        self._replace_all(modules)

    def __add__(self, other):
        return type(self)([*self, *other])

    def __repr__(self):
        if len(self) == 0:
            return self._get_name() + "()"
        runs = []  # equal neighbours are shown once, with their count
        for i, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        lines = [f"({a}): {_indented(text, 2)}" if a == b else f"({a}-{b}): {b - a + 1} x {_indented(text, 2)}"
                 for a, b, text in runs]
        return self._get_name() + "(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """Modules by name, all of them registered."""

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key):
        return self._modules[key]

    def __setitem__(self, key, module):
        self.add_module(key, module)

    def __delitem__(self, key):
        del self._modules[key]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key):
        return key in self._modules

    def clear(self):
        """Removes all."""
        self._modules.clear()

    def pop(self, key):
        """Removes a module and returns it."""
        return self._modules.pop(key)

    def keys(self):
        """The names."""
        return self._modules.keys()

    def items(self):
        """Names and modules."""
        return self._modules.items()

    def values(self):
        """The modules."""
        return self._modules.values()

    def update(self, modules):
        """Adds the modules of a mapping, or of pairs of name and module."""
        if not isinstance(modules, Iterable):
            raise TypeError("ModuleDict.update should be called with an iterable of key/value pairs, but got "
                            + type(modules).__name__)
        for key, module in modules.items() if isinstance(modules, (Mapping, ModuleDict)) else modules:
            self[key] = module


def _as_parameter(value):
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _line(name, value):
    if isinstance(value, Tensor):
        size = "x".join(str(s) for s in value.shape)
        kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
        return f"  ({name}): {kind} containing: [{value.dtype} of size {size}]"
    return f"  ({name}): Object of type: {type(value).__name__}"


class ParameterList(Module):
    """A list of parameters; tensors that are added become parameters."""

    def __init__(self, values=None):
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _name(self, index):
        index = operator.index(index)
        if not -self._size <= index < self._size:
            raise IndexError(f"index {index} is out of range")
        return str(index % self._size)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, self._name(index))

    def __setitem__(self, index, value):
        setattr(self, self._name(index), _as_parameter(value))

    def __len__(self):
        return self._size

    def __iter__(self):
        return (getattr(self, str(i)) for i in range(self._size))

    def append(self, value):
        """Adds one at the end."""
        self._size += 1
        setattr(self, str(self._size - 1), _as_parameter(value))
        return self

    def extend(self, values):
        """Adds several at the end."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in values:
            self.append(value)
        return self

    def __iadd__(self, values):
        return self.extend(values)

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")

    def __repr__(self):
        return "\n".join([self._get_name() + "(", *(_line(i, v) for i, v in enumerate(self))]) + "\n)"


class ParameterDict(Module):
    """Parameters by name; tensors that are added become parameters."""

    def __init__(self, parameters=None):
        super().__init__()
        self._names = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key):
        if key not in self._names:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key, value):
        if not isinstance(key, str):
            raise TypeError("Index given to ParameterDict cannot be used as a key as it is not a string (type is "
                            f"'{type(key).__name__}').")
        self._names[key] = None
        setattr(self, key, _as_parameter(value))

    def __delitem__(self, key):
        del self._names[key]
        delattr(self, key)

    def __len__(self):
        return len(self._names)

    def __iter__(self):
        return iter(self._names)

    def __contains__(self, key):
        return key in self._names

    def keys(self):
        """The names."""
        return self._names.keys()

    def values(self):
        """The parameters."""
        return (self[key] for key in self._names)

    def items(self):
        """Names and parameters."""
        return ((key, self[key]) for key in self._names)

    def get(self, key, default=None):
        """The parameter of a name, or the default."""
        return self[key] if key in self else default

    def pop(self, key):
        """Removes a parameter and returns it."""
        value = self[key]
        del self[key]
        return value

    def clear(self):
        """Removes all."""
        for key in list(self._names):
            del self[key]

    def update(self, parameters):
        """Adds the parameters of a dict, or of pairs."""
        for key, value in parameters.items() if isinstance(parameters, (Mapping, ParameterDict)) else parameters:
            self[key] = value

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterDict should not be called.")

    def __repr__(self):
        return "\n".join([self._get_name() + "(", *(_line(k, v) for k, v in self.items())]) + "\n)"
