"""Collections of embedding tables: lookups, sharing, concatenation, plans, dumps."""

import numpy as np
import pytest

import tercel as tc
import tercel.hugectr as hugectr
from hugectr_models import Format, Layer, generate, local, reader_of

HOTNESS = [1, 3, 1]


def model_of(folder, collection, tops, **solver):
    """A linear model of the lookups' outputs."""
    options = dict(batchsize=100, batchsize_eval=100, lr=0.5, seed=2, use_embedding_collection=True, max_eval_batches=2)
    of = hugectr.CreateSolver(**{**options, **solver})
    reader = reader_of(folder, Format.RawAsync, async_param=hugectr.AsyncParam(1, 1))
    model = hugectr.Model(of, reader, local())
    model.add(hugectr.Input(1, "label", 2, "dense", [hugectr.DataReaderSparseParam(f"k{i}", n, True, 1)
                                                     for i, n in enumerate(HOTNESS)]))
    model.add(collection)
    flat = []
    for i, top in enumerate(tops):
        model.add(hugectr.DenseLayer(Layer.Reshape, [top], [f"flat{i}"]))
        flat.append(f"flat{i}")
    model.add(hugectr.DenseLayer(Layer.Concat, [*flat, "dense"], ["all"]))
    model.add(hugectr.DenseLayer(Layer.InnerProduct, ["all"], ["logit"], num_output=1))
    model.add(hugectr.DenseLayer(Layer.BinaryCrossEntropyLoss, ["logit", "label"], ["loss"]))
    return model


@pytest.fixture
def folder(tmp_path):
    generate(tmp_path, Format.RawAsync, i64_input_key=False, nnz_array=HOTNESS, float_label_dense=True,
             slot_size_array=[20, 20, 30])
    return tmp_path


def table(name, rows=20, width=2, **options):
    return hugectr.EmbeddingTableConfig(name, rows, width, **options)


def rows_of(folder):
    record = np.dtype([("label", "<i4"), ("dense", "<f4", 2), ("keys", "<u4", 5)])
    return np.fromfile(folder / "list.txt", record)


def test_lookups_of_one_table_in_numbers(folder):
    shared, other = table("items"), table("users", 30, 4)
    collection = hugectr.EmbeddingCollectionConfig()
    collection.embedding_lookup(shared, "k0", "a", "sum")
    collection.embedding_lookup(shared, "k1", "b", "concat")
    collection.embedding_lookup(shared, "k1", "c", "average")
    collection.embedding_lookup(other, "k2", "d", "sum")
    model = model_of(folder, collection, ["a", "b", "c", "d"])
    model.compile()
    assert {name: tuple(t.shape) for name, t in model.session.tables().items()} == {"items": (20, 2), "users": (30, 4)}
    assert abs(model.session.tables()["items"].numpy()).max() <= np.sqrt(1 / 20)
    items, users = (model.session.tables()[name].numpy().copy() for name in ("items", "users"))
    weight = model.session.parameters()["logit.weight"].numpy().copy()
    bias = model.session.parameters()["logit.bias"].numpy().copy()
    model.train()
    keys = rows_of(folder)["keys"][:100].astype(int)
    features = np.concatenate([items[keys[:, 0]], items[keys[:, 1:4]].reshape(100, 6), items[keys[:, 1:4]].mean(axis=1),
                               users[keys[:, 4]], rows_of(folder)["dense"][:100]], axis=1)
    p = 1 / (1 + np.exp(-(features @ weight + bias)))
    error = (p[:, 0] - rows_of(folder)["label"][:100]) / 100
    grad = np.zeros_like(items)
    for i in range(100):
        grad[keys[i, 0]] += error[i] * weight[:2, 0]
        for place in range(3):
            grad[keys[i, 1 + place]] += error[i] * weight[2 + 2 * place:4 + 2 * place, 0]
            grad[keys[i, 1 + place]] += error[i] * weight[8:10, 0] / 3
    assert np.allclose(model.session.tables()["items"].numpy(), items - 0.5 * grad, atol=1e-6)
    model.freeze_embedding("items")
    before = model.session.tables()["items"].numpy().copy()
    model.train()
    assert np.array_equal(model.session.tables()["items"].numpy(), before)


