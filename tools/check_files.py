#!/usr/bin/env python3
"""Rules for files that neither the compiler nor clang-tidy knows.

A file has at most 600 lines, a header 300. A public header includes the standard library and Tercel alone, and no header
of the library <iostream>, <regex> or <functional>. A header begins with #pragma once. Includes are written from the root.

    tools/check_files.py [ROOT]
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from public_headers import is_public  # noqa: E402

FOLDERS = ("tercel", "cli", "tests", "benchmarks", "fuzz", "examples", "tools", "cmake", "scripts", "python")
HEADERS = {".h", ".cuh"}
CODE = HEADERS | {".cpp", ".cu", ".py", ".cmake"}
MAX_LINES = 600
MAX_HEADER_LINES = 300
HEAVY = {"iostream", "regex", "functional"}
SYSTEM = {"sys/single_threaded.h"}  # one variable of the C library, included only where it is
ROOTED = re.compile(r"^(tercel|cli|tests|benchmarks|python)/")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def check_include(path, quote, name):
    if path.suffix in HEADERS and path.parts[0] == "tercel" and name in HEAVY:
        return f"a header of the library does not include <{name}>: it is slow to compile"
    if quote == '"' and path.parts[0] != "examples" and not ROOTED.match(name):
        return f'"{name}": includes of ours are written from the root, others in angle brackets'
    # Standard headers have no dot and no folder.
    if path.suffix in HEADERS and is_public(path) and quote == "<" and name not in SYSTEM and ("/" in name or "." in name):
        return f"<{name}>: a public header includes the standard library and Tercel alone"
    return None


def check_file(root, path):
    relative = path.relative_to(root)
    lines = path.read_text(errors="replace").splitlines()
    errors = []
    limit = MAX_HEADER_LINES if path.suffix in HEADERS else MAX_LINES
    if len(lines) > limit:
        errors.append(f"{relative}: {len(lines)} lines, at most {limit} (one subject each?)")
    if path.suffix in HEADERS and "#pragma once" not in lines:
        errors.append(f"{relative}: no #pragma once")
    if path.suffix in HEADERS | {".cpp", ".cu"}:
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            error = check_include(relative, *match.groups()) if match else None
            if error:
                errors.append(f"{relative}:{number}: {error}")
    return errors


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    errors = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and (path.suffix in CODE or folder == "scripts"):
                errors += check_file(root, path)
    for error in errors:
        print(error, file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
