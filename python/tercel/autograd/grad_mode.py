"""Contexts, which are also decorators, that set whether operations are recorded."""

import functools
import inspect

from tercel import _C

__all__ = ["no_grad", "enable_grad", "set_grad_enabled", "inference_mode"]


class _Mode:
    """Sets the mode on entry and restores it on exit."""

    def __init__(self, mode):
        self.mode = mode
        self.before = None

    def __enter__(self):
        self.before = _C.is_grad_enabled()
        _C._set_grad_enabled(self.mode)

    def __exit__(self, *_):
        _C._set_grad_enabled(self.before)

    def clone(self):
        """A new context with the same arguments."""
        return type(self)(self.mode)

    def __call__(self, function):
        if inspect.isgeneratorfunction(function):
            return self._decorate_generator(function)

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with self.clone():
                return function(*args, **kwargs)

        return wrapper

    def _decorate_generator(self, function):
        """Applies the mode while the generator runs, not while its caller does."""

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            generator = function(*args, **kwargs)
            step = functools.partial(next, generator)
            while True:
                try:
                    with self.clone():
                        value = step()
                except StopIteration as stop:
                    return stop.value
                try:
                    sent = yield value
                    step = functools.partial(generator.send, sent)
                except GeneratorExit:
                    with self.clone():
                        generator.close()
                    raise
                except BaseException as error:  # raised inside the generator
                    step = functools.partial(generator.throw, error)

        return wrapper


class _FixedMode(_Mode):
    _mode = True

    def __new__(cls, function=None):
        self = super().__new__(cls)
        if function is None:
            return self
        self.__init__()
        return self(function)  # @no_grad without parentheses

    def __init__(self, function=None):
        super().__init__(self._mode)

    def clone(self):
        return type(self)()


class no_grad(_FixedMode):
    """Disables recording inside."""

    _mode = False


class enable_grad(_FixedMode):
    """Enables recording inside, also within no_grad()."""


class set_grad_enabled(_Mode):
    """Enables or disables recording immediately; a with block restores it on exit."""

    def __init__(self, mode):
        super().__init__(bool(mode))
        self.before = _C.is_grad_enabled()
        _C._set_grad_enabled(self.mode)

    def __enter__(self):
        _C._set_grad_enabled(self.mode)

    def __call__(self, function):
        _C._set_grad_enabled(self.before)  # as a decorator it affects only the function
        return super().__call__(function)


class inference_mode(_Mode):
    """
    Disables recording inside; tensors created inside are inference tensors: they have no version counter and cannot be
    saved for backward later. inference_mode(False) disables an enclosing inference mode.
    """

    def __new__(cls, mode=True):
        if isinstance(mode, bool):
            return super().__new__(cls)
        return cls()(mode)

    def __init__(self, mode=True):
        super().__init__(not mode)
        self.inference_before = None

    def __enter__(self):
        super().__enter__()
        self.inference_before = _C.is_inference_mode_enabled()
        _C._set_inference_mode(not self.mode)

    def __exit__(self, *_):
        _C._set_inference_mode(self.inference_before)
        super().__exit__()

    def clone(self):
        """A new context with the same arguments."""
        return type(self)(not self.mode)
