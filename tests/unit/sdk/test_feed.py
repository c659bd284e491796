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
    assert taken == [0, 1, 2] and [str(each) for each in problems] == ["bus busy"] * 2


async def test_what_cannot_be_taken_is_reported_too() -> None:
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


async def test_who_never_waits_lets_others_work() -> None:
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


async def test_who_cancels_a_task_of_its_own_is_asked_again() -> None:
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
