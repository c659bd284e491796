"""A device plugin in a class: say what devices there are, and what a container gets with them.

    class Leds(DevicePlugin):
        resource = "example.com/led"

        async def devices(self):
            yield [PluginDevice("red"), PluginDevice("green", health="Unhealthy")]

        async def allocate(self, ids):
            return Grant(env={"LEDS": ",".join(ids)})

    Leds().main()

`devices` gives whole lists: what is missing in the newest one is gone. Nothing is served before the first list: a node
that is told of no devices at all refuses pods that had some.
"""

import logging
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskStatus

from devlet.errors import DevletError, InvalidInput
from devlet.kit.backoff import Backoff
from devlet.kit.clock import Clock, SystemClock
from devlet.kit.facts import facts
from devlet.kit.parts import running
from devlet.sdk import kubelet_registration
from devlet.sdk.board import Board
from devlet.sdk.device_lists import ID_LENGTH, DeviceList, check_resource, device_list
from devlet.sdk.feed import follow
from devlet.sdk.kubelet_registration import KUBELET_SOCKET, FoundRegistration, KubeletRegistration, Registration
from devlet.sdk.mistakes import heard
from devlet.sdk.plugin_service import Optional, PluginService
from devlet.sdk.server import SocketServer
from devlet.sdk.values import HEALTHY, Grant, PluginDevice

__all__ = ["DIRECTORY", "DevicePlugin", "PluginOptions"]

log = logging.getLogger(__name__)

DIRECTORY: Final = Path("/var/lib/kubelet/device-plugins")

_SILENCE = "devices() has said nothing yet: nothing is registered before its first list"


@dataclass(frozen=True, slots=True)
class PluginOptions:
    """Where the node is, and how long to wait for it. Durations in seconds.

    The plugin's socket lies in `directory`, beside kubelet.sock. If there is a `registry` (/var/lib/kubelet/
    plugins_registry) it lies there instead, and the node finds it by itself. `socket` is its file name; by default it
    is that of the resource."""

    directory: Path = DIRECTORY
    registry: Path | None = None
    socket: str = ""
    register_timeout: float = 30.0
    retry: float = 0.2  # the first wait after a failure, which then doubles
    retry_limit: float = 30.0
    check: float = 60.0  # between two looks whether the node still follows the devices
    id_length: int = ID_LENGTH  # characters of an id; nodes take more than is documented

    def data(self, resource: str) -> Path:
        """The plugin's own directory, where DRA drivers have theirs: only sockets belong beside kubelet.sock."""
        return self.directory.absolute().parent / "plugins" / resource.replace("/", "_")


class DevicePlugin:
    """Give it a `resource`, and write `devices` and `allocate`; the other methods may stay as they are. Calls for
    different containers may come at the same time. The base class keeps no state: several plugins may run in one
    process, and one may run again after it has ended."""

    resource: str = ""

    def devices(self) -> AsyncIterator[Sequence[PluginDevice]]:
        """A whole list at once, and a new one whenever something has changed. A generator that ends has said its last
        word; one that fails is started anew after a while, and the last list stays in the meantime."""
        raise NotImplementedError(f"{type(self).__name__} has no method devices")

    async def allocate(self, ids: Sequence[str]) -> Grant:
        """What one container gets with these devices. An exception refuses its pod. It may be asked for devices that
        it has given before: nobody says when a container is done with them."""
        raise NotImplementedError(f"{type(self).__name__} has no method allocate")

    async def prefer(self, available: Sequence[str], must_include: Sequence[str], size: int) -> Sequence[str]:
        """Which `size` of the available devices fit together best. Fewer are filled up by the node; none is no
        preference. Without this method nobody asks."""
        return ()

    async def pre_start(self, ids: Sequence[str]) -> None:
        """Before each start of a container with these devices, also after a crash: to reset them, say. It has 30 s. An
        exception keeps the container from starting. Without this method nobody asks."""

    def error(self, error: Exception, doing: str) -> None:
        """Something went wrong in the background; it is tried again."""
        known = isinstance(error, DevletError)
        log.error(doing, extra=facts(resourceName=self.resource, err=error), exc_info=None if known else error)

    async def setup(self, options: PluginOptions) -> None:
        """Once, before anything else is asked. A directory for its own files is `options.data(self.resource)`; it may
        have to be made."""

    # As a program

    def arguments(self, parser: ArgumentParser) -> None:
        """Add flags of its own to those of every device plugin."""

    def configure(self, arguments: Namespace) -> None:
        """Take over what the flags say; `InvalidInput` for what cannot be."""

    def main(self, argv: Sequence[str] | None = None) -> None:
        """As a program: see --help."""
        from devlet.sdk.program import run_plugin

        run_plugin(self, argv)

    # What runs

    async def run(
        self,
        options: PluginOptions = PluginOptions(),
        clock: Clock = SystemClock(),
        *,
        task_status: TaskStatus[None] = TASK_STATUS_IGNORED,
    ) -> None:
        """Serve until cancelled; ready when its devices are known and its socket is served. `InvalidInput` if it cannot
        be registered under its name, `InUse` if another process has the socket."""
        check_resource(self.resource, type(self).__name__)
        await self.setup(options)
        life = _Life(self, options, clock)
        async with running(life.follow):
            await life.serve(task_status)


