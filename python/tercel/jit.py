"""PyTorch's TorchScript API: nothing is compiled, and Python runs every function.

Functions that would compile a function or a module return it unchanged, so results are the same. Each of them warns
once per process, because the files, serialized graphs and speed that a program may expect do not exist.
"""

import builtins
import types
import typing
import warnings

from tercel.nn.module import Module

__all__ = ["Attribute", "CompilationUnit", "Error", "Final", "RecursiveScriptModule", "ScriptFunction", "ScriptModule",
           "TracerWarning", "annotate", "enable_onednn_fusion", "export", "fork", "freeze", "ignore", "interface", "is_scripting",
           "is_tracing", "isinstance", "load", "onednn_fusion_enabled", "optimize_for_inference", "save", "script",
           "script_if_tracing", "script_method", "set_fusion_strategy", "strict_fusion", "trace", "trace_module", "unused",
           "wait"]

from typing import Final  # noqa: E402

_warned = set()


def _as_it_is(name, value):
    if name not in _warned:
        _warned.add(name)
        warnings.warn(f"tercel.jit.{name}: nothing is compiled; the argument is returned unchanged", stacklevel=3)
    return value


def is_scripting():
    """Whether compiled code is running: always False."""
    return False


def is_tracing():
    """Whether a call is being traced: always False."""
    return False


def annotate(the_type, the_value):
    """The value; the type annotation is for a compiler."""
    return the_value


def Attribute(value, type):  # noqa: A002, N802
    """The value; the type annotation is for a compiler."""
    return value


def export(fn):
    """The function itself."""
    return fn


def unused(fn):
    """The function itself."""
    return fn


def ignore(drop=False, **kwargs):
    """Decorates functions that the compiler should skip, with or without arguments."""
    return drop if callable(drop) else lambda fn: fn


def interface(obj):
    """The class itself."""
    return obj


def script_method(fn):
    """The method itself."""
    return fn


def script_if_tracing(fn):
    """The function itself."""
    return fn


_script_if_tracing = script_if_tracing


def isinstance(obj, target_type):  # noqa: A001
    """Whether it is of a type, or of one of a tuple of them: also List[T], Dict[K, V], Tuple[T, ...], Optional and Union."""
    if builtins.isinstance(target_type, tuple):
        return any(isinstance(obj, kind) for kind in target_type)
    for kind, name in ((list, "List"), (dict, "Dict"), (tuple, "Tuple"), (None, "Optional")):
        if target_type is getattr(typing, name) or (kind is not None and target_type is kind):
            raise RuntimeError(f"Attempted to use {name} without a contained type. Please add a contained type, e.g. {name}[int]")
    kind, inner = typing.get_origin(target_type), typing.get_args(target_type)
    if kind is typing.Union or kind is getattr(types, "UnionType", typing.Union):
        return any(isinstance(obj, one) for one in inner)
    if kind is None:
        return builtins.isinstance(obj, type(None) if target_type is None else target_type)
    if not builtins.isinstance(obj, kind):
        return False
    if kind is list:
        return all(isinstance(x, inner[0]) for x in obj)
    if kind is dict:
        return all(isinstance(k, inner[0]) and isinstance(v, inner[1]) for k, v in obj.items())
    return kind is tuple and len(obj) == len(inner) and all(map(isinstance, obj, inner))


def script(obj, *args, **kwargs):
    """The function, class or module itself, and one warning."""
    return _as_it_is("script", obj)


def trace(func, *args, **kwargs):
    """The function or module itself, and one warning."""
    return _as_it_is("trace", func)


def trace_module(mod, inputs, *args, **kwargs):
    """The module itself, and one warning."""
    return _as_it_is("trace_module", mod)


def freeze(mod, *args, **kwargs):
    """The module itself, which must be in evaluation mode."""
    if mod.training:
        raise RuntimeError("Freezing is currently only implemented for modules in eval mode. Please call .eval() on your "
                           "module before freezing.")
    return mod


def optimize_for_inference(mod, other_methods=None):
    """The module itself, in evaluation mode."""
    return freeze(mod.eval())


def fork(func, *args, **kwargs):
    """Calls the function immediately; wait() returns its result."""
    return _Done(func(*args, **kwargs))


def wait(future):
    """The result of a function called by fork()."""
    return future.wait()


class _Done:
    def __init__(self, value):
        self._value = value

    def wait(self):
        return self._value

    value = wait

    def done(self):
        return True


class Error(RuntimeError):
    """The error that PyTorch's compiled functions raise; never raised here."""


class TracerWarning(Warning):
    """What PyTorch warns of when it records a call as a graph; nothing does here."""


class CompilationUnit:
    """NotImplementedError: source of PyTorch's compiler cannot be run."""

    def __init__(self, lang=None, _frames_up=0):
        raise NotImplementedError("tercel.jit.CompilationUnit: nothing is compiled here; write a Python function")


class ScriptFunction:
    """The type of PyTorch's compiled functions, for isinstance(); no function has it."""


class ScriptModule(Module):
    """A module whose methods PyTorch would compile."""


class RecursiveScriptModule(ScriptModule):
    """The type of PyTorch's compiled modules, for isinstance(): no module is of it. NotImplementedError."""

    def __init__(self, cpp_module=None):
        raise NotImplementedError("tercel.jit.RecursiveScriptModule: nothing is compiled here")


class strict_fusion:  # noqa: N801
    """A context that would report operations that are not fused: it does nothing."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def save(m, f, _extra_files=None):
    """Raises NotImplementedError: there is no compiled program to save."""
    raise NotImplementedError("tercel.jit.save: modules are not compiled; save module.state_dict() with tercel.save")


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    """Raises NotImplementedError: compiled programs cannot be run."""
    raise NotImplementedError("tercel.jit.load: compiled modules cannot be run; load a state_dict into the module's class")


def set_fusion_strategy(strategy):
    """Does nothing; returns an empty list of previous strategies."""
    return []


def enable_onednn_fusion(enabled):
    """Does nothing: operations are not fused."""


def onednn_fusion_enabled():
    """Never."""
    return False
