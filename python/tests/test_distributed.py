"""Groups of processes: collectives against NumPy, errors, and the ends of programs."""

import datetime
import pathlib
import re
import time

import pytest
import test_guide
from ranks import BEGIN, check, needs_mpirun, run

import tercel as tc
import tercel.distributed as dist

# Values of all ranks, of whole numbers, so that every reduction is exact but AVG of odd numbers of ranks.
VALUES = """
def values(dtype, shape, of):
    numbers = np.random.default_rng(100 + of).integers(0, 3, shape)
    return tc.from_numpy(numbers).to(dtype)

def all_values(dtype, shape):
    return [values(dtype, shape, of) for of in range(size)]

def same(found, expected):
    assert found.dtype == expected.dtype and found.shape == expected.shape, (found, expected)
    np.testing.assert_allclose(as_numpy(found), as_numpy(expected), rtol=1e-3)

def as_numpy(x):
    return (x.float() if x.dtype == tc.bfloat16 else x).detach().numpy()

def finished(work, is_async):
    assert (work is None) == (not is_async)
    if is_async:
        assert work.wait() and work.is_completed() and work.is_success() and work.exception() is None
"""


@needs_mpirun
@pytest.mark.parametrize("ranks", [2, 3])
def test_reductions(ranks):
    check(ranks, VALUES + """
    REDUCE = {"SUM": np.add, "PRODUCT": np.multiply, "MIN": np.minimum, "MAX": np.maximum, "BAND": np.bitwise_and,
              "BOR": np.bitwise_or, "BXOR": np.bitwise_xor}
    FLOATS = [tc.float16, tc.bfloat16, tc.float32, tc.float64]
    INTEGERS = [tc.bool, tc.int8, tc.int16, tc.int32, tc.int64, tc.uint8, tc.uint16, tc.uint32, tc.uint64]

    def expected(op, parts):
        if op == "AVG":
            return (sum(p.to(tc.complex128) for p in parts) / size).to(parts[0].dtype) if parts[0].is_complex() \\
                else (sum(p.double() for p in parts) / size).to(parts[0].dtype)
        array = REDUCE[op].reduce([as_numpy(p) for p in parts])
        return tc.from_numpy(np.asarray(array)).to(parts[0].dtype)

    done = 0
    for dtype in FLOATS + INTEGERS + [tc.complex64, tc.complex128]:
        ops = ["SUM", "PRODUCT"] + (["AVG"] if dtype not in INTEGERS else ["BAND", "BOR", "BXOR"])
        for op in ops + (["MIN", "MAX"] if not dtype.is_complex else []):
            how, is_async = getattr(dist.ReduceOp, op), done % 2 == 0
            parts = all_values(dtype, (3 * size, 2))
            whole = expected(op, parts)
            x = parts[rank].clone()
            finished(dist.all_reduce(x, how, async_op=is_async), is_async)
            same(x, whole)
            x = parts[rank].clone()
            finished(dist.reduce(x, size - 1, how, async_op=is_async), is_async)
            same(x, whole if rank == size - 1 else parts[rank])
            out = tc.empty(3, 2, dtype=dtype)
            finished(dist.reduce_scatter_tensor(out, parts[rank], how, async_op=is_async), is_async)
            same(out, whole[3 * rank:3 * rank + 3])
            out = tc.empty(2, 3, dtype=dtype).t()
            finished(dist.reduce_scatter(out, list(parts[rank].chunk(size)), how, async_op=is_async), is_async)
            same(out, whole[3 * rank:3 * rank + 3])
            done += 1
    assert done > 60
    x = tc.ones(2, dtype=tc.int32)
    raises(RuntimeError, "mean is not defined for int32", lambda: dist.all_reduce(x, dist.ReduceOp.AVG))
    raises(RuntimeError, "max is not defined for complex64", lambda: dist.all_reduce(x * 1j, dist.ReduceOp.MAX))
    raises(RuntimeError, "bitwise_and is not defined for float32", lambda: dist.all_reduce(x.float(), dist.ReduceOp.BAND))
    raises(ValueError, "multiply the tensor first", lambda: dist.all_reduce(x, dist.ReduceOp.PREMUL_SUM))
    for shape in [(0,), (), (50_000,)]:
        parts = all_values(tc.float32, shape)
        dist.all_reduce(parts[rank])
        same(parts[rank], expected("SUM", all_values(tc.float32, shape)))
    lengths = [1 + of for of in range(size)]
    parts = [values(tc.float64, (sum(lengths),), of) for of in range(size)]
    out = tc.empty(lengths[rank], dtype=tc.float64)
    dist.reduce_scatter(out, list(parts[rank].split(lengths)))
    same(out, expected("SUM", parts).split(lengths)[rank])
    """)


