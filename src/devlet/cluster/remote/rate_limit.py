"""A rate limit: requests per second on average, with bursts, in the order in which they were made."""

from devlet.kit.clock import Clock


class RateLimit:
    """Limits requests to `qps` per second on average; 0 means no limit."""

    def __init__(self, qps: float, burst: int, clock: Clock) -> None:
        self._qps = qps
        self._burst = max(burst, 1)
        self._clock = clock
        self._tokens = float(self._burst)  # below zero: reserved by waiting requests
        self._counted = clock.monotonic()

    async def take(self) -> None:
        if self._qps <= 0:
            return
        now = self._clock.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._counted) * self._qps)
        self._counted = now
        self._tokens -= 1
        if self._tokens >= 0:
            return
        try:
            await self._clock.sleep(-self._tokens / self._qps)
        except BaseException:
            self._tokens += 1  # a cancelled request returns its token
            raise
