"""Tensors in NumPy's files and in Arrow columns."""

from typing import Any, Dict

from tercel import _C
from tercel._C import Tensor
from tercel._paths import reading, writing
from tercel.arrow import RecordBatch, from_arrow  # noqa: F401

__all__ = ["RecordBatch", "from_arrow", "load_npy", "load_npz", "save_npy", "save_npz"]


def save_npy(file: Any, tensor: Tensor) -> None:
    """Writes a tensor as numpy.save() does. TypeError for dtypes that NumPy lacks."""
    with writing(file) as path:
        _C._save_npy(path, tensor.detach() if isinstance(tensor, Tensor) else tensor)


def load_npy(file: Any, *, mmap: bool = False) -> Tensor:
    """
    The array of a .npy file. mmap=True maps the file, so that elements are read when they are used; writing to them does
    not change the file. DataError for a damaged file, and for objects, strings and dates.
    """
    with reading(file) as path:
        loaded: Tensor = _C._load_npy(path, mmap)
        return loaded


def save_npz(file: Any, tensors: Dict[str, Tensor], *, compressed: bool = False) -> None:
    """Writes a dict of tensors as numpy.savez() or numpy.savez_compressed() does."""
    with writing(file) as path:
        _C._save_npz(path, tensors, compressed)


def load_npz(file: Any, *, max_inflated_bytes: int = 0) -> Dict[str, Tensor]:
    """
    The arrays of a .npz file as a dict. The last argument limits the total size of decompressed arrays in bytes; 0: 1 GiB
    or 128 times the file's size, whichever is more. DataError for a damaged file.
    """
    with reading(file) as path:
        loaded: Dict[str, Tensor] = _C._load_npz(path, max_inflated_bytes)
        return loaded
