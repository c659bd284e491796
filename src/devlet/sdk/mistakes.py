"""What the code of a driver's author does wrong, as errors that say so.

Authors cancel their own tasks, raise groups of errors and forget `yield`. None of it may end the driver, be taken for
the node's giving up, or reach the user of a pod as `unhandled errors in a TaskGroup`.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import anyio
import msgspec
from msgspec import Struct, structs

from devlet.errors import DevletError

__all__ = ["answers", "contained", "described", "type_problem"]

T = TypeVar("T")


async def answers(ask: Callable[[], AsyncIterator[T]]) -> AsyncGenerator[T, None]:
    """What a method yields. TypeError if it is no asynchronous generator, nor anything like it."""
    given = ask()
    if not isinstance(given, AsyncIterator):
        raise TypeError(_not_answers(getattr(ask, "__qualname__", str(ask)), given))
    try:
        async for each in given:
            yield each
    finally:
        if (close := getattr(given, "aclose", None)) is not None:
            await close()


def _not_answers(method: str, given: object) -> str:
    if isinstance(given, Coroutine):
        given.close()
    return f"{method}() gave a {type(given).__name__}, expected an asynchronous generator: `async def` and `yield`"


@contextmanager
def contained(what: str) -> Iterator[None]:
    """RuntimeError for a cancellation that nobody asked for. A group with one in it is told by its errors."""
    try:
        yield
    except (asyncio.CancelledError, BaseExceptionGroup) as e:
        if isinstance(e, Exception) or _is_cancelled() or _ends_the_process(e):
            raise
        raise RuntimeError(f"{what} was cancelled from within: {described(e)}") from e


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return anyio.current_effective_deadline() == -math.inf or (task is not None and task.cancelling() > 0)


def _ends_the_process(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup((KeyboardInterrupt, SystemExit)) is not None
    return False


def described(error: BaseException) -> str:
    """For people: an error of a kind that they know by its text alone, a group by what is in it."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(described(each) for each in error.exceptions)
    if isinstance(error, DevletError):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def type_problem(value: Struct, members: Collection[str], where: str = "") -> str:
    """Where one of these members is not of the type that it should be, also in values that are in its list. Empty if
    there is none: Structs take whatever they are given."""
    for field in structs.fields(value):
        if field.name in members:
            given = getattr(value, field.name)
            found = _mismatch(given, field.type, where + field.name) or _problem_within(given, where + field.name)
            if found:
                return found
    return ""


def _mismatch(given: object, type: object, where: str) -> str:
    try:
        msgspec.convert(given, type)
    except msgspec.ValidationError as e:
        text, _, place = str(e).partition(" - at `$")
        return f"{where}{place.removesuffix('`').replace('[...]', '')}: {text}"
    return ""


def _problem_within(given: object, where: str) -> str:
    if not isinstance(given, Sequence):
        return ""
    parts = ((i, each) for i, each in enumerate(given) if isinstance(each, Struct))
    problems = (type_problem(each, each.__struct_fields__, f"{where}[{i}].") for i, each in parts)
    return next(filter(None, problems), "")
