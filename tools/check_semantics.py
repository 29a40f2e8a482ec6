#!/usr/bin/env python3
"""Checks that every test named in docs/design/semantics.md exists, and that every item names one.

A name is Suite.Test of tests/**/*.cpp, guide.<page> of docs/guide, or file::test of Python.

    tools/check_semantics.py [ROOT]
"""

import pathlib
import re
import sys

TEST = re.compile(r"^(?:TYPED_)?(?:TEST(?:_F|_P)?|RC_GTEST_(?:FIXTURE_)?PROP)\((\w+),\s*(\w+)", re.MULTILINE)
HEADING = "## What shows it"


def tests_of(root):
    names = set()
    for path in (root / "tests").rglob("*.cpp"):
        names |= {f"{suite}.{name}" for suite, name in TEST.findall(path.read_text())}
    for page in (root / "docs/guide").glob("*.md"):
        if "```cpp" in page.read_text():
            names.add(f"guide.{page.stem}")
    return names


def is_there(root, name, tests):
    if "::" not in name:
        return name in tests
    path, test = name.split("::")
    file = root / path
    return file.exists() and re.search(rf"^def {test}\(", file.read_text(), re.MULTILINE) is not None


def check(root):
    page = root / "docs/design/semantics.md"
    tests, errors, items = tests_of(root), [], 0
    shown = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        shown |= line == HEADING
        if not shown or not line.startswith("| ") or line == "| item | test |":
            continue
        items += 1
        names = re.findall(r"`([^`]+)`", line.rstrip().removesuffix("|").rsplit(" | ", 1)[1])
        if not names:
            errors.append(f"{page.relative_to(root)}:{number}: no test")
        errors += [
            f"{page.relative_to(root)}:{number}: no such test: {name}"
            for name in names
            if not is_there(root, name, tests)
        ]
    if not items:
        errors.append(f"{page.relative_to(root)}: no item under '{HEADING}'")
    return errors


def main():
    errors = check(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve())
    for error in errors:
        print(error, file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
