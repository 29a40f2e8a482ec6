"""tools/check_semantics.py on made-up pages, and on ours."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run_on(root):
    command = [sys.executable, ROOT / "tools/check_semantics.py", root]
    return subprocess.run(command, capture_output=True, text=True, check=False)


class CheckSemantics(unittest.TestCase):
    def run_on_rows(self, *rows):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "docs/design").mkdir(parents=True)
            (root / "docs/guide").mkdir()
            (root / "docs/guide/th.md").write_text("```cpp\nint x;\n```\n")
            (root / "tests/core").mkdir(parents=True)
            (root / "tests/core/a_test.cpp").write_text("TEST(A, B) {}\nTYPED_TEST(C, D) {}\nRC_GTEST_PROP(E, F, ()) {}\n")
            (root / "python/tests").mkdir(parents=True)
            (root / "python/tests/test_a.py").write_text("def test_b():\n")
            text = "\n".join(["## What shows it", "| item | test |", "|---|---|", *rows, ""])
            (root / "docs/design/semantics.md").write_text(text)
            return run_on(root)

    def test_tests_that_exist_are_accepted(self):
        names = ["A.B", "C.D", "E.F", "guide.th", "python/tests/test_a.py::test_b"]
        result = self.run_on_rows(*(f"| `code` in an item | `{name}` |" for name in names))
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_tests_that_do_not_exist_are_refused(self):
        for name in ("A.C", "guide.other", "python/tests/test_a.py::test_c", "python/tests/test_later.py::test_x"):
            result = self.run_on_rows(f"| item | `A.B`, `{name}` |")
            self.assertEqual(
                (result.returncode, result.stderr), (1, f"docs/design/semantics.md:4: no such test: {name}\n")
            )

    def test_items_without_a_test_are_refused(self):
        self.assertIn("no test", self.run_on_rows("| `item` | later |").stderr)
        self.assertIn("no item", self.run_on_rows().stderr)

    def test_ours(self):
        result = run_on(ROOT)
        self.assertEqual((result.returncode, result.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
