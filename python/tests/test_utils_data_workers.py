"""DataLoader with worker processes: order, errors, seeds, ends of processes."""

import gc
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
import weakref

import numpy as np
import pytest
from loader_helpers import PATH, Calls, children, is_alive, maps, nothing_is_left, same, samples, servers  # noqa: F401: two are fixtures

import tercel as tc
from tercel.utils import data as tud
from tercel.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info


def slow_evens(i):
    if i % 2 == 0:
        time.sleep(0.03)
    return tc.full((3,), i)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_batches_come_in_order(method):
    for workers in (1, 3):
        loader = DataLoader(Calls(slow_evens, 10), batch_size=2, num_workers=workers, multiprocessing_context=method)
        assert [batch[:, 0].tolist() for batch in loader] == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
        assert len(loader) == 5


def test_all_arguments_as_without_workers():
    x = tc.arange(23)
    for kwargs in ({"batch_size": 4}, {"batch_size": 4, "drop_last": True}, {"sampler": [5, 2, -1]},
                   {"batch_sampler": [[1, 2], [], [3]], "collate_fn": str}, {"batch_size": None}, {"shuffle": True, "batch_size": 5}):
        def read(workers, **more):
            loader = DataLoader(TensorDataset(x), num_workers=workers, generator=tc.Generator().manual_seed(1), **kwargs, **more)
            return [str(batch) for batch in loader]
        assert read(0) == read(1) == read(2, prefetch_factor=7) == read(3, persistent_workers=True) != []
    assert samples(lambda i: i, 0) == []


def test_batches_as_they_come():
    def item(i):
        time.sleep(1.5 if i == 0 else 0)
        return i

    got = samples(item, 8, in_order=False)
    assert sorted(got) == list(range(8)) and got[-2:] == [0, 2]  # 2 waits behind 0
    assert samples(item, 8) == list(range(8))


def raising(error):
    def function(i):
        if i == 2:
            raise error
        return i
    return function


class TwoArguments(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


class WithMessage(Exception):
    message = "a message"

    def __init__(self, message):
        super().__init__(message)


@pytest.mark.parametrize("error, kind", [(ValueError("mine"), ValueError), (KeyError("mine"), KeyError), (TwoArguments("mine", 1), RuntimeError),
                                         (WithMessage("mine"), WithMessage), (StopIteration("mine"), StopIteration),
                                         (type("Local", (Exception,), {})("mine"), RuntimeError)], ids=str)
def test_an_exception_of_a_worker(error, kind):
    loader = iter(DataLoader(Calls(raising(error), 6), num_workers=2, multiprocessing_context="fork"))
    assert [next(loader).item() for _ in range(2)] == [0, 1]
    with pytest.raises(kind) as raised:
        next(loader)
    text = str(raised.value)
    assert text.startswith(f"Caught {type(error).__name__} in DataLoader worker process 0.\nOriginal Traceback (most recent call last):")
    assert "in function\n    raise error" in text and "mine" in text
    assert [batch.item() for batch in loader] == [3, 4, 5]  # the loader goes on, as PyTorch's does


def bad_init(worker):
    raise OSError(f"of worker {worker}")


class Broken(IterableDataset):
    def __iter__(self):
        raise OSError("of the stream")


@pytest.mark.parametrize("make, error, message", [
    (lambda: DataLoader(Calls(same), num_workers=1, worker_init_fn=bad_init), OSError, "(?s)Caught OSError in DataLoader worker process 0.*of worker 0"),
    (lambda: DataLoader(Broken(), num_workers=1), OSError, "(?s)worker process 0.*of the stream"),
    (lambda: DataLoader(Broken()), OSError, "^of the stream$"),
    (lambda: DataLoader(Calls(lambda i: None), num_workers=1), TypeError, "(?s)worker process 0.*default_collate: batch must contain"),
    (lambda: DataLoader(Calls(lambda i: tc.ones(i + 1)), batch_size=2, num_workers=1), RuntimeError, r"stack expects each tensor to be equal size"),
    (lambda: DataLoader(Calls(lambda i: lambda: 0), num_workers=1, collate_fn=same), (AttributeError, RuntimeError), "(?s)worker process 0.*pickle"),
    (lambda: DataLoader(Calls(lambda i: tc.ones(2, requires_grad=True) * 2), num_workers=1), RuntimeError, "Cowardly refusing to serialize non-leaf"),
    (lambda: DataLoader(Calls(same), num_workers=1, prefetch_factor=0), AssertionError, "prefetch_factor must be greater than 0"),
    (lambda: DataLoader(Calls(same), num_workers=1, sampler=[lambda: 0]), (AttributeError, RuntimeError), "pickle"),
    (lambda: DataLoader(Calls(lambda i: list(DataLoader(range(2), num_workers=1))), num_workers=1), AssertionError,
     "daemonic processes are not allowed to have children"),
    (lambda: DataLoader(object(), num_workers=1, sampler=[0]), TypeError, "(?s)worker process 0.*not subscriptable"),
    (lambda: DataLoader(Calls(lambda i: i), num_workers=2, multiprocessing_context="spawn"), (AttributeError, RuntimeError), "pickle|local object")])
def test_errors(make, error, message):
    with pytest.raises(error, match=message):
        next(iter(make()))


def ends(how):
    def item(i):
        if i == 3:
            how()
        return i
    return item


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def leave_a_child():
    """Its child keeps all descriptors open."""
    if os.fork() == 0:
        time.sleep(8)
        os._exit(0)
    kill()


@pytest.mark.parametrize("how, text", [(lambda: os._exit(7), " with exit code 7"), (kill, ": killed by SIGKILL"),
                                       (leave_a_child, ": killed by SIGKILL")])
def test_a_worker_that_ends(how, text):
    loader = iter(DataLoader(Calls(ends(how), 10), num_workers=2, multiprocessing_context="fork"))
    pid = loader._workers[1].pid
    assert [next(loader).item() for _ in range(1)] == [0]
    with pytest.raises(RuntimeError, match=rf"^DataLoader worker \(pid\(s\) {pid}\) exited unexpectedly{text}$"):
        list(loader)


def test_a_worker_that_is_killed_while_it_waits():
    loader = DataLoader(Calls(same, 30), num_workers=2, persistent_workers=True, multiprocessing_context="fork")
    iterator = iter(loader)
    next(iterator)
    os.kill(iterator._workers[0].pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="exited unexpectedly: killed by SIGKILL"):
        list(iterator)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="have been shut down; make a new iterator"):
            next(iterator)
    assert [batch.item() for batch in loader] == list(range(30))


