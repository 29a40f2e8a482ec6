"""Lines of progress, worded as HugeCTR's."""

import sys
from datetime import datetime

from tercel.hugectr import _ranks

__all__ = ["info", "warning"]


def _line(level: str, text: str) -> None:
    if not _ranks.is_first():
        return
    now = datetime.now().strftime("%H:%M:%S.%f")[:-3]
    print(f"[HCTR][{now}][{level}][RK0][main]: {text}", file=sys.stdout, flush=True)


def info(text: str) -> None:
    """Prints a line, on the first of several processes."""
    _line("INFO", text)


def warning(text: str) -> None:
    """Prints a line that something may not be as the script's author expects."""
    _line("WARNING", text)
