"""Metrics of evaluations as HugeCTR defines them."""

from typing import Any, Dict, Iterable, List, Tuple

import numpy as np

import tercel.recsys as tr
from tercel import _C
from tercel.data import Batch
from tercel.hugectr import _ranks
from tercel.hugectr.enums import MetricsType
from tercel.recsys.model import _parts_of

__all__ = ["Evaluation", "hit_rate", "ndcg", "smape"]


def hit_rate(predictions: Any, labels: Any) -> float:
    """Of the rows with a prediction above 0.8, the share with label 1; NaN if there is none."""
    hit = np.asarray(predictions) > 0.8
    return float(np.mean(np.asarray(labels)[hit] == 1)) if hit.any() else float("nan")


def ndcg(predictions: Any, labels: Any) -> float:
    """Of all rows as one list by falling predictions: sum of label / log2(rank + 2), relative to the best order."""
    labels = np.asarray(labels, dtype=np.float64)
    discounts = 1 / np.log2(np.arange(labels.size) + 2)
    best = float(np.sort(labels)[::-1] @ discounts)
    order = np.argsort(-np.asarray(predictions), kind="stable")
    return float(labels[order] @ discounts) / best if best > 0 else float("nan")


def smape(predictions: Any, labels: Any) -> float:
    """The mean of |p - y| / ((p + y) / 2); rows where both are 0 count as 0."""
    p, y = np.asarray(predictions, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    middle = (p + y) / 2
    return float(np.mean(np.where(middle == 0, 0.0, np.abs(p - y) / np.where(middle == 0, 1.0, middle))))


_OF_PREDICTIONS = {MetricsType.HitRate: hit_rate, MetricsType.NDCG: ndcg, MetricsType.SMAPE: smape}


class Evaluation:
    """
    Metrics of batches: the metrics of a solver's metrics_spec, in its order. `aucs_of_labels` are those of each label of
    a model with several losses, of which AUC is the mean, as the last values() found them.
    """

    def __init__(self, session: tr.Session, metrics: Iterable[MetricsType], weights: Dict[str, float],
                 labels: Dict[str, str]) -> None:
        """`weights` are those of the losses by their names, `labels` their labels."""
        self._session, self._metrics, self._weights, self._labels_of = session, list(metrics), weights, labels
        self.aucs_of_labels: List[Tuple[str, float]] = []
        self._needs_predictions = any(metric in _OF_PREDICTIONS for metric in self._metrics)
        self._found: Any = None
        self._predictions: List[Any] = []
        self._labels: List[Any] = []

    def add(self, batch: Batch) -> None:
        """Adds the rows of a batch."""
        if self._found is None:
            self._found = _C._Metrics(self._session._of)
        self._found.add(_parts_of(batch))
        if self._needs_predictions:
            predictions = _ranks.rows_of_all(self._session.predict(batch)).numpy()
            self._predictions.append(predictions if predictions.ndim == 1 else predictions[:, 0])
            self._labels.append(_ranks.rows_of_all(batch.labels).numpy()[:, 0].copy())

    def values(self) -> List[Tuple[str, float]]:
        """(name, value) of each metric; the next batches are a new evaluation."""
        if self._found is None:
            return []
        found: Dict[str, float] = self._found.values()
        out = []
        for metric in self._metrics:
            if metric is MetricsType.AUC:
                value = found["auc"]
                if len(self._weights) > 1:
                    self.aucs_of_labels = [(label, found[f"auc/{head}"]) for head, label in self._labels_of.items()
                                           if f"auc/{head}" in found]
            elif metric is MetricsType.AverageLoss:
                single = len(self._weights) == 1
                value = sum(weight * found["log_loss" if single else f"log_loss/{head}"]
                            for head, weight in self._weights.items())
            else:
                value = _OF_PREDICTIONS[metric](np.concatenate(self._predictions), np.concatenate(self._labels))
            out.append((metric.name, value))
        self._found, self._predictions, self._labels = None, [], []
        return out
