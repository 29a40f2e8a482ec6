#!/usr/bin/env python3
"""Checks rules for files that neither the compiler nor clang-tidy checks.

A file of more than 600 lines, or a header of more than 300, is a warning: it may cover more than one subject. More than
1,000, or 500, is an error. A public header includes only the standard library and Tercel, and no header of the library
includes <iostream>, <regex> or <functional>. Headers begin with #pragma once. Include paths start at the root.

    tools/check_files.py [ROOT]

The exit status is 1 if there are errors; warnings do not change it.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from public_headers import is_public  # noqa: E402

FOLDERS = ("tercel", "cli", "tests", "benchmarks", "fuzz", "examples", "tools", "cmake", "scripts", "python")
HEADERS = {".h", ".cuh"}
CODE = HEADERS | {".cpp", ".cu", ".py", ".cmake"}
# Lines that are a warning, and lines that are an error.
LINES = (600, 1000)
HEADER_LINES = (300, 500)
HEAVY = {"iostream", "regex", "functional"}
SYSTEM = {"sys/single_threaded.h"}  # a variable of the C library, included only in this file
ROOTED = re.compile(r"^(tercel|cli|tests|benchmarks|fuzz|python)/")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def check_include(path, quote, name):
    if path.suffix in HEADERS and path.parts[0] == "tercel" and name in HEAVY:
        return f"a header of the library does not include <{name}>: it is slow to compile"
    if quote == '"' and path.parts[0] != "examples" and not ROOTED.match(name):
        return f'"{name}": includes of Tercel start at the root, others use angle brackets'
    # Standard headers have no dot and no folder.
    if path.suffix in HEADERS and is_public(path) and quote == "<" and name not in SYSTEM and ("/" in name or "." in name):
        return f"<{name}>: a public header includes only the standard library and Tercel"
    return None


def check_length(relative, count):
    """The warnings and errors about a file with that many lines."""
    warn, most = HEADER_LINES if relative.suffix in HEADERS else LINES
    if count > most:
        return [], [f"{relative}: {count} lines, at most {most}: move each subject to its own file"]
    if count > warn:
        return [f"{relative}: warning: {count} lines, more than {warn}: does it cover more than one subject?"], []
    return [], []


def check_file(root, path):
    """The warnings and the errors about a file."""
    relative = path.relative_to(root)
    lines = path.read_text(errors="replace").splitlines()
    warnings, errors = check_length(relative, len(lines))
    if path.suffix in HEADERS and "#pragma once" not in lines:
        errors.append(f"{relative}: no #pragma once")
    if path.suffix in HEADERS | {".cpp", ".cu"}:
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            error = check_include(relative, *match.groups()) if match else None
            if error:
                errors.append(f"{relative}:{number}: {error}")
    return warnings, errors


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    warnings, errors = [], []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and (path.suffix in CODE or folder == "scripts"):
                of_file = check_file(root, path)
                warnings += of_file[0]
                errors += of_file[1]
    for line in warnings + errors:
        print(line, file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
