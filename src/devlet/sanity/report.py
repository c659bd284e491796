"""The results of a run of the suite, which `reports` formats."""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from devlet.sanity.check import Check, Failed, Outcome, Passed, Skipped, Warned

__all__ = ["FINDINGS", "NOT_RUN", "SOUND", "Report", "Result", "plain"]

SOUND, FINDINGS, NOT_RUN = 0, 1, 2  # exit codes

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """Escape control characters in the output of a driver, except for tabs and line breaks."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text.replace("\r\n", "\n"))


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a check. `took` is in seconds; `log` is the end of the driver's log if the check failed."""

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
        """Describe the outcome. The text is often empty for a check that passed."""
        match self.outcome:
            case Passed(said) | Failed(said) | Warned(said) | Skipped(said):
                return plain(said)

    @property
    def how(self) -> str:
        """Describe how to reproduce a finding by hand. The text is empty for other outcomes."""
        match self.outcome:
            case Failed(_, how) | Warned(_, how):
                return how or self.check.how
        return ""


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a run. `driver` is the command that started it, `began` a timestamp, and `took` is in seconds.

    `trouble` says why the driver could not be tested, if so. `interrupted` names the signal that ended the run early.
    """

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
        """Return the exit code. Warnings count as findings only if `strict`.

        NOT_RUN is returned if all checks were skipped, or the driver could not be tested."""
        bad = self.counts["failed"] + (self.counts["warned"] if strict else 0)
        if bad:
            return FINDINGS
        tested = self.counts["passed"] + self.counts["warned"]
        return SOUND if tested and not self.trouble else NOT_RUN

    @property
    def summary(self) -> str:
        counts = self.counts
        words = [f"{counts[word]} {word}" for word in ("passed", "failed", "warned", "skipped") if counts[word]]
        begin = f"interrupted by {self.interrupted}: " if self.interrupted else ""
        return f"{begin}{', '.join(words) or 'no checks were run'} in {self.took:.1f} s"
