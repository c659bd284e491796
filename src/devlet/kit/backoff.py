"""Exponential back-off with a limit and jitter.

Pure: the random source is an argument. The limit applies before the jitter, so that clients that reached the limit do
not all retry at the same moment.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count


@dataclass(frozen=True, slots=True)
class Backoff:
    """`first` and `limit` are in seconds. Jitter is a share of the wait that is added at most: 0.1 is up to a tenth."""

    first: float
    limit: float
    factor: float = 2.0
    jitter: float = 0.1

    def __post_init__(self) -> None:
        if not (0 < self.first <= self.limit and math.isfinite(self.limit)):
            raise ValueError(f"back-off from {self.first} to {self.limit} s: expected 0 < first <= limit")
        if self.factor < 1 or self.jitter < 0:
            raise ValueError("back-off: expected factor >= 1 and jitter >= 0")

    def delay(self, attempt: int, random: Callable[[], float]) -> float:
        """Return the wait after failure number `attempt`, from 0. `random` returns numbers in [0, 1)."""
        try:
            wait = min(self.first * self.factor**attempt, self.limit)
        except OverflowError:
            wait = self.limit
        return wait * (1 + self.jitter * random())

    def delays(self, random: Callable[[], float]) -> Iterator[float]:
        """Return the waits after the first, second, third … failure, without end."""
        return (self.delay(attempt, random) for attempt in count())
