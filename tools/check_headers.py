#!/usr/bin/env python3
"""Compiles every header on its own, with the flags of a neighbouring source; the umbrella header within a second.

    tools/check_headers.py BUILD [HEADER ...]
"""

import concurrent.futures
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

import compile_commands
from compile_commands import ROOT

FOLDERS = ("tercel", "cli", "tests", "benchmarks", "fuzz")
UMBRELLA = ROOT / "tercel" / "tercel.h"
UMBRELLA_LIMIT_S = 1.0
UMBRELLA_LIMIT_RATIO = 2.2


def headers_of_project():
    found = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.h"))
    # CUDA headers need nvcc's headers; the preset `cuda` compiles them.
    return sorted(path for path in found if "cuda" not in path.relative_to(ROOT).parts)


def command_for(header, commands):
    """The flags of a source in the header's folder or the nearest parent folder; kernel flags for kernel headers."""
    is_kernel = header.parent.name == "cpu"
    fitting = [command for command in commands if (command.isa() is not None) == is_kernel] or commands
    for folder in header.parents:
        for command in fitting:
            if command.path.is_relative_to(folder):
                return command
    return fitting[0]


def compile_alone(header, commands):
    command = command_for(header, commands)
    line = [command.compiler, *command.flags, "-fsyntax-only", "-x", "c++", "-include", str(header), os.devnull]
    result = subprocess.run(line, cwd=command.folder, capture_output=True, text=True, check=False)
    return header, result.returncode, result.stderr


def cpu_seconds(header, commands):
    """CPU seconds to compile a header, best of three; None if compilation fails."""
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        _, code, _ = compile_alone(header, commands)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if code != 0:
            return None
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def check_umbrella(commands):
    """At most a second; on a slow or busy machine, the same multiple of standard headers' time as on a fast one."""
    ours = cpu_seconds(UMBRELLA, commands)
    if ours is None:
        return True  # reported with the other headers
    with tempfile.NamedTemporaryFile("w", suffix=".h") as standard:
        standard.write("#include <memory>\n#include <string>\n#include <vector>\n")
        standard.flush()
        base = cpu_seconds(pathlib.Path(standard.name), commands)
    print(f"{UMBRELLA.relative_to(ROOT)}: {ours:.2f} s, standard headers: {base:.2f} s")
    return ours < UMBRELLA_LIMIT_S or ours < UMBRELLA_LIMIT_RATIO * base


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: check_headers.py BUILD [HEADER ...]")
    commands = compile_commands.load(sys.argv[1])
    headers = [pathlib.Path(name).resolve() for name in sys.argv[2:]] or headers_of_project()
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for header, code, errors in pool.map(lambda header: compile_alone(header, commands), headers):
            if code != 0:
                failed += 1
                print(f"{header.relative_to(ROOT)} does not compile alone:\n{errors}", file=sys.stderr)
    if UMBRELLA in headers and not check_umbrella(commands):
        failed += 1
        print(f"{UMBRELLA.relative_to(ROOT)} takes {UMBRELLA_LIMIT_S} s or more to compile", file=sys.stderr)
    print(f"{len(headers)} headers, {failed} refused")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
