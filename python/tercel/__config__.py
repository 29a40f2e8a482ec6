"""Build and runtime configuration as text."""

from tercel import _C


def show():
    """The version and the instruction set that the kernels use."""
    return f"Tercel {_C._version()} built with:\n  - C++ 20\n  - CPU capability usage: {_C._cpu_capability()}\n"


def parallel_info():
    """The maximum number of threads of an operation."""
    return f"Tercel/Parallel:\n\tget_num_threads() : {_C.get_num_threads()}\n"


def _cxx_flags():
    """The C++ standard that the library is compiled with."""
    return "-std=c++20"
