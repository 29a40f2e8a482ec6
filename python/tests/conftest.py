"""
Skips tests for which the installed NumPy is too old as a reference (the newest for Python 3.9 is 2.0), and lets Ctrl-C
raise KeyboardInterrupt where the tests run in the background.
"""

import signal

import numpy as np
import pytest

NEEDS_NUMPY_2_1 = {
    "test_array_api": "NumPy's namespace does not follow the array API's version 2024.12 yet",
    "test_dlpack.py::test_read_only_memory_is_copied_or_refused": "NumPy exports no DLPack 1.0 yet",
    "test_dlpack.py::test_a_deleter_runs_once": "NumPy exports no DLPack 1.0 yet",
    "test_dlpack.py::test_a_refused_capsule_is_given_back": "NumPy exports no DLPack 1.0 yet",
    "test_guide.py::test_guide[exchange]": "NumPy exports no DLPack 1.0 yet",
}


def pytest_collection_modifyitems(items):
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        return
    for item in items:
        for name, reason in NEEDS_NUMPY_2_1.items():
            if item.nodeid.rsplit("/", 1)[-1].startswith(name):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session", autouse=True)
def ctrl_c():
    """Shells let programs in the background ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
