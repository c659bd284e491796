"""What a run of the suite found, as values; `reports` brings them into a form."""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from devlet.sanity.check import Check, Failed, Outcome, Passed, Skipped, Warned

__all__ = ["FINDINGS", "NOT_RUN", "SOUND", "Report", "Result", "plain"]

SOUND, FINDINGS, NOT_RUN = 0, 1, 2  # exit codes

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """What a driver wrote, without what moves a terminal's cursor; tabs and ends of lines stay."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text.replace("\r\n", "\n"))


@dataclass(frozen=True, slots=True)
class Result:
    """`took` in seconds. `log`: the end of the driver's, where something was found."""

    check: Check[Any]
    outcome: Outcome
    took: float = 0.0
    log: str = ""

    @property
    def word(self) -> str:
        match self.outcome:
            case Passed():
                return "passed"
            case Failed():
                return "failed"
            case Warned():
                return "warned"
            case Skipped():
                return "skipped"

    @property
    def text(self) -> str:
        """What there is to say about it; often nothing if it passed."""
        match self.outcome:
            case Passed(said) | Failed(said) | Warned(said) | Skipped(said):
                return plain(said)

    @property
    def how(self) -> str:
        """How to see it by hand; empty where there is nothing to see."""
        match self.outcome:
            case Failed(_, how) | Warned(_, how):
                return how or self.check.how
        return ""


@dataclass(frozen=True, slots=True)
class Report:
    """`kind` of driver, `driver` as it was started, `began` as a text of the API, `took` in seconds. `trouble` is why
    the driver could not be driven, if so. `interrupted` names the signal that ended the run before all was done."""

    kind: str
    driver: str
    seed: int
    began: str
    took: float
    results: tuple[Result, ...]
    trouble: str = ""
    interrupted: str = ""

    @property
    def counts(self) -> Counter[str]:
        return Counter(result.word for result in self.results)

    @property
    def findings(self) -> list[Result]:
        return [result for result in self.results if isinstance(result.outcome, Failed | Warned)]

    def exit_code(self, *, strict: bool = False) -> int:
        """Warnings count as findings only if `strict`. Where all was skipped, or the driver could not be
        driven, what passed says nothing."""
        bad = self.counts["failed"] + (self.counts["warned"] if strict else 0)
        if bad:
            return FINDINGS
        looked_at = self.counts["passed"] + self.counts["warned"]
        return SOUND if looked_at and not self.trouble else NOT_RUN

    @property
    def summary(self) -> str:
        counts = self.counts
        words = [f"{counts[word]} {word}" for word in ("passed", "failed", "warned", "skipped") if counts[word]]
        begin = f"interrupted by {self.interrupted}: " if self.interrupted else ""
        return f"{begin}{', '.join(words) or 'no check was run'} in {self.took:.1f} s"