@needs_mpirun
@pytest.mark.parametrize("ranks", [2, 3])
def test_transfers(ranks):
    check(ranks, VALUES + """
    for step, dtype in enumerate([tc.float32, tc.bfloat16, tc.bool, tc.int64, tc.uint16, tc.complex128]):
        is_async, src = step % 2 == 0, step % size
        parts = all_values(dtype, (4, 3))
        for make in (lambda: parts[rank].clone(), lambda: parts[rank].t().contiguous().t()):  # not contiguous
            x = make()
            finished(dist.broadcast(x, src, async_op=is_async), is_async)
            same(x, parts[src])
            found = [make().zero_() for _ in range(size)]
            finished(dist.all_gather(found, make(), async_op=is_async), is_async)
            for f, p in zip(found, parts):
                same(f, p)
            out = tc.empty(4 * size, 3, dtype=dtype)
            finished(dist.all_gather_into_tensor(out, make(), async_op=is_async), is_async)
            same(out, tc.cat(parts))
            found = [make().zero_() for _ in range(size)] if rank == src else None
            finished(dist.gather(make(), found, dst=src, async_op=is_async), is_async)
            for f, p in zip(found or [], parts):
                same(f, p)
            x = make().zero_()
            finished(dist.scatter(x, [p + p for p in parts] if rank == src else None, src=src, async_op=is_async), is_async)
            same(x, parts[rank] + parts[rank])
    # Parts of other sizes: rank r sends r + to + 1 rows to rank `to`, with number 10 * r + to.
    def part(of, to):
        return tc.full((of + to + 1, 2), 10 * of + to)
    sent, expected = [part(rank, to) for to in range(size)], [part(of, rank) for of in range(size)]
    found = [tc.zeros_like(e) for e in expected]
    finished(dist.all_to_all(found, sent, async_op=True), True)
    for f, e in zip(found, expected):
        same(f, e)
    out = tc.zeros(sum(len(e) for e in expected), 2, dtype=tc.int64)
    dist.all_to_all_single(out, tc.cat(sent), [len(e) for e in expected], [len(s) for s in sent])
    same(out, tc.cat(expected))
    out = tc.zeros(size, 2)
    finished(dist.all_to_all_single(out, tc.full((size, 2), float(rank)), async_op=True), True)
    same(out, tc.arange(float(size)).view(-1, 1).expand(size, 2))
    gathered = [tc.zeros(of) for of in range(size)]
    dist.all_gather(gathered, tc.full((rank,), float(rank)))
    same(tc.cat(gathered), tc.cat([tc.full((of,), float(of)) for of in range(size)]))
    """)


@needs_mpirun
def test_objects():
    check(3, """
    things = [None] * size
    dist.all_gather_object(things, {"rank": rank, "x": tc.arange(rank)})
    assert [t["rank"] for t in things] == [0, 1, 2] and [t["x"].tolist() for t in things] == [[], [0], [0, 1]]
    things = [rank, "text" * rank, None] if rank == 1 else [None] * 3
    dist.broadcast_object_list(things, src=1)
    assert things == [1, "text", None]
    things = [None] * size if rank == 2 else None
    dist.gather_object("r" * rank, things, dst=2)
    assert things == (["", "r", "rr"] if rank == 2 else None)
    out = [None]
    dist.scatter_object_list(out, [("a",), {"b": 1}, 3] if rank == 0 else None)
    assert out == [[("a",), {"b": 1}, 3][rank]]
    raises(ValueError, "expected 3 entries", lambda: dist.all_gather_object([None], 1))
    raises(AttributeError, "", lambda: dist.all_gather_object([None] * 3, lambda: 1))  # before anything is sent
    dist.barrier()
    """)


