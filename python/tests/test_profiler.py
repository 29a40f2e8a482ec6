"""The profiler: profiles, ranges, tables and traces."""

import gzip
import json
import threading
import time
import warnings

import pytest

import tercel as tc
from tercel.autograd import profiler
from tercel.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler


def names(events):
    return [event.name for event in events]


def test_ranges_nest():
    x = tc.randn(64, 64, requires_grad=True)
    with profiler.profile() as recorded:
        with profiler.record_function("model"):
            loss = ((x @ x).relu() * 2 + x[0]).sum()
        loss.backward()
    events = recorded.events()
    model = events[0]
    assert model.name == "model" and model.is_user_annotation and model.cpu_parent is None
    assert names(model.cpu_children) == ["matmul", "relu", "mul", "__getitem__", "add", "sum"]
    assert names(model.cpu_children[0].cpu_children) == ["gemm"]
    backward = [event for event in events if event.category == "backward"]
    assert names(backward)[0] == "SumBackward0"
    assert {"SumBackward0", "AddBackward0", "MulBackward0", "ReluBackward0", "MmBackward0"} <= set(names(backward))
    product = next(event for event in backward if event.name == "MmBackward0")
    assert names(product.cpu_children) == ["gemm", "gemm"]
    for event in events:
        inside = sum(child.cpu_time_total for child in event.cpu_children)
        assert event.self_cpu_time_total == pytest.approx(event.cpu_time_total - inside, abs=1e-6) and event.cpu_time_total > 0
        for child in event.cpu_children:
            assert child.cpu_parent is event and event.time_range.start <= child.time_range.start
            assert child.time_range.end <= event.time_range.end and child.thread == event.thread


def test_times_are_real():
    with profiler.profile() as recorded:
        begin = time.perf_counter()
        with profiler.record_function("sleep"):
            time.sleep(0.02)
        elapsed = (time.perf_counter() - begin) * 1e6
    (event,) = recorded.events()
    assert 20e3 <= event.cpu_time_total <= elapsed and event.time_range.elapsed_us() == pytest.approx(event.cpu_time_total)
    assert recorded.self_cpu_time_total == pytest.approx(event.cpu_time_total)


def test_averages_and_tables():
    x = tc.ones(4)
    with profiler.profile() as recorded:
        for _ in range(5):
            x + x
        x.exp()
    averages = recorded.key_averages()
    found = {average.key: average for average in averages}
    assert found["add"].count == 5 and found["exp"].count == 1 and set(found) == {"add", "exp"}
    assert found["add"].cpu_time == pytest.approx(found["add"].cpu_time_total / 5)
    assert found["add"].cpu_time_total == pytest.approx(sum(e.cpu_time_total for e in recorded.events() if e.name == "add"))
    table = averages.table(sort_by="count", row_limit=1, header="words")
    lines = table.splitlines()
    assert lines[1] == "words" and "Self CPU %" in lines[3] and lines[5].split()[0] == "add" and lines[5].split()[-1] == "5"
    assert "exp" not in table and "Self CPU time total: " in lines[-1]
    assert str(averages) == averages.table() and recorded.total_average().count == 6
    for order in ("cpu_time_total", "self_cpu_time_total", "cpu_time", "cuda_time_total"):
        averages.table(sort_by=order)
    with pytest.raises(ValueError, match="expected sort_by to be one of .*, but got 'nonsense'"):
        averages.table(sort_by="nonsense")
    with pytest.raises(RuntimeError, match="expected events of a profile"):
        averages.export_chrome_trace("trace.json")


def test_a_trace_can_be_read(tmp_path):
    x = tc.ones(3, requires_grad=True)
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        with record_function('a "name" é'):
            (x * 2).sum().backward()
    recorded.export_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))
    complete = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(complete) == len(recorded.events()) and trace["displayTimeUnit"] == "ms"
    for event, ours in zip(complete, recorded.events()):
        assert event["name"] == ours.name and event["ts"] == pytest.approx(ours.time_range.start)
        assert event["dur"] == pytest.approx(ours.cpu_time_total) and event["tid"] == ours.thread
    assert {event["cat"] for event in complete} == {"cpu_op", "backward", "user_annotation"}
    assert complete[0]["name"] == 'a "name" é'
    recorded.export_chrome_trace(str(tmp_path / "trace.json.gz"))
    assert json.loads(gzip.open(tmp_path / "trace.json.gz").read()) == trace


def test_metadata_of_a_trace(tmp_path):
    seen = []

    def write(recorded):
        recorded.export_chrome_trace(tmp_path / "trace.json")
        seen.append(json.loads((tmp_path / "trace.json").read_text()))

    with profile(schedule=schedule(wait=0, warmup=0, active=1, repeat=2), on_trace_ready=write) as recorded:
        recorded.add_metadata("say", 'a "word"')
        recorded.add_metadata_json("numbers", "[1, 2]")
        with pytest.raises(ValueError):
            recorded.add_metadata_json("numbers", "not json")
        recorded.step()
        recorded.add_metadata("second", "text")
        recorded.step()
    assert seen[0]["say"] == 'a "word"' and seen[0]["numbers"] == [1, 2] and "traceEvents" in seen[0]
    assert seen[1]["second"] == "text" and "say" not in seen[1]


