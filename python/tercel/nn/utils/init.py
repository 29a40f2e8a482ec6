"""Construction of modules without initialization."""

import inspect

from tercel.nn.module import Module


def skip_init(module_cls, *args, **kwargs):
    """module_cls(*args, **kwargs) without the call of reset_parameters(), for callers that fill the parameters.

    Submodules, and values that are not set in reset_parameters(), are initialized as usual.
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    silent = type(module_cls.__name__, (module_cls,), {"reset_parameters": lambda self: None})
    module = silent(*args, **kwargs)
    module.__class__ = module_cls
    return module
