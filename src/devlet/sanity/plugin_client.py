"""The calls that a kubelet makes to a device plugin, with unmodified responses.

Unlike `devlet.plugins` this corrects nothing, so that checks see duplicates, unknown health and empty responses."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import anyio
from anyio.abc import TaskGroup
from google.protobuf.message import DecodeError, Message

from devlet.plugins.channels import Connection, connection
from devlet.sanity.check import CannotTell, Garbled
from devlet.sanity.device_lists import DeviceListWatch, UnreadStream
from devlet.sanity.patience import Patience
from devlet.wire.deviceplugin_v1beta1 import api_pb2 as pb

__all__ = ["PluginClient", "connected"]

M = TypeVar("M", bound=Message)

MAX_MESSAGE = 64 << 20
_SERVICE = "/v1beta1.DevicePlugin"
_LONGER = {"Allocate": 6, "GetPreferredAllocation": 6, "PreStartContainer": 3}
"""Multiples of the usual time limit, for calls on which a kubelet waits forever or for 30 seconds."""


class PluginClient:
    """A connected plugin. `watch` is the stream that a kubelet keeps open all the time."""

    def __init__(
        self,
        resource: str,
        connection: Connection,
        answer: float,
        tasks: TaskGroup,
        patience: Patience | None = None,
    ) -> None:
        self.resource = resource
        self.path = connection.path
        self.connection = connection
        self._answer = answer
        self._patience = patience or Patience()
        self._tasks = tasks
        self.watch = DeviceListWatch(connection)

    async def options(self) -> pb.DevicePluginOptions:
        return await self.call("GetDevicePluginOptions", pb.Empty(), pb.DevicePluginOptions)

    async def allocate(self, *containers: Sequence[str]) -> pb.AllocateResponse:
        asked = [pb.ContainerAllocateRequest(devices_ids=ids) for ids in containers]
        return await self.call("Allocate", pb.AllocateRequest(container_requests=asked), pb.AllocateResponse)

    async def preferred(self, available: Sequence[str], must: Sequence[str], size: int) -> list[str]:
        asked = pb.ContainerPreferredAllocationRequest(
            available_deviceIDs=available, must_include_deviceIDs=must, allocation_size=size
        )
        request = pb.PreferredAllocationRequest(container_requests=[asked])
        answer = await self.call("GetPreferredAllocation", request, pb.PreferredAllocationResponse)
        return [id for one in answer.container_responses[:1] for id in one.deviceIDs]

    async def pre_start(self, ids: Sequence[str]) -> None:
        request = pb.PreStartContainerRequest(devices_ids=ids)
        await self.call("PreStartContainer", request, pb.PreStartContainerResponse)

    async def call(self, method: str, request: Message, answer: type[M]) -> M:
        blob = await self.raw(method, request.SerializeToString())
        try:
            return answer.FromString(blob)
        except DecodeError as e:
            problem = f"the response to {method} cannot be decoded as v1beta1: {e}"
            raise Garbled(self.resource, problem) from e

    async def raw(self, method: str, blob: bytes) -> bytes:
        with self._patience.waiting(method, self._answer * _LONGER.get(method, 1)) as limit:
            return await self.connection.call(f"{_SERVICE}/{method}", blob, timeout=limit)

    def follow(self) -> DeviceListWatch:
        """Open another stream, which is read until it is closed."""
        watch = DeviceListWatch(self.connection)
        self._tasks.start_soon(watch.run)
        return watch

    @asynccontextmanager
    async def unread_streams(self, count: int) -> AsyncIterator[None]:
        """Keep ListAndWatch calls open without reading more than their first response."""
        streams = [UnreadStream(self.connection) for _ in range(count)]
        try:
            for stream in streams:
                self._tasks.start_soon(stream.run)
            with anyio.move_on_after(self._answer):
                for stream in streams:
                    await stream.opened.wait()
            yield
        finally:
            for stream in streams:
                stream.close()

    def start_watch(self) -> None:
        self._tasks.start_soon(self.watch.run)

    async def devices(self) -> list[pb.Device]:
        """Return the newest list. Raises CannotTell if there is none."""
        await self.watch.until(lambda watch: watch.count > 0, self._answer)
        if self.watch.newest is None:
            raise CannotTell(f"the plugin of {self.resource} has sent no device list: see DP-LIST-1")
        return list(self.watch.newest.devices)

    async def healthy(self, least: int = 1) -> list[str]:
        """Return the sorted IDs of healthy devices. Raises CannotTell if there are too few."""
        ids = sorted({device.ID for device in await self.devices() if device.health == "Healthy"})
        if len(ids) < least:
            raise CannotTell(f"{self.resource} has {len(ids)} healthy devices, and this check needs {least}")
        return ids


@asynccontextmanager
async def connected(
    resource: str,
    path: Path,
    tasks: TaskGroup,
    *,
    dial: float,
    answer: float,
    patience: Patience | None = None,
    below: Path | None = None,
) -> AsyncIterator[PluginClient]:
    """Connect to a plugin. Raises PluginUnavailable if no process listens on the socket."""
    async with connection(resource, path, within=dial, max_message=MAX_MESSAGE, below=below) as dialled:
        yield PluginClient(resource, dialled, answer, tasks, patience)
