"""The health endpoints `/healthz`, `/livez` and `/readyz`: named checks, which can also be requested one at a time.

Every user may ask whether all checks pass. The reason of a failure is shown only by a request for a single check, which
requires a permission.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["ENDPOINTS", "HEALTHY", "Answer", "Check", "all_of", "one"]

ENDPOINTS = ("healthz", "livez", "readyz")
HEALTHY = ("healthz", "readyz")  # for checks that a restart cannot fix: a failing `/livez` requests a restart


@dataclass(frozen=True, slots=True)
class Check:
    """`problem` returns what is wrong, or None. It is called for each request, so it must be quick."""

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
