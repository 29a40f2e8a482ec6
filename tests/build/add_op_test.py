#!/usr/bin/env python3
"""Adds ops to a copy of the sources by the table in docs/design/ops.md ("What a new op takes"), in as many files."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

UNARY = {
    "tercel/ops/elementwise/unary_ops.h": [
        ("// clang-format on\n", """/** x^3. */
struct Cubed {
  TERCEL_OP("cubed", Float)
  template <class V> static TERCEL_HD V fwd(V x) { return x * x * x; }
  template <class V> static TERCEL_HD V dx(V x) { return V(3) * x * x; }
};
// clang-format on
"""),
        ("  X(softsign, Softsign) ", "  X(cubed, Cubed) X(softsign, Softsign) ")],
    "tercel/ops/elementwise/unary.h": [
        ("/** Sign of x: -1, 0 or 1; NaN is kept. */\n", "/** x^3. */\nTERCEL_UNARY(cubed)\n/** Sign of x: -1, 0 or 1; NaN is kept. */\n")],
    "tests/ops/elementwise/unary_rows.h": [
        ("TERCEL_UNARY_ROW(Softsign, ", "TERCEL_UNARY_ROW(Cubed, cubed, -2, 2, all_types(), x * x * x)\nTERCEL_UNARY_ROW(Softsign, ")],
}
REDUCTION = {
    "tercel/ops/reduce/reduce.h": [
        ("struct MinAndMax {", """/** The sum of squares. */
TERCEL_OP_API(method, out) Tensor sum_of_squares(const Tensor& x, IntSpan dims = {}, bool keepdim = false);
struct MinAndMax {""")],
    "tercel/ops/reduce/reduce.cpp": [
        ("Tensor nanmean(", """Tensor sum_of_squares(const Tensor& x, IntSpan dims, bool keepdim) { return sum(mul(x, conj(x)), dims, keepdim); }
Tensor nanmean(""")],
    "tests/ops/reduce/reduce_rows.h": [("", "// sum_of_squares(in[0])\n")],
    "python/src/ops_reduce.cpp": [
        ("      entry(\"count_nonzero(", """      entry("sum_of_squares(Tensor input, int[1]? dim=None, bool keepdim=False, *, Tensor out=None)",
            [](const Tensor& x, const Dims& dims, bool keepdim, const Tensor& out) {
              return into("sum_of_squares", out, sum_of_squares(x, span_of(dims), keepdim));
            }),
      entry("count_nonzero(""")],
}


def promised(kind):
    """How many files the page says that an op of this kind takes."""
    words = {"three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}
    page = " ".join((ROOT / "docs/design/ops.md").read_text().split())
    return words[re.search(rf"(\w+) (?:files )?for an? {kind}", page)[1]]


class AddOp(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        for part in ("tercel", "tests/ops", "tests/support", "python/src"):
            shutil.copytree(ROOT / part, self.root / part)

    def edit(self, edits):
        for name, changes in edits.items():
            path = self.root / name
            text = path.read_text()
            for old, new in changes:
                self.assertEqual(text.count(old) if old else 1, 1, f"{name}: '{old}'")
                text = text.replace(old, new) if old else text + new
            path.write_text(text)

    def tool(self, name, *arguments):
        done = subprocess.run([sys.executable, "-B", ROOT / "tools" / name, self.root, *arguments], capture_output=True,
                              text=True, check=False)
        return done.returncode, done.stderr

    def compiles(self, source):
        command = [os.environ.get("CXX", "c++"), "-std=c++20", "-fsyntax-only", f"-I{self.root}", f"-I{self.root}/out",
                   self.root / source]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[:4000])

    def generated(self):
        self.assertEqual(self.tool("make_ops.py", self.root / "out"), (0, ""))
        return (self.root / "out/tercel/core/tensor_methods.h").read_text(), (self.root / "out/tercel/ops/out_variants.h").read_text()

    def test_unary(self):
        self.assertEqual(len(UNARY), promised("unary op"))
        self.edit(UNARY)
        methods, _ = self.generated()
        self.assertIn("  Tensor cubed() const;\n  Tensor& cubed_() const;\n", methods)
        self.assertEqual(self.tool("check_op_rows.py"), (0, ""))
        self.compiles("tercel/ops/elementwise/unary.cpp")
        self.compiles("tests/ops/elementwise/unary_test.cpp")

    def test_reduction(self):
        # One file less than documented: no separate functor.
        self.assertEqual(len(REDUCTION) + 1, promised("reduction"))
        row = REDUCTION["tests/ops/reduce/reduce_rows.h"]
        self.edit({name: changes for name, changes in REDUCTION.items() if changes is not row})
        code, text = self.tool("check_op_rows.py")
        self.assertEqual((code, text), (1, "tercel/ops/reduce/reduce.h: sum_of_squares() has no row in tests/ops/**/*_rows.h\n"))
        self.edit({"tests/ops/reduce/reduce_rows.h": row})
        self.assertEqual(self.tool("check_op_rows.py"), (0, ""))
        methods, variants = self.generated()
        self.assertIn("  Tensor sum_of_squares(IntSpan dims = {}, bool keepdim = false) const;\n", methods)
        self.assertIn("sum_of_squares_out(const Tensor& out, const Tensor& x, IntSpan dims = {}, bool keepdim = false);", variants)
        self.compiles("tercel/ops/reduce/reduce.cpp")
        self.tool("make_op_docs.py", self.root / "op_docs.inc")
        self.assertIn('{"sum_of_squares", "The sum of squares."}', (self.root / "op_docs.inc").read_text())


if __name__ == "__main__":
    unittest.main()