def test_lists_make_one_tensor(folder):
    collection = hugectr.EmbeddingCollectionConfig()
    collection.embedding_lookup([table("a"), table("b", 20, 3), table("c", 30, 1)], ["k0", "k1", "k2"], "all_vectors",
                                ["sum", "concat", "mean"])
    model = model_of(folder, collection, ["all_vectors"])
    model.compile()
    model.train()
    batch = model._last[hugectr.Tensor_t.Train]
    found = model.session.compute(batch, "all_vectors").numpy()
    tables = {name: t.numpy() for name, t in model.session.tables().items()}
    keys = rows_of(folder)["keys"][:100].astype(int)
    expected = np.concatenate([tables["a"][keys[:, 0]], tables["b"][keys[:, 1:4]].reshape(100, 9),
                               tables["c"][keys[:, 4]]], axis=1)
    assert np.array_equal(found, expected)
    one = hugectr.EmbeddingCollectionConfig()
    one.embedding_lookup([table("a")], ["k0"], "v", ["sum"])
    rest = hugectr.EmbeddingCollectionConfig()
    rest.embedding_lookup(table("b"), "k1", "w", "sum")
    rest.embedding_lookup(table("c", 30), "k2", "x", "sum")
    model = model_of(folder, one, ["v"])
    model.compile()  # inputs that no table reads are left out
    assert tuple(model.session.compute(batch, "v").shape) == (100, 2)


def test_tables_have_their_own_optimizer_and_initial_values(folder):
    collection = hugectr.EmbeddingCollectionConfig()
    own = hugectr.CreateOptimizer(hugectr.Optimizer_t.AdaGrad, initial_accu_value=0.5)
    init = hugectr.InitParams(hugectr.Initializer_t.Uniform, 0.001)
    collection.embedding_lookup(table("a", opt_params=own, init_param=init), "k0", "v", "sum")
    collection.embedding_lookup(table("b"), "k1", "w", "sum")
    model = model_of(folder, collection, ["v", "w"])
    model.compile()
    assert 0 < abs(model.session.tables()["a"].numpy()).max() <= 0.001
    states = model.session.optimizer_states().tables
    assert list(states["a"]) == ["accumulator"] and states["b"] == {}
    assert (states["a"]["accumulator"].numpy() == 0.5).all()
    model.train()
    assert (states["a"]["accumulator"].numpy() > 0.5).any()


def test_dumps_are_loaded_again(folder):
    def build(seed):
        collection = hugectr.EmbeddingCollectionConfig()
        collection.embedding_lookup(table("a"), "k0", "v", "sum")
        collection.embedding_lookup(table("b", 20, 3), "k1", "w", "sum")
        model = model_of(folder, collection, ["v", "w"], seed=seed)
        model.compile()
        return model

    first, second = build(1), build(2)
    first.embedding_dump(str(folder / "dump"))
    path = folder / "dump" / "embedding_collection_0"
    meta = (path / "meta_data").read_bytes()
    assert np.frombuffer(meta[:20], "<i4").tolist() == [2, 0, 0, 0, 3] and len(meta) == 52
    assert np.frombuffer(meta[28:44], "<u8").tolist() == [20, 20]
    key, weight = (path / "key1").read_bytes(), (path / "weight1").read_bytes()
    assert np.frombuffer(key[:8], "<i4").tolist() == [1, 1] and np.frombuffer(weight[:8], "<i4").tolist() == [2, 1]
    assert np.frombuffer(key[128:], "<u4").tolist() == list(range(20))
    values = np.frombuffer(weight[128:], "<f4").reshape(20, 3)
    assert np.array_equal(values, first.session.tables()["b"].numpy())
    second.embedding_load(str(folder / "dump"), ["b"])
    assert np.array_equal(second.session.tables()["b"].numpy(), values)
    assert not np.array_equal(second.session.tables()["a"].numpy(), first.session.tables()["a"].numpy())
    with pytest.raises(tc.ConfigError, match="there is no table 'c'; known: a, b"):
        second.embedding_load(str(folder / "dump"), ["c"])
    (path / "weight1").write_bytes(weight[:-1])
    with pytest.raises(tc.DataError, match=r"weight1: expected 368 bytes, a header and 20 vectors, found 36"):
        second.embedding_load(str(folder / "dump"))
    (path / "weight1").write_bytes(key[:128] + weight[128:])
    with pytest.raises(tc.DataError, match=r"expected the header \(2, 1\), found \(1, 1\)"):
        second.embedding_load(str(folder / "dump"))
    (path / "meta_data").write_bytes(meta[:-1])
    with pytest.raises(tc.DataError, match="meta_data: expected 20 bytes, and 16 for each table, found 51"):
        second.embedding_load(str(folder / "dump"))


