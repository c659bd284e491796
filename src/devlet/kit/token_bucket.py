"""Token buckets, which limit how often something may happen per second on average, and how often at once.

A bucket that is full again is the same as a new one, so only buckets that were used lately are kept.
"""

from functools import partial

from devlet.kit.clock import Clock

__all__ = ["TokenBucket", "TokenBuckets"]


class TokenBucket:
    """Starts full. `rate` tokens per second are added, up to `burst`."""

    def __init__(self, rate: float, burst: int, clock: Clock) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._tokens = float(burst)
        self._counted = clock.monotonic()

    def take(self) -> bool:
        """Take a token. Return False if there is none left."""
        self._refill()
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    @property
    def is_full(self) -> bool:
        self._refill()
        return self._tokens >= self._burst

    def _refill(self) -> None:
        now = self._clock.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._counted) * self._rate)
        self._counted = now


class TokenBuckets:
    """One bucket for each of at most `limit` users at a time. All further users share one bucket."""

    def __init__(self, rate: float, burst: int, clock: Clock, limit: int = 64) -> None:
        self._make = partial(TokenBucket, rate, burst, clock)
        self._limit = limit
        self._buckets: dict[str, TokenBucket] = {}
        self._shared = self._make()

    def take(self, user: str) -> bool:
        return self._bucket(user).take()

    def _bucket(self, user: str) -> TokenBucket:
        if user in self._buckets:
            return self._buckets[user]
        if len(self._buckets) >= self._limit:
            self._buckets = {name: bucket for name, bucket in self._buckets.items() if not bucket.is_full}
        if len(self._buckets) >= self._limit:
            return self._shared
        return self._buckets.setdefault(user, self._make())
