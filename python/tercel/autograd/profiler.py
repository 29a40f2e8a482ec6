"""Profiler: records the time of operations between two points of a program, and of ranges named by the program.

Ops called from Python, nodes of the backward graph, and record_function() blocks have one range each, on every thread.
Shapes, memory and stacks are not recorded.
"""

import functools
import warnings

from tercel import _C

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "Interval", "emit_itt", "emit_nvtx", "load_nvprof", "profile",
           "record_function"]

_CATEGORIES = ("cpu_op", "backward", "user_annotation")  # indexed by RangeKind


class record_function:  # noqa: N801
    """A context or decorator that records the code inside as a range with a name."""

    def __init__(self, name, args=None):
        if not isinstance(name, str):
            raise TypeError(f"record_function: expected a name, but got {type(name).__name__}")
        self.name, self.args = name, args
        self._range = None

    def __enter__(self):
        self._range = _C._RecordFunction()
        self._range.begin(self.name)
        return self

    def __exit__(self, *_):
        self._range.end()
        self._range = None

    def __call__(self, function):
        @functools.wraps(function)
        def recorded(*args, **kwargs):
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return recorded


def _text_of(microseconds):
    """12.300us, 4.500ms, 1.200s"""
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.3f}s"
    return f"{microseconds / 1e3:.3f}ms" if microseconds >= 1e3 else f"{microseconds:.3f}us"


class _Times:
    """Attributes common to single and averaged events; times are in microseconds."""

    # Times of devices that do not exist here.
    device_time = device_time_total = self_device_time_total = cuda_time = cuda_time_total = self_cuda_time_total = 0.0
    # Not recorded.
    cpu_memory_usage = self_cpu_memory_usage = device_memory_usage = self_device_memory_usage = flops = 0
    is_async = is_remote = is_legacy = False
    node_id = -1

    @property
    def cpu_time(self):
        """The mean time of a call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    cpu_time_str = property(lambda self: _text_of(self.cpu_time), doc="The mean time of a call, with a unit.")
    cpu_time_total_str = property(lambda self: _text_of(self.cpu_time_total), doc="The time of all calls, with a unit.")
    self_cpu_time_total_str = property(lambda self: _text_of(self.self_cpu_time_total),
                                       doc="The time of all calls without the ranges inside, with a unit.")


class Interval:
    """Begin and end, in microseconds since the profile began."""

    def __init__(self, start, end):
        self.start, self.end = start, end

    def elapsed_us(self):
        """The duration."""
        return self.end - self.start


class FunctionEvent(_Times):
    """One range: its name, times in microseconds, and the ranges around and inside it."""

    count = 1

    def __init__(self, id, name, kind, thread, begin, end, self_time):  # noqa: A002
        self.id, self.name, self.key, self.trace_name = id, name, name, name
        self.is_user_annotation, self.category = kind == 2, _CATEGORIES[kind]
        self.thread = thread
        self.time_range = Interval(begin / 1e3, end / 1e3)
        self.cpu_time_total, self.self_cpu_time_total = (end - begin) / 1e3, self_time / 1e3
        self.cpu_parent, self.cpu_children = None, []
        self.input_shapes, self.stack = [], []

    def __repr__(self):
        return (f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} "
                f"start_us={self.time_range.start:.3f} end_us={self.time_range.end:.3f} "
                f"cpu_children={[child.id for child in self.cpu_children]} thread={self.thread}>")


class FunctionEventAvg(_Times):
    """All ranges of one name."""

    def __init__(self, key=None):
        self.key, self.count = key, 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.is_user_annotation = False
        self.input_shapes, self.stack = [], []

    def add(self, other):
        """Adds a range, or all ranges of another average."""
        self.key = other.key if self.key is None else self.key
        self.count += other.count
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.is_user_annotation = self.is_user_annotation or other.is_user_annotation
        return self

    __iadd__ = add

    def __repr__(self):
        return (f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
                f"count={self.count}>")


class EventList(list):
    """A list of events or averages that can be formatted as a table."""

    _profile = None  # the extension's profile object, for events

    def table(self, sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55, max_shapes_column_width=80,
              header=None, top_level_events_only=False, time_unit=None):
        """The events as text, the largest of sort_by first: "cpu_time_total", "self_cpu_time_total", "cpu_time", "count"."""
        events = [event for event in self if not top_level_events_only or getattr(event, "cpu_parent", None) is None]
        if sort_by is not None:
            sortable = [name for name in dir(_Times) if name.endswith(("_total", "_time", "_usage"))] + [
                "count", "cpu_time_total", "self_cpu_time_total"]
            if sort_by not in sortable:
                raise ValueError(f"table: expected sort_by to be one of {', '.join(sorted(set(sortable)))}, but got {sort_by!r}")
            events.sort(key=lambda event: getattr(event, sort_by), reverse=True)
        whole = self.self_cpu_time_total
        if row_limit >= 0:
            events = events[:row_limit]
        names = [event.key if max_name_column_width is None or len(event.key) <= max_name_column_width
                 else event.key[:max_name_column_width - 3] + "..." for event in events]
        width = max([len("Name"), *map(len, names)])
        titles = ("Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls")
        rule = "  ".join(["-" * width] + ["-" * 12] * len(titles))

        def row(name, cells):
            return "  ".join([name.rjust(width), *(cell.rjust(12) for cell in cells)])

        def share(time):
            return f"{100 * time / whole:.2f}%" if whole else "NaN"

        lines = [] if header is None else ["=" * len(rule), header]
        lines += [rule, row("Name", titles), rule]
        for name, event in zip(names, events):
            lines.append(row(name, (share(event.self_cpu_time_total), event.self_cpu_time_total_str, share(event.cpu_time_total),
                                    event.cpu_time_total_str, event.cpu_time_str, str(event.count))))
        return "\n".join([*lines, rule, f"Self CPU time total: {_text_of(whole)}", ""])

    def __str__(self):
        return self.table()

    @property
    def self_cpu_time_total(self):
        """The time that is in any range, in microseconds."""
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        """Averages of the events of each name; grouping by shapes and stacks has no effect, as they are not recorded."""
        averages = {}
        for event in self:
            averages.setdefault((event.key, event.is_user_annotation), FunctionEventAvg()).add(event)
        return EventList(averages.values())

    def total_average(self):
        """One average over all events."""
        total = FunctionEventAvg("Total")
        for event in self:
            total.add(event)
        return total

    def export_chrome_trace(self, path):
        """Writes the events for chrome://tracing or ui.perfetto.dev."""
        if self._profile is None:
            raise RuntimeError("export_chrome_trace: expected events of a profile; averages have no begin and end")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._profile.chrome_trace())


