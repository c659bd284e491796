"""A device plugin that a test controls, on a real socket.

    async with FakeDevicePlugin(directory, "vendor.com/gpu", 2) as plugin:     # devices dev-0 and dev-1
        await plugin.register()                                # with directory/kubelet.sock
        plugin.set_devices([Device("dev-0", "Unhealthy")])     # sends the new list
        plugin.hang("Allocate")                                # see `plugin_script` for other faults
        assert plugin.asked("Allocate") == [Call("Allocate", ("dev-0",))]

With `registry` it can be found in that directory (`plugins_registry`) instead of registering itself. With `follow` it
registers by itself, and again whenever kubelet.sock is created, as real plugins do. As a process of its own, which
can be killed like a real one:

    python -m devlet.testing.fake_device_plugin --directory D --resource vendor.com/gpu --devices 8 --numa 0,1
"""

import argparse
import logging
import math
import re
import signal
import socket as sockets
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
import grpc
from anyio.streams.memory import MemoryObjectSendStream
from inotify_simple import INotify, flags

from devlet.kit import facts
from devlet.kit.grpc_calls import answered
from devlet.kit.parts import running
from devlet.objects.identifiers import DeviceID
from devlet.plugins.channels import target
from devlet.plugins.device_plugin import Api
from devlet.plugins.devices import Device, Grant, Options
from devlet.plugins.registration_server import SOCKET
from devlet.testing import fake_plugin_services as services
from devlet.testing.plugin_script import Call, Context, Script
from devlet.testing.spelling import status_code
from devlet.testing.waiting import DEADLINE
from devlet.wire.deviceplugin_v1beta1 import api_pb2 as pb
from devlet.wire.pluginregistration import api_pb2 as pb_registration

__all__ = ["NO_RESPONSE", "Call", "FakeDevicePlugin", "large_answer", "numbered"]

log = logging.getLogger("devlet.testing.fake_device_plugin")  # also as `__main__`

NO_RESPONSE = b""  # for `answer("Allocate", …)`: an answer without any container

_RETRY = 0.05  # seconds between attempts to register
_CHANNEL = [("grpc.default_authority", "localhost"), ("grpc.use_local_subchannel_pool", 1)]


def numbered(count: int, numa: Sequence[int] = ()) -> tuple[Device, ...]:
    """Return healthy devices dev-0, dev-1, …, on the given NUMA nodes in turn."""
    return tuple(
        Device(DeviceID(f"dev-{number}"), nodes=(numa[number % len(numa)],) if numa else ()) for number in range(count)
    )


def large_answer(size: int) -> bytes:
    """Return a message for `answer("Allocate", …)`: an environment variable of `size` bytes."""
    granted = pb.ContainerAllocateResponse(envs={"LARGE": "x" * size})
    return pb.AllocateResponse(container_responses=[granted]).SerializeToString()


