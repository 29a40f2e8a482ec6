"""tune(): what it finds, how it is interrupted and resumed."""

import json
import os
import signal

import pytest

import tercel as tc
import tercel.data as td
import tercel.recsys as tr

SMALL = {"trials": 4, "epochs": 1, "first_epochs": 0.4, "reduction": 2, "solver": {"batchsize": 64}}
SEARCH = {"solver.lr": "log:0.00001:0.1", "solver.batchsize": [64, 128]}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return td.generate(tmp_path_factory.mktemp("tune") / "data", rows=2500, preset="small", seed=1,
                       test_fraction=0.2).dataset


@pytest.fixture(scope="module")
def whole(dataset, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "tuned"
    return folder, tr.tune("wdl", dataset, folder, search=SEARCH, **SMALL)


def test_the_best_trials_go_on(dataset, whole, tmp_path):
    folder, result = whole
    assert [trial.comparison for trial in result.trials] == [2, 1, 0, 0]
    assert sorted(trial.number for trial in result.trials) == [0, 1, 2, 3]
    best = result.trials[0]
    assert -0.6 < best.score < 0 and best.error == "" and 0 < best.best_step <= best.steps
    assert result.config == json.loads((folder / "best.json").read_text())
    for trial in result.trials[1:]:
        assert trial.number == 0 or [text.split("=")[0] for text in trial.assignments] == list(SEARCH)
    for text in best.assignments:
        entry, value = text.split("=")
        assert result.config["solver"][entry.split(".")[1]] == float(value)
    trainer = tr.Trainer(result.config, dataset, tmp_path / "run", solver={"epochs": 1})
    assert trainer.run()


def test_callbacks_see_trials_and_their_training(dataset, whole, tmp_path):
    seen = []
    result = tr.tune("wdl", dataset, tmp_path / "tuned", search=SEARCH, callback=seen.append, **SMALL)
    assert result == whole[1], "the same search finds the same"
    ends = [now for now in seen if now.training is None]
    assert [(now.comparison, now.done, now.of) for now in ends] == \
        [(0, 1, 4), (0, 2, 4), (0, 3, 4), (0, 4, 4), (1, 1, 2), (1, 2, 2), (2, 1, 1)]
    assert all(now.comparisons == 3 for now in ends) and [now.epochs for now in ends][::4] == [0.4, 0.8]
    assert {now.training.kind for now in seen if now.training} >= {"evaluation", "checkpoint"}
    assert ends[-1].trial == result.trials[0]


def test_a_search_that_was_interrupted_finds_the_same(dataset, whole, tmp_path):
    class Enough(Exception):
        pass

    state = {"calls": 0, "most": 3}

    def callback(now):
        state["calls"] += 1
        if state["calls"] == state["most"]:
            raise Enough
        if state["calls"] == state["most"] - 1 and now.training is None:
            os.kill(os.getpid(), signal.SIGINT)

    stops = 0
    while True:
        assert stops < 60
        state["calls"] = 0
        state["most"] = 3 + 2 * stops  # each goes further than the last
        try:
            result = tr.tune("wdl", dataset, tmp_path / "parts", search=SEARCH, callback=callback, resume="auto",
                             **SMALL)
            break
        except (Enough, KeyboardInterrupt):
            stops += 1
            assert not (tmp_path / "parts/best.json").exists()
    assert stops > 1 and result == whole[1]
    again = tr.tune("wdl", dataset, tmp_path / "parts", search=SEARCH, resume="auto",
                    callback=lambda now: pytest.fail("there is nothing left to do"), **SMALL)
    assert again == result


def test_a_trial_that_fails_says_why_without_a_checkpoint(dataset, tmp_path):
    result = tr.tune("wdl", dataset, tmp_path / "tuned", search={"solver.lr": ["1e38"]}, trials=2, epochs=1,
                     solver={"batchsize": 64, "checkpoint_interval": 1}, optimizer={"type": "SGD"})
    failed = result.trials[-1]
    assert failed.score is None and failed.error.startswith("step ") and "loss is" in failed.error
    assert "checkpoint" not in failed.error and str(tmp_path) not in failed.error
    assert json.loads((tmp_path / "tuned/tune.json").read_text())["trials"][1]["error"] == failed.error


def test_default_is_the_search_of_the_program(dataset, tmp_path):
    result = tr.tune("wdl", dataset, tmp_path / "tuned", trials=2, epochs=0.2, first_epochs=0.2)
    varied = next(trial for trial in result.trials if trial.number == 1)
    assert [text.split("=")[0] for text in varied.assignments] == ["solver.lr", "solver.batchsize"]


def test_mistakes_are_named(dataset, tmp_path):
    def search(values, **more):
        return tr.tune("wdl", dataset, tmp_path / "none", search=values, **{**SMALL, **more})

    with pytest.raises(tc.ConfigError, match="unknown option 'rate'"):
        search({"solver.rate": [1, 2]})
    with pytest.raises(tc.ConfigError, match="solver.lr=log:1: expected log:LOW:HIGH"):
        search({"solver.lr": "log:1"})
    with pytest.raises(TypeError, match="search: solver.lr: expected a text such as"):
        search({"solver.lr": 0.1})
    with pytest.raises(TypeError, match="a list of values, not list without any"):
        search({"solver.lr": []})
    with pytest.raises(ValueError, match="expected several lists"):
        search({"layers.deep.mlp_param.num_outputs": [[8, 4]]})
    with pytest.raises(ValueError, match="without ',' and '|'"):
        search({"solver.lr": ["1,2"]})
    with pytest.raises(TypeError, match="search: expected a dict"):
        search([1])
    with pytest.raises(tc.ConfigError, match="reduction"):
        search(SEARCH, reduction=1)
    with pytest.raises(tc.ConfigError, match="expected resume='never' or 'auto'"):
        search(SEARCH, resume="always")
    with pytest.raises(TypeError, match="callback: expected a function"):
        search(SEARCH, callback=3)
    with pytest.raises(TypeError, match="dataset: expected a Dataset"):
        tr.tune("wdl", [1], tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_lists_may_be_choices(dataset, tmp_path):
    result = tr.tune("wdl", dataset, tmp_path / "tuned", trials=3, epochs=0.2, first_epochs=0.2,
                     search={"layers.deep.mlp_param.num_outputs": [[8, 1], [16, 4, 1]]}, solver={"batchsize": 64})
    for trial in result.trials:
        assert trial.number == 0 or trial.assignments[0] in ("layers.deep.mlp_param.num_outputs=8,1",
                                                             "layers.deep.mlp_param.num_outputs=16,4,1")
