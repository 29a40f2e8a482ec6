"""What the scripts of HugeCTR's own repository do, of all its versions: their forms of arguments, data and loops."""

import json
import subprocess
import sys

import numpy as np
import pytest

import tercel as tc
import tercel.hugectr as hugectr
from hugectr_models import SIZES, Format, Layer, generate, local, model_of, reader_of


def losses(model, steps=5):
    """Of the first steps."""
    model.compile()
    found = []
    for _ in range(steps):
        model.train()
        found.append(model.get_current_loss())
    return found


def test_arguments_of_3_0_are_those_of_later_versions(tmp_path):
    generate(tmp_path)
    # 54 keys, 8 numbers each: one MiB either way.
    new = model_of(tmp_path, embedding={"slot_size_array": [], "workspace_size_per_gpu_in_mb": 1, "combiner": "mean"})
    sparse = [hugectr.DataReaderSparseParam(hugectr.DataReaderSparse_t.Distributed, 30, 1, 3)]
    old = model_of(tmp_path, inputs=hugectr.Input(label_dim=1, label_name="label", dense_dim=2, dense_name="dense",
                                                  data_reader_sparse_param_array=sparse, sparse_names=["keys"]),
                   embedding={"slot_size_array": [], "workspace_size_per_gpu_in_mb": 0, "combiner": 1,
                              "max_vocabulary_size_per_gpu": 60})
    assert old.layers[0]["sparse"] == [{"top": "keys", "nnz_per_slot": [1] * 3, "is_fixed_length": False,
                                        "slot_num": 3}]
    assert old.layers[1]["sparse_embedding_hparam"] == new.layers[1]["sparse_embedding_hparam"]
    assert losses(old) == losses(new)


def test_rows_of_3_0_become_the_workspace_that_holds_them():
    for rule, numbers in (("SGD", 1), ("Adam", 3)):
        table = hugectr.SparseEmbedding(hugectr.Embedding_t.DistributedSlotSparseEmbeddingHash, embedding_vec_size=16,
                                        sparse_embedding_name="e", bottom_name="k", combiner=0,
                                        max_vocabulary_size_per_gpu=5863985)
        hparam = table.to_json(local(rule))["sparse_embedding_hparam"]
        workspace = hparam["workspace_size_per_gpu_in_mb"]
        assert hparam["combiner"] == "sum"
        assert (workspace - 1) * 2**20 < 5863985 * 16 * 4 * numbers <= workspace * 2**20


def test_mistakes_in_arguments_of_3_0(tmp_path):
    def sparse(*names):
        params = [hugectr.DataReaderSparseParam(hugectr.DataReaderSparse_t.Localized, 30, 2, 1)]
        return hugectr.Input(1, "label", 2, "dense", params, *([list(names)] if names else []))

    assert sparse("a").sparse[0].nnz_per_slot == [2]
    with pytest.raises(tc.ConfigError, match="sparse_names: expected 1 names, .*found 2"):
        sparse("a", "b")
    with pytest.raises(tc.ConfigError, match="expected names of the sparse inputs"):
        sparse()
    for options, words in (({"combiner": 2}, "expected 'sum' or 'mean', found '2'"),
                           ({"max_vocabulary_size_per_gpu": -1}, "max_vocabulary_size_per_gpu: expected at least 0"),
                           ({"workspace_size_per_gpu_in_mb": -1}, "workspace_size_per_gpu_in_mb: expected at least 0")):
        with pytest.raises(tc.ConfigError, match=words):
            hugectr.SparseEmbedding(hugectr.Embedding_t.DistributedSlotSparseEmbeddingHash, embedding_vec_size=1,
                                    sparse_embedding_name="e", bottom_name="k", **options)


