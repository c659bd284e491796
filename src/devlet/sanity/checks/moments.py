"""When to interrupt a call: at moments that are spread over what it takes, on this machine and in this driver.

A moment that is a number of milliseconds comes before the call on a slow machine, and after its answer on a fast one.
"""

from collections.abc import Awaitable, Callable, Iterator

import anyio

from devlet.kit.dice import Dice

__all__ = ["duration", "moments"]

_BUDGET = 60.0  # seconds of calls; on average half of each is waited for


async def duration(call: Callable[[], Awaitable[object]]) -> float:
    """Seconds until it is answered."""
    began = anyio.current_time()
    await call()
    return anyio.current_time() - began


def moments(took: float, count: int, dice: Dice) -> Iterator[float]:
    """Seconds after the beginning of a call, one in each of `count` equal parts of what it takes. A slow one has fewer:
    together they are no more than half a minute, as long as a call takes no longer than that."""
    count = max(1, min(count, int(_BUDGET / took))) if took else count
    for number in range(count):
        yield took * (number + dice.number(1, 99) / 100) / count
