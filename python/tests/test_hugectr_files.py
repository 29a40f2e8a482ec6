"""Model files and graphs of HugeCTR, written and read."""

import json
import os

import numpy as np
import pytest

import tercel as tc
import tercel.hugectr as hugectr
from hugectr_models import SIZES, Format, Layer, generate, local, model_of, reader_of


def trained(folder, seed=3, steps=4, rule="Adam", **options):
    model = model_of(folder, solver={"seed": seed}, optimizer=local(rule), **options)
    model.compile()
    for _ in range(steps):
        model.train()
    return model


def test_dense_weights_are_the_parameters_one_after_the_other(tmp_path):
    generate(tmp_path)
    model = trained(tmp_path)
    model.save_params_to_files(str(tmp_path / "out/m"), 4)
    values = np.fromfile(tmp_path / "out/m_dense_4.model", "<f4")
    parameters = model.session.parameters()
    assert list(parameters) == ["logit.weight", "logit.bias"]
    assert np.array_equal(values[:-1].reshape(14, 1), parameters["logit.weight"].numpy())
    assert values[-1] == parameters["logit.bias"].numpy()[0]
    assert sorted(os.listdir(tmp_path / "out")) == ["m0_opt_sparse_4.model", "m0_sparse_4.model", "m_dense_4.model",
                                                    "m_opt_dense_4.model"]


def test_tables_are_folders_of_keys_vectors_and_slots(tmp_path):
    generate(tmp_path)
    model = trained(tmp_path)
    model.save_params_to_files(str(tmp_path / "m"))
    folder = tmp_path / "m0_sparse_0.model"
    assert np.fromfile(folder / "key", "<i8").tolist() == list(range(55))
    vectors = np.fromfile(folder / "emb_vector", "<f4").reshape(55, 4)
    assert np.array_equal(vectors, model.session.tables()["emb"].numpy())
    assert np.fromfile(folder / "slot_id", "<u8").tolist() == [0] * 5 + [1] * 20 + [2] * 30, "of slot_size_array"
    kind = hugectr.Embedding_t.DistributedSlotSparseEmbeddingHash
    distributed = trained(tmp_path, embedding={"embedding_type": kind})
    distributed.save_params_to_files(str(tmp_path / "d"))
    assert not (tmp_path / "d0_sparse_0.model/slot_id").exists()


def test_the_states_of_lazy_global_have_names(tmp_path):
    generate(tmp_path)
    update = hugectr.CreateOptimizer(hugectr.Optimizer_t.Adam, hugectr.Update_t.LazyGlobal)
    model = model_of(tmp_path, optimizer=update)
    model.compile()
    assert list(model.session.optimizer_states().tables["emb"]) == ["m", "v", "last"]
    model.train()
    model.save_params_to_files(str(tmp_path / "m"))
    path = tmp_path / "m0_opt_sparse_0.model"
    states = model.session.optimizer_states().tables["emb"]
    expected = np.concatenate([states[name].numpy().reshape(-1) for name in ("m", "v")])
    assert np.array_equal(np.fromfile(path, "<f4"), expected), "as HugeCTR's, without the rows' last steps"
    np.arange(expected.size, dtype="<f4").tofile(path)
    model.load_sparse_optimizer_states([str(path)])
    assert states["v"].numpy()[0].tolist() == [220, 221, 222, 223]


def test_slots_of_keys(tmp_path):
    pytest.importorskip("pyarrow")
    generate(tmp_path, Format.Parquet)
    reader = reader_of(tmp_path, Format.Parquet, slot_size_array=SIZES)
    model = trained(tmp_path, reader=reader)
    model.save_params_to_files(str(tmp_path / "m"))
    slots = np.fromfile(tmp_path / "m0_sparse_0.model/slot_id", "<u8")
    assert slots.tolist() == [0] * 5 + [1] * 20 + [2] * 30


