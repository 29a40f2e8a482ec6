"""Module, the base class of networks and layers."""

import itertools
from collections import OrderedDict, namedtuple

from tercel import _C
from tercel._C import Tensor
from tercel._tensor import typename
from tercel.autograd import no_grad
from tercel.nn._hooks import (HOOKS_OF_ALL, HookHandle, call_with_hooks, register_backward_hook,
                              register_module_backward_hook, register_module_forward_hook,
                              register_module_forward_pre_hook, register_module_full_backward_hook,
                              register_module_full_backward_pre_hook)
from tercel.nn.parameter import Buffer, Parameter

__all__ = ["Module", "register_module_backward_hook", "register_module_forward_hook", "register_module_forward_pre_hook",
           "register_module_full_backward_hook", "register_module_full_backward_pre_hook"]


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """The missing and unexpected keys of load_state_dict()."""

    __slots__ = ()

    def __repr__(self):
        return super().__repr__() if self.missing_keys or self.unexpected_keys else "<All keys matched successfully>"

    __str__ = __repr__


def _indented(text, spaces):
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line for line in rest)])


def _check_name(kind, name, where, taken):
    if not isinstance(name, str):
        raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
    if "." in name:
        raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
    if name == "":
        raise KeyError(f'{kind} name can\'t be empty string ""')
    if hasattr(where, name) and name not in taken:
        raise KeyError(f"attribute '{name}' already exists")


