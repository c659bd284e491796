"""Call a plugin on its socket in the registry directory: ask for its info, and report whether it was registered.

Here the plugin is the server. Only the size of its answer is checked; the handler for its type checks the names.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from google.protobuf.message import DecodeError
from msgspec import Struct

from devlet.errors import InvalidInput, PluginRefused
from devlet.kit import socket_paths
from devlet.plugins import endpoints
from devlet.plugins.channels import Connection, connection
from devlet.wire.pluginregistration import api_pb2 as pb

__all__ = ["PluginInfo", "RegistrationClient", "Settings", "connected_client"]

_SERVICE = "/pluginregistration.Registration"
_MAX_MESSAGE = 64 << 10  # bytes, either way
_MAX_TEXT = 1024  # characters of a type, a name, an endpoint, a version
_MAX_VERSIONS = 64
_MAX_ERROR = 4096  # characters of an error that a plugin gets


@dataclass(frozen=True, slots=True)
class Settings:
    """Durations in seconds."""

    dial: float = 10.0
    get_info: float = 1.0
    notify: float = 5.0
    below: Path | None = None  # the only directory whose sockets are called; None: no restriction


class PluginInfo(Struct, frozen=True):
    """The answer of a plugin to GetInfo. An empty endpoint means the socket on which it was called."""

    type: str
    name: str
    endpoint: str = ""
    versions: tuple[str, ...] = ()

    def served_on(self, socket: Path) -> Path:
        """Return the announced path of the endpoint. `socket` is the one on which the plugin was called. Raise
        `InvalidInput` if the path is invalid."""
        if not self.endpoint:
            return socket
        if not self.endpoint.startswith("/") or "\0" in self.endpoint:
            raise InvalidInput(f"the endpoint {self.endpoint!r} is not an absolute path")
        if socket_paths.length(Path(self.endpoint)) > socket_paths.MAX_BYTES:
            raise InvalidInput(f"the endpoint {self.endpoint} is longer than {socket_paths.MAX_BYTES} bytes")
        return Path(self.endpoint)


class RegistrationClient:
    """A connected plugin. Created by `connected_client`, for its block."""

    def __init__(self, connection: Connection, settings: Settings) -> None:
        self._connection = connection
        self._settings = settings

    async def info(self) -> PluginInfo:
        """Call GetInfo. Raise `PluginUnavailable`, or `PluginRefused` if the answer is invalid."""
        answer = await self._connection.call(f"{_SERVICE}/GetInfo", b"", timeout=self._settings.get_info)
        try:
            info = pb.PluginInfo.FromString(answer)
        except DecodeError as e:
            raise PluginRefused(self._connection.plugin, f"its answer to GetInfo cannot be decoded: {e}") from e
        texts = (info.type, info.name, info.endpoint, *info.supported_versions)
        if len(texts) > _MAX_VERSIONS + 3 or max(map(len, texts)) > _MAX_TEXT:
            limits = f"{_MAX_VERSIONS} versions and {_MAX_TEXT} characters"
            raise PluginRefused(self._connection.plugin, f"its answer to GetInfo has more than {limits} in a field")
        return PluginInfo(info.type, info.name, info.endpoint, tuple(info.supported_versions))

    def served_on(self, info: PluginInfo) -> Path:
        """Return the path of the plugin's endpoint for us. Raise `InvalidInput` if it is invalid or outside of our
        root."""
        announced, below = info.served_on(self._connection.path), self._settings.below
        return announced if below is None else endpoints.locate(announced, below, self._connection.pid)

    async def accept(self) -> None:
        await self._notify(pb.RegistrationStatus(plugin_registered=True))

    async def refuse(self, why: str) -> None:
        await self._notify(pb.RegistrationStatus(plugin_registered=False, error=why[:_MAX_ERROR]))

    async def _notify(self, status: pb.RegistrationStatus) -> None:
        method = f"{_SERVICE}/NotifyRegistrationStatus"
        await self._connection.call(method, status.SerializeToString(), timeout=self._settings.notify)


@asynccontextmanager
async def connected_client(socket: Path, settings: Settings = Settings()) -> AsyncIterator[RegistrationClient]:
    """Connect to the plugin for the block. Raise `PluginUnavailable` if no gRPC server listens on the socket."""
    async with connection(
        os.fspath(socket), socket, within=settings.dial, max_message=_MAX_MESSAGE, below=settings.below
    ) as dialled:
        yield RegistrationClient(dialled, settings)