@needs_mpirun
def test_tensors_of_open_works():
    check(2, """
    x = tc.full((1 << 20,), float(rank + 1))
    works = []
    for _ in range(8):
        works.append(dist.all_reduce(x * 1, async_op=True))  # nothing else holds the tensor
        gc.collect()
    y = tc.full((1 << 20,), 7.0)  # in memory that would be free
    for work in works:
        work.wait()
    assert (y == 7).all()
    leaf = tc.ones(3, requires_grad=True)
    product = leaf * leaf
    dist.all_reduce(leaf)
    assert leaf.requires_grad and leaf.is_leaf and leaf.tolist() == [2, 2, 2]
    raises(RuntimeError, "modified by an inplace operation", lambda: product.sum().backward())
    polled = dist.all_reduce(y.view(2, -1).t(), async_op=True)
    while not polled.is_completed():
        time.sleep(0.001)
    assert (y == 14).all()
    late = tc.ones(2)
    work = dist.all_reduce(late, async_op=True) if rank == 0 else None
    if rank == 0:
        raises(dist.DistBackendError, "not done after 0:00:00.100000", lambda: work.wait(datetime.timedelta(seconds=0.1)))
        assert not work.is_completed() and not work.is_success()
    else:
        time.sleep(0.5)
        dist.all_reduce(late)
    if rank == 0:
        assert work.wait()
    assert late.tolist() == [2, 2]
    results = []
    threads = [threading.Thread(target=lambda: [dist.barrier() for _ in range(20)]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=30))
    """)


@needs_mpirun
def test_several_threads_wait_for_a_work():
    check(2, """
    import threading
    for _ in range(30):
        parts, least = [tc.zeros(100000) for _ in range(size)], []
        work = dist.all_gather(parts, tc.ones(100000), async_op=True)
        def look():
            work.wait()
            least.append(min(part.min().item() for part in parts))
        threads = [threading.Thread(target=look) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert least == [1, 1, 1], least
    # What could not be copied back is an error each time.
    x = tc.ones(20, 10).t()
    work = dist.all_reduce(x, async_op=True)
    x.resize_(7)
    for _ in range(2):
        try:
            work.wait()
            raise SystemExit("no error")
        except RuntimeError:
            assert not work.is_success()
    """)


