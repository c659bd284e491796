"""Kill a driver or a node at an exact point of their calls, and find all such points of a successful run.

    faults.forget_calls()
    await scenario()
    for point in crash_points(faults.calls):
        async with crash_at(faults, point, driver.kill):
            await scenario_that_survives()

A point is before a call reaches the driver, or after the driver answered and before the caller gets the answer. The
call waits there while the process is killed. `forget_calls` restarts the count of calls, and the number of a point
counts the calls of its method only.
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
    """A point at which to kill. `number` is how many calls of this path pass first."""

    path: str
    number: int = 0
    after: bool = False

    def __str__(self) -> str:
        return f"{'after' if self.after else 'before'} call {self.number + 1} of {self.path.rpartition('/')[2]}"


def crash_points(calls: Iterable[Call]) -> list[CrashPoint]:
    """Return the points before and after each call, in order. After a stream means before its first answer."""
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
    """Call `kill` once, when the point is reached, while the block runs. Raise AssertionError if that did not happen
    `within` seconds after the end of the block."""
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
