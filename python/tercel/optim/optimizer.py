"""Optimizer: parameter groups with options, and a state for each parameter."""

import functools
import warnings
from collections import OrderedDict, defaultdict
from copy import deepcopy

from tercel import _C
from tercel._C import Tensor
from tercel._tensor import typename
from tercel.autograd import enable_grad, no_grad, set_grad_enabled
from tercel.autograd.profiler import record_function
from tercel.nn._hooks import HookHandle

__all__ = ["Optimizer"]


class _Required:
    def __repr__(self):
        return "<required parameter>"


required = _Required()


def _watched(step):
    """Wraps step(): counts calls for schedules, records a profiler range and calls hooks."""
    @functools.wraps(step)
    def watched(*args, **kwargs):
        self = args[0]
        self._step_count = getattr(self, "_step_count", 0) + 1
        hooks = self.__dict__.get("_hooks")
        if self.__dict__.get("_in_step") or not (hooks or _C._profiler_enabled()):  # called by a subclass's step()
            return step(*args, **kwargs)
        self._in_step = True
        try:
            for hook in self._hooks_of("step_pre"):
                changed = hook(self, args, kwargs)
                if changed is not None:
                    if not isinstance(changed, tuple) or len(changed) != 2:
                        raise RuntimeError(f"{step.__qualname__} must return None or a tuple of (new_args, new_kwargs), but got "
                                           f"{changed}.")
                    args, kwargs = changed
            with record_function(f"Optimizer.step#{type(self).__name__}.step"):
                result = step(*args, **kwargs)
            for hook in self._hooks_of("step_post"):
                hook(self, args, kwargs)
            return result
        finally:
            del self._in_step

    return watched


