#!/usr/bin/env python3
"""Compiles headers on their own, with the flags of a neighbouring source; the umbrella header within a second.

    tools/check_headers.py BUILD [HEADER ...]

Without HEADER: all but those that a source of the build, which holds its objects, includes first. Those were compiled
alone there.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

import compile_commands
from compile_commands import ROOT

FOLDERS = ("tercel", "cli", "tests", "benchmarks", "fuzz")
UMBRELLA = ROOT / "tercel" / "tercel.h"
UMBRELLA_LIMIT_MB = 155


def headers_of_project():
    found = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.h"))
    # CUDA headers need nvcc's headers; the preset `cuda` compiles them.
    return sorted(path for path in found if "cuda" not in path.relative_to(ROOT).parts)


def first_includes(commands):
    """The headers that a source includes before anything else."""
    found = set()
    for command in commands:
        first = re.search(r'^\s*#\s*include\s*[<"](.*)[">]', command.path.read_text(encoding="utf-8"), re.MULTILINE)
        if first and "-include" not in command.flags:
            found.add(ROOT / first.group(1))
    return found


def command_for(header, commands):
    """
    The flags of most sources in the header's folder or the nearest parent folder; kernel flags for kernel headers. Most:
    a module below the folder may have flags of its own.
    """
    is_kernel = header.parent.name == "cpu"
    fitting = [command for command in commands if (command.isa() is not None) == is_kernel] or commands
    for folder in header.parents:
        below = {}
        for command in fitting:
            if command.path.is_relative_to(folder):
                below.setdefault(tuple(command.flags), []).append(command)
        if below:
            return max(below.values(), key=len)[0]
    return fitting[0]


def compile_alone(header, commands):
    command = command_for(header, commands)
    line = [command.compiler, *command.flags, "-fsyntax-only", "-x", "c++", "-include", str(header), os.devnull]
    result = subprocess.run(line, cwd=command.folder, capture_output=True, text=True, check=False)
    return header, result.returncode, result.stderr


def compiler_megabytes(header, commands):
    """Memory that the compiler allocates for a header; None if compilation fails."""
    command = command_for(header, commands)
    line = [command.compiler, *command.flags, "-fsyntax-only", "-ftime-report", "-x", "c++", "-include", str(header)]
    result = subprocess.run([*line, os.devnull], cwd=command.folder, capture_output=True, text=True, check=False)
    total = re.search(r"^ TOTAL .*?(\d+)([kM])$", result.stderr, re.MULTILINE)
    if result.returncode != 0:
        return None
    if not total:
        sys.exit(f"check_headers: {command.compiler} -ftime-report names no total memory; g++ does")
    return int(total.group(1)) / (1024 if total.group(2) == "k" else 1)


def check_umbrella(commands):
    """
    At most a second, judged by the compiler's memory: it goes with the time, but does not depend on the load of the
    machine. 156 MB took 0.9 s on a Xeon of 2.6 GHz, where <memory>, <string> and <vector> took 65 MB and 0.35 s.
    """
    used = compiler_megabytes(UMBRELLA, commands)
    if used is None:
        return True  # reported with the other headers
    print(f"{UMBRELLA.relative_to(ROOT)}: {used:.0f} MB of the compiler's memory, at most {UMBRELLA_LIMIT_MB}")
    return used <= UMBRELLA_LIMIT_MB


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: check_headers.py BUILD [HEADER ...]")
    commands = compile_commands.load(sys.argv[1])
    headers = [pathlib.Path(name).resolve() for name in sys.argv[2:]]
    if not headers:
        included = first_includes(commands) - {UMBRELLA}
        every = headers_of_project()
        headers = [header for header in every if header not in included]
        print(f"{len(every)} headers, {len(every) - len(headers)} of them the first that a source includes")
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for header, code, errors in pool.map(lambda header: compile_alone(header, commands), headers):
            if code != 0:
                failed += 1
                print(f"{header.relative_to(ROOT)} does not compile alone:\n{errors}", file=sys.stderr)
    if UMBRELLA in headers and not check_umbrella(commands):
        failed += 1
        print(f"{UMBRELLA.relative_to(ROOT)} takes a second or more to compile", file=sys.stderr)
    print(f"{len(headers)} headers compiled alone, {failed} refused")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
