"""Kill a driver, or a node, at an exact point of their conversation; and find all points of one that went well.

    faults.forget_calls()
    await scenario()
    for point in crash_points(faults.calls):
        async with crash_at(faults, point, driver.kill):
            await scenario_that_survives()

A point is before a call has reached the driver, or after the driver has answered and nobody has heard of it. There the
call waits while the process dies. What a newcomer gets wrong: with `forget_calls` the count of calls begins anew, and
the number of a point is that among the calls of its method.
"""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from devlet.testing.grpc_faults import Call, Faults, Rule
from devlet.testing.node_life import beside
from devlet.testing.waiting import DEADLINE

__all__ = ["CrashPoint", "crash_at", "crash_points"]


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """`number` is how many calls of this path are let through first."""

    path: str
    number: int = 0
    after: bool = False

    def __str__(self) -> str:
        return f"{'after' if self.after else 'before'} call {self.number + 1} of {self.path.rpartition('/')[2]}"


def crash_points(calls: Iterable[Call]) -> list[CrashPoint]:
    """Before and after each of the calls, in their order; after a stream means before its first answer."""
    seen: Counter[str] = Counter()
    found: list[CrashPoint] = []
    for call in calls:
        found += [CrashPoint(call.path, seen[call.path], after) for after in (False, True)]
        seen[call.path] += 1
    return found


@asynccontextmanager
async def crash_at(
    faults: Faults, point: CrashPoint, kill: Callable[[], Awaitable[object]], *, within: float = DEADLINE
) -> AsyncIterator[None]:
    """While the block runs, `kill` is called when the point is reached, once. AssertionError if it never is: at the end
    of the block it must have happened, or happen `within` seconds."""
    rule = faults.hang(point.path, after=point.after, skip=point.number, times=1)
    killed = anyio.Event()

    async def attack() -> None:
        await rule.until_hit()
        await kill()
        rule.end()
        killed.set()

    async with beside() as tasks:
        tasks.start_soon(attack)
        try:
            yield
            await _wait(killed, point, rule, faults, within)
        finally:
            rule.end()
            tasks.cancel_scope.cancel()


async def _wait(killed: anyio.Event, point: CrashPoint, rule: Rule, faults: Faults, within: float) -> None:
    with anyio.move_on_after(within):
        await killed.wait()
        return
    seen = "was reached, but the kill did not end" if rule.hits else "was not reached"
    raise AssertionError(f"the point {point} {seen} within {within:g} s\n{faults.story}")
