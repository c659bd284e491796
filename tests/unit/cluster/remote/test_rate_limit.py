import anyio
import pytest

from devlet.cluster.remote.rate_limit import RateLimit
from devlet.testing.fake_clock import FakeClock

pytestmark = pytest.mark.anyio


async def test_a_burst_passes_at_once_and_the_rest_at_its_rate() -> None:
    clock, passed = FakeClock(), []
    limit = RateLimit(10, 2, clock)

    async def ask(i: int) -> None:
        await limit.take()
        passed.append((i, round(clock.monotonic(), 3)))

    async with anyio.create_task_group() as tasks:
        for i in range(4):
            tasks.start_soon(ask, i)
        await clock.sleeping(2)
        await clock.advance(1)
    assert passed == [(0, 0.0), (1, 0.0), (2, 0.1), (3, 0.2)]


async def test_a_pause_fills_the_bucket_but_not_over_its_brim() -> None:
    clock = FakeClock()
    limit = RateLimit(10, 2, clock)
    for _ in range(2):
        await limit.take()
    await clock.advance(100)
    for _ in range(2):
        await limit.take()
    with anyio.move_on_after(0.01) as scope:
        await limit.take()
    assert scope.cancelled_caught


async def test_a_cancelled_request_takes_no_token() -> None:
    clock = FakeClock()
    limit = RateLimit(10, 1, clock)
    await limit.take()
    with anyio.move_on_after(0.01):
        await limit.take()
    await clock.advance(0.1)
    await limit.take()
    assert clock.monotonic() == 0.1


async def test_there_may_be_no_limit() -> None:
    clock = FakeClock()
    limit = RateLimit(0, 0, clock)
    for _ in range(1000):
        await limit.take()
    assert clock.monotonic() == 0
