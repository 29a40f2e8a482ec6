"""
HugeCTR's files of a model: dense weights, tables, states of optimizers, and dumps of collections.

Dense weights are all parameters in the order of the layers, float32 without a header. A table is a folder with its keys
(`key`, int64) and vectors (`emb_vector`, float32), and slots (`slot_id`, uint64) of a LocalizedSlot embedding. What
HugeCTR reads without a look at its size is checked here.
"""

import json
import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

import tercel as tc
import tercel.recsys as tr
from tercel import _C
from tercel._paths import replace_file
from tercel.hugectr.tables import Table

__all__ = ["dump_collection", "load_collection", "load_dense", "load_dense_states", "load_table", "load_table_states",
           "save_dense", "save_dense_states", "save_table", "save_table_states"]

_ALIGNMENT = 256
_HEADER = 32  # int32 numbers before the keys and the vectors of a dump
_KEY, _WEIGHT = 1, 2


def _read(path: str, dtype: Any, count: int, what: str) -> Any:
    """The numbers of a file; DataError unless there are exactly `count`."""
    expected = count * np.dtype(dtype).itemsize
    try:
        size = os.path.getsize(path)
        if size != expected:
            raise _C.DataError(f"{path}: expected {expected:,} bytes, {what}, found {size:,}")
        return np.fromfile(path, dtype=dtype)
    except OSError as error:
        raise _C.IoError(f"{path}: {error.strerror}") from None


def _set(tensor: Any, values: Any) -> None:
    tensor.copy_(tc.from_numpy(np.ascontiguousarray(values)).reshape(tensor.shape))


def _normal_layers(layers: Sequence[Dict[str, Any]]) -> List[str]:
    return [layer["top"] for layer in layers if layer["type"] == "BatchNorm"]


def save_dense(path: str, session: tr.Session, layers: Sequence[Dict[str, Any]]) -> None:
    """All dense weights, and beside them the running statistics of BatchNorm layers, if there are some."""
    def write(file: Any) -> None:
        for tensor in session.parameters().values():
            file.write(tensor.numpy().astype("<f4").tobytes())

    replace_file(path, write)
    names, buffers = _normal_layers(layers), session.buffers()
    if names:
        rows = [{"type": "BatchNorm", "mean": buffers[f"{name}.running_mean"].numpy().tolist(),
                 "var": buffers[f"{name}.running_var"].numpy().tolist()} for name in names]
        text = json.dumps({"layers": rows}, indent=2).encode()
        replace_file(f"{path}.ntp.json", lambda file: file.write(text))


def load_dense(path: str, session: tr.Session, layers: Sequence[Dict[str, Any]]) -> None:
    """Sets all dense weights, and running statistics that are beside them. DataError for a file of another size."""
    parameters = session.parameters()
    count = sum(tensor.numel() for tensor in parameters.values())
    values = _read(path, "<f4", count, f"the {count:,} dense weights of this model")
    statistics = _statistics(f"{path}.ntp.json", session, _normal_layers(layers))
    start = 0
    for tensor in parameters.values():
        _set(tensor, values[start:start + tensor.numel()])
        start += tensor.numel()
    for tensor, numbers in statistics:
        _set(tensor, numbers)


def _statistics(path: str, session: tr.Session, names: List[str]) -> List[Any]:
    if not names or not os.path.exists(path):
        return []
    try:
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)["layers"]
        found, out = session.buffers(), []
        for name, row in zip(names, rows):
            for key, buffer in (("mean", "running_mean"), ("var", "running_var")):
                tensor, numbers = found[f"{name}.{buffer}"], np.asarray(row[key], dtype="<f4")
                if numbers.shape != tuple(tensor.shape):
                    raise _C.DataError(f"{path}: {name}: expected {tensor.numel()} numbers in {key!r}")
                out.append((tensor, numbers))
        if len(rows) != len(names):
            raise _C.DataError(f"{path}: expected {len(names)} layers, found {len(rows)}")
        return out
    except (ValueError, KeyError, TypeError) as error:
        raise _C.DataError(f"{path}: expected running statistics of BatchNorm layers: {error!r}") from None


def _key_rows(session: tr.Session, table: Table) -> Tuple[Any, Any]:
    """The keys of a table that have rows, ascending, and their rows in its tensors."""
    keys, rows = session._of.key_rows(table.name)
    return keys.numpy(), rows.numpy()


