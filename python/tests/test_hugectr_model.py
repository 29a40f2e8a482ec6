"""tercel.hugectr.Model: training, evaluation, sources, freezing, the words that it prints."""

import re

import numpy as np
import pytest

import tercel as tc
import tercel.data as td
import tercel.hugectr as hugectr
import tercel.recsys as tr
from hugectr_models import SIZES, Format, Layer, generate, local, model_of, reader_of


def lines_of(capsys):
    """What was printed, without the times before each line."""
    return [re.sub(r"^\[HCTR\]\[[0-9:.]+\]\[(INFO|WARNING)\]\[RK0\]\[main\]: ", "", line)
            for line in capsys.readouterr().out.splitlines()]


def compiled(folder, **options):
    model = model_of(folder, **options)
    model.compile()
    return model


def test_training_is_that_of_a_session(tmp_path):
    generate(tmp_path)
    model = compiled(tmp_path)
    dataset = td.open_files("norm", train_list=str(tmp_path / "list.txt"), dense_dim=2, nnz_per_slot=[1] * 3,
                            key_type="i64")
    graph = tr.Graph("label", sparse={"keys": 3})
    vectors = graph.SparseEmbedding("keys", embedding_vec_size=4, slot_size_array=SIZES, top="emb")
    both = graph.Concat(graph.Reshape(vectors, top="flat"), "dense", top="all")
    graph.BinaryCrossEntropyLoss(graph.InnerProduct(both, num_output=1, top="logit"), "label", top="loss")
    session = tr.Session(graph, dataset, solver={"seed": 3, "lr": 0.1, "batchsize": 100}, optimizer={"type": "SGD"})
    losses = []
    for batch in session.batches(dataset, batch_size=100):
        session.step(batch)
        assert model.train()
        losses.append(model.get_current_loss())
        assert losses[-1] == session.loss
    assert np.array_equal(model.session.tables()["emb"].numpy(), session.tables()["emb"].numpy())
    assert len(losses) == 6


def test_fit_prints_hugectrs_words(tmp_path, capsys):
    generate(tmp_path)
    model = compiled(tmp_path)
    capsys.readouterr()
    model.fit(max_iter=12, display=5, eval_interval=6, snapshot=0)
    text = "\n".join(lines_of(capsys))
    shown = re.findall(r"^Iter: (\d+) Time\(5 iters\): ([0-9.e-]+)s Loss: ([0-9.]+) lr:0\.1$", text, re.M)
    assert [int(line[0]) for line in shown] == [5, 10]
    assert len(re.findall(r"^Evaluation, AUC: 0\.\d+$", text, re.M)) == 2
    assert len(re.findall(r"^Eval Time for 3 iters: [0-9.e-]+s$", text, re.M)) == 2
    assert "Use non-epoch mode with number of iterations: 12" in text
    assert re.search(r"^Finish 12 iterations with batchsize: 100 in [0-9.]+s\.$", text, re.M)


def test_evaluations_read_on_in_repeat_mode(tmp_path):
    generate(tmp_path, eval_num_files=2)
    model = compiled(tmp_path, solver={"max_eval_batches": 4})
    seen = []
    for _ in range(2):
        for _ in range(4):
            assert model.eval()
            seen.append(model._last[hugectr.Tensor_t.Evaluate].row)
        model.get_eval_metrics()
    assert seen == [0, 100, 200, 300, 400, 500, 0, 100]


