#!/usr/bin/env python3
"""tools/make_op_entries.py generates entries of the Python package from declarations."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HEADER = """
namespace tercel {
struct MinAndMax {
  Tensor min, max;
};
TERCEL_OP_API(method, python, cheap) Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length);
TERCEL_OP_API(method, python, cheap) Tensor narrow(const Tensor& x, int64_t dim, const Tensor& start, int64_t length);
TERCEL_OP_API(method, python, out, out_dtype, keyword = dtype)
Tensor sum(const Tensor& x, IntSpan dim = {}, bool keepdim = false, ScalarType dtype = ScalarType::Undefined);
TERCEL_OP_API(method, python_method) const Tensor& addmm_(const Tensor& x, const Tensor& mat1, Scalar beta = 1);
TERCEL_OP_API(python) Tensor mm(const Tensor& a, const Tensor& b);
TERCEL_API const Tensor& mm_out(const Tensor& out, const Tensor& a, const Tensor& b);
TERCEL_OP_API(python, python_nn, out, no_python_out)
Tensor pool2d(const Tensor& x, IntSpan kernel_size, IntSpan padding = {0}, double eps = 1, const Tensor& bias = {});
TERCEL_OP_API(python, out_exact) MinAndMax aminmax(const Tensor& x, std::optional<int64_t> dim = std::nullopt);
TERCEL_OP_API(python_hidden, out) std::vector<Tensor> parts(Span<Tensor> tensors, std::string_view mode = "ij");
TERCEL_OP_API(python) Tensor window(int64_t length, TensorOptions options = {});
TERCEL_API Tensor unbound(const Tensor& x);
namespace linalg {
TERCEL_OP_API(python, out) Tensor inv(const Tensor& A, Generator& generator = default_generator());
}
}
"""


class MakeOpEntries(unittest.TestCase):
    def make(self, header):
        """Exit code, error text, and the entries, with one space between words."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "tercel/ops/x").mkdir(parents=True)
            (root / "tercel/ops/x/x.h").write_text(header)
            command = [sys.executable, "-B", ROOT / "tools/make_op_entries.py", root, root / "out.cpp"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            text = (root / "out.cpp").read_text() if done.returncode == 0 else ""
            return done.returncode, done.stderr, " ".join(text.split())

    def test_entries(self):
        code, text, source = self.make(HEADER)
        self.assertEqual((code, text), (0, ""))
        self.assertIn('#include "tercel/ops/x/x.h"', source)
        for entry in (
                'entry("narrow(Tensor input, int dim, Tensor start, int length)", [](const Tensor& x, int64_t dim, const Tensor& start, '
                "int64_t length) { return tercel::narrow(x, dim, start, length); }, kFunction | kMethod | kCheap), "
                'entry("narrow(Tensor input, int dim, int start, int length)"',
                'entry("sum(Tensor input, int[1]? dim=None, bool keepdim=False, *, dtype dtype=None, Tensor out=None)", '
                "[](const Tensor& x, const std::optional<DimVector>& dim, bool keepdim, std::optional<ScalarType> dtype, "
                'const Tensor& out) { return into("sum", out, tercel::sum(x, span_of(dim), keepdim, dtype_of(dtype, out))); }, '
                "kFunction | kMethod)",
                'entry("addmm_(Tensor input, Tensor mat1, Scalar beta=1)", [](const Tensor& x, const Tensor& mat1, Scalar beta) '
                "-> Tensor { return tercel::addmm_(x, mat1, beta); }, kMethod)",
                'entry("mm(Tensor input, Tensor other, *, Tensor out=None)"',
                'entry("pool2d(Tensor input, int[2] kernel_size, int[2] padding=0, float eps=1.0, Tensor bias=None)"',
                "kFunction | kNn)",
                '{ const auto result = tercel::aminmax(x, dim); return into_exact("aminmax", out, '
                'Named<2>{{"min", "max"}, {result.min, result.max}}); }',
                'entry("_parts(Tensor[] tensors, str mode=\\"ij\\", *, Tensor[] out=None)", [](const std::vector<Tensor>& tensors, '
                "std::string_view mode, const std::optional<std::vector<Tensor>>& out) { return into_each(",
                'entry("window(int length, *, dtype dtype=None, layout layout=None, device device=None, bool pin_memory=False, '
                'bool requires_grad=False)", [](int64_t length, FactoryOptions options) { return tercel::window(length, options.resolve()',
                'entry("linalg_inv(Tensor A, Generator? generator=None, *, Tensor out=None)", [](const Tensor& A, Generator& generator, '
                'const Tensor& out) { return into_exact("linalg_inv", out, tercel::linalg::inv(A, generator)); }, kLinalg)'):
            self.assertIn(entry, source)
        self.assertNotIn("unbound", source)

    def test_errors(self):
        for declaration, message in (
                ("TERCEL_OP_API(python) Tensor f(const Tensor& x, Reduction reduction);", "no entry can be derived for f()"),
                ("TERCEL_OP_API(python, keyword = y) Tensor f(const Tensor& x);", "f() has no parameter 'y'"),
                ("TERCEL_OP_API(python) Tensor f(double x = kOne);", "the default 'kOne' is no number")):
            code, text, _ = self.make(f"namespace tercel {{\n{declaration}\n}}\n")
            self.assertEqual(code, 1)
            self.assertIn(message, text)
            self.assertIn("tercel/ops/x/x.h", text)


if __name__ == "__main__":
    unittest.main()
