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

# {file: [(old, new)]}; a file without `old` is new.
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
    "tercel/ops/reduce/reduce_ops.h": [
        ("struct AbsMax {", """struct CubeSum : SumOf {
  template <class V>
  static TERCEL_HD V map(V x) {
    return x * x * x;
  }
};
struct AbsMax {"""),
        ("op::NanSum>;", "op::NanSum, op::CubeSum>;")],
    "tercel/ops/reduce/reduce.h": [
        ("struct MinAndMax {", """/** The sum of third powers of floating numbers. */
TERCEL_OP_API(method, python, out) Tensor sum_of_cubes(const Tensor& x, IntSpan dim = {}, bool keepdim = false);
struct MinAndMax {""")],
    "tercel/ops/reduce/reduce.cpp": [
        ("Tensor nanmean(", """Tensor sum_of_cubes(const Tensor& x, IntSpan dim, bool keepdim) {
  check_floating_point("sum_of_cubes", x);
  const DimMask mask = dim_mask("sum_of_cubes", x, dim);
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = to(reduce(op_index<op::CubeSum>, compute_of(x.dtype()), x, mask, keepdim), x.dtype());
  }
  if (should_record(x))
    record("SumOfCubesBackward0", out, {x}, [x = SavedTensor(x), mask, keepdim](BackwardCall& call) {
      const Tensor grad = with_reduced_dims(call.grad(), x.get().sizes().size(), mask, keepdim);
      call.set(0, mul(grad, mul(square(x.get()), 3)));
    });
  return out;
}
Tensor nanmean(""")],
    "tests/ops/reduce/reduce_rows.h": [
        ("""      reduce_row(
          "mean", {9, 40},""", """      reduce_row(
          "sum_of_cubes", {9, 20}, {1}, false, [](const Tensors& in) { return sum_of_cubes(in[0], {1}); },
          [](const std::vector<double>& v) {
            double sum = 0;
            for (const double x : v) sum += x * x * x;
            return sum;
          },
          floats),
      reduce_row(
          "mean", {9, 40},""")],
}
SINGLE = {
    "tercel/ops/nn/alternate.h": [(None, """// Signs that alternate.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** x with every second element, in row-major order, negated; float32 or float64. */
TERCEL_OP_API(method, python, python_nn, out) Tensor alternate(const Tensor& x);

}  // namespace tercel
""")],
    "tercel/ops/nn/alternate.cpp": [(None, """#include "tercel/ops/nn/alternate.h"

#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/nn/alternate_kernels.h"
#include "tercel/util/parallel.h"
#include "tercel/util/profile.h"

namespace tercel {

namespace {

constinit const KernelTable<AlternateFn> alternate_kernels = TERCEL_CPU_KERNELS(alternate);

}  // namespace

Tensor alternate(const Tensor& x) {
  const ProfileRange range("alternate", RangeKind::Op);
  check_floating_point("alternate", x);
  Tensor out;
  {
    const NoRecordGuard no_record;
    const Tensor input = contiguous(x);
    out = empty(x.sizes(), x.options());
    const AlternateLoop loop{compute_of(x.dtype()), input.data_ptr(), out.data_ptr()};
    const auto kernel = alternate_kernels[x.device()];
    parallel_for(0, x.numel(), 4096, [&](int64_t begin, int64_t end) { kernel(loop, begin, end); });
  }
  if (should_record(x))
    record("AlternateBackward0", out, {x}, [](BackwardCall& call) { call.set(0, alternate(call.grad())); });
  return out;
}

}  // namespace tercel
""")],
    "tercel/ops/nn/alternate_kernels.h": [(None, """#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"
#include "tercel/ops/common/elementwise_loop_impl.h"

namespace tercel {

/** Contiguous float or double. */
struct AlternateLoop {
  Compute compute;
  const void* x;
  void* out;
};
/** Elements [begin, end). */
using AlternateFn = void(const AlternateLoop& loop, int64_t begin, int64_t end);

TERCEL_DECLARE_KERNELS(AlternateFn, alternate)

}  // namespace tercel
""")],
    "tercel/ops/nn/cpu/alternate_kernels.cpp": [(None, """#include "tercel/ops/nn/alternate_kernels.h"

namespace tercel::TERCEL_ISA {

namespace {

template <class T>
void run(const AlternateLoop& loop, int64_t begin, int64_t end) {
  const T* x = static_cast<const T*>(loop.x);
  T* out = static_cast<T*>(loop.out);
  for (int64_t i = begin; i < end; ++i) out[i] = i % 2 == 0 ? x[i] : -x[i];
}

}  // namespace

void alternate(const AlternateLoop& loop, int64_t begin, int64_t end) {
  if (loop.compute == Compute::F64) return run<double>(loop, begin, end);
  run<float>(loop, begin, end);
}

}  // namespace tercel::TERCEL_ISA
""")],
    "tests/ops/nn/alternate_rows.h": [(None, """// Conformance rows of alternate(); see Note [Conformance rows].
#pragma once

#include <vector>

#include "tercel/ops/nn/alternate.h"
#include "tests/ops/rows.h"

namespace tercel::test {

inline std::vector<Row> alternate_rows() {
  Row row;
  row.name = "alternate";
  row.inputs = {{{5, 7}}};
  row.run = [](const std::vector<Tensor>& in) { return alternate(in[0]); };
  row.reference = [](const std::vector<Tensor>& in) {
    std::vector<double> v = values_of(in[0]);
    for (size_t i = 1; i < v.size(); i += 2) v[i] = -v[i];
    return make(in[0].sizes().to_vector(), kFloat64, v);
  };
  row.dtypes = {kFloat32, kFloat64};
  return {row};
}

}  // namespace tercel::test
""")],
    "tests/ops/nn/alternate_test.cpp": [(None, """#include "tests/ops/conformance.h"
#include "tests/ops/nn/alternate_rows.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Alternate, Conformance, ::testing::ValuesIn(alternate_rows()), row_name);

}  // namespace tercel::test
""")],
    "tercel/ops/ops.h": [
        ('#include "tercel/ops/nn/attention.h"\n', '#include "tercel/ops/nn/alternate.h"\n#include "tercel/ops/nn/attention.h"\n')],
    "tests/ops/all_rows.h": [
        ('#include "tests/ops/nn/batch_norm_rows.h"\n',
         '#include "tests/ops/nn/alternate_rows.h"\n#include "tests/ops/nn/batch_norm_rows.h"\n'),
        ("                          reduce_rows,\n", "                          reduce_rows,\n                          alternate_rows,\n")],
}