@pytest.mark.parametrize("rule, states", [("SGD", 0), ("AdaGrad", 1), ("Adam", 2)])
def test_states_and_weights_continue_the_training(tmp_path, rule, states):
    generate(tmp_path)
    first = trained(tmp_path, rule=rule)
    first.save_params_to_files(str(tmp_path / "m"), 4)
    size = os.path.getsize(tmp_path / "m_opt_dense_4.model")
    assert size == (0, 60, 256 + 60)[states]  # 15 weights; between states it is padded to 256 bytes
    assert os.path.getsize(tmp_path / "m0_opt_sparse_4.model") == states * 55 * 4 * 4
    second = trained(tmp_path, seed=99, steps=0, rule=rule)
    second.load_dense_weights(str(tmp_path / "m_dense_4.model"))
    second.load_sparse_weights([str(tmp_path / "m0_sparse_4.model")])
    second.load_dense_optimizer_states(str(tmp_path / "m_opt_dense_4.model"))
    second.load_sparse_optimizer_states({"emb": str(tmp_path / "m0_opt_sparse_4.model")})
    batch = first._last[hugectr.Tensor_t.Train]
    assert np.array_equal(first.session.predict(batch).numpy(), second.session.predict(batch).numpy())
    a, b = first.session.optimizer_states(), second.session.optimizer_states()
    for one, other in ((a.parameters, b.parameters), (a.tables, b.tables)):
        for name in one:
            for state in one[name]:
                assert np.array_equal(one[name][state].numpy(), other[name][state].numpy()), (name, state)
    if rule != "Adam":  # its step is not in the files
        for model in (first, second):
            model.train_batch(batch)
        assert np.array_equal(first.session.tables()["emb"].numpy(), second.session.tables()["emb"].numpy())


def test_a_pretrained_table_is_loaded(tmp_path):
    generate(tmp_path)
    model = trained(tmp_path, steps=0)
    before = model.session.tables()["emb"].numpy().copy()
    folder = tmp_path / "pretrained"
    folder.mkdir()
    np.array([7, 3], "<i8").tofile(folder / "key")
    np.arange(8, dtype="<f4").tofile(folder / "emb_vector")
    model.load_sparse_weights({"emb": str(folder)})
    after = model.session.tables()["emb"].numpy()
    assert after[7].tolist() == [0, 1, 2, 3] and after[3].tolist() == [4, 5, 6, 7]
    before[[7, 3]] = after[[7, 3]]
    assert np.array_equal(after, before)
    short = "emb_vector: expected 16 bytes, vectors of 4 numbers for 1 keys, found 32"
    for keys, vectors, text in (([7, 55], range(8), "no row for key 55 .*from 0 to 54"),
                                ([7, 7], range(8), "key 7 occurs twice"), ([7], range(8), short),
                                ([1, 2], [np.nan] * 8, "the vector of key 1 has nan, which is not finite")):
        np.array(keys, "<i8").tofile(folder / "key")
        np.array(vectors, "<f4").tofile(folder / "emb_vector")
        with pytest.raises(tc.DataError, match=text):
            model.load_sparse_weights([str(folder)])
    (folder / "key").write_bytes(b"123")
    with pytest.raises(tc.DataError, match="key: expected keys of 8 bytes, found 3 bytes"):
        model.load_sparse_weights([str(folder)])
    with pytest.raises(tc.IoError, match="No such file"):
        model.load_sparse_weights([str(tmp_path / "none")])
    with pytest.raises(tc.ConfigError, match="expected 1 paths, one for each embedding, found 2"):
        model.load_sparse_weights(["a", "b"])
    with pytest.raises(tc.ConfigError, match="there is no embedding 'x'; known: emb"):
        model.load_sparse_weights({"x": "a"})


@pytest.mark.parametrize("change", [lambda c: c[:-4], lambda c: c + b"\0\0\0\0", lambda c: b""])
def test_dense_files_of_another_size_are_refused(tmp_path, change):
    generate(tmp_path)
    model = trained(tmp_path)
    model.save_params_to_files(str(tmp_path / "m"))
    path = tmp_path / "m_dense_0.model"
    path.write_bytes(change(path.read_bytes()))
    before = model.session.parameters()["logit.weight"].numpy().copy()
    with pytest.raises(tc.DataError, match=r"expected 60 bytes, the 15 dense weights of this model, found"):
        model.load_dense_weights(str(path))
    assert np.array_equal(model.session.parameters()["logit.weight"].numpy(), before)
    path = tmp_path / "m_opt_dense_0.model"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(tc.DataError, match=r"expected 316 bytes, the states \[m, v\] of 15 dense weights"):
        model.load_dense_optimizer_states(str(path))


