"""PyTorch's compiler API: nothing is compiled, operations run eagerly and functions are returned unchanged."""

__all__ = ["allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable", "is_compiling",
           "is_dynamo_compiling", "is_exporting", "list_backends", "reset", "set_stance"]


def _decorator(fn):
    return (lambda function: function) if fn is None else fn


def compile(model=None, *, fullgraph=False, dynamic=None, backend=None, mode=None, options=None, name=None,  # noqa: A001
            disable=False, recompile_limit=None, isolate_recompiles=False, dynamic_shapes=None):
    """The function itself, or a module that calls a module, which is its child `_orig_mod`; without one, a decorator."""
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if model is None:
        return compile
    from tercel.nn.module import Module
    if not isinstance(model, Module):
        return model
    from tercel._dynamo.eval_frame import OptimizedModule
    return model if isinstance(model, OptimizedModule) else OptimizedModule(model)


def disable(fn=None, recursive=True, *, reason=None):
    """The function itself; without one, a decorator that returns what it decorates."""
    return _decorator(fn)


def allow_in_graph(fn):
    """The function, or the list of functions, itself."""
    return fn


def assume_constant_result(fn):
    """The function itself."""
    return fn


class set_stance:  # noqa: N801
    """A context or decorator for compiler settings: it does nothing."""

    def __init__(self, stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
        self.stance = stance

    def __call__(self, fn):
        return fn

    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


def is_compiling():
    """Never."""
    return False


def is_dynamo_compiling():
    """Never."""
    return False


def is_exporting():
    """Never."""
    return False


def list_backends(exclude_tags=()):
    """The available compilers: none."""
    return []


def reset():
    """Does nothing: nothing was compiled."""


def cudagraph_mark_step_begin():
    """Does nothing: there is no GPU."""
