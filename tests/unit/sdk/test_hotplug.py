"""Real directories. The clock is a fake, so that what counts as quiet is decided by a test."""

import logging
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.streams.memory import MemoryObjectReceiveStream

from devlet.errors import InvalidInput, Unavailable
from devlet.sdk import hotplug
from devlet.sdk.hotplug import changes
from devlet.sdk.uevents import Uevent
from devlet.testing.fake_clock import FakeClock

pytestmark = pytest.mark.anyio

QUIET = hotplug.Settings().quiet


class Watcher:
    """Counts what `changes` gives."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.count = 0
        self._more = anyio.Event()

    async def follow(self, *directories: Path, **options: Any) -> None:
        async with aclosing(changes(*directories, clock=self.clock, **options)) as seen:  # type: ignore[type-var]
            async for _ in seen:
                self.count += 1
                self._more.set()
                self._more = anyio.Event()

    async def until(self, count: int) -> None:
        while self.count < count:
            await self._more.wait()

    async def settles(self, seconds: float = QUIET) -> None:
        """Let it be quiet, once it has noticed that it is not."""
        await self.clock.sleeping(1)
        await self.clock.advance(seconds)


@asynccontextmanager
async def watching(*directories: Path, **options: Any) -> AsyncIterator[Watcher]:
    watcher = Watcher(FakeClock())
    async with anyio.create_task_group() as tasks:

        async def follow() -> None:
            await watcher.follow(*directories, **options)

        tasks.start_soon(follow)
        await watcher.until(1)
        yield watcher
        tasks.cancel_scope.cancel()


async def test_it_yields_at_once_and_after_every_change(root: Path) -> None:
    async with watching(root) as watcher:
        (root / "tty0").touch()
        await watcher.settles()
        await watcher.until(2)
        (root / "tty0").unlink()
        await watcher.settles()
        await watcher.until(3)


async def test_many_events_are_one_change(root: Path) -> None:
    async with watching(root) as watcher:
        for number in range(200):
            (root / f"tty{number}").touch()
        await watcher.settles()
        await watcher.until(2)
        (root / "last").touch()
        await watcher.settles()
        await watcher.until(3)
        assert watcher.count == 3


async def test_any_of_several_directories_may_change_even_a_missing_one(root: Path) -> None:
    (root / "a").mkdir()
    async with watching(root / "a", root / "serial" / "by-id") as watcher:
        (root / "serial" / "by-id").mkdir(parents=True)
        (root / "serial" / "by-id" / "usb-x").symlink_to("/dev/null")
        await watcher.settles()
        await watcher.until(2)
        (root / "a" / "b").touch()
        await watcher.settles()
        await watcher.until(3)


async def test_what_is_skipped_does_not_matter(root: Path) -> None:
    async with watching(root, skip=lambda name: name == "pts") as watcher:
        (root / "pts").mkdir()
        (root / "pts" / "0").touch()
        (root / "tty0").touch()
        await watcher.settles()
        await watcher.until(2)
        (root / "pts" / "1").touch()
        await anyio.wait_all_tasks_blocked()
        assert watcher.count == 2


async def test_nothing_to_watch_is_a_mistake() -> None:
    with pytest.raises(InvalidInput, match="needs a directory"):
        async for _ in changes():
            pass


class Kernel:
    """In the place of the uevent socket: the real one cannot be made to say something."""

    def __init__(self, heard: MemoryObjectReceiveStream[Uevent | None]) -> None:
        self._heard = heard

    def __enter__(self) -> "Kernel":
        return self

    def __exit__(self, *_: object) -> None:
        self._heard.close()

    async def receive(self) -> Uevent | None:
        return await self._heard.receive()


async def test_only_events_of_the_chosen_subsystems_count(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    say, heard = anyio.create_memory_object_stream[Uevent | None](10)
    monkeypatch.setattr(hotplug, "UeventSocket", lambda: Kernel(heard))
    with say:
        async with watching(root, subsystems=["usb"]) as watcher:
            await say.send(Uevent("add", "/devices/x", "net"))
            await anyio.wait_all_tasks_blocked()
            assert (watcher.count, watcher.clock.wakes_at) == (1, [])
            await say.send(Uevent("add", "/devices/x", "usb"))
            await watcher.settles()
            await watcher.until(2)
            await say.send(None)  # some were lost
            await watcher.settles()
            await watcher.until(3)


async def test_events_without_end_do_not_keep_a_change_back(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    say, heard = anyio.create_memory_object_stream[Uevent | None](10)
    monkeypatch.setattr(hotplug, "UeventSocket", lambda: Kernel(heard))
    settings = hotplug.Settings(limit=2 * QUIET)
    with say:
        async with watching(root, subsystems=["usb"], settings=settings) as watcher:
            await say.send(None)
            for _ in range(4):
                await watcher.clock.sleeping(1)
                assert watcher.count == 1
                await watcher.clock.advance(QUIET / 2)
                await say.send(None)
                await anyio.wait_all_tasks_blocked()
            await watcher.until(2)


async def test_without_uevents_one_warning_is_logged_and_directories_are_watched(
    root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def forbidden() -> None:
        raise Unavailable("uevents cannot be received: Operation not permitted")

    monkeypatch.setattr(hotplug, "UeventSocket", forbidden)
    with caplog.at_level(logging.WARNING):
        async with watching(root, subsystems=["usb"]) as watcher:
            (root / "tty0").touch()
            await watcher.settles()
            await watcher.until(2)
    assert caplog.messages == ["only directories are watched for devices"]


async def test_the_real_socket_goes_along(root: Path) -> None:
    async with watching(root, subsystems=["usb", "tty"]) as watcher:
        (root / "tty0").touch()
        await watcher.settles()
        await watcher.until(2)
