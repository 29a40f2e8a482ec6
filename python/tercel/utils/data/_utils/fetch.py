"""What one step of a loader reads from a dataset."""

import tercel
from tercel import Tensor
from tercel.utils.data._utils.collate import _collate_tensors, default_collate, default_collate_fn_map
from tercel.utils.data.dataset import Subset, TensorDataset

__all__ = ["MapFetcher", "StreamFetcher", "fetcher_of"]


def _methods():
    """What reads the samples of a TensorDataset and of its subsets, and where one is missing None."""
    return [getattr(owner, name, None) for owner in (TensorDataset, Subset) for name in ("__getitem__", "__getitems__")]


_OWN_METHODS = _methods()


def _rows_of(dataset, indices):
    """The batch that default_collate() makes of these samples, if rows of tensors can be gathered at once, else None.

    Note [Gathered batches]
    A batch of a TensorDataset is what indexing its tensors with all indices gives, which takes one call for each tensor
    instead of one for each sample. It is done only where nothing can tell the difference: neither class nor __getitem__ nor
    collate_fn of the user's own, also not set on the classes or in default_collate_fn_map; strided tensors, integers as
    indices.
    """
    if default_collate_fn_map.get(Tensor) is not _collate_tensors or _methods() != _OWN_METHODS:
        return None
    while type(dataset) is Subset:
        if "__getitems__" in vars(dataset):
            return None
        indices = [dataset.indices[i] for i in indices]
        dataset = dataset.dataset
    if type(dataset) is not TensorDataset or "__getitems__" in vars(dataset) or set(map(type, indices)) != {int}:
        return None
    if not all(type(t) is Tensor and t.layout is tercel.strided for t in dataset.tensors):
        return None
    rows = tercel.tensor(indices)
    return [t[rows] for t in dataset.tensors]


class MapFetcher:
    """Reads samples by index."""

    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.gathers = auto_collation and collate_fn is default_collate

    def fetch(self, index):
        """The batch of a list of indices; without automatic batching the sample of one."""
        if not self.auto_collation:
            return self.collate_fn(self.dataset[index])
        if self.gathers and type(self.dataset) in (TensorDataset, Subset):
            batch = _rows_of(self.dataset, index)
            if batch is not None:
                return batch
        many = getattr(self.dataset, "__getitems__", None)
        return self.collate_fn(many(index) if many else [self.dataset[i] for i in index])


class StreamFetcher:
    """Reads the next samples of an IterableDataset."""

    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        self.samples = iter(dataset)
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last
        self.ended = False

    def fetch(self, index):
        """A batch of as many samples as index has, at the end fewer; StopIteration behind it."""
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.samples))
        batch = []
        for _ in index:
            try:
                batch.append(next(self.samples))
            except StopIteration:
                self.ended = True
                break
        if not batch or (self.drop_last and len(batch) < len(index)):
            raise StopIteration
        return self.collate_fn(batch)


def fetcher_of(iterable, *args):
    """The fetcher for an IterableDataset, or for a dataset with indices."""
    return (StreamFetcher if iterable else MapFetcher)(*args)
