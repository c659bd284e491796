"""What a driver's author yields, taken over as it comes: lists of devices, or of their health.

An author's mistake, or a bus that cannot be read for a moment, must not take away the devices that containers use: what
was said last stays, and the question is asked again.
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

_SILENCE = 10.0  # seconds without a first answer, until that is told
_SAME = 60.0  # seconds in which an error is not reported again


async def follow(
    ask: Callable[[], AsyncIterator[T]],
    take: Callable[[T], Awaitable[None] | None],
    report: Callable[[Exception], None],
    clock: Clock,
    retry: Backoff = RETRY,
    silence: str = "",
) -> None:
    """Until all has been said. What goes wrong, in the question or in what is made of an answer, is reported. `silence`
    is what people are told if nothing is said for a while."""
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
    _told: str = ""
    _told_at: float = 0.0
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
                self._tell(e)
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
                await checkpoint()  # who never waits must not keep others from their work
        if not self._answered:
            raise InvalidInput(f"{called(self._ask)} ended without a list: yield [] if there are none")

    def _tell(self, error: Exception) -> None:
        """The same error again only now and then."""
        text, now = described(error), self._clock.monotonic()
        if text != self._told or now - self._told_at >= _SAME:
            self._told, self._told_at = text, now
            self._report(error)

    async def remind(self, text: str) -> None:
        with self._silence:
            await self._clock.sleep(_SILENCE)
            log.warning(text, extra=facts(method=called(self._ask), seconds=_SILENCE))
