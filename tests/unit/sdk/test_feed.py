"""What authors yield, and what they raise."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import anyio
import anyio.lowlevel
import pytest

from devlet.errors import InvalidInput
from devlet.kit.backoff import Backoff
from devlet.kit.clock import SystemClock
from devlet.sdk.feed import follow
from devlet.testing.fake_clock import FakeClock

pytestmark = pytest.mark.anyio

SOON = Backoff(0.001, 0.01)


async def test_all_is_taken_and_then_it_ends() -> None:
    async def ask() -> AsyncIterator[int]:
        yield 1
        yield 2

    taken: list[int] = []
    problems: list[Exception] = []
    await follow(ask, taken.append, problems.append, SystemClock())
    assert taken == [1, 2] and not problems


async def test_an_error_is_reported_and_the_question_asked_again() -> None:
    asked: list[int] = []

    async def ask() -> AsyncIterator[int]:
        asked.append(len(asked))
        yield asked[-1]
        if len(asked) < 3:
            raise OSError("bus busy")

    taken: list[int] = []
    problems: list[Exception] = []
    await follow(ask, taken.append, problems.append, SystemClock(), SOON)
    assert taken == [0, 1, 2] and [str(each) for each in problems] == ["bus busy"]


async def test_another_error_is_reported_at_once() -> None:
    errors = iter([OSError("bus busy"), OSError("bus gone"), OSError("bus gone"), OSError("bus busy")])

    async def ask() -> AsyncIterator[int]:
        yield 1
        if error := next(errors, None):
            raise error

    problems: list[Exception] = []
    await follow(ask, lambda answer: None, problems.append, SystemClock(), SOON)
    assert [str(each) for each in problems] == ["bus busy", "bus gone", "bus busy"]


class Busy:
    """Answers, and fails so many seconds later."""

    def __init__(self, clock: FakeClock, after: float) -> None:
        self.asked: list[float] = []
        self._clock = clock
        self._after = after

    async def __call__(self) -> AsyncIterator[int]:
        self.asked.append(self._clock.monotonic())
        yield 1
        if self._after:
            await self._clock.sleep(self._after)
        raise OSError("bus busy")


async def passed(busy: Busy, clock: FakeClock, seconds: float) -> list[Exception]:
    problems: list[Exception] = []
    retry = Backoff(1, 60, jitter=0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(follow, busy, lambda answer: None, problems.append, clock, retry))
        await clock.sleeping(1)
        await clock.advance(seconds)
        tasks.cancel_scope.cancel()
    return problems


async def test_a_generator_that_fails_at_once_is_called_with_growing_delays() -> None:
    clock = FakeClock()
    busy = Busy(clock, 0)
    await passed(busy, clock, 100)
    assert busy.asked == [0, 1, 3, 7, 15, 31, 63]


async def test_the_same_error_is_reported_once_a_minute() -> None:
    clock = FakeClock()
    busy = Busy(clock, 0)
    assert len(await passed(busy, clock, 300)) == 5 and len(busy.asked) == 10


async def test_a_generator_that_ran_long_is_called_again_soon() -> None:
    clock = FakeClock()
    busy = Busy(clock, 61)
    problems = await passed(busy, clock, 3 * 62)
    assert busy.asked == [0, 62, 124, 186] and len(problems) == 3


async def test_a_generator_that_ends_without_an_answer_is_reported_and_called_again() -> None:
    lists = iter([[], [], [[1]]])

    async def devices() -> AsyncIterator[list[int]]:
        for each in next(lists):
            yield each

    taken: list[list[int]] = []
    problems: list[Exception] = []
    await follow(devices, taken.append, problems.append, SystemClock(), SOON)
    assert taken == [[1]]
    assert [str(each) for each in problems] == ["devices() ended without a list: yield [] if there are none"]


@pytest.mark.parametrize("step", ["answer", "error", "nothing"])
async def test_it_is_said_that_nothing_was_said_for_a_while(step: str, caplog: pytest.LogCaptureFixture) -> None:
    async def devices() -> AsyncIterator[int]:
        if step == "answer":
            yield 1
        if step == "error":
            raise OSError("bus busy")
        await anyio.sleep_forever()

    clock = FakeClock()
    async with anyio.create_task_group() as tasks:
        follows = partial(follow, devices, lambda answer: None, lambda error: None, clock, silence="not heard of")
        tasks.start_soon(follows)
        await anyio.wait_all_tasks_blocked()
        await clock.advance(9.9)
        assert caplog.messages == []
        await clock.advance(30)
        tasks.cancel_scope.cancel()
    assert caplog.messages == (["not heard of"] if step == "nothing" else [])


async def test_errors_of_the_consumer_are_reported() -> None:
    answers = iter([[1], [2]])

    async def ask() -> AsyncIterator[list[int]]:
        yield next(answers)

    taken: list[int] = []

    async def take(answer: list[int]) -> None:
        if answer == [1]:
            raise InvalidInput("not that one")
        taken.extend(answer)

    problems: list[Exception] = []
    await follow(ask, take, problems.append, SystemClock(), SOON)
    assert taken == [2] and len(problems) == 1


async def test_a_generator_that_never_waits_does_not_block_others() -> None:
    """Ten thousand lists in a second, say."""

    async def ask() -> AsyncIterator[int]:
        for number in range(100):
            yield number

    taken: list[int] = []
    seen: list[int] = []
    problems: list[Exception] = []

    async def look() -> None:
        for _ in range(10):
            seen.append(len(taken))
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(follow, ask, taken.append, problems.append, SystemClock()))
        tasks.start_soon(look)
    assert len(taken) == 100 and not problems and seen[0] < seen[-1] < 100


async def test_a_generator_that_cancels_its_own_task_is_called_again() -> None:
    asked: list[int] = []

    async def ask() -> AsyncIterator[int]:
        asked.append(len(asked))
        if len(asked) == 1:
            raise asyncio.CancelledError
        yield asked[-1]

    taken: list[int] = []
    problems: list[Exception] = []
    await follow(ask, taken.append, problems.append, SystemClock(), SOON)
    assert taken == [1] and "ask() was cancelled from within" in str(problems[0])
