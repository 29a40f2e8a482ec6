"""Sessions, models and their predictions."""

import copy
import json
import math
import os
import pickle
import threading
import warnings

import numpy as np
import pytest

import tercel as tc
import tercel.data as td
import tercel.recsys as tr

SOLVER = {"batchsize": 100, "batchsize_eval": 150, "lr": 0.01}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return td.generate(tmp_path_factory.mktemp("recsys") / "data", rows=1500, preset="small", seed=1,
                       test_fraction=0.2).dataset


def session_of(rows, model="dlrm", data=None, **solver):
    return tr.Session(model, rows, solver={**SOLVER, **solver}, data=data)


def state_of(session):
    return {**{k: v.clone() for k, v in session.parameters().items()}, **{k: v.clone() for k, v in session.tables().items()}}


def same(a, b):
    return a.keys() == b.keys() and all(tc.equal(a[k], b[k]) for k in a)


def test_presets_and_configurations():
    assert set(tr.preset_names()) >= {"wdl", "deepfm", "dcn", "dlrm"}
    config = tr.preset("dlrm")
    config["solver"] = {"lr": 0.5}
    whole = tr.resolve_config(config, solver={"batchsize": 7}, optimizer={"type": "Adam"}, data={"shuffle": True})
    assert (whole["solver"]["lr"], whole["solver"]["batchsize"], whole["optimizer"]["type"]) == (0.5, 7, "Adam")
    assert whole["data"]["shuffle"] is True and whole["solver"]["seed"] == 1
    assert tr.resolve_config(whole) == whole
    with pytest.raises(tc.ConfigError, match="did you mean 'dlrm'"):
        tr.preset("dlrn")
    with pytest.raises(tc.ConfigError, match="did you mean 'batchsize'"):
        tr.resolve_config("wdl", solver={"batchsise": 3})
    with pytest.raises(TypeError, match="solver: expected a dict"):
        tr.resolve_config("wdl", solver=3)
    with pytest.raises(TypeError, match="name of a preset"):
        tr.resolve_config(3)
    with pytest.raises(TypeError, match="expected a number"):
        tr.resolve_config("wdl", solver={"lr": object()})


def test_configuration_files(tmp_path):
    path = tmp_path / "model.json"
    path.write_text(json.dumps(tr.preset("wdl")))
    assert tr.resolve_config(path) == tr.resolve_config(str(path)) == tr.resolve_config("wdl")
    for text in ("{", "[1]", "[" * 100000, "\x00"):
        path.write_text(text)
        with pytest.raises(tc.ConfigError, match="model.json"):
            tr.resolve_config(path)
    with pytest.raises(FileNotFoundError):
        tr.resolve_config(tmp_path / "none.json")


def test_training_a_dataset(dataset):
    session = session_of(dataset)
    assert math.isnan(session.loss) and session.steps == 0 and session.is_whole
    losses = []
    while session.step():
        losses.append(session.loss)
    assert session.steps == 12 == len(losses) and session.rows == 1200 and all(map(math.isfinite, losses))
    assert not session.step() and session.steps == 12
    metrics = session.evaluate()
    assert list(metrics) == ["auc", "log_loss", "accuracy", "calibration"]
    calls = []
    assert session.evaluate(progress=lambda rows, total: calls.append((rows, total))) == metrics
    assert calls[0][1] == 300
    assert session.evaluate(dataset) == session.evaluate(dataset, "test") == metrics
    assert session.evaluate(session.batches(dataset, "test", batch_size=150)) == metrics
    assert session.evaluate(dataset, "train")["auc"] != metrics["auc"]
    assert "MLP" in session.summary() and session.heads == ["loss"] and session.schema == dataset.schema


