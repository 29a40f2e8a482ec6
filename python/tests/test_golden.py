"""Datasets and runs of earlier versions (golden/, made by golden/make.py) are read as they were."""

import json
import pathlib
import shutil
import sys

import pytest

import tercel.data as td
import tercel.recsys as tr

HERE = pathlib.Path(__file__).parent / "golden"
sys.path.insert(0, str(HERE))
make = __import__("make")
sys.path.pop(0)

VERSIONS = sorted(path for path in HERE.iterdir() if (path / "expected.json").exists())


def test_there_are_golden_files():
    assert VERSIONS


@pytest.fixture(params=VERSIONS, ids=lambda path: path.name)
def golden(request, tmp_path):
    """A copy, since what opens a run may lock it, and what it must give."""
    shutil.copytree(request.param, tmp_path / "golden")
    return tmp_path / "golden", json.loads((request.param / "expected.json").read_text())


def test_datasets(golden):
    folder, expected = golden
    assert {path.parent.name for path in folder.glob("*/dataset.json")} == set(expected["datasets"])
    for name, parts in expected["datasets"].items():
        dataset = td.open_dataset(folder / name)
        found = make.contents_of(dataset)
        for part, batches in parts.items():
            for batch, was in zip(found[part], batches):
                assert batch.pop("dense") == pytest.approx(was.pop("dense"), rel=1e-6), (name, part)
                assert batch == was, (name, part)
            assert len(found[part]) == len(batches)
        assert td.verify_dataset(dataset) == []


@pytest.mark.parametrize("run", make.RUNS)
def test_runs(golden, run):
    folder, expected = golden
    was = expected["runs"][run]
    model = tr.load_model(folder / "runs" / run)
    assert (model.step, model.last_step) == (was["step"], was["last_step"])
    assert model.predict_text(folder / "clicks.csv").tolist() == pytest.approx(was["predictions"], rel=1e-5)
    dataset = td.open_dataset(folder / "lists")
    assert model.evaluate(dataset) == pytest.approx(was["test"], rel=1e-5)
    config = make.config_of(run)
    config["solver"]["epochs"] = 3
    with pytest.warns(UserWarning, match="end of the run: the checkpoint has 2 epochs"):
        trainer = tr.Trainer(config, dataset, folder / "runs" / run, resume="auto")
    with trainer:
        assert trainer.step == was["last_step"]
        assert trainer.run() and trainer.step > was["last_step"]
