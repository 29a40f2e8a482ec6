"""Exceptions that travel between processes."""

import sys
import traceback

__all__ = ["ExceptionWrapper", "KeyErrorMessage"]


class KeyErrorMessage(str):
    """Text that a KeyError prints as it is, not as the repr of a key."""

    def __repr__(self):
        return str(self)


class ExceptionWrapper:
    """The type of an exception that is being handled, and its traceback as text."""

    def __init__(self, exc_info=None, where="in background"):
        exc_info = sys.exc_info() if exc_info is None else exc_info
        self.exc_type = exc_info[0]
        self.exc_msg = "".join(traceback.format_exception(*exc_info))
        self.where = where

    def reraise(self):
        """Raises the exception with its traceback in the message; a RuntimeError if its type does not take one text."""
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            text = KeyErrorMessage(text)
        try:
            named = getattr(self.exc_type, "message", None)
            error = self.exc_type(message=text) if named else self.exc_type(text)
        except Exception:
            raise RuntimeError(text) from None
        raise error
