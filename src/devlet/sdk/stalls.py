"""Report code that blocks the event loop, and where it is: for example a `time.sleep` in `prepare`.

Nothing else runs meanwhile: no call is answered, and no signal is handled. Code in the loop could not report it, so a
thread checks that the loop still runs. It costs one timer.
"""

import asyncio
import logging
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final

import devlet
from devlet.kit.facts import facts

__all__ = ["Settings", "Watchdog", "place", "watched"]

log = logging.getLogger(__name__)

_ADVICE: Final = "the driver blocks the event loop: use `await anyio.sleep` or `anyio.to_thread.run_sync` there"
_LIBRARIES: Final = (*(sysconfig.get_path(each) for each in ("purelib", "platlib")), str(Path(devlet.__file__).parent))
_STANDARD: Final = tuple(sysconfig.get_path(each) for each in ("stdlib", "platstdlib"))


@dataclass(frozen=True, slots=True)
class Settings:
    """Durations in seconds."""

    limit: float = 5.0  # without a turn of the loop, after which it is reported
    interval: float = 1.0  # between two checks


@contextmanager
def watched(settings: Settings = Settings()) -> Iterator[None]:
    """Watch the event loop of this thread while the block runs."""
    loop, dog = asyncio.get_running_loop(), Watchdog(settings, threading.get_ident(), time.monotonic())
    thread = threading.Thread(target=dog.run, name="watchdog", daemon=True)

    timer: asyncio.Handle

    def turn() -> None:
        nonlocal timer
        dog.turn(time.monotonic())
        timer = loop.call_later(settings.interval, turn)

    turn()
    thread.start()
    try:
        yield
    finally:
        timer.cancel()
        dog.end()
        thread.join()


class Watchdog:
    """`thread` is the thread of the event loop."""

    def __init__(self, settings: Settings, thread: int, now: float) -> None:
        self._settings = settings
        self._thread = thread
        self._turned = self._looked = now
        self._since: float | None = None  # when the loop was blocked
        self._ended = threading.Event()

    def turn(self, now: float) -> None:
        """Record a turn of the loop."""
        self._turned = now

    def run(self) -> None:
        while not self._ended.wait(self._settings.interval):
            self.look(time.monotonic())

    def end(self) -> None:
        self._ended.set()

    def look(self, now: float) -> None:
        """Report each stall once, and its end. If this check is late itself, the whole process was stopped."""
        was_late = now - self._looked > self._settings.limit
        self._looked = now
        if self._since is not None and self._since != self._turned:
            log.info("the event loop runs again", extra=facts(seconds=round(self._turned - self._since, 1)))
            self._since = None
        if self._since is None and now - self._turned >= self._settings.limit and not was_late:
            self._since = self._turned
            log.warning(_ADVICE, extra=facts(at=self._place(), seconds=round(now - self._turned, 1)))

    def _place(self) -> str:
        frame = sys._current_frames().get(self._thread)
        return place(frame) if frame is not None else "unknown"


def place(frame: FrameType) -> str:
    """Return the innermost line of the author's code, or of a library if there is none."""
    found = min(_frames(frame), key=_strangeness, default=frame)
    return f"{found.f_code.co_filename}:{found.f_lineno} in {found.f_code.co_name}"


def _frames(innermost: FrameType) -> Iterator[FrameType]:
    """Yield the frames within the event loop."""
    frame: FrameType | None = innermost
    while frame is not None and frame.f_code.co_filename != asyncio.events.__file__:
        yield frame
        frame = frame.f_back


def _strangeness(frame: FrameType) -> int:
    """Sort the author's code before libraries. They are in a directory below the standard library's."""
    file = frame.f_code.co_filename
    if file.startswith(_LIBRARIES):
        return 1
    return 2 if file.startswith((*_STANDARD, "<")) else 0
