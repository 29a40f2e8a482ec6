"""Profiles by steps: selects the steps of a loop to record, and handles each recording."""

import enum
import json
import os
import socket
import time

from tercel import _C
from tercel.autograd import profiler as _profiler
from tercel.autograd.profiler import record_function

__all__ = ["ProfilerAction", "ProfilerActivity", "profile", "record_function", "schedule", "supported_activities",
           "tensorboard_trace_handler"]


class ProfilerActivity(enum.Enum):
    """Devices that can be recorded; only the CPU is available."""

    CPU = 0
    XPU = 1
    CUDA = 2
    HPU = 3
    MTIA = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """The action of a profile in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities():
    """The devices that can be recorded."""
    return {ProfilerActivity.CPU}


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """A schedule: skips skip_first steps, then repeats cycles of `wait` idle, `warmup` warm-up and `active` recorded steps,
    `repeat` times, or without end if 0. skip_first_wait omits the first wait."""
    if min(wait, warmup, active, repeat, skip_first) < 0 or active == 0:
        raise AssertionError("Invalid profiler schedule arguments")

    def action(step):
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        length = wait + warmup + active
        if repeat > 0 and step // length >= repeat:
            return ProfilerAction.NONE
        at = step % length
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if at == length - 1 else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    """An on_trace_ready that writes each recording to a folder, with a name that TensorBoard's plugin finds."""
    def write(recorded):
        os.makedirs(dir_name, exist_ok=True)
        name = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        recorded.export_chrome_trace(os.path.join(dir_name, f"{name}.{time.time_ns()}.pt.trace.json" + ".gz" * use_gzip))

    return write


def _always(step):
    return ProfilerAction.RECORD


class profile:  # noqa: N801
    """A context that records the code inside, or the steps that schedule selects; step() ends a step.

    on_trace_ready(profile) is called after each recording, which is then available from key_averages(), events() and
    export_chrome_trace().
    """

    def __init__(self, *, activities=None, schedule=None, on_trace_ready=None, record_shapes=False, profile_memory=False,
                 with_stack=False, with_flops=False, with_modules=False, experimental_config=None,
                 execution_trace_observer=None, acc_events=False, use_cuda=None, custom_trace_id_callback=None):
        self.activities = set(supported_activities() if activities is None else activities)
        self.schedule, self.record_steps = schedule or _always, schedule is not None
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self.schedule(0)
        self._recording = self._last = self._step = None
        self._metadata, self._last_metadata = {}, {}  # of the recording that runs or comes next, and of the last one
        self._with_stack = with_stack
        _profiler._warn_of({"record_shapes": record_shapes, "profile_memory": profile_memory, "with_stack": with_stack,
                            "with_flops": with_flops, "with_modules": with_modules})

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
        return False

    def _is_recorded(self):
        return self.current_action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)

    def _begin_step(self):
        if self._is_recorded() and self._recording is None:
            self._recording = _profiler.profile().__enter__()
        if self.record_steps and self._recording is not None:
            self._step = record_function(f"ProfilerStep#{self.step_num}").__enter__()

    def _end_step(self):
        if self._step is not None:
            self._step.__exit__()
            self._step = None

    def _finish(self):
        if self._recording is None:
            return
        self._recording.__exit__()
        self._last, self._recording = self._recording, None
        self._last_metadata, self._metadata = self._metadata, {}
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def start(self):
        """Begins the first step."""
        self._begin_step()

    def step(self):
        """Ends a step, and begins the next."""
        self._end_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        if before is ProfilerAction.RECORD_AND_SAVE or not self._is_recorded():
            self._finish()
        self._begin_step()

    def stop(self):
        """Ends the last step, and the recording if there is one."""
        self._end_step()
        self._finish()

    def _recorded(self):
        if self._last is None:
            raise AssertionError("profile: nothing has been recorded; call stop(), or step() until the schedule records")
        return self._last

    def events(self):
        """The ranges of the last recording."""
        return self._recorded().events()

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        """Averages of the events of each name."""
        return self._recorded().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def toggle_collection_dynamic(self, enable, activities):
        """Stops and continues a recording that runs; ranges that begin or end in between are left out."""
        activities = set(activities)
        for activity in activities:
            if not isinstance(activity, ProfilerActivity):
                raise TypeError(f"toggle_collection_dynamic: expected members of ProfilerActivity, but got {activity!r}")
        if self._recording is not None and ProfilerActivity.CPU in activities:
            _C._profiler_pause(not enable)

    def add_metadata(self, key, value):
        """Adds a name and a text to the Chrome trace of the recording that runs, or else of the next one."""
        self._metadata[key] = json.dumps(value)

    def add_metadata_json(self, key, value):
        """add_metadata() of a value that is given as JSON; ValueError if it is not."""
        json.loads(value)
        self._metadata[key] = value

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """NotImplementedError: stacks are not recorded. AssertionError if with_stack did not ask for them either."""
        if not self._with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        raise NotImplementedError("export_stacks: stacks are not recorded")

    def export_chrome_trace(self, path):
        """Writes the last recording for chrome://tracing or ui.perfetto.dev; compressed if the name ends in .gz."""
        text = self._recorded().events()._profile.chrome_trace()
        added = "".join(f"{json.dumps(key)}: {value}, " for key, value in self._last_metadata.items())
        import gzip
        with (gzip.open if str(path).endswith(".gz") else open)(path, "wt", encoding="utf-8") as file:
            file.write("{" + added + text[1:])
