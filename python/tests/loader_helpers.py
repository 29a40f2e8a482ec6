"""What tests of DataLoader's worker processes share."""

import gc
import os
import pathlib
import re
from multiprocessing import forkserver, resource_tracker

import pytest

import tercel as tc
from tercel.utils.data import DataLoader, Dataset

PATH = str(pathlib.Path(tc.__file__).parent.parent)


@pytest.fixture(scope="module", autouse=True)
def servers():
    """multiprocessing's own processes, which stay."""
    resource_tracker.ensure_running()
    forkserver.ensure_running()


@pytest.fixture(autouse=True)
def nothing_is_left(recwarn):
    """Every test leaves no process, no descriptor and no shared memory with a name."""
    gc.collect()
    before = descriptors(), shared_files()
    yield
    gc.collect()
    assert all(not is_alive(pid) for pid in children())
    assert (descriptors(), shared_files()) == before


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def shared_files():
    """Names that shared memory of Python or of batches would have."""
    return sorted(name for name in os.listdir("/dev/shm") if name.startswith(("psm_", "tercel-batch")))


def children():
    return [int(pid) for task in os.listdir("/proc/self/task")
            for pid in pathlib.Path(f"/proc/self/task/{task}/children").read_text().split()]


def is_alive(pid):
    """Whether a process runs; those of multiprocessing's own servers do not count."""
    try:
        name = pathlib.Path(f"/proc/{pid}/cmdline").read_text()
        return ") Z " not in pathlib.Path(f"/proc/{pid}/stat").read_text() and not re.search("resource_tracker|forkserver", name)
    except FileNotFoundError:
        return False


def maps():
    return pathlib.Path("/proc/self/maps").read_text().count("tercel-batch")


class Calls(Dataset):
    """What a function returns for each index."""

    def __init__(self, function, size=8):
        self.function, self.size = function, size

    def __getitem__(self, i):
        return self.function(i)

    def __len__(self):
        return self.size


def samples(function, size=8, **kwargs):
    return list(DataLoader(Calls(function, size), batch_size=None, **{"num_workers": 2, "multiprocessing_context": "fork", **kwargs}))


def same(x):
    return x
