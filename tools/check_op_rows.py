#!/usr/bin/env python3
"""Every public op has a conformance row (tests/ops/*_rows.h; see Note [Conformance rows] in tests/ops/conformance.h).

The build runs this before it compiles tests/ops: an op without a row does not compile. (Ops in functor lists are held to
it by the compiler, too.) In-place and out forms go with the op of their name. A form with an `out` that is made by a macro
(ops/*out_forms.h) has a row in tests/ops/*out_forms_test.cpp, and a method of Tensor is called in tensor_methods_test.cpp.

    tools/check_op_rows.py [ROOT]
"""

import pathlib
import re
import sys

OP = re.compile(
    r"TERCEL_API\s+(?:const\s+)?(?:Tensor&?|Scalar|\w+And\w+|UniqueValues|Histogram|std::vector<Tensor>)\s+(\w+)\("
)
MACRO_OP = re.compile(r"^TERCEL_(?:UNARY|BINARY)\w*\((\w+)\)", re.MULTILINE)
FORM = re.compile(r"(_out|_)$")

# They take no tensor, or give none back: their tests hold them to more than a row could.
NO_ROW = {
    "factories.h": "makes tensors of numbers (tests/ops/factories_test.cpp)",
    "linalg.h": "factorizations are held to what they promise: A = Q R (tests/ops/linalg_*_test.cpp)",
    "out.h": "puts results into tensors (tests/ops/out_forms_test.cpp)",
    "nonzero.h": "the sizes of its results depend on values (tests/ops/index_test.cpp)",
    "random.h": "makes random numbers (tests/ops/random_test.cpp)",
    "resize.h": "changes sizes and storages, no element (tests/ops/resize_test.cpp)",
    "row_gradient.h": "works on gradients (tests/ops/row_gradient_test.cpp)",
    "sampling.h": "makes random numbers (tests/ops/sampling_test.cpp)",
    "stft.h": "the signal that both give back (tests/ops/stft_test.cpp)",
    "tensor_of.h": "makes tensors of numbers (tests/ops/factories_test.cpp)",
    "unpool.h": "takes the places that pooling gives, or random ones (tests/ops/unpool_test.cpp)",
    "windows.h": "makes tensors of numbers (tests/ops/windows_test.cpp)",
}
NO_ROW_OPS = {
    "fftfreq": "makes a tensor of numbers (tests/ops/fft_test.cpp)",
    "rfftfreq": "makes a tensor of numbers (tests/ops/fft_test.cpp)",
    "item": "gives a number (tests/ops/views_test.cpp)",
    "set_item": "index_put() after a conversion (tests/ops/index_test.cpp)",
    "tril_indices": "makes a tensor of numbers (tests/ops/diagonals_test.cpp)",
    "triu_indices": "makes a tensor of numbers (tests/ops/diagonals_test.cpp)",
    "view_as_dtype": "gives the same bytes as another dtype (tests/ops/views_test.cpp)",
}


def public_ops(header):
    text = header.read_text()
    return (set(OP.findall(text)) | set(MACRO_OP.findall(text))) - {"name"}


def ops_without_row(root):
    rows = "\n".join(path.read_text() for path in sorted((root / "tests/ops").glob("*_rows.h")))
    called = set(re.findall(r"\b(\w+)\(", rows))
    # Rows of functor lists name the function as an argument of a macro.
    called |= set(re.findall(r"\bTERCEL_(?:\w*ROW\(\w+, |RUN\()(\w+)", rows))
    missing = []
    for header in sorted((root / "tercel/ops").glob("*.h")):
        if header.stem.endswith("_impl") or header.name in NO_ROW:
            continue
        for op in sorted(public_ops(header)):
            if op not in called and FORM.sub("", op) not in called and op not in NO_ROW_OPS:
                missing.append(f"tercel/ops/{header.name}: {op}() has no row in tests/ops/*_rows.h")
    return missing


OUT_FORM = re.compile(r'^TERCEL_\w*OUTS?\d?\((?:"\w+", \w+, )?(\w+)', re.MULTILINE)
OUT_ROW = re.compile(r"^ *(?:ROW\d?|OF_OUT|MADE|LIST)\((?:\w+::)?(\w+),", re.MULTILINE)
METHOD = re.compile(r"^  (?!return\b)[\w:<>&]+ (\w+)\([^;]*\) const;", re.MULTILINE)
CALLED_METHOD = re.compile(r"\bSAME(?:_INPLACE)?\((\w+)|\.(\w+)\(")


def forms_without_test(root):
    ops, tests = root / "tercel/ops", root / "tests/ops"
    if not (tests / "tensor_methods_test.cpp").exists():
        return []
    rows = {op for path in tests.glob("*out_forms_test.cpp") for op in OUT_ROW.findall(path.read_text())}
    called = {op for pair in CALLED_METHOD.findall((tests / "tensor_methods_test.cpp").read_text()) for op in pair}
    missing = []
    for header in sorted(ops.glob("*out_forms.h")):
        missing += [f"tercel/ops/{header.name}: {op}_out() has no row in tests/ops/*out_forms_test.cpp"
                    for op in OUT_FORM.findall(header.read_text()) if op not in rows]
    for header in sorted((root / "tercel/core").glob("tensor_*_methods.h")):
        missing += [f"tercel/core/{header.name}: {method}() is not called in tests/ops/tensor_methods_test.cpp"
                    for method in METHOD.findall(header.read_text()) if method not in called]
    return missing


OUT_RULES = re.compile(r"kOutRules\[\] = \{(.*?)\n\};", re.DOTALL)
FORM_MACRO = re.compile(r"^TERCEL_(DEFINE_)?(APART_)?(?:VALUES_)?OUT2?\((\w+),", re.MULTILINE)


def forms_without_rule(root):
    """Forms of ops that have a rule of where `out` may lie ask for it, and no others do."""
    source = root / "tercel/ops/out.cpp"
    found = OUT_RULES.search(source.read_text()) if source.exists() else None
    if not found:
        return []
    rules = set(" ".join(re.findall(r'"([^"]*)"', found[1])).split())
    wrong = []
    for header in sorted((root / "tercel/ops").glob("*out_forms.h")):
        for plain, apart, op in FORM_MACRO.findall(header.read_text()):
            name = op if plain else f"linalg_{op}"
            if bool(apart) != (name in rules):
                wrong.append(f"tercel/ops/{header.name}: {op}_out() and the rules in out.cpp disagree: the macro is "
                             f"{'' if apart else 'not '}an APART one")
    return wrong


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    missing = ops_without_row(root) + forms_without_test(root) + forms_without_rule(root)
    for line in missing:
        print(line, file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
