"""tools/run_tidy.py: a source that passed is checked again when anything that it depends on has changed, and only then."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"

# The fake clang-tidy refuses a source that contains "bad" and logs its calls; clang++ lists the source and a.h.
TIDY = """#!/bin/sh
if [ "$1" = --version ]; then echo "version $TIDY_VERSION"; exit 0; fi
echo "$2" >> "$TIDY_LOG"
! grep -q bad "$2"
"""
CLANG = """#!/bin/sh
for source; do :; done
echo "x: $source $(dirname "$source")/a.h"
"""


class RunTidy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name)
        for name, text in (("clang-tidy-14", TIDY), ("clang++-14", CLANG)):
            program = self.top / "bin" / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(text)
            program.chmod(0o755)
        self.clone("first")

    def clone(self, name):
        self.root = self.top / name
        (self.root / "tools").mkdir(parents=True)
        (self.root / "code").mkdir()
        (self.root / "build").mkdir()
        for tool in ("run_tidy.py", "compile_commands.py"):
            shutil.copy(TOOLS / tool, self.root / "tools")
        self.write(".clang-tidy", "Checks: all")
        self.write("code/a.h", "int a;")
        self.write("code/a.cpp", "int b;")
        self.flags = "-O2"

    def write(self, path, text):
        (self.root / path).write_text(text)

    def run_tidy(self, version="1", **environment):
        """The exit status and how many sources clang-tidy was asked about."""
        source = self.root / "code/a.cpp"
        self.write("build/compile_commands.json", json.dumps([{
            "directory": str(self.root / "build"), "file": str(source),
            "command": f"/usr/bin/g++ -I{self.root} {self.flags} -o a.o -c {source}"}]))
        log = self.top / "log"
        log.write_text("")
        environment = {**os.environ, "PATH": f"{self.top / 'bin'}:{os.environ['PATH']}", "TIDY_LOG": str(log),
                       "TIDY_VERSION": version, "XDG_CACHE_HOME": str(self.top / "cache"), "TERCEL_TIDY_SECONDS": "",
                       **environment}
        done = subprocess.run([sys.executable, "-B", self.root / "tools/run_tidy.py", self.root / "build"],
                              env=environment, capture_output=True, text=True, check=False)
        return done.returncode, len(log.read_text().splitlines())

    def test_unchanged_sources_are_not_checked_again(self):
        self.assertEqual(self.run_tidy(), (0, 1))
        self.assertEqual(self.run_tidy(), (0, 0))
        self.clone("second")  # the same content at another place
        self.assertEqual(self.run_tidy(), (0, 0))

    def test_every_change_is_checked(self):
        self.run_tidy()
        for path in ("code/a.cpp", "code/a.h", ".clang-tidy", "code/.clang-tidy"):
            self.write(path, "changed")
            self.assertEqual(self.run_tidy(), (0, 1), path)
        self.flags = "-O3"
        self.assertEqual(self.run_tidy(), (0, 1))
        self.assertEqual(self.run_tidy(version="2"), (0, 1))
        self.assertEqual(self.run_tidy(version="2", TERCEL_TIDY_CACHE="off"), (0, 1))

    def test_a_limit_leaves_the_rest_to_the_next_run(self):
        for repository in (False, True):
            if repository:
                self.write("code/a.cpp", "int c;")
                for command in (["init", "--quiet"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit",
                                                                    "--quiet", "--message=a"]):
                    subprocess.run(["git", *command], cwd=self.root, check=True)
            self.assertEqual(self.run_tidy(TERCEL_TIDY_SECONDS="1e-9"), (0, 0))
            self.assertEqual(self.run_tidy(TERCEL_TIDY_SECONDS="100"), (0, 1))
            self.assertEqual(self.run_tidy(TERCEL_TIDY_SECONDS="1e-9"), (0, 0))

    def test_refused_sources_are_checked_again(self):
        self.write("code/a.cpp", "bad")
        self.assertEqual(self.run_tidy(), (1, 1))
        self.assertEqual(self.run_tidy(), (1, 1))


if __name__ == "__main__":
    unittest.main()
