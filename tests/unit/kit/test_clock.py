import math
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from devlet.kit.changes import Changes
from devlet.kit.clock import Clock, SystemClock, wait, wait_after
from devlet.testing.fake_clock import FakeClock


@pytest.mark.parametrize("clock", [SystemClock(), FakeClock()], ids=["system", "fake"])
def test_now_is_in_utc(clock: Clock) -> None:
    assert clock.now().utcoffset() == timedelta(0)


def test_the_system_clock_agrees_with_the_system() -> None:
    assert abs(SystemClock().now() - datetime.now(UTC)) < timedelta(seconds=5)


@pytest.mark.anyio
async def test_sleeping_a_negative_time_returns() -> None:
    clock = SystemClock()
    before = clock.monotonic()
    await clock.sleep(-1)
    assert clock.monotonic() >= before


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["event", "changes"])
async def test_a_wait_ends_with_the_event_or_with_the_time(kind: str) -> None:
    clock, event, changes, over = FakeClock(), anyio.Event(), Changes(), list[str]()

    async def waits(name: str, seconds: float) -> None:
        if kind == "event":
            await wait(event, clock, seconds)
        else:
            await wait_after(changes, 0, clock, seconds)
        over.append(name)

    async with anyio.create_task_group() as tasks:
        for name, seconds in (("short", 1.0), ("long", 100.0), ("for ever", math.inf)):
            tasks.start_soon(waits, name, seconds)
        await clock.sleeping(2)
        await clock.advance(2)
        assert over == ["short"]
        event.set()
        changes.notify()
    assert sorted(over) == ["for ever", "long", "short"]


@pytest.mark.anyio
async def test_a_change_before_the_wait_ends_it_at_once() -> None:
    changes = Changes()
    changes.notify()
    await wait_after(changes, 0, FakeClock(), math.inf)