class Module:
    """Base class of networks and layers: a function with parameters, buffers and children.

    Subclasses call super().__init__(), assign parameters and other modules as attributes, and define forward().
    """

    training: bool
    _version = 1
    _FIELDS = ("_parameters", "_buffers", "_modules")

    def __init__(self):
        for name, value in (("training", True), ("_parameters", {}), ("_buffers", {}),
                            ("_non_persistent_buffers_set", set()), ("_modules", {}), ("_forward_hooks", OrderedDict()),
                            ("_forward_pre_hooks", OrderedDict()), ("_backward_hooks", OrderedDict()),
                            ("_is_full_backward_hook", None), ("_backward_pre_hooks", OrderedDict()),
                            ("_state_dict_hooks", OrderedDict()),
                            ("_state_dict_pre_hooks", OrderedDict()), ("_load_state_dict_pre_hooks", OrderedDict()),
                            ("_load_state_dict_post_hooks", OrderedDict())):
            object.__setattr__(self, name, value)

    def forward(self, *args, **kwargs):
        """Computes the module's result; subclasses define it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args, **kwargs):
        if (self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks
                or HOOKS_OF_ALL):
            return call_with_hooks(self, args, kwargs)
        return self.forward(*args, **kwargs)

    # ---- registration ----

    def register_parameter(self, name, param):
        """Adds a parameter, or None for an absent one."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        _check_name("parameter", name, self, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"cannot assign '{typename(param)}' object to parameter '{name}' "
                            "(tercel.nn.Parameter or None required)")
        if param is not None and param.grad_fn is not None:
            raise ValueError(f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created "
                             f"explicitly. To express '{name}' as a function of another Tensor, compute the value in "
                             "the forward() method.")
        self._parameters[name] = param

    def register_buffer(self, name, tensor, persistent=True):
        """Adds a tensor that is part of the state but not trained; state dicts contain only persistent ones."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        _check_name("buffer", name, self, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{typename(tensor)}' object to buffer '{name}' "
                            "(tercel Tensor or None required)")
        self._buffers[name] = tensor
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name, module):
        """Adds a child, which is available as an attribute of that name."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        _check_name("module", name, self, self._modules)
        self._modules[name] = module

    def register_module(self, name, module):
        """Alias of add_module()."""
        self.add_module(name, module)

    def __setattr__(self, name, value):
        fields = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in fields:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif name in fields.get("_parameters", ()):
            if value is not None:
                raise TypeError(f"cannot assign '{typename(value)}' as parameter '{name}' "
                                "(tercel.nn.Parameter or None expected)")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if "_modules" not in fields:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "_modules")
            self._modules[name] = value
        elif name in fields.get("_modules", ()):
            if value is not None:
                raise TypeError(f"cannot assign '{typename(value)}' as child module '{name}' "
                                "(tercel.nn.Module or None expected)")
            self._modules[name] = value
        elif isinstance(value, Buffer) and "_buffers" in fields:
            self._forget(name, "_buffers")
            self.register_buffer(name, value, value.persistent)
        elif name in fields.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"cannot assign '{typename(value)}' as buffer '{name}' "
                                "(tercel.Tensor or None expected)")
            self._buffers[name] = value
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name, keep):
        """Removes an attribute of another kind that has the name."""
        self.__dict__.pop(name, None)
        for field in self._FIELDS:
            if field != keep:
                self.__dict__[field].pop(name, None)
        if keep != "_buffers":
            self._non_persistent_buffers_set.discard(name)

    def __getattr__(self, name):
        fields = self.__dict__  # written out for speed: every layer's forward() calls this
        if "_parameters" in fields:
            if name in (found := fields["_parameters"]):
                return found[name]
            if name in (found := fields["_buffers"]):
                return found[name]
            if name in (found := fields["_modules"]):
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name):
        for field in self._FIELDS:
            if name in self.__dict__[field]:
                del self.__dict__[field][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self):
        names = itertools.chain(super().__dir__(), *(self.__dict__[field] for field in self._FIELDS))
        return sorted({name for name in names if not name[:1].isdigit()})

    # ---- contents ----

    def _named_members(self, members_of, prefix, recurse, remove_duplicate):
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in members_of(module).items():
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield (path + "." if path else "") + name, value

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """Names ("0.weight") and parameters, including those of children; duplicates are yielded once."""
        return self._named_members(lambda m: m._parameters, prefix, recurse, remove_duplicate)

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """Names and buffers, including those of children; duplicates are yielded once."""
        return self._named_members(lambda m: m._buffers, prefix, recurse, remove_duplicate)

    def parameters(self, recurse=True):
        """The parameters, including those of children unless recurse is False."""
        return (value for _, value in self.named_parameters(recurse=recurse))

    def buffers(self, recurse=True):
        """The buffers, including those of children unless recurse is False."""
        return (value for _, value in self.named_buffers(recurse=recurse))

    def named_children(self):
        """Names and modules of the direct children."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self):
        """The direct children."""
        return (module for _, module in self.named_children())

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """Names and modules of this module (its name is the prefix) and all its descendants."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, (prefix + "." if prefix else "") + name, remove_duplicate)

    def modules(self):
        """This module and all its descendants, each once."""
        return (module for _, module in self.named_modules())

    def get_submodule(self, target):
        """The module with a dotted name; the empty name is this module's."""
        module = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target, module, strict=False):
        """Sets the submodule at a path such as "net.0"; with strict, one must exist there."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if not isinstance(getattr(parent, name, module), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target):
        """The parameter with a dotted name. AttributeError if there is none."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        if name not in module._parameters:
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return module._parameters[name]

    def get_buffer(self, target):
        """The buffer with a dotted name. AttributeError if there is none."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return module._buffers[name]

    # ---- changes of all parameters and buffers ----

    def apply(self, fn):
        """Calls fn for every descendant, then for this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn):
        for module in self.children():
            module._apply(fn)
        with no_grad():
            for param in self._parameters.values():
                if param is None:
                    continue
                grad = param.grad
                param.grad = None
                param.data = fn(param.data)
                if grad is not None:
                    param.grad = fn(grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def compile(self, *args, **kwargs):
        """Does nothing: operations run eagerly."""

    def cuda(self, device=None):
        """Raises AssertionError if there are parameters or buffers: there is no GPU."""
        return self._apply(lambda t: t.cuda(device))

    def share_memory(self):
        """Raises NotImplementedError if there are parameters or buffers: other processes get copies."""
        return self._apply(lambda t: t.share_memory_())

    def type(self, dst_type):
        """Converts all parameters and buffers to a dtype."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self):
        """Converts floating-point parameters and buffers to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self):
        """Converts floating-point parameters and buffers to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self):
        """Converts floating-point parameters and buffers to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self):
        """Converts floating-point parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def cpu(self):
        """The module itself, since the CPU is the only device."""
        return self._apply(lambda t: t.cpu())

    def to(self, *args, device=None, dtype=None, non_blocking=False, copy=False, memory_format=None):
        """to(device), to(dtype), to(device, dtype), to(tensor): converts floating-point parameters and buffers in place."""
        for value in args[:2]:
            if isinstance(value, Tensor):
                device, dtype = value.device, value.dtype
            elif isinstance(value, _C.dtype):
                dtype = value
            elif value is not None:
                device = value
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError("nn.Module.to only accepts floating point or complex dtypes, but got desired "
                            f"dtype={dtype}")

        def convert(t):
            if memory_format is not None and t.dim() in (4, 5):
                return t.to(device=device, dtype=dtype if t.is_floating_point() else None, memory_format=memory_format)
            return t.to(device=device, dtype=dtype if t.is_floating_point() else None)

        return self._apply(convert)

    def train(self, mode=True):
        """Sets the training mode of this module and its descendants; it affects dropout and batch norm."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        """train(False)."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        """Sets whether all parameters require gradients."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        """Sets the gradients to None, or to zero."""
        for param in self.parameters():
            if param.grad is None:
                continue
            if set_to_none:
                param.grad = None
            else:
                param.grad = param.grad.detach()
                param.grad.zero_()

    # ---- hooks ----

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Calls hook(module, args) before forward(); its result, if any, replaces the arguments."""
        return HookHandle(self._forward_pre_hooks, hook, prepend, with_kwargs=with_kwargs)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """Calls hook(module, args, output) after forward(); its result, if any, replaces the output."""
        return HookHandle(self._forward_hooks, hook, prepend, with_kwargs=with_kwargs, always_call=always_call)

    def register_full_backward_hook(self, hook, prepend=False):
        """Calls hook(module, grad_input, grad_output) once the inputs' gradients are computed; it may return others."""
        return register_backward_hook(self, hook, True, prepend)

    def register_backward_hook(self, hook):
        """Calls hook(module, grad_input, grad_output) of the output's node; prefer register_full_backward_hook()."""
        return register_backward_hook(self, hook, False)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Calls hook(module, grad_output) before the module's backward; it may return other gradients."""
        return HookHandle(self._backward_pre_hooks, hook, prepend)

    def register_state_dict_pre_hook(self, hook):
        """Calls hook(module, prefix, keep_vars) before state_dict()."""
        return HookHandle(self._state_dict_pre_hooks, hook)

    def _register_state_dict_hook(self, hook):
        return self.register_state_dict_post_hook(hook)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        """The older variant: the hook gets the module only if requested."""
        return self.register_load_state_dict_pre_hook(
            hook if with_module else lambda module, *arguments: hook(*arguments))

    def register_state_dict_post_hook(self, hook):
        """Calls hook(module, state_dict, prefix, local_metadata) after state_dict()."""
        return HookHandle(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook):
        """Calls hook(module, state_dict, prefix, local_metadata, strict, missing, unexpected, errors) before loading."""
        return HookHandle(self._load_state_dict_pre_hooks, hook)

    def register_load_state_dict_post_hook(self, hook):
        """Calls hook(module, incompatible_keys) after loading; it may change the keys."""
        return HookHandle(self._load_state_dict_post_hooks, hook)

    # ---- state ----

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        persistent = {n: b for n, b in self._buffers.items() if n not in self._non_persistent_buffers_set}
        for name, value in itertools.chain(self._parameters.items(), persistent.items()):
            if value is not None:
                destination[prefix + name] = value if keep_vars else value.detach()
        if type(self).get_extra_state is not Module.get_extra_state:
            destination[prefix + "_extra_state"] = self.get_extra_state()

    def get_extra_state(self):
        """Extra state for state_dict(); modules that need it override this."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state):
        """Restores the result of get_extra_state(); modules that need it override this."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    def state_dict(self, *, destination=None, prefix="", keep_vars=False):
        """Parameters and persistent buffers by name; the tensors share memory with the module's."""
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = dict(version=self._version)
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook, _ in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        for hook, _ in self._state_dict_hooks.values():
            changed = hook(self, destination, prefix, local_metadata)
            destination = destination if changed is None else changed
        return destination

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                              error_msgs):
        for hook, _ in self._load_state_dict_pre_hooks.values():
            hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        own = {**self._parameters,
               **{n: b for n, b in self._buffers.items() if n not in self._non_persistent_buffers_set}}
        own = {name: value for name, value in own.items() if value is not None}
        for name, value in own.items():
            self._load_one(name, value, prefix + name, state_dict, local_metadata, strict, missing_keys, error_msgs)
        extra = prefix + "_extra_state"
        if type(self).set_extra_state is not Module.set_extra_state:
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    name, *below = key[len(prefix):].split(".", 1)
                    if (name not in self._modules) if below else (name not in own):
                        unexpected_keys.append(key)

    def _load_one(self, name, own, key, state_dict, local_metadata, strict, missing_keys, error_msgs):
        if key not in state_dict:
            if strict:
                missing_keys.append(key)
            return
        given = state_dict[key]
        if not isinstance(given, Tensor):
            error_msgs.append(f'While copying the parameter named "{key}", expected a Tensor or Tensor-like '
                              f"object from checkpoint but received {type(given)}")
            return
        if own.dim() == 0 and given.dim() == 1 and given.numel() == 1:
            given = given[0]
        if given.shape != own.shape:
            error_msgs.append(f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, "
                              f"the shape in current model is {own.shape}.")
            return
        with no_grad():
            if local_metadata.get("assign_to_params_buffers", False):
                if isinstance(own, Parameter):
                    given = given if isinstance(given, Parameter) else Parameter(given, own.requires_grad)
                setattr(self, name, given)
            else:
                own.copy_(given)

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copies a state dict into the module (assign=True: uses its tensors); RuntimeError lists all mismatches."""
        if not hasattr(state_dict, "items"):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing, unexpected, errors = [], [], []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)

        def load(module, state, prefix):
            local = {} if metadata is None else dict(metadata.get(prefix[:-1], {}))
            if assign:
                local["assign_to_params_buffers"] = True
            module._load_from_state_dict(state, prefix, local, True, missing, unexpected, errors)
            for name, child in module._modules.items():
                if child is not None:
                    below = prefix + name + "."
                    load(child, {k: v for k, v in state.items() if k.startswith(below)}, below)
            keys = _IncompatibleKeys(missing, unexpected)
            for hook, _ in module._load_state_dict_post_hooks.values():
                if hook(module, keys) is not None:
                    raise AssertionError("Hooks registered with ``register_load_state_dict_post_hook`` are not "
                                         "expected to return new values, if incompatible_keys need to be modified, it "
                                         "should be done inplace.")

        load(self, state_dict, "")
        if strict:
            if unexpected:
                keys = ", ".join(f'"{k}"' for k in unexpected)
                errors.insert(0, f"Unexpected key(s) in state_dict: {keys}. ")
            if missing:
                keys = ", ".join(f'"{k}"' for k in missing)
                errors.insert(0, f"Missing key(s) in state_dict: {keys}. ")
        if errors:
            listed = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listed}")
        return _IncompatibleKeys(missing, unexpected)

    # ---- text ----

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self):
        """The text between the parentheses of repr()."""
        return ""

    def __repr__(self):
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_indented(repr(module), 2)}" for name, module in self._modules.items()]
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"
