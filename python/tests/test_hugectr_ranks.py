"""HugeCTR's scripts in several processes, each a node of vvgpu, against one process."""

import json
import pathlib

import numpy as np
import pytest
from hugectr_models import generate
from ranks import BEGIN, check, needs_mpirun, run

SCRIPT = f"""
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
from hugectr_models import Format, hugectr, local, model_of, reader_of
nodes = int(os.environ.get("OMPI_COMM_WORLD_SIZE", 1))
rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", 0))
"""

FIT = """
    events = []

    class Callback(hugectr.TrainingCallback):
        def on_training_start(self): return False
        def on_training_end(self, iteration): return False
        def on_eval_start(self, iteration): return False
        def on_eval_end(self, iteration, results):
            events.append(results)
            return rank == 0 and iteration == 8  # rank 0 decides

    of = hugectr.MetricsType
    model = model_of(pathlib.Path(sys.argv[1]), optimizer=local("Adam"), solver=dict(
        vvgpu=[[k] for k in range(nodes)], batchsize_eval=299, max_eval_batches=2, training_callbacks=[Callback()],
        metrics_spec={of.AUC: 1.0, of.AverageLoss: 0.0, of.SMAPE: 0.0}), embedding=json.loads(sys.argv[2]))
    model.compile()
    model.summary()
    model.graph_to_json("graph.json")
    model.fit(max_iter=100, display=2, eval_interval=3, snapshot=6, snapshot_prefix="out/snapshot")
    model.export_predictions("predictions", "labels")
    weights = {name: table.tolist() for name, table in model.session.parameters().items()}
    model.load_dense_weights("out/snapshot_dense_6.model")
    model.load_sparse_weights(["out/snapshot0_sparse_6.model"])
    found = dict(events=events, weights=weights, loss=model.get_current_loss(), iterations=model.session.steps)
    with open(f"found.{rank}", "w") as file:
        json.dump(found, file)
"""


def outcome(folder, ranks, embedding):
    """What each rank finds, the bytes of files and the lines that are printed."""
    where = folder / f"ranks{ranks}"
    where.mkdir()
    out = check(ranks, FIT, str(folder), json.dumps(embedding), begin=BEGIN + "import json, pathlib\n" + SCRIPT, cwd=where)
    found = [json.loads((where / f"found.{rank}").read_text()) for rank in range(max(ranks, 1))]
    files = {str(file.relative_to(where)) for file in where.rglob("*") if file.is_file() and not file.name.startswith("found")}
    return found, files, where, out


@needs_mpirun
@pytest.mark.parametrize("embedding", [{}, {"slot_size_array": []}], ids=["fixed", "growing"])
def test_fit_trains_what_one_process_does(tmp_path, embedding):
    generate(tmp_path)
    (one,), files, alone, _ = outcome(tmp_path, 0, embedding)
    found, files_of_ranks, several, out = outcome(tmp_path, 2, embedding)
    assert files_of_ranks == files and found[0] == found[1], "the same on all ranks"
    assert found[0]["iterations"] == one["iterations"] == 9 and len(one["events"]) == 3
    for expected, events in zip(one["events"], found[0]["events"]):
        assert events.keys() == expected.keys() == {"AUC", "AverageLoss", "SMAPE"}
        assert list(events.values()) == pytest.approx(list(expected.values()), rel=1e-3)
    assert found[0]["loss"] == pytest.approx(one["loss"], rel=1e-3)
    for name, weight in one["weights"].items():
        np.testing.assert_allclose(found[0]["weights"][name], weight, rtol=1e-2, atol=1e-4)
    for file in ("predictions", "labels"):
        values = [[float(v) for v in (where / file).read_text().split()] for where in (alone, several)]
        assert len(values[0]) == 1 and values[1] == pytest.approx(values[0], rel=1e-2)
    for line in ("Model Fit", "Model Summary", "Iter: 2 ", "Wrote the model to out/snapshot_dense_6.model"):
        assert out.count(line) == 1, out


@needs_mpirun
def test_nodes_that_are_no_processes():
    check(2, """
    raises(tc.ConfigError, "found 1: start 1", lambda: hugectr.CreateSolver(vvgpu=[[0, 1]]))
    raises(tc.ConfigError, "found 3: start 3", lambda: hugectr.CreateSolver(vvgpu=[[0], [1], [2]]))
    """, begin=BEGIN + SCRIPT)


@needs_mpirun
def test_an_error_of_the_first_process_is_that_of_all(tmp_path):
    generate(tmp_path)
    check(2, """
    model = model_of(pathlib.Path(sys.argv[1]), solver=dict(vvgpu=[[0], [1]], seed=0))
    model.compile()
    seeds = [None] * 2
    dist.all_gather_object(seeds, model.solver.seed)
    assert seeds[0] == seeds[1]
    open("file", "w").close()
    raises((RuntimeError, OSError), "file", lambda: model.save_params_to_files("file/prefix"))
    assert model.train()
    """, str(tmp_path), begin=BEGIN + "import pathlib\n" + SCRIPT, cwd=tmp_path)


@needs_mpirun
def test_the_module_for_mpi4py():
    check(2, """
    from tercel.hugectr._mpi import MPI
    comm = MPI.COMM_WORLD
    assert (comm.Get_rank(), comm.size) == (rank, 2) and (MPI.COMM_SELF.rank, MPI.COMM_SELF.Get_size()) == (0, 1)
    comm.Barrier()
    assert comm.bcast(f"of {rank}", root=1) == "of 1" and comm.allgather(rank) == [0, 1]
    assert comm.gather(rank) == ([0, 1] if rank == 0 else None) and comm.scatter(["a", "b"]) == "ab"[rank]
    assert comm.allreduce(rank + 1) == 3 and comm.allreduce(rank, MPI.MAX) == 1
    assert comm.reduce(rank + 1, root=1) == (3 if rank == 1 else None)
    x, y = np.full(2, float(rank + 1)), np.zeros(2)
    comm.Allreduce(x, y, MPI.PROD)
    assert y.tolist() == [2, 2]
    comm.Allreduce(MPI.IN_PLACE, x)
    assert x.tolist() == [3, 3]
    comm.Bcast(y if rank else x)
    assert comm.Dup().Split(1, rank).allreduce(1) == 2
    raises(NotImplementedError, "install mpi4py", lambda: comm.Split(rank))
    """, begin=BEGIN + SCRIPT)
    done = run(2, "from tercel.hugectr._mpi import MPI\nMPI.COMM_WORLD.Barrier()\n"
               "MPI.COMM_WORLD.Abort(5) if rank else time.sleep(100)", begin=BEGIN + SCRIPT)
    assert done.returncode == 5
