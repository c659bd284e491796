"""What people see while checks run: one line for each, and on a terminal the one that is under way."""

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
    """`write` gets pieces of text and `control` the control sequences between them. `live`: it is a terminal, where a
    line can be written again. `width` in columns."""

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
