"""What authors' code raises that is no ordinary error."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, cast

import anyio
import pytest
from msgspec import Struct

from devlet.errors import InvalidInput, NotFound
from devlet.sdk.mistakes import (
    answers,
    asked,
    called,
    contained,
    described,
    env_problems,
    heard,
    listed,
    type_problem,
)
from devlet.sdk.values import Device

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
async def test_a_method_that_is_not_an_asynchronous_generator_is_named(ask: Any, text: str) -> None:
    with pytest.raises(TypeError, match=f"{text}.*`async def` and `yield`"):
        async with aclosing(answers(ask)) as found:
            await anext(found)


async def test_a_task_that_the_author_cancelled_is_an_ordinary_error() -> None:
    with pytest.raises(RuntimeError, match=r"prepare\(\) was cancelled from within"), contained("prepare()"):
        raise asyncio.CancelledError


async def test_a_group_with_such_a_cancellation_is_an_error() -> None:
    group = BaseExceptionGroup("tasks", [asyncio.CancelledError(), OSError("the lamp is gone")])
    with pytest.raises(RuntimeError, match="the lamp is gone"), contained("prepare()"):
        raise group


async def test_a_keyboard_interrupt_ends_the_process() -> None:
    with pytest.raises(KeyboardInterrupt), contained("prepare()"):
        raise KeyboardInterrupt
    with pytest.raises(BaseExceptionGroup), contained("prepare()"):
        raise BaseExceptionGroup("tasks", [KeyboardInterrupt(), SystemExit(1)])


@pytest.mark.parametrize("error", [SystemExit(1), BaseExceptionGroup("tasks", [SystemExit("no lamp"), OSError()])])
async def test_a_call_that_would_end_the_process_is_an_ordinary_error(error: BaseException) -> None:
    with pytest.raises(RuntimeError, match=r"prepare\(\) called sys.exit: raise an error .*SystemExit: "):
        with contained("prepare()"):
            raise error


async def test_a_method_that_tells_what_there_is_may_end_the_process() -> None:
    with pytest.raises(SystemExit), contained("devices()", may_exit=True):
        raise SystemExit(1)


async def returns(number: int) -> int:
    return number


def no_async(number: int) -> Any:
    return [number]


def no_async_but_yield(number: int) -> Any:
    yield number


async def yields(number: int) -> Any:
    yield number


async def ends(number: int) -> int:
    raise SystemExit(number)


async def test_a_method_is_asked_with_its_arguments() -> None:
    assert await asked(returns, 7) == 7


@pytest.mark.parametrize(
    ("method", "text"),
    [
        (no_async, r"no_async\(\) gave a list, expected `async def` and `return`"),
        (no_async_but_yield, "gave a generator, expected `async def` and `return`"),
        (yields, "gave a async_generator, expected `async def` and `return`"),
    ],
)
async def test_a_method_that_cannot_be_awaited_is_named(method: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        await asked(method, 7)


async def test_a_method_that_ends_the_process_is_named() -> None:
    with pytest.raises(RuntimeError, match=r"^ends\(\) called sys.exit"):
        await asked(ends, 7)


def test_an_author_hears_of_errors() -> None:
    told: list[object] = []
    error = OSError("bus busy")
    heard(lambda *both: told.append(both))(error, "listing")
    assert told == [(error, "listing")]


def fails(error: Exception, doing: str) -> None:
    raise KeyError(doing)


async def is_async(error: Exception, doing: str) -> None:
    raise AssertionError


@pytest.mark.parametrize(("listen", "text"), [(fails, "KeyError: 'listing'"), (is_async, "`def`, not `async def`")])
def test_a_failing_error_handler_is_harmless_and_both_errors_are_logged(
    listen: Any, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    heard(listen)(OSError("bus busy"), "listing")
    lost, failed = caplog.records
    assert (lost.getMessage(), str(lost.__dict__["facts"]["err"])) == ("listing", "bus busy")
    assert text in failed.__dict__["facts"]["err"] and failed.__dict__["facts"]["method"] == called(listen)


@pytest.mark.parametrize("given", [None, "red", Device("red"), 7])
def test_a_value_that_is_not_a_list_is_reported_with_what_was_expected(given: object) -> None:
    with pytest.raises(InvalidInput, match=r"^devices\(\) gave .*, expected a list of Device$"):
        listed(given, "devices()", "Device")


def test_any_list_is_a_list() -> None:
    assert listed((each for each in "ab"), "devices()", "Device") == ("a", "b")


@pytest.mark.parametrize(("name", "is_fine"), [("A", True), ("", False), ("A=B", False), ("A\0", False)])
def test_the_name_of_a_variable_has_no_equals_sign(name: str, is_fine: bool) -> None:
    assert env_problems({name: "5"}) == ([] if is_fine else [f"env: {name!r} is not the name of a variable"])


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
def test_an_error_is_described_by_its_message(error: BaseException, text: str) -> None:
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
