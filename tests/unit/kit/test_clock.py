import math
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from devlet.kit.clock import Clock, SystemClock, wait
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
async def test_who_waits_goes_on_when_it_happens_or_when_the_time_is_up() -> None:
    clock, happened, over = FakeClock(), anyio.Event(), list[str]()

    async def waits(name: str, seconds: float) -> None:
        await wait(happened, clock, seconds)
        over.append(name)

    async with anyio.create_task_group() as tasks:
        for name, seconds in (("short", 1.0), ("long", 100.0), ("for ever", math.inf)):
            tasks.start_soon(waits, name, seconds)
        await clock.sleeping(2)
        await clock.advance(2)
        assert over == ["short"]
        happened.set()
    assert sorted(over) == ["for ever", "long", "short"]
