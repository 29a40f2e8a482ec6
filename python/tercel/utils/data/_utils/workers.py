"""The iterator of a loader that reads in worker processes.

Note [Requests]
Batch k of an epoch is request k. Up to prefetch_factor requests for each worker are under way or have been answered without
being delivered; each delivery sends the next one. Workers take turns, so a batch's worker does not depend on time. Results
wait until it is their turn, as messages: a tensor is made of its memory only when its batch is delivered. A request of a
later epoch makes a persistent worker start anew; results of an epoch that the program has left are dropped.
"""

import os
import pickle
import select
import signal
import socket
import sys
import time
from collections import deque

from tercel.utils.data import _utils
from tercel.utils.data._utils.batches import unpack
from tercel.utils.data._utils.channel import Channel, ClosedError
from tercel.utils.data._utils.exceptions import ExceptionWrapper
from tercel.utils.data._utils.iterators import _BaseDataLoaderIter
from tercel.utils.data._utils.segments import Mapped
from tercel.utils.data._utils.worker import Request, Work, run_worker

__all__ = ["_MultiProcessingDataLoaderIter"]


def _end_of(process):
    """How a process ended."""
    code = process.exitcode
    if code is None or code >= 0:
        return "" if code is None else f" with exit code {code}"
    try:
        return f": killed by {signal.Signals(-code).name}"
    except ValueError:
        return f": killed by signal {-code}"


