#!/usr/bin/env python3
"""Makes programs of the guide's C++ code, and compares their output with the guide's.

The ```cpp blocks of a page form one program, in order: a block is a part of main() and may use declarations of earlier
blocks; its #include lines move to the top. The output of a block is compared with the ```text block that follows it; a
block without one must print nothing. <tercel/ops/ops.h> and <iostream> are included, and namespace tercel is used,
before the first block.

    tools/guide_programs.py write PAGE.md OUT.cpp
    tools/guide_programs.py check PAGE.md PROGRAM
"""

import pathlib
import re
import subprocess
import sys

FENCE = re.compile(r"^```(\w*)\s*$")
MARK = "\x1e"


def blocks_of(page):
    """(line number, code, expected output or None) of every C++ block."""
    blocks, language, lines, start, between = [], None, [], 0, False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        fence = FENCE.match(line)
        if language is None:
            if fence and fence.group(1):
                language, lines, start = fence.group(1), [], number + 1
            elif line.strip():
                between = True  # prose ends a block's output
        elif fence and not fence.group(1):
            if language == "cpp":
                blocks.append((start, lines, None))
                between = False
            elif language == "text" and blocks and not between and blocks[-1][2] is None:
                blocks[-1] = (*blocks[-1][:2], lines)
                between = True
            language = None
        else:
            lines.append(line)
    if language is not None:
        sys.exit(f"{page}:{start}: the block does not end")
    return blocks


def write(page, out):
    blocks = blocks_of(page)
    if not blocks:
        sys.exit(f"{page}: no ```cpp block")
    includes, body = ["#include <tercel/ops/ops.h>", "#include <iostream>"], []
    for start, lines, _ in blocks:
        body.append(f"  std::cout << '\\x1e';")
        body.append(f'#line {start} "{page.name}"')
        for line in lines:
            if line.startswith("#include"):
                includes.append(line)
                body.append("")
            elif re.match(r"\s*int main\b", line):
                sys.exit(f"{page}:{start}: a block is a part of main(); write only its contents")
            else:
                body.append(line)
    text = "\n".join([*includes, "using namespace tercel;", "int main() {", *body, "}", ""])
    if not out.exists() or out.read_text() != text:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text)


def check(page, program):
    result = subprocess.run([program], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{page}: the program ended with {result.returncode}: {result.stderr.strip()}")
    blocks, printed = blocks_of(page), result.stdout.split(MARK)[1:]
    if len(printed) != len(blocks):
        sys.exit(f"{page}: {len(blocks)} blocks, but the program printed output of {len(printed)}: rebuild it")
    errors = 0
    for (start, _, expected), text in zip(blocks, printed):
        got, want = [line.rstrip() for line in text.rstrip().splitlines()], [line.rstrip() for line in expected or []]
        if got != want:
            errors += 1
            print(f"{page}:{start}: the guide says", *want, "but the block prints", *got, sep="\n  ", file=sys.stderr)
    return 1 if errors else 0


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("write", "check"):
        sys.exit(__doc__)
    page, other = pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    return write(page, other) if sys.argv[1] == "write" else check(page, other)


if __name__ == "__main__":
    sys.exit(main())
