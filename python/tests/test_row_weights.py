"""Weights of rows, in losses and metrics."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tercel as tc
import tercel.data as td
import tercel.recsys as tr

ROWS, FIELDS = 120, 3


def draw(seed=3):
    rng = np.random.default_rng(seed)
    keys = {f"c{i}": rng.integers(0, 8, ROWS) for i in range(FIELDS)}
    labels = (rng.random(ROWS) < 0.4).astype(np.float32)
    weights = rng.integers(0, 4, ROWS)
    return keys, labels, weights


def table(seed=3, weights=None):
    keys, labels, drawn = draw(seed)
    return pa.table({"y": labels, **keys, "w": drawn if weights is None else weights})


def parquet(path, *tables):
    paths = []
    for i, rows in enumerate(tables):
        paths.append(str(path / f"{i}.parquet"))
        pq.write_table(rows, paths[-1])
    names = [f"c{i}" for i in range(FIELDS)]
    return td.open_files("parquet", train=paths, test=paths, label=["y"], categorical=names, columns=["w"],
                         slot_size_array=[8] * FIELDS)


def session(rows, **options):
    solver = {"batchsize": ROWS, "batchsize_eval": 50, "lr": 0.1, "epochs": 1}
    return tr.Session("lr", rows, solver=solver, optimizer={"type": "SGD"},
                      data={"validation": "none", "shuffle": False, **options})


def log_losses(logits, labels):
    return np.maximum(logits, 0) - logits * labels + np.log1p(np.exp(-np.abs(logits)))


def weighted_auc(scores, labels, weights):
    """By definition: over all pairs of a positive and a negative row."""
    positive, negative = labels == 1, labels == 0
    pairs = np.outer(weights[positive], weights[negative])
    above = scores[positive][:, None] - scores[negative][None, :]
    return float((pairs * ((above > 0) + 0.5 * (above == 0))).sum() / pairs.sum())


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
def test_a_step_multiplies_the_losses(tmp_path, dtype):
    keys, labels, weights = draw()
    rows = parquet(tmp_path, table(weights=weights.astype(dtype)))
    of = session(rows, weight="w")
    assert of.config["data"]["weight"] == "w"
    before = np.array([p for p in of.predict(rows)])
    logits = np.log(before / (1 - before))
    of.step()
    assert math.isclose(of.loss, float((weights * log_losses(logits, labels)).sum() / ROWS), rel_tol=1e-5)

    given = session(rows)
    arrays = {name: values + 8 * i for i, (name, values) in enumerate(keys.items())}
    given.step(arrays, labels, weights=weights.astype(dtype))
    by_batch = session(rows)
    by_batch.step(next(iter(of.batches(rows, batch_size=ROWS))))
    for other in (given, by_batch):
        assert math.isclose(other.loss, of.loss, rel_tol=1e-6)
        for name, values in of.tables().items():
            assert tc.allclose(values, other.tables()[name], atol=1e-7)
    plain = session(rows)
    plain.step()
    assert not math.isclose(plain.loss, of.loss, rel_tol=1e-3)


def test_a_row_of_weight_two_is_two_rows(tmp_path):
    """In the gradient of plain descent, and in metrics."""
    keys, labels, weights = draw()
    twice = np.repeat(np.arange(ROWS), weights)
    sgd = {"type": "SGD", "update_type": "Local"}
    solver = {"batchsize": 1, "lr": 0.5}
    models = []
    for rows, given, rate in ((np.arange(ROWS), weights, 1.0), (twice, None, len(twice) / ROWS)):
        arrays = {name: values[rows] + 8 * i for i, (name, values) in enumerate(keys.items())}
        schema = td.ArrayDataset({n: v for n, v in keys.items()}, labels=labels, sizes=dict.fromkeys(keys, 8)).schema
        of = tr.Session("lr", schema, solver=dict(solver, lr=0.5 * rate), optimizer=sgd)
        for _ in range(5):
            of.step(arrays, labels[rows], weights=given)
        models.append(of)
    for name, values in models[0].tables().items():
        assert tc.allclose(values, models[1].tables()[name], atol=1e-5)
    data = td.ArrayDataset(keys, labels=labels, sizes=dict.fromkeys(keys, 8))
    weighted = models[0].evaluate(data.like(keys, labels=labels, weights=weights))
    repeated = models[0].evaluate(data.like({n: v[twice] for n, v in keys.items()}, labels=labels[twice]))
    assert weighted.keys() == repeated.keys()
    for name, value in weighted.items():
        assert math.isclose(value, repeated[name], rel_tol=1e-5), name
    assert not math.isclose(weighted["log_loss"], models[0].evaluate(data)["log_loss"], rel_tol=1e-3)


def test_metrics_of_a_dataset(tmp_path):
    keys, labels, _ = draw()
    weights = np.random.default_rng(5).random(ROWS).astype(np.float32)  # else rounding would decide between equal scores
    rows = parquet(tmp_path, table(weights=weights))
    of = session(rows, weight="w")
    of.step()
    found = of.evaluate()
    scores = np.array([float(p) for p in of.predict(rows, "test")])
    losses = -np.log(np.where(labels == 1, scores, 1 - scores))
    assert math.isclose(found["log_loss"], float((weights * losses).sum() / weights.sum()), rel_tol=1e-4)
    assert math.isclose(found["auc"], weighted_auc(scores, labels, weights), rel_tol=1e-5)
    assert found == of.evaluate(rows)


def test_evaluations_choose_their_weights(tmp_path):
    rows = parquet(tmp_path, table())
    of, weighted = session(rows), session(rows, weight="w")
    for trained, default, other in ((of, "", "w"), (weighted, "w", "")):
        trained.step()
        found = trained.evaluate(rows)
        assert trained.evaluate(rows, weight=default) == found
        assert not math.isclose(trained.evaluate(rows, weight=other)["auc"], found["auc"], rel_tol=1e-3)
    with pytest.raises(tc.ConfigError, match="'v'"):
        of.evaluate(rows, weight="v")
    with pytest.raises(TypeError, match="weight"):
        of.evaluate(rows, weight=1)
    with pytest.raises(TypeError, match="weight: the session's own rows weigh as data.weight says"):
        of.evaluate(weight="w")
    with pytest.raises(TypeError, match="weight: only the rows of a Dataset have columns to choose from, not list"):
        of.evaluate(list(of.batches(rows)), weight="w")


def test_rows_that_all_weigh_nothing(tmp_path):
    rows = parquet(tmp_path, table(weights=np.zeros(ROWS)))
    with pytest.warns(UserWarning, match=f"evaluate: all {ROWS} rows have weight 0"):
        session(rows).evaluate(rows, weight="w")


def test_a_run_goes_on_with_its_weights(tmp_path):
    rows = parquet(tmp_path, table(), table(4))
    data = {"validation": "none", "weight": "w"}
    run = tr.Trainer("lr", rows, tmp_path / "run", solver={"batchsize": 50, "epochs": 1}, data=data)
    run.run()
    run.close()
    model = tr.load_model(tmp_path / "run")
    assert model.config["data"]["weight"] == "w"
    assert "auc" in model.evaluate(rows)
    with pytest.warns(UserWarning, match=r'data.weight: the checkpoint has "w", this run has ""'):
        tr.Trainer("lr", rows, tmp_path / "run", solver={"batchsize": 50, "epochs": 2}, data={"validation": "none"},
                   resume="auto").run()


def test_wrong_weights(tmp_path):
    keys, labels, weights = draw()
    negative = weights.astype(np.float64)
    negative[70] = -0.5
    for given, found in ((negative, "-0.5"), (np.where(np.arange(ROWS) == 70, -1, weights), "-1")):
        rows = parquet(tmp_path, table(weights=given))
        with pytest.raises(tc.DataError, match=f"0.parquet: row group 0: row 70: column 'w': expected a weight that is not negative, "
                                               f"found {found}"):
            session(rows, weight="w").step()
        skipping = session(rows, weight="w", on_bad_record="skip")
        skipping.step()
        assert skipping.rows == ROWS - 1
    rows = parquet(tmp_path, table(weights=np.where(np.arange(ROWS) == 3, np.nan, 1.0)))
    with pytest.raises(tc.DataError, match="row 3: column 'w': expected a finite number, found nan"):
        session(rows, weight="w").step()
    with pytest.raises(tc.ConfigError, match="option 'weight': .* has no further column 'v'"):
        session(rows, weight="v")
    norm = td.generate(tmp_path / "norm", rows=500, preset="small").dataset
    with pytest.raises(tc.ConfigError, match="has no further column 'w'"):
        tr.Session("lr", norm, solver={"batchsize": 50}, data={"weight": "w"})

    of = session(parquet(tmp_path, table()))
    arrays = {name: values + 8 * i for i, (name, values) in enumerate(keys.items())}
    for wrong, error, message in ((weights[:-1], ValueError, "'weights' has 119 rows"),
                                  (-weights - 1, ValueError, "row 0: expected a weight that is not negative"),
                                  (weights[:, None], ValueError, r"'weights': expected \[batch\]"),
                                  (np.full(ROWS, np.nan), ValueError, "expected a finite weight"),
                                  (weights.astype(complex), TypeError, "weights"),
                                  ("abc", TypeError, "weights")):
        with pytest.raises(error, match=message):
            of.step(arrays, labels, weights=wrong)
    with pytest.raises(TypeError, match="together with arrays"):
        of.step(weights=weights)
    with pytest.raises(TypeError, match="together with arrays"):
        of.step(next(iter(of.batches(parquet(tmp_path, table())))), weights=weights)
    batch = next(iter(of.batches(parquet(tmp_path, table()))))
    batch.weights = tc.ones(3)
    with pytest.raises(RuntimeError, match=r"expected weights \[120\]"):
        of.step(batch)
    for weights, found in ((-tc.ones(ROWS), "-1"), (tc.full((ROWS,), math.inf), "inf")):
        batch.weights = weights
        with pytest.raises(ValueError, match=f"weights: row 0: expected a finite weight that is not negative but got {found}"):
            of.step(batch)
    batch.weights = tc.ones(ROWS, dtype=tc.float16)
    with pytest.raises(RuntimeError, match="of float32 or float64"):
        of.step(batch)
    with pytest.raises(ValueError, match="weights: row 1: expected a weight that is not negative, got -2"):
        td.ArrayDataset({"a": [0, 1]}, labels=[0, 1], weights=[1, -2])
    with pytest.raises(ValueError, match="weights: has 3 rows"):
        td.ArrayDataset({"a": [0, 1]}, labels=[0, 1], weights=[1, 2, 3])
    with pytest.raises(ValueError, match=r"weights: expected an array \[rows\]"):
        td.ArrayDataset({"a": [0, 1]}, labels=[0, 1], weights=[[1, 2], [3, 4]])


def test_models_are_not_compared_across_a_change_of_weights(tmp_path):
    rows = parquet(tmp_path, table(), table(4))
    solver = {"batchsize": 20, "epochs": 2, "early_stop": 5}
    run = tr.Trainer("lr", rows, tmp_path / "run", solver=solver, data={"validation": "held_out", "weight": "w"})
    run.run()
    before = run.step
    run.close()
    with pytest.warns(UserWarning, match="data.weight"):
        other = tr.Trainer("lr", rows, tmp_path / "run", solver={**solver, "epochs": 3}, data={"validation": "held_out"},
                           resume="auto")
        other.run()
    # The only validation without weights, whether or not those with them had better numbers.
    assert other.result.best_step == other.step > before
