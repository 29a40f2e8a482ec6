"""What takes a hook away again."""

import itertools

__all__ = ["RemovableHandle"]

_ids = itertools.count()


class RemovableHandle:
    """Removes the hook that it was given out for: remove(), or the end of a with block."""

    def __init__(self, registered):
        self.id = next(_ids)
        self._registered = registered

    def remove(self):
        """The hook is not called any more."""
        self._registered.remove()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()
