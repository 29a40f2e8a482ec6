"""Iterators of a loader: what they share, and the one that reads in the loader's own process."""

import warnings

import tercel
from tercel.utils.data._utils.fetch import fetcher_of

__all__ = ["_BaseDataLoaderIter", "_SingleProcessDataLoaderIter"]


class _BaseDataLoaderIter:
    """One pass over a loader's dataset. Each draws a seed for its workers from the loader's generator."""

    def __init__(self, loader):
        self._dataset = loader.dataset
        self._iterable = loader._iterable
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._persistent_workers = loader.persistent_workers
        if loader.pin_memory and loader.pin_memory_device:
            warnings.warn("pin_memory_device is deprecated, the current accelerator will be used as the device,"
                          f"ignore pin_memory_device='{loader.pin_memory_device}'.", stacklevel=4)
        if loader.pin_memory:
            warnings.warn("'pin_memory' argument is set as true but no accelerator is found, then device pinned memory "
                          "won't be used.", stacklevel=4)
        self._sampler_iter = iter(self._index_sampler)
        self._base_seed = tercel.empty((), dtype=tercel.int64).random_(generator=loader.generator).item()
        self._length_given = loader._length_given
        self._num_yielded = 0

    def __iter__(self):
        return self

    def _reset(self, loader, first_iter=False):
        self._sampler_iter = iter(self._index_sampler)
        self._length_given = loader._length_given
        self._num_yielded = 0

    def _next_index(self):
        return next(self._sampler_iter)

    def __next__(self):
        data = self._next_data()
        self._num_yielded += 1
        if self._iterable and self._length_given is not None and self._num_yielded > self._length_given:
            self._warn_of_length()
        return data

    def _warn_of_length(self):
        text = (f"Length of IterableDataset {self._dataset} was reported to be {self._length_given}(when accessing "
                f"len(dataloader)), but {self._num_yielded} samples have been fetched. ")
        if self._num_workers > 0:
            text += ("For multiprocessing data-loading, this could be caused by not properly configuring the IterableDataset "
                     "replica at each worker: its __iter__() can ask get_worker_info() which part to read.")
        warnings.warn(text, stacklevel=3)

    def __len__(self):
        return len(self._index_sampler)

    def __getstate__(self):
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Reads when it is asked, in this process."""

    def __init__(self, loader):
        super().__init__(loader)
        if self._timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        self._fetcher = fetcher_of(self._iterable, self._dataset, self._auto_collation, self._collate_fn, self._drop_last)

    def _next_data(self):
        return self._fetcher.fetch(self._next_index())
