"""What a driver's author yields, taken over as it comes: lists of devices, or of their health.

An author's mistake, or a bus that cannot be read for a moment, must not take away the devices that containers use: what
was said last stays, and the question is asked again.
"""

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import TypeVar

from anyio.lowlevel import checkpoint

from devlet.kit.backoff import Backoff
from devlet.kit.clock import Clock
from devlet.sdk.mistakes import answers, contained

__all__ = ["follow"]

T = TypeVar("T")

RETRY = Backoff(1.0, 60.0)


async def follow(
    ask: Callable[[], AsyncIterator[T]],
    take: Callable[[T], Awaitable[None] | None],
    report: Callable[[Exception], None],
    clock: Clock,
    retry: Backoff = RETRY,
) -> None:
    """Until all has been said. What goes wrong, in the question or in what is made of an answer, is reported."""
    failures = 0
    while True:
        try:
            with contained(f"{getattr(ask, '__name__', ask)}()"):
                async with aclosing(answers(ask)) as given:
                    async for answer in given:
                        if (work := take(answer)) is not None:
                            await work
                        failures = 0
                        await checkpoint()  # who never waits must not keep others from their work
            return
        except Exception as e:
            report(e)
        await clock.sleep(retry.delay(failures, random.random))
        failures += 1
