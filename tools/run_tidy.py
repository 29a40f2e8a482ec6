#!/usr/bin/env python3
"""Runs clang-tidy on each source once, on all processors. Kernels are checked as AVX2 code only.

A source that passed is not checked again until it, an included header, its flags, .clang-tidy or clang-tidy itself
changes: an empty file in ~/.cache/tercel/clang-tidy (XDG_CACHE_HOME), named by a digest of all these, records it.
TERCEL_TIDY_CACHE=off checks everything. With TERCEL_TIDY_SECONDS=N no check begins after N seconds: those of the sources
that were committed last come first, and the next run, or scripts/nightly, does the rest.

    tools/run_tidy.py BUILD [SOURCE ...]
"""

import concurrent.futures
import functools
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import compile_commands
from compile_commands import ROOT

# Flags of g++ that clang refuses.
NOT_CLANG = {"-fno-gnu-unique"}


UNUSED_DAYS = 30


class Passed:
    """The sources that passed before."""

    def __init__(self, program):
        self.folder = None
        # The preprocessor of the same LLVM finds the same headers as clang-tidy.
        self.clang = shutil.which(program.replace("clang-tidy", "clang++")) or shutil.which("clang++")
        if os.environ.get("TERCEL_TIDY_CACHE") == "off" or not self.clang:
            return
        version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
        self.version = version.encode()
        cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
        self.folder = pathlib.Path(cache, "tercel", "clang-tidy")
        self.folder.mkdir(parents=True, exist_ok=True)
        oldest = time.time() - UNUSED_DAYS * 86400
        for entry in self.folder.iterdir():
            if entry.stat().st_mtime < oldest:
                entry.unlink(missing_ok=True)

    @staticmethod
    @functools.lru_cache(maxsize=None)
    def digest_of(path):
        return hashlib.sha256(path.read_bytes()).hexdigest()

    def entry(self, command, flags):
        """The cache file that records that the source passed in its current state; None if there can be none."""
        if not self.folder:
            return None
        line = [self.clang, "-M", "-MT", "x", *flags, "-w", str(command.path)]
        listed = subprocess.run(line, cwd=command.folder, capture_output=True, text=True, check=False)
        if listed.returncode != 0:
            return None
        # Folders of the checkout and of the build differ between clones.
        places = (str(ROOT), os.path.relpath(ROOT, command.folder))
        digest = hashlib.sha256(self.version)
        for folder in command.path.parents:
            rules = folder / ".clang-tidy"
            if folder.is_relative_to(ROOT) and rules.exists():
                digest.update(rules.read_bytes())
        digest.update("\0".join(functools.reduce(lambda flag, place: flag.replace(place, ""), places, flag)
                                for flag in flags).encode())
        for name in re.sub(r"\\\n", " ", listed.stdout).removeprefix("x:").split():
            path = pathlib.Path(command.folder, name).resolve()
            shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
            digest.update(f"\0{shown}\0{self.digest_of(path)}".encode())
        return self.folder / digest.hexdigest()


def newest_first(commands):
    """In the order of their last commits; those that are changed or new come first. As given outside a repository."""
    def lines_of(*arguments):
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout.splitlines()

    position = {name: i for i, name in reversed(list(enumerate(lines_of("log", "--format=", "--name-only"))))}
    position.update((line[3:], -1) for line in lines_of("status", "--porcelain", "--untracked-files=all"))
    return sorted(commands, key=lambda command: position.get(str(command.relative()), -1))


def tidy(program, command, passed, deadline):
    start = time.monotonic()
    flags = [flag for flag in command.flags if flag not in NOT_CLANG]
    entry = passed.entry(command, flags)
    if entry and entry.exists():
        entry.touch()
        return command, 0, "", None
    if start > deadline:
        return command, None, "", None
    # The build shows compiler warnings; here they are disabled, including those about unknown flags.
    line = [program, "--quiet", str(command.path), "--", *flags, "-w"]
    result = subprocess.run(line, cwd=command.folder, capture_output=True, text=True, check=False)
    if entry and result.returncode == 0:
        entry.touch()
    # Standard error has counts of suppressed warnings, and the reason if clang-tidy itself fails.
    text = result.stdout if result.stdout.strip() or result.returncode == 0 else result.stderr
    return command, result.returncode, text, time.monotonic() - start


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: run_tidy.py BUILD [SOURCE ...]")
    program = shutil.which("clang-tidy-14") or shutil.which("clang-tidy") or sys.exit("clang-tidy is not installed")
    wanted = {pathlib.Path(name).resolve() for name in sys.argv[2:]}
    commands = [command for command in compile_commands.load(sys.argv[1]) if not wanted or command.path in wanted]
    passed = Passed(program)
    failed = unchanged = left = 0
    limit = float(os.environ.get("TERCEL_TIDY_SECONDS") or 0)
    deadline = time.monotonic() + limit if limit > 0 else float("inf")
    if limit > 0:
        commands = newest_first(commands)
    times = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for command, code, text, seconds in pool.map(lambda command: tidy(program, command, passed, deadline), commands):
            if code is None:
                left += 1
                continue
            if seconds is None:
                unchanged += 1
                continue
            times.append((seconds, command.relative()))
            if code != 0:
                failed += 1
                print(f"{command.relative()}:\n{text}", file=sys.stderr)
    slowest = ", ".join(f"{path} {seconds:.0f} s" for seconds, path in sorted(times, reverse=True)[:3])
    print(f"clang-tidy: {len(commands)} sources, {unchanged} unchanged since they passed, {failed} refused"
          + (f", {left} left for the next run or scripts/nightly" if left else "") + (f"; slowest: {slowest}" if slowest else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
