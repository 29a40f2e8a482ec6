"""Batches from lists of samples."""

import collections.abc
import copy
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Type, Union

import numpy as np

import tercel
from tercel import Tensor

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]

CollateFunctions = Dict[Union[Type[Any], Tuple[Type[Any], ...]], Callable[..., Any]]


def _holds_no_numbers(dtype: Any) -> bool:
    return dtype.kind in "SUO"


def _like(original: Any, keys: Any, parts: Sequence[Any]) -> Any:
    """A mapping or sequence of the original's type with other values; a dict or a list if its type cannot be made."""
    mapping = isinstance(original, collections.abc.Mapping)
    mutable = collections.abc.MutableMapping if mapping else collections.abc.MutableSequence
    try:
        if isinstance(original, mutable):
            clone: Any = copy.copy(original)  # keeps what else its type holds
            for key, part in zip(keys, parts):
                clone[key] = part
            return clone
        return type(original)(dict(zip(keys, parts)) if mapping else parts)
    except TypeError:
        return dict(zip(keys, parts)) if mapping else list(parts)


def default_convert(data: Any) -> Any:
    """NumPy arrays and numbers in nested containers as tensors; anything else unchanged.

    Tuples become lists, except named tuples. Arrays of texts and objects stay arrays.
    """
    kind = type(data)
    if isinstance(data, Tensor):
        return data
    if kind.__module__ == "numpy" and kind.__name__ not in ("str_", "bytes_"):
        if isinstance(data, np.ndarray) and _holds_no_numbers(data.dtype):
            return data
        return tercel.as_tensor(data)
    if isinstance(data, collections.abc.Mapping):
        return _like(data, list(data), [default_convert(data[key]) for key in data])
    if isinstance(data, tuple):
        parts = [default_convert(part) for part in data]
        return kind(*parts) if hasattr(data, "_fields") else parts
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, (str, bytes)):
        return _like(data, range(len(data)), [default_convert(part) for part in data])
    return data


def _cannot_collate(what: Any) -> TypeError:
    return TypeError("default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
                     f"found {what}")


def collate(batch: Any, *, collate_fn_map: Optional[CollateFunctions] = None) -> Any:
    """A batch of samples that are of one structure: containers of what the functions of the map make of their parts.

    The function for a part is that of its type, else the first whose type it is an instance of; it is called with the
    list of parts and collate_fn_map. RuntimeError for sequences of different lengths, TypeError where no function fits.
    """
    sample = batch[0]
    kind = type(sample)
    if collate_fn_map is not None:
        function = collate_fn_map.get(kind)
        if function is None:
            function = next((f for types, f in collate_fn_map.items() if isinstance(sample, types)), None)
        if function is not None:
            return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(sample, collections.abc.Mapping):
        parts = [collate([other[key] for other in batch], collate_fn_map=collate_fn_map) for key in sample]
        return _like(sample, list(sample), parts)
    if isinstance(sample, tuple) and hasattr(sample, "_fields"):
        return kind(*(collate(part, collate_fn_map=collate_fn_map) for part in zip(*batch)))
    if isinstance(sample, collections.abc.Sequence):
        length = len(sample)
        if not all(len(other) == length for other in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = [collate(part, collate_fn_map=collate_fn_map) for part in zip(*batch)]
        return parts if isinstance(sample, tuple) else _like(sample, range(length), parts)
    raise _cannot_collate(kind)


def _collate_tensors(batch: Sequence[Tensor], *, collate_fn_map: Any = None) -> Tensor:
    for which, found in (("nested", batch[0].is_nested), ("sparse", batch[0].layout is not tercel.strided)):
        if found:
            raise RuntimeError(f"Batches of {which} tensors are not currently supported by the default collate_fn; please "
                               "provide a custom collate_fn to handle them appropriately.")
    return tercel.stack(batch, 0)


def _collate_arrays(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    if _holds_no_numbers(batch[0].dtype):
        raise _cannot_collate(batch[0].dtype)
    return collate([tercel.as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def _collate_numpy_scalars(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Tensor:
    return tercel.as_tensor(batch)


def _collate_floats(batch: Sequence[float], *, collate_fn_map: Any = None) -> Tensor:
    return tercel.tensor(batch, dtype=tercel.float64)


def _collate_ints(batch: Sequence[int], *, collate_fn_map: Any = None) -> Tensor:
    return tercel.tensor(batch)


def _collate_texts(batch: Any, *, collate_fn_map: Any = None) -> Any:
    return batch


default_collate_fn_map: CollateFunctions = {
    Tensor: _collate_tensors, np.ndarray: _collate_arrays, (np.bool_, np.number, np.object_): _collate_numpy_scalars,
    float: _collate_floats, int: _collate_ints, str: _collate_texts, bytes: _collate_texts,
}


def default_collate(batch: List[Any]) -> Any:
    """A batch of samples: tensors, arrays and numbers stacked along a new first dimension.

    Samples may be mappings, named tuples and sequences, of texts too; these stay as they are, except that tuples become
    lists. Floats become float64. RuntimeError for tensors of different sizes and sequences of different lengths, TypeError
    for other types.
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
