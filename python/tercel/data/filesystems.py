"""File systems of Python programs, by the schemes of URLs."""

import re
import zlib
from typing import Any, List, Optional, Tuple

from tercel import _C

__all__ = ["register_filesystem"]


class _File:
    """What the library reads: a size, a version that changes with the content, and ranges of bytes."""

    def __init__(self, filesystem: Any, path: str, size: int, version: str) -> None:
        self._filesystem, self._path, self.size = filesystem, path, size
        self.version = zlib.crc32(version.encode()) if version else 0


class _FsspecFile(_File):
    def read(self, size: int, offset: int) -> bytes:
        content: bytes = self._filesystem.cat_file(self._path, start=offset, end=offset + size)
        return content


class _ArrowFile(_File):
    def read(self, size: int, offset: int) -> bytes:
        with self._filesystem.open_input_file(self._path) as file:
            content: bytes = file.read_at(size, offset)
            return content


class _Fsspec:
    """A file system of fsspec."""

    def __init__(self, filesystem: Any) -> None:
        self._filesystem = filesystem

    def _found(self, url: str) -> Tuple[Any, str]:
        return self._filesystem, _rest_of(url)

    def info(self, url: str) -> Optional[Tuple[bool, int]]:
        filesystem, path = self._found(url)
        # Listings are kept by file systems; a file that was replaced would look as it was.
        filesystem.invalidate_cache()
        try:
            info = filesystem.info(path)
        except FileNotFoundError:
            return None
        return info["type"] == "directory", int(info["size"] or 0)

    def list(self, url: str) -> List[str]:
        filesystem, path = self._found(url)
        names = [str(name).rstrip("/").rsplit("/", 1)[-1] for name in filesystem.ls(path, detail=False)]
        return [name for name in names if name]

    def open(self, url: str) -> _File:
        filesystem, path = self._found(url)
        filesystem.invalidate_cache()
        info = filesystem.info(path)
        if info["type"] == "directory" or info["size"] is None:
            raise OSError("expected a file with a size")
        names = ("ETag", "etag", "LastModified", "mtime", "updated", "last_modified", "created")
        return _FsspecFile(filesystem, path, int(info["size"]),
                           " ".join(str(info[name]) for name in names if info.get(name)))


class _AnyFsspec(_Fsspec):
    """The file system that fsspec knows for a URL."""

    def __init__(self) -> None:
        pass

    def _found(self, url: str) -> Tuple[Any, str]:
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise OSError("expected the package fsspec, which opens such URLs, found none; pip install fsspec") from None
        filesystem, path = url_to_fs(url)
        return filesystem, path


class _Arrow:
    """A file system of pyarrow.fs."""

    def __init__(self, filesystem: Any) -> None:
        self._filesystem = filesystem

    def _info(self, url: str) -> Any:
        return self._filesystem.get_file_info(_rest_of(url))

    def info(self, url: str) -> Optional[Tuple[bool, int]]:
        info = self._info(url)
        if info.type.name == "NotFound":
            return None
        return info.type.name == "Directory", int(info.size or 0)

    def list(self, url: str) -> List[str]:
        from pyarrow.fs import FileSelector
        return [entry.base_name for entry in self._filesystem.get_file_info(FileSelector(_rest_of(url)))]

    def open(self, url: str) -> _File:
        info = self._info(url)
        if not info.is_file:
            raise FileNotFoundError("expected a file, found none")
        return _ArrowFile(self._filesystem, info.path, info.size, str(info.mtime_ns))


def _rest_of(url: str) -> str:
    return url.split("://", 1)[1]


def register_filesystem(scheme: str, filesystem: Any) -> None:
    """
    Lets paths "<scheme>://<path>" of datasets and input files name the file <path> of a file system of fsspec or
    pyarrow.fs. A scheme that is known, also "s3", "gs", "http" or "https", is replaced. Without it, URLs of other
    schemes are opened by fsspec, where it is installed. The file system is called by the threads of readers.

    ValueError for a scheme with other characters than small letters, digits, "+", "-" and "."; TypeError for an object
    that is no file system.
    """
    if not isinstance(scheme, str) or not re.fullmatch(r"[a-z][a-z0-9+.-]*", scheme):
        raise ValueError(f"register_filesystem: expected a scheme such as 'store', found {scheme!r}")
    if callable(getattr(filesystem, "cat_file", None)) and callable(getattr(filesystem, "info", None)):
        _C._register_store(scheme, _Fsspec(filesystem))
    elif callable(getattr(filesystem, "open_input_file", None)) and callable(
            getattr(filesystem, "get_file_info", None)):
        _C._register_store(scheme, _Arrow(filesystem))
    else:
        raise TypeError("register_filesystem: expected a file system of fsspec or pyarrow.fs, not "
                        f"{type(filesystem).__name__}")


_C._register_store("", _AnyFsspec())
