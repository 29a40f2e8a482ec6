"""Programs that mpirun starts as several processes."""

import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

import pytest

import tercel as tc

needs_mpirun = pytest.mark.skipif(
    not tc.distributed.is_mpi_available() or shutil.which("mpirun") is None,
    reason="needs a build with MPI (libopenmpi-dev), and mpirun (openmpi-bin)")

# Of Open MPI: more ranks than CPUs, which they share, and root's.
ENVIRONMENT = {"OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
               "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

BEGIN = """
import contextlib, copy, datetime, gc, io, os, pickle, signal, sys, threading, time, warnings
import numpy as np
import tercel as tc
import tercel.distributed as dist
from tercel import nn
from tercel.nn.parallel import DistributedDataParallel

tc.set_num_threads(1)
signal.signal(signal.SIGINT, signal.default_int_handler)

def raises(kind, text, call):
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"expected {kind.__name__}: {text}")
"""


WITH_GROUP = BEGIN + "dist.init_process_group()\nrank, size = dist.get_rank(), dist.get_world_size()\n"


def run(ranks, program, *arguments, begin=WITH_GROUP, seconds=120, cwd=None):
    """Runs a program as so many ranks, with `rank` and `size`, and returns what became of it; 0: without mpirun."""
    path = str(pathlib.Path(tc.__file__).parent.parent)
    words = [sys.executable, "-c", begin + textwrap.dedent(program), *arguments]
    words = words if ranks == 0 else ["mpirun", "-n", str(ranks), *words]
    inherited = {name: value for name, value in os.environ.items() if name not in ("WORLD_SIZE", "RANK")}
    return subprocess.run(words, capture_output=True, text=True, timeout=seconds, check=False, cwd=cwd,
                          env={**inherited, **ENVIRONMENT, "PYTHONPATH": path})


def check(ranks, program, *arguments, **options):
    """The same for one whose ranks all come to its end; returns what they print."""
    done = run(ranks, textwrap.dedent(program) + "\nos.write(1, b'at the end\\n')\n", *arguments, **options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("at the end") == max(ranks, 1), done.stdout + done.stderr
    return done.stdout
