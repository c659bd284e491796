"""Selection of checks by globs on their ids, as in `--only 'DP-REG-*' --skip DP-REG-7`."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

from devlet.errors import InvalidInput
from devlet.sanity.check import Check

__all__ = ["chosen"]

R = TypeVar("R")


def chosen(checks: Iterable[Check[R]], only: Sequence[str] = (), skip: Sequence[str] = ()) -> list[Check[R]]:
    """Return the selected checks in order. Raises InvalidInput for a glob that matches no check, as if misspelt."""
    known = list(checks)
    for glob in (*only, *skip):
        if not any(_matches(check, [glob]) for check in known):
            raise InvalidInput(f"no check matches {glob}: `devlet sanity … --list` shows the ids of all checks")
    return [check for check in known if (not only or _matches(check, only)) and not _matches(check, skip)]


def _matches(check: Check[R], globs: Sequence[str]) -> bool:
    return any(fnmatchcase(check.id, glob.upper()) for glob in globs)
