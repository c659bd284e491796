"""How long to wait for a response: as long as a kubelet, but less after waiting in vain.

Waiting for a driver that never answers in every check would take hours. So each call that is not answered makes the
next wait for that method shorter, and each response, whatever it says, makes it longer again. A driver that answers
only easy calls, such as those without claims, does not bring back the full wait at once.
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
    """The time limits by method, for one run with all its drivers."""

    def __init__(self) -> None:
        self._silences = Counter[str]()

    def limit(self, method: str, wanted: float) -> float:
        """Return the time limit for a method in seconds."""
        shortened: float = wanted / _LOSS ** self._silences[method]
        return max(min(LEAST, wanted), round(shortened, 1))

    @contextmanager
    def waiting(self, method: str, wanted: float) -> Iterator[float]:
        """Yield the time limit for a call. If PluginUnavailable is raised after that time, the call was unanswered."""
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