def _reraise(exc_type, name, text, where):
    """Raises a worker's exception; a RuntimeError if this process does not know its class."""
    wrapper = ExceptionWrapper((RuntimeError, None, None), where)
    wrapper.exc_msg = text
    try:
        wrapper.exc_type = pickle.loads(exc_type)
    except Exception:
        raise RuntimeError(f"Caught {name} {where}.\nOriginal {text}") from None
    wrapper.reraise()


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Reads ahead in worker processes."""

    def __init__(self, loader):
        self._shutdown = True  # there is nothing to end yet
        super().__init__(loader)
        self._prefetch_factor = loader.prefetch_factor
        self._in_order = loader.in_order
        if self._prefetch_factor <= 0:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        self._process = os.getpid()
        self._workers, self._channels, self._mapped = [], [], []
        self._epoch = -1
        self._arrived, self._results = deque(), {}
        self._reading = False
        self._shutdown = False
        try:
            for number in range(self._num_workers):
                self._start(number, loader)
            self._reset(loader, first_iter=True)
        except BaseException:
            self._shutdown_workers()
            raise

    def _start(self, number, loader):
        ours, theirs = socket.socketpair(socket.AF_UNIX)
        self._channels.append(Channel(ours, of_loader=True))
        self._mapped.append(Mapped())
        try:
            work = Work(self._dataset, self._iterable, self._auto_collation, self._collate_fn, self._drop_last,
                        self._base_seed, loader.worker_init_fn, number, self._num_workers)
            process = loader._context.Process(target=run_worker, args=(work, theirs), daemon=True)
            process.start()
            self._workers.append(process)
        finally:
            theirs.close()

    def _reset(self, loader, first_iter=False):
        super()._reset(loader, first_iter)
        for result in (*self._arrived, *self._results.values()):
            self._refuse(*result)
        self._epoch += 1
        self._send_idx = self._rcvd_idx = 0  # of the next request, and of the next batch
        self._tasks = {}  # the worker of each request that has not been answered
        self._results = {}  # answers that wait for their turn
        self._arrived = deque()
        self._turn = 0
        self._active = [True] * self._num_workers
        self._fill()

    def _load(self, worker):
        """The requests of a worker that have not been delivered."""
        return sum(w == worker for w in self._tasks.values()) + sum(r[1] == worker for r in self._results.values())

    def _next_worker(self):
        """The worker of the next request: each in turn, or if batches may overtake, the next that has few requests."""
        while True:  # fewer requests than all workers may have are under way, so there is one
            worker, self._turn = self._turn, (self._turn + 1) % self._num_workers
            if self._active[worker] and (self._in_order or self._load(worker) < self._prefetch_factor):
                return worker

    def _fill(self):
        """Sends requests, as many as may be under way."""
        while len(self._tasks) + len(self._results) < self._prefetch_factor * sum(self._active):
            try:
                index = self._next_index()
            except StopIteration:
                return
            index = pickle.dumps(index, 5)  # may fail: before anything is changed
            worker = self._next_worker()
            request = Request(self._epoch, self._send_idx, index, self._mapped[worker].take_returned())
            self._reading = True
            try:
                self._channels[worker].send(pickle.dumps(request, 5))
            except ClosedError:
                pass  # the worker's end will be read
            self._reading = False
            self._tasks[self._send_idx] = worker
            self._send_idx += 1

    def _next_data(self):
        if self._process != os.getpid():
            raise RuntimeError("DataLoader: the workers belong to the process that started them; make a new iterator")
        if self._shutdown or self._reading:
            return self._after_the_end()
        while True:
            result = self._pick()
            if result is not None:
                return self._deliver(*result)
            if self._rcvd_idx == self._send_idx:
                self._fill()  # an exception of the sampler may have kept requests from being sent
                if self._rcvd_idx < self._send_idx:
                    continue
                if not self._persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            number, worker, kind, message = self._receive()
            del self._tasks[number]
            if kind == "end":
                self._end(worker)
            else:
                self._results[number] = number, worker, kind, message

    def _pick(self):
        """The result whose turn it is; None if it has not arrived."""
        while self._rcvd_idx < self._send_idx and self._rcvd_idx not in self._tasks and self._rcvd_idx not in self._results:
            self._rcvd_idx += 1  # delivered before, or a request of a worker that had nothing more
        if self._rcvd_idx in self._results:
            return self._results.pop(self._rcvd_idx)
        if self._results and not self._in_order:
            return self._results.pop(next(iter(self._results)))
        return None

    def _deliver(self, number, worker, kind, message):
        try:
            self._fill()
        except BaseException:  # of the sampler: the result is delivered after it
            self._results[number] = number, worker, kind, message
            raise
        if kind == "error":
            _reraise(*message)
        return unpack(message, self._mapped[worker])

    def _end(self, worker):
        """The stream of a worker has ended: it answers no further requests."""
        self._active[worker] = False
        self._tasks = {number: w for number, w in self._tasks.items() if w != worker}
        if not self._persistent_workers:
            self._channels[worker].close()
        self._fill()

    def _can_go_on(self):
        """Whether its workers can read another epoch."""
        return not self._shutdown and not self._reading and self._process == os.getpid()

    def _after_the_end(self):
        """What next() does when there are no workers any more."""
        if self._reading:  # an exception, as Ctrl-C raises one, in the middle of a message
            self._shutdown_workers()
            raise RuntimeError("DataLoader: reading from the workers was interrupted; make a new iterator")
        if self._rcvd_idx == self._send_idx:
            raise StopIteration
        raise RuntimeError("DataLoader: the workers of this iterator have been shut down; make a new iterator")

    def _open(self):
        return [worker for worker in range(self._num_workers) if self._active[worker]]

    def _receive(self):
        """The next answer of any worker. RuntimeError if none comes in time, or if a worker has ended."""
        deadline = time.monotonic() + self._timeout if self._timeout > 0 else None
        while not self._arrived:
            poll = select.poll()
            workers = {}
            for worker in self._open():
                channel = self._channels[worker]
                workers[channel.fileno()] = worker
                poll.register(channel, select.POLLIN | (select.POLLOUT if channel.unsent else 0))
            wait = _utils.MP_STATUS_CHECK_INTERVAL
            if deadline is not None:
                wait = min(wait, max(0.0, deadline - time.monotonic()))
            ready = poll.poll(wait * 1000)
            for descriptor, events in ready:
                self._exchange(workers[descriptor], events)
            if self._arrived:
                break
            # A process that a worker has started may keep the worker's end of the channel open.
            ended = [w for w in self._open() if self._channels[w].ended or (not ready and not self._workers[w].is_alive())]
            if ended:
                self._fail(ended)
            if not ready and deadline is not None and time.monotonic() >= deadline:
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
        return self._arrived.popleft()

    def _exchange(self, worker, events):
        """Sends and reads what can be sent and read now."""
        channel, mapped = self._channels[worker], self._mapped[worker]
        self._reading = True
        if events & select.POLLOUT:
            try:
                channel.flush()
            except ClosedError:
                pass
        if events & ~select.POLLOUT:
            for text in channel.receive():
                epoch, number, kind, message, dropped = pickle.loads(text)
                mapped.forget(dropped)
                if kind == "batch":
                    for segment in message[2]:
                        mapped.add(segment, channel.take_descriptor())
                if epoch == self._epoch:
                    self._arrived.append((number, worker, kind, message))
                else:
                    self._refuse(number, worker, kind, message)
        self._reading = False

    def _refuse(self, number, worker, kind, message):
        """Returns the segments of a batch that nobody wants."""
        if kind == "batch":
            text, buffers, _ = message
            numbers = [number for number, _, _ in buffers] + ([] if isinstance(text, bytes) else [text[0]])
            for segment in dict.fromkeys(numbers):
                self._mapped[worker].refuse(segment)

    def _fail(self, ended):
        for worker in ended:
            self._workers[worker].join(1)
        pids = ", ".join(str(self._workers[worker].pid) for worker in ended)
        how = {_end_of(self._workers[worker]) for worker in ended}
        self._shutdown_workers()  # requests of the ended ones stay without an answer
        raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly{how.pop() if len(how) == 1 else ''}")

    def _shutdown_workers(self):
        """Ends the workers: those that do not end by themselves in some seconds are terminated."""
        if self._shutdown or self._process != os.getpid():
            return
        self._shutdown = True
        for channel in self._channels:
            channel.close()
        for mapped in self._mapped:
            mapped.close()
        try:
            deadline = time.monotonic() + _utils.MP_STATUS_CHECK_INTERVAL
            for process in self._workers:
                process.join(max(0, deadline - time.monotonic()))
        finally:
            for process in self._workers:
                if process.is_alive():
                    process.terminate()
            for process in self._workers:
                process.join(1)
                if process.is_alive():
                    process.kill()
                    process.join()

    def __del__(self):
        if not sys.is_finalizing():  # then multiprocessing has ended them
            self._shutdown_workers()
