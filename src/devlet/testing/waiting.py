"""Wait for something that another program brings about, and say what was seen instead if it does not."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

__all__ = ["until"]

T = TypeVar("T")

INTERVAL = 0.05  # seconds between two looks
SHOWN = 4_000  # characters of the last value that a failure shows


async def until(read: Callable[[], Awaitable[T]], holds: Callable[[T], bool] = bool, *, within: float = 30.0) -> T:
    """What `read` gives, as soon as `holds` is true of it. AssertionError, with what was seen last, if that takes more
    than `within` seconds."""
    seen: list[T] = []
    with anyio.move_on_after(within):
        while True:
            seen[:] = [await read()]
            if holds(seen[0]):
                return seen[0]
            await anyio.sleep(INTERVAL)
    raise AssertionError(f"not within {within:g} s; last seen: {str(seen)[:SHOWN]}")
