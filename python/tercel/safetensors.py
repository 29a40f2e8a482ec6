"""Tensors in safetensors files, with the functions of the safetensors package."""

import io
from typing import Any, Dict, List, Optional

from tercel import _C
from tercel._C import Tensor
from tercel._paths import reading, writing

__all__ = ["load", "load_file", "safe_open", "save", "save_file"]


def _check_sharing(tensors: Dict[str, Tensor]) -> None:
    """
    RuntimeError for tensors that share bytes: they would be written twice, and be separate after loading. ValueError for
    sparse tensors.
    """
    sparse = {name for name, t in tensors.items() if t.is_sparse}
    if sparse:
        raise ValueError(f"You are trying to save a sparse tensor: `{sparse}` which this library does not support. You can "
                         "make it a dense tensor before saving with `.to_dense()` but be aware this might make a much "
                         "larger file than needed.")
    ranges = sorted((t.data_ptr(), t.data_ptr() + t.nbytes, name) for name, t in tensors.items() if t.numel() > 0)
    for (_, end, name), (begin, _, other) in zip(ranges, ranges[1:]):
        if begin < end:
            raise RuntimeError(f"Some tensors share memory, this will lead to duplicate memory on disk and potential "
                               f"differences when loading them again: {{{name!r}, {other!r}}}. Save one of them, or "
                               f"clones.")


def save_file(tensors: Dict[str, Tensor], filename: Any, metadata: Optional[Dict[str, str]] = None) -> None:
    """
    Writes a dict of tensors and a dict of metadata strings. ValueError for a tensor that is not contiguous, RuntimeError
    for tensors that share memory.
    """
    if isinstance(tensors, dict) and all(isinstance(t, Tensor) for t in tensors.values()):
        _check_sharing(tensors)
    with writing(filename) as path:
        _C._save_safetensors(path, tensors, metadata)


def save(tensors: Dict[str, Tensor], metadata: Optional[Dict[str, str]] = None) -> bytes:
    """The bytes that save_file() would write."""
    file = io.BytesIO()
    save_file(tensors, file, metadata)
    return file.getvalue()


def load_file(filename: Any, device: Any = "cpu") -> Dict[str, Tensor]:
    """All tensors of a file as a dict. DataError for a damaged one."""
    _check_device(device)
    with reading(filename) as path:
        loaded: Dict[str, Tensor] = _C._load_safetensors(path, False)
        return loaded


def load(data: bytes) -> Dict[str, Tensor]:
    """All tensors of the bytes of a file."""
    return load_file(io.BytesIO(data))


def _check_device(device: Any) -> None:
    if _C.device(device).type != "cpu":
        raise NotImplementedError(f"device={device!r}: tensors are loaded to the CPU only")


class safe_open:  # noqa: N801 - the package's name
    """
    Opens a file whose tensors are read one by one.

        with safe_open("model.safetensors", framework="pt") as f:
            for name in f.keys():
                tensor = f.get_tensor(name)

    `framework` is accepted for compatibility: tensors are always Tercel's. DataError for a damaged file.
    """

    def __init__(self, filename: Any, framework: str = "pt", device: Any = "cpu") -> None:
        _check_device(device)
        self._reader: Any = _C._SafetensorsReader(filename, True)

    def __enter__(self) -> "safe_open":
        return self

    def __exit__(self, *_: Any) -> None:
        self._reader = None

    def _open(self) -> Any:
        if self._reader is None:
            raise ValueError("I/O operation on a closed file")
        return self._reader

    def keys(self) -> List[str]:
        """The names, in the order of the file."""
        return list(self._open().keys())

    offset_keys = keys

    def metadata(self) -> Optional[Dict[str, str]]:
        """The header's metadata strings; None if there are none."""
        return self._open().metadata() or None

    def get_tensor(self, name: str) -> Tensor:
        """Reads a tensor. KeyError for an unknown name."""
        mapped: Tensor = self._open().read(name)
        return mapped.clone()

    def get_slice(self, name: str) -> "_Slice":
        """An object that reads parts of a tensor: f.get_slice(name)[:, 2:5]. KeyError for an unknown name."""
        return _Slice(self._open(), name)


_NAMES = {"bool": "BOOL", "bfloat16": "BF16"}


class _Slice:
    def __init__(self, reader: Any, name: str) -> None:
        self._dtype, self._shape = reader.describe(name)
        self._reader, self._name = reader, name

    def get_shape(self) -> List[int]:
        """The sizes of the whole tensor."""
        return list(self._shape)

    def get_dtype(self) -> str:
        """The format's name of the dtype: "F32"."""
        name: str = self._dtype._name
        return _NAMES.get(name) or name[0].upper() + "".join(c for c in name if c.isdigit())

    def __getitem__(self, key: Any) -> Tensor:
        mapped: Tensor = self._reader.read(self._name)
        return mapped[key].clone()
