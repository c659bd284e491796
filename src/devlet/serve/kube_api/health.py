"""Health, as `/healthz`, `/livez` and `/readyz` tell it: named checks, each of which can also be asked alone.

Anybody may ask whether all is well. What is wrong is told to those who ask for that check alone, which needs rights.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["ENDPOINTS", "HEALTHY", "Answer", "Check", "all_of", "one"]

ENDPOINTS = ("healthz", "livez", "readyz")
HEALTHY = ("healthz", "readyz")  # for checks that a restart does not cure: a failing `/livez` asks for a restart


@dataclass(frozen=True, slots=True)
class Check:
    """`problem` gives what is wrong, or None. It is asked whenever somebody looks, so it must be quick."""

    name: str
    problem: Callable[[], str | None] = lambda: None
    endpoints: tuple[str, ...] = ENDPOINTS


class Answer(NamedTuple):
    code: int
    text: str


def all_of(endpoint: str, checks: Sequence[Check], *, verbose: bool, excluded: Collection[str] = ()) -> Answer:
    lines, failed = [], False
    for check in checks:
        if check.name in excluded:
            lines.append(f"[+]{check.name} excluded: ok")
        elif check.problem() is None:
            lines.append(f"[+]{check.name} ok")
        else:
            lines.append(f"[-]{check.name} failed: reason withheld")
            failed = True
    unknown = sorted(set(excluded) - {check.name for check in checks})
    if unknown:
        names = ", ".join(f'"{name[:64]}"' for name in unknown[:16])
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
    if not failed and not verbose:
        return Answer(200, "ok")
    lines.append(f"{endpoint} check {'failed' if failed else 'passed'}")
    return Answer(500 if failed else 200, "".join(f"{line}\n" for line in lines))


def one(check: Check) -> Answer:
    problem = check.problem()
    return Answer(200, "ok") if problem is None else Answer(500, f"internal server error: {problem}\n")