class _Life:
    """A plugin while it runs."""

    def __init__(self, plugin: DevicePlugin, options: PluginOptions, clock: Clock) -> None:
        self._plugin = plugin
        self._clock = clock
        self._id_length = options.id_length
        self._retry = Backoff(options.retry, options.retry_limit)
        self._optional = Optional(_has(plugin, "pre_start"), _has(plugin, "prefer"))
        self._registration = self._choose(options)
        self._board: Board[DeviceList] = Board()

    def _choose(self, options: PluginOptions) -> Registration:
        resource = self._plugin.resource
        settings = kubelet_registration.Settings(options.register_timeout, self._retry, options.check)
        name = options.socket or f"{resource.replace('/', '_')}.sock"
        if "/" in name or name.startswith(".") or name == KUBELET_SOCKET:
            raise InvalidInput(f"{name!r} cannot be the name of the socket of {resource}: expected a file name")
        if options.registry is not None:
            return FoundRegistration(resource, options.registry / name, self._clock, settings)
        return KubeletRegistration(resource, options.directory / name, self._optional, self._clock, settings)

    async def follow(self, *, task_status: TaskStatus[None]) -> None:
        task_status.started()
        await follow(self._plugin.devices, self._take, self._report, self._clock, self._retry, _SILENCE)
        await anyio.sleep_forever()

    def _take(self, devices: Sequence[PluginDevice]) -> None:
        newest = device_list(self._plugin.resource, devices, self._id_length)
        if self._board.value is not None and self._board.value.devices == newest.devices:
            return  # a kubelet writes a file for every list that it gets
        self._board.show(newest)
        healthy = sum(each.health == HEALTHY for each in newest.devices)
        log.info("devices listed", extra=self._facts(devices=len(newest.devices), healthy=healthy))

    def _report(self, error: Exception) -> None:
        heard(self._plugin.error)(error, "devices not listed, the last list stays")

    async def serve(self, task_status: TaskStatus[None]) -> None:
        await self._board.shown()
        with self._registration.watch:
            await self._serve_once(task_status.started)
            while True:
                log.info("plugin is served anew", extra=self._facts(socket=self._registration.socket))
                await self._serve_once(lambda: None)

    async def _serve_once(self, started: Callable[[], None]) -> None:
        service = PluginService(self._plugin, self._board, self._optional)
        server = SocketServer(self._registration.socket, [service.methods, *self._registration.methods])
        async with server.serving():
            started()
            await self._registration.keep(server, lambda: self._board.readers > 0)

    def _facts(self, **values: object) -> dict[str, object]:
        return facts(resourceName=self._plugin.resource, **values)


def _has(plugin: DevicePlugin, method: str) -> bool:
    """Whether the author wrote it."""
    return getattr(type(plugin), method) is not getattr(DevicePlugin, method)