class Optimizer:
    """Base class of optimizers.

    param_groups is a list of dicts with "params" and the options, which may be changed between steps. state has a dict for
    each parameter. Subclasses define step().
    """

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if "step" in cls.__dict__:
            cls.step = _watched(cls.step)

    def __init__(self, params, defaults):
        if isinstance(params, Tensor):
            raise TypeError("params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                            + typename(params))
        self.defaults = defaults
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def _hooks_of(self, kind):
        return [hook for hook, _ in self.__dict__.get("_hooks", {}).get(kind, {}).values()]

    def _register(self, kind, hook, prepend=False):
        hooks = self.__dict__.setdefault("_hooks", {}).setdefault(kind, OrderedDict())
        return HookHandle(hooks, hook, prepend)

    def register_step_pre_hook(self, hook):
        """Calls hook(optimizer, args, kwargs) before each step(); its result, if any, replaces (args, kwargs)."""
        return self._register("step_pre", hook)

    def register_step_post_hook(self, hook):
        """Calls hook(optimizer, args, kwargs) after each step()."""
        return self._register("step_post", hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """Calls hook(optimizer) before state_dict()."""
        return self._register("state_dict_pre", hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """Calls hook(optimizer, state_dict) at the end of state_dict(); it may return another."""
        return self._register("state_dict_post", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """Calls hook(optimizer, state_dict) before load_state_dict(); it may return another."""
        return self._register("load_pre", hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """Calls hook(optimizer) after load_state_dict()."""
        return self._register("load_post", hook, prepend)

    def add_param_group(self, param_group):
        """Adds a dict of "params" and options; missing options get the optimizer's defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError("optimizer parameters need to be organized in ordered collections, but the ordering of "
                            "tensors in sets will change between runs. Please use a list instead.")
        params = [params] if isinstance(params, Tensor) else list(params)
        named = [p for p in params if isinstance(p, tuple)]
        if named:  # named_parameters()
            if len(named) != len(params):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            param_group = {**param_group, "param_names": [name for name, _ in params]}
            params = [p for _, p in params]
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is " + typename(p))
            if not (p.is_leaf or p.retains_grad or self.defaults.get("differentiable")):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
        there = {id(p) for group in self.param_groups for p in group["params"]}
        if len({id(p) for p in params}) != len(params):
            warnings.warn("optimizer contains a parameter group with duplicate parameters; expected each "
                          "of them once", stacklevel=3)
        if any(id(p) in there for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append({**self.defaults, **param_group, "params": params})

    def zero_grad(self, set_to_none=True):
        """Sets the gradients to None, or to zero."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if set_to_none:
                    p.grad = None
                else:
                    p.grad = p.grad.detach()
                    p.grad.zero_()

    def step(self, closure=None):
        """Updates all parameters; a closure, which computes the loss and its gradients, is called first."""
        raise NotImplementedError

    def state_dict(self):
        """{"state": dicts by parameter number, "param_groups": with numbers in place of parameters}."""
        for hook in self._hooks_of("state_dict_pre"):
            hook(self)
        numbers, groups = {}, []
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            groups.append({**group, "params": [numbers[id(p)] for p in group["params"]]})
        state = {numbers[id(p)] if isinstance(p, Tensor) else p: kept for p, kept in self.state.items()}
        made = {"state": state, "param_groups": groups}
        for hook in self._hooks_of("state_dict_post"):
            changed = hook(self, made)
            made = made if changed is None else changed
        return made

    def load_state_dict(self, state_dict):
        """Loads a state dict's options and copies of its states, converted to the dtypes of the parameters."""
        state_dict = state_dict.copy()  # hooks may change it
        for hook in self._hooks_of("load_pre"):
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(mine["params"]) != len(other["params"]) for mine, other in zip(self.param_groups, saved)):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's "
                             "group")
        by_number = {number: p for mine, other in zip(self.param_groups, saved)
                     for number, p in zip(other["params"], mine["params"])}
        state = defaultdict(dict)
        for number, kept in state_dict["state"].items():
            if number in by_number:
                p = by_number[number]
                state[p] = {name: _as_state(name, value, p) for name, value in kept.items()}
            else:
                state[number] = kept
        # Options that did not exist when the state was saved get their defaults.
        groups = [{**self.defaults, **deepcopy({k: v for k, v in other.items() if k != "params"}),
                   "params": mine["params"]} for mine, other in zip(self.param_groups, saved)]
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in self._hooks_of("load_post"):
            hook(self)

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)

    def __repr__(self):
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [""] * (i > 0) + [f"Parameter Group {i}"]
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join(lines) + "\n)"


def _as_state(name, value, p):
    if not isinstance(value, Tensor):
        return deepcopy(value)
    value = value.detach().clone()
    return value.to(p.dtype) if name != "step" and p.is_floating_point() else value


class ElementwiseOptimizer(Optimizer):
    """Base of elementwise optimizers, which have two implementations.

    _update_group() updates a group with one call of the extension, whose rules (tercel/optim/rules.h) make one pass over
    memory. _update() updates one parameter with tensor operations, which differentiable steps record; optimizers without
    a rule have only this.
    """

    _update_group = None
    _takes_sparse = False  # whether it has a rule for COO gradients

    _takes_compressed = False  # whether it updates parameters of compressed layouts

    def _check_layouts(self, group):
        """RuntimeError for a parameter of a compressed layout that cannot be updated; called before anything changes."""
        for p in group["params"]:
            if not self._takes_compressed and p.grad is not None and p.layout is not _C.strided and not p.is_sparse:
                word = str(p.layout).rsplit("_", 1)[-1].capitalize()
                raise RuntimeError(f"unsupported tensor layout: Sparse{word}")

    def _check_sparse(self, group):
        """RuntimeError for a COO gradient that the optimizer has no rule for; called before anything changes."""
        if not self._takes_sparse and any(p.grad is not None and p.grad.is_sparse for p in group["params"]):
            raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")

    def _update(self, p, grad, state, group):
        """Updates p by its gradient; both are detached, and the gradient already has its sign."""
        raise NotImplementedError

    @no_grad()
    def step(self, closure=None):
        """Updates every parameter that has a gradient; returns the closure's loss."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            self._check_layouts(group)
            self._check_sparse(group)
        differentiable = bool(self.defaults.get("differentiable"))
        if self._update_group is not None and not differentiable:
            for group in self.param_groups:
                self._update_group(group)
            return loss
        with set_grad_enabled(differentiable):
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    state = self.state[p]
                    if differentiable:  # the graph of the last step still needs its states
                        state.update({name: value.clone() for name, value in state.items() if isinstance(value, Tensor)})
                    update = self._update_complex if p.is_complex() else self._update
                    update(p, -p.grad if group["maximize"] else p.grad, state, group)
                    if not state:  # a state_dict() contains no empty states
                        del self.state[p]
        return loss

    def _with_gradients(self, group, names, start=0.0, counts=True):
        """Lists of the parameters that have a gradient, of the gradients, of each state, and of the counts of steps."""
        params, grads, steps, states = [], [], [], [[] for _ in names]
        for p in group["params"]:
            grad = p.grad
            if grad is None:
                continue
            params.append(p)
            grads.append(grad)
            state = self.state[p]
            if counts:
                step = state.get("step")
                if not isinstance(step, Tensor):
                    step = state["step"] = _C.tensor(float(step or 0), dtype=_C.float32)
                steps.append(step)
            for name, values in zip(names, states):
                values.append(kept(state, name, p, start))
        return params, grads, *states, *([steps] if counts else [])

    def _update_complex(self, p, grad, state, group):
        """Treats the parts of complex numbers as separate real numbers; the states are complex."""
        seen = {name: _C.view_as_real(value) if isinstance(value, Tensor) and value.is_complex() else value
                for name, value in state.items()}
        parts = _C.view_as_real(p)
        self._update(parts, _C.view_as_real(grad), seen, group)
        for name, value in seen.items():
            if not isinstance(value, Tensor) or value.dim() == 0:
                state[name] = value
            elif name not in state:
                state[name] = _C.view_as_complex(value)


def check_at_least_zero(**values):
    """Raises ValueError with PyTorch's message: Invalid learning rate: -1."""
    names = {"lr": "learning rate", "eps": "epsilon value"}
    for name, value in values.items():
        if name == "lr":
            check_one_rate(value)
        if not 0.0 <= value:
            raise ValueError(f"Invalid {names.get(name, name + ' value')}: {value}")


def check_one_rate(lr):
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")


def check_betas(betas):
    for i, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")


def count(state):
    """Increments a parameter's step count and returns it."""
    step = state.get("step")
    if step is None:
        step = state["step"] = _C.tensor(0.0, dtype=_C.float32)
    if isinstance(step, Tensor):
        return step.add_(1).item()
    state["step"] = step + 1
    return step + 1


def kept(state, name, p, value=0.0):
    """The state with a name; initially a tensor of p's sizes filled with the value."""
    found = state.get(name)
    if found is None:
        found = state[name] = _C.full_like(p.detach(), value)
    return found
