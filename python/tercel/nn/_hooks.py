"""Hooks that are called before and after a module's forward and backward.

Note [Backward hooks]
All inputs of a module pass through one node, and all its outputs through another: the node's hook or prehook sees all
these gradients at once and may replace any. Gradients reach these nodes only through this call, not through other uses of
a tensor. The older kind of hook ("non-full") is attached to the node that produced the output, whatever that node is.
"""

import itertools
import warnings
import weakref
from collections import OrderedDict

from tercel._C import Tensor, is_grad_enabled
from tercel.autograd.function import Function

_ids = itertools.count()

# Global hooks by number: (hook, {"kind": ...}). Module.__call__ checks whether there are any.
HOOKS_OF_ALL = OrderedDict()


class HookHandle:
    """A handle that removes a hook."""

    def __init__(self, hooks, hook, prepend=False, **options):
        self.hooks_dict_ref, self.id = weakref.ref(hooks), next(_ids)
        hooks[self.id] = hook, options
        if prepend:
            hooks.move_to_end(self.id, last=False)

    def remove(self):
        hooks = self.hooks_dict_ref()
        if hooks is not None:
            hooks.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    def __getstate__(self):
        return self.hooks_dict_ref(), self.id

    def __setstate__(self, state):
        hooks, self.id = state
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)  # of the module, if copied with it


def _register_for_all(kind, hook, **options):
    return HookHandle(HOOKS_OF_ALL, hook, kind=kind, **options)


def _of_all(kind):
    return [(hook, options) for hook, options in HOOKS_OF_ALL.values() if options["kind"] == kind]


def register_module_forward_pre_hook(hook):
    """hook(module, args) before the forward of every module and before its own hooks; may return other arguments."""
    return _register_for_all("forward_pre", hook, with_kwargs=False)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """hook(module, args, output) after the forward of every module; may return another output."""
    return _register_for_all("forward", hook, with_kwargs=with_kwargs, always_call=always_call)


def register_module_backward_hook(hook):
    """register_backward_hook() for every module; prefer register_module_full_backward_hook()."""
    if _of_all("full_backward"):
        raise RuntimeError(_BOTH_KINDS.format("as a global Module hook"))
    return _register_for_all("backward", hook)


def register_module_full_backward_hook(hook):
    """hook(module, grad_input, grad_output) after the backward of every module; may return other gradients."""
    if _of_all("backward"):
        raise RuntimeError(_BOTH_KINDS.format("as a global Module hook"))
    return _register_for_all("full_backward", hook)


def register_module_full_backward_pre_hook(hook):
    """hook(module, grad_output) before the backward of every module; may return other gradients."""
    return _register_for_all("full_backward_pre", hook)


_BOTH_KINDS = "Cannot use both regular backward hooks and full backward hooks {}. Please use only one of them."


def register_backward_hook(module, hook, full, prepend=False):
    """The backward hooks; all of a module's hooks must be of the same kind."""
    if module._is_full_backward_hook is (not full):
        raise RuntimeError(_BOTH_KINDS.format("on a single Module"))
    module._is_full_backward_hook = full
    return HookHandle(module._backward_hooks, hook, prepend)


def _as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


class BackwardHookFunction(Function):
    """Returns tensors as they are, so that one node sees the gradients of all."""

    @staticmethod
    def forward(ctx, *tensors):
        ctx.mark_non_differentiable(*[t for t in tensors if not t.requires_grad])
        ctx.set_materialize_grads(False)
        return tensors

    @staticmethod
    def backward(ctx, *gradients):
        return gradients


def _through_one_node(values):
    """The values with their tensors passed through one node; the positions of these; and the node, or None."""
    places = [i for i, v in enumerate(values) if isinstance(v, Tensor)]
    if not is_grad_enabled() or not any(values[i].requires_grad for i in places):
        return values, [], None
    passed = _as_tuple(BackwardHookFunction.apply(*(values[i] for i in places)))
    values = list(values)
    for i, tensor in zip(places, passed):
        values[i] = tensor
    return tuple(values), places, next(t.grad_fn for t in passed if t.grad_fn is not None)


def _spread(gradients, places, count):
    """A gradient for each argument or output; None for those that are not tensors."""
    found = [None] * count
    for i, gradient in zip(places, gradients):
        found[i] = gradient
    return tuple(found)


