"""Functions that are called around a module's forward and backward.

Note [Backward hooks]
The module sees views of its inputs, and its caller views of its outputs: what reaches a view's gradient has gone through
this module and no other use of the tensor. A hook that replaces gradients of the inputs needs all of them at once, and
there is no node through which several pass together; so with more than one input it may look, but not replace.
"""

import itertools

from tercel._C import Tensor

_ids = itertools.count()


class HookHandle:
    """Takes a hook away again."""

    def __init__(self, hooks, hook, prepend=False, **options):
        self._hooks, self.id = hooks, next(_ids)
        hooks[self.id] = hook, options
        if prepend:
            hooks.move_to_end(self.id, last=False)

    def remove(self):
        self._hooks.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


def _as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


class _Backward:
    """One call's gradients on their way to the backward hooks."""

    def __init__(self, module):
        self.module = module
        self.grad_input, self.grad_output = [], []
        self.inputs_left = self.outputs = self.outputs_left = 0
        self.came_through = False

    def enter(self, args):
        """The arguments, those that need a gradient as views that tell it."""
        tracked = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a.requires_grad]
        self.grad_input = [None] * sum(isinstance(a, Tensor) for a in args)
        self.inputs_left = self.inputs = len(tracked)
        args = list(args)
        place = -1
        for i, a in enumerate(args):
            place += isinstance(a, Tensor)
            if i in tracked:
                args[i] = a.view_as(a)
                args[i].register_hook(lambda g, place=place: self._input(g, place))
        return tuple(args)

    def leave(self, output):
        if not isinstance(output, (Tensor, tuple)):
            return output
        outputs = list(_as_tuple(output))
        self.grad_output = [None] * sum(isinstance(o, Tensor) for o in outputs)
        place = -1
        for i, o in enumerate(outputs):
            place += isinstance(o, Tensor)
            if isinstance(o, Tensor) and o.requires_grad:
                self.outputs = self.outputs_left = self.outputs_left + 1
                outputs[i] = o.view_as(o)
                outputs[i].register_hook(lambda g, place=place: self._output(g, place))
        return outputs[0] if isinstance(output, Tensor) else tuple(outputs)

    def _output(self, gradient, place):
        self.grad_output[place] = gradient
        self.outputs_left -= 1
        if self.outputs_left > 0:
            return None
        self.outputs_left = self.outputs  # for the next pass
        self.came_through = True
        for hook, _ in list(self.module._backward_pre_hooks.values()):
            changed = hook(self.module, tuple(self.grad_output))
            if changed is not None:
                changed = _as_tuple(changed)
                if len(self.grad_output) != 1:
                    raise RuntimeError("Backward pre hooks of a module with several outputs cannot replace gradients")
                self.grad_output = list(changed)
        changed = self.grad_output[place]
        if self.inputs == 0:
            self._finish()
        return changed

    def _input(self, gradient, place):
        if not self.came_through:  # a second derivative reaches an input by another way than through the outputs
            return None
        self.grad_input[place] = gradient
        self.inputs_left -= 1
        return self._finish()[place] if self.inputs_left == 0 else None

    def _finish(self):
        """Calls the hooks; keeps no gradient, which may hold the graph that holds this."""
        self.inputs_left, self.came_through = self.inputs, False
        gradients = self._call(tuple(self.grad_input))
        self.grad_input = [None] * len(self.grad_input)
        self.grad_output = [None] * len(self.grad_output)
        return gradients

    def _call(self, gradients):
        for hook, _ in list(self.module._backward_hooks.values()):
            changed = hook(self.module, gradients, tuple(self.grad_output))
            if changed is None:
                continue
            changed = _as_tuple(changed)
            if len(changed) != len(gradients):
                raise RuntimeError("Backward hook returned an invalid number of grad_input, got "
                                   f"{len(changed)}, but expected {len(gradients)}")
            if self.inputs != 1:
                raise RuntimeError("Backward hooks of a module with several inputs cannot replace gradients")
            gradients = changed
        return gradients


def call_with_hooks(module, args, kwargs):
    """What Module.__call__ does where there are hooks."""
    called = set()
    try:
        for hook, options in list(module._forward_pre_hooks.values()):
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
        backward = None
        if module._backward_hooks or module._backward_pre_hooks:
            backward = _Backward(module)
            args = backward.enter(args)
        result = module.forward(*args, **kwargs)
        for key, (hook, options) in list(module._forward_hooks.items()):
            called.add(key)
            changed = hook(module, args, kwargs, result) if options["with_kwargs"] else hook(module, args, result)
            result = result if changed is None else changed
        return backward.leave(result) if backward else result
    except BaseException:
        for key, (hook, options) in list(module._forward_hooks.items()):
            if options["always_call"] and key not in called:
                hook(module, args, kwargs, None) if options["with_kwargs"] else hook(module, args, None)
        raise
