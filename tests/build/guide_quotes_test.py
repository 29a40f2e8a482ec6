"""Checks that code quoted in docs/guide/writing_an_op.md is in the file that it names.

A line `a/path`: names the file of the ```cc and ```py blocks after it, which must be consecutive lines of that file.
"""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUOTE = re.compile(r"^`([\w./]+)`:$|^```(?:cc|py)\n(.*?)\n```$", re.MULTILINE | re.DOTALL)


def wrong_quotes(page, root=ROOT):
    """Every quote that is not in its file: (path, text)."""
    path, wrong, count = None, [], 0
    for match in QUOTE.finditer(page):
        if match.group(1):
            path = match.group(1)
            continue
        count += 1
        # A quote of a single line may be a part of a line.
        text = match.group(2)
        where = (root / path).read_text() if path and (root / path).is_file() else ""
        if (text.strip() if "\n" not in text else f"\n{text}\n") not in where:
            wrong.append((path, text))
    return wrong, count


class GuideQuotes(unittest.TestCase):
    def test_quotes_stand_in_their_files(self):
        wrong, count = wrong_quotes((ROOT / "docs/guide/writing_an_op.md").read_text())
        self.assertEqual(wrong, [])
        self.assertGreater(count, 10)

    def test_wrong_quotes_are_seen(self):
        page = "`tests/build/guide_quotes_test.py`:\n\n```py\nimport pathlib\nimport re\n```\n\n```py\nimport re\nimport os\n```\n"
        self.assertEqual(wrong_quotes(page), ([("tests/build/guide_quotes_test.py", "import re\nimport os")], 2))
        self.assertEqual(len(wrong_quotes("`no/file.h`:\n\n```cc\nint x;\n```\n")[0]), 1)
        self.assertEqual(len(wrong_quotes("```cc\nint x;\n```\n")[0]), 1)


if __name__ == "__main__":
    unittest.main()
