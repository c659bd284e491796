"""The moments at which to interrupt a call: spread over its duration on this machine and with this driver.

A fixed number of milliseconds would come before the call on a slow machine, and after its response on a fast one.
"""

from collections.abc import Awaitable, Callable, Iterator

import anyio

from devlet.kit.dice import Dice

__all__ = ["duration", "moments"]

_BUDGET = 60.0  # seconds of calls, which are interrupted halfway on average


async def duration(call: Callable[[], Awaitable[object]]) -> float:
    """Return how many seconds the call takes."""
    began = anyio.current_time()
    await call()
    return anyio.current_time() - began


def moments(took: float, count: int, dice: Dice) -> Iterator[float]:
    """Yield seconds after the start of a call, one in each of `count` equal parts of its duration.

    Slow calls get fewer moments, so that all interrupted calls together take about half a minute."""
    count = max(1, min(count, int(_BUDGET / took))) if took else count
    for number in range(count):
        yield took * (number + dice.number(1, 99) / 100) / count
