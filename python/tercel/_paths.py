"""Adapts file objects to functions that read and write by path."""

import contextlib
import io
import os
from typing import Any, Callable, Iterator

from tercel import _C


# shutil and tempfile import compression and random numbers: 4 ms, where the rest of this package takes 12. They are
# imported for the first file object.


@contextlib.contextmanager
def reading(file: Any) -> Iterator[Any]:
    """The path of a file; for an object with read(), the path of a copy of its remaining content."""
    if isinstance(file, (str, bytes, os.PathLike)):
        yield file
        return
    if not hasattr(file, "read"):
        raise TypeError(f"expected a path or a file object with read(), not {type(file).__name__}")
    import shutil
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file")
        with open(path, "wb") as copy:
            shutil.copyfileobj(file, copy)
        try:
            yield path
        except (_C.DataError, _C.IoError) as error:
            raise type(error)(str(error).replace(path, _name_of(file))) from None


@contextlib.contextmanager
def writing(file: Any) -> Iterator[Any]:
    """The path of a file to write; for an object with write(), a temporary file that is copied to it at the end."""
    if isinstance(file, (str, bytes, os.PathLike)):
        yield file
        return
    if not hasattr(file, "write"):
        raise TypeError(f"expected a path or a file object with write(), not {type(file).__name__}")
    import shutil
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file")
        yield path
        with open(path, "rb") as copy:
            shutil.copyfileobj(copy, file, io.DEFAULT_BUFFER_SIZE << 4)


def replace_file(path: str, write: "Callable[[Any], Any]") -> None:
    """write(file) into a file that then takes the place of `path`: none is half written, nor has the end of an older one."""
    temporary = f"{path}.tmp-{os.getpid()}"
    try:
        with open(temporary, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _name_of(file: Any) -> str:
    name = getattr(file, "name", None)
    return name if isinstance(name, str) else f"<{type(file).__name__}>"
