"""
Files of embedding vectors: Parquet with the columns `key` and `vector`, .npz with the arrays of these names, and .npy with
records of these fields.
"""

import os
from typing import Any, Tuple

import numpy as np

import tercel
from tercel import _C
from tercel._C import Tensor
from tercel._paths import replace_file
from tercel.io import load_npz, save_npz

__all__ = ["read_vectors", "write_vectors"]

_SUFFIXES = (".parquet", ".npz", ".npy")


def _suffix(path: str, what: str) -> str:
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in _SUFFIXES:
        raise ValueError(f"{what}: {path}: expected a name that ends in {', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}")
    return suffix


def _pyarrow(what: str) -> Tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError(f"{what}: Parquet files need pyarrow: pip install pyarrow") from None
    return pyarrow, pyarrow.parquet


def write_vectors(path: str, keys: Tensor, vectors: Tensor, what: str) -> None:
    """Writes keys [n] and vectors [n, dim]; the file appears when it is complete."""
    suffix = _suffix(path, what)
    if suffix == ".npz":
        save_npz(path, {"key": keys, "vector": vectors})
        return
    if suffix == ".npy":
        values = vectors.numpy()
        records = np.empty(keys.shape[0], [("key", "<i8"), ("vector", values.dtype, (vectors.shape[1],))])
        records["key"], records["vector"] = keys.numpy(), values
        replace_file(path, lambda file: np.save(file, records))
        return
    pa, parquet = _pyarrow(what)
    flat = pa.array(vectors.reshape(-1).numpy())
    table = pa.table({"key": pa.array(keys.numpy()),
                      "vector": pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])})
    replace_file(path, lambda file: parquet.write_table(table, file))


def read_vectors(path: str, what: str) -> Tuple[Tensor, Tensor]:
    """Keys [n] and vectors [n, dim]; DataError names the file and what is wrong with it."""
    suffix = _suffix(path, what)
    if suffix == ".npz":
        arrays = load_npz(path)
        _check_names(path, sorted(arrays))
        return arrays["key"], arrays["vector"]
    if suffix == ".npy":
        return _read_records(path)
    pa, parquet = _pyarrow(what)
    try:
        with parquet.ParquetFile(path) as file:
            _check_names(path, file.schema_arrow.names)
            table = file.read(columns=["key", "vector"])
    except FileNotFoundError:
        raise _C.IoError(f"{path}: cannot open: No such file or directory") from None
    except OSError as error:  # that of Arrow too
        raise _C.DataError(f"{path}: {error}") from None
    except pa.ArrowException as error:
        raise _C.DataError(f"{path}: {error}") from None
    keys, vectors = table["key"].combine_chunks(), table["vector"].combine_chunks()
    if not pa.types.is_integer(keys.type):
        raise _C.DataError(f"{path}: column 'key': expected integers, found {keys.type}")
    is_fixed = pa.types.is_fixed_size_list(vectors.type)
    is_list = is_fixed or pa.types.is_list(vectors.type) or pa.types.is_large_list(vectors.type)
    if not is_list or not pa.types.is_floating(vectors.type.value_type):
        raise _C.DataError(f"{path}: column 'vector': expected lists of float, found {vectors.type}")
    values = vectors.flatten()
    if keys.null_count or vectors.null_count or values.null_count:
        raise _C.DataError(f"{path}: there are nulls among keys and vectors")
    lengths = vectors.value_lengths().to_numpy()
    dim = vectors.type.list_size if is_fixed else int(lengths[0]) if len(lengths) else 0
    if (lengths != dim).any():
        row = int((lengths != dim).argmax())
        raise _C.DataError(f"{path}: row {row}: a vector of {lengths[row]} numbers, where others have {dim}")
    try:
        keys = keys.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise _C.DataError(f"{path}: column 'key': {error}") from None
    width = pa.float64() if vectors.type.value_type == pa.float64() else pa.float32()
    flat = values.cast(width).to_numpy(zero_copy_only=False)
    return (tercel.tensor(keys.to_numpy()), tercel.tensor(flat).reshape(len(keys), dim))


def _read_records(path: str) -> Tuple[Tensor, Tensor]:
    try:
        records = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise _C.IoError(f"{path}: cannot open: No such file or directory") from None
    except (OSError, ValueError, EOFError, SyntaxError) as error:
        raise _C.DataError(f"{path}: {error}") from None
    _check_names(path, getattr(getattr(records, "dtype", None), "names", None) or ())
    keys, vectors = records["key"], records["vector"]
    if records.ndim != 1 or keys.dtype.kind not in "iu" or keys.ndim != 1:
        raise _C.DataError(f"{path}: field 'key': expected an integer in each record, found {keys.dtype} of shape "
                           f"{keys.shape}")
    if vectors.ndim != 2 or vectors.dtype.kind != "f":
        raise _C.DataError(f"{path}: field 'vector': expected a list of floats in each record, found {vectors.dtype} of "
                           f"shape {vectors.shape}")
    if keys.dtype.kind == "u" and keys.size and keys.max() > np.iinfo(np.int64).max:
        raise _C.DataError(f"{path}: field 'key': expected keys that fit in int64, found {keys.max()}")
    width = np.float64 if vectors.dtype.itemsize >= 8 else np.float32
    return tercel.tensor(keys.astype(np.int64)), tercel.tensor(vectors.astype(width))


def _check_names(path: str, found: Any) -> None:
    for name in ("key", "vector"):
        if name not in found:
            raise _C.DataError(f"{path}: expected 'key' and 'vector', found {', '.join(map(repr, found)) or 'nothing'}")
