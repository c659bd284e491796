"""Wait for an event with a generous deadline, and report what was awaited and what was seen if it does not come.

    pod = await until(read_pod, lambda pod: pod["status"]["phase"] == "Running")
    with deadline():
        await driver.until_registered()

The deadline is there to end a test that would otherwise hang. It says nothing about how fast something should be, so
it is long enough for a very busy machine.
"""

import asyncio
import linecache
import threading
import traceback
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self, TypeVar

import anyio

from devlet.kit import diagnostics

__all__ = ["DEADLINE", "ThreadSafeChanges", "deadline", "until"]

T = TypeVar("T")

DEADLINE = 60.0  # seconds
INTERVAL = 0.05  # seconds between two looks
SHOWN = 4_000  # characters of the last value that a failure shows
LOCAL = 300  # characters of a local variable


async def until(read: Callable[[], Awaitable[T]], holds: Callable[[T], bool] = bool, *, within: float = DEADLINE) -> T:
    """Return what `read` returns as soon as `holds` is true of it.

    Raises AssertionError after `within` seconds, with the value that was read last and a description of what is
    running."""
    seen: list[T] = []
    with anyio.move_on_after(within):
        while True:
            seen[:] = [await read()]
            if holds(seen[0]):
                return seen[0]
            await anyio.sleep(INTERVAL)
    shown = await anyio.to_thread.run_sync(diagnostics.collect)
    raise AssertionError(f"not within {within:g} s; last seen: {str(seen)[:SHOWN]}{shown}")


class deadline:
    """End the block after `within` seconds with an AssertionError that shows where it waited.

    The error has the lines of the test that were waiting, their local variables, and a description of what is
    running."""

    def __init__(self, within: float = DEADLINE) -> None:
        self._within = within

    def __enter__(self) -> Self:
        self._scope = anyio.move_on_after(self._within)
        self._scope.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scope.__exit__(kind, error, trace)
        if self._scope.cancelled_caught:
            text = f"not within {self._within:g} s: {_waited(trace)}{diagnostics.collect()}"
            raise AssertionError(text) from None


def _waited(trace: TracebackType | None) -> str:
    """Return the statement that was waiting, and the local variables of every frame outside site-packages."""
    frames = [
        (frame, line) for frame, line in traceback.walk_tb(trace) if "site-packages" not in frame.f_code.co_filename
    ]
    lines = []
    for frame, line in frames:
        code = frame.f_code
        text = linecache.getline(code.co_filename, line).strip()
        lines.append(f"{text}\n    at {code.co_filename}:{line} in {code.co_name}")
        lines += [f"    {name} = {_short(value)}" for name, value in frame.f_locals.items()]
    return "\n  ".join(lines)


def _short(value: object) -> str:
    try:
        text = repr(value)
    except Exception as e:
        text = f"({type(value).__name__} without a repr: {e!r})"
    return text if len(text) <= LOCAL else f"{text[:LOCAL]}…"


class ThreadSafeChanges:
    """Wait for changes in another task or in another thread: tests without `async` have their node in one.

        changes.notify()                                         # in any thread, after the change
        await changes.until(lambda: len(calls) > 2)              # in any event loop
        changes.wait_until(lambda: len(calls) > 2, within=5.0)   # in a thread without one

    The condition is evaluated now and after each notification."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, anyio.Event]] = []

    def notify(self) -> None:
        with self._changed:
            waiting, self._waiting = self._waiting, []
            self._changed.notify_all()
        for loop, event in waiting:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

    async def until(self, holds: Callable[[], bool]) -> None:
        while True:
            event = anyio.Event()
            with self._changed:
                if holds():
                    return
                self._waiting.append((asyncio.get_running_loop(), event))
            await event.wait()

    def wait_until(self, holds: Callable[[], bool], *, within: float) -> bool:
        """Return whether the condition became true within the seconds."""
        with self._changed:
            return self._changed.wait_for(holds, within)
