"""Tensors and what holds them in .pt files, the format of torch.save() and torch.load()."""

from typing import Any

from tercel import _C
from tercel._paths import reading, writing

__all__ = ["load", "save"]


def save(obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int = 2,
         _use_new_zipfile_serialization: bool = True) -> None:
    """
    Writes an object to a path, or to a file object with write().

    Tensors, numbers, texts, bytes, None, dtypes, devices, sizes, and lists, tuples and dicts (OrderedDicts) of these:
    so any state_dict(). What is shared stays shared, tensors over one storage too, which is written whole. A path then
    has the new file or, if anything fails, the old one. torch.load() reads it, with weights_only as well. TypeError for
    other objects, ValueError for what holds itself.
    """
    if not _use_new_zipfile_serialization:
        raise NotImplementedError("files of torch before 1.6 cannot be written")
    with writing(f) as path:
        _C._save_pt(path, obj)


def load(f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: Any = True, mmap: Any = False,
         **pickle_load_args: Any) -> Any:
    """
    Reads what save() or torch.save() has written, from a path or a file object with read().

    Nothing in the file is run, whatever `weights_only` says: classes and functions other than those of tensors and
    containers are a DataError, as is a damaged file. Tensors come to the CPU, the one `map_location` there is. mmap=True
    leaves the elements in the file until they are used; writing to them does not change it.
    """
    _check_location(map_location)
    with reading(f) as path:
        return _C._load_pt(path, bool(mmap))


def _check_location(location: Any) -> None:
    """A callable, as torch allows, would be asked for each storage where it goes: they are on the CPU already."""
    if location is None or callable(location):
        return
    for device in location.values() if isinstance(location, dict) else (location,):
        if _C.device(device).type != "cpu":
            raise NotImplementedError(f"map_location={location!r}: tensors are loaded to the CPU only")
