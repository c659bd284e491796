from datetime import UTC, datetime, timedelta

import pytest

from devlet.kit.clock import Clock, SystemClock
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