@pytest.mark.parametrize("num_samples", [600, 100])
def test_raw_files_have_one_key_in_a_slot_whatever_nnz_per_slot_says(tmp_path, num_samples):
    generate(tmp_path, Format.Raw, i64_input_key=False, float_label_dense=True)
    reader = reader_of(tmp_path, Format.Raw, float_label_dense=True, num_samples=num_samples)
    model = model_of(tmp_path, reader=reader, solver={"i64_input_key": False},
                     inputs=hugectr.Input(1, "label", 2, "dense", [hugectr.DataReaderSparseParam("keys", 4, False, 3)]),
                     embedding={"slot_size_array": []})
    model.compile()
    record = np.dtype([("values", "<f4", 3), ("keys", "<i4", 3)])
    rows = np.fromfile(tmp_path / "list.txt", record)
    batch = model.get_data_reader_train().next()
    assert np.array_equal(batch["keys"].keys.numpy().reshape(-1, 3), rows["keys"][:100])


def test_raw_files_of_the_generator_may_have_several_keys(tmp_path):
    generate(tmp_path, Format.Raw, i64_input_key=False, float_label_dense=True, nnz_array=[1, 2, 3])
    reader = reader_of(tmp_path, Format.Raw, float_label_dense=True, num_samples=600)
    model = model_of(tmp_path, reader=reader, solver={"i64_input_key": False}, embedding={"slot_size_array": []},
                     inputs=hugectr.Input(1, "label", 2, "dense",
                                          [hugectr.DataReaderSparseParam("keys", [1, 2, 3], True, 3)]))
    model.compile()
    rows = np.fromfile(tmp_path / "list.txt", np.dtype([("values", "<f4", 3), ("keys", "<i4", 6)]))
    assert np.array_equal(model.get_data_reader_train().next()["keys"].keys.numpy().reshape(-1, 6), rows["keys"][:100])


