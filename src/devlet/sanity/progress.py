"""Progress output: one line for each finished check, and on a terminal the check that is running."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from devlet.sanity.check import Check
from devlet.sanity.report import Result
from devlet.sanity.reports import text

__all__ = ["Progress"]

_COLOURS = {"passed": "32", "failed": "31", "warned": "33", "skipped": "2"}
_CLEAR = "\r\x1b[2K"


@dataclass(slots=True)
class Progress:
    """Writes progress: text to `write`, and control sequences to `control`. If `live`, the output is a terminal of
    `width` columns, where a line can be overwritten."""

    write: Callable[[str], object]
    control: Callable[[str], object]
    live: bool = False
    colour: bool = False
    width: int = 80

    def began(self, check: Check[Any]) -> None:
        if self.live:
            self.write(f"{'…':<8}{check.id:<12} {check.title}"[: self.width - 1])

    def ended(self, result: Result) -> None:
        line = text.line(result)
        if self.live:
            self.control(_CLEAR)
        if self.colour:
            self.control(f"\x1b[{_COLOURS[result.word]}m")
            self.write(line[:8])
            self.control("\x1b[0m")
            line = line[8:]
        self.write(f"{line}\n")
