"""tools/check_links.py on made-up layers."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CXX = os.environ.get("CXX", "g++")


class CheckLinks(unittest.TestCase):
    def run_on(self, layers):
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder)
            (build / "lib").mkdir()
            for layer, text in layers.items():
                source, member = build / f"{layer}.cpp", build / f"{layer}.o"
                source.write_text(f"namespace tercel {{ {text} }}")
                subprocess.run([CXX, "-c", source, "-o", member], check=True)
                subprocess.run(["ar", "rcs", build / "lib" / f"libtercel_{layer}.a", member], check=True)
            command = [sys.executable, ROOT / "tools/check_links.py", build]
            return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_downward_calls_are_accepted(self):
        result = self.run_on(
            {
                "util": "void low() {}",
                "core": "void low(); void middle() { low(); }",
                "data": "void middle(); void read() { middle(); }",
            }
        )
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_upward_calls_are_refused(self):
        result = self.run_on({"core": "void add(); void middle() { add(); }", "ops": "void add() {}"})
        self.assertEqual((result.returncode, result.stderr), (1, "core (core.o): defined in ops only: tercel::add()\n"))

    def test_data_calls_core_and_util_only(self):
        result = self.run_on({"data": "void add(); void read() { add(); }", "ops": "void add() {}"})
        self.assertEqual((result.returncode, result.stderr), (1, "data (data.o): defined in ops only: tercel::add()\n"))

    def test_missing_definitions_are_refused(self):
        result = self.run_on({"core": "void add(); void middle() { add(); }"})
        self.assertEqual((result.returncode, result.stderr), (1, "core (core.o): defined nowhere: tercel::add()\n"))


if __name__ == "__main__":
    unittest.main()
