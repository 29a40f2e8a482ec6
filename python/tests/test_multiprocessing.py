"""Tensors in several processes."""

import os
import pickle
import signal

import pytest

import tercel as tc
from tercel import multiprocessing as mp


def put(queue, x):
    queue.put({"double": x * 2, "view": x.t()})


def write(index, folder, x):
    tc.save(x + index, os.path.join(folder, f"{index}.pt"))


def fail(index, how):
    if index == 1:
        if how == "raise":
            raise KeyError("of worker 1")
        if how == "exit":
            os._exit(7)
        os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()


def square(x):
    return x * x


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_queue_carries_tensors(method):
    context = mp.get_context(method)
    queue = context.Queue()
    x = tc.arange(6.0).view(2, 3)
    process = context.Process(target=put, args=(queue, x))
    process.start()
    got = queue.get(timeout=100)
    process.join()
    assert process.exitcode == 0 and got["double"].tolist() == (x * 2).tolist() and got["view"].shape == (3, 2)


def test_a_pool_maps():
    with mp.get_context("fork").Pool(2) as pool:
        assert [t.tolist() for t in pool.map(square, [tc.tensor([2.0]), tc.tensor([3.0])])] == [[4], [9]]


def test_spawn(tmp_path):
    mp.spawn(write, args=(str(tmp_path), tc.zeros(2)), nprocs=2)
    assert [tc.load(tmp_path / f"{i}.pt").tolist() for i in range(2)] == [[0, 0], [1, 1]]
    running = mp.start_processes(write, (str(tmp_path), tc.ones(1)), 2, join=False, start_method="fork")
    assert len(running.pids()) == 2
    while not running.join(60):
        pass
    assert running.join() and tc.load(tmp_path / "1.pt").item() == 2


@pytest.mark.parametrize("how, error, message", [
    ("raise", mp.ProcessRaisedException, "(?s)-- Process 1 terminated with the following error:.*KeyError: 'of worker 1'"),
    ("exit", mp.ProcessExitedException, "process 1 terminated with exit code 7"),
    ("kill", mp.ProcessExitedException, "process 1 terminated with signal SIGKILL")])
def test_a_failure_ends_the_others(how, error, message):
    with pytest.raises(error, match=message) as raised:
        mp.start_processes(fail, (how,), 3, start_method="fork")
    assert raised.value.error_index == 1 and raised.value.error_pid > 0
    again = pickle.loads(pickle.dumps(raised.value))
    assert str(again) == str(raised.value) and again.error_pid == raised.value.error_pid


def test_names():
    import multiprocessing
    for name in multiprocessing.__all__:
        assert getattr(mp, name) is getattr(multiprocessing, name)
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies() == {"file_system", "file_descriptor"}
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy("file_system")
    assert mp.get_sharing_strategy() == "file_system"
    mp.set_sharing_strategy(before)
    with pytest.raises(AssertionError, match="expected one of file_descriptor, file_system, but got 'net'"):
        mp.set_sharing_strategy("net")
    for share in (tc.ones(1).share_memory_, tc.nn.Linear(1, 1).share_memory):
        with pytest.raises(NotImplementedError, match="memory is not shared between processes"):
            share()