def test_plans_are_checked_and_kept():
    collection = hugectr.EmbeddingCollectionConfig(True, hugectr.CommunicationStrategy.Hierarchical)
    collection.embedding_lookup([table("a"), table("b")], ["k0", "k1"], "v", ["sum", "sum"])
    collection.shard([["a"], ["a", "b"]], [("mp", [("a", 2)]), ("dp", ["b"])],
                     {hugectr.CompressionStrategy.Unique: ["a"]})
    assert collection.shard_matrix == [["a"], ["a", "b"]] and collection.shard_strategy[0] == ("mp", [("a", 2)])
    assert collection.without_effect() == ["use_exclusive_keys", "comm_strategy"]
    for arguments, text in (
            (([["a"]], [("mp", ["a", "b"])]), "shard_matrix: the table 'b' is missing"),
            (([["a", "b", "c"]], [("mp", ["a", "b"])]), "shard_matrix: there is no table 'c'; known: a, b"),
            (([["a", "b"]], [("xp", ["a", "b"])]), "expected 'mp' or 'dp', found 'xp'"),
            (([["a"], ["b", "a", "b"]], [("mp", ["a", "b"])]), "shard_matrix: the table 'b' is there twice for GPU 1"),
            (([["a", "b"]], [("mp", ["a"])]), "shard_strategy: the table 'b' is missing")):
        with pytest.raises(tc.ConfigError, match=text):
            collection.shard(*arguments)
    for arguments, text in (((None, None), "shard_matrix: expected a list of lists of names, not None"),
                            (("abc", "mp"), "shard_matrix: expected a list of lists of names, not 'abc'"),
                            (([[1]], [("mp", ["a"])]), r"shard_matrix: expected a name or a list of names, not \[1\]"),
                            (([["a", "b"]], "mp"), "shard_strategy: expected a list of pairs, .* not 'mp'"),
                            (([["a", "b"]], [("mp", "a")]), "shard_strategy: expected a list of pairs")):
        with pytest.raises(TypeError, match=text):
            collection.shard(*arguments)


def test_mistakes(folder):
    collection = hugectr.EmbeddingCollectionConfig()
    with pytest.raises(tc.ConfigError, match="expected as many names in bottom_name and combiner as tables, 2"):
        collection.embedding_lookup([table("a"), table("b")], ["k0"], "v", ["sum", "sum"])
    with pytest.raises(tc.ConfigError, match="combiner: expected one of sum, average, mean, concat, found 'max'"):
        collection.embedding_lookup(table("a"), "k0", "v", "max")
    collection.embedding_lookup(table("a"), "k0", "v", "sum")
    with pytest.raises(tc.ConfigError, match="there is another table 'a' with 20 keys of width 2"):
        collection.embedding_lookup(table("a", 21), "k0", "w", "sum")
    for make, text in ((lambda: table("", 1), "expected a name"),
                       (lambda: table("a", 0), "or -1 for a table that grows"),
                       (lambda: table("a", 1, 0), "ev_size: expected at least 1")):
        with pytest.raises(tc.ConfigError, match=text):
            make()
    small = hugectr.EmbeddingCollectionConfig()
    small.embedding_lookup(table("tiny", 3), "k0", "v", "sum")
    model = model_of(folder, small, ["v"])
    model.compile()
    with pytest.raises(tc.DataError, match="list.txt: record .*'tiny'"):
        model.train()


def test_tables_that_do_not_fit_say_how_much_they_need(folder):
    collection = hugectr.EmbeddingCollectionConfig()
    collection.embedding_lookup(table("huge", 40_000_000_000, 128), "k0", "v", "sum")
    collection.embedding_lookup(table("small"), "k1", "w", "sum")
    text = r"the 2 embedding tables need 20480\.0 GB .* the largest, 'huge', has 40,000,000,000 rows of 128"
    with pytest.raises(tc.OutOfMemoryError, match=text):
        model_of(folder, collection, ["v", "w"]).compile()
