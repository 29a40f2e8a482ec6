#!/usr/bin/env python3
"""Checks that every public C++ function is documented; tools/doc_lines.py defines which comment applies to what.

Operators and enum_names() need no documentation.

    tools/check_docs.py [ROOT]
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from doc_lines import declarations  # noqa: E402
from public_headers import is_public  # noqa: E402


# Scalar functions on plain numbers, which functors use.
NOT_FOR_USERS = {"tercel::special"}


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    errors = 0
    for path in sorted((root / "tercel").rglob("*.h")):
        relative = path.relative_to(root)
        if not is_public(relative):
            continue
        for d in declarations(path.read_text()):
            if not d.doc and not d.name.startswith(("operator", "enum_names")) and d.namespace not in NOT_FOR_USERS:
                errors += 1
                print(f"{relative}:{d.line}: {d.kind} {d.name} has no documentation", file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
