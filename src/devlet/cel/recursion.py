"""Raise the recursion limit while a deep expression is processed.

An expression may be nested 250 levels deep, and parsing, checking or running it takes some thousand calls, more than
Python allows by default. The limit is raised only for that time, because it also protects C code from stack
overflow.
"""

import sys
from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Final, ParamSpec, TypeVar

__all__ = ["with_room"]

P = ParamSpec("P")
R = TypeVar("R")

CALLS: Final = 20_000


class _Room:
    """Counts the users of the raised limit. The first one raises it, the last one restores it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._before = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._users:
                self._before = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self._before, CALLS))
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                sys.setrecursionlimit(self._before)


_room = _Room()


def with_room(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a function that processes a whole expression."""

    @wraps(function)
    def roomy(*args: P.args, **kwargs: P.kwargs) -> R:
        with _room:
            return function(*args, **kwargs)

    return roomy
