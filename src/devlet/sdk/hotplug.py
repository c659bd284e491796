"""Wait until devices were plugged in or removed.

    async def devices(self):
        identities = Identities(self.directory / "identities.json")
        async for _ in changes("/dev/serial/by-id", subsystems=["usb", "tty"]):
            yield [PluginDevice(each.identity) for each in serial_ports(Roots(), identities)]

The events do not say what changed. Plugging in one stick causes dozens of events in a second, in several places and in
no reliable order. So a driver lists its devices when the events are over.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from pathlib import Path

from devlet.errors import InvalidInput, Unavailable
from devlet.kit import dir_watch
from devlet.kit.clock import Clock, SystemClock
from devlet.kit.dir_watch import DirWatch
from devlet.kit.facts import facts
from devlet.kit.parts import first
from devlet.sdk.uevents import UeventSocket

__all__ = ["Settings", "changes"]

log = logging.getLogger(__name__)

Wait = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Settings:
    """Durations in seconds."""

    quiet: float = 0.2  # without an event, after which the events are over
    limit: float = 2.0  # after which they count as over, even if there are more
    watch: dir_watch.Settings = field(default=dir_watch.Settings())


async def changes(
    *directories: str | PathLike[str],
    subsystems: Collection[str] = (),
    skip: Callable[[str], bool] = lambda name: False,
    clock: Clock = SystemClock(),
    settings: Settings = Settings(),
) -> AsyncIterator[None]:
    """Yield at once, and whenever entries of the directories, or below them, were added or removed. `skip` returns True
    for names to ignore. With `subsystems`, such as usb, also yield when the kernel reports a change in one of them.

    It may also yield without a change. A directory may be missing at first."""
    with ExitStack() as stack:
        waits: list[Wait] = []
        for each in directories:
            watch = stack.enter_context(DirWatch(Path(each), skip=skip, settings=settings.watch))
            await watch.changes()  # the present entries: from now on no change is missed
            waits.append(watch.changes)
        if subsystems and (uevents := _uevents(directories)) is not None:
            waits.append(partial(_heard, stack.enter_context(uevents), frozenset(subsystems)))
        if not waits:
            raise InvalidInput("changes() needs a directory to watch")
        while True:
            yield
            await first(*waits)
            await _settled(waits, clock, settings)


def _uevents(directories: Collection[object]) -> UeventSocket | None:
    try:
        return UeventSocket()
    except Unavailable as e:
        log.warning("only directories are watched for devices", extra=facts(err=e, directories=len(directories)))
        return None


async def _heard(uevents: UeventSocket, subsystems: Collection[str]) -> None:
    while (event := await uevents.receive()) is not None and event.subsystem not in subsystems:
        pass


async def _settled(waits: Collection[Wait], clock: Clock, settings: Settings) -> None:
    limit = clock.monotonic() + settings.limit
    while (now := clock.monotonic()) < limit:
        until = min(now + settings.quiet, limit)
        await first(*waits, partial(clock.sleep, until - now))
        if clock.monotonic() >= until:
            return