def test_timeout():
    started = time.monotonic()
    loader = iter(DataLoader(Calls(lambda i: time.sleep(4 * (i == 1)), 4), batch_size=None, num_workers=1, timeout=0.5))
    assert next(loader) is None
    with pytest.raises(RuntimeError, match="^DataLoader timed out after 0.5 seconds$"):
        next(loader)
    assert time.monotonic() - started < 3.5
    with pytest.raises(AssertionError, match="requires timeout == 0"):
        iter(DataLoader(range(2), timeout=1))


def state(i):
    info = get_worker_info()
    return info.id, info.num_workers, info.seed, tc.initial_seed(), random.random(), np.random.rand(), tc.rand(1).item(), tc.get_num_threads()


def test_seeds_and_worker_info():
    def run(seed, workers=3):
        tc.manual_seed(seed)
        return samples(state, 6, num_workers=workers, collate_fn=same)

    first = run(1)
    assert first == run(1) and first != run(2)
    assert [s[0] for s in first] == [0, 1, 2] * 2 and {s[1] for s in first} == {3} and {s[7] for s in first} == {1}
    assert [s[2] - first[0][2] for s in first] == [0, 1, 2] * 2 and all(s[2] == s[3] for s in first)
    for column in (4, 5, 6):
        assert len({s[column] for s in first}) == 6
    given = {"generator": tc.Generator().manual_seed(5), "collate_fn": same}
    before = tc.get_rng_state()
    one, two = samples(state, 2, **given), samples(state, 2, **given)
    assert one != two and tc.equal(before, tc.get_rng_state())
    assert get_worker_info() is None


def test_numpy_is_seeded_as_by_pytorch():
    from tercel.utils.data._utils.worker import _generate_state
    assert _generate_state(0, 0) == [2968811710, 3677149159, 745650761, 2884920346]
    assert _generate_state(9807250281, 3) == [331823784, 4026609125, 3607995586, 4003163087]


def set_seed(worker):
    random.seed(100 + worker)


class Copy(Dataset):
    where = "parent"

    def __getitem__(self, i):
        return self.where, random.random()

    def __len__(self):
        return 2


