"""tools/guide_programs.py on made-up pages."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = """# Page

```cpp
#include <vector>
std::vector<int> v{1, 2};
```

```cpp
std::cout << v[1] << "\\n";
```
```text
2
```

Prose.

```text
of no block
```
"""


class GuidePrograms(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_tool(self, mode, page, other):
        (self.folder / "page.md").write_text(page)
        command = [sys.executable, ROOT / "tools/guide_programs.py", mode, self.folder / "page.md", other]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def written(self, page):
        result = self.run_tool("write", page, self.folder / "page.cpp")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return (self.folder / "page.cpp").read_text()

    def check_printing(self, page, printed):
        program = self.folder / "program"
        program.write_text(f"#!/bin/sh\nprintf '{printed}'\n")
        program.chmod(0o755)
        return self.run_tool("check", page, program)

    def test_blocks_become_one_main(self):
        lines = self.written(PAGE).splitlines()
        self.assertLess(lines.index("#include <vector>"), lines.index("int main() {"))
        self.assertLess(lines.index("std::vector<int> v{1, 2};"), lines.index('std::cout << v[1] << "\\n";'))
        self.assertIn('#line 9 "page.md"', lines)

    def test_right_output_is_accepted(self):
        result = self.check_printing(PAGE, "\\036\\0362\\n")
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_wrong_output_is_refused(self):
        result = self.check_printing(PAGE, "\\036\\0363\\n")
        self.assertEqual(result.returncode, 1)
        self.assertIn("page.md:9: the guide says\n  2\n  but the block prints\n  3", result.stderr)

    def test_output_that_the_guide_does_not_show_is_refused(self):
        self.assertEqual(self.check_printing(PAGE, "\\036surprise\\0362\\n").returncode, 1)

    def test_program_of_another_page_is_refused(self):
        self.assertIn("rebuild it", self.check_printing(PAGE, "\\0362\\n").stderr)

    def test_whole_programs_and_open_blocks_are_refused(self):
        for page in ("```cpp\nint main() {}\n```\n", "```cpp\nint x;\n", "no code\n"):
            self.assertNotEqual(self.run_tool("write", page, self.folder / "page.cpp").returncode, 0)


if __name__ == "__main__":
    unittest.main()
