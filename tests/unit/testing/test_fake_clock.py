from datetime import UTC, datetime, timedelta

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.testing.fake_clock import FakeClock

pytestmark = pytest.mark.anyio


async def test_time_stands_still_until_it_is_advanced() -> None:
    start = datetime(2030, 1, 1, tzinfo=UTC)
    clock = FakeClock(start)
    await clock.advance(90)
    assert (clock.now(), clock.monotonic()) == (start + timedelta(seconds=90), 90)


@pytest.mark.parametrize("seconds", [-1, float("inf"), float("nan")])
async def test_time_goes_only_forward(seconds: float) -> None:
    with pytest.raises(ValueError, match="cannot advance"):
        await FakeClock().advance(seconds)


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock = FakeClock()
    with anyio.move_on_after(0):
        await clock.sleep(5)
    assert clock.wakes_at == []


async def test_a_loop_runs_once_per_period() -> None:
    clock = FakeClock()
    turns: list[float] = []

    async def every_ten_seconds() -> None:
        while True:
            await clock.sleep(10)
            turns.append(clock.monotonic())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(every_ten_seconds)
        await clock.sleeping(1)
        await clock.advance(35)
        tasks.cancel_scope.cancel()
    assert turns == [10, 20, 30]


async def test_sleeping_nothing_returns() -> None:
    clock = FakeClock()
    await clock.sleep(0)
    assert clock.monotonic() == 0


@given(times=st.lists(st.integers(1, 50), min_size=1, max_size=20))
def test_sleepers_wake_in_the_order_of_their_times(times: list[int]) -> None:
    woken: list[tuple[float, int]] = []

    async def story() -> None:
        clock = FakeClock()

        async def sleeper(seconds: int) -> None:
            await clock.sleep(seconds)
            woken.append((clock.monotonic(), seconds))

        async with anyio.create_task_group() as tasks:
            for seconds in times:
                tasks.start_soon(sleeper, seconds)
            await clock.sleeping(len(times))
            await clock.advance(50)

    anyio.run(story)
    assert woken == [(t, t) for t in sorted(times)]


def test_a_clock_can_begin_with_the_present_time() -> None:
    before = datetime.now(UTC)
    clock = FakeClock.at_present()
    assert before <= clock.now() == clock.now() <= datetime.now(UTC)