def _events_of(recorded):
    events = EventList()
    events._profile = recorded
    around = []  # the current range at each depth
    for id, (name, kind, thread, depth, begin, end, own) in enumerate(recorded.events()):  # noqa: A001
        event = FunctionEvent(id, name, kind, thread, begin, end, own)
        del around[depth:]
        if around:
            event.cpu_parent = around[-1]
            around[-1].cpu_children.append(event)
        around.append(event)
        events.append(event)
    return events


_warned = False


def _warn_of(options):
    """Warns once about options that a profile does not support."""
    global _warned
    asked = [name for name, value in options.items() if value]
    if asked and not _warned:
        _warned = True
        warnings.warn(f"profile: {', '.join(asked)}: shapes, memory, stacks, modules and flops are not recorded", stacklevel=4)


class profile:  # noqa: N801
    """A context that records the ranges of all threads inside; only one can be active at a time."""

    def __init__(self, enabled=True, *, use_cuda=False, use_device=None, record_shapes=False, with_flops=False,
                 profile_memory=False, with_stack=False, with_modules=False, use_kineto=False, use_cpu=True,
                 experimental_config=None, acc_events=False, custom_trace_id_callback=None):
        self.enabled = enabled
        self.function_events = None
        if enabled:
            _warn_of({"record_shapes": record_shapes, "with_flops": with_flops, "profile_memory": profile_memory,
                      "with_stack": with_stack, "with_modules": with_modules})

    def __enter__(self):
        if self.enabled:
            if self.function_events is not None:
                raise RuntimeError("Profiler context manager is not reentrant")
            _C._profiler_start()
        return self

    def __exit__(self, *_):
        if self.enabled:
            self.function_events = _events_of(_C._profiler_stop())
        return False

    def _finished(self):
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self.function_events

    def __repr__(self):
        return repr(self.function_events) if self.function_events is not None else "<unfinished profile>"

    def __str__(self):
        return str(self.function_events) if self.function_events is not None else "<unfinished profile>"

    def events(self):
        """The ranges, outer before inner ones."""
        return self._finished()

    def table(self, *args, **kwargs):
        """EventList.table() of all events."""
        return self._finished().table(*args, **kwargs)

    def key_averages(self, *args, **kwargs):
        """EventList.key_averages() of all events."""
        return self._finished().key_averages(*args, **kwargs)

    def total_average(self):
        """One average over all events."""
        return self._finished().total_average()

    def export_chrome_trace(self, path):
        """Writes the events for chrome://tracing or ui.perfetto.dev."""
        self._finished().export_chrome_trace(path)

    @property
    def self_cpu_time_total(self):
        """The time that is in any range, in microseconds."""
        return self._finished().self_cpu_time_total


class _Annotations:
    """A context that would name ranges for another program's profiler. RuntimeError unless it is disabled."""

    def __init__(self, enabled=True, record_shapes=False):
        self.enabled = enabled

    def __enter__(self):
        if self.enabled:
            raise RuntimeError(f"{type(self).__name__}: ranges cannot be sent to {self._tool}; use tercel.profiler.profile")

    def __exit__(self, *_):
        return False


class emit_nvtx(_Annotations):  # noqa: N801
    """A context for NVIDIA's profilers: RuntimeError unless it is disabled."""

    _tool = "NVTX, as there is no GPU"


class emit_itt(_Annotations):  # noqa: N801
    """A context for Intel's VTune: RuntimeError unless it is disabled."""

    _tool = "VTune"


def load_nvprof(path):
    """RuntimeError: files of NVIDIA's profiler cannot be read."""
    raise RuntimeError("load_nvprof: files of nvprof cannot be read; use tercel.profiler.profile")