def test_metrics_are_those_of_the_predictions(tmp_path):
    Metric = hugectr.MetricsType
    generate(tmp_path)
    spec = {Metric.HitRate: 0.8, Metric.AverageLoss: 0.0, Metric.AUC: 1.0, Metric.NDCG: 1.0, Metric.SMAPE: 0.0}
    model = compiled(tmp_path, solver={"metrics_spec": spec, "lr": 5.0})
    for _ in range(30):
        model.train()
    p, y = [], []
    for _ in range(3):
        model.eval()
        p.append(model.check_out_tensor("logit", hugectr.Tensor_t.Evaluate)[:, 0])
        y.append(model.check_out_tensor("label", hugectr.Tensor_t.Evaluate)[:, 0])
    p, y = np.concatenate(p).astype(np.float64), np.concatenate(y)
    found = dict(model.get_eval_metrics())
    assert list(found) == ["HitRate", "AverageLoss", "AUC", "NDCG", "SMAPE"]
    assert np.isclose(found["HitRate"], (y[p > 0.8] == 1).mean())
    assert np.isclose(found["AverageLoss"], -np.mean(np.where(y > 0, np.log(p), np.log1p(-p))), rtol=1e-4)
    pairs = (p[y == 1][:, None] > p[y == 0]) + 0.5 * (p[y == 1][:, None] == p[y == 0])
    assert np.isclose(found["AUC"], pairs.mean(), atol=1e-6)
    gain = lambda labels: (labels / np.log2(np.arange(len(labels)) + 2)).sum()  # noqa: E731
    assert np.isclose(found["NDCG"], gain(y[np.argsort(-p, kind="stable")]) / gain(np.sort(y)[::-1]))
    assert np.isclose(found["SMAPE"], np.mean(np.abs(p - y) / ((p + y) / 2)), rtol=1e-5)
    assert model.get_eval_metrics() == []


def test_hit_rate_of_nothing_is_not_a_number():
    from tercel.hugectr.evaluation import hit_rate, ndcg, smape

    assert np.isnan(hit_rate([0.1], [1])) and np.isnan(ndcg([0.1], [0])) and smape([0.0], [0.0]) == 0


def test_a_target_ends_training(tmp_path, capsys):
    generate(tmp_path)
    model = compiled(tmp_path, solver={"metrics_spec": {hugectr.MetricsType.AUC: 0.0}})
    model.fit(max_iter=50, eval_interval=10, snapshot=0)
    text = "\n".join(lines_of(capsys))
    assert "Hit target accuracy AUC 0.000000 at 10 iterations with batchsize 100" in text and "Finish 10 iter" in text


class Watch(hugectr.TrainingCallback):
    def __init__(self, stop_at=-1, at_start=False):
        self.calls, self.stop_at, self.at_start = [], stop_at, at_start
        super().__init__()

    def on_training_start(self):
        self.calls.append("start")

    def on_training_end(self, current_iter):
        self.calls.append(("end", current_iter))

    def on_eval_start(self, current_iter):
        self.calls.append(("eval", current_iter))
        return self.at_start and current_iter == self.stop_at

    def on_eval_end(self, current_iter, eval_results):
        assert list(eval_results) == ["AUC"] and 0 <= eval_results["AUC"] <= 1
        return not self.at_start and current_iter == self.stop_at


@pytest.mark.parametrize("at_start", [True, False])
def test_callbacks(tmp_path, at_start):
    generate(tmp_path)
    watch = Watch(7, at_start)
    model = compiled(tmp_path, solver={"training_callbacks": [watch]})
    model.fit(max_iter=50, eval_interval=4, snapshot=0)
    assert watch.calls == ["start", ("eval", 3), ("eval", 7), ("end", 7)] and model.session.steps == 8


def test_epochs_read_all_sources_in_order(tmp_path, capsys):
    for name in ("a", "b"):
        generate(tmp_path / name, num_files=1, num_samples_per_file=250 if name == "a" else 320)
    sources = [str(tmp_path / name / "list.txt") for name in ("a", "b")]
    params = reader_of(tmp_path / "a", source=sources)
    watch = Watch()
    model = compiled(tmp_path, reader=params, solver={"repeat_dataset": False, "training_callbacks": [watch],
                                                      "drop_incomplete_batch": True})
    model.fit(num_epochs=2, display=1, eval_interval=5, snapshot=0)
    assert model.session.steps == 2 * (2 + 3) and watch.calls == []
    text = "\n".join(lines_of(capsys))
    assert text.count("Evaluation, AUC") == 2 and "Use epoch mode with number of epochs: 2" in text
    whole = compiled(tmp_path, reader=params, solver={"repeat_dataset": False, "drop_incomplete_batch": False})
    rows = []
    while whole.train():
        rows.append(whole._last[hugectr.Tensor_t.Train].rows)
    assert rows == [100, 100, 50, 100, 100, 100, 20]
    assert whole.train()  # the sources begin again
    whole.set_source(sources[1:], str(tmp_path / "b" / "eval.txt"))
    rows = []
    while whole.train():
        rows.append(whole._last[hugectr.Tensor_t.Train].rows)
    assert rows == [100, 100, 100, 20]


