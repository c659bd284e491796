"""What authors' code raises that is no ordinary error."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, cast

import anyio
import pytest
from msgspec import Struct

from devlet.errors import InvalidInput, NotFound
from devlet.sdk.mistakes import answers, contained, described, type_problem

pytestmark = pytest.mark.anyio


async def numbers() -> AsyncIterator[int]:
    yield 1
    yield 2


class Numbers:
    """An iterator that is no generator."""

    def __init__(self) -> None:
        self.last = 0

    def __aiter__(self) -> AsyncIterator[int]:
        return self

    async def __anext__(self) -> int:
        self.last += 1
        if self.last > 2:
            raise StopAsyncIteration
        return self.last


async def forgot_to_yield() -> list[int]:
    return [1]


def forgot_async() -> Any:
    yield 1


@pytest.mark.parametrize("ask", [numbers, Numbers])
async def test_generators_and_other_iterators_are_asked_alike(ask: Callable[[], AsyncIterator[int]]) -> None:
    async with aclosing(answers(ask)) as found:
        assert [each async for each in found] == [1, 2]


@pytest.mark.parametrize(
    ("ask", "text"), [(forgot_to_yield, "forgot_to_yield.*coroutine"), (forgot_async, "forgot_async.*generator")]
)
async def test_a_method_that_is_no_asynchronous_generator_is_named(ask: Any, text: str) -> None:
    with pytest.raises(TypeError, match=f"{text}.*`async def` and `yield`"):
        async with aclosing(answers(ask)) as found:
            await anext(found)


async def test_a_task_that_the_author_cancelled_is_an_ordinary_error() -> None:
    with pytest.raises(RuntimeError, match=r"prepare\(\) was cancelled from within"), contained("prepare()"):
        raise asyncio.CancelledError


async def test_a_group_with_such_a_task_in_it_is_one_too() -> None:
    group = BaseExceptionGroup("tasks", [asyncio.CancelledError(), OSError("the lamp is gone")])
    with pytest.raises(RuntimeError, match="the lamp is gone"), contained("prepare()"):
        raise group


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1)])
async def test_whoever_wants_to_end_the_process_may(error: BaseException) -> None:
    with pytest.raises(type(error)), contained("prepare()"):
        raise error
    with pytest.raises(BaseExceptionGroup), contained("prepare()"):
        raise BaseExceptionGroup("tasks", [error])


@pytest.mark.parametrize("cancel_first", [False, True])
async def test_a_call_that_is_cancelled_from_without_stays_so(cancel_first: bool) -> None:
    with anyio.CancelScope() as scope:
        if cancel_first:
            scope.cancel()
        with contained("prepare()"):
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (InvalidInput("no such lamp"), "no such lamp"),
        (KeyError("red"), "KeyError: 'red'"),
        (TimeoutError(), "TimeoutError"),
        (ExceptionGroup("tasks", [OSError("lamp"), ExceptionGroup("more", [NotFound("wire")])]), "OSError: lamp; wire"),
    ],
)
def test_an_error_is_told_by_what_went_wrong(error: BaseException, text: str) -> None:
    assert described(error) == text


class Part(Struct, frozen=True):
    size: int


class Whole(Struct, frozen=True):
    names: Mapping[str, str] = {}
    parts: Sequence[Part | str] = ()
    other: int = 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Whole({"a": "b"}, [Part(1), "c"], cast(int, "unchecked")), ""),
        (Whole({"a": cast(str, 1)}), "names: Expected `str`, got `int`"),
        (Whole(parts="c"), "parts: Expected `array`, got `str`"),
        (Whole(parts=["c", Part(cast(int, None))]), "parts[1].size: Expected `int`, got `null`"),
    ],
)
def test_a_member_of_another_type_is_named(value: Whole, text: str) -> None:
    assert type_problem(value, ("names", "parts")) == text
