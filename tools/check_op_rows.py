#!/usr/bin/env python3
"""Every public op has a conformance row (tests/ops/*_rows.h; see Note [Conformance rows] in tests/ops/conformance.h).

The build runs this before it compiles tests/ops: an op without a row does not compile. (Ops in functor lists are held to
it by the compiler, too.) In-place and out forms go with the op of their name. A form with an `out` that is made by a macro
(ops/*out_variants.h) has a row in tests/ops/*out_variants_test.cpp, and a method of Tensor is called in tensor_methods_test.cpp.

    tools/check_op_rows.py [ROOT]
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from public_headers import op_headers  # noqa: E402

OP = re.compile(
    r"TERCEL_API\s+(?:const\s+)?(?:Tensor&?|Scalar|\w+And\w+|UniqueValues|Histogram|std::vector<Tensor>)\s+(\w+)\("
)
MACRO_OP = re.compile(r"^TERCEL_(?:UNARY|BINARY)\w*\((\w+)\)", re.MULTILINE)
VARIANT = re.compile(r"(_out|_)$")

# They take no tensor, or give none back: their tests hold them to more than a row could.
NO_ROW = {
    "factories/factories.h": "makes tensors of numbers (tests/ops/factories/factories_test.cpp)",
    "linalg/linalg.h": "factorizations are held to what they promise: A = Q R (tests/ops/linalg/linalg_*_test.cpp)",
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


def public_ops(header):
    text = header.read_text()
    return (set(OP.findall(text)) | set(MACRO_OP.findall(text))) - {"name"}


def ops_without_row(root):
    rows = "\n".join(path.read_text() for path in sorted((root / "tests/ops").rglob("*_rows.h")))
    called = set(re.findall(r"\b(\w+)\(", rows))
    # Rows of functor lists name the function as an argument of a macro.
    called |= set(re.findall(r"\bTERCEL_(?:\w*ROW\(\w+, |RUN\()(\w+)", rows))
    missing = []
    for header in op_headers(root):
        name = header.relative_to(root / "tercel/ops").as_posix()
        if name in NO_ROW:
            continue
        for op in sorted(public_ops(header)):
            if op not in called and VARIANT.sub("", op) not in called and op not in NO_ROW_OPS:
                missing.append(f"tercel/ops/{name}: {op}() has no row in tests/ops/**/*_rows.h")
    return missing


OUT_VARIANT = re.compile(r'^TERCEL_\w*OUTS?\d?\((?:"\w+", \w+, )?(\w+)', re.MULTILINE)
OUT_ROW = re.compile(r"^ *(?:ROW\d?|OF_OUT|MADE|LIST)\((?:\w+::)?(\w+),", re.MULTILINE)
METHOD = re.compile(r"^  (?!return\b)[\w:<>&]+ (\w+)\([^;]*\) const;", re.MULTILINE)
CALLED_METHOD = re.compile(r"\bSAME(?:_INPLACE)?\((\w+)|\.(\w+)\(")


def variants_without_test(root):
    ops, tests = root / "tercel/ops", root / "tests/ops"
    if not (tests / "tensor_methods_test.cpp").exists():
        return []
    rows = {op for path in tests.glob("*out_variants_test.cpp") for op in OUT_ROW.findall(path.read_text())}
    called = {op for pair in CALLED_METHOD.findall((tests / "tensor_methods_test.cpp").read_text()) for op in pair}
    missing = []
    for header in sorted(ops.glob("*out_variants.h")):
        missing += [f"tercel/ops/{header.name}: {op}_out() has no row in tests/ops/*out_variants_test.cpp"
                    for op in OUT_VARIANT.findall(header.read_text()) if op not in rows]
    for header in sorted((root / "tercel/core").glob("tensor_*_methods.h")):
        missing += [f"tercel/core/{header.name}: {method}() is not called in tests/ops/tensor_methods_test.cpp"
                    for method in METHOD.findall(header.read_text()) if method not in called]
    return missing


OUT_RULES = re.compile(r"kOutRules\[\] = \{(.*?)\n\};", re.DOTALL)
VARIANT_MACRO = re.compile(r"^TERCEL_(DEFINE_)?(APART_)?(?:VALUES_)?OUT2?\((\w+),", re.MULTILINE)


def variants_without_rule(root):
    """Variants of ops that have a rule of where `out` may lie ask for it, and no others do."""
    source = root / "tercel/ops/common/out.cpp"
    found = OUT_RULES.search(source.read_text()) if source.exists() else None
    if not found:
        return []
    rules = set(" ".join(re.findall(r'"([^"]*)"', found[1])).split())
    wrong = []
    for header in sorted((root / "tercel/ops").glob("*out_variants.h")):
        for plain, apart, op in VARIANT_MACRO.findall(header.read_text()):
            name = op if plain else f"linalg_{op}"
            if bool(apart) != (name in rules):
                wrong.append(f"tercel/ops/{header.name}: {op}_out() and the rules in out.cpp disagree: the macro is "
                             f"{'' if apart else 'not '}an APART one")
    return wrong


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    missing = ops_without_row(root) + variants_without_test(root) + variants_without_rule(root)
    for line in missing:
        print(line, file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
