"""Code that keeps the event loop to itself, and where it is: a `time.sleep` in `prepare`, say.

Nothing else runs meanwhile: no call is answered, no signal heeded, and nothing in the loop could tell. So a thread
looks whether the loop still turns. It costs a timer, and says nothing while all is well.
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

_ADVICE: Final = "the driver stands still: use `await anyio.sleep` or `anyio.to_thread.run_sync` there"
_LIBRARIES: Final = (*(sysconfig.get_path(each) for each in ("purelib", "platlib")), str(Path(devlet.__file__).parent))
_STANDARD: Final = tuple(sysconfig.get_path(each) for each in ("stdlib", "platstdlib"))


@dataclass(frozen=True, slots=True)
class Settings:
    """Durations in seconds."""

    limit: float = 5.0  # without a turn of the loop, until that is told
    interval: float = 1.0  # between two looks


@contextmanager
def watched(settings: Settings = Settings()) -> Iterator[None]:
    """In the block, the loop of this thread is watched."""
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
    """`thread` is that of the loop."""

    def __init__(self, settings: Settings, thread: int, now: float) -> None:
        self._settings = settings
        self._thread = thread
        self._turned = self._looked = now
        self._since: float | None = None  # while it stands still
        self._ended = threading.Event()

    def turn(self, now: float) -> None:
        """The loop does."""
        self._turned = now

    def run(self) -> None:
        while not self._ended.wait(self._settings.interval):
            self.look(time.monotonic())

    def end(self) -> None:
        self._ended.set()

    def look(self, now: float) -> None:
        """Tell each stall once, and its end. Who looks late was stopped along with the whole process."""
        was_late = now - self._looked > self._settings.limit
        self._looked = now
        if self._since is not None and self._since != self._turned:
            log.info("the driver goes on", extra=facts(seconds=round(self._turned - self._since, 1)))
            self._since = None
        if self._since is None and now - self._turned >= self._settings.limit and not was_late:
            self._since = self._turned
            told = facts(at=self._place(), seconds=round(now - self._turned, 1))
            log.warning(_ADVICE, extra=told)

    def _place(self) -> str:
        frame = sys._current_frames().get(self._thread)
        return place(frame) if frame is not None else "unknown"


def place(frame: FrameType) -> str:
    """The innermost line of the author's; of somebody else's if there is none."""
    found = min(_frames(frame), key=_strangeness, default=frame)
    return f"{found.f_code.co_filename}:{found.f_lineno} in {found.f_code.co_name}"


def _frames(innermost: FrameType) -> Iterator[FrameType]:
    """Without those of the loop itself, and of what started it."""
    frame: FrameType | None = innermost
    while frame is not None and frame.f_code.co_filename != asyncio.events.__file__:
        yield frame
        frame = frame.f_back


def _strangeness(frame: FrameType) -> int:
    """Libraries lie within the directory of the standard one."""
    file = frame.f_code.co_filename
    if file.startswith(_LIBRARIES):
        return 1
    return 2 if file.startswith((*_STANDARD, "<")) else 0