def mark(worker):
    get_worker_info().dataset.where = f"worker {worker}"
    set_seed(worker)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_worker_init_fn(method):
    dataset = Copy()
    got = list(DataLoader(dataset, batch_size=None, num_workers=2, worker_init_fn=mark, multiprocessing_context=method, collate_fn=same))
    assert got == [(f"worker {k}", random.Random(100 + k).random()) for k in (0, 1)] and dataset.where == "parent"


class Shards(IterableDataset):
    def __init__(self, *sizes):
        self.sizes = sizes

    def __iter__(self):
        worker = get_worker_info().id
        return (100 * worker + k for k in range(self.sizes[worker]))

    def __len__(self):
        return 2


def test_streams():
    assert [b.tolist() for b in DataLoader(Shards(5, 2), batch_size=2, num_workers=2)] == [[0, 1], [100, 101], [2, 3], [4]]
    assert [b.tolist() for b in DataLoader(Shards(5, 2), batch_size=2, num_workers=2, drop_last=True)] == [[0, 1], [100, 101], [2, 3]]
    for more in ({}, {"persistent_workers": True}, {"in_order": False}):
        loader = DataLoader(Shards(9, 0, 3), batch_size=None, num_workers=3, **more)
        for _ in range(3):
            assert sorted(loader) == [*range(9), 200, 201, 202]
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="but 3 samples have been fetched. For multiprocessing data-loading"):
        list(loader)


def test_persistent_workers():
    loader = DataLoader(Calls(lambda i: (os.getpid(), i), 9), batch_size=None, num_workers=2, persistent_workers=True, prefetch_factor=3,
                        multiprocessing_context="fork", collate_fn=same)
    first = list(loader)
    for _ in range(3):
        for got in loader:
            break  # what has been read ahead is dropped
        assert got == first[0]
        assert list(loader) == first
    tensors = DataLoader(Calls(lambda i: tc.full((2000,), i), 50), batch_size=None, num_workers=2, persistent_workers=True, prefetch_factor=9)
    for _ in range(30):
        for i, batch in zip(range(3), tensors):
            assert batch.eq(i).all()
    assert maps() < 80
    pids = children()
    del loader, tensors, got, batch
    gc.collect()
    assert not any(map(is_alive, pids))


def test_an_early_end():
    for hold in (False, True):
        loader = DataLoader(Calls(lambda i: tc.ones(3000), 1000), num_workers=2)
        iterator = iter(loader)
        next(iterator)
        workers = iterator._workers
        gone = weakref.ref(iterator)
        if hold:  # a cycle
            iterator.me = iterator
        del iterator
        gc.collect()
        assert gone() is None and [worker.exitcode for worker in workers] == [0, 0]
    finished = iter(DataLoader(range(2), num_workers=1))
    list(finished)
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(finished)


def test_a_worker_that_does_not_end_is_terminated(monkeypatch):
    monkeypatch.setattr(tud._utils, "MP_STATUS_CHECK_INTERVAL", 0.3)

    def hangs(i):
        if i == 1:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(60)
        return i

    iterator = iter(DataLoader(Calls(hangs), batch_size=None, num_workers=1, multiprocessing_context="fork"))
    assert next(iterator) == 0
    (worker,) = iterator._workers
    time.sleep(0.2)
    started = time.monotonic()
    del iterator
    assert time.monotonic() - started < 10 and worker.exitcode == -signal.SIGKILL


def test_loops_in_loops():
    loader = DataLoader(range(4), num_workers=2)
    assert [(a.item(), b.item()) for a in loader for b in loader] == [(a, b) for a in range(4) for b in range(4)]
    other = iter(loader)
    assert sum(int(a + b) for a, b in zip(loader, other)) == 12


def test_much_to_say_in_both_directions():
    loader = DataLoader(Calls(lambda i: "x", 2_000_000), batch_size=100_000, num_workers=2, prefetch_factor=8, shuffle=True)
    assert [len(batch) for batch in loader] == [100_000] * 20


def test_threads_in_the_loaders_process():
    results = []

    def read():
        results.append(sum(int(b[0]) for b in DataLoader(TensorDataset(tc.arange(200)), batch_size=1, num_workers=1)))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [19900] * 3


