"""What tercel.compile() makes of a module."""

from tercel.nn.module import Module


class OptimizedModule(Module):
    """A module as the child `_orig_mod`, which it calls. Attributes are those of the child, keys of its state begin with
    `_orig_mod.`"""

    def __init__(self, mod):
        super().__init__()
        del self.__dict__["training"]  # the child's
        self.__dict__["_own"] = frozenset(self.__dict__)
        self._modules["_orig_mod"] = mod

    def forward(self, *args, **kwargs):
        return self._orig_mod(*args, **kwargs)

    def __getattr__(self, name):
        module = self.__dict__.get("_modules", {}).get("_orig_mod")
        if module is None or name.startswith("__"):  # copies and pickles are of both modules
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return module if name == "_orig_mod" else getattr(module, name)

    def __setattr__(self, name, value):
        if name == "_orig_mod" or name in self.__dict__["_own"]:
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name):
        delattr(self._orig_mod, name)

    def __dir__(self):
        return dir(self._orig_mod)

    def __len__(self):
        return len(self._orig_mod)
