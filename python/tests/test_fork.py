"""Processes forked while other threads of their parent are running."""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def run(program, seconds=300):
    path = str(pathlib.Path(__import__("tercel").__file__).parent.parent)
    return subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True,
                          timeout=seconds, env={**os.environ, "PYTHONPATH": path}, check=False)


WORK = """
    import os, signal, threading, warnings
    warnings.simplefilter("ignore")
    import tercel as tc
    tc.set_num_threads(2)
    leaf = tc.ones(200, 200, requires_grad=True)
    class Twice(tc.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2
        @staticmethod
        def backward(ctx, g):
            return g * 2
    def work():
        x = tc.rand(200, 200)
        y = Twice.apply(leaf)
        view = y[0]
        y.mul_(x)
        (view.sum() + y.sum()).backward()
        tc.fft.fft(x[0])
    def child_works():
        for _ in range(3):
            work()
        return (tc.ones(300, 300) @ tc.ones(300, 300)).sum().item() == 27e6
    work()
    done = False
    def go_on():
        while not done:
            work()
    threads = [threading.Thread(target=go_on) for _ in range(3)]
    for thread in threads:
        thread.start()
"""


def check_children(program, check, forks):
    """Forks while the program's threads are at work; the check holds in each child."""
    done = run(program + f"""
    for _ in range({forks}):
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            os._exit(0 if {check} else 1)
        status = os.waitpid(child, 0)[1]
        if status != 0:
            break
    done = True
    for thread in threads:
        thread.join()
    assert status == 0, status
    """)
    assert done.returncode == 0, done.stderr


def test_children_of_a_process_at_work():
    check_children(WORK, "child_works()", 40)


def test_multiprocessing_with_the_fork_context():
    done = run(WORK + """
    import multiprocessing
    context = multiprocessing.get_context("fork")
    def entry(queue):
        signal.alarm(60)
        queue.put(child_works())
    found = []
    for _ in range(10):
        queue = context.SimpleQueue()
        process = context.Process(target=entry, args=(queue,))
        process.start()
        process.join()
        found.append(process.exitcode == 0 and queue.get())
    done = True
    for thread in threads:
        thread.join()
    assert all(found), found
    """)
    assert done.returncode == 0, done.stderr


def test_children_of_a_process_that_reads_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq
    pq.write_table(pa.table({"y": pa.array([0.0, 1.0] * 20000, pa.float32()), "k": list(range(40000))}),
                   tmp_path / "a.parquet", row_group_size=5000)
    check_children(f"""
    import os, signal, threading
    import tercel.data as td
    dataset = td.open_files("parquet", train=[{str(tmp_path / "a.parquet")!r}], label=["y"], categorical=["k"])
    def read():
        with dataset.batches("train", batch_size=1000) as reader:
            return sum(batch.rows for batch in reader)
    done = False
    def go_on():
        while not done:
            read()
    threads = [threading.Thread(target=go_on) for _ in range(2)]
    for thread in threads:
        thread.start()
    """, "read() == 40000", 100)


def test_a_node_that_is_replaced_dies_when_no_lock_is_held():
    done = run("""
        import threading
        import tercel as tc

        class Token:
            def __del__(self):
                # Another thread requests, with the GIL, an object that this one is changing.
                thread = threading.Thread(target=lambda: found.append(view.grad_fn is not None))
                thread.start()
                thread.join()

        class Twice(tc.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.token = Token()
                return x * 2
            @staticmethod
            def backward(ctx, g):
                return g * 2

        found = []
        base = Twice.apply(tc.ones(3, requires_grad=True)).clone()
        view = base[:2]
        assert view.grad_fn is not None
        base.detach_()
        base.mul_(tc.ones(3, requires_grad=True))
        assert view.grad_fn is not None
        assert found == [True], found
    """, seconds=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_checkpoint_and_another_thread_draw_at_the_same_time(use_reentrant):
    import threading

    import tercel as tc
    from tercel.utils.checkpoint import checkpoint

    others = []

    def draw_elsewhere(times):
        thread = threading.Thread(target=lambda: others.extend(tc.rand(1).item() for _ in range(times)))
        thread.start()
        thread.join()

    def part(x):
        draw_elsewhere(3 if not others else 1)
        once = tc.dropout(x, 0.5, True)
        return tc.dropout(once.exp(), 0.5, True)

    x = tc.ones(500, requires_grad=True)
    y = checkpoint(part, x, use_reentrant=use_reentrant)
    y.sum().backward()
    # y is 0, 2 where x was dropped, or 2 exp(2).
    expected = tc.where(y.detach() > 3, 2 * y.detach(), 0.0)
    assert tc.allclose(x.grad, expected), "the mask of backward is another than that of forward"
    assert len(others) == len(set(others)) == 4, "numbers that were drawn twice"


def test_generator_in_a_part_that_is_calculated_again():
    import tercel as tc
    from tercel.utils.checkpoint import checkpoint

    drawn = []

    def part(x):
        drawn.append((tc.rand(2).tolist(), tc.rand(2, generator=tc.default_generator).tolist(), tc.initial_seed()))
        return x * 2

    x = tc.ones(2, requires_grad=True)
    for use_reentrant in (False, True):
        drawn.clear()
        y = checkpoint(lambda t: part(t).exp(), x, use_reentrant=use_reentrant)
        after = tc.get_rng_state()
        y.sum().backward()
        assert len(drawn) == 2 and drawn[0] == drawn[1]
        assert tc.equal(tc.get_rng_state(), after)
