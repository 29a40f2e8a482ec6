"""Handles that remove hooks."""

import itertools

__all__ = ["RemovableHandle"]

_ids = itertools.count()


class RemovableHandle:
    """Removes its hook: by remove(), or at the end of a with block."""

    def __init__(self, registered):
        self.id = next(_ids)
        self._registered = registered

    def remove(self):
        """Removes the hook."""
        self._registered.remove()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()
