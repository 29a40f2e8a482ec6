"""DataLoader: batches of a dataset, read in this process or in worker processes."""

import multiprocessing
import os
import warnings
from typing import Any, Callable, Generic, Iterable, Iterator, List, Optional, TypeVar, Union

from tercel import Generator
from tercel.utils.data._utils.collate import default_collate, default_convert
from tercel.utils.data._utils.iterators import _BaseDataLoaderIter, _SingleProcessDataLoaderIter  # noqa: F401
from tercel.utils.data._utils.worker import get_worker_info
from tercel.utils.data._utils.workers import _MultiProcessingDataLoaderIter
from tercel.utils.data.dataset import Dataset, IterableDataset
from tercel.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

T_co = TypeVar("T_co", covariant=True)


class _InfiniteConstantSampler(Sampler[None]):
    """None forever: a stream has no indices."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


def _cpu_count() -> Optional[int]:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


class DataLoader(Generic[T_co]):
    """An iterable over the batches of a dataset; each iteration reads it anew.

    batch_size: samples of a batch; None delivers the samples themselves, converted by default_convert. shuffle: a new
    random order in each epoch. sampler: an iterable of indices. batch_sampler: an iterable of lists of indices, instead of
    batch_size, shuffle, sampler and drop_last. drop_last leaves out a last batch that is shorter.
    collate_fn makes a batch of a list of samples; None is default_collate.

    num_workers: processes that read ahead, 0 reads in this process. prefetch_factor: batches for each worker that are read
    ahead, 2 unless given. timeout: seconds after which waiting for a batch is a RuntimeError, 0 is never.
    worker_init_fn(worker number) is called in each new worker. multiprocessing_context: "fork", "spawn", "forkserver" or a
    context. persistent_workers keeps the processes for the next iteration. in_order=False delivers batches as they come.
    generator: of the order of samples and of the workers' seeds. pin_memory has no effect and warns, as in PyTorch without
    a GPU; pin_memory_device is ignored.

    Tensors of workers arrive in shared memory, without being copied. A worker's exception is raised here with its
    traceback, and RuntimeError if a worker's process ends. ValueError for arguments that exclude each other or are out of
    range, TypeError for a context of another type.
    """

    _initialized = False
    multiprocessing_context: Any

    def __init__(self, dataset: Dataset[T_co], batch_size: Optional[int] = 1, shuffle: Optional[bool] = None,
                 sampler: Union[Sampler[Any], Iterable[Any], None] = None,
                 batch_sampler: Union[Sampler[List[Any]], Iterable[List[Any]], None] = None, num_workers: int = 0,
                 collate_fn: Optional[Callable[[List[Any]], Any]] = None, pin_memory: bool = False,
                 drop_last: bool = False, timeout: float = 0, worker_init_fn: Optional[Callable[[int], Any]] = None,
                 multiprocessing_context: Any = None, generator: Optional[Generator] = None, *,
                 prefetch_factor: Optional[int] = None, persistent_workers: bool = False, pin_memory_device: str = "",
                 in_order: bool = True) -> None:
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError("prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
                             "multiprocessing, otherwise set prefetch_factor to None.")
        if prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self._iterable = isinstance(dataset, IterableDataset)
        if self._iterable:
            _refuse_with_stream(shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            sampler = (_InfiniteConstantSampler() if self._iterable else
                       RandomSampler(dataset, generator=generator) if shuffle else  # type: ignore[arg-type]
                       SequentialSampler(dataset))  # type: ignore[arg-type]
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)  # type: ignore[arg-type]
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        self.collate_fn = collate_fn or (default_collate if self._auto_collation else default_convert)
        self.persistent_workers = persistent_workers
        self._length_given: Optional[int] = None  # what a stream said in len(loader)
        self._iterator: Any = None
        self._initialized = True
        self.check_worker_number_rationality()

    @property  # type: ignore[no-redef]
    def multiprocessing_context(self) -> Any:
        """The context of the workers' processes; None is the default one."""
        return self._given_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, value: Any) -> None:
        if value is not None:
            if self.num_workers == 0:
                raise ValueError("multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                                 f"num_workers={self.num_workers}")
            if isinstance(value, str):
                methods = multiprocessing.get_all_start_methods()
                if value not in methods:
                    raise ValueError("multiprocessing_context option should specify a valid start method in "
                                     f"{methods!r}, but got multiprocessing_context={value!r}")
                value = multiprocessing.get_context(value)
            if not isinstance(value, multiprocessing.context.BaseContext):
                raise TypeError("multiprocessing_context option should be a valid context object or a string specifying the "
                                f"start method, but got multiprocessing_context={value}")
        self._given_context = value

    @property
    def _context(self) -> Any:
        return multiprocessing if self._given_context is None else self._given_context

    def __setattr__(self, attr: str, val: Any) -> None:
        if self._initialized and attr in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset",
                                          "persistent_workers"):
            raise ValueError(f"{attr} attribute should not be set after {self.__class__.__name__} is initialized")
        super().__setattr__(attr, val)

    def __iter__(self) -> Iterator[Any]:
        if not self.persistent_workers:
            return self._get_iterator()
        if self._iterator is None or not self._iterator._can_go_on():
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator  # type: ignore[no-any-return]

    def _get_iterator(self) -> Iterator[Any]:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return _MultiProcessingDataLoaderIter(self)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __len__(self) -> int:
        if not self._iterable:
            return len(self._index_sampler)
        length = self._length_given = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warns if there are more workers than processors."""
        count = _cpu_count()
        if self.num_workers and (count is None or self.num_workers > count):
            advice = ("DataLoader is not able to compute a suggested max number of worker in current system." if count is None else
                      f"Our suggested max number of worker in current system is {count}, which is smaller than what this "
                      "DataLoader is going to create.")
            warnings.warn(f"This DataLoader will create {self.num_workers} worker processes in total. {advice} Please be aware "
                          "that excessive worker creation might get DataLoader running slow or even freeze, lower the worker "
                          "number to avoid potential slowness/freeze if necessary.", stacklevel=3)


def _refuse_with_stream(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    for name, value in (("shuffle", shuffle or None), ("sampler", sampler)):
        if value is not None:
            raise ValueError(f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}")
    if batch_sampler is not None:
        raise ValueError("DataLoader with IterableDataset: expected unspecified batch_sampler option, but got "
                         f"batch_sampler={batch_sampler}")