@needs_mpirun
def test_wrong_arguments_reach_nobody():
    """What is wrong on one rank alone is found before the others wait."""
    check(2, """
    x, y = tc.ones(4), tc.ones(2, 2)
    if rank == 1:
        raises(TypeError, "Expected parameter `tensor` of type tercel.Tensor", lambda: dist.all_reduce([1]))
        raises(TypeError, "expected a ReduceOp", lambda: dist.all_reduce(x, "sum"))
        raises(ValueError, "expected a dense tensor", lambda: dist.all_reduce(x.to_sparse()))
        raises(ValueError, "expected a rank from 0 to 1, found 2", lambda: dist.broadcast(x, 2))
        raises(ValueError, "Must specify src or group_src", lambda: dist.broadcast(x))
        raises(ValueError, "Can't specify both", lambda: dist.broadcast(x, 0, group_src=1))
        raises(ValueError, "expected 2 tensors, one for each rank, found 1", lambda: dist.all_gather([x], x))
        raises(ValueError, "expected tensors of one dtype", lambda: dist.all_gather([x, x.double()], x))
        raises(ValueError, "expected 4 elements for this rank", lambda: dist.all_gather([x, x[:3]], x))
        raises(TypeError, "List[tercel.Tensor]", lambda: dist.all_gather(x, x))
        raises(ValueError, "expected 2 times the 4 elements", lambda: dist.all_gather_into_tensor(x, x))
        raises(ValueError, "expected 2 times the 4 elements", lambda: dist.reduce_scatter_tensor(x, x))
        raises(ValueError, "expected 3 elements", lambda: dist.reduce_scatter(x[:3], [x, x]))
        raises(RuntimeError, "a first dimension that 2 divides", lambda: dist.all_to_all_single(tc.ones(3), tc.ones(3)))
        raises(RuntimeError, "split sizes of 4 together", lambda: dist.all_to_all_single(x, tc.ones(4), [1, 2], [2, 2]))
        raises(RuntimeError, "expected 2 split sizes", lambda: dist.all_to_all_single(x, tc.ones(4), [4], [2, 2]))
        raises(ValueError, "as many elements from this rank as to it",
               lambda: dist.all_to_all_single(x, tc.ones(4), [1, 3], [2, 2]))
        raises(ValueError, "to be different memory", lambda: dist.all_to_all_single(x, x))
        raises(ValueError, "must NOT be specified on non-destination ranks", lambda: dist.gather(x, [x, x]))
        raises(ValueError, "must be specified on destination rank", lambda: dist.gather(x, dst=1))
        raises(ValueError, "must NOT be specified on non-source ranks", lambda: dist.scatter(x, [x, x]))
        raises(ValueError, "must be specified on source rank", lambda: dist.scatter(x, src=1))
        raises(ValueError, "group of all processes is the only one", lambda: dist.barrier(group="mine"))
        raises(ValueError, "trying to initialize the default process group twice", dist.init_process_group)
        raises(TypeError, "datetime.timedelta", lambda: dist.monitored_barrier(timeout=3))
    dist.all_reduce(x)
    assert x.tolist() == [2] * 4
    """)


@needs_mpirun
def test_queries():
    check(2, """
    assert dist.is_initialized() and (rank, size) == (int(os.environ["OMPI_COMM_WORLD_RANK"]), 2)
    assert dist.get_backend() == "mpi" == dist.Backend.MPI and dist.get_process_group_ranks(None) == [0, 1]
    assert dist.group.WORLD is dist.GroupMember.WORLD and dist.get_rank(dist.group.WORLD) == rank
    assert dist.group.WORLD.rank() == rank and dist.group.WORLD.size() == 2 and dist.group.WORLD.name() == "mpi"
    assert dist.get_global_rank(dist.group.WORLD, 1) == 1 and dist.get_node_local_rank() == rank
    sampler = tc.utils.data.DistributedSampler(range(5), shuffle=False)
    assert (sampler.num_replicas, sampler.rank) == (2, rank) and list(sampler) == [[0, 2, 4], [1, 3, 0]][rank]
    dist.destroy_process_group()
    assert not dist.is_initialized() and dist.group.WORLD is None
    raises(RuntimeError, "MPI starts once in a process", dist.init_process_group)
    """)


@needs_mpirun
@pytest.mark.parametrize("arguments", ["world_size=3", "rank=2"])
def test_a_group_that_is_not_the_expected_one(arguments):
    check(2, f"""
    raises(ValueError, "found rank", lambda: dist.init_process_group({arguments}))
    assert not dist.is_initialized()
    dist.init_process_group()
    assert dist.get_world_size() == 2
    """, begin=BEGIN)


def test_tasks_of_srun_that_are_not_connected_are_warned_of():
    done = run(0, "os.environ['SLURM_STEP_NUM_TASKS'] = '4'; dist.init_process_group()", begin=BEGIN)
    assert done.returncode == 0 and "srun started 4 tasks, which are not connected" in done.stderr, done.stderr


