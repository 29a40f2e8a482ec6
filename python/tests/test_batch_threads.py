"""tercel.data: readers with threads, in forked processes, and when signals arrive."""

import dataclasses
import gc
import os
import pathlib
import signal
import struct
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from norm_files import dataset, given, joined, rows  # noqa: F401: fixtures too

import tercel as tc
import tercel.data as td


def threads():
    return len(os.listdir("/proc/self/task"))


def settled(count):
    """Whether the process gets down to so many threads: the system removes those that have ended a little later."""
    end = time.monotonic() + 5
    while threads() > count and time.monotonic() < end:
        time.sleep(0.01)
    return threads() <= count

def test_threads_end(dataset):
    tc.ones(1000, 1000).sum()  # the pool's threads
    before = threads()
    reader = dataset.batches(batch_size=5, num_workers=4, epochs=0)
    assert threads() == before, "threads start with the first batch"
    next(iter(reader))
    assert threads() == before + 5
    reader.close()
    assert settled(before) and reader.closed
    reader.close()
    for use in (lambda: next(iter(reader)), lambda: reader.position, reader.rewind, lambda: reader.epoch_rows):
        with pytest.raises(ValueError, match="it is closed"):
            use()

    with pytest.raises(ZeroDivisionError):
        with dataset.batches(batch_size=5, num_workers=4) as reader:
            for _ in reader:
                1 / 0
    assert settled(before) and reader.closed

    reader = dataset.batches(batch_size=5, num_workers=4)
    loop = iter(reader)
    next(loop)
    del reader
    assert next(loop).row == 5, "a loop keeps its reader"
    del loop
    gc.collect()
    assert settled(before)

    reader = dataset.batches(batch_size=5, num_workers=4)
    next(iter(reader))
    reader.itself = reader
    del reader
    gc.collect()
    assert settled(before)


def test_an_exception_in_the_loop_leaves_the_reader_usable(dataset, rows):
    reader = dataset.batches(batch_size=100)
    with pytest.raises(ZeroDivisionError):
        for _ in reader:
            1 / 0
    assert joined(reader) == given(rows, range(100, 700))


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """A dataset whose first batch takes seconds: its rows are read one by one, in random order."""
    folder = tmp_path_factory.mktemp("slow")
    count = 500_000
    records = np.zeros(count, [("label", "<f4"), ("nnz", "<i4"), ("key", "<u4")])
    records["nnz"] = 1
    records["key"] = np.arange(count)
    with open(folder / "rows.data", "wb") as file:
        file.write(struct.pack("<8q", 0, count, 1, 0, 1, 0, 0, 0))
        records.tofile(file)
    (folder / "list.txt").write_text("1\nrows.data\n")
    return td.open_files("norm", train_list=folder / "list.txt", nnz_per_slot=1, check_mode="none")


SLOWLY = {"shuffle": True, "shuffle_block": 1, "shuffle_window": 500_000, "batch_size": 1000}


def test_ctrl_c_ends_a_wait(slow):
    reader = slow.batches(**SLOWLY)
    sent = []

    def send():
        time.sleep(0.05)
        sent.append(time.monotonic())
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    thread = threading.Thread(target=send)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        next(iter(reader))
    late = time.monotonic() - sent[0]
    thread.join()
    assert reader.position.row == 0, "it did not wait for the batch"
    assert late < 5  # 0.05 on an idle machine
    assert next(iter(reader)).rows == 1000, "the reader can be used further"


class Alarm(Exception):
    pass


def ring(*_):
    raise Alarm


@pytest.fixture
def alarm():
    """
    Sets the handler of SIGALRM; the one before it is there again afterwards. Without garbage collection meanwhile: an
    exception that a handler raises in a callback of the collector (Hypothesis has one) is printed and lost, and the loop
    that waits for it would not end.
    """
    before = signal.getsignal(signal.SIGALRM)
    gc.disable()
    yield lambda handler: signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    gc.enable()


def test_a_signal_at_the_end_of_a_wait_loses_no_batch(slow, alarm):
    """It arrives while the thread waits, and the batch does before Python looks: within the 50 ms of one wait."""
    alarm(ring)
    for delay in (0.001, 0.01):
        reader = slow.batches(prefetch=1, batch_size=20_000, epochs=0)  # a few milliseconds for a batch
        rows, interrupted = [], 0
        for _ in range(40):
            try:
                signal.setitimer(signal.ITIMER_REAL, delay)
                for batch in reader:
                    rows.append((batch.epoch, batch.row))
            except Alarm:
                interrupted += 1
            assert (reader.position.epoch, reader.position.row) == divmod(len(rows) * 20_000, 500_000)
        assert interrupted == 40
        assert rows == [divmod(i * 20_000, 500_000) for i in range(len(rows))]


