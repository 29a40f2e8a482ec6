#!/usr/bin/env python3
"""Runs clang-tidy on each of our sources once, all processors busy. Kernels are read as AVX2 code only.

    tools/run_tidy.py BUILD [SOURCE ...]
"""

import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import time

import compile_commands

# Flags of g++ that clang refuses.
NOT_CLANG = {"-fno-gnu-unique"}


def tidy(program, command):
    start = time.monotonic()
    flags = [flag for flag in command.flags if flag not in NOT_CLANG]
    # The build shows the compiler's warnings; here they are off, and with them those about unknown flags.
    line = [program, "--quiet", str(command.path), "--", *flags, "-w"]
    result = subprocess.run(line, cwd=command.folder, capture_output=True, text=True, check=False)
    # Standard error holds counts of suppressed warnings, and the reason when clang-tidy itself fails.
    text = result.stdout if result.stdout.strip() or result.returncode == 0 else result.stderr
    return command, result.returncode, text, time.monotonic() - start


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: run_tidy.py BUILD [SOURCE ...]")
    program = shutil.which("clang-tidy-14") or shutil.which("clang-tidy") or sys.exit("clang-tidy is not installed")
    wanted = {pathlib.Path(name).resolve() for name in sys.argv[2:]}
    commands = [command for command in compile_commands.load(sys.argv[1]) if not wanted or command.path in wanted]
    failed = 0
    times = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for command, code, text, seconds in pool.map(lambda command: tidy(program, command), commands):
            times.append((seconds, command.relative()))
            if code != 0:
                failed += 1
                print(f"{command.relative()}:\n{text}", file=sys.stderr)
    slowest = ", ".join(f"{path} {seconds:.0f} s" for seconds, path in sorted(times, reverse=True)[:3])
    print(f"clang-tidy: {len(commands)} sources, {failed} refused; slowest: {slowest}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
