"""Forward mode: values that carry a tangent, the derivative along a direction."""

from collections import namedtuple

from tercel import _C

__all__ = ["UnpackedDualTensor", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual", "dual_level"]

UnpackedDualTensor = namedtuple("UnpackedDualTensor", ["primal", "tangent"])
UnpackedDualTensor.__doc__ = "What unpack_dual() returns: the tensor without its tangent, and the tangent or None."


def _level():
    return _C._current_dual_level()


def __getattr__(name):
    if name == "_current_level":
        return _level()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def enter_dual_level():
    """
    Begins a level, in which tensors may carry tangents, on this thread; returns its number. RuntimeError inside another.
    """
    return _C._enter_dual_level()


def exit_dual_level(*, level=None):
    """Ends the level: tangents are gone. RuntimeError when `level` is not the last that was entered."""
    if level is not None and level != _level():
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created. This is not "
                           "supported.")
    _C._exit_dual_level()


def make_dual(tensor, tangent, *, level=None):
    """
    A tensor over the same elements that carries the tangent, of the same sizes and dtype. ValueError unless both are of
    floating or complex dtype; RuntimeError outside of a dual level, or where sizes or dtypes differ.
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
    """Whether operations give their results tangents; as a function, for good, or as a context."""

    def __init__(self, mode):
        self.before = _C._is_fwd_grad_enabled()
        _C._set_fwd_grad_enabled(mode)

    def __enter__(self):
        pass

    def __exit__(self, *_):
        _C._set_fwd_grad_enabled(self.before)


def _is_fwd_grad_enabled():
    return _C._is_fwd_grad_enabled()