def test_repeat_mode_has_no_end(tmp_path):
    generate(tmp_path, num_files=1, num_samples_per_file=250)
    model = compiled(tmp_path)
    rows = []
    for _ in range(5):
        assert model.train()
        rows.append((model._last[hugectr.Tensor_t.Train].row, model._last[hugectr.Tensor_t.Train].rows))
    assert rows == [(0, 100), (100, 100), (0, 100), (100, 100), (0, 100)]
    with pytest.raises(tc.ConfigError, match=r"set_source: expected CreateSolver\(repeat_dataset=False\)"):
        model.set_source("x")
    few = compiled(tmp_path, solver={"batchsize": 1000})  # fewer rows than a batch has
    assert few.train() and few._last[hugectr.Tensor_t.Train].rows == 250


def test_the_loop_of_a_script(tmp_path):
    generate(tmp_path)
    model = compiled(tmp_path, solver={"lr": 0.5, "warmup_steps": 4, "decay_start": 6, "decay_steps": 4,
                                       "end_lr": 0.01})
    model.start_data_reading()
    schedule, rates = model.get_learning_rate_scheduler(), []
    for _ in range(12):
        expected = model.session.learning_rate
        rates.append(schedule.get_next())
        assert np.isclose(rates[-1], expected)
        model.set_learning_rate(rates[-1])
        model.train()
        model.session.learning_rate = None
    assert rates[0] == 0.125 and rates[5] == 0.5 and rates[-1] == 0.01 and schedule.get_step() == 12
    model.reset_learning_rate_scheduler(2.0, warmup_steps=1)
    assert schedule.get_next() == 2.0
    reader = model.get_data_reader_train()
    assert reader.is_started() and reader.sources == [str(tmp_path / "list.txt")]


def test_freezing(tmp_path):
    generate(tmp_path)
    model = compiled(tmp_path)
    state = lambda: (model.session.tables()["emb"].numpy().copy(),  # noqa: E731
                     model.session.parameters()["logit.weight"].numpy().copy())
    changes = []
    for action in (model.freeze_embedding, lambda: model.unfreeze_embedding("emb"), model.freeze_dense,
                   model.unfreeze_dense):
        action()
        before = state()
        model.train()
        changes.append(tuple(not np.array_equal(a, b) for a, b in zip(before, state())))
    assert changes == [(False, True), (True, True), (True, False), (True, True)]
    with pytest.raises(tc.ConfigError, match="there is no embedding 'x'; known: emb"):
        model.freeze_embedding("x")


def test_what_means_nothing_is_said_once(tmp_path, capsys):
    generate(tmp_path)
    compiled(tmp_path, solver={"use_cuda_graph": False, "vvgpu": [[0, 1]], "use_mixed_precision": True})
    lines = [line for line in lines_of(capsys) if "without effect" in line]
    assert lines == ["accepted, without effect on a CPU: vvgpu, use_mixed_precision, use_cuda_graph"]
    compiled(tmp_path)
    assert not any("without effect" in line for line in lines_of(capsys))