def test_bad_records_are_left_out_of_metrics_with_a_warning_but_never_of_predictions(tmp_path):
    made = td.generate(tmp_path / "data", rows=1000, preset="small", seed=1, test_fraction=0.2).dataset
    session = session_of(made)
    whole = session.predict(made)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session.evaluate(), session.evaluate(made)
    path = made.test.files[0].path
    content = bytearray(open(path, "rb").read())
    header = 69
    record = (len(content) - header) // 200
    for row in (3, 77):
        content[header + row * record + record - 1] ^= 1  # the sum
    open(path, "wb").write(content)

    damaged = td.open_dataset(tmp_path / "data")
    with pytest.raises(tc.DataError, match="record 3: "):
        session.evaluate(damaged)
    skipping = tr.Session("dlrm", damaged, solver=SOLVER, data={"on_bad_record": "skip"})
    with pytest.warns(UserWarning, match="^evaluate: 2 bad records were left out, the first: .*part-0.data: record 3: ") as said:
        metrics = skipping.evaluate(damaged)
    assert len(said) == 1
    assert metrics == skipping.evaluate(skipping.batches(damaged, "test", batch_size=150, on_bad_record="skip"))
    for _ in range(2):
        with pytest.warns(UserWarning, match="^evaluate: 2 bad records were left out, the first: .*record 3: "):
            assert skipping.evaluate() == metrics
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="2 bad records"):
            skipping.evaluate(damaged)
        for model in (skipping, session):
            with pytest.raises(tc.DataError, match="record 3: "):
                model.predict(damaged)
    with tr.Trainer("dlrm", damaged, tmp_path / "run", solver=SOLVER, data={"on_bad_record": "skip"}) as trainer:
        with pytest.warns(UserWarning, match="2 bad records"):
            trainer.run()
    loaded = tr.load_model(tmp_path / "run")
    with pytest.raises(tc.DataError, match="record 3: "):
        loaded.predict(damaged)
    with pytest.warns(UserWarning, match="2 bad records"):
        loaded.evaluate(damaged)
    assert whole.shape == (200,)


def test_the_ways_to_give_batches_agree(dataset):
    ways = []
    for way in range(4):
        session = session_of(dataset, data={"shuffle": False})
        for batch in session.batches(dataset):
            keys = batch["categories"].keys.view(batch.rows, 5)
            if way == 0:
                session.step()
            elif way == 1:
                session.step(batch)
            elif way == 2:
                session.step({"dense": batch.dense.numpy(), "categories": keys.numpy()}, batch.labels.numpy())
            else:
                columns = {slot.name: keys[:, i] for i, slot in enumerate(session.schema.slots)}
                session.forward_backward({"dense": batch.dense, **columns}, batch.labels[:, 0])
                session.reduce()
                session.update()
        ways.append(state_of(session))
    assert all(same(ways[0], other) for other in ways[1:])


def test_phases(dataset):
    session = session_of(dataset, "wdl")
    batch = next(iter(session.batches(dataset)))
    before = state_of(session)
    with pytest.raises(RuntimeError, match="no gradients"):
        session.update()
    with pytest.raises(RuntimeError, match="no gradients"):
        session.gradients()
    session.forward_backward(batch)
    gradients = session.gradients()
    assert gradients.parameters.keys() == session.parameters().keys()
    assert gradients.tables.keys() == session.tables().keys()
    rows, values = next(iter(gradients.tables.values()))
    assert tc.equal(rows, batch["categories"].keys.unique()) and values.shape[0] == rows.shape[0]
    with pytest.raises(RuntimeError, match="update.. or discard"):
        session.step(batch)
    session.discard()
    assert same(state_of(session), before) and session.steps == 0
    session.forward_backward(batch)
    for gradient in session.gradients().parameters.values():
        gradient.zero_()
    session.update()
    assert all(tc.equal(before[name], value) for name, value in session.parameters().items())
    assert not same(state_of(session), before) and session.steps == 1


def test_gradients_are_those_of_autograd(dataset):
    session = session_of(dataset, {"layers": [
        {"type": "Data", "label": {"top": "label"}, "dense": {"top": "dense"}, "sparse": [{"top": "keys"}]},
        {"type": "SparseEmbedding", "bottom": "keys", "top": "e", "sparse_embedding_hparam": {"embedding_vec_size": 1}},
        {"type": "Reshape", "bottom": "e", "top": "flat"}, {"type": "ReduceSum", "bottom": "flat", "top": "s"},
        {"type": "BinaryCrossEntropyLoss", "bottom": ["s", "label"], "top": "loss"},
        {"type": "InnerProduct", "bottom": "dense", "top": "p", "fc_param": {"num_output": 1}},
        {"type": "BinaryCrossEntropyLoss", "bottom": ["p", "label"], "top": "loss2"}]})
    batch = next(iter(session.batches(dataset)))
    session.forward_backward(batch)
    found = session.gradients()
    weight, bias = (t.clone().requires_grad_() for t in session.parameters().values())
    table = session.tables()["e"].clone().requires_grad_()
    logits = [table[batch["keys"].keys.view(-1, 5)].sum((1, 2)), (batch.dense @ weight + bias)[:, 0]]
    loss = sum(tc.nn.functional.binary_cross_entropy_with_logits(x, batch.labels[:, 0]) for x in logits)
    loss.backward()
    assert session.loss == pytest.approx(loss.item(), rel=1e-6)
    for gradient, of in zip(found.parameters.values(), (weight, bias)):
        assert tc.allclose(gradient.view(-1), of.grad.view(-1), rtol=1e-5, atol=1e-8)
    rows, values = found.tables["e"]
    assert tc.allclose(values, table.grad[rows], rtol=1e-5, atol=1e-8)
    assert session.heads == ["loss", "loss2"]
    session.discard()
    assert set(session.evaluate()) >= {"auc", "auc/loss", "auc/loss2"}
    assert tuple(session.predict(batch).shape) == (100, 2)


