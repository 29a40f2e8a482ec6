#!/usr/bin/env python3
"""tools/make_ops.py writes methods and out variants from declarations."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DECLARE = """
#define TERCEL_TWICE(name)                            \\
  TERCEL_OP_API(method) Tensor name(const Tensor& x); \\
  TERCEL_OP_API(method) const Tensor& name##_(const Tensor& x);
"""
HEADER = """
#include "tercel/core/tensor.h"

#define TERCEL_ALIAS(alias, name) TERCEL_OP_API(method) inline Tensor alias(const Tensor& x) { return name(x); }

namespace tercel {

struct MinAndMax {
  Tensor min, max;  ///< of a dimension
};
enum class Kind : uint8_t { A, B };

/** A comment that says TERCEL_OP_API(method) Tensor nothing(const Tensor& x); */
TERCEL_TWICE(exp)
TERCEL_ALIAS(exponential, exp)
TERCEL_API Tensor plain(const Tensor& x);
TERCEL_OP_API(method, out, out_dtype)
Tensor sum(const Tensor& x, IntSpan dims = {}, std::optional<std::pair<int, int>> pair = {},
           ScalarType dtype = ScalarType::Undefined);
TERCEL_OP_API(method) Tensor polygamma(int64_t n, const Tensor& x);
TERCEL_OP_API(method) Tensor diff(const Tensor& x, const Tensor& prepend = Tensor(), Kind kind = Kind::A);
TERCEL_OP_API(method, out_apart) MinAndMax aminmax(const Tensor& x, int64_t dim);
TERCEL_OP_API(out_apart) ValuesAndIndices topk(const Tensor& x, int64_t k);
TERCEL_OP_API(out) std::vector<Tensor> unbind_copy(const Tensor& x);
TERCEL_OP_API(out) Tensor full(IntSpan sizes, Scalar value, TensorOptions options = {});
TERCEL_OP_API(out_exact, autocast_f32) Tensor inverse(const Tensor& a);
TERCEL_API const Tensor& addmm_out(const Tensor& out, const Tensor& x);
TERCEL_OP_API(method, autocast_lower) Tensor addmm(const Tensor& x);
TERCEL_OP_API(method) const Tensor& addmm_(const Tensor& x);

namespace linalg {
TERCEL_OP_API(method, out, autocast_f32) Tensor cholesky(const Tensor& a);
}  // namespace linalg

}  // namespace tercel
"""


class MakeOps(unittest.TestCase):
    def make(self, header):
        """Exit code, error text, and the files' text with one space between words."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "tercel/ops/elementwise").mkdir(parents=True)
            (root / "tercel/ops/elementwise/declare.h").write_text(DECLARE)
            (root / "tercel/ops/x").mkdir()
            (root / "tercel/ops/x/x.h").write_text(header)
            command = [sys.executable, "-B", ROOT / "tools/make_ops.py", root, root / "out"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            files = {path.name: " ".join(path.read_text().split()) for path in (root / "out").rglob("*.*")}
            return done.returncode, done.stderr, files

    def test_methods(self):
        code, text, files = self.make(HEADER)
        self.assertEqual((code, text), (0, ""))
        header, source = files["tensor_methods.h"], files["tensor_methods.cpp"]
        for line in (
                "enum class Kind : uint8_t; struct MinAndMax;",
                "Tensor exp() const; Tensor& exp_() const;",
                "Tensor exponential() const;",
                "Tensor sum(IntSpan dims = {}, std::optional<std::pair<int, int>> pair = {}, "
                "ScalarType dtype = ScalarType::Undefined) const;",
                "Tensor polygamma(int64_t n) const;",
                "Tensor diff(const Tensor& prepend = no_tensor(), Kind kind = Kind::A) const;",
                "MinAndMax aminmax(int64_t dim) const;",
                "Tensor cholesky() const;"):
            self.assertIn(line, header)
        self.assertNotIn("plain", header)
        self.assertNotIn("nothing", header)
        for line in (
                '#include "tercel/ops/x/x.h"',
                "Tensor TensorMethods::polygamma(int64_t n) const { "
                "return tercel::polygamma(n, static_cast<const Tensor&>(*this)); }",
                "Tensor& TensorMethods::exp_() const { "
                "return const_cast<Tensor&>(tercel::exp_(static_cast<const Tensor&>(*this))); }",
                "return tercel::linalg::cholesky(static_cast<const Tensor&>(*this));"):
            self.assertIn(line, source)

    def test_out_variants(self):
        code, text, files = self.make(HEADER)
        self.assertEqual((code, text), (0, ""))
        header, source = files["out_variants.h"], files["out_variants.cpp"]
        for line in (
                "TERCEL_API const Tensor& sum_out(const Tensor& out, const Tensor& x, IntSpan dims = {}, ",
                "TERCEL_API MinAndMax aminmax_out(const Tensor& min, const Tensor& max, const Tensor& x, int64_t dim);",
                "TERCEL_API std::vector<Tensor> unbind_copy_out(Span<Tensor> out, const Tensor& x);",
                "TERCEL_API const Tensor& full_out(const Tensor& out, IntSpan sizes, Scalar value);"):
            self.assertIn(line, header)
        for line in (
                'return put_out("sum", out, tercel::sum(x, dims, pair, dtype_for_out(dtype, out)));',
                'check_out_apart("aminmax", {min, max}, {x, dim}); const auto [result0, result1] = tercel::aminmax(x, dim);',
                'check_out_apart("topk", {values, indices}, {x, k}); '
                'return put_out("topk", values, indices, tercel::topk(x, k));',
                'return put_out("unbind_copy", out, Span<Tensor>(tercel::unbind_copy(x)));',
                'return put_out("full", out, tercel::full(sizes, value, out.dtype()));',
                'return put_linalg_out("inverse", out, tercel::inverse(a));',
                'return put_linalg_out("linalg_cholesky", out, tercel::linalg::cholesky(a));'):
            self.assertIn(line, source)

    def test_autocast(self):
        self.assertEqual(self.make(HEADER)[2]["autocast_ops.inc"],
                         '{"addmm", AutocastPolicy::Lower}, {"inverse", AutocastPolicy::Float32}, '
                         '{"linalg_cholesky", AutocastPolicy::Float32},')

    def test_layouts(self):
        self.assertEqual(self.make(HEADER)[2]["layout_any_ops.inc"], "")
        files = self.make("namespace tercel {\nTERCEL_OP_API(layout_any) ScalarType result_type(const Tensor& x);\n}\n")[2]
        self.assertEqual(files["layout_any_ops.inc"], '"result_type",')
        files = self.make("namespace tercel {\nTERCEL_OP_API(layout_sparse) Tensor sum(const Tensor& x);\n"
                          "TERCEL_OP_API(layout_sparse) const Tensor& zero_(const Tensor& x);\n}\n")[2]
        self.assertEqual(files["layout_sparse_ops.inc"], '"sum", "zero_",')

    def assert_refused(self, declaration, message):
        code, text, files = self.make(f"namespace tercel {{\n{declaration}\n}}\n")
        self.assertEqual((code, files), (1, {}))
        self.assertIn(message, text)
        self.assertIn("tercel/ops/x/x.h", text)

    def test_errors(self):
        self.assert_refused("TERCEL_OP_API(methd) Tensor f(const Tensor& x);", "f(): unknown columns ['methd']")
        self.assert_refused("TERCEL_OP_API(method) Tensor f(int64_t n);", "f() has the column 'method' but no parameter")
        self.assert_refused("TERCEL_OP_API(out) bool f(const Tensor& x);", "f() has an out column, but its result is bool")
        self.assert_refused("TERCEL_OP_API(autocast_f32) Tensor f(const Tensor& x); TERCEL_API Tensor f(int64_t n);",
                            "f() has the columns [] among ['autocast_f32', ")
        self.assert_refused("TERCEL_OP_API(out) Tensor f(const Tensor&);", "cannot read the parameter")


if __name__ == "__main__":
    unittest.main()