def test_labels_keep_their_order_and_weights_count(tmp_path, capsys):
    generate(tmp_path, label_dim=2)
    inputs = hugectr.Input([1, 1], ["z", "a"], [1.0, 0.25], 2, "dense",
                           [hugectr.DataReaderSparseParam("keys", 1, True, 3)])

    def two_heads(**compile_options):
        model = model_of(tmp_path, inputs=inputs, head=False)
        for task in ("z", "a"):
            model.add(hugectr.DenseLayer(Layer.InnerProduct, ["all"], [f"{task}_logit"], num_output=1))
        for task in ("z", "a"):
            model.add(hugectr.DenseLayer(Layer.BinaryCrossEntropyLoss, [f"{task}_logit", task], [f"{task}_loss"]))
        model.compile(**compile_options)
        return model

    model = two_heads()
    assert any("HugeCTR takes them in alphabetical order" in line for line in lines_of(capsys))
    model.train()
    batch = model._last[hugectr.Tensor_t.Train]
    assert np.array_equal(model.check_out_tensor("z", hugectr.Tensor_t.Train)[:, 0], batch.labels.numpy()[:, 0])
    losses = [float(model.session.compute(batch, f"{task}_loss")) for task in ("z", "a")]
    model.fit(max_iter=4, eval_interval=4)
    lines, aucs = lines_of(capsys), dict(model.aucs_of_labels())
    assert list(aucs) == ["z", "a"]
    for label, value in aucs.items():
        assert any(f"Evaluation, AUC of {label}: {value:.6g}" in line for line in lines)
    again = two_heads(loss_names=["z", "a"], loss_weights=[2.0, 1.0])
    again.session.parameters()
    other = [float(again.session.compute(batch, f"{task}_loss")) for task in ("z", "a")]
    assert losses[1] < 0.25 and other[0] > 1 and other[1] > 0.5
    with pytest.raises(tc.ConfigError, match="there is no loss of the label 'b'; known: a, z"):
        two_heads(loss_names=["b"], loss_weights=[1.0])


def test_loss_that_is_not_finite(tmp_path):
    generate(tmp_path)
    model = compiled(tmp_path)
    model.session.tables()["emb"].fill_(float("nan"))
    with pytest.raises(RuntimeError, match="Train Runtime error: Loss cannot converge.*Embedding"):
        model.fit(max_iter=3)


def test_summary(tmp_path, capsys):
    generate(tmp_path)
    model = compiled(tmp_path)
    capsys.readouterr()
    model.summary()
    text = capsys.readouterr().out
    assert re.search(r"InnerProduct +all +logit +\(None, 1\) +15\n", text)
    # Before compile() as some of HugeCTR's scripts have it: the layers, without shapes.
    model_of(tmp_path).summary()
    before = capsys.readouterr().out
    assert re.search(r"InnerProduct +all +logit\n", before) and re.search(r"Concat +flat, dense +all\n", before)
    with pytest.raises(tc.ConfigError, match="summary: expected an Input and layers"):
        hugectr.Model(hugectr.CreateSolver(), reader_of(tmp_path), local()).summary()
    assert re.search(r"LocalizedSlotSparseEmbeddingHash +keys +emb +\(None, 3, 4\) +220\n", text)


def test_predictions_are_exported(tmp_path):
    generate(tmp_path)
    model = compiled(tmp_path, solver={"repeat_dataset": False, "batchsize_eval": 120})
    files = str(tmp_path / "p"), str(tmp_path / "l")
    model.export_predictions(*files)
    assert not (tmp_path / "p").exists()  # nothing has been evaluated
    batches = []
    while model.eval():
        model.export_predictions(*files)
        batches.append(model.check_out_tensor("logit", hugectr.Tensor_t.Evaluate)[:, 0])
    model.export_predictions(*files)  # after the end: nothing
    # One line of numbers with a space behind each, of batch after batch.
    assert (tmp_path / "p").read_text().count(" ") == 300 and "\n" not in (tmp_path / "l").read_text()
    p, y = np.loadtxt(tmp_path / "p"), np.loadtxt(tmp_path / "l")
    assert [len(batch) for batch in batches] == [120, 120, 60]
    assert np.allclose(np.concatenate(batches), p, atol=1e-5)
    with model.eval_reader().dataset(str(tmp_path / "eval.txt")).batches(batch_size=300) as reader:
        assert np.array_equal(next(iter(reader)).labels.numpy()[:, 0], y)
    with pytest.raises(tc.ConfigError, match="there was no batch of Train yet"):
        model.check_out_tensor("logit", hugectr.Tensor_t.Train)
    with pytest.raises(tc.ConfigError, match="there is no tensor 'logits'; did you mean 'logit'"):
        model.check_out_tensor("logits", hugectr.Tensor_t.Evaluate)


