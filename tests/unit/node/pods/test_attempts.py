from datetime import UTC, datetime, timedelta

import pytest

from devlet.kit.backoff import Backoff
from devlet.node.pods.attempts import Attempts
from devlet.testing.fake_clock import FakeClock

pytestmark = pytest.mark.anyio


def made(clock: FakeClock, first: float = 1.0) -> Attempts:
    return Attempts(clock, Backoff(first, 60.0, jitter=0.0), 0.1)


def after(clock: FakeClock, seconds: float) -> datetime:
    return clock.now() + timedelta(seconds=seconds)


async def test_the_first_attempt_is_due_at_once_and_later_ones_after_a_growing_delay() -> None:
    clock = FakeClock()
    attempts = made(clock)
    assert attempts.is_due() and attempts.due == clock.now()
    assert attempts.failed() == after(clock, 1)
    await clock.advance(0.9)
    assert not attempts.is_due()
    await clock.advance(0.1)
    assert attempts.is_due() and attempts.failed() == after(clock, 2)


async def test_a_hint_brings_the_next_attempt_forward_but_keeps_the_least_delay() -> None:
    clock = FakeClock()
    attempts = made(clock, 10.0)
    assert not attempts.hurry()
    attempts.failed()
    assert attempts.hurry() and attempts.due == after(clock, 0.1)


async def test_success_forgets_failures() -> None:
    clock = FakeClock()
    attempts = made(clock)
    attempts.failed()
    attempts.failed()
    attempts.succeeded()
    assert attempts.is_due() and not attempts.hurry() and attempts.failed() == after(clock, 1)


async def test_a_hint_during_an_attempt_counts_for_the_next_one() -> None:
    clock = FakeClock()
    attempts = made(clock, 10.0)
    attempts.begin()
    assert not attempts.hurry()
    assert attempts.failed() == after(clock, 0.1)
    attempts.begin()
    assert attempts.failed() == after(clock, 20)


async def test_setting_the_clock_back_does_not_change_the_delay() -> None:
    class Set(FakeClock):
        def now(self) -> datetime:
            return super().now() if self.monotonic() < 1 else datetime(2020, 1, 1, tzinfo=UTC)

    clock = Set()
    attempts = made(clock, 2.0)
    attempts.failed()
    await clock.advance(1)
    assert attempts.due == after(clock, 1)
    await clock.advance(1)
    assert attempts.is_due()