def test_a_batch_that_did_not_arrive_comes_again(dataset, rows, monkeypatch):
    """An exception between the reader and the loop, at any place: signals are seen wherever Python code runs."""
    init, left = td.Batch.__init__, [0]

    def failing(self, *parts):
        init(self, *parts)
        left[0] -= 1
        if left[0] == 0:
            raise Alarm

    monkeypatch.setattr(td.Batch, "__init__", failing)
    reader, loops = dataset.batches(batch_size=100), []
    for _ in range(7):  # every batch at its first attempt, the last one of the epoch too
        position, left[0] = reader.position, 1
        with pytest.raises(Alarm):
            next(iter(reader))
        assert reader.position == position and len(reader) == 7 - len(loops)
        loops.append(next(iter(reader)))
    assert joined(loops) == given(rows) and reader.position == dataclasses.replace(position, epoch=1, row=0)
    for move, row in ((reader.rewind, 0), (lambda: reader.seek(dataclasses.replace(position, row=300)), 300)):
        left[0] = 1
        with pytest.raises(Alarm):
            next(iter(reader))
        move()
        assert reader.position.row == row and next(iter(reader)).row == row, "it belongs to the old position"


def test_a_handler_may_ask_the_reader_that_its_thread_waits_for(slow, alarm):
    reader = slow.batches(**SLOWLY)
    found = []

    def ask(*_):
        found.extend((reader.position.row, reader.epoch_rows, reader.epoch_batches, len(reader),
                      reader.options["batch_size"], reader.closed))
        for use in (lambda: next(iter(reader)), reader.rewind, reader.close):
            with pytest.raises(RuntimeError, match="this thread is using it: a signal handler may only ask"):
                use()
        raise Alarm

    alarm(ask)
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    with pytest.raises(Alarm):
        next(iter(reader))
    assert found == [0, 500_000, 500, 500, 1000, False]
    assert next(iter(reader)).row == 0, "the reader can be used further"


def test_a_second_thread_is_refused_and_others_run(slow):
    reader = slow.batches(**SLOWLY)
    found = []

    def wait():
        try:
            found.append(next(iter(reader)))
        except BaseException as error:  # noqa: B036: it is shown
            found.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    for _ in range(20):
        time.sleep(0.001)
    assert thread.is_alive(), "waiting releases the GIL"
    for use in (lambda: next(iter(reader)), lambda: reader.position, reader.rewind, reader.close, lambda: len(reader)):
        with pytest.raises(RuntimeError, match="another thread is using it"):
            use()
    thread.join()
    assert isinstance(found[0], td.Batch) and found[0].rows == 1000, found
    assert reader.position.row == 1000 and next(iter(reader)).row == 1000, "then any thread may use it"


def test_threads_take_turns(dataset, rows):
    reader = dataset.batches(batch_size=7, num_workers=2)
    lock, batches = threading.Lock(), []

    def take():
        while True:
            with lock:
                batch = next(iter(reader), None) if len(batches) < 100 else None
                if batch is None:
                    return
                batches.append(batch)

    workers = [threading.Thread(target=take) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert joined(batches) == given(rows)


def run(program, *arguments, seconds=120):
    path = str(pathlib.Path(tc.__file__).parent.parent)
    return subprocess.run([sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)], capture_output=True,
                          text=True, timeout=seconds, env={**os.environ, "PYTHONPATH": path}, check=False)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_is_refused(tmp_path):
    td.generate(tmp_path / "data", rows=3000, preset="small")
    done = run("""
        import gc, os, signal, sys, warnings
        warnings.simplefilter("ignore")
        import tercel.data as td
        dataset = td.open_dataset(sys.argv[1])
        reader, fresh = dataset.batches(batch_size=10, num_workers=2), dataset.batches(batch_size=10)
        loop = iter(reader)
        next(loop)
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            refused = []
            for use in (lambda: next(iter(reader)), reader.rewind, lambda: next(loop)):
                try:
                    use()
                except RuntimeError as error:
                    refused.append("forked" in str(error))
            # One that had not started yet works, and so does a new one.
            good = sum(b.rows for b in fresh) == sum(b.rows for b in dataset.batches()) == 2700
            reader.close()
            del loop, reader
            gc.collect()
            os._exit(0 if refused == [True] * 3 and good else 1)
        status = os.waitpid(child, 0)[1]
        assert status == 0, status
        assert next(loop).row == 10
    """, tmp_path / "data")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("end", ["", "sys.exit(0)", "reader.note = reader", "import threading; threading.Thread("
                                 "target=lambda: list(dataset.batches(batch_size=1, epochs=0)), daemon=True).start()"])
def test_a_process_may_end_with_a_running_reader(tmp_path, end):
    td.generate(tmp_path / "data", rows=3000, preset="small")
    done = run(f"""
        import sys
        import tercel.data as td
        dataset = td.open_dataset(sys.argv[1])
        reader = dataset.batches(batch_size=3, num_workers=3, prefetch=8, epochs=0)
        loop = iter(reader)
        batch = next(loop)
        batch.labels.note = batch
        {end}
    """, tmp_path / "data")
    assert done.returncode == 0 and done.stderr == "", (done.returncode, done.stderr)


def test_memory_does_not_grow(dataset):
    tc.ones(10)
    reader = dataset.batches(batch_size=100, epochs=0)
    loop = iter(reader)
    gc.collect()
    for _ in range(20):
        next(loop)
    before = tc._C._allocated_bytes()
    for _ in range(1000):
        next(loop)
    assert tc._C._allocated_bytes() < before + 1e6, "a batch has 25 KB"
    assert sys.getrefcount(loop) == 2
