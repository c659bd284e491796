"""Room for deep expressions, as long as one is being worked on.

An expression may be nested 250 levels deep, and to parse, check or run it takes some thousand calls, more than Python
allows by default. The limit is raised for that time only: it also guards code in C that would run out of stack.
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
    """The first who comes raises the limit, the last who goes sets it back."""

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
    """A function that works on a whole expression."""

    @wraps(function)
    def roomy(*args: P.args, **kwargs: P.kwargs) -> R:
        with _room:
            return function(*args, **kwargs)

    return roomy
