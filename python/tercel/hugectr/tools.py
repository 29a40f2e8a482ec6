"""HugeCTR's module `hugectr.tools`: generated datasets."""

import json
import os
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np

from tercel import _C
from tercel.hugectr import log
from tercel.hugectr.arguments import check_choice, number_list
from tercel.hugectr.enums import Check_t, DataReaderType_t, Distribution_t, PowerLaw_t

__all__ = ["DataGenerator", "DataGeneratorParams"]

_EXPONENTS = {PowerLaw_t.Long: 0.9, PowerLaw_t.Medium: 1.1, PowerLaw_t.Short: 1.3}
# How much the labels follow the features: the best possible AUC is some 0.85.
_STRENGTH = 3.0
_TRAIN, _EVAL = 1, 2  # seeds


@dataclass(eq=False)
class DataGeneratorParams:
    """What a DataGenerator writes; names and defaults are HugeCTR's. `num_threads` has no effect."""

    format: DataReaderType_t
    label_dim: int
    dense_dim: int
    num_slot: int
    i64_input_key: bool
    source: str
    eval_source: str
    slot_size_array: List[int]
    nnz_array: List[int] = field(default_factory=list)
    check_type: Check_t = Check_t.Sum
    dist_type: Distribution_t = Distribution_t.PowerLaw
    power_law_type: PowerLaw_t = PowerLaw_t.Specific
    alpha: float = 1.2
    num_files: int = 128
    eval_num_files: int = 32
    num_samples_per_file: int = 40960
    num_samples: int = 5242880
    eval_num_samples: int = 1310720
    float_label_dense: bool = False
    num_threads: int = 1

    def __post_init__(self) -> None:
        for name, kind in (("format", DataReaderType_t), ("check_type", Check_t), ("dist_type", Distribution_t),
                           ("power_law_type", PowerLaw_t)):
            check_choice(getattr(self, name), kind, f"DataGeneratorParams: {name}")
        self.slot_size_array = number_list(list(self.slot_size_array), "DataGeneratorParams: slot_size_array")
        self.nnz_array = number_list(list(self.nnz_array) or [1] * self.num_slot, "DataGeneratorParams: nnz_array")
        for name in ("slot_size_array", "nnz_array"):
            values = getattr(self, name)
            if len(values) != self.num_slot or min(values, default=1) < 1:
                raise _C.ConfigError(f"DataGeneratorParams: {name}: expected {self.num_slot} numbers of at least 1, "
                                     f"one for each slot, found {values}")
        for name, least in (("label_dim", 1), ("dense_dim", 0), ("num_files", 1), ("eval_num_files", 1),
                            ("num_samples_per_file", 1), ("num_samples", 1), ("eval_num_samples", 1)):
            if getattr(self, name) < least:
                raise _C.ConfigError(f"DataGeneratorParams: {name}: expected at least {least}, found "
                                     f"{getattr(self, name)}")


def _uniform_of(numbers: Any) -> Any:
    """A number in [-1, 1) for each 64-bit integer: the hash of SplitMix64."""
    with np.errstate(over="ignore"):
        z = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) / 2.0**52 - 1


def _auc(scores: Any, labels: Any) -> float:
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(scores.size)
    ranks[order] = np.arange(1, scores.size + 1)
    positive = labels > 0.5
    n, m = int(positive.sum()), int((~positive).sum())
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * m)) if n and m else float("nan")


@dataclass
class _Rows:
    """Rows: labels and dense values, as floats, and for each slot keys [rows, nnz] that begin at 0."""

    labels: Any
    dense: Any
    keys: List[Any]


_Scores = Tuple[Any, Any]  # logits and labels of some rows, [rows, label_dim]


