"""Tables of HugeCTR's scripts on several processes: plans of collections, types of embeddings, and their files."""

import json
import pathlib

import numpy as np
import pytest
from hugectr_models import Format, generate
from ranks import BEGIN, check, needs_mpirun
from test_hugectr_collection import HOTNESS, model_of
from test_hugectr_ranks import SCRIPT

import tercel as tc
import tercel.hugectr as hugectr
from tercel.hugectr.tables import Table

START = BEGIN + "import json, pathlib\n" + SCRIPT + """
from tercel.hugectr import _ranks
from test_hugectr_collection import model_of as collection_model, table
folder = pathlib.Path(sys.argv[1])
vvgpu = [[0]] * nodes

def built(sizes=(20, 20, -1)):
    collection = hugectr.EmbeddingCollectionConfig()
    own = hugectr.CreateOptimizer(hugectr.Optimizer_t.AdaGrad, initial_accu_value=0.1)
    for i, (name, rows, width) in enumerate(zip("abc", sizes, (2, 4, 3))):
        collection.embedding_lookup(table(name, rows, width, opt_params=own if i else None), f"k{i}", f"v{i}", "sum")
    last = nodes - 1
    matrix = [["a", "b", "c"] if rank == last else ["b", "c"] if rank == 0 else ["b"] for rank in range(nodes)]
    collection.shard(matrix, [("dp", ["b"]), ("mp", ["a", ("c", 2)])])
    model = collection_model(folder, collection, ["v0", "v1", "v2"], vvgpu=vvgpu)
    model.compile()
    return model

def predictions(model):
    found = []
    for _ in range(3):  # all of them
        found += _ranks.rows_of_all(model.session.predict(model.get_data_reader_eval().next())).tolist()
    assert len(found) == 300
    return found

def keep(**found):
    if rank == 0:
        pathlib.Path("found").write_text(json.dumps(found))
"""


def outcome(where, ranks, program, *arguments):
    """What rank 0 keeps; `where` is the folder that they run in."""
    check(ranks, program, *arguments, begin=START, cwd=where)
    return json.loads((where / "found").read_text())


