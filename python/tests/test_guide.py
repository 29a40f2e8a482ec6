"""Runs the Python code of docs/guide and compares its output with the pages.

The ```python blocks of a page run in order in one namespace, in an empty folder. The output of a block is compared
with the ```text block that follows it at once; a block without one must print nothing.
"""

import contextlib
import io
import pathlib
import re

import pytest

PAGES = sorted((pathlib.Path(__file__).parents[2] / "docs" / "guide").glob("*.md"))
FENCE = re.compile(r"^```(\w*)\s*$")


def blocks_of(text):
    """(language, line number of the first line, lines, whether it follows another block at once)."""
    language, joined = None, False
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if language is None and fence:
            language, start, lines = fence.group(1), number + 1, []
        elif fence and not fence.group(1):
            yield language, start, lines, joined
            language, joined = None, True
        elif language is not None:
            lines.append(line)
        elif line.strip():
            joined = False


def python_of(page):
    """(line number, code, expected lines) of every Python block."""
    blocks = []
    last = None
    for language, start, lines, joined in blocks_of(page.read_text(encoding="utf-8")):
        if language == "python":
            blocks.append((start, "\n" * (start - 1) + "\n".join(lines), []))
        elif language == "text" and joined and last == "python":
            blocks[-1] = (*blocks[-1][:2], lines)
        last = language
    return blocks


@pytest.mark.parametrize("page", [p for p in PAGES if "```python" in p.read_text(encoding="utf-8")],
                         ids=lambda p: p.stem)
def test_guide(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for start, code, expected in python_of(page):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page.name, "exec"), namespace)
        lines = [line.rstrip() for line in printed.getvalue().rstrip().splitlines()]
        assert lines == [line.rstrip() for line in expected], f"{page.name}:{start}"


def test_a_wrong_block_is_seen(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\nprint(x)\n```\n\n```text\n1\n```\n\nProse.\n\n```python\nprint(x + 1)\n```\n")
    assert [(start, expected) for start, _, expected in python_of(page)] == [(2, ["1"]), (13, [])]
    with pytest.raises(AssertionError, match="page.md:13"):
        test_guide(page, tmp_path, monkeypatch)
