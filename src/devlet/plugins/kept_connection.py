"""A gRPC connection that is dialled again whenever it is lost.

All calls use one channel, so the server accepts only one connection. That is why the socket is not probed beforehand,
and why the state is polled instead of awaited (see `channels`). A call fails at once if there is no listener. While a
connection is being established, a call waits for it.

    not connected ──a server listens──▶ connected ──lost──▶ not connected ──▶ …
          └── not a socket, or of another user: nothing is called, see `problem`
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

import anyio
import grpc
from anyio import CancelScope

from devlet.errors import PluginUnavailable
from devlet.plugins import endpoints
from devlet.plugins.channels import Connection, Observe, dial_options, target

__all__ = ["KeptConnection", "Settings"]

_NEVER = (1 << 31) - 1  # milliseconds, the largest value that gRPC takes


@dataclass(frozen=True, slots=True)
class Settings:
    """Durations in seconds, sizes in bytes."""

    dial: float = 10.0  # for one attempt: a server may accept the connection and then not answer
    look: float = 0.05  # between two checks of the connection
    max_message: int = 16 << 20
    below: Path | None = None  # the only directory whose sockets are called; None: no restriction


class KeptConnection(Connection):
    """Dials while `keep` runs. `connected` is the result of the last check. `on_change` is called when it changes, but
    not when the connection is closed. `observe` is called after every unary call."""

    def __init__(
        self,
        plugin: str,
        path: Path,
        settings: Settings = Settings(),
        *,
        on_change: Callable[[], None],
        observe: Observe | None = None,
    ) -> None:
        options = [*dial_options(settings.max_message, settings.dial), ("grpc.client_idle_timeout_ms", _NEVER)]
        super().__init__(plugin, path, None, grpc.aio.insecure_channel(target(path), options=options), observe)
        self.connected = False
        self._is_foreign = False
        self._settings = settings
        self._on_change = on_change

    async def keep(self) -> None:
        """Keep the connection until cancelled, then close it. Calls under way raise `PluginUnavailable`."""
        try:
            while True:
                self._look()
                await anyio.sleep(self._settings.look)
        finally:
            with CancelScope(shield=True):
                await self.close()

    async def close(self) -> None:
        self.connected = False
        await super().close()

    async def call(self, method: str, request: bytes, *, timeout: float) -> bytes:
        self._check()
        try:
            return await super().call(method, request, timeout=timeout)
        except PluginUnavailable:
            self._look()  # the caller that handles the error must see the connection as lost
            raise

    async def stream(self, method: str, request: bytes) -> AsyncGenerator[bytes, None]:
        self._check()
        try:
            async with aclosing(super().stream(method, request)) as messages:
                async for message in messages:
                    yield message
        except PluginUnavailable:
            self._look()
            raise

    def problem(self) -> str:
        """Return why there is no connection."""
        if refusal := self._refusal():
            return f"{self.path} {refusal}"
        if self._is_foreign:
            return f"{self.path} was not a socket of root or of our user when the connection was established"
        return f"{self.path}: no answer" if self.path.exists() else f"{self.path} does not exist"

    def _check(self) -> None:
        if not self.connected:
            self._look()
        if not self.connected and (self._is_foreign or self._refusal()):
            raise PluginUnavailable(self.plugin, self.problem())

    def _refusal(self) -> str:
        return endpoints.refusal(self.path, self._settings.below)

    def _look(self) -> None:
        if self._stopped:
            return
        fit = self.connected or not self._refusal()
        is_ready = self._channel.get_state(try_to_connect=fit) is grpc.ChannelConnectivity.READY
        # gRPC dials again by itself, whatever exists at the path by then. Replacing the file later does not make such a
        # connection acceptable.
        self._is_foreign = is_ready and (self._is_foreign or not fit)
        if self.connected != (connected := is_ready and not self._is_foreign):
            self.connected = connected
            self._on_change()
