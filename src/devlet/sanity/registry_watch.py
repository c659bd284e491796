"""The directory in which drivers wait to be found: the calls that a kubelet makes there, and how it watches it.

A registration that fails is retried, as a kubelet does, because a socket exists a moment before the driver serves on
it, and on a busy machine that moment is long.
"""

import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.abc import TaskGroup
from google.protobuf.message import DecodeError

from devlet.errors import PluginRefused
from devlet.plugins.channels import Connection
from devlet.wire.pluginregistration import api_pb2 as pb

__all__ = ["RegistryWatch", "info", "notify"]

Socket = tuple[int, int]  # inode, which may be reused, and modification time

_POLL = 0.05  # seconds between two scans of the directory
_AGAIN = 0.5  # seconds until a failed registration is retried
_SERVICE = "/pluginregistration.Registration"


async def info(dialled: Connection, within: float) -> pb.PluginInfo:
    """Call GetInfo. Raises PluginError if the call fails or its response cannot be decoded."""
    blob = await dialled.call(f"{_SERVICE}/GetInfo", b"", timeout=within)
    try:
        return pb.PluginInfo.FromString(blob)
    except DecodeError as e:
        raise PluginRefused(dialled.plugin, f"the response to GetInfo cannot be decoded: {e}") from e


async def notify(dialled: Connection, error: str, within: float) -> None:
    """Call NotifyRegistrationStatus: registered, unless there is an error."""
    status = pb.RegistrationStatus(plugin_registered=not error, error=error)
    await dialled.call(f"{_SERVICE}/NotifyRegistrationStatus", status.SerializeToString(), timeout=within)


class RegistryWatch:
    """Watches the directory. `greet` is called for each new socket, and again if it returns False; `forget` is called
    for a socket that was removed or replaced."""

    def __init__(
        self,
        directory: Path,
        tasks: TaskGroup,
        greet: Callable[[Path], Awaitable[bool]],
        forget: Callable[[Path], Awaitable[None]],
    ) -> None:
        self._directory = directory
        self._tasks = tasks
        self._greet = greet
        self._forget = forget
        self._greeted: dict[Path, Socket] = {}

    @asynccontextmanager
    async def looking(self) -> AsyncIterator[None]:
        """Watch the directory, including the sockets that already exist, until the block is left."""
        scope, ended = anyio.CancelScope(), anyio.Event()

        async def look() -> None:
            try:
                with scope:
                    while True:
                        await self._look()
                        await anyio.sleep(_POLL)
            finally:
                ended.set()

        self._tasks.start_soon(look)
        try:
            yield
        finally:
            scope.cancel()
            await ended.wait()
            self._greeted.clear()

    async def _look(self) -> None:
        present = _sockets(self._directory)
        for path in [path for path in self._greeted if path not in present]:
            del self._greeted[path]
            await self._forget(path)
        for path, socket in present.items():
            if self._greeted.get(path) != socket:
                self._greeted[path] = socket
                await self._forget(path)
                if not await self._greet(path):
                    self._tasks.start_soon(self._again, path, socket)

    async def _again(self, path: Path, socket: Socket) -> None:
        await anyio.sleep(_AGAIN)
        if self._greeted.get(path) == socket:
            del self._greeted[path]


def _sockets(directory: Path) -> dict[Path, Socket]:
    found = {}
    for path in sorted(directory.rglob("*")):
        try:
            status = path.stat()
        except OSError:
            continue
        if stat.S_ISSOCK(status.st_mode) and not path.name.startswith("."):
            found[path] = (status.st_ino, status.st_mtime_ns)
    return found
