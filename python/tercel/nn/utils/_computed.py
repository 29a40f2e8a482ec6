"""Weights that are computed from other parameters before each call of their module.

Note [Computed weights]
The parameter is replaced by a plain attribute, a tensor of the graph, which a forward pre-hook recomputes. So the layer's
forward() is unchanged, and state dicts contain the parameters that the weight is computed from.
"""


class ComputedWeight:
    """The forward pre-hook; subclasses define the computation."""

    kind = ""

    def __init__(self, name):
        self.name = name
        self.handles = []

    def compute_weight(self, module):
        """Computes the weight from the module's parameters."""
        raise NotImplementedError(type(self).__name__)

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module))

    def hang_on(self, module):
        """Registers the hook."""
        self.handles.append(module.register_forward_pre_hook(self))

    @classmethod
    def find(cls, module, name):
        """The module's hook for a parameter, or None."""
        hooks = (hook for hook, _ in module._forward_pre_hooks.values())
        return next((hook for hook in hooks if isinstance(hook, cls) and hook.name == name), None)

    @classmethod
    def check_free(cls, module, name):
        """RuntimeError if the parameter already has such a hook."""
        if cls.find(module, name) is not None:
            raise RuntimeError(f"Cannot register two {cls.kind} hooks on the same parameter {name}")

    @classmethod
    def take_away(cls, module, name):
        """Removes the hook, and makes the weight a parameter again."""
        hook = cls.find(module, name)
        if hook is None:
            raise ValueError(f"{cls.kind} of '{name}' not found in {module}")
        hook.restore(module)
        for handle in hook.handles:
            handle.remove()
        return module
