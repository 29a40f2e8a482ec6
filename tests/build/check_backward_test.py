#!/usr/bin/env python3
"""tools/check_backward.py finds backward functions that hold a bare Tensor."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HEADER = """
struct Inner { int64_t n; std::vector<Tensor> many; };
struct Outer { DimVector sizes; std::unique_ptr<Inner> inner; };
struct Plain { DimVector sizes, strides; ScalarType dtype = kFloat32; Tensor (*function)(const Tensor&); };
using Tensors = std::vector<Tensor>;
"""


class CheckBackward(unittest.TestCase):
    def check(self, source):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "tercel/ops").mkdir(parents=True)
            (root / "tercel/ops/x.h").write_text(HEADER)
            (root / "tercel/ops/x.cpp").write_text(source)
            command = [sys.executable, "-B", ROOT / "tools/check_backward.py", root]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            return done.returncode, done.stderr

    def captures(self, captures, before="", parameters=""):
        """The tool's errors for a lambda with these captures in an op."""
        return self.check(f"Tensor op(const Tensor& x{parameters}) {{\n  {before}\n"
                          f'  record("Op", out, {{x}}, [{captures}](BackwardCall& call) {{ call.set(0, call.grad()); }});\n}}\n')

    def test_what_is_allowed(self):
        for captures, before, parameters in [
            ("", "", ""),
            ("x = SavedTensor(x), out = SavedTensor::output(out), b = SavedTensor::when(is_tracked(x), x)", "", ""),
            ("many = SavedTensors(list)", "", ""),
            ("sizes = DimVector(x.sizes()), dim, n, dtype = x.dtype()", "const auto n = x.size(dim);", ", int64_t dim"),
            ("plain", "Plain plain = plan_of(x);", ""),
            ("dims = plain.strides", "", ", const Plain& plain"),
            ("a, b", "const auto a = static_cast<size_t>(1), b = static_cast<size_t>(2);", ""),
            ("saved = std::move(saved)", "std::vector<SavedTensor> saved;", ""),
            ("make", "const auto make = [n](const Tensor& t) { return t; };", ", int64_t n"),
            ("hook", "", ", const Callable<Tensor(const Tensor&)>& hook"),
            ("w", "// a Tensor w;\n  double w = 0;", ""),
        ]:
            with self.subTest(captures):
                self.assertEqual(self.captures(captures, before, parameters), (0, ""))

    def test_what_is_not(self):
        for captures, before, parameters in [
            ("x", "", ""),
            ("y = x", "", ""),
            ("y", "const Tensor y = exp(x);", ""),
            ("y = std::move(y)", "Tensor y = exp(x);", ""),
            ("many", "", ", const std::vector<Tensor>& many"),
            ("many", "", ", const Tensors& many"),
            ("outer = std::move(outer)", "Outer outer;", ""),
            ("outer = Outer(x)", "", ""),
            ("lists = outer.inner", "Outer outer;", ""),
            ("make", "const auto make = [x](const Tensor& t) { return mul(t, x); };", ""),
            ("y", "const auto y = x;", ""),
        ]:
            with self.subTest(captures + before):
                code, text = self.captures(captures, before, parameters)
                self.assertEqual(code, 1)
                self.assertRegex(text, r"tercel/ops/x.cpp:3: a backward function captures .* bare Tensor")

    def test_what_cannot_be_told(self):
        for captures in ("=", "&", "&x", "y = unknown(x)", "unheard_of"):
            with self.subTest(captures):
                self.assertEqual(self.captures(captures)[0], 1)

    def test_structs_and_nodes(self):
        self.assertEqual(self.check("struct F {\n  SavedTensor x;\n  Plain p;\n  void operator()(BackwardCall& call);\n};")[0], 0)
        code, text = self.check("struct F {\n  Inner x;\n  void operator()(BackwardCall& call) const;\n};")
        self.assertEqual((code, text.split(": ")[1]), (1, "F::x holds a bare Tensor (Inner::many)"))
        code, text = self.check("class N final : public Node {\n public:\n  void apply(BackwardCall& call) override;\n"
                                " private:\n  DimVector sizes_;\n  Tensor x_;\n};")
        self.assertEqual((code, text.split(": ")[1]), (1, "N::x_ holds a bare Tensor (Tensor)"))

    def test_that_it_finds_something(self):
        self.assertIn("no backward function", self.check("int x;")[1])

    def test_the_project(self):
        command = [sys.executable, "-B", ROOT / "tools/check_backward.py"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
