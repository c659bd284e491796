"""What authors yield, and what they raise."""

from collections.abc import AsyncIterator

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
