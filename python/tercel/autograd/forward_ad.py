"""Forward mode: values that carry a tangent, the derivative along a direction."""

from collections import namedtuple

from tercel import _C

__all__ = ["UnpackedDualTensor", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual", "dual_level"]

UnpackedDualTensor = namedtuple("UnpackedDualTensor", ["primal", "tangent"])
UnpackedDualTensor.__doc__ = "The result of unpack_dual(): the tensor without its tangent, and the tangent or None."


def _level():
    return _C._current_dual_level()


def __getattr__(name):
    if name == "_current_level":
        return _level()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def enter_dual_level():
    """
    Enters a level, in which tensors can carry tangents, on this thread; returns its number. RuntimeError inside another.
    """
    return _C._enter_dual_level()


def exit_dual_level(*, level=None):
    """Exits the level and drops its tangents. RuntimeError if `level` is not the one entered last."""
    if level is not None and level != _level():
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created. This is not "
                           "supported.")
    _C._exit_dual_level()


def make_dual(tensor, tangent, *, level=None):
    """
    A view of the tensor that carries the tangent. ValueError unless both have a floating-point or complex dtype;
    RuntimeError outside of a dual level, or if sizes or dtypes differ.
    """
    return _C._make_dual(tensor, tangent)


def unpack_dual(tensor, *, level=None):
    """(primal, tangent) of a tensor; the tangent is None for one that carries none, or outside of a dual level."""
    if (_level() if level is None else level) < 0:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(*_C._unpack_dual(tensor))


class dual_level:
    """
    The context in which tensors may carry tangents::

        with forward_ad.dual_level():
            y = f(forward_ad.make_dual(x, v))
            jvp = forward_ad.unpack_dual(y).tangent

    All operations with a backward that can be differentiated have tangents. Levels cannot be nested.
    """

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, *_):
        exit_dual_level()


class _set_fwd_grad_enabled:
    """Enables or disables tangents of results; called as a function, permanently, or as a context."""

    def __init__(self, mode):
        self.before = _C._is_fwd_grad_enabled()
        _C._set_fwd_grad_enabled(mode)

    def __enter__(self):
        pass

    def __exit__(self, *_):
        _C._set_fwd_grad_enabled(self.before)


def _is_fwd_grad_enabled():
    return _C._is_fwd_grad_enabled()