def test_statistics_of_batch_norm(tmp_path):
    generate(tmp_path)

    def build(seed):
        model = model_of(tmp_path, solver={"seed": seed}, head=False)
        model.add(hugectr.DenseLayer(Layer.BatchNorm, ["all"], ["bn"], factor=0.5))
        model.add(hugectr.DenseLayer(Layer.InnerProduct, ["bn"], ["logit"], num_output=1))
        model.add(hugectr.DenseLayer(Layer.BinaryCrossEntropyLoss, ["logit", "label"], ["loss"]))
        model.compile()
        return model

    first, second = build(1), build(2)
    first.train()
    first.save_params_to_files(str(tmp_path / "m"))
    layers = json.loads((tmp_path / "m_dense_0.model.ntp.json").read_text())["layers"]
    assert [layer["type"] for layer in layers] == ["BatchNorm"] and len(layers[0]["mean"]) == 14
    second.load_dense_weights(str(tmp_path / "m_dense_0.model"))
    assert np.array_equal(second.session.buffers()["bn.running_var"].numpy(), np.float32(layers[0]["var"]))
    before = second.session.parameters()["logit.weight"].numpy().copy()
    for text in ('{"layers": [{"mean": [1], "var": [1]}]}', "{", "[]", '{"layers": [5]}', '{"layers": []}',
                 '{"layers": [{"mean": "x"}]}', json.dumps({"layers": [{**layers[0], "var": ["a"] * 14}]})):
        (tmp_path / "m_dense_0.model.ntp.json").write_text(text)
        with pytest.raises(tc.DataError, match=r"m_dense_0\.model\.ntp\.json"):
            second.load_dense_weights(str(tmp_path / "m_dense_0.model"))
    assert np.array_equal(second.session.parameters()["logit.weight"].numpy(), before)


def test_snapshots_of_fit(tmp_path):
    generate(tmp_path)
    model = model_of(tmp_path)
    model.compile()
    model.fit(max_iter=7, eval_interval=0, snapshot=3, snapshot_prefix=str(tmp_path / "snap"))
    assert sorted(p.name for p in tmp_path.glob("snap_dense*")) == ["snap_dense_3.model", "snap_dense_6.model"]


def test_graphs_are_written_and_read(tmp_path):
    generate(tmp_path)
    model = model_of(tmp_path, solver={"model_name": "small", "vvgpu": [[0, 1]]}, optimizer=local("Adam"))
    model.graph_to_json(str(tmp_path / "graph.json"))
    config = json.loads((tmp_path / "graph.json").read_text())
    assert config["model_name"] == "small" and [layer["type"] for layer in config["layers"]] == [
        "Data", "LocalizedSlotSparseEmbeddingHash", "Reshape", "Concat", "InnerProduct", "BinaryCrossEntropyLoss"]
    assert config["layers"][0] == {"type": "Data", "label": {"top": "label", "label_dim": 1},
                                   "dense": {"top": "dense", "dense_dim": 2},
                                   "sparse": [{"top": "keys", "nnz_per_slot": [1, 1, 1], "is_fixed_length": True,
                                               "slot_num": 3}]}
    hparam = config["layers"][1]["sparse_embedding_hparam"]
    assert hparam["max_vocabulary_size_global"] == 2 * ((1 << 20) // (3 * 4 * 4))
    assert config["layers"][1]["optimizer"] == {"update_type": "Local", "type": "Adam", "adam_hparam": {
        "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7}}
    again = hugectr.Model(model.solver, reader_of(tmp_path), local("Adam"))
    again.construct_from_json(str(tmp_path / "graph.json"), True)
    again.graph_to_json(str(tmp_path / "again.json"))
    assert json.loads((tmp_path / "again.json").read_text()) == config
    model.compile()
    again.compile()
    for of in (model, again):
        of.train()
    assert np.array_equal(model.session.tables()["emb"].numpy(), again.session.tables()["emb"].numpy())
    embeddings = hugectr.Model(model.solver, reader_of(tmp_path), local("Adam"))
    embeddings.construct_from_json(str(tmp_path / "graph.json"), False)
    assert [layer["type"] for layer in embeddings.layers] == ["Data", "LocalizedSlotSparseEmbeddingHash"]
    embeddings.add(hugectr.DenseLayer(Layer.Reshape, ["emb"], ["flat"], leading_dim=12))


@pytest.mark.parametrize("text, message", [
    ("{", "graph.json: expected JSON"), ("[]", "expected an object with a list 'layers'"),
    ('{"layers": [{"type": "ReLU", "bottom": "a", "top": "b"}]}', r"layers\[0\]: expected Data"),
    ('{"layers": [{"type": "Data"}]}', r"layers\[0\]: 'label' is missing"),
    ('{"layers": [5]}', r"layers\[0\]: expected an object with a 'type'"),
    ('{"layers": [{"type": "Data", "label": {}, "dense": {}, "sparse": [{"top": "a"}]}]}',
     r"layers\[0\]: sparse\[0\]: 'slot_num' is missing")])
def test_damaged_graphs(tmp_path, text, message):
    (tmp_path / "graph.json").write_text(text)
    model = hugectr.Model(hugectr.CreateSolver(), reader_of(tmp_path))
    with pytest.raises(tc.ConfigError, match=message):
        model.construct_from_json(str(tmp_path / "graph.json"), True)
