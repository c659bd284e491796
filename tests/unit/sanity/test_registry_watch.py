"""Sockets are greeted when they appear, and again until somebody answers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from socket import AF_UNIX, socket

import anyio
import pytest

from devlet.errors import PluginError, PluginRefused
from devlet.plugins.channels import connection
from devlet.sanity.registry_watch import RegistryWatch, info, notify
from devlet.sdk.registrar import DRA_PLUGIN, Registrar
from devlet.sdk.server import Methods, SocketServer
from devlet.testing.waiting import deadline

pytestmark = pytest.mark.anyio


class Heard:
    """The first so many greetings come to nothing."""

    def __init__(self, failures: int = 0) -> None:
        self.lines: list[str] = []
        self.failures = failures
        self._more = anyio.Event()

    async def greet(self, path: Path) -> bool:
        self._add(f"greet {path.name}")
        return sum(line.startswith("greet") for line in self.lines) > self.failures

    async def forget(self, path: Path) -> None:
        self._add(f"forget {path.name}")

    def _add(self, line: str) -> None:
        self.lines.append(line)
        self._more.set()
        self._more = anyio.Event()

    async def until(self, *lines: str) -> None:
        with deadline():
            while self.lines[-len(lines) :] != list(lines):
                await self._more.wait()


@asynccontextmanager
async def looking(directory: Path, heard: Heard) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        async with RegistryWatch(directory, tasks, heard.greet, heard.forget).looking():
            yield
        tasks.cancel_scope.cancel()


def bound(path: Path) -> None:
    with socket(AF_UNIX) as made:
        made.bind(str(path))


async def test_what_is_there_and_what_comes_is_greeted_and_what_goes_is_forgotten(root: Path) -> None:
    heard = Heard()
    bound(root / "a.sock")
    (root / "file").touch()
    bound(root / ".hidden")
    async with looking(root, heard):
        await heard.until("greet a.sock")
        bound(root / "b.sock")
        await heard.until("greet b.sock")
        (root / "a.sock").unlink()
        await heard.until("forget a.sock")


async def test_who_makes_its_socket_private_after_it_was_found_stays(root: Path) -> None:
    heard = Heard()
    bound(root / "a.sock")
    async with looking(root, heard):
        await heard.until("forget a.sock", "greet a.sock")
        (root / "a.sock").chmod(0o600)
        bound(root / "b.sock")
        await heard.until("greet b.sock")
    assert heard.lines.count("greet a.sock") == 1


async def test_a_greeting_that_comes_to_nothing_is_tried_again(root: Path) -> None:
    heard = Heard(failures=1)
    bound(root / "a.sock")
    async with looking(root, heard):
        await heard.until("greet a.sock", "forget a.sock", "greet a.sock")


async def test_who_is_there_is_asked_and_told(root: Path) -> None:
    registrar = Registrar(DRA_PLUGIN, "led.example.com", "/dra.sock", ["v1.DRAPlugin"])
    async with (
        SocketServer(root / "reg.sock", [registrar.methods]).serving(),
        connection("reg.sock", root / "reg.sock", within=60, max_message=1 << 20) as dialled,
    ):
        assert (await info(dialled, 5.0)).name == "led.example.com"
        await notify(dialled, "", 5.0)
        with pytest.raises(PluginError):
            await notify(dialled, "nobody knows it", 5.0)


async def test_an_answer_that_cannot_be_read_is_an_error(root: Path) -> None:
    async def garbage(blob: bytes, context: object) -> bytes:
        return b"\xff" * 16

    methods = Methods({"/pluginregistration.Registration/GetInfo": garbage})
    async with (
        SocketServer(root / "reg.sock", [methods]).serving(),
        connection("reg.sock", root / "reg.sock", within=60, max_message=1 << 20) as dialled,
    ):
        with pytest.raises(PluginRefused, match="the response to GetInfo cannot be decoded"):
            await info(dialled, 5.0)