def test_one_process_without_mpirun():
    check(0, VALUES + """
    assert (rank, size) == (0, 1)
    x = tc.ones(3)
    finished(dist.all_reduce(x, async_op=True), True)
    dist.broadcast(x, 0), dist.reduce(x, 0), dist.barrier()
    found, out = [tc.zeros(3)], tc.zeros(3)
    dist.all_gather(found, x), dist.all_to_all_single(out, x + 1), dist.gather(x, found), dist.scatter(x, found)
    assert found[0].tolist() == [1, 1, 1] and out.tolist() == [2, 2, 2] and dist.get_backend() == "mpi"
    dist.destroy_process_group()
    dist.init_process_group("mpi", "env://", datetime.timedelta(seconds=5), world_size=1, rank=0)
    """)


def test_the_end_of_one_process():
    assert run(0, "raise KeyError('alone')").returncode == 1
    assert run(0, "sys.exit(5)").returncode == 5
    assert run(0, "os.environ['WORLD_SIZE'] = '2'; dist.init_process_group()", begin=BEGIN).stderr.endswith(
        "ValueError: init_process_group: expected 2 processes, found this one alone; start them by mpirun -n 2\n")


def test_without_a_group():
    assert dist.is_available() and not dist.is_initialized() and dist.group.WORLD is None
    assert not (dist.is_nccl_available() or dist.is_gloo_available() or dist.is_ucc_available() or dist.is_xccl_available())
    assert dist.is_backend_available("mpi") == dist.is_mpi_available() and not dist.is_backend_available("gloo")
    assert not dist.is_torchelastic_launched() and dist.get_node_local_rank(3) == 3
    for call in (dist.get_rank, dist.get_world_size, dist.get_backend, dist.barrier, dist.destroy_process_group,
                 lambda: dist.all_reduce(tc.ones(1)), lambda: dist.broadcast_object_list([1], 0)):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            call()
    for call, match in ((dist.new_group, "one group, of all processes"), (dist.new_subgroups, "one group"),
                        (dist.send, "all_to_all_single"), (dist.recv, "all_to_all_single"),
                        (dist.isend, "all_to_all_single"), (dist.irecv, "all_to_all_single")):
        with pytest.raises(NotImplementedError, match=match):
            call(tc.ones(1), 1)


@pytest.mark.parametrize("arguments, error, match", [
    (dict(backend="gloo"), ValueError, "expected 'mpi' or None, found 'gloo'"), (dict(backend=3), ValueError, "found 3"),
    (dict(timeout=30), TypeError, "datetime.timedelta, got 30"), (dict(store=object()), ValueError, "store: expected None"),
    (dict(timeout=datetime.timedelta(0)), ValueError, "a positive time"), (dict(world_size="2"), TypeError, "world_size"),
    (dict(init_method=3), TypeError, "init_method")])
def test_wrong_arguments_of_init(arguments, error, match):
    with pytest.raises(error, match=match):
        dist.init_process_group(**arguments)
    assert not dist.is_initialized()


@needs_mpirun
def test_the_program_of_the_guide():
    page = pathlib.Path(__file__).parents[2] / "docs" / "guide" / "python_distributed.md"
    _, program, printed = test_guide.python_of(page)[0]
    done = run(2, program, begin="")
    assert done.returncode == 0 and done.stdout.splitlines() == printed, done.stderr


# The ends of programs.

@needs_mpirun
@pytest.mark.parametrize("waits", ["dist.all_reduce(tc.ones(3))", "time.sleep(100)"])
def test_an_exception_of_one_rank_ends_the_job(waits):
    began = time.monotonic()
    done = run(2, f"""
    if rank == 1:
        raise KeyError("rank one")
    {waits}
    """)
    assert done.returncode == 1 and time.monotonic() - began < 30, done.stderr
    assert "KeyError: 'rank one'" in done.stderr and "Traceback" in done.stderr


@needs_mpirun
def test_ctrl_c_ends_a_wait():
    began = time.monotonic()
    done = run(2, """
    if rank == 0:
        time.sleep(100)
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    dist.barrier()
    """)
    assert done.returncode == 130 and time.monotonic() - began < 30, done.stderr
    assert "KeyboardInterrupt" in done.stderr


