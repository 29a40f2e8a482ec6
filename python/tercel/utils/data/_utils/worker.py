"""The worker processes of a loader."""

import os
import pickle
import random
import select
from dataclasses import dataclass
from typing import Any, Callable, Optional

import numpy as np

import tercel
from tercel.utils.data import _utils
from tercel.utils.data._utils.batches import close_all, pack
from tercel.utils.data._utils.channel import Channel, ClosedError
from tercel.utils.data._utils.exceptions import ExceptionWrapper
from tercel.utils.data._utils.fetch import fetcher_of
from tercel.utils.data._utils.segments import Shelf

__all__ = ["WorkerInfo", "get_worker_info"]


@dataclass(frozen=True)
class WorkerInfo:
    """A worker: its number, how many there are, its seed, its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_worker_info: Optional[WorkerInfo] = None


def get_worker_info() -> Optional[WorkerInfo]:
    """In a worker process of a DataLoader its WorkerInfo, otherwise None."""
    return _worker_info


@dataclass(frozen=True)
class Work:
    """What a worker process gets when it starts."""

    dataset: Any
    iterable: bool
    auto_collation: bool
    collate_fn: Callable[..., Any]
    drop_last: bool
    base_seed: int
    init_fn: Optional[Callable[[int], Any]]
    worker_id: int
    num_workers: int


def _generate_state(base_seed, worker_id):
    """The seed of NumPy's legacy generator, which takes 32 bits, too few for many workers, or a list: PyTorch's list."""
    entropy = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return np.random.SeedSequence(entropy).generate_state(4).tolist()


def _seed(work):
    """Seeds the generators of this process, each loader's and each worker's differently."""
    seed = work.base_seed + work.worker_id
    random.seed(seed)
    tercel.manual_seed(seed)
    np.random.seed(_generate_state(work.base_seed, work.worker_id))
    return seed


class _Worker:
    def __init__(self, work, channel):
        self.work, self.channel = work, channel
        self.shelf = Shelf()
        self.fetcher = None
        self.epoch = 0
        self.ended = False
        self.failed = None  # an exception that the next request gets

    def start(self, run_init_fn):
        """Makes the fetcher, for a stream anew in each epoch."""
        work = self.work
        self.ended = False
        try:
            if run_init_fn and work.init_fn is not None:
                work.init_fn(work.worker_id)
            self.fetcher = fetcher_of(work.iterable, work.dataset, work.auto_collation, work.collate_fn, work.drop_last)
        except Exception:
            self.failed = self.caught()

    def caught(self):
        return ExceptionWrapper(where=f"in DataLoader worker process {self.work.worker_id}")

    def next(self, index):
        """(kind of result, result) of a request."""
        if self.failed is not None:
            failed, self.failed = self.failed, None
            return "error", failed
        try:
            return "batch", self.fetcher.fetch(pickle.loads(index))
        except StopIteration:
            if self.work.iterable:
                self.ended = True
                return "end", None
            return "error", self.caught()
        except Exception:
            return "error", self.caught()

    def answer(self, number, kind, result):
        descriptors = []
        if kind == "batch":
            try:
                message, descriptors = pack(result, self.shelf)
            except Exception:
                kind, result = "error", self.caught()
        if kind == "error":
            try:
                exc_type = pickle.dumps(result.exc_type)
            except Exception:  # a class in a function
                exc_type = None
            message = exc_type, result.exc_type.__name__, result.exc_msg, result.where
        elif kind == "end":
            message = None
        try:
            self.channel.send(pickle.dumps((self.epoch, number, kind, message, self.shelf.take_dropped()), 5), descriptors)
        finally:
            close_all(descriptors)

    def run(self):
        """Answers requests until the loader closes the channel or its process is gone."""
        self.start(run_init_fn=True)
        parent = os.getppid()
        poll = select.poll()
        poll.register(self.channel, select.POLLIN)
        while not self.channel.ended and os.getppid() == parent:
            if not poll.poll(_utils.MP_STATUS_CHECK_INTERVAL * 1000):
                continue
            for message in self.channel.receive():
                request = pickle.loads(message)
                self.shelf.give_back(request.returned)
                if request.epoch != self.epoch:
                    self.epoch = request.epoch
                    self.start(run_init_fn=False)
                if not self.ended:
                    self.answer(request.number, *self.next(request.index))


@dataclass(frozen=True)
class Request:
    """A request for batch `number` of an epoch: the sampler's pickled index, and segments that the loader has returned."""

    epoch: int
    number: int
    index: bytes
    returned: Any


def run_worker(work, sock):
    """A worker process."""
    global _worker_info
    channel = Channel(sock, of_loader=False)
    try:
        tercel.set_num_threads(1)
        _worker_info = WorkerInfo(id=work.worker_id, num_workers=work.num_workers, seed=_seed(work), dataset=work.dataset)
        _Worker(work, channel).run()
    except (ClosedError, KeyboardInterrupt):
        pass  # Ctrl-C reaches the loader's process too, which says so
    finally:
        _worker_info = None
        channel.close()
