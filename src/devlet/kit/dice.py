"""Seeded random choices for generators of test data.

The choices depend on the seed alone, on every version of Python: only functions are used whose sequence has not changed
since Python 3.2."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Dice:
    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def number(self, least: int, most: int) -> int:
        """Return a number from `least` to `most`, both included."""
        return least + int(self._random.random() * (most - least + 1))

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.number(0, len(choices) - 1)]

    def some(self, choices: Sequence[T], least: int, most: int) -> list[T]:
        """Return different choices in random order, at most as many as there are."""
        left = list(choices)
        count = min(self.number(least, most), len(left))
        return [left.pop(self.number(0, len(left) - 1)) for _ in range(count)]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        return self.some(items, len(items), len(items))