@needs_mpirun
def test_a_program_goes_on_after_ctrl_c():
    check(2, """
    x = tc.ones(3)
    if rank == 0:
        time.sleep(1)
        dist.all_reduce(x)
    else:
        work = dist.all_reduce(x, async_op=True)
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        raises(KeyboardInterrupt, "", work.wait)
        work.wait()
    assert x.tolist() == [2, 2, 2]
    """)


@needs_mpirun
@pytest.mark.parametrize("end", ["pass", "sys.exit(0)", "works = [dist.all_reduce(tc.ones(4), async_op=True) for _ in range(9)]",
                                 "time.sleep(0.5 * rank); dist.destroy_process_group()"])
def test_normal_ends(end):
    done = run(2, f"os.write(1, b'begun ')\n{end}")
    assert done.returncode == 0 and done.stderr == "" and done.stdout.count("begun") == 2, done.stderr


@needs_mpirun
def test_a_rank_that_ends_early_ends_the_job():
    began = time.monotonic()
    done = run(2, """
    if rank == 1:
        sys.exit(0)
    dist.all_reduce(tc.ones(3))
    dist.all_reduce(tc.ones(3))
    """)
    assert done.returncode == 7 and time.monotonic() - began < 30, done.stderr
    assert "DistBackendError" in done.stderr


@needs_mpirun
@pytest.mark.parametrize("call, found", [
    ("dist.all_reduce(tc.ones(3)) if rank == 0 else dist.barrier()", ("all_reduce(float32) on rank 0", "barrier on rank 1")),
    ("dist.all_reduce(tc.ones(3, dtype=[tc.int32, tc.float32][rank]))",
     ("all_reduce(int32) on rank 0", "all_reduce(float32) on rank 1")),
])
def test_other_calls_of_another_rank_are_errors(call, found):
    done = run(2, call)
    assert done.returncode in (1, 7), done.stderr
    assert all(text in done.stderr for text in found), done.stderr


@needs_mpirun
def test_another_root_is_found_at_the_end():
    # All ranks send, and none waits for another.
    done = run(2, "dist.broadcast(tc.ones(3), src=rank)")
    assert done.returncode in (1, 7), done.stderr
    assert re.search("of the collectives before number .*, one was another on rank|broadcast.float32, root 1. on rank 1",
                     done.stderr), done.stderr


@needs_mpirun
def test_longer_messages_than_expected_are_errors():
    done = run(2, """
    dist.broadcast(tc.ones(3 if rank == 0 else 2), src=0)
    """)
    assert done.returncode in (1, 7), done.stderr
    assert "rank 0: MPI: found more bytes than expected; do all ranks the same" in done.stderr, done.stderr


@needs_mpirun
def test_children_that_are_forked():
    check(2, """
    def in_child(body):
        child = os.fork()
        if child == 0:
            body()
            sys.exit(0)  # with the handlers of atexit
        assert os.waitpid(child, 0)[1] == 0

    def uses():
        assert dist.get_rank() == rank
        raises(RuntimeError, "a child cannot take part in it", lambda: dist.all_reduce(tc.ones(2)))
        raises(RuntimeError, "of the process that was forked", open_work.wait)

    def destroys():
        dist.destroy_process_group()
        assert not dist.is_initialized()
        gc.collect()

    open_work = dist.all_reduce(tc.ones(2), async_op=True)
    in_child(uses)
    in_child(destroys)
    in_child(lambda: None)
    open_work.wait()
    warnings.simplefilter("ignore")  # more workers than CPUs
    data = tc.utils.data.TensorDataset(tc.arange(8.0))
    for _ in range(2):
        for (batch,) in tc.utils.data.DataLoader(data, 4, num_workers=2, multiprocessing_context="fork"):
            dist.all_reduce(batch)
    assert batch.tolist() == [8, 10, 12, 14]
    """)
