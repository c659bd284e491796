"""Report mistakes in a driver author's code as errors that explain them.

Authors cancel their own tasks, raise exception groups and forget `yield`. None of these may end the driver, look like a
cancellation by the node, or reach the user of a pod as `unhandled errors in a TaskGroup`.
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
    """Return the name of a method as people write it: `Leds.devices()`."""
    return f"{getattr(method, '__qualname__', type(method).__name__).rpartition('<locals>.')[2]}()"


async def asked(method: Callable[..., Awaitable[T]], *arguments: object) -> T:
    """Call a method and return its result. Raise TypeError if the call cannot be awaited."""
    with contained(called(method)):
        given = method(*arguments)
        if not inspect.isawaitable(given):
            raise TypeError(_unlike(method, given, "return"))
        return await given


def heard(listen: Callable[[Exception, str], object]) -> Callable[[Exception, str], None]:
    """Return a function that calls an author's error handler. If the handler fails, both errors are logged."""

    def hear(error: Exception, doing: str) -> None:
        try:
            _check_plain(listen, listen(error, doing))
        except Exception as e:
            log.error(doing, extra=facts(err=error), exc_info=error)
            log.error("error handler failed", extra=facts(method=called(listen), err=described(e)), exc_info=e)

    return hear


def _check_plain(method: Callable[..., object], given: Any) -> None:
    if isinstance(given, Coroutine):
        given.close()
        raise TypeError(f"{called(method)} is not awaited: use `def`, not `async def`")


async def answers(ask: Callable[[], AsyncIterator[T]]) -> AsyncGenerator[T, None]:
    """Yield what a method yields. Raise TypeError if it does not return an asynchronous iterator."""
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
    """Raise RuntimeError in place of a cancellation from within the block, and of `sys.exit` unless it is allowed, also
    if they are in an exception group."""
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
    """Return the text of an error for people: of a DevletError its message, of a group the texts of its errors."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(described(each) for each in error.exceptions)
    if isinstance(error, DevletError):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def listed(given: object, method: str, expected: str) -> tuple[Any, ...]:
    """Return the items of a list. Raise InvalidInput if it is not a list. The items are not checked."""
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise InvalidInput(f"{method} gave {given!r}, expected a list of {expected}")
    return tuple(given)


def env_problems(env: Mapping[str, str]) -> list[str]:
    """Report names that an environment variable cannot have."""
    return [f"env: {name!r} is not the name of a variable" for name in env if not name or set(name) & set("=\0")]


def type_problem(value: Struct, members: Collection[str], where: str = "") -> str:
    """Report a field whose value has the wrong type, also within the items of a list; an empty string if there is none.

    Structs do not check the types of their values."""
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