def test_arrays_train_like_a_dataset():
    draw = np.random.default_rng(0)
    user, item, x = draw.integers(0, 30, 3000), draw.integers(0, 20, (3000, 2)), draw.normal(size=(3000, 3))
    y = (draw.random(3000) < 1 / (1 + np.exp(-(x[:, 0] + (user % 3) - 1)))).astype(np.float64)
    train = td.ArrayDataset({"user": user[:2500], "item": item[:2500]}, dense=x[:2500], labels=y[:2500],
                            sizes={"user": 30, "item": 20})
    test = train.like({"user": user[2500:], "item": item[2500:]}, dense=x[2500:], labels=y[2500:])
    session = tr.Session("wdl", train, solver={"lr": 0.02, "batchsize": 250, "batchsize_eval": 64})
    before = session.evaluate(test)
    for batch in session.batches(train, shuffle=True, seed=2, epochs=4):
        session.step(batch)
    after = session.evaluate(test)
    assert session.steps == 40 and after["auc"] > max(0.7, before["auc"]) and after["log_loss"] < before["log_loss"]
    whole = session.predict(test)
    assert tuple(whole.shape) == (500,) and bool(((whole > 0) & (whole < 1)).all())
    keys = np.stack([user[2500:], 30 + item[2500:, 0], 30 + item[2500:, 1]], 1)
    by_name = session.predict({"dense": x[2500:], "user": keys[:, 0], "item": keys[:, 1:]})
    assert tc.allclose(whole, by_name, rtol=1e-5)
    with pytest.raises(RuntimeError, match="no labels"):
        session.step(next(iter(session.batches(train.like({"user": [0], "item": [[0, 0]]}, dense=[[0, 0, 0]])))))
    with pytest.raises(RuntimeError, match="dataset"):
        session.step()
    with pytest.raises(RuntimeError, match="test rows"):
        session.evaluate()
    with pytest.raises(RuntimeError, match="dataset"):
        session.save("nowhere")
    assert not os.path.exists("nowhere")


def test_wrong_arrays_are_named(dataset):
    session = session_of(dataset)
    keys = np.array([[s.first_key for s in session.schema.slots]])
    good = {"dense": np.zeros((1, 4)), "categories": keys}
    before = state_of(session)
    for arrays, labels, error, text in [
            ({**good, "categories": keys + 1000}, [1.0], ValueError, "input 'categories': row 0: expected a key"),
            ({**good, "dense": np.full((1, 4), np.inf)}, [1.0], ValueError, "input 'dense': row 0"),
            ({**good, "dense": np.zeros((2, 4))}, [1.0], ValueError, "rows"),
            ({**good, "dence": keys}, [1.0], ValueError, "did you mean 'dense'"),
            ({"dense": good["dense"]}, [1.0], ValueError, "categories"),
            (good, [1.0, 0.0], ValueError, "labels"), (good, [[1.0, 0.0]], ValueError, "labels"),
            (good, [np.nan], ValueError, "labels"), (good, ["a"], (TypeError, ValueError), "a|number"),
            (good, None, TypeError, "expected labels"), ([1], [1.0], TypeError, "Batch or a dict"),
            ({1: keys}, [1.0], TypeError, "name of an input"),
            ({**good, "categories": (keys[0], [0, 1])}, [1.0], ValueError, "row offsets")]:
        with pytest.raises(error, match=text):
            session.step(arrays, labels)
    with pytest.raises(TypeError, match="labels and weights together"):
        session.step(labels=[1])
    assert same(state_of(session), before) and session.steps == 0 and session.is_whole
    session.step(good, [1.0])
    session.step({"dense": good["dense"], "categories": (keys[0], np.arange(6))}, np.ones((1, 1), np.int32))
    assert session.steps == 2