def test_mistakes_of_scripts(tmp_path):
    generate(tmp_path)
    model = model_of(tmp_path)
    for call in (model.train, model.eval, model.get_current_loss, lambda: model.export_predictions("p", "l")):
        with pytest.raises(tc.ConfigError, match=r"compile\(\) comes first"):
            call()
    with pytest.raises(tc.ConfigError, match="the model has its Input already"):
        model.add(hugectr.Input(1, "y", 0, "d", []))
    with pytest.raises(TypeError, match="add: expected Input, SparseEmbedding"):
        model.add("layer")
    model.compile()
    with pytest.raises(tc.ConfigError, match="the model is compiled; nothing can be added"):
        model.add(hugectr.DenseLayer(Layer.ReLU, ["all"], ["x"]))
    with pytest.raises(tc.ConfigError, match="expected max_iter of at least 1"):
        model.fit(max_iter=0)
    with pytest.raises(tc.ConfigError, match="eval_source"):
        compiled(tmp_path, reader=reader_of(tmp_path, eval_source="")).eval()
    other = hugectr.Input(1, "label", 5, "dense", [hugectr.DataReaderSparseParam("keys", 1, True, 3)])
    with pytest.raises(tc.DataError, match="dense_dim"):
        compiled(tmp_path, inputs=other)
    with pytest.raises(tc.IoError, match="none.txt"):
        compiled(tmp_path, reader=reader_of(tmp_path, source="none.txt"))
    with pytest.raises(TypeError, match="solver: expected what CreateSolver"):
        hugectr.Model(3, reader_of(tmp_path), local())


@pytest.mark.parametrize("make, text", [
    (lambda: hugectr.CreateSolver(batchsize=0), "CreateSolver: batchsize: expected at least 1, found 0"),
    (lambda: hugectr.CreateSolver(kafka_brockers="x"), "not published to Kafka"),
    (lambda: hugectr.CreateSolver(vvgpu=[[]]), "vvgpu: expected at least one GPU"),
    (lambda: hugectr.DataReaderSparseParam("k", [1, 2], True, 3), "nnz_per_slot: expected 3 numbers"),
    (lambda: hugectr.DataReaderSparseParam("k", 1, True, 0), "slot_num: expected at least 1"),
    (lambda: hugectr.Input([1], ["a", "b"], 0, "d", []), "label_dims: expected 2 numbers"),
    (lambda: hugectr.DataReaderParams(Format.Norm, source=[]), "source: expected at least one file"),
    (lambda: hugectr.SparseEmbedding(hugectr.Embedding_t.HybridSparseEmbedding, 1, 4, "max", "e", "k"),
     "combiner: expected 'sum' or 'mean', found 'max'"),
    (lambda: hugectr.DataReaderParams(Format.Norm, source="x", data_source_params=hugectr.DataSourceParams(
        hugectr.FileSystemType_t.HDFS, "host", 1)), "HDFS is not read here"),
    (lambda: hugectr.CreateETC, "hugectr.CreateETC: there is no embedding training cache")])
def test_arguments_that_are_refused(make, text):
    with pytest.raises(tc.ConfigError, match=text):
        make()


@pytest.mark.parametrize("make, text", [
    (lambda: hugectr.CreateSolver(batch_size=3), "batch_size"),
    (lambda: hugectr.CreateOptimizer("Adam"), "optimizer_type: expected one of Optimizer_t.Ftrl"),
    (lambda: hugectr.DenseLayer("MLP", ["a"], ["b"]), "layer_type: expected one of Layer_t.BatchNorm"),
    (lambda: hugectr.Input(label_dim=1, label="y", dense_dim=0, dense_name="d", data_reader_sparse_param_array=[]),
     "found 'label'; 'label_name' is missing"),
    (lambda: hugectr.DataReaderParams("Norm", "x"), "data_reader_type: expected one of")])
def test_arguments_of_another_type(make, text):
    with pytest.raises(TypeError, match=re.escape(text)):
        make()


def test_check_type_may_be_left_out_and_seeds_drawn():
    assert hugectr.DataReaderParams(Format.Norm, "x").check_type is hugectr.Check_t.Non
    assert hugectr.CreateSolver().seed != hugectr.CreateSolver().seed and hugectr.CreateSolver(seed=5).seed == 5
    defaults = hugectr.CreateOptimizer()
    assert (defaults.momentum_factor, defaults.update_type) == (0, hugectr.Update_t.Global)
    assert hugectr.CreateSolver().drop_incomplete_batch