class _FullBackward:
    """Collects the gradients of one call for the backward hooks."""

    def __init__(self, module, hooks, pre_hooks):
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.grad_output = None  # set only between the two nodes: it may refer to the graph that owns this
        self.inputs, self.input_places = 0, []

    def enter(self, args):
        """The arguments, passed through one node."""
        args, self.input_places, node = _through_one_node(args)
        self.inputs = len(args)
        if node is not None:
            node.register_hook(self._at_inputs)
        return args

    def leave(self, output):
        if not isinstance(output, (Tensor, tuple)):
            warnings.warn("For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but "
                          f"received {type(output)}", stacklevel=4)
            return output
        outputs, places, node = _through_one_node(_as_tuple(output))
        if node is not None:
            count = len(outputs)  # not the outputs, which own the node
            node.register_prehook(lambda gradients: self._at_outputs(gradients, places, count))
        return outputs if isinstance(output, tuple) else outputs[0]

    def _at_outputs(self, gradients, places, count):
        gradients = self._run(self.pre_hooks, _spread(gradients, places, count), "pre hook", "grad_output")
        if self.input_places:
            self.grad_output = gradients
        else:
            warnings.warn("Full backward hook is firing when gradients are computed with respect to module outputs since "
                          "no inputs require gradients.", stacklevel=2)
            for hook in self.hooks:
                changed = hook(self.module, (None,) * self.inputs, gradients)
                if changed is not None and any(g is not None for g in _as_tuple(changed)):
                    raise RuntimeError("Backward hook for Modules where no input requires gradient should always return "
                                       "None or None for all gradients.")
        return tuple(gradients[i] for i in places)

    def _at_inputs(self, gradients, _):
        if self.grad_output is None:  # a second derivative reaches an input on another path than through the outputs
            return None
        outputs, self.grad_output = self.grad_output, None
        gradients = self._run(self.hooks, _spread(gradients, self.input_places, self.inputs), "hook", "grad_input", outputs)
        return tuple(gradients[i] for i in self.input_places)

    def _run(self, hooks, gradients, kind, what, *more):
        for hook in hooks:
            changed = hook(self.module, gradients, *more)
            if changed is None:
                continue
            changed = _as_tuple(changed)
            if len(changed) != len(gradients):
                raise RuntimeError(f"Backward {kind} returned an invalid number of {what}, got {len(changed)}, but expected "
                                   f"{len(gradients)}")
            gradients = changed
        return gradients


def _warn_non_full(args, result, node):
    """Warns if a hook on the output's node misses some of the gradients that it should see."""
    def warn(how, missing):
        warnings.warn(f"Using {how} deprecated. This hook will be missing "
                      f"{missing}. Please use register_full_backward_hook to get the documented behavior.",
                      UserWarning, stacklevel=5)

    def all_tensors(values):
        return isinstance(values, tuple) and all(isinstance(v, Tensor) for v in values)

    results, args = _as_tuple(result), _as_tuple(args)
    if not all_tensors(results):
        return warn("non-full backward hooks on a Module that does not return a single Tensor or a tuple of Tensors is",
                    "some of the grad_output")
    if not all_tensors(args):
        return warn("non-full backward hooks on a Module that does not take as input a single Tensor or a tuple of Tensors "
                    "is", "some of the grad_input")
    if len({r.grad_fn for r in results if r.grad_fn is not None}) > 1:
        return warn("a non-full backward hook when outputs are generated by different autograd Nodes is",
                    "some grad_output")
    before = {next_node for next_node, _ in node.next_functions}
    given = {a.grad_fn if a.grad_fn is not None else _leaf_node(a) for a in args if a.requires_grad}
    if before != given:
        warn("a non-full backward hook when the forward contains multiple autograd Nodes is", "some grad_input")


def _leaf_node(leaf):
    return leaf.view_as(leaf).grad_fn.next_functions[0][0]


def _first_tensor(value):
    """The tensor whose node gets non-full hooks."""
    while not isinstance(value, Tensor):
        value = next(v for v in value.values() if isinstance(v, Tensor)) if isinstance(value, dict) else value[0]
    return value


def _hang_non_full(module, hooks, args, result):
    node = _first_tensor(result).grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(lambda gradients, outputs, hook=hook: hook(module, gradients, outputs))
    _warn_non_full(args, result, node)


def _before(module, args, kwargs):
    for hook, options in _of_all("forward_pre") + list(module._forward_pre_hooks.values()):
        if options["with_kwargs"]:
            changed = hook(module, args, kwargs)
            if changed is not None:
                if not isinstance(changed, tuple) or len(changed) != 2:
                    raise RuntimeError("forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                                       f"but got {changed}.")
                args, kwargs = changed
        else:
            changed = hook(module, args)
            if changed is not None:
                args = _as_tuple(changed)
    return args, kwargs


def call_with_hooks(module, args, kwargs):
    """Module.__call__ for modules with hooks."""
    own = [hook for hook, _ in module._backward_hooks.values()]
    full = [hook for hook, _ in _of_all("full_backward")] + (own if module._is_full_backward_hook else [])
    other = [hook for hook, _ in _of_all("backward")] + ([] if module._is_full_backward_hook else own)
    pre = [hook for hook, _ in _of_all("full_backward_pre") + list(module._backward_pre_hooks.values())]
    waiting = _of_all("forward") + list(module._forward_hooks.values())
    try:
        args, kwargs = _before(module, args, kwargs)
        backward = None
        if full or pre:
            backward = _FullBackward(module, full, pre)
            args = backward.enter(args)
        result = module.forward(*args, **kwargs)
        waiting = _of_all("forward") + list(module._forward_hooks.values())
        while waiting:
            hook, options = waiting.pop(0)
            changed = hook(module, args, kwargs, result) if options["with_kwargs"] else hook(module, args, result)
            result = result if changed is None else changed
        if backward:
            result = backward.leave(result)
        if other:
            _hang_non_full(module, other, args, result)
        return result
    except BaseException:
        for hook, options in waiting:
            if options["always_call"]:
                hook(module, args, kwargs, None) if options["with_kwargs"] else hook(module, args, None)
        raise
