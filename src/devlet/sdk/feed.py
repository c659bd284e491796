"""Follow what a driver's author yields: lists of devices, or of their health.

An author's mistake, or a bus that cannot be read for a moment, must not remove the devices that containers use. So the
last list stays, and the method is called again.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio
from anyio.lowlevel import checkpoint

from devlet.errors import InvalidInput
from devlet.kit.backoff import Backoff
from devlet.kit.chance import random
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.sdk.mistakes import answers, called, contained, described

__all__ = ["follow"]

log = logging.getLogger(__name__)

T = TypeVar("T")

RETRY = Backoff(1.0, 60.0)

_SILENCE = 10.0  # seconds without a first list before a warning
_SAME = 60.0  # seconds for which the same error is not reported again


async def follow(
    ask: Callable[[], AsyncIterator[T]],
    take: Callable[[T], Awaitable[None] | None],
    report: Callable[[Exception], None],
    clock: Clock,
    retry: Backoff = RETRY,
    silence: str = "",
) -> None:
    """Pass everything that `ask` yields to `take`, until it ends. Errors of both are reported, and `ask` is called
    again.

    `silence` is a warning to log if nothing is yielded for a while."""
    feed = _Feed(ask, take, report, clock, retry)
    async with anyio.create_task_group() as tasks:
        if silence:
            tasks.start_soon(feed.remind, silence)
        await feed.follow()


@dataclass
class _Feed(Generic[T]):
    _ask: Callable[[], AsyncIterator[T]]
    _take: Callable[[T], Awaitable[None] | None]
    _report: Callable[[Exception], None]
    _clock: Clock
    _retry: Backoff
    _answered: bool = False
    _reported: str = ""
    _reported_at: float = 0.0
    _silence: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    async def follow(self) -> None:
        failures = 0
        while True:
            asked = self._clock.monotonic()
            try:
                with contained(called(self._ask), may_exit=True):
                    await self._once()
                return
            except Exception as e:
                self._report_once(e)
            finally:
                self._silence.cancel()
            if self._clock.monotonic() - asked > self._retry.limit:
                failures = 0
            await self._clock.sleep(self._retry.delay(failures, random.random))
            failures += 1

    async def _once(self) -> None:
        async with aclosing(answers(self._ask)) as given:
            async for answer in given:
                self._silence.cancel()
                if (work := self._take(answer)) is not None:
                    await work
                self._answered = True
                await checkpoint()  # so that other tasks run even if `ask` and `take` never wait
        if not self._answered:
            raise InvalidInput(f"{called(self._ask)} ended without a list: yield [] if there are none")

    def _report_once(self, error: Exception) -> None:
        """Report an error, but the same error again only after a while."""
        text, now = described(error), self._clock.monotonic()
        if text != self._reported or now - self._reported_at >= _SAME:
            self._reported, self._reported_at = text, now
            self._report(error)

    async def remind(self, text: str) -> None:
        with self._silence:
            await self._clock.sleep(_SILENCE)
            log.warning(text, extra=facts(method=called(self._ask), seconds=_SILENCE))
