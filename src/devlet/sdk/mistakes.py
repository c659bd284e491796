"""What the code of a driver's author does wrong, as errors that say so.

Authors cancel their own tasks, raise groups of errors and forget `yield`. None of it may end the driver, be taken for
the node's giving up, or reach the user of a pod as `unhandled errors in a TaskGroup`.
"""

import asyncio
import inspect
import logging
import math
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from typing import Any, TypeVar

import anyio
import msgspec
from msgspec import Struct, structs

from devlet.errors import DevletError, InvalidInput
from devlet.kit.facts import facts

__all__ = ["answers", "asked", "called", "contained", "described", "env_problems", "heard", "listed", "type_problem"]

log = logging.getLogger(__name__)

T = TypeVar("T")


def called(method: Callable[..., object]) -> str:
    """For people: `Leds.devices()`."""
    return f"{getattr(method, '__qualname__', type(method).__name__).rpartition('<locals>.')[2]}()"


async def asked(method: Callable[..., Awaitable[T]], *arguments: object) -> T:
    """What a method returns. TypeError if it cannot be awaited."""
    with contained(called(method)):
        given = method(*arguments)
        if not inspect.isawaitable(given):
            raise TypeError(_unlike(method, given, "return"))
        return await given


def heard(listen: Callable[[Exception, str], object]) -> Callable[[Exception, str], None]:
    """A method that hears of errors. If it fails itself both errors are logged, and no harm is done."""

    def hear(error: Exception, doing: str) -> None:
        try:
            _check_plain(listen, listen(error, doing))
        except Exception as e:
            log.error(doing, extra=facts(err=error), exc_info=error)
            log.error("an error was not heard of", extra=facts(method=called(listen), err=described(e)), exc_info=e)

    return hear


def _check_plain(method: Callable[..., object], given: Any) -> None:
    if isinstance(given, Coroutine):
        given.close()
        raise TypeError(f"{called(method)} is awaited by nobody: `def`, not `async def`")


async def answers(ask: Callable[[], AsyncIterator[T]]) -> AsyncGenerator[T, None]:
    """What a method yields. TypeError if it is no asynchronous generator, nor anything like it."""
    given = ask()
    if not isinstance(given, AsyncIterator):
        raise TypeError(_unlike(ask, given, "yield"))
    try:
        async for each in given:
            yield each
    finally:
        if (close := getattr(given, "aclose", None)) is not None:
            await close()


def _unlike(method: Callable[..., object], given: object, word: str) -> str:
    if isinstance(given, Coroutine):
        given.close()
    return f"{called(method)} gave a {type(given).__name__}, expected `async def` and `{word}`"


@contextmanager
def contained(what: str, *, may_exit: bool = False) -> Iterator[None]:
    """RuntimeError for a cancellation that nobody asked for, and for `sys.exit` unless it may. A group with one in it
    is told by its errors."""
    try:
        yield
    except (asyncio.CancelledError, SystemExit, BaseExceptionGroup) as e:
        if isinstance(e, Exception) or _is_cancelled() or _has(e, KeyboardInterrupt):
            raise
        if not _has(e, SystemExit):
            raise RuntimeError(f"{what} was cancelled from within: {described(e)}") from e
        if may_exit:
            raise
        raise RuntimeError(f"{what} called sys.exit: raise an error instead: {described(e)}") from e


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return anyio.current_effective_deadline() == -math.inf or (task is not None and task.cancelling() > 0)


def _has(error: BaseException, kind: type[BaseException]) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(kind) is not None
    return isinstance(error, kind)


def described(error: BaseException) -> str:
    """For people: an error of a kind that they know by its text alone, a group by what is in it."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(described(each) for each in error.exceptions)
    if isinstance(error, DevletError):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def listed(given: object, method: str, expected: str) -> tuple[Any, ...]:
    """InvalidInput for what is no list. What is in it is not looked at."""
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise InvalidInput(f"{method} gave {given!r}, expected a list of {expected}")
    return tuple(given)


def env_problems(env: Mapping[str, str]) -> list[str]:
    """Names that no variable can have."""
    return [f"env: {name!r} is not the name of a variable" for name in env if not name or set(name) & set("=\0")]


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
