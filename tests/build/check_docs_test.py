"""tools/check_docs.py on made-up headers, and what tools/make_op_docs.py makes of them."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = """// A header.
#pragma once

#define TERCEL_UNARY(name) \\
  Tensor name(const Tensor& x);

namespace tercel {

/** One. */
TERCEL_API Tensor one(const Tensor& x, IntSpan sizes = {}, double y = 1);
inline Tensor one(const Tensor& x, std::initializer_list<int64_t> sizes) {
  return one(x, IntSpan(sizes));
}
Tensor kin(int64_t (*f)(int64_t));

namespace detail {
void hidden();
}

/** Two
 * lines. */
template <class T>
requires(sizeof(T) > 1) T two(T x) { return x; }
Tensor three();  ///< Three.

/** A pair. */
struct Pair {
  int a() const;
};
Pair four(const Tensor& x = f({1, 2}));
/** Five. */
TERCEL_UNARY(five)
inline Tensor operator+(const Tensor& a, const Tensor& b) { return one(a); }
using Six = int;
/** Eight. */
TERCEL_OP_API(method, out)
Tensor eight(const Tensor& x, int64_t n = 1);
TERCEL_OP_API(method) Tensor nine(const Tensor& x);

}  // namespace tercel

namespace tercel::linalg {
// Of a matrix.
Tensor seven();
}
"""


class CheckDocs(unittest.TestCase):
    def run_on(self, header, name="x.h"):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            path = root / "tercel/ops" / name
            path.parent.mkdir(parents=True)
            path.write_text(header)
            result = subprocess.run([sys.executable, ROOT / "tools/check_docs.py", root], capture_output=True, text=True,
                                    check=False)
            subprocess.run([sys.executable, ROOT / "tools/make_op_docs.py", root, root / "out.inc"], check=True)
            lines = (root / "out.inc").read_text().splitlines()
            return result, dict(json.loads(f"[{line[1:-2]}]") for line in lines)

    def test_documented_header(self):
        result, docs = self.run_on(HEADER)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(docs, {"one": "One.", "kin": "One.", "two": "Two lines.", "three": "Three.", "four": "A pair.",
                                "five": "Five.", "operator+": "Five.", "eight": "Eight.", "nine": "Eight.", "linalg_seven": "Of a matrix."})

    def test_silent_functions_are_named(self):
        for line, text in ((10, "/** One. */\n"), (32, "/** Five. */\n"), (44, "// Of a matrix.\n")):
            result, _ = self.run_on(HEADER.replace(text, "\n"))
            self.assertEqual(result.returncode, 1)
            self.assertIn(f"tercel/ops/x.h:{line}: ", result.stderr)

    def test_private_headers_may_be_silent(self):
        result, docs = self.run_on("namespace tercel {\nvoid f();\n}\n", "x_impl.h")
        self.assertEqual((result.returncode, docs), (0, {}))

    def test_ours(self):
        result = subprocess.run([sys.executable, ROOT / "tools/check_docs.py"], capture_output=True, text=True, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
