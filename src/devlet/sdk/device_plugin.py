"""A device plugin in a class: say what devices there are, and what a container gets with them.

    class Leds(DevicePlugin):
        resource = "example.com/led"

        async def devices(self):
            yield [PluginDevice("red"), PluginDevice("green", health="Unhealthy")]

        async def allocate(self, ids):
            return Grant(env={"LEDS": ",".join(ids)})

    Leds().main()

`devices` yields complete lists: a device that is not in the newest list is gone. Nothing is served before the first
list, because a node with an empty list refuses pods that had devices.
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

_SILENCE = "devices() has not yielded a list yet: nothing is registered before the first one"


@dataclass(frozen=True, slots=True)
class PluginOptions:
    """Where the node is, and how long to wait for it. Durations in seconds.

    The plugin's socket is in `directory`, beside kubelet.sock. With a `registry` (/var/lib/kubelet/plugins_registry)
    the socket is there instead, and the node finds it. `socket` is its file name; the default is made from the
    resource."""

    directory: Path = DIRECTORY
    registry: Path | None = None
    socket: str = ""
    register_timeout: float = 30.0
    retry: float = 0.2  # the first wait after a failure, which then doubles
    retry_limit: float = 30.0
    check: float = 60.0  # between checks that the node still follows the devices
    id_length: int = ID_LENGTH  # characters of an id; nodes accept more than is documented

    def data(self, resource: str) -> Path:
        """Return the plugin's own directory. It is among those of DRA drivers: beside kubelet.sock only sockets
        belong."""
        return self.directory.absolute().parent / "plugins" / resource.replace("/", "_")


class DevicePlugin:
    """The base class of device plugins. Set a `resource` and implement `devices` and `allocate`; the rest is optional.

    Calls for different containers may come at the same time. The base class has no state: several plugins may run in
    one process, and a plugin may run again after it ended."""

    resource: str = ""

    def devices(self) -> AsyncIterator[Sequence[PluginDevice]]:
        """Yield the list of all devices, and a new list whenever something changed. When the generator ends, the last
        list stays. When it fails, it is called again after a delay, and the last list stays meanwhile."""
        raise NotImplementedError(f"{type(self).__name__} has no method devices")

    async def allocate(self, ids: Sequence[str]) -> Grant:
        """Return what one container gets with these devices. An exception fails the pod.

        The devices may have been allocated before: the node does not report when a container no longer uses them."""
        raise NotImplementedError(f"{type(self).__name__} has no method allocate")

    async def prefer(self, available: Sequence[str], must_include: Sequence[str], size: int) -> Sequence[str]:
        """Return the `size` available devices that fit together best. If there are fewer, the node adds others. An
        empty list means no preference. Without this method the node does not ask."""
        return ()

    async def pre_start(self, ids: Sequence[str]) -> None:
        """Prepare devices, for example reset them, before each start of a container, also after a crash. It has 30 s.
        An exception keeps the container from starting. Without this method the node does not ask."""

    def error(self, error: Exception, doing: str) -> None:
        """Handle an error in the background. By default it is logged. The work is retried."""
        known = isinstance(error, DevletError)
        log.error(doing, extra=facts(resourceName=self.resource, err=error), exc_info=None if known else error)

    async def setup(self, options: PluginOptions) -> None:
        """Prepare to run; called once, before the other methods. `options.data(self.resource)` is the plugin's own
        directory, which may not exist yet."""

    # As a program

    def arguments(self, parser: ArgumentParser) -> None:
        """Add flags to those of every device plugin."""

    def configure(self, arguments: Namespace) -> None:
        """Read the flags. Raise `InvalidInput` for values that are not valid."""

    def main(self, argv: Sequence[str] | None = None) -> None:
        """Run the plugin as a program; see --help."""
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
        """Serve until cancelled. Ready when the devices are known and the socket is served.

        Raise `InvalidInput` if the resource cannot be registered, and `InUse` if another process has the socket."""
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
            return  # a kubelet writes a file for each list it receives
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
                log.info("plugin is served again", extra=self._facts(socket=self._registration.socket))
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
    """Return True if the author implemented the method."""
    return getattr(type(plugin), method) is not getattr(DevicePlugin, method)