def save_table(folder: str, session: tr.Session, table: Table, slots: Optional[Sequence[Any]] = None) -> None:
    """
    Keys and vectors of a table; with `slots`, (first key, end) of each, also the slot of each key, which HugeCTR's
    LocalizedSlot embeddings need. Where the data do not say which keys a slot has, it is 0.
    """
    os.makedirs(folder, exist_ok=True)
    keys, rows = _key_rows(session, table)
    vectors = session.tables()[table.name].numpy()[rows]
    replace_file(os.path.join(folder, "key"), lambda file: file.write(keys.astype("<i8").tobytes()))
    replace_file(os.path.join(folder, "emb_vector"), lambda file: file.write(vectors.astype("<f4").tobytes()))
    if slots is not None:
        starts = np.array([first for first, _ in slots if not table.grows], dtype="<i8")
        ids = np.maximum(0, np.searchsorted(starts, keys, side="right") - 1).astype("<u8")
        replace_file(os.path.join(folder, "slot_id"), lambda file: file.write(ids.tobytes()))


def load_table(folder: str, session: tr.Session, table: Table) -> None:
    """
    Sets the vectors of the keys of a folder; other keys keep theirs. A table that grows gets rows for them. DataError
    for wrong sizes and unknown keys.
    """
    path = os.path.join(folder, "key")
    try:
        size = os.path.getsize(path)
    except OSError as error:
        raise _C.IoError(f"{path}: {error.strerror}") from None
    if size % 8:
        raise _C.DataError(f"{path}: expected keys of 8 bytes, found {size:,} bytes")
    keys = np.fromfile(path, dtype="<i8")
    vectors = _read(os.path.join(folder, "emb_vector"), "<f4", keys.size * table.width,
                    f"vectors of {table.width} numbers for {keys.size:,} keys").reshape(-1, table.width)
    _set_rows(path, session, table, keys, vectors)


def _set_rows(path: str, session: tr.Session, table: Table, keys: Any, vectors: Any) -> None:
    outside = (keys < table.first_key) | (keys >= table.first_key + table.rows)
    if outside.any() and not table.grows:
        raise _C.DataError(f"{path}: expected keys of the table {table.name!r}, from {table.first_key} to "
                           f"{table.first_key + table.rows - 1}, found {keys[outside][0]}")
    if np.unique(keys).size != keys.size:
        raise _C.DataError(f"{path}: expected every key once")
    if not np.isfinite(vectors).all():
        raise _C.DataError(f"{path}: expected finite vectors")
    session.load_table(table.name, (keys.astype(np.int64), vectors))


def save_dense_states(path: str, session: tr.Session) -> None:
    """The optimizer's states of all dense weights, one after the other, each but the last padded to 256 bytes."""
    states = session.optimizer_states().parameters
    names = list(next(iter(states.values()), {}))

    def write(file: Any) -> None:
        for i, name in enumerate(names):
            values = b"".join(of[name].numpy().astype("<f4").tobytes() for of in states.values())
            file.write(values)
            if i + 1 < len(names):
                file.write(bytes(-len(values) % _ALIGNMENT))

    replace_file(path, write)