def test_recording_is_switched_off_and_on():
    x, cpu = tc.ones(3), [ProfilerActivity.CPU]
    with profile() as recorded:
        with record_function("around"):
            x.exp()
            recorded.toggle_collection_dynamic(False, cpu)
            recorded.toggle_collection_dynamic(False, cpu)
            x.sin()
            with pytest.raises(RuntimeError, match="a profile is already running"):
                profiler.profile().__enter__()
            recorded.toggle_collection_dynamic(True, [ProfilerActivity.CUDA])
            x.cos()
            recorded.toggle_collection_dynamic(True, cpu)
            x.log()
    assert [event.name for event in recorded.events()] == ["around", "exp", "log"]
    with pytest.raises(TypeError, match="expected members of ProfilerActivity, but got 'cpu'"):
        recorded.toggle_collection_dynamic(False, ["cpu"])
    recorded.toggle_collection_dynamic(False, cpu)  # nothing runs
    with profile() as recorded:
        recorded.toggle_collection_dynamic(False, cpu)
    assert recorded.events() == [] and not tc._C._profiler_enabled()
    with pytest.raises(RuntimeError, match="no profile is running"):
        tc._C._profiler_pause(True)


def test_tools_that_are_not_here(tmp_path):
    for context in (profiler.emit_nvtx, profiler.emit_itt):
        with pytest.raises(RuntimeError, match=f"{context.__name__}: ranges cannot be sent to"), context():
            pass
        with context(enabled=False):
            pass
    with pytest.raises(RuntimeError, match="files of nvprof cannot be read"):
        profiler.load_nvprof(tmp_path / "file")
    with profile() as recorded:
        pass
    with pytest.raises(AssertionError, match=r"export_stacks\(\) requires with_stack=True"):
        recorded.export_stacks(tmp_path / "stacks")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        recorded = profile(with_stack=True)
    with pytest.raises(NotImplementedError, match="stacks are not recorded"):
        recorded.export_stacks(tmp_path / "stacks")


def test_threads_have_numbers():
    x = tc.ones(2)

    def work():
        with record_function("work"):
            x + 1

    with profiler.profile() as recorded:
        work()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    events = recorded.events()
    assert names(events) == ["work", "add"] * 2
    assert events[0].thread == events[1].thread != events[2].thread == events[3].thread


def test_functions_of_ones_own_and_hooks_are_named():
    class Double(tc.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = tc.ones(2, requires_grad=True)
    with profiler.profile() as recorded:
        Double.apply(x).sum().backward()
    assert "DoubleBackward" in names(recorded.events())


def test_decorators():
    @record_function("decorated")
    def function(x):
        """Words."""
        return function(x - 1) if x else 0

    assert function.__name__ == "function" and function.__doc__ == "Words."
    with profiler.profile() as recorded:
        function(2)
    assert names(recorded.events()) == ["decorated"] * 3
    with pytest.raises(TypeError, match="record_function: expected a name, but got int"):
        record_function(3)


def test_schedules():
    actions = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    got = "".join(actions(step).name[0] if actions(step) is not ProfilerAction.RECORD_AND_SAVE else "S" for step in range(12))
    assert got == "NNWRSNWRSNNN"
    with pytest.raises(AssertionError):
        schedule(wait=0, warmup=0, active=0)
    ready = []
    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
                 on_trace_ready=lambda p: ready.append((p.step_num, names(p.events())))) as recorded:
        for _ in range(10):
            tc.ones(1)
            recorded.step()
    assert ready == [(4, ["ProfilerStep#2", "ones", "ProfilerStep#3", "ones"]),
                     (8, ["ProfilerStep#6", "ones", "ProfilerStep#7", "ones"])]
    assert not tc._C._profiler_enabled()


def test_tensorboard_files(tmp_path):
    with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path / "log"), worker_name="w")):
        tc.ones(1)
    (file,) = (tmp_path / "log").iterdir()
    assert file.name.startswith("w.") and file.name.endswith(".pt.trace.json")
    assert "ones" in names_in(json.loads(file.read_text()))


def names_in(trace):
    return [event["name"] for event in trace["traceEvents"]]


def test_one_profile_at_a_time():
    with profiler.profile():
        with pytest.raises(RuntimeError, match="a profile is already running"):
            with profiler.profile():
                pass
    with pytest.raises(ZeroDivisionError):
        with profiler.profile() as recorded:
            1 / 0
    assert recorded.events() == [] and not tc._C._profiler_enabled()
    with pytest.raises(RuntimeError, match="Profiler context manager is not reentrant"):
        recorded.__enter__()
    idle = profiler.profile(enabled=False)
    with idle:
        assert not tc._C._profiler_enabled()
    with pytest.raises(RuntimeError, match="Profiler didn't finish running"):
        idle.key_averages()
    assert tc.autograd.profiler is profiler and tc.profiler.profile is profile


def test_what_is_not_recorded_is_said_once(monkeypatch):
    monkeypatch.setattr(profiler, "_warned", False)
    with pytest.warns(UserWarning, match="profile: record_shapes, with_stack: shapes, memory.* are not recorded") as seen:
        profile(record_shapes=True, with_stack=True)
        profile(record_shapes=True)
        profiler.profile(profile_memory=True)
    assert len(seen) == 1
