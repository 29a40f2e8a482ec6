#!/usr/bin/env python3
"""Writes the documentation of each op in the public headers as a table for the Python package: sorted lines
{"name", "text"}.

    tools/make_op_docs.py ROOT OUT
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from doc_lines import declarations  # noqa: E402
from op_headers import PREFIXES  # noqa: E402
from public_headers import op_headers  # noqa: E402


def docs_of(root):
    """{name: texts}, with the texts of overloads in order."""
    docs = {}
    for path in op_headers(root):
        # Out variants and aliases are described with their op.
        if path.stem.endswith("out_variants") or path.stem == "aliases":
            continue
        for d in declarations(path.read_text()):
            if d.doc and d.namespace in PREFIXES:
                texts = docs.setdefault(PREFIXES[d.namespace] + d.name, [])
                if d.doc not in texts:
                    texts.append(d.doc)
    return docs


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[2])
    lines = [f"{{{json.dumps(name)}, {json.dumps(chr(10).join(texts))}}},\n"
             for name, texts in sorted(docs_of(pathlib.Path(sys.argv[1])).items())]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("".join(lines))


if __name__ == "__main__":
    main()
