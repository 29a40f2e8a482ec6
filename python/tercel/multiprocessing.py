"""Python's multiprocessing, with PyTorch's spawn(): tensors travel between processes as copies.

All names of the standard library's module are available. Objects sent through a Queue, a Pipe or a Pool are pickled,
tensors with their storages; memory is never shared, so a worker's changes are not visible in the parent process.
"""

import os
import signal
import sys
import tempfile
import traceback
from multiprocessing import *  # noqa: F401,F403
from multiprocessing import connection, get_context

__all__ = ["ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException", "SpawnContext",
           "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy", "spawn", "start_processes"]
__all__ += sys.modules["multiprocessing"].__all__

_STRATEGIES = ("file_descriptor", "file_system")
_strategy = _STRATEGIES[0]


def get_all_sharing_strategies():
    """The names that set_sharing_strategy() accepts."""
    return set(_STRATEGIES)


def get_sharing_strategy():
    """The strategy set by set_sharing_strategy()."""
    return _strategy


def set_sharing_strategy(new_strategy):
    """Sets PyTorch's strategy for sharing memory; stored without effect, since tensors are copied."""
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise AssertionError(f"expected one of {', '.join(_STRATEGIES)}, but got {new_strategy!r}")
    _strategy = new_strategy


class ProcessException(Exception):
    """A process started by spawn() has failed: error_index is its number, error_pid its id."""

    def __init__(self, msg, error_index, error_pid):
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """The function raised an exception; the message contains its traceback."""


class ProcessExitedException(ProcessException):
    """The process ended by a signal or with an exit code, without an exception."""

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)


def _run(fn, index, args, error_file):
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except Exception:
        with open(error_file, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """The processes started by start_processes()."""

    def __init__(self, processes, error_folder):
        self.processes = processes
        self._folder = error_folder
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self):
        """The ids of the processes."""
        return [process.pid for process in self.processes]

    def join(self, timeout=None, grace_period=None):
        """Waits for a process to exit; True if all have. If one failed, terminates the others and raises its exception.

        timeout is in seconds; after grace_period the others are killed.
        """
        if not self.sentinels:
            return True
        failed = None
        for sentinel in connection.wait(self.sentinels, timeout=timeout):
            index = self.sentinels.pop(sentinel)
            self.processes[index].join()
            if self.processes[index].exitcode != 0 and failed is None:
                failed = index
        if failed is None:
            if not self.sentinels:
                self._folder.cleanup()
            return not self.sentinels
        self._stop_others(grace_period)
        self._raise(failed)

    def _stop_others(self, grace_period):
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join(grace_period if grace_period is not None else 30)
            if process.is_alive():
                process.kill()
                process.join()

    def _raise(self, index):
        process = self.processes[index]
        path = _error_file(self._folder, index)
        text = None
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                text = file.read()
        self._folder.cleanup()
        if text is not None:
            raise ProcessRaisedException(f"\n\n-- Process {index} terminated with the following error:\n{text}", index,
                                         process.pid)
        code = process.exitcode
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"<Unknown signal {-code}>"
            raise ProcessExitedException(f"process {index} terminated with signal {name}", index, process.pid, code, name)
        raise ProcessExitedException(f"process {index} terminated with exit code {code}", index, process.pid, code)


SpawnContext = ProcessContext  # older name


def _error_file(folder, index):
    return os.path.join(folder.name, str(index))


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Calls fn(index, *args) in nprocs new processes, and waits for them unless join=False.

    With join=False returns a ProcessContext. If a process fails, the others are terminated and its error is raised.
    """
    context = get_context(start_method)
    folder = tempfile.TemporaryDirectory(prefix="tercel-spawn-")
    processes = []
    for index in range(nprocs):
        process = context.Process(target=_run, args=(fn, index, args, _error_file(folder, index)), daemon=daemon)
        process.start()
        processes.append(process)
    running = ProcessContext(processes, folder)
    if not join:
        return running
    while not running.join():
        pass


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """start_processes() with new interpreters, which import the program's main module again."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)