def changed(batch, **values):
    other = copy.copy(batch)
    for name, value in values.items():
        setattr(other, name, value)
    return other


def test_wrong_batches_are_refused(dataset):
    session = session_of(dataset)
    batch = next(iter(session.batches(dataset)))
    keys = batch["categories"]

    def with_input(**values):
        parts = dict(name=keys.name, slot_num=5, hotness=1, bag_order="sample_major", shared=False,
                     row_offsets=keys.row_offsets, keys=keys.keys, key_weights=None)
        return changed(batch, inputs={"categories": td.SparseBatch(**{**parts, **values})})

    for wrong in [changed(batch, dense=batch.dense[:, :3]), changed(batch, dense=batch.dense[:50]),
                  changed(batch, dense=batch.dense.int()), changed(batch, labels=batch.labels[:99]),
                  changed(batch, labels=None), changed(batch, dense=None), changed(batch, dense=[1]),
                  changed(batch, rows=99), changed(batch, rows=-1), changed(batch, rows="a"), changed(batch, rows=2**70),
                  changed(batch, inputs={}), with_input(keys=keys.keys[:-1]), with_input(slot_num=4),
                  with_input(keys=keys.keys.float()), with_input(keys=keys.keys + 10**6), with_input(keys=-keys.keys - 1),
                  with_input(row_offsets=keys.row_offsets.flip(0)), with_input(row_offsets=keys.row_offsets + 1),
                  with_input(row_offsets=keys.row_offsets.float()), with_input(bag_order="slot_major"),
                  with_input(bag_order="no"), with_input(name=3), with_input(row_offsets=keys.row_offsets[:-1]),
                  changed(batch, global_row=5), changed(batch, global_rows=10), changed(batch, global_rows=2**60)]:
        with pytest.raises((RuntimeError, TypeError, ValueError, IndexError, AttributeError, OverflowError)):
            session.step(wrong)
        assert session.is_whole and session.steps == 0
    session.step(changed(batch, dense=batch.dense.clone().requires_grad_()))
    session.step(with_input(keys=keys.keys.int(), row_offsets=keys.row_offsets.int()))
    assert session.steps == 2


def test_norms_and_skipped_batches(dataset):
    session = session_of(dataset)
    session.step()
    assert math.isnan(session.gradient_norm) and session.nan_batches == 0
    session = session_of(dataset, clip_grad_norm=1e9)
    session.forward_backward(next(iter(session.batches(dataset))))
    dense, tables = session.gradients()
    squares = sum(g.double().pow(2).sum().item() for g in dense.values())
    squares += sum(values.double().pow(2).sum().item() for _, values in tables.values())
    session.update()
    assert session.gradient_norm == pytest.approx(math.sqrt(squares), rel=1e-5)
    session = session_of(dataset, on_nan="skip")
    next(iter(session.parameters().values())).fill_(math.nan)
    session.step()
    assert session.nan_batches == 12  # step() passes over all batches of the epoch


def test_learning_rate_and_freezing(dataset):
    session = session_of(dataset, "wdl", lr=0.5)
    assert session.learning_rate == 0.5
    session.learning_rate = 0.25
    assert session.learning_rate == 0.25
    session.learning_rate = None
    assert session.learning_rate == 0.5
    for wrong in (-1, math.nan, math.inf):
        with pytest.raises(tc.ConfigError, match="learning rate"):
            session.learning_rate = wrong
    for wrong in ("0.5", True):
        with pytest.raises(TypeError, match="learning_rate: expected a number"):
            session.learning_rate = wrong
    table = next(iter(session.tables()))
    session.freeze(table)
    assert session.frozen == [table]
    before = state_of(session)
    session.step()
    after = state_of(session)
    assert tc.equal(before[table], after[table]) and not same(before, after)
    session.unfreeze(table)
    session.step()
    assert session.frozen == [] and not tc.equal(after[table], session.tables()[table])
    with pytest.raises(tc.ConfigError, match="did you mean"):
        session.freeze(table + "x")
    with pytest.raises(TypeError, match="name of a layer"):
        session.freeze(3)


