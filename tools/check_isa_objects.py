#!/usr/bin/env python3
"""Refuses kernel objects whose code for one instruction set could be used by the rest of the program.

In every BUILD/isa/tercel_<layer>_<isa>.o, each global symbol must be a strong one of namespace tercel::cpu_<isa>; it
must call no symbol of another instruction set, have no weak symbols, and use no instruction beyond the set. The other
members of BUILD/lib/libtercel.a must use no instruction beyond the baseline.

    tools/check_isa_objects.py BUILD
"""

import os
import pathlib
import re
import subprocess
import sys

ISAS = ("generic", "avx2", "avx512")
NM = os.environ.get("NM", "nm")
OBJDUMP = os.environ.get("OBJDUMP", "objdump")

# VEX and EVEX forms have a leading v; the rest is BMI, LZCNT and POPCNT.
ABOVE_BASELINE = re.compile(
    r"^\s*[0-9a-f]+:\s+(?:v\w+\s.*%[xyz]mm|\w+\s.*%k[0-7]|(?:shlx|shrx|sarx|mulx|rorx|pdep|pext|bzhi|andn|lzcnt|popcnt)\w?\s)"
)
ABOVE_AVX2 = re.compile(r"^\s*[0-9a-f]+:\s+\w+\s.*%(?:zmm|k[0-7]|[xy]mm(?:1[6-9]|2\d|3[01]))")
FORBIDDEN = {"generic": ABOVE_BASELINE, "avx2": ABOVE_AVX2}


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {result.stderr.strip()}")
    return result.stdout


def namespace_of(isa):
    name = f"cpu_{isa}"
    return f"6tercel{len(name)}{name}"


def check_symbols(path, isa):
    own = re.compile(rf"_ZNK?{namespace_of(isa)}")
    others = [namespace_of(other) for other in ISAS if other != isa]
    errors = []
    for line in run(NM, "--extern-only", "--format=posix", path).splitlines():
        name, kind = line.split()[:2]
        if kind == "U":
            if any(other in name for other in others):
                errors.append(f"{path.name}: calls into another instruction set: {name}")
        elif kind in "wWvVu":
            errors.append(f"{path.name}: weak symbol: {name}")
        elif not own.match(name):
            errors.append(f"{path.name}: foreign global symbol: {name}")
    return errors


def check_instructions(path, forbidden, isa_objects=frozenset()):
    """At most one error for each function of an object or an archive; members named in isa_objects are skipped."""
    errors = []
    function = member = ""
    reported = None
    for line in run(OBJDUMP, "--disassemble", "--no-show-raw-insn", path).splitlines():
        if line.endswith(">:"):
            function = line.split("<", 1)[1][:-2]
        elif ":     file format" in line:
            member = line.split(":", 1)[0]
        elif member not in isa_objects and reported != (member, function) and forbidden.match(line):
            reported = (member, function)
            errors.append(f"{path.name}({member}): {function}: instruction above its set: {' '.join(line.split()[1:])}")
    return errors


def check_build(build):
    objects = sorted((build / "isa").glob("tercel_*_*.o"))
    errors = []
    for path in objects:
        layer, isa = path.stem.removeprefix("tercel_").rsplit("_", 1)
        errors += check_symbols(path, isa)
        if isa in FORBIDDEN:
            errors += check_instructions(path, FORBIDDEN[isa])
        for other in ISAS:
            if not (build / "isa" / f"tercel_{layer}_{other}.o").exists():
                errors.append(f"{path.name}: there is no such object for {other}")
    archive = build / "lib" / "libtercel.a"
    if archive.exists():
        errors += check_instructions(archive, ABOVE_BASELINE, {path.name for path in objects})
    elif not objects:
        errors.append(f"{build}: neither kernel objects nor libtercel.a: build it first")
    return errors


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: check_isa_objects.py BUILD")
    errors = check_build(pathlib.Path(sys.argv[1]))
    for error in errors:
        print(error, file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