def files_of(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.fixture
def folder(tmp_path):
    generate(tmp_path, Format.RawAsync, i64_input_key=False, nnz_array=HOTNESS, float_label_dense=True,
             slot_size_array=[20, 20, 30])
    return tmp_path


TRAIN = """
    model = built()
    for _ in range(8):
        assert model.train()
    model.save_params_to_files("out/model", 8)
    model.embedding_dump("out")
    owned = {name: model.session.table_rows(name)[0].tolist() for name in "abc"}
    everywhere = [None] * nodes
    if nodes > 1:
        dist.all_gather_object(everywhere, owned)
    keep(predictions=predictions(model), owned=everywhere if nodes > 1 else [owned])
"""

LOAD = """
    model = built()
    first = predictions(model)
    model.load_dense_weights(sys.argv[2] + "/model_dense_8.model")
    model.embedding_load(sys.argv[2])
    keep(predictions=predictions(model), first=first)
"""


@needs_mpirun
@pytest.mark.parametrize("ranks", [2, 3])
def test_plans_of_collections_place_tables(folder, ranks):
    found = {}
    for n in (0, ranks):
        where = folder / f"ranks{n}"
        where.mkdir()
        found[n] = outcome(where, n, TRAIN, str(folder))
    one, several = found[0], found[ranks]
    np.testing.assert_allclose(several["predictions"], one["predictions"], atol=1e-5)
    owned, last = several["owned"], ranks - 1
    assert [len(on["a"]) for on in owned] == [20 if rank == last else 0 for rank in range(ranks)]
    assert all(on["b"] == list(range(20)) for on in owned)
    assert owned[0]["c"] and all(key % 2 == 0 for key in owned[0]["c"]), "the remainder by the two that list it"
    assert owned[last]["c"] and all(key % 2 == 1 for key in owned[last]["c"])
    assert sorted(key for on in owned for key in on["c"]) == one["owned"][0]["c"]
    # The files are those of one process, and are read by any number.
    files, expected = (files_of(folder / f"ranks{n}" / "out") for n in (ranks, 0))
    assert files.keys() == expected.keys()
    assert all(files[name] == expected[name] for name in files if name.endswith(("meta_data", "key0", "key1", "key2")))
    for n in (0, 2, 3):
        where = folder / f"loaded{n}"
        where.mkdir()
        loaded = outcome(where, n, LOAD, str(folder), str(folder / f"ranks{ranks}" / "out"))
        np.testing.assert_allclose(loaded["predictions"], several["predictions"], atol=1e-6)
        assert not np.allclose(loaded["first"], several["predictions"], atol=1e-3)


LAYER = """
    embedding = json.loads(sys.argv[2])
    embedding["embedding_type"] = hugectr.Embedding_t[embedding["embedding_type"]]

    def made():
        model = model_of(folder, optimizer=local("Adam"), solver=dict(vvgpu=vvgpu), embedding=embedding)
        model.compile()
        return model

    model = made()
    for _ in range(6):
        assert model.train()
    keys = model.session.table_rows("emb")[0].tolist()
    model.save_params_to_files("out/model", 6)
    again = made()
    again.load_dense_weights(sys.argv[3] + "/out/model_dense_6.model")
    again.load_dense_optimizer_states(sys.argv[3] + "/out/model_opt_dense_6.model")
    again.load_sparse_weights([sys.argv[3] + "/out/model0_sparse_6.model"])
    again.load_sparse_optimizer_states([sys.argv[3] + "/out/model0_opt_sparse_6.model"])
    again.save_params_to_files("again/model", 6)
    loaded = predictions(again)
    everywhere = [keys]
    if nodes > 1:
        everywhere = [None] * nodes
        dist.all_gather_object(everywhere, keys)
        raises(RuntimeError, "other processes have a part of the table 'emb'", lambda: model.session.dump_table("emb", "x.npz"))
    for _ in range(3):
        again.train()
    keep(predictions=predictions(model), loaded=loaded, keys=everywhere, trained=predictions(again))
"""


@needs_mpirun
@pytest.mark.parametrize("kind,sizes", [("Localized", [5, 20, 30]), ("Distributed", [5, 20, 30]), ("Localized", [])],
                         ids=["localized", "distributed", "growing"])
def test_types_of_embeddings_place_their_tables(tmp_path, kind, sizes):
    generate(tmp_path)
    embedding = json.dumps({"embedding_type": f"{kind}SlotSparseEmbeddingHash", "slot_size_array": sizes})
    found = {}
    for ranks in (0, 2, 3):
        where = tmp_path / f"ranks{ranks}"
        where.mkdir()
        found[ranks] = outcome(where, ranks, LAYER, str(tmp_path), embedding, str(tmp_path / "ranks0"))
    for ranks in (2, 3):
        np.testing.assert_allclose(found[ranks]["predictions"], found[0]["predictions"], atol=1e-5)
        np.testing.assert_allclose(found[ranks]["trained"], found[0]["trained"], atol=1e-5)
        assert found[ranks]["loaded"] == pytest.approx(found[0]["loaded"], abs=1e-6)
        keys = found[ranks]["keys"]
        assert sorted(key for own in keys for key in own) == found[0]["keys"][0]
        if sizes and kind == "Localized":
            assert keys[0] == [*range(5), *range(25, 55)] if ranks == 2 else keys[0] == [*range(5)]
        else:
            assert all(key % ranks == rank for rank, own in enumerate(keys) for key in own)
        # What was loaded is written again byte for byte: weights, slots and states.
        assert files_of(tmp_path / f"ranks{ranks}" / "again") == files_of(tmp_path / "ranks0" / "out")


@needs_mpirun
def test_a_failure_leaves_no_files(folder):
    check(2, """
    model = built()
    model.train()
    if rank == 0:
        os.makedirs("bad/embedding_collection_0/weight2")
        open("file", "w").close()
    dist.barrier()
    text = "Is a directory" if rank == 0 else "rank 0 of 2: "
    raises(OSError, "weight2", lambda: model.embedding_dump("bad", ["c"]))
    raises(OSError, "rank 0" if rank else "file", lambda: model.embedding_dump("file"))
    dist.barrier()
    assert sorted(os.listdir("bad/embedding_collection_0")) == ["weight2"], os.listdir("bad/embedding_collection_0")
    # What one rank cannot read is an error on all, and no rank has changed its rows.
    model.embedding_dump("good")
    keys = np.fromfile("good/embedding_collection_0/key2", "<u4")
    dist.barrier()
    if rank == 0:
        keys[-1] = keys[-2]  # of one rank or the other
        keys.tofile("good/embedding_collection_0/key2")
    dist.barrier()
    before = model.session.tables()["c"].numpy().copy()
    raises((tc.DataError, OSError), "occurs twice", lambda: model.embedding_load("good", ["c"]))
    assert np.array_equal(model.session.tables()["c"].numpy(), before)
    dist.barrier()
    if rank == 0:
        os.truncate("good/embedding_collection_0/meta_data", 60)
    dist.barrier()
    raises(tc.DataError, "meta_data", lambda: model.embedding_load("good", ["a"]))
    assert model.train()
    """, str(folder), begin=START, cwd=folder)


def test_plans_are_those_of_the_gpus_of_nodes():
    collection = hugectr.EmbeddingCollectionConfig()
    config = hugectr.EmbeddingTableConfig
    collection.embedding_lookup([config("a", 20, 2), config("b", 20, 2)], ["k0", "k1"], "v", ["sum", "sum"])
    assert collection.placements([[0, 1]]) == []
    collection.shard([["a"], ["a"], ["b"], ["a", "b"]], [("mp", [("a", 2)]), ("dp", ["b"])])
    placed = {"table": "a", "placement": "distributed", "ranks": [0, 1]}
    assert collection.placements([[0, 1], [0, 1]]) == [placed, {"table": "b", "placement": "replicated"}]
    assert collection.placements([[0], [0], [0], [0]])[0]["ranks"] == [0, 1, 3]
    with pytest.raises(tc.ConfigError, match="shard_matrix: expected 3 lists, one for each GPU of vvgpu, found 4"):
        collection.placements([[0, 1], [0]])
    for strategy, text in (([("mp", ["a", "a", "b"])], "the table 'a' is there twice"),
                           ([("mp", ["a"]), ("dp", [("b", 2)])], "tables of 'dp' have no parts by columns"),
                           ([("mp", [("a", 0), "b"])], "a number of parts by columns, at least 1")):
        with pytest.raises(tc.ConfigError, match=text):
            collection.shard([["a", "b"]], strategy)


def test_memory_is_that_of_the_rows_of_a_process():
    table = Table("t", 0, 100, 4, 1, True)
    assert table.bytes == 100 * 4 * 4 * 2
    part = {"table": "t", "placement": "distributed", "ranks": [1, 2]}
    assert [table.bytes_of(part, rank, 3) for rank in range(3)] == [0, 1600, 1600]
    assert table.bytes_of({"table": "t", "placement": "localized"}, 0, 4) == 800
    assert table.bytes_of({"table": "t", "placement": "replicated"}, 0, 4) == table.bytes_of(None, 0, 4) == 3200


def test_a_plan_needs_a_list_for_each_gpu(folder):
    collection = hugectr.EmbeddingCollectionConfig()
    collection.embedding_lookup(hugectr.EmbeddingTableConfig("a", 20, 2), "k0", "v", "sum")
    collection.shard([["a"], ["a"]], [("mp", ["a"])])
    with pytest.raises(tc.ConfigError, match="expected 1 lists, one for each GPU of vvgpu, found 2"):
        model_of(folder, collection, ["v"])
    model = model_of(folder, collection, ["v"], vvgpu=[[0], [0]])
    model.compile()  # one process has all
    assert tuple(model.session.tables()["a"].shape) == (20, 2) and model.train()
