#!/usr/bin/env python3
"""tools/check_op_rows.py finds an op without a row."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HEADER = """
TERCEL_API Tensor softmax(const Tensor& x, int64_t dim);
TERCEL_API const Tensor& softmax_(const Tensor& x, int64_t dim);
TERCEL_API ValuesAndIndices topk(const Tensor& x, int64_t k);
"""


class CheckOpRows(unittest.TestCase):
    def check(self, rows):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "tercel/ops/x").mkdir(parents=True)
            (root / "tests/ops/x").mkdir(parents=True)
            (root / "tercel/ops/x/x.h").write_text(HEADER)
            (root / "tests/ops/x/x_rows.h").write_text(rows)
            command = [sys.executable, "-B", ROOT / "tools/check_op_rows.py", root]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            return done.returncode, done.stderr

    def test_complete(self):
        self.assertEqual(self.check("softmax(in[0], 1); topk(in[0], 2);"), (0, ""))

    def test_missing(self):
        code, text = self.check("softmax(in[0], 1);")
        self.assertEqual(code, 1)
        self.assertIn("tercel/ops/x/x.h: topk() has no row", text)
        self.assertNotIn("softmax", text)

    def test_a_comment_is_no_row(self):
        code, text = self.check("softmax(in[0], 1);  // topk(in[0], 2)\n/* topk(in[0], 2) */")
        self.assertEqual(code, 1)
        self.assertIn("tercel/ops/x/x.h: topk() has no row", text)

    def test_variants_with_a_rule(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "tercel/ops/common").mkdir(parents=True)
            (root / "tercel/ops/common/out.cpp").write_text('constexpr OutRule kOutRules[] = {\n    {Full, " cat linalg_cross "},\n};\n')
            (root / "tercel/ops/common/x.h").write_text(
                "namespace tercel {\nTERCEL_OP_API(out_apart) Tensor cat(Span<Tensor> x);\nTERCEL_OP_API(out) Tensor sum(const Tensor& x);\n"
                "TERCEL_OP_API(out_apart) Tensor max(const Tensor& x);\n"
                "namespace linalg {\nTERCEL_OP_API(out) Tensor cross(const Tensor& x);\n}\n}\n")
            (root / "tests/ops").mkdir(parents=True)
            (root / "tests/ops/x_rows.h").write_text("cat(x) sum(x) max(x) cross(x)")
            command = [sys.executable, "-B", ROOT / "tools/check_op_rows.py", root]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual([line.split()[1] for line in done.stderr.splitlines()], ["max()", "cross()"])

    def test_the_project_is_complete(self):
        command = [sys.executable, "-B", ROOT / "tools/check_op_rows.py"]
        self.assertEqual(subprocess.run(command, check=False).returncode, 0)


if __name__ == "__main__":
    unittest.main()