def promised(kind):
    """How many files the page says that an op of this kind takes."""
    words = {"three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8}
    page = " ".join((ROOT / "docs/design/ops.md").read_text().split())
    return words[re.search(rf"(\w+) (?:files )?for an? {kind}", page)[1]]


def python_includes():
    """Include folders of Python and nanobind; None where no interpreter has both."""
    ask = "import nanobind, sysconfig; print(nanobind.include_dir()); print(sysconfig.get_paths()['include'])"
    for python in (sys.executable, ROOT / "build/venv/bin/python"):
        if pathlib.Path(python).exists():
            done = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False)
            if done.returncode == 0 and (pathlib.Path(done.stdout.split("\n")[1]) / "Python.h").exists():
                return done.stdout.split("\n")[:2]
    return None


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
            for old, new in changes:
                if old is None:
                    self.assertFalse(path.exists(), name)
                    path.write_text(new)
                    continue
                text = path.read_text()
                self.assertEqual(text.count(old), 1, f"{name}: '{old}'")
                path.write_text(text.replace(old, new))

    def tool(self, name, *arguments):
        done = subprocess.run([sys.executable, "-B", ROOT / "tools" / name, self.root, *arguments], capture_output=True,
                              text=True, check=False)
        return done.returncode, done.stderr

    def compiles(self, source, *options):
        command = [os.environ.get("CXX", "c++"), "-std=c++20", "-fsyntax-only", "-Wall", "-Werror", "-fvisibility=hidden",
                   f"-I{self.root}", f"-I{self.root}/out", *options, self.root / source]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[:4000])

    def kernels_compile(self, source):
        self.compiles(source, "-DTERCEL_ISA=cpu_generic", "-DTERCEL_ISA_LEVEL=0", "-Dxsimd=xsimd_generic")

    def entry(self, name):
        """The derived entry of an op, after its source was compiled where that is possible."""
        self.assertEqual(self.tool("make_op_entries.py", self.root / "out/op_entries.cpp"), (0, ""))
        includes = python_includes()
        if includes:
            self.compiles("out/op_entries.cpp", *(f"-isystem{folder}" for folder in includes))
        text = (self.root / "out/op_entries.cpp").read_text()
        return re.search(rf'entry\("({name}\([^"]*\))"', text)[1]

    def generated(self):
        self.assertEqual(self.tool("make_ops.py", self.root / "out"), (0, ""))
        return (self.root / "out/tercel/core/tensor_methods.h").read_text(), (self.root / "out/tercel/ops/out_variants.h").read_text()

    def added(self, edits, row_file, missing):
        """Adds the op; its row last, since an op without one is found."""
        row = edits[row_file]
        self.edit({name: changes for name, changes in edits.items() if changes is not row})
        self.assertEqual(self.tool("check_op_rows.py"), (1, f"{missing} has no row in tests/ops/**/*_rows.h\n"))
        self.edit({row_file: row})
        self.assertEqual(self.tool("check_op_rows.py"), (0, ""))
        return self.generated()

    def test_unary(self):
        self.assertEqual(len(UNARY), promised("unary op"))
        self.edit(UNARY)
        methods, _ = self.generated()
        self.assertIn("  Tensor cubed() const;\n  Tensor& cubed_() const;\n", methods)
        self.assertEqual(self.tool("check_op_rows.py"), (0, ""))
        self.compiles("tercel/ops/elementwise/unary.cpp")
        self.compiles("tests/ops/elementwise/unary_test.cpp")

    def test_reduction(self):
        self.assertEqual(len(REDUCTION), promised("reduction"))
        methods, variants = self.added(REDUCTION, "tests/ops/reduce/reduce_rows.h", "tercel/ops/reduce/reduce.h: sum_of_cubes()")
        self.assertIn("  Tensor sum_of_cubes(IntSpan dim = {}, bool keepdim = false) const;\n", methods)
        self.assertIn("sum_of_cubes_out(const Tensor& out, const Tensor& x, IntSpan dim = {}, bool keepdim = false);", variants)
        self.compiles("tercel/ops/reduce/reduce.cpp")
        self.kernels_compile("tercel/ops/reduce/cpu/reduce_kernels.cpp")
        self.compiles("tests/ops/reduce/reduce_test.cpp")
        self.assertEqual(self.entry("sum_of_cubes"),
                         "sum_of_cubes(Tensor input, int[1]? dim=None, bool keepdim=False, *, Tensor out=None)")
        self.tool("make_op_docs.py", self.root / "op_docs.inc")
        self.assertIn('{"sum_of_cubes", "The sum of third powers of floating numbers."}', (self.root / "op_docs.inc").read_text())

    def test_single(self):
        self.assertEqual(len(SINGLE), promised("op with its own kernel"))
        methods, variants = self.added(SINGLE, "tests/ops/nn/alternate_rows.h", "tercel/ops/nn/alternate.h: alternate()")
        self.assertIn("  Tensor alternate() const;\n", methods)
        self.assertIn("alternate_out(const Tensor& out, const Tensor& x);", variants)
        self.compiles("tercel/ops/nn/alternate.cpp")
        self.kernels_compile("tercel/ops/nn/cpu/alternate_kernels.cpp")
        self.compiles("tests/ops/nn/alternate_test.cpp")
        self.assertEqual(self.entry("alternate"), "alternate(Tensor input, *, Tensor out=None)")


if __name__ == "__main__":
    unittest.main()
