"""Tensors and containers of tensors in .pt files, the format of torch.save() and torch.load()."""

from typing import Any

from tercel import _C
from tercel._paths import reading, writing

__all__ = ["load", "save"]


def save(obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int = 2,
         _use_new_zipfile_serialization: bool = True) -> None:
    """
    Writes an object to a path, or to a file object with write().

    Supports tensors, numbers, strings, bytes, None, dtypes, devices, sizes, and lists, tuples and dicts (OrderedDicts) of
    these, hence any state_dict(). Shared objects stay shared, also tensors over one storage, which is written whole. A
    path is replaced atomically: if writing fails, the old file remains. torch.load() reads the file, also with
    weights_only. TypeError for other objects, ValueError for an object that contains itself.
    """
    if not _use_new_zipfile_serialization:
        raise NotImplementedError("files of torch before 1.6 cannot be written")
    with writing(f) as path:
        _C._save_pt(path, obj)


def load(f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: Any = True, mmap: Any = False,
         **pickle_load_args: Any) -> Any:
    """
    Reads a file written by save() or torch.save(), from a path or a file object with read().

    No code from the file is run, whatever `weights_only` is: classes and functions other than those of tensors and
    containers are a DataError, as is a damaged file. Tensors are loaded to the CPU, the only supported `map_location`.
    mmap=True maps the file, so that elements are read when they are used; writing to them does not change the file.
    """
    _check_location(map_location)
    with reading(f) as path:
        return _C._load_pt(path, bool(mmap))


def _check_location(location: Any) -> None:
    """Checks map_location. Callables, which torch calls for each storage, are ignored: storages are on the CPU already."""
    if location is None or callable(location):
        return
    for device in location.values() if isinstance(location, dict) else (location,):
        if _C.device(device).type != "cpu":
            raise NotImplementedError(f"map_location={location!r}: tensors are loaded to the CPU only")
