"""How long an answer is waited for: as long as a kubelet would, until that was in vain.

A driver that never answers would be waited for again in each check, for hours in all. So each time that a method is not
answered makes the next wait for it shorter, and each answer, whatever it says, makes it longer again: one that answers
only what is easy, such as a call without claims, is not waited for at length in between.
"""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from devlet.errors import PluginError, PluginUnavailable

__all__ = ["Patience"]

LEAST = 1.0  # seconds
_LOSS = 3.0
_MOST = 6


class Patience:
    """Of one run, with all its drivers."""

    def __init__(self) -> None:
        self._silences = Counter[str]()

    def limit(self, method: str, wanted: float) -> float:
        """Seconds."""
        shortened: float = wanted / _LOSS ** self._silences[method]
        return max(min(LEAST, wanted), round(shortened, 1))

    @contextmanager
    def waiting(self, method: str, wanted: float) -> Iterator[float]:
        """For an answer; yields how long. PluginUnavailable after that time is silence."""
        limit, began = self.limit(method, wanted), time.monotonic()
        try:
            yield limit
        except PluginUnavailable:
            if time.monotonic() - began >= limit * 0.95:
                self.silent(method)
            raise
        except PluginError:
            self.answered(method)
            raise
        self.answered(method)

    def silent(self, method: str) -> None:
        self._silences[method] = min(_MOST, self._silences[method] + 1)

    def answered(self, method: str) -> None:
        self._silences[method] = max(0, self._silences[method] - 1)
