"""A connected device plugin: the devices it reports and the calls we make to it.

Protobuf and the API versions stop here: callers see `Device`, `Grant`, plain ids and errors from `devlet.errors`.
One object is one registered instance. It does not reconnect and retries nothing; whoever follows it decides.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

import anyio
from google.protobuf.message import DecodeError, Message
from msgspec import Struct

from devlet.errors import PluginError, PluginRefused
from devlet.objects.identifiers import DeviceID, ResourceName
from devlet.objects.types.edits import DeviceNode, Mount
from devlet.plugins import grants
from devlet.plugins.channels import Connection, connection
from devlet.plugins.device_lists import DeviceLists
from devlet.plugins.devices import Device, Grant, Options
from devlet.wire.deviceplugin_v1alpha import api_pb2 as pb_alpha
from devlet.wire.deviceplugin_v1beta1 import api_pb2 as pb

__all__ = ["Api", "DevicePlugin", "Offer", "Settings", "connected"]

M = TypeVar("M", bound=Message)

_IN_THREAD = 128 * 1024  # bytes of a list that takes long enough to decode to be felt


class Api(StrEnum):
    """The version that a plugin registers with."""

    V1BETA1 = "v1beta1"
    V1ALPHA2 = "v1alpha2"  # Kubernetes 1.9
    V1ALPHA1 = "0.1"  # Kubernetes 1.8


class Offer(Struct, frozen=True):
    """What a plugin registers: this resource, served on that socket."""

    resource: ResourceName
    socket: Path
    api: Api = Api.V1BETA1


@dataclass(frozen=True, slots=True)
class Settings:
    """Durations in seconds, sizes in bytes. The kubelet waits for `options`, `allocate` and `preferred` forever."""

    dial: float = 10.0
    options: float = 10.0
    allocate: float = 30.0
    preferred: float = 10.0
    pre_start: float = 30.0
    max_message: int = 64 << 20  # of a device list, above all
    max_devices: int = 200_000
    max_answer: int = 1 << 20  # to any other call
    below: Path | None = None  # the only directory in which sockets are called; None: everywhere


class DevicePlugin:
    """Made by `connected`. `pid` is the listener's process, None if that is not known. Once the block of `connected` is
    left, every call raises `PluginUnavailable`, also those under way."""

    def __init__(self, offer: Offer, connection: Connection, settings: Settings) -> None:
        self.offer = offer
        self.options = Options()
        self.pid = connection.pid
        self._connection = connection
        self._settings = settings
        self._service = "/v1beta1.DevicePlugin" if offer.api is Api.V1BETA1 else "/deviceplugin.DevicePlugin"

    async def devices(self) -> AsyncGenerator[tuple[Device, ...], None]:
        """The complete list each time the plugin sends one; no id twice. Never ends by itself: when the stream does,
        that is `PluginUnavailable` (or `PluginRefused`, if the plugin said why). May be opened again."""
        lists = DeviceLists(self.offer.resource, self._settings.max_devices)
        async with aclosing(self._connection.stream(f"{self._service}/ListAndWatch", b"")) as messages:
            async for blob in messages:
                if len(blob) < _IN_THREAD:
                    yield lists.decode(blob)
                else:
                    yield await anyio.to_thread.run_sync(lists.decode, blob)

    async def allocate(self, ids: Sequence[DeviceID]) -> Grant:
        """What a container gets along with these devices."""
        timeout = self._settings.allocate
        match self.offer.api:
            case Api.V1BETA1:
                wanted = pb.AllocateRequest(container_requests=[pb.ContainerAllocateRequest(devices_ids=ids)])
                answer = await self._ask("Allocate", wanted, pb.AllocateResponse, timeout)
                if not answer.container_responses:
                    raise self._refused("its answer to Allocate has no container response")
                return grants.from_message(answer.container_responses[0])
            case Api.V1ALPHA2:  # its answer has the fields of what v1beta1 wraps
                old = pb_alpha.AllocateRequest(devicesIDs=ids)
                return grants.from_message(await self._ask("Allocate", old, pb.ContainerAllocateResponse, timeout))
            case Api.V1ALPHA1:
                old = pb_alpha.AllocateRequest(devicesIDs=ids)
                return _merged((await self._ask("Allocate", old, pb_alpha.AllocateResponseV1Alpha1, timeout)).spec)

    async def preferred(
        self, available: Sequence[DeviceID], must_include: Sequence[DeviceID], size: int
    ) -> tuple[DeviceID, ...]:
        """Which `size` of the available devices, that include the others, suit the plugin best: as it says, unchecked.
        Nothing from a plugin that has no preference, which is all that the old APIs know."""
        if self.offer.api is not Api.V1BETA1:
            return ()
        wanted = pb.ContainerPreferredAllocationRequest(
            available_deviceIDs=available, must_include_deviceIDs=must_include, allocation_size=size
        )
        request = pb.PreferredAllocationRequest(container_requests=[wanted])
        timeout = self._settings.preferred
        answer = await self._ask("GetPreferredAllocation", request, pb.PreferredAllocationResponse, timeout)
        return tuple(DeviceID(id) for response in answer.container_responses[:1] for id in response.deviceIDs)

    async def pre_start(self, ids: Sequence[DeviceID]) -> None:
        """Tell the plugin that a container with these devices is about to start; the old APIs have no such call."""
        if self.offer.api is Api.V1BETA1:
            request = pb.PreStartContainerRequest(devices_ids=ids)
            await self._ask("PreStartContainer", request, pb.PreStartContainerResponse, self._settings.pre_start)

    async def ask_options(self) -> Options:
        """Has been done when `connected` yields: see `options`."""
        if self.offer.api is not Api.V1BETA1:
            return Options()
        timeout = self._settings.options
        answer = await self._ask("GetDevicePluginOptions", pb.Empty(), pb.DevicePluginOptions, timeout)
        return Options(answer.pre_start_required, answer.get_preferred_allocation_available)

    async def _ask(self, method: str, request: Message, answer: type[M], timeout: float) -> M:
        blob = await self._connection.call(f"{self._service}/{method}", request.SerializeToString(), timeout=timeout)
        if len(blob) > self._settings.max_answer:
            limit = f"more than the {self._settings.max_answer} that are accepted"
            raise self._refused(f"its answer to {method} has {len(blob)} bytes, {limit}")
        try:
            return answer.FromString(blob)
        except DecodeError as e:
            raise self._refused(f"its answer to {method} cannot be decoded: {e}") from e

    def _refused(self, problem: str) -> PluginRefused:
        return PluginRefused(self.offer.resource, problem)


@asynccontextmanager
async def connected(offer: Offer, settings: Settings = Settings()) -> AsyncIterator[DevicePlugin]:
    """Dial the plugin and ask for its options; both done on entry, or `PluginError` says which failed."""
    async with AsyncExitStack() as stack:
        dial = connection(
            offer.resource,
            offer.socket,
            within=settings.dial,
            max_message=settings.max_message,
            below=settings.below,
        )
        with _explained("failed to dial device plugin"):
            dialled = await stack.enter_async_context(dial)
        plugin = DevicePlugin(offer, dialled, settings)
        with _explained("failed to get device plugin options"):
            plugin.options = await plugin.ask_options()
        yield plugin


@contextmanager
def _explained(what: str) -> Iterator[None]:
    try:
        yield
    except PluginError as e:
        raise type(e)(e.plugin, f"{what}: {e.message}") from e


def _merged(specs: Iterable[pb_alpha.DeviceRuntimeSpec]) -> Grant:
    """One grant of the grants for each device. Where they contradict each other the first counts."""
    env: dict[str, str] = {}
    mounts: dict[str, Mount] = {}
    nodes: dict[str, DeviceNode] = {}
    for spec in specs:
        for name, value in spec.envs.items():
            env.setdefault(name, value)
        for mount in grants.mounts(spec.mounts):
            mounts.setdefault(mount.container_path, mount)
        for node in grants.device_nodes(spec.devices):
            nodes.setdefault(node.container_path, node)
    return Grant(env=dict(sorted(env.items())), mounts=tuple(mounts.values()), devices=tuple(nodes.values()))
