"""Runs."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

import tercel as tc
import tercel.data as td
import tercel.recsys as tr

SOLVER = {"batchsize": 100, "batchsize_eval": 150, "epochs": 1, "eval_interval": 5, "checkpoint_interval": 4}
ALL_ROWS = {"validation": "none", "shuffle": False}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return td.generate(tmp_path_factory.mktemp("runs") / "data", rows=1500, preset="small", seed=1,
                       test_fraction=0.2).dataset


def trainer_of(dataset, folder, **options):
    solver = {**SOLVER, **options.pop("solver", {})}
    return tr.Trainer("wdl", dataset, folder, solver=solver, data=options.pop("data", {"shuffle": False}), **options)


def test_a_run(dataset, tmp_path):
    seen = []
    trainer = trainer_of(dataset, tmp_path / "run", callbacks=[seen.append], data=None)
    assert trainer.step == 0 and trainer.checkpoint is None and trainer.metrics == {}
    assert trainer.result == tr.Result(0, {}, {})
    assert trainer.run()
    assert trainer.step == 11  # of 1,080 of 1,200 rows: the others validate
    kinds = [p.kind for p in seen]
    assert "step" in kinds
    # Every 4 steps, at the end, and where a validation, every 5 steps, found the best model.
    assert [p.step for p in seen if p.kind == "checkpoint"] == [4, 5, 8, 10, 11]
    evaluations = [p for p in seen if p.kind == "evaluation"]
    assert [(p.part, p.step) for p in evaluations[:3]] == [("valid", 5), ("valid", 10), ("valid", 11)]
    assert all(p.part == "" for p in seen if p.kind != "evaluation")
    last = [p for p in seen if p.kind == "step"][-1]
    assert (last.step, last.total_steps, last.rows) == (11, 11, 1080) and last.loss > 0 and last.learning_rate == 0.01
    assert [p for p in seen if p.kind == "checkpoint"][-1].path == trainer.checkpoint
    result = trainer.result
    assert len(evaluations) == 4 and (evaluations[3].part, evaluations[3].step) == ("test", result.best_step)
    assert result.test == evaluations[3].metrics == trainer.metrics == trainer.session.evaluate()
    assert result.valid == trainer.session.evaluate(part="valid") and trainer.session.steps == result.best_step
    with pytest.raises(tc.ConfigError, match="the validation or the test part, found train"):
        trainer.session.evaluate(part="train")
    model = tr.load_model(tmp_path / "run")
    assert model.step == result.best_step and model.last_step == 11
    assert model.evaluate(dataset) == result.test
    assert tuple(model.predict(dataset).shape) == (300,)
    assert not os.path.exists(tmp_path / "other")


def test_warm_start(dataset, tmp_path):
    first = trainer_of(dataset, tmp_path / "first", data=ALL_ROWS)
    first.run()
    trained = {name: table.clone() for name, table in first.session.tables().items()}
    first.close()
    second = trainer_of(dataset, tmp_path / "second", data=ALL_ROWS, solver={"seed": 5})
    assert not all(tc.equal(trained[name], table) for name, table in second.session.tables().items())
    taken = second.warm_start(tmp_path / "first")
    assert taken.parameters > 0 and taken.rows == sum(len(t) for t in trained.values())
    assert taken.new_rows == 0 and taken.left == []
    assert all(tc.equal(trained[name], table) for name, table in second.session.tables().items())
    assert second.run()
    with pytest.raises(RuntimeError, match="the run has a checkpoint, or has trained"):
        second.warm_start(tmp_path / "first")
    second.close()
    third = trainer_of(dataset, tmp_path / "third")
    with pytest.raises(tc.DataError, match="no trained model"):
        third.warm_start(tmp_path)
    assert third.run()
    third.close()


def test_the_run_of_a_session_has_its_bits(dataset, tmp_path):
    trainer = trainer_of(dataset, tmp_path / "run", data=ALL_ROWS)
    trainer.run()
    session = tr.Session("wdl", dataset, solver=SOLVER, data=ALL_ROWS)
    while session.step():
        pass
    for name, tensor in session.tables().items():
        assert tc.equal(tensor, trainer.session.tables()[name])


class Stopper(tr.Callback):
    def __init__(self, at):
        self.at, self.checkpoints = at, []

    def on_evaluation(self, progress):
        if progress.step >= self.at:
            self.trainer.stop()

    def on_checkpoint(self, progress):
        self.checkpoints.append(progress.step)


def test_stop_and_resume(dataset, tmp_path):
    stopper = Stopper(5)
    first = trainer_of(dataset, tmp_path / "run", callbacks=[stopper])
    assert not first.run()
    assert first.step == 5 and stopper.checkpoints[-1] == 5
    with pytest.raises(tc.IoError, match="held by process .* this one"):
        trainer_of(dataset, tmp_path / "run", resume="auto")
    session = first.session
    first.close()
    first.close()
    for call in (first.run, lambda: first.step, session.step, lambda: session.steps, session.parameters):
        with pytest.raises(ValueError, match="trainer: it is closed"):
            call()
    with pytest.raises(tc.ConfigError, match="already contains a run"):
        trainer_of(dataset, tmp_path / "run")
    with pytest.warns(UserWarning, match="lr"), trainer_of(dataset, tmp_path / "run", resume="auto", solver={"lr": 0.5}):
        pass
    second = trainer_of(dataset, tmp_path / "run", resume="auto")
    assert second.step == 5 and second.run()
    whole = trainer_of(dataset, tmp_path / "whole")
    whole.run()
    for name, tensor in whole.session.parameters().items():
        assert tc.equal(tensor, second.session.parameters()[name])
    with pytest.raises(tc.ConfigError, match="'never' or 'auto'"):
        trainer_of(dataset, tmp_path / "run", resume="always")


def test_a_stopped_run_goes_on(dataset, tmp_path):
    trainer = trainer_of(dataset, tmp_path / "run", callbacks=[Stopper(5)])
    assert not trainer.run()
    trainer.callbacks.clear()
    assert trainer.run() and trainer.step == 11


def test_exceptions_of_callbacks_end_the_run_after_a_save(dataset, tmp_path):
    def fail(progress):
        if progress.step == 5 and progress.kind == "evaluation":
            raise KeyError("mine")

    trainer = trainer_of(dataset, tmp_path / "run", callbacks=[fail])
    with pytest.raises(KeyError, match="mine"):
        trainer.run()
    assert trainer.step == 5 and trainer.checkpoint.endswith("5")
    trainer.callbacks.clear()
    assert trainer.run()


def test_callbacks_may_change_the_session(dataset, tmp_path):
    refused, rates = [], []

    class Changes(tr.Callback):
        def on_checkpoint(self, progress):
            session = self.trainer.session
            session.learning_rate = 0.0
            session.freeze(*session.tables())
            rates.append(session.evaluate(dataset)["auc"])
            assert session.evaluate()["auc"] == rates[-1]
            for call in (session.step, lambda: session.save(tmp_path / "x"), session.discard, self.trainer.run,
                         self.trainer.close):
                with pytest.raises(RuntimeError, match="this thread is using it"):
                    call()
                refused.append(1)
            thread = threading.Thread(target=self.from_elsewhere)
            thread.start()
            thread.join()

        def from_elsewhere(self):
            with pytest.raises(RuntimeError, match="another thread is using it"):
                self.trainer.session.evaluate(dataset)
            refused.append(1)

    trainer = trainer_of(dataset, tmp_path / "run", callbacks=[Changes()])
    assert trainer.run()
    assert len(refused) == 6 * len(rates) and len(set(rates)) == 1 and len(rates) == 4
    assert trainer.session.learning_rate == 0 and trainer.session.frozen


def test_errors_of_a_save_keep_the_callbacks_exception(dataset, tmp_path):
    def fail(progress):
        if progress.kind == "evaluation":
            for name in os.listdir(tmp_path / "run"):
                if name != "checkpoints":
                    os.remove(tmp_path / "run" / name)
            shutil.rmtree(tmp_path / "run")
            raise KeyError("mine")

    trainer = trainer_of(dataset, tmp_path / "run", callbacks=[fail])
    with pytest.raises(tc.IoError, match="removed or renamed") as caught:
        trainer.run()
    assert isinstance(caught.value.__context__, KeyError)
    trainer.callbacks.clear()
    assert trainer.run() and trainer.step == 11


def test_a_run_that_ends_before_its_first_step(dataset, tmp_path):
    trainer = trainer_of(dataset, tmp_path / "run")
    trainer.session.forward_backward(next(iter(trainer.session.batches(dataset))))
    with pytest.raises(RuntimeError, match="update.. or discard"):
        trainer.run()
    assert not os.path.exists(tmp_path / "run")
    trainer.session.discard()
    with pytest.raises(RuntimeError, match="before its first step"):
        trainer.run()


def test_a_forked_process_may_not_run_it(dataset, tmp_path):
    trainer = trainer_of(dataset, tmp_path / "run")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            trainer.run()
        except RuntimeError as error:
            code = 0 if "another process" in str(error) else 2
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert trainer.run()


def test_a_callback_does_not_keep_the_folder(dataset, tmp_path):
    trainer = trainer_of(dataset, tmp_path / "run", callbacks=[Stopper(5)])
    trainer.stop()
    assert not trainer.run() and not os.path.exists(tmp_path / "run")
    trainer = trainer_of(dataset, tmp_path / "run", callbacks=[Stopper(5)])
    trainer.run()
    del trainer
    with trainer_of(dataset, tmp_path / "run", resume="auto") as again:
        assert again.step == 5


def test_the_session_keeps_its_trainer(dataset, tmp_path):
    session = trainer_of(dataset, tmp_path / "run").session
    assert session.step() and session.steps == 1
    with pytest.raises(RuntimeError, match="resume='auto'"):
        session.load(tmp_path)


def test_errors(dataset, tmp_path):
    for arguments, error, text in [((3, tmp_path), TypeError, "dataset: expected a Dataset"),
                                   ((dataset, 3), TypeError, "folder"),
                                   ((dataset, tmp_path / "none" / "\0"), ValueError, "null")]:
        with pytest.raises(error, match=text):
            tr.Trainer("wdl", *arguments)
    with pytest.raises(TypeError, match="callbacks"):
        tr.Trainer("wdl", dataset, tmp_path / "a", callbacks=[3])
    with pytest.raises(tc.ConfigError):
        tr.Trainer("wdl", dataset, tmp_path / "a", solver={"batchsize": 0})
    with pytest.raises(tc.DataError, match="no trained model"):
        tr.load_model(tmp_path)
    assert not os.path.exists(tmp_path / "a")


INTERRUPTED = """
import sys, tercel.data as td, tercel.recsys as tr
dataset = td.open_dataset(sys.argv[1])
def tell(progress):
    if progress.kind == "step":
        print("step", flush=True)
trainer = tr.Trainer("wdl", dataset, sys.argv[2], callbacks=[tell], solver={"batchsize": 50, "epochs": 1000000})
try:
    trainer.run()
except KeyboardInterrupt:
    print("saved", trainer.step, trainer.checkpoint, flush=True)
"""


def test_ctrl_c_saves_and_raises(dataset, tmp_path):
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTED, dataset.folder, str(tmp_path / "run")],
                               stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "step\n"
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    lines = process.communicate(timeout=60)[0].splitlines()
    assert time.monotonic() - begun < 20 and process.returncode == 0
    word, step, checkpoint = lines[-1].split(" ", 2)
    assert word == "saved" and int(step) > 0 and os.path.isdir(checkpoint)
    with open(os.path.join(checkpoint, "manifest.json"), encoding="utf-8") as file:
        assert json.load(file)
    solver = {"batchsize": 50, "epochs": 1000000, "eval_interval": 0, "checkpoint_interval": 0}
    assert trainer_of(dataset, tmp_path / "run", resume="auto", solver=solver, data=None).step == int(step)
