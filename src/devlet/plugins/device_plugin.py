"""A connected device plugin: the devices it reports and the calls to it.

Protobuf and the API versions stop here: callers see `Device`, `Grant`, plain ids and errors from `devlet.errors`.
One object is one registered instance. It neither reconnects nor retries; its caller decides that.
"""

import logging
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
from devlet.kit.facts import facts
from devlet.objects.identifiers import DeviceID, ResourceName
from devlet.objects.types.edits import DeviceNode, Mount
from devlet.plugins import grants
from devlet.plugins.channels import Connection, connection
from devlet.plugins.devices import (
    DOCUMENTED_ID_LENGTH,
    HEALTHY,
    ID_LENGTH,
    NUMA_NODES,
    UNHEALTHY,
    Device,
    Grant,
    Options,
)
from devlet.wire.deviceplugin_v1alpha import api_pb2 as pb_alpha
from devlet.wire.deviceplugin_v1beta1 import api_pb2 as pb

__all__ = [
    "Api",
    "DeviceLists",
    "DevicePlugin",
    "Offer",
    "Settings",
    "connected",
]

log = logging.getLogger(__name__)

M = TypeVar("M", bound=Message)

_IN_THREAD = 128 * 1024  # bytes of a list that would block the event loop noticeably while it is decoded

# Use the same string object for all: most of 50,000 devices have one of these.
_HEALTH = {HEALTHY: HEALTHY, UNHEALTHY: UNHEALTHY}


class Api(StrEnum):
    """The API version with which a plugin registers."""

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
    max_message: int = 64 << 20  # needed for device lists
    max_devices: int = 200_000
    max_answer: int = 1 << 20  # of any other answer
    below: Path | None = None  # the only directory whose sockets are called; None: no restriction


class DevicePlugin:
    """Created by `connected`. `pid` is the process that listens, None if it is unknown. When the block of `connected`
    ends, every call raises `PluginUnavailable`, including those under way."""

    def __init__(self, offer: Offer, connection: Connection, settings: Settings) -> None:
        self.offer = offer
        self.options = Options()
        self.pid = connection.pid
        self._connection = connection
        self._settings = settings
        self._service = "/v1beta1.DevicePlugin" if offer.api is Api.V1BETA1 else "/deviceplugin.DevicePlugin"

    async def devices(self) -> AsyncGenerator[tuple[Device, ...], None]:
        """Yield the complete list each time the plugin sends one, without repeated ids. The end of the stream raises
        `PluginUnavailable`, or `PluginRefused` if the plugin gave a reason. The stream may be opened again."""
        lists = DeviceLists(self.offer.resource, self._settings.max_devices)
        async with aclosing(self._connection.stream(f"{self._service}/ListAndWatch", b"")) as messages:
            async for blob in messages:
                if len(blob) < _IN_THREAD:
                    yield lists.decode(blob)
                else:
                    yield await anyio.to_thread.run_sync(lists.decode, blob)

    async def allocate(self, ids: Sequence[DeviceID]) -> Grant:
        """Return what a container gets with these devices."""
        timeout = self._settings.allocate
        match self.offer.api:
            case Api.V1BETA1:
                wanted = pb.AllocateRequest(container_requests=[pb.ContainerAllocateRequest(devices_ids=ids)])
                answer = await self._ask("Allocate", wanted, pb.AllocateResponse, timeout)
                if not answer.container_responses:
                    raise self._refused("its answer to Allocate has no container response")
                return grants.from_message(answer.container_responses[0])
            case Api.V1ALPHA2:  # its answer has the fields of a container response of v1beta1
                old = pb_alpha.AllocateRequest(devicesIDs=ids)
                return grants.from_message(await self._ask("Allocate", old, pb.ContainerAllocateResponse, timeout))
            case Api.V1ALPHA1:
                old = pb_alpha.AllocateRequest(devicesIDs=ids)
                return _merged((await self._ask("Allocate", old, pb_alpha.AllocateResponseV1Alpha1, timeout)).spec)

    async def preferred(
        self, available: Sequence[DeviceID], must_include: Sequence[DeviceID], size: int
    ) -> tuple[DeviceID, ...]:
        """Return the `size` available devices that the plugin prefers, which should include the mandatory ones. The
        answer is not checked. It is empty if the plugin has no preference, as always in the old APIs."""
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
        """Notify the plugin that a container with these devices is about to start. The old APIs do not have this
        call."""
        if self.offer.api is Api.V1BETA1:
            request = pb.PreStartContainerRequest(devices_ids=ids)
            await self._ask("PreStartContainer", request, pb.PreStartContainerResponse, self._settings.pre_start)

    async def ask_options(self) -> Options:
        """Ask for the options. `connected` has already done so: see `options`."""
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
    """Connect to the plugin for the block, and ask for its options. Raise `PluginError` if one of the two fails."""
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
    """Merge the grants for single devices into one. If they conflict, the first one counts."""
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


class DeviceLists:
    """Decodes and checks the lists of one plugin.

    All API versions send the same messages, the old ones without topology. A list is accepted or refused as a whole,
    since a plugin that sends an empty id may have meant anything. Only harmless errors are ignored: a repeated id (the
    last entry counts) and NUMA nodes that no machine has. Each kind of ignored error is logged once.
    """

    def __init__(self, resource: ResourceName, max_devices: int) -> None:
        self._resource = resource
        self._max_devices = max_devices
        self._mentioned: set[str] = set()

    def decode(self, blob: bytes) -> tuple[Device, ...]:
        """Raise `PluginRefused` if the list cannot be decoded or is invalid. This takes a few µs per device: decode
        long lists in a thread."""
        try:
            message = pb.ListAndWatchResponse.FromString(blob)
        except DecodeError as e:
            raise self._refused(f"cannot be decoded: {e}") from e
        listed = message.devices
        if len(listed) > self._max_devices:
            raise self._refused(f"has {len(listed)} devices, more than the {self._max_devices} that are accepted")
        devices = {device.id: device for device in map(self._device, listed)}
        if len(devices) < len(listed):
            self._mention("device listed more than once; the last entry counts", count=len(listed) - len(devices))
        return tuple(devices.values())

    def _device(self, message: pb.Device) -> Device:
        id, health = message.ID, message.health
        if not id:
            raise self._refused("has a device without id")
        if len(id) > DOCUMENTED_ID_LENGTH:
            self._check_long(id)
        nodes = self._nodes(message.topology) if message.HasField("topology") else ()
        return Device(DeviceID(id), _HEALTH.get(health, health), nodes)

    def _check_long(self, id: str) -> None:
        size = len(id.encode())
        if size > ID_LENGTH:
            raise self._refused(f"has a device whose id has {size} bytes, more than {ID_LENGTH}: {id[:63]}…")
        self._mention("device id longer than the documented 63 characters", deviceID=id)

    def _nodes(self, topology: pb.TopologyInfo) -> tuple[int, ...]:
        given = [node.ID for node in topology.nodes]
        if len(given) == 1 and 0 <= given[0] < NUMA_NODES:
            return (given[0],)
        nodes = sorted({node for node in given if 0 <= node < NUMA_NODES})
        if any(not 0 <= node < NUMA_NODES for node in given):
            self._mention("NUMA nodes outside of 0 to 63 ignored", nodes=given[:NUMA_NODES])
        return tuple(nodes)

    def _mention(self, text: str, **values: object) -> None:
        if text not in self._mentioned:
            self._mentioned.add(text)
            log.warning(text, extra=facts(resourceName=self._resource, **values))

    def _refused(self, problem: str) -> PluginRefused:
        return PluginRefused(self._resource, f"its device list {problem}")
