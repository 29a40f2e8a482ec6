"""tools/check_files.py on made-up trees."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run_on(files):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        command = [sys.executable, ROOT / "tools" / "check_files.py", folder]
        return subprocess.run(command, capture_output=True, text=True, check=False)


def header(lines):
    return "#pragma once\n" + "//\n" * (lines - 1)


class CheckFiles(unittest.TestCase):
    def assert_result(self, files, status, stderr):
        result = run_on(files)
        self.assertEqual((result.returncode, result.stderr), (status, stderr))

    def test_short_files_pass_in_silence(self):
        self.assert_result({"tercel/ops/x.cpp": "//\n" * 600, "tercel/ops/x.h": header(300)}, 0, "")

    def test_long_files_are_a_warning(self):
        files = {"cli/x.cpp": "//\n" * 601, "tercel/ops/x.h": header(301), "tests/ops/y.cpp": "//\n" * 1000,
                 "tools/z.py": "#\n" * 700, "tercel/ops/y_impl.h": header(500)}
        self.assert_result(
            files, 0,
            "tercel/ops/x.h: warning: 301 lines, more than 300: does it cover more than one subject?\n"
            "tercel/ops/y_impl.h: warning: 500 lines, more than 300: does it cover more than one subject?\n"
            "cli/x.cpp: warning: 601 lines, more than 600: does it cover more than one subject?\n"
            "tests/ops/y.cpp: warning: 1000 lines, more than 600: does it cover more than one subject?\n"
            "tools/z.py: warning: 700 lines, more than 600: does it cover more than one subject?\n")

    def test_longer_files_are_refused(self):
        files = {"tercel/ops/x.cpp": "//\n" * 1001, "tercel/ops/x.h": header(501), "tercel/ops/y.cpp": "//\n" * 601}
        self.assert_result(
            files, 1,
            "tercel/ops/y.cpp: warning: 601 lines, more than 600: does it cover more than one subject?\n"
            "tercel/ops/x.cpp: 1001 lines, at most 1000: move each subject to its own file\n"
            "tercel/ops/x.h: 501 lines, at most 500: move each subject to its own file\n")

    def test_includes(self):
        self.assert_result(
            {"tercel/ops/x.h": '#pragma once\n#include <regex>\n#include <zlib.h>\n#include "y.h"\n',
             "tercel/ops/y.h": "#include <vector>\n",
             "tercel/ops/y_impl.h": "#pragma once\n#include <zlib.h>\n"}, 1,
            "tercel/ops/x.h:2: a header of the library does not include <regex>: it is slow to compile\n"
            "tercel/ops/x.h:3: <zlib.h>: a public header includes only the standard library and Tercel\n"
            'tercel/ops/x.h:4: "y.h": includes of Tercel start at the root, others use angle brackets\n'
            "tercel/ops/y.h: no #pragma once\n")


if __name__ == "__main__":
    unittest.main()
