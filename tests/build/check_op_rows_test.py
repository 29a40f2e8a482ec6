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

    def test_variants(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name in ("tercel/ops", "tercel/core", "tests/ops"):
                (root / name).mkdir(parents=True)
            (root / "tercel/ops/a_out_variants.h").write_text(
                "TERCEL_DEFINE_OUT(sum, (const Tensor& x), (x))\nTERCEL_NAMED_OUT2(\"qr\", tercel, qr, Result, a, b)\n"
                "TERCEL_DEFINE_OUT(mean, (const Tensor& x), (x))\n")
            (root / "tercel/core/tensor_a_methods.h").write_text("  Tensor sum() const;\n  Tensor& abs_() const;\n")
            (root / "tests/ops/out_variants_test.cpp").write_text("      ROW(mean, x),\n      ROW2(linalg::qr, x),\n")
            (root / "tests/ops/tensor_methods_test.cpp").write_text("  SAME(sum)\n")
            command = [sys.executable, "-B", ROOT / "tools/check_op_rows.py", root]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.splitlines(), [
            "tercel/ops/a_out_variants.h: sum_out() has no row in tests/ops/*out_variants_test.cpp",
            "tercel/core/tensor_a_methods.h: abs_() is not called in tests/ops/tensor_methods_test.cpp",
        ])

    def test_variants_with_a_rule(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "tercel/ops/common").mkdir(parents=True)
            (root / "tercel/ops/common/out.cpp").write_text('constexpr OutRule kOutRules[] = {\n    {Full, " cat linalg_cross "},\n};\n')
            (root / "tercel/ops/a_out_variants.h").write_text(
                "TERCEL_DEFINE_APART_OUT(cat, (x), (x))\nTERCEL_OUT(cross, (x), (x))\nTERCEL_DEFINE_OUT(sum, (x), (x))\n"
                "TERCEL_DEFINE_APART_VALUES_OUT(max, (x), (x))\n")
            command = [sys.executable, "-B", ROOT / "tools/check_op_rows.py", root]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual([line.split(": ")[1].split("_out")[0] for line in done.stderr.splitlines()], ["cross", "max"])

    def test_the_project_is_complete(self):
        command = [sys.executable, "-B", ROOT / "tools/check_op_rows.py"]
        self.assertEqual(subprocess.run(command, check=False).returncode, 0)


if __name__ == "__main__":
    unittest.main()
