#!/usr/bin/env python3
"""Every public op has a conformance row (tests/ops/*/*_rows.h; see Note [Conformance rows] in tests/ops/conformance.h).

The build runs this before it compiles tests/ops: an op without a row does not compile. (Ops in functor lists are held to
it by the compiler, too.) In-place and out variants go with the op of their name; methods and most out variants are written by
tools/make_ops.py. An op with a rule of where `out` may lie has the column out_apart.

    tools/check_op_rows.py [ROOT]
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from op_headers import PREFIXES, Table, without_comments  # noqa: E402

RESULT = re.compile(r"Tensor|const Tensor&|Scalar|\w+And\w+|UniqueValues|Histogram|std::vector<Tensor>")
VARIANT = re.compile(r"(_out|_)$")

# They take no tensor, or give none back: their tests hold them to more than a row in tests/ops/*/*_rows.h could.
NO_ROW = {
    "factories/factories.h": "makes tensors of numbers (tests/ops/factories/factories_test.cpp)",
    "linalg/linalg.h": "factorizations are held to what they promise: A = Q R (tests/ops/linalg/linalg_*_test.cpp)",
    "aliases.h": "each calls the op that it names (tests/ops/tensor_methods_test.cpp, tests/ops/out_variants_test.cpp)",
    "common/out.h": "puts results into tensors (tests/ops/out_variants_test.cpp)",
    "index/nonzero.h": "the sizes of its results depend on values (tests/ops/index/subscript_test.cpp)",
    "random/random.h": "makes random numbers (tests/ops/random/random_test.cpp)",
    "views/resize.h": "changes sizes and storages, no element (tests/ops/views/resize_test.cpp)",
    "embedding/row_gradient.h": "works on gradients (tests/ops/embedding/row_gradient_test.cpp)",
    "random/sampling.h": "makes random numbers (tests/ops/random/sampling_test.cpp)",
    "fft/stft.h": "the signal that both give back (tests/ops/fft/stft_test.cpp)",
    "factories/tensor_of.h": "makes tensors of numbers (tests/ops/factories/factories_test.cpp)",
    "nn/unpool.h": "takes the places that pooling gives, or random ones (tests/ops/nn/unpool_test.cpp)",
    "factories/windows.h": "makes tensors of numbers (tests/ops/factories/windows_test.cpp)",
}
NO_ROW_OPS = {
    "fftfreq": "makes a tensor of numbers (tests/ops/fft/fft_test.cpp)",
    "rfftfreq": "makes a tensor of numbers (tests/ops/fft/fft_test.cpp)",
    "item": "gives a number (tests/ops/views/views_test.cpp)",
    "set_item": "index_put() after a conversion (tests/ops/index/subscript_test.cpp)",
    "tril_indices": "makes a tensor of numbers (tests/ops/views/diagonals_test.cpp)",
    "triu_indices": "makes a tensor of numbers (tests/ops/views/diagonals_test.cpp)",
    "view_as_dtype": "gives the same bytes as another dtype (tests/ops/views/views_test.cpp)",
}


def ops_without_row(root, table):
    rows = "\n".join(without_comments(path.read_text()) for path in sorted((root / "tests/ops").rglob("*_rows.h")))
    called = set(re.findall(r"\b(\w+)\(", rows))
    # Rows of functor lists name the function as an argument of a macro.
    called |= set(re.findall(r"\bTERCEL_(?:\w*ROW\(\w+, |RUN\()(\w+)", rows))
    missing = set()
    for op in table.ops:
        if not RESULT.fullmatch(op.result) or op.header.removeprefix("tercel/ops/") in NO_ROW:
            continue
        if op.name not in called and VARIANT.sub("", op.name) not in called and op.name not in NO_ROW_OPS:
            missing.add(f"{op.header}: {op.name}() has no row in tests/ops/**/*_rows.h")
    return sorted(missing)


OUT_RULES = re.compile(r"kOutRules\[\] = \{(.*?)\n\};", re.DOTALL)


def variants_without_rule(root, table):
    """Ops that have a rule of where `out` may lie have the column out_apart, and no others do."""
    source = root / "tercel/ops/common/out.cpp"
    found = OUT_RULES.search(source.read_text()) if source.exists() else None
    if not found:
        return []
    rules = set(" ".join(re.findall(r'"([^"]*)"', found[1])).split())
    wrong = []
    for op in table.ops:
        has, name = "out_apart" in op.columns, PREFIXES.get(op.namespace, "") + op.name
        if has != (name in rules) and (has or "out" in op.columns or "out_exact" in op.columns):
            wrong.append(f"{op.header}: {op.name}() and the rules in out.cpp disagree: it has {'the' if has else 'no'} column out_apart")
    return wrong


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    table = Table(root)
    missing = ops_without_row(root, table) + variants_without_rule(root, table)
    for line in missing:
        print(line, file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