def test_save_and_load(dataset, tmp_path):
    one = session_of(dataset)
    for _ in range(4):
        one.step()
    one.freeze("bottom")
    path = one.save(tmp_path / "store")
    assert os.path.dirname(path) == str(tmp_path / "store")
    with pytest.raises(tc.IoError):
        one.save(tmp_path / "store")
    two = session_of(dataset)
    two.load(tmp_path / "store")
    assert two.steps == 4 and two.frozen == ["bottom"] and same(state_of(one), state_of(two))
    for session in (one, two):
        while session.step():
            pass
    assert one.steps == two.steps == 12 and same(state_of(one), state_of(two))
    with pytest.warns(UserWarning, match="lr"):
        session_of(dataset, lr=0.5).load(path)
    with pytest.raises(tc.ConfigError):
        session_of(dataset, "wdl").load(path)
    with pytest.raises(tc.DataError, match="checkpoint"):
        two.load(tmp_path)
    with pytest.raises(ValueError, match="keep_last: expected an integer that is at least 1"):
        two.save(tmp_path / "store", keep_last=0)
    with pytest.raises(TypeError, match="folder"):
        two.save(3)
    loaded = tr.load_model(path)
    assert loaded.step == 4 and loaded.checkpoint == path and "LoadedModel" in repr(loaded)


def test_written_parameters_are_the_models(dataset):
    session = session_of(dataset)
    batch = next(iter(session.batches(dataset)))
    for tensor in (*session.parameters().values(), *session.tables().values()):
        assert not tensor.requires_grad
        tensor.zero_()
    assert session.predict(batch).unique().tolist() == [0.5]
    next(iter(session.parameters().values())).fill_(math.nan)
    with pytest.raises(tc.NumericError, match="the loss is NaN"):
        session.step(batch)
    assert session.is_whole and session.steps == 0


def test_one_thread_at_a_time(dataset):
    session = session_of(dataset)
    errors = []

    def use_it(*_):
        for call in (session.step, session.evaluate, lambda: session.predict(dataset), lambda: session.freeze("bottom")):
            try:
                call()
            except RuntimeError as error:
                errors.append(str(error))

    def from_a_thread(*_):
        thread = threading.Thread(target=use_it)
        thread.start()
        thread.join()

    session.evaluate(progress=use_it)
    assert len(errors) % 4 == 0 and errors and all("this thread is using it" in text for text in errors)
    errors.clear()
    session.evaluate(progress=from_a_thread)
    assert errors and all("another thread is using it" in text for text in errors)
    assert session.step()


def test_exceptions_of_progress_are_raised(dataset):
    session = session_of(dataset)
    for call in (session.evaluate, lambda progress: session.evaluate(dataset, progress=progress),
                 lambda progress: session.predict(dataset, progress=progress)):
        with pytest.raises(ZeroDivisionError):
            call(progress=lambda *_: 1 / 0)
        assert session.step()


def test_it_cannot_be_copied(dataset):
    session = session_of(dataset)
    for call in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            call(session)
    for wrong in (3, None, "data"):
        with pytest.raises(TypeError, match="rows: expected a Dataset"):
            tr.Session("wdl", wrong)


def test_errors_of_models_name_the_layer(dataset):
    config = tr.preset("wdl")
    config["layers"][-1]["bottom"] = ["nothing", "label"]
    with pytest.raises(tc.ConfigError, match="nothing"):
        tr.Session(config, dataset)
    with pytest.raises(tc.ConfigError, match="slots"):
        tr.Session("wdl", td.Schema(1, 0, (), (), (td.Slot("a", -1),), 0))


def test_raw_text_is_predicted(tmp_path):
    text = tmp_path / "rows.csv"
    text.write_text("click,age,city\n" + "".join(f"{i % 2},{i % 7},c{i % 5}\n" for i in range(200)))
    dataset = td.convert_csv(text, tmp_path / "data", label="click", dense=["age"], categorical=["city"], min_count=1,
                             test_every=0).dataset
    with tr.Trainer("wdl", dataset, tmp_path / "run", solver={"batchsize": 50, "lr": 0.1, "epochs": 5}) as trainer:
        trainer.run()
    model = tr.load_model(tmp_path / "run")
    calls = []
    found = model.predict_text(text, progress=lambda *of: calls.append(of))
    assert calls and tc.equal(found, model.predict(dataset, "train")) and float(found.std()) > 0
    new = tmp_path / "new.csv"
    new.write_text("age,city\n3,c1\n,unknown\n")
    assert tuple(model.predict_text([new]).shape) == (2,)
    new.write_text("age,city\n3,c1,4\n")
    with pytest.raises(tc.DataError, match="new.csv"):
        model.predict_text(new)