def test_an_interrupt_in_the_middle_of_a_message(monkeypatch):
    loader = DataLoader(Calls(lambda i: tc.ones(2000), 50), num_workers=1, persistent_workers=True)
    iterator = iter(loader)
    next(iterator)
    channel = iterator._channels[0]

    def receive():
        type(channel).receive(channel)
        raise KeyboardInterrupt

    channel.receive = receive
    with pytest.raises(KeyboardInterrupt):
        list(iterator)
    with pytest.raises(RuntimeError, match="reading from the workers was interrupted; make a new iterator"):
        next(iterator)
    assert not iterator._workers[0].is_alive()
    assert len(list(loader)) == 50


PROGRAM = """
    import os, sys, time
    import tercel as tc
    from tercel.utils.data import DataLoader, Dataset
    class Slow(Dataset):
        def __getitem__(self, i):
            time.sleep(0.02)
            return tc.ones(20000)
        def __len__(self):
            return 100000
    if __name__ == "__main__":
        loader = iter(DataLoader(Slow(), batch_size=2, num_workers=2, multiprocessing_context=sys.argv[1]))
        kept = [next(loader) for _ in range(5)]
        print(*[w.pid for w in loader._workers], flush=True)
        for batch in loader:
            kept.append(batch)
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("how", ["Ctrl-C", "SIGINT", "SIGTERM", "SIGKILL"])
def test_the_end_of_a_program(tmp_path, method, how):
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    program = subprocess.Popen([sys.executable, str(tmp_path / "program.py"), method], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, env={**os.environ, "PYTHONPATH": PATH}, start_new_session=True)
    pids = [int(pid) for pid in program.stdout.readline().split()]
    assert len(pids) == 2
    if how == "Ctrl-C":  # reaches the workers too
        os.killpg(program.pid, signal.SIGINT)
    else:
        os.kill(program.pid, getattr(signal, how))
    _, errors = program.communicate(timeout=100)
    if how in ("Ctrl-C", "SIGINT"):
        assert program.returncode == -signal.SIGINT and errors.count("Traceback") == 1 and "KeyboardInterrupt" in errors, errors
    deadline = time.monotonic() + 30
    while any(map(is_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_alive, pids))


def test_a_program_that_ends_with_an_open_iterator():
    program = """
        from tercel.utils.data import DataLoader
        import tercel as tc
        loader = DataLoader(range(100), num_workers=2, persistent_workers=True)
        it = iter(loader)
        batch = next(it)
        cycle = [it]
        cycle.append(cycle)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=100,
                          env={**os.environ, "PYTHONPATH": PATH})
    assert done.returncode == 0 and done.stderr == ""


def test_a_forked_process_leaves_the_workers_alone():
    iterator = iter(DataLoader(Calls(lambda i: i, 20), batch_size=None, num_workers=1))
    next(iterator)
    child = os.fork()
    if child == 0:
        try:
            next(iterator)
        except RuntimeError as error:
            wrong = "belong to the process that started them" not in str(error)
            del iterator
            gc.collect()
            os._exit(wrong)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert list(iterator) == list(range(1, 20))


def test_an_index_that_cannot_be_sent():
    iterator = iter(DataLoader(Calls(same), batch_size=None, num_workers=1, prefetch_factor=1, sampler=iter([3, 4, lambda: 0, 5, 6])))
    assert next(iterator) == 3
    with pytest.raises((AttributeError, RuntimeError), match="pickle"):
        next(iterator)  # asks for the next but one
    assert list(iterator) == [4, 5, 6]  # with the batch that was to be delivered then


class RaisesOnce:
    def __init__(self, at):
        self.numbers, self.at = iter(range(12)), at

    def __iter__(self):
        return self

    def __next__(self):
        number = next(self.numbers)
        if number == self.at:
            self.at, self.numbers = -1, iter(range(number, 12))
            raise ValueError("once")
        return number


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}, {"num_workers": 2, "in_order": False}, {"prefetch_factor": 1}], ids=str)
@pytest.mark.parametrize("at", [5, 7, 11])
def test_a_sampler_that_raises_once_loses_no_batch(options, at):
    iterator = iter(DataLoader(Calls(lambda i: tc.full((20000,), i)), batch_size=None, sampler=RaisesOnce(at),
                               **{"num_workers": 1, "prefetch_factor": 2, **options}))
    found, raised = [], 0
    while True:
        try:
            found.append(next(iterator)[0].item())
        except ValueError:
            raised += 1
        except StopIteration:
            break
    assert sorted(found) == list(range(12)) and raised == 1
    assert found == sorted(found) or "in_order" in options
    del iterator
    assert maps() == 0


def test_warnings_of_a_run():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        assert len(list(DataLoader(range(5), num_workers=1))) == 5