def spread(folder, keys):
    """A Parquet dataset like that of MMoE's sample: keys are hashes, and the metadata names columns by their index."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for part in ("list.txt", "eval.txt"):
        path = folder / part[:4]
        path.mkdir()
        columns = {"income": np.arange(len(keys)) % 2, "age": keys[:, 0], "job": keys[:, 1], "state": keys[:, 2]}
        table = {name: values.astype("<i4" if i else "<f4") for i, (name, values) in enumerate(columns.items())}
        pq.write_table(pa.table(table), path / "0.parquet")
        (folder / part).write_text(f"1\n{path / '0.parquet'}\n")
        (path / "_metadata.json").write_text(json.dumps({
            "file_stats": [{"file_name": "0.parquet", "num_rows": len(keys)}], "conts": [],
            "cats": [{"col_name": f"C{i}", "index": i + 1} for i in range(3)],
            "labels": [{"col_name": "label", "index": 0}]}))
    return reader_of(folder, Format.Parquet, slot_size_array=SIZES)


def of_spread(folder, keys, kind="LocalizedSlotSparseEmbeddingHash"):
    return model_of(folder, reader=spread(folder, keys), solver={"i64_input_key": False},
                    inputs=hugectr.Input(1, "label", 0, "dense", [hugectr.DataReaderSparseParam("keys", 1, True, 3)]),
                    embedding={"embedding_type": hugectr.Embedding_t[kind], "slot_size_array": []})


def test_keys_that_are_hashes_have_rows_of_their_own_in_each_slot(tmp_path, capsys):
    keys = np.random.default_rng(0).integers(-2**31, 2**31, (200, 3))
    keys[:, 1] = keys[:, 0]  # equal values of different slots are different keys
    model = of_spread(tmp_path, keys)
    model.compile()
    assert "keys are not below the sizes in slot_size_array" in capsys.readouterr().out
    batch = model.get_data_reader_train().next()
    assert np.array_equal(batch["keys"].keys.numpy().reshape(-1, 3), keys[:100] + [0, 5, 25])
    model.train()
    assert model.eval()
    assert model.session.tables()["emb"].shape[0] == 1 + np.unique(keys[100:] + [0, 5, 25]).size


def test_keys_below_the_sizes_stay_bounded(tmp_path, capsys):
    keys = np.random.default_rng(0).integers(0, SIZES, (200, 3))
    keys[150, 0] = 5
    model = of_spread(tmp_path, keys)
    model.compile()
    assert "keys are not below" in capsys.readouterr().out  # row 150 is among the first


def test_tables_without_a_hash_refuse_keys_outside_of_their_slots(tmp_path):
    keys = np.random.default_rng(0).integers(0, SIZES, (200, 3))
    keys[7, 0] = 5
    model = of_spread(tmp_path, keys, "LocalizedSlotSparseEmbeddingOneHot")
    model.compile()
    with pytest.raises(tc.DataError, match=r"row 7: column 'age': expected a key from 0 to 4 in slot 0"):
        model.train()


@pytest.mark.parametrize("rule", ["SGD", "Adam"])
def test_files_of_tables_that_grow(tmp_path, rule):
    generate(tmp_path)
    options = {"embedding": {"slot_size_array": []}, "optimizer": local(rule)}
    model, other = model_of(tmp_path, **options), model_of(tmp_path, **options)
    before = losses(model, 3)
    model.save_params_to_files(str(tmp_path / "m"), 3)
    seen = np.fromfile(tmp_path / "m0_sparse_3.model/key", "<i8")
    batches = model_of(tmp_path, **options)
    batches.compile()
    reader = batches.get_data_reader_train()
    keys = np.concatenate([reader.next()["keys"].keys.numpy() for _ in range(3)])
    assert np.array_equal(np.sort(seen), np.unique(keys))
    vectors = np.fromfile(tmp_path / "m0_sparse_3.model/emb_vector", "<f4").reshape(-1, 4)
    assert len(vectors) == len(seen) and (tmp_path / "m0_sparse_3.model/slot_id").stat().st_size == 8 * len(seen)
    states = (tmp_path / "m0_opt_sparse_3.model").stat().st_size
    assert states == vectors.nbytes * {"SGD": 0, "Adam": 2}[rule]

    other.compile()
    other.load_dense_weights(str(tmp_path / "m_dense_3.model"))
    other.load_sparse_weights(sparse_embedding_files_map={"emb": str(tmp_path / "m0_sparse_3.model")})
    other.load_sparse_optimizer_states(sparse_opt_states_files=[str(tmp_path / "m0_opt_sparse_3.model")])
    batch = model.eval_reader().next()
    assert np.array_equal(model.session.predict(batch).numpy(), other.session.predict(batch).numpy())
    other.save_params_to_files(str(tmp_path / "n"), 3)
    for name in ("_dense_3.model", "0_sparse_3.model/key", "0_sparse_3.model/emb_vector", "0_opt_sparse_3.model"):
        assert (tmp_path / f"n{name}").read_bytes() == (tmp_path / f"m{name}").read_bytes(), name
    assert before[0] != before[-1]
    with pytest.raises(tc.DataError, match="key 0 occurs twice"):
        np.repeat(seen[:1], len(seen)).tofile(tmp_path / "m0_sparse_3.model/key")
        other.load_sparse_weights([str(tmp_path / "m0_sparse_3.model")])


def test_dumps_of_tables_that_grow(tmp_path):
    def collection():
        solver = hugectr.CreateSolver(batchsize=100, batchsize_eval=100, seed=3, i64_input_key=True)
        model = hugectr.Model(solver, reader_of(tmp_path), local("AdaGrad"))
        model.add(hugectr.Input(1, "label", 2, "dense",
                                [hugectr.DataReaderSparseParam(f"k{i}", 1, True, 1) for i in range(3)]))
        tables = hugectr.EmbeddingCollectionConfig()
        table = hugectr.EmbeddingTableConfig("all", -1, 4)
        tables.embedding_lookup([table] * 3, ["k0", "k1", "k2"], "emb", ["sum"] * 3)
        model.add(tables)
        model.add(hugectr.DenseLayer(Layer.InnerProduct, ["emb"], ["logit"], num_output=1))
        model.add(hugectr.DenseLayer(Layer.BinaryCrossEntropyLoss, ["logit", "label"], ["loss"]))
        return model

    generate(tmp_path)
    model, other = collection(), collection()
    losses(model)
    model.embedding_dump(str(tmp_path / "d"))
    rows = model.session.tables()["all"].shape[0] - 1
    assert 0 < rows <= sum(SIZES)
    assert (tmp_path / "d/embedding_collection_0/key0").stat().st_size == 128 + 8 * rows
    other.compile()
    other.embedding_load(str(tmp_path / "d"))
    other.embedding_dump(str(tmp_path / "e"))
    for name in ("meta_data", "key0", "weight0"):
        assert (tmp_path / "d/embedding_collection_0" / name).read_bytes() == \
            (tmp_path / "e/embedding_collection_0" / name).read_bytes()


def test_loops_of_older_scripts(tmp_path):
    """train(False) and eval(), until they say that the files are at their end; then set_source() without a name."""
    generate(tmp_path)
    model = model_of(tmp_path, solver={"repeat_dataset": False})
    model.compile()
    solver = model.solver
    assert isinstance(solver, hugectr.Solver) and isinstance(local(), hugectr.OptParamsPy)
    train, evaluation, rates = (model.get_data_reader_train(), model.get_data_reader_eval(),
                                model.get_learning_rate_scheduler())
    steps = []
    for _ in range(2):
        train.set_source(str(tmp_path / "list.txt"))
        steps.append(0)
        while True:
            model.set_learning_rate(rates.get_next())
            if not model.train(False):
                break
            steps[-1] += 1
        batches = 0
        while batches < solver.max_eval_batches and model.eval(False):
            batches += 1
        evaluation.set_source()
        assert batches == 3 and [name for name, _ in model.get_eval_metrics()] == ["AUC"]
    assert steps == [6, 6]


def test_set_source_in_all_forms(tmp_path):
    generate(tmp_path)
    model = model_of(tmp_path, solver={"repeat_dataset": False})
    model.compile()
    train, evaluation = model.get_data_reader_train(), model.get_data_reader_eval()
    for args, kwargs in ((("a", "b"), {}), ((["a"], ["keys"], "b"), {}),
                         ((), {"source": ["a"], "keyset": ["keys"], "eval_source": "b"}),
                         ((["a"],), {"eval_source": "b"})):
        model.set_source("x", "y")
        model.set_source(*args, **kwargs)
        assert (train.sources, evaluation.sources) == (["a"], ["b"])
    for args, kwargs in ((("a", "b"), {"source": "c"}), (("a",), {"eval": "c"}), (("a", "k", "b", "c"), {})):
        with pytest.raises(TypeError, match="set_source: expected"):
            model.set_source(*args, **kwargs)


def test_switches_of_layers_and_hybrid_parameters_of_older_versions(tmp_path, capsys):
    generate(tmp_path)
    ten = hugectr.HybridEmbeddingParam(2, 16640, 0.02, 130e9, 25e9, 1, True, True,
                                       hugectr.CommunicationType.IB_NVLink, hugectr.HybridEmbeddingType.Distributed)
    eight = hugectr.HybridEmbeddingParam(2, 16640, 0.02, 130e9, 25e9, 1, hugectr.CommunicationType.IB_NVLink,
                                         hugectr.HybridEmbeddingType.Distributed)
    assert ten == eight and ten.communication_type is hugectr.CommunicationType.IB_NVLink
    model = model_of(tmp_path, head=False)
    switches = hugectr.DenseLayerSwitchs(True)
    model.add(hugectr.DenseLayer(Layer.MLP, ["dense"], ["bottom"], num_outputs=[8, 4], dense_layer_switches=switches))
    model.add(hugectr.DenseLayer(Layer.Interaction, ["bottom", "emb"], ["crossed", "crossed_grad"]))
    model.add(hugectr.DenseLayer(Layer.MLP, ["crossed", "crossed_grad"], ["logit"], num_outputs=[8, 1],
                                 activations=[hugectr.Activation_t.Relu, hugectr.Activation_t.Non]))
    model.add(hugectr.DenseLayer(Layer.BinaryCrossEntropyLoss, ["logit", "label"], ["loss"]))
    model.compile()
    assert "accepted, without effect on a CPU: dense_layer_switches" in capsys.readouterr().out
    assert model.train()


def test_options_that_layers_have_under_other_names():
    dice = hugectr.DenseLayer(Layer.PReLU_Dice, ["a"], ["b"], elu_alpha=0.25, eps=1e-8)
    assert dice.to_json()["prelu_dice_param"] == {"alpha": 0.25, "eps": 1e-8}
    loss = hugectr.DenseLayer(Layer.MultiCrossEntropyLoss, ["a", "label"], ["loss"], target_weight_vec=[0.5, 0.25])
    assert loss.to_json()["target_weight"] == [0.5, 0.25]


def test_target_weights_are_those_of_the_loss(tmp_path):
    generate(tmp_path, label_dim=2)
    found = []
    for weights in ([1.0, 0.0], [0.0, 1.0], [0.5, 0.25]):
        model = model_of(tmp_path, head=False,
                         inputs=hugectr.Input(2, "label", 2, "dense",
                                              [hugectr.DataReaderSparseParam("keys", 1, True, 3)]))
        model.add(hugectr.DenseLayer(Layer.InnerProduct, ["all"], ["logit"], num_output=2))
        model.add(hugectr.DenseLayer(Layer.MultiCrossEntropyLoss, ["logit", "label"], ["loss"],
                                     target_weight_vec=weights))
        found += losses(model, 1)
    assert found[0] != found[1] and np.isclose(found[2], 0.5 * found[0] + 0.25 * found[1], rtol=1e-6)


@pytest.mark.parametrize("text, words", [
    ("from hugectr.inference import InferenceModel, InferenceParams", "hugectr.inference.InferenceModel: HugeCTR's "
     "inference is not part of this front end"),
    ("import hugectr\nhugectr.inference.InferenceParams(model_name='a')", "tercel.recsys.load_model"),
    ("from hugectr import Session, solver_parser_helper", "hugectr.Session: scripts of versions before 3.0"),
    ("import hugectr\nhugectr.CreateETC(ps_types=[hugectr.TrainPSType_t.Staged])", "no embedding training cache"),
    ("import hugectr\nhugectr.EmbeddingPlanner()", "EmbeddingCollectionConfig, of 23.02 and later, has its place"),
    ("import hugectr\nhugectr.DataReaderParams(hugectr.DataReaderType_t.Norm, 'a', data_source_params="
     "hugectr.data.DataSourceParams(use_hdfs=True, namenode='host', port=1))", "HDFS is not read here"),
    ("import hugectr\nhugectr.DataReaderParams(hugectr.DataReaderType_t.Norm, 'a', data_source_params="
     "hugectr.data.DataSourceParams(True, 'host', 1))", "HDFS is not read here")])
def test_what_is_refused_says_why(tmp_path, text, words):
    (tmp_path / "script.py").write_text(text + "\n")
    result = subprocess.run([sys.executable, "-m", "tercel.hugectr", "script.py"], cwd=tmp_path, capture_output=True,
                            text=True, timeout=300)
    assert result.returncode == 1 and words in result.stderr.strip().splitlines()[-1], result.stderr


def test_methods_of_the_cache_say_why_there_are_none(tmp_path):
    generate(tmp_path)
    model = model_of(tmp_path)
    for name in ("get_incremental_model", "get_embedding_training_cache", "dump_incremental_model_2kafka"):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError, match=f"hugectr.Model.{name}: there is no embedding training cache"):
            getattr(model, name)
    with pytest.raises(AttributeError, match="'Model' object has no attribute 'trian'"):
        model.trian()
    assert hugectr.DataSourceParams(False, "host", 9000).source is hugectr.FileSystemType_t.Local