def test_float64(dataset):
    wide, narrow = tr.Session("wdl", dataset, solver=SOLVER, dtype=tc.float64), session_of(dataset, "wdl")
    assert {t.dtype for t in (*wide.parameters().values(), *wide.tables().values())} == {tc.float64}
    for session in (wide, narrow):
        while session.step():
            pass
    assert wide.loss != narrow.loss and wide.loss == pytest.approx(narrow.loss, rel=1e-4)
    batch = next(iter(wide.batches(dataset)))
    assert wide.predict(batch).dtype is tc.float64
    assert wide.evaluate()["auc"] == pytest.approx(narrow.evaluate()["auc"], abs=1e-3)
    for dtype, error in ((tc.bfloat16, tc.ConfigError), (tc.int64, tc.ConfigError), ("float64", TypeError)):
        with pytest.raises(error, match="expected"):
            tr.Session("wdl", dataset, dtype=dtype)


def test_rows_of_another_schema_are_refused():
    train = td.ArrayDataset({"u": np.arange(40) % 20, "g": np.arange(40) % 4}, labels=np.arange(40) % 2)
    session = tr.Session("wdl", train, solver={"batchsize": 10})
    for other, text in [(td.ArrayDataset({"u": [0], "g": [0]}, labels=[1]), "field 0"),
                        (td.ArrayDataset({"g": [0], "u": [0]}, labels=[1], sizes={"u": 20, "g": 4}), "field 0"),
                        (td.ArrayDataset({"u": [0]}, labels=[1], sizes={"u": 20}), "number of fields"),
                        (td.ArrayDataset({"u": [0], "g": [0]}, dense=[1.0], sizes={"u": 20, "g": 4}), "dense_dim"),
                        (td.ArrayDataset({"u": [0], "g": [0]}, labels=[[1, 0]], sizes={"u": 20, "g": 4}), "label_dim")]:
        for call in (session.evaluate, session.predict, session.batches):
            with pytest.raises(ValueError, match=text):
                call(other)
    none = train.like({"u": [], "g": []}, labels=[])
    assert tuple(session.predict(none).shape) == (0,)
    for call in (lambda: session.evaluate(none), lambda: session.evaluate([])):
        with pytest.raises(ValueError, match="no rows"):
            call()
    with pytest.raises(RuntimeError, match="no rows"):
        session.step({"categories": np.zeros((0, 2), np.int64)}, [])
    session.step({"categories": np.array([[0, 20]], np.uint8)}, [True])
    calls = []
    session.predict(train, progress=lambda *of: calls.append(of))
    assert calls == [(40, 40)]


def test_weights_that_are_written_are_checked(dataset, tmp_path):
    session = session_of(dataset)
    session.step()
    weight = next(iter(session.parameters().values()))
    before = float(weight[0, 0])
    weight[0, 0] = math.nan
    for call in (session.evaluate, lambda: session.evaluate(dataset), lambda: session.save(tmp_path / "a")):
        with pytest.raises(tc.NumericError, match="NaN or infinite: bottom"):
            call()
    weight[0, 0] = before
    session.evaluate()
    session.save(tmp_path / "a")


def test_threads_that_read_and_close(dataset, tmp_path):
    """A session's sets and a trainer's metrics may be read while another thread trains or loads."""
    session = session_of(dataset)
    session.freeze("bottom")
    path = session.save(tmp_path / "c")
    ended = []

    def load():
        for _ in range(20):
            session.load(path)
        ended.append(1)

    thread = threading.Thread(target=load)
    thread.start()
    while thread.is_alive():
        try:
            assert session.frozen == ["bottom"] and session.learning_rate == 0.01
        except RuntimeError as error:
            assert "another thread is using it" in str(error)
    thread.join()
    assert ended

    trainer = tr.Trainer("wdl", dataset, tmp_path / "run", solver={**SOLVER, "eval_interval": 1, "epochs": 3})
    thread = threading.Thread(target=trainer.run)
    thread.start()
    while thread.is_alive():
        assert set(trainer.metrics) <= {"auc", "log_loss", "accuracy", "calibration"}
        assert trainer.checkpoint is None or os.path.basename(trainer.checkpoint).startswith("step-")
    thread.join()

    arrays = {"dense": np.zeros((20000, 4)), "categories": np.tile([s.first_key for s in session.schema.slots], (20000, 1))}
    refused = []

    def predict():
        try:
            while True:
                trainer.session.predict(arrays)
        except ValueError as error:
            refused.append(str(error))

    thread = threading.Thread(target=predict)
    thread.start()
    while not refused:
        try:
            trainer.close()
        except RuntimeError:
            pass
    thread.join()
    assert "closed" in refused[0]
