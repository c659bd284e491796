"""Kinds of pods for which there was no place, as long as nothing has happened that could change it; and why.

When a device becomes free, hundreds of equal pods may have their turn. The first finds out for all of them.
"""

from collections.abc import Hashable

__all__ = ["Hopeless"]


class Hopeless:
    """`now` is a number that grows with everything that may help somebody. What is taken away helps nobody, but may be
    another reason."""

    def __init__(self) -> None:
        self._kinds: dict[Hashable, str] = {}
        self._since = -1

    def add(self, kind: Hashable, now: int, why: str = "") -> None:
        self._forget_before(now)
        self._kinds[kind] = why

    def has(self, kind: Hashable, now: int) -> bool:
        self._forget_before(now)
        return kind in self._kinds

    def why(self, kind: Hashable, now: int) -> str:
        """Empty if nobody has asked yet."""
        self._forget_before(now)
        return self._kinds.get(kind, "")

    def _forget_before(self, now: int) -> None:
        if now != self._since:
            self._since = now
            self._kinds.clear()