class FakeDevicePlugin(Script):
    """A device plugin that serves while its block runs. `devices` is a list, or a number of healthy devices.

    These attributes may be changed at any time: `options`; `grant`, which makes the answer to Allocate (by default an
    environment variable named after the resource, with the ids); `prefer`, which answers GetPreferredAllocation (by
    default with the first devices); and the answer to GetInfo: `type`, `endpoint`, `versions`."""

    def __init__(
        self,
        directory: Path,
        resource: str = "vendor.com/gpu",
        devices: int | Iterable[Device] = 2,
        *,
        socket: str = "",
        api: Api = Api.V1BETA1,
        options: Options = Options(),
        registry: Path | None = None,
        follow: bool = False,
    ) -> None:
        super().__init__()
        self.directory = directory
        self.resource = resource
        self.path = directory / (socket or f"{_word(resource).lower()}.sock")
        self.api = api
        self.options = options
        self.grant: Callable[[Sequence[str]], Grant] = self._name_devices
        self.prefer: Callable[[Sequence[str], Sequence[str], int], Sequence[str]] = _first
        self.type = "DevicePlugin"
        self.endpoint = "" if registry == directory else str(self.path)
        self.versions = [str(api)]
        self.statuses: list[tuple[bool, str]] = []  # the answers of NotifyRegistrationStatus, with their errors
        self.registrations = 0  # how often `register` succeeded
        self._devices = numbered(devices) if isinstance(devices, int) else tuple(devices)
        self._registry = registry
        self._follow = follow
        self._server: grpc.aio.Server | None = None
        self._streams: set[MemoryObjectSendStream[bytes | tuple[grpc.StatusCode, str]]] = set()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.stop)
            await self.start()
            if self._follow:
                await stack.enter_async_context(running(self._registering))
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    @property
    def devices(self) -> tuple[Device, ...]:
        return self._devices

    @property
    def streams(self) -> int:
        """The number of open ListAndWatch streams."""
        return len(self._streams)

    def set_devices(self, devices: int | Iterable[Device]) -> None:
        """Send this list on every open stream, and first on later streams."""
        self._devices = numbered(devices) if isinstance(devices, int) else tuple(devices)
        for stream in self._streams:
            stream.send_nowait(services.device_list(self._devices))

    def send(self, message: bytes) -> None:
        """Send any bytes as a device list on every open stream."""
        for stream in self._streams:
            stream.send_nowait(message)

    def end_streams(self, code: str = "", text: str = "") -> None:
        """End every open ListAndWatch stream: with the gRPC status of that name, or without an error."""
        status = status_code(code) if code else None
        for stream in list(self._streams):
            if status:
                stream.send_nowait((status, text))
            else:
                stream.close()
                self._streams.discard(stream)

    async def register(
        self,
        *,
        version: str | None = None,
        endpoint: str | None = None,
        resource: str | None = None,
        timeout: float = DEADLINE,
    ) -> None:
        """Register with the device manager of the directory, by default with the plugin's own values. Raise
        `grpc.aio.AioRpcError` if the manager refuses."""
        request = services.register_request(
            str(self.api) if version is None else version,
            self.path.name if endpoint is None else endpoint,
            self.resource if resource is None else resource,
            self.options,
        )
        package = "v1beta1" if self.api is Api.V1BETA1 else "deviceplugin"
        async with grpc.aio.insecure_channel(target(self.directory / SOCKET), options=_CHANNEL) as channel:
            call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
                f"/{package}.Registration/Register"
            )
            await answered(call(request, timeout=timeout))
        self.registrations += 1
        self._changes.notify()

    async def until_registered(self, times: int = 1) -> None:
        """Wait until it was registered `times` times, in either way."""
        await self._changes.until(
            lambda: self.registrations + sum(registered for registered, _ in self.statuses) >= times
        )

    async def until_refused(self) -> str:
        """Wait for a NotifyRegistrationStatus that refuses the plugin, and return its error."""
        refusals = await self._changes.until(lambda: [error for registered, error in self.statuses if not registered])
        return refusals[-1]

    async def until_streams(self, count: int) -> None:
        """Wait until exactly `count` ListAndWatch streams are open."""
        await self._changes.until(lambda: self.streams == count)

    async def start(self) -> None:
        """Start to serve on the socket; the block does so on entry."""
        self._server = services.server(self, watched=self._registry is not None)
        for path in self._paths():
            self._server.add_insecure_port(target(path))
        await self._server.start()

    async def stop(self) -> None:
        """Stop as a process that ends in order: connections are closed and the socket is removed. Idempotent."""
        server, self._server = self._server, None
        if server:
            with anyio.CancelScope(shield=True):
                await server.stop(None)

    async def crash(self) -> None:
        """Stop as a killed process: connections are closed, and a socket without a listener stays."""
        await self.stop()
        for path in self._paths():
            with sockets.socket(sockets.AF_UNIX) as dead:
                dead.bind(str(path))

    async def restart(self) -> None:
        """Stop if it serves, and serve again on the same path. It does not register again."""
        await self.stop()
        await self.start()

    async def lists(self, first: bytes | None, context: Context) -> AsyncGenerator[bytes, None]:
        send, receive = anyio.create_memory_object_stream[bytes | tuple[grpc.StatusCode, str]](math.inf)
        with send, receive:
            send.send_nowait(services.device_list(self._devices) if first is None else first)
            self._streams.add(send)
            self._changes.notify()
            try:
                async for message in receive:
                    if isinstance(message, tuple):
                        await context.abort(message[0], message[1])
                    yield message
            finally:
                self._streams.discard(send)
                self._changes.notify()

    def info(self) -> pb_registration.PluginInfo:
        return pb_registration.PluginInfo(
            type=self.type, name=self.resource, endpoint=self.endpoint, supported_versions=self.versions
        )

    def notified(self, registered: bool, error: str) -> None:
        self.statuses.append((registered, error))
        self._changes.notify()

    async def _registering(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        with INotify(nonblocking=True) as changes:
            changes.add_watch(self.directory, flags.CREATE | flags.MOVED_TO)
            task_status.started()
            while True:
                if (self.directory / SOCKET).exists():
                    await self._register_again()
                await self._until_created(changes)

    async def _until_created(self, changes: INotify) -> None:
        while not any(event.name == SOCKET for event in changes.read(timeout=0)):
            await anyio.wait_readable(changes)

    async def _register_again(self) -> None:
        """Register again. A manager that starts removes the sockets of plugins, so the socket is created first."""
        while (self.directory / SOCKET).exists():
            if not self.path.exists():
                await self.restart()
            try:
                await self.register()
            except grpc.aio.AioRpcError as e:
                log.info("registration failed", extra=facts.facts(resourceName=self.resource, err=e.details()))
                await anyio.sleep(_RETRY)
            else:
                log.info("plugin registered", extra=facts.facts(resourceName=self.resource, socket=str(self.path)))
                return

    def cdi_grant(self, ids: Sequence[str]) -> Grant:
        """A function for `grant`: CDI devices whose kind is the resource. The caller has to write their specs."""
        return Grant(cdi_devices=tuple(f"{self.resource}={id}" for id in ids))

    def _paths(self) -> set[Path]:
        return {self.path, (self._registry or self.directory) / self.path.name}

    def _name_devices(self, ids: Sequence[str]) -> Grant:
        return Grant(env={_word(self.resource): ",".join(ids)})


def _word(resource: str) -> str:
    return re.sub("[^A-Za-z0-9]", "_", resource).upper()


def _first(available: Sequence[str], must_include: Sequence[str], size: int) -> Sequence[str]:
    return [*must_include, *(id for id in sorted(available) if id not in must_include)][:size]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one plugin until SIGTERM; see --help."""
    given = _parser().parse_args(arguments)
    facts.configure("text")
    plugin = partial(
        FakeDevicePlugin,
        given.directory.absolute(),
        given.resource,
        numbered(given.devices, given.numa),
        socket=given.socket,
        api=given.api,
        options=Options(given.pre_start, given.preferred_allocation),
        registry=given.registry and given.registry.absolute(),
        follow=given.registry is None,
    )
    anyio.run(_run, plugin, given.cdi)


async def _run(make: Callable[[], FakeDevicePlugin], cdi: bool) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with make() as plugin:
            if cdi:
                plugin.grant = plugin.cdi_grant
            log.info("plugin serving", extra=facts.facts(resourceName=plugin.resource, socket=str(plugin.path)))
            async for _ in signals:
                break


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fake_device_plugin", description="A device plugin with simulated devices, for tests."
    )
    parser.add_argument(
        "--directory", type=Path, required=True, help="directory of the plugin's socket and of kubelet.sock"
    )
    parser.add_argument("--resource", default="vendor.com/gpu", help="resource name (vendor.com/gpu)")
    parser.add_argument("--devices", type=int, default=2, help="number of devices (2)")
    parser.add_argument("--numa", type=_numbers, default=(), help="NUMA nodes of the devices, in turn: 0,1")
    parser.add_argument("--socket", default="", help="name of the plugin's socket")
    parser.add_argument("--api", type=Api, default=Api.V1BETA1, help="API version: " + ", ".join(Api))
    parser.add_argument("--pre-start", action="store_true", help="require PreStartContainer")
    parser.add_argument("--preferred-allocation", action="store_true", help="offer GetPreferredAllocation")
    parser.add_argument("--cdi", action="store_true", help="return CDI devices, named RESOURCE=ID")
    parser.add_argument(
        "--registry", type=Path, help="create the socket here, such as plugins_registry, instead of registering"
    )
    return parser


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


if __name__ == "__main__":
    main()