class DataGenerator:
    """
    Writes a dataset for training and one for evaluation. Labels follow from the features (HugeCTR's are without
    relation to them), so that a model has something to learn: they are drawn from probabilities, whose logits are a sum
    over keys and dense values. Where a model is made for another truth, `logit(dense, keys)`, which HugeCTR does not
    have, gives the logits, [rows, label_dim], or [rows] for all labels: from the dense values of the files,
    [rows, dense_dim], and a list with the keys of each slot, [rows, nnz], which begin at 0. The same arguments give the
    same rows. After generate(), `true_auc` has the AUC of the probabilities on the rows of the first label, "train" and
    "eval", which a good model comes close to; those of all labels are printed.
    """

    true_auc: Dict[str, float]

    def __init__(self, data_generator_params: DataGeneratorParams,
                 logit: Optional[Callable[[Any, List[Any]], Any]] = None) -> None:
        self._params, self._logit = data_generator_params, logit
        self.true_auc = {}

    def generate(self) -> None:
        """Writes the files, their file lists and `_metadata.json`, as the format has them."""
        params = self._params
        raw = params.format in (DataReaderType_t.Raw, DataReaderType_t.RawAsync)
        for part, source, seed, files, samples in (
                ("train", params.source, _TRAIN, params.num_files, params.num_samples),
                ("eval", params.eval_source, _EVAL, params.eval_num_files, params.eval_num_samples)):
            scores: List[_Scores] = []
            if raw:
                self._write_raw(source, seed, samples, scores)
            else:
                self._write_files(source, "train" if part == "train" else "val", seed, files, scores)
            logits, labels = (np.concatenate(of) for of in zip(*scores))
            aucs = [_auc(logits[:, i], labels[:, i]) for i in range(params.label_dim)]
            self.true_auc[part] = aucs[0]
            log.info(f"Generated {part} data: {source}; AUC of the probabilities "
                     f"{', '.join(f'{auc:.6f}' for auc in aucs)}")

    def _keys(self, random: np.random.Generator, rows: int, nnz: int, size: int) -> Any:
        u = random.random((rows, nnz))
        if self._params.dist_type is Distribution_t.Uniform:
            return np.minimum((u * size).astype(np.int64), size - 1)
        a = _EXPONENTS.get(self._params.power_law_type, self._params.alpha)
        if a == 1:
            drawn = np.exp(u * np.log(size))
        else:
            drawn = ((float(size) ** (1 - a) - 1) * u + 1) ** (1 / (1 - a))
        return np.clip(np.rint(drawn).astype(np.int64) - 1, 0, size - 1)

    def _draw(self, seed: int, block: int, rows: int, scores: List[_Scores]) -> _Rows:
        params = self._params
        random = np.random.default_rng([seed, block])
        keys = [self._keys(random, rows, nnz, size) for nnz, size in zip(params.nnz_array, params.slot_size_array)]
        counts = random.random((rows, params.dense_dim))
        integers = params.format in (DataReaderType_t.Raw, DataReaderType_t.RawAsync) and not params.float_label_dense
        dense = np.floor(np.exp(counts * 5)) if integers else counts
        logits = self._sums(counts, keys) if self._logit is None else self._given(self._logit(dense, keys), rows)
        with np.errstate(over="ignore"):
            labels = np.stack([random.random(rows) < 1 / (1 + np.exp(-logit)) for logit in logits], axis=1)
        scores.append((np.stack(logits, axis=1), labels))
        return _Rows(labels.astype(np.float32), dense, keys)

    def _sums(self, counts: Any, keys: List[Any]) -> List[Any]:
        """Logits of each label: a sum of effects of keys and of dense values in [0, 1)."""
        params = self._params
        parts = params.num_slot + (params.dense_dim > 0)
        score = np.zeros(len(counts))
        for slot, of in enumerate(keys):
            score += _uniform_of(of + (slot << 40)).mean(axis=1) * (3 / parts) ** 0.5
        if params.dense_dim:
            score += ((counts - 0.5) @ np.where(np.arange(params.dense_dim) % 2, -1.0, 1.0)) \
                * 12**0.5 / (parts * params.dense_dim) ** 0.5
        return [_STRENGTH * 0.7 * (score if label % 2 == 0 else -score) for label in range(params.label_dim)]

    def _given(self, logits: Any, rows: int) -> List[Any]:
        """Logits of each label, of what the function of the caller returned."""
        labels = self._params.label_dim
        logits = np.asarray(logits, dtype=np.float64)
        if logits.shape not in ((rows,), (rows, labels)):
            raise _C.ConfigError(f"DataGenerator: logit: expected an array of shape ({rows},) or ({rows}, {labels}), "
                                 f"found {logits.shape}")
        wrong = np.argwhere(~np.isfinite(logits))
        if len(wrong):
            raise _C.ConfigError(f"DataGenerator: logit: expected finite numbers, found {logits[tuple(wrong[0])]} in "
                                 f"row {wrong[0][0]}")
        return [logits] * labels if logits.ndim == 1 else list(logits.T)

    def _write_raw(self, path: str, seed: int, samples: int, scores: List[_Scores]) -> None:
        if os.path.dirname(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            for block, start in enumerate(range(0, samples, 1 << 16)):
                rows = self._draw(seed, block, min(1 << 16, samples - start), scores)
                file.write(self._raw_bytes(rows))

    def _raw_bytes(self, rows: _Rows) -> bytes:
        params = self._params
        is_async = params.format is DataReaderType_t.RawAsync
        key_type = "<i8" if is_async and params.i64_input_key else "<u4" if is_async else "<i4"
        values = "<f4" if params.float_label_dense else "<i4"
        record = np.dtype([("label", "<i4" if is_async else values, (params.label_dim,)),
                           ("dense", values, (params.dense_dim,)),
                           ("keys", key_type, (sum(params.nnz_array),))])
        out = np.zeros(len(rows.labels), dtype=record)
        out["label"], out["dense"], out["keys"] = rows.labels, rows.dense, np.concatenate(rows.keys, axis=1)
        return out.tobytes()

    def _write_files(self, source: str, name: str, seed: int, files: int, scores: List[_Scores]) -> None:
        folder = os.path.join(os.path.dirname(source), name)
        os.makedirs(folder, exist_ok=True)
        norm = self._params.format is DataReaderType_t.Norm
        write: Callable[[str, _Rows], None] = self._write_norm if norm else self._write_parquet
        paths = [f"{folder}/gen_{i}.{'data' if norm else 'parquet'}" for i in range(files)]
        for i, path in enumerate(paths):
            write(path, self._draw(seed, i, self._params.num_samples_per_file, scores))
        with open(source, "w", encoding="utf-8") as file:
            file.write("\n".join([str(files), *paths]) + "\n")
        if not norm:
            self._write_metadata(folder, paths)

    def _write_norm(self, path: str, rows: _Rows) -> None:
        """Keys continue from slot to slot. All records have the same size, so that they are one array."""
        params = self._params
        framed = params.check_type is Check_t.Sum
        key_type = "<i8" if params.i64_input_key else "<u4"
        fields: List[Any] = [("label", "<f4", (params.label_dim,)), ("dense", "<f4", (params.dense_dim,))]
        for slot, nnz in enumerate(params.nnz_array):
            fields += [(f"nnz{slot}", "<i4"), (f"keys{slot}", key_type, (nnz,))]
        payload = np.dtype(fields)
        out = np.zeros(len(rows.labels), dtype=payload)
        out["label"], out["dense"] = rows.labels, rows.dense
        start = 0
        for slot, nnz in enumerate(params.nnz_array):
            out[f"nnz{slot}"], out[f"keys{slot}"] = nnz, rows.keys[slot] + start
            start += params.slot_size_array[slot]
        header = np.array([int(framed), len(out), params.label_dim, params.dense_dim, params.num_slot, 0, 0, 0], "<i8")
        with open(path, "wb") as file:
            file.write(self._framed(header.view(np.uint8).reshape(1, -1)) if framed else header.tobytes())
            content = np.frombuffer(out.tobytes(), np.uint8).reshape(len(out), payload.itemsize)
            file.write(self._framed(content) if framed else content.tobytes())

    @staticmethod
    def _framed(payloads: Any) -> bytes:
        """Each row of bytes between its length and the sum of its bytes modulo 256."""
        n, size = payloads.shape
        out = np.empty((n, size + 5), np.uint8)
        out[:, :4] = np.frombuffer(np.array([size], "<i4").tobytes(), np.uint8)
        out[:, 4:-1] = payloads
        out[:, -1] = payloads.sum(axis=1, dtype=np.uint64).astype(np.uint8)
        return out.tobytes()

    def _columns(self) -> Tuple[List[str], List[str], List[str]]:
        params = self._params
        first = params.dense_dim
        return ([f"label{i}" for i in range(params.label_dim)], [f"C{i}" for i in range(first)],
                [f"C{first + i}" for i in range(params.num_slot)])

    def _write_parquet(self, path: str, rows: _Rows) -> None:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise _C.ConfigError("DataGenerator: Parquet files are written by pyarrow: pip install pyarrow") from None
        labels, dense, cats = self._columns()
        table: Dict[str, Any] = {name: rows.labels[:, i] for i, name in enumerate(labels)}
        table.update({name: rows.dense[:, i].astype(np.float32) for i, name in enumerate(dense)})
        key_type = np.int64 if self._params.i64_input_key else np.uint32
        for name, keys in zip(cats, rows.keys):
            flat = pa.array(keys.astype(key_type).reshape(-1))
            nnz = keys.shape[1]
            offsets = pa.array(np.arange(0, keys.size + 1, nnz, dtype=np.int32))
            table[name] = flat if nnz == 1 else pa.ListArray.from_arrays(offsets, flat)
        pq.write_table(pa.table(table), path)

    def _write_metadata(self, folder: str, paths: List[str]) -> None:
        labels, dense, cats = self._columns()
        stats = [{"file_name": os.path.basename(path), "num_rows": self._params.num_samples_per_file} for path in paths]
        content: Dict[str, Any] = {"file_stats": stats}
        index = 0
        for group, names in (("labels", labels), ("conts", dense), ("cats", cats)):
            content[group] = [{"col_name": name, "index": index + i} for i, name in enumerate(names)]
            index += len(names)
        with open(os.path.join(folder, "_metadata.json"), "w", encoding="utf-8") as file:
            json.dump(content, file, indent=2)