def load_dense_states(path: str, session: tr.Session) -> None:
    """Sets them. HugeCTR's files have no step: the bias correction of Adam begins again, as in HugeCTR."""
    states = session.optimizer_states().parameters
    names = list(next(iter(states.values()), {}))
    count = sum(tensor.numel() for tensor in session.parameters().values())
    padded = -(-count * 4 // _ALIGNMENT) * _ALIGNMENT // 4
    total = padded * max(0, len(names) - 1) + (count if names else 0)
    values = _read(path, "<f4", total, f"the states {names} of {count:,} dense weights")
    for i, name in enumerate(names):
        start = i * padded
        for of in states.values():
            _set(of[name], values[start:start + of[name].numel()])
            start += of[name].numel()


def save_table_states(path: str, session: tr.Session, table: Table) -> None:
    """The optimizer's states of a table, in the order of the keys of its folder."""
    _, rows = _key_rows(session, table)
    states = session.optimizer_states().tables[table.name].values()
    replace_file(path, lambda file: file.write(b"".join(of.numpy()[rows].astype("<f4").tobytes() for of in states)))


def load_table_states(path: str, session: tr.Session, table: Table) -> None:
    """Sets them, if they are those of a table with the same keys."""
    _, rows = _key_rows(session, table)
    states = {name: of.numpy() for name, of in session.optimizer_states().tables[table.name].items()}
    shapes = [(len(rows), *of.shape[1:]) for of in states.values()]
    count = sum(int(np.prod(shape)) for shape in shapes)
    values = _read(path, "<f4", count, f"the states {list(states)} of {len(rows):,} rows of {table.name!r}")
    start = 0
    for of, shape in zip(states.values(), shapes):
        end = start + int(np.prod(shape))
        of[rows] = values[start:end].reshape(shape)  # the memory of the model
        start = end


def dump_collection(folder: str, session: tr.Session, tables: Sequence[Table], ids: Mapping[str, int],
                    wide_keys: bool) -> None:
    """Writes tables as a collection: meta_data, and for table i key<i> and weight<i>. Keys have 8 bytes or 4."""
    os.makedirs(folder, exist_ok=True)
    key_type = "<i8" if wide_keys else "<u4"
    meta = np.array([len(tables), int(wide_keys), 0, 0, max(table.width for table in tables)], dtype="<i4").tobytes()
    meta += np.array([ids[table.name] for table in tables], dtype="<i4").tobytes()
    contents = [_key_rows(session, table) for table in tables]
    meta += np.array([len(keys) for keys, _ in contents], dtype="<u8").tobytes()
    meta += np.array([table.width for table in tables], dtype="<i4").tobytes()
    replace_file(os.path.join(folder, "meta_data"), lambda file: file.write(meta))
    for table, (keys, rows) in zip(tables, contents):
        number = ids[table.name]
        vectors = session.tables()[table.name].numpy()[rows].astype("<f4")
        for name, kind, values in (("key", _KEY, keys.astype(key_type)), ("weight", _WEIGHT, vectors)):
            header = np.zeros(_HEADER, dtype="<i4")
            header[:2] = kind, number
            content = header.tobytes() + values.tobytes()
            replace_file(os.path.join(folder, f"{name}{number}"), lambda file, content=content: file.write(content))


def load_collection(folder: str, session: tr.Session, tables: Sequence[Table], ids: Mapping[str, int]) -> None:
    """Sets the vectors of tables from such a folder. DataError for damaged files and tables of another width."""
    path = os.path.join(folder, "meta_data")
    try:
        with open(path, "rb") as file:
            meta = file.read()
    except OSError as error:
        raise _C.IoError(f"{path}: {error.strerror}") from None
    count = int(np.frombuffer(meta[:4], "<i4")[0]) if len(meta) >= 20 else -1
    if count < 0 or len(meta) != 20 + 16 * count:
        raise _C.DataError(f"{path}: expected 20 bytes, and 16 for each table, found {len(meta)} bytes")
    key_type = "<i8" if np.frombuffer(meta[4:8], "<i4")[0] else "<u4"
    numbers = np.frombuffer(meta[20:20 + 4 * count], "<i4").tolist()
    rows = np.frombuffer(meta[20 + 4 * count:20 + 12 * count], "<u8").tolist()
    widths = np.frombuffer(meta[20 + 12 * count:], "<i4").tolist()
    found = {number: (n, width) for number, n, width in zip(numbers, rows, widths)}
    for table in tables:
        number = ids[table.name]
        if number not in found:
            raise _C.DataError(f"{path}: expected a table {number} ({table.name!r}), found {sorted(found)}")
        n, width = found[number]
        if width != table.width:
            raise _C.DataError(f"{path}: table {number} ({table.name!r}): expected vectors of {table.width} numbers, "
                               f"found {width}")
        keys = _values(os.path.join(folder, f"key{number}"), _KEY, number, key_type, n)
        vectors = _values(os.path.join(folder, f"weight{number}"), _WEIGHT, number, "<f4", n * width)
        _set_rows(os.path.join(folder, f"key{number}"), session, table, keys.astype(np.int64),
                  vectors.reshape(-1, width))


def _values(path: str, kind: int, number: int, dtype: str, count: int) -> Any:
    size = _HEADER * 4 + count * np.dtype(dtype).itemsize
    content = _read(path, "u1", size, f"a header and {count:,} numbers").tobytes()
    header = np.frombuffer(content[:_HEADER * 4], "<i4")
    if header[0] != kind or header[1] != number:
        raise _C.DataError(f"{path}: expected the header ({kind}, {number}), found ({header[0]}, {header[1]})")
    return np.frombuffer(content[_HEADER * 4:], dtype)
