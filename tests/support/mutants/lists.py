"""Device plugins that send wrong device lists, or none. See `faulty_device_plugin`."""

import os
import uuid
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import anyio

from devlet.plugins.devices import Device, Grant
from devlet.testing.fake_device_plugin import numbered
from devlet.testing.plugin_script import Call, Context
from devlet.wire.deviceplugin_v1beta1 import api_pb2 as pb
from tests.support.mutants.sound_device_plugin import SoundDevicePlugin

__all__ = ["BUGS"]

Plugin = SoundDevicePlugin


class SendsLate(Plugin):
    """Never send a device list."""

    async def lists(self, first: bytes | None, context: Context) -> AsyncGenerator[bytes, None]:
        await anyio.sleep_forever()
        yield b""


class EndsStream(Plugin):
    """End ListAndWatch after the first list."""

    async def lists(self, first: bytes | None, context: Context) -> AsyncGenerator[bytes, None]:
        async for message in super().lists(first, context):
            yield message
            return


class _Listed(Plugin):
    """Send other devices than it should."""

    def listed(self) -> Sequence[Device]:
        raise NotImplementedError

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.set_devices(self.listed())

    async def following(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        task_status.started()


class LongIds(_Listed):
    """List a device ID of 64 characters."""

    def listed(self) -> Sequence[Device]:
        return [*self.devices, Device(type(self.devices[0].id)("x" * 64))]


class DoubleIds(_Listed):
    """List a device ID twice, healthy and unhealthy."""

    def listed(self) -> Sequence[Device]:
        return [*self.devices, Device(self.devices[0].id, "Unhealthy")]


class OtherHealth(_Listed):
    """List a health value in the wrong case."""

    def listed(self) -> Sequence[Device]:
        return [*self.devices[:-1], Device(self.devices[-1].id, "unhealthy")]


class NoNode(_Listed):
    """List NUMA node -1, the kernel's value for none."""

    def listed(self) -> Sequence[Device]:
        return numbered(4, (-1,))


class LongList(_Listed):
    """Send a device list of more than 4 MiB."""

    def listed(self) -> Sequence[Device]:
        return [Device(type(self.devices[0].id)(f"{number:063}")) for number in range(70_000)]

    def spec(self) -> dict[str, Any]:
        return {"cdiVersion": "0.5.0", "kind": "example.com/led", "devices": []}


class OneStream(Plugin):
    """Send the list only to the first stream."""

    async def lists(self, first: bytes | None, context: Context) -> AsyncGenerator[bytes, None]:
        first = pb.ListAndWatchResponse().SerializeToString() if self.streams else first
        async for message in super().lists(first, context):
            yield message


class EndsTogether(Plugin):
    """End all streams when one of them is closed."""

    async def lists(self, first: bytes | None, context: Context) -> AsyncGenerator[bytes, None]:
        try:
            async for message in super().lists(first, context):
                yield message
        finally:
            self.end_streams("ABORTED", "a stream was closed")


class Repeats(Plugin):
    """Send its list all the time."""

    async def following(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        task_status.started()
        while True:
            self.set_devices(self.devices)
            await anyio.sleep(0.005)


class FewStreams(Plugin):
    """Serve at most ten streams."""

    async def lists(self, first: bytes | None, context: Context) -> AsyncGenerator[bytes, None]:
        if self.streams >= 10:
            await anyio.sleep_forever()
        async for message in super().lists(first, context):
            yield message


class LeaksStreams(Plugin):
    """Leak a directory watch for each stream."""

    async def lists(self, first: bytes | None, context: Context) -> AsyncGenerator[bytes, None]:
        os.open("/", os.O_RDONLY)
        async for message in super().lists(first, context):
            yield message


class Blocked(Plugin):
    """Handle one call at a time, including a list that is being sent."""

    def record(self, call: Call) -> None:
        if call.method != "ListAndWatch" and self.streams > 1:
            self.hang(call.method)
        super().record(call)


class DeafToChanges(Plugin):
    """Never send a change of its devices."""

    def change(self, devices: Sequence[Device]) -> None:
        self._devices = tuple(devices)
        self.write_spec()


class SendsDifferences(Plugin):
    """Send only the devices that changed."""

    def change(self, devices: Sequence[Device]) -> None:
        known = set(self.devices)
        new = [device for device in devices if device not in known]
        self.set_devices(new)
        self._devices = tuple(devices)
        self.write_spec()


class TellsOne(Plugin):
    """Send a change to only one stream."""

    def change(self, devices: Sequence[Device]) -> None:
        streams, self._streams = self._streams, set(list(self._streams)[:1])
        super().change(devices)
        self._streams = streams


class TellsTheDead(Plugin):
    """Send changes to closed streams instead of the open one."""

    closed = 0

    async def lists(self, first: bytes | None, context: Context) -> AsyncGenerator[bytes, None]:
        try:
            async for message in super().lists(first, context):
                yield message
        finally:
            self.closed += 1

    def change(self, devices: Sequence[Device]) -> None:
        if self.closed:
            self.closed -= 1
            self._devices = tuple(devices)
        else:
            super().change(devices)


class TellsTheFirst(Plugin):
    """Send changes only for its first registration."""

    def change(self, devices: Sequence[Device]) -> None:
        if self.registrations > 1:
            self._devices = tuple(devices)
        else:
            super().change(devices)


class GrantsTheFirst(Plugin):
    """List new devices, but allocate only those known at its start."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.first = {device.id for device in self.devices}

    def granted(self, ids: Sequence[str]) -> Grant:
        if unknown := set(ids) - self.first:
            raise LookupError(f"no such device: {', '.join(unknown)}")
        return super().granted(ids)


class RandomIds(_Listed):
    """Use new device IDs at every start."""

    def listed(self) -> Sequence[Device]:
        kind = type(self.devices[0].id)
        return [Device(kind(uuid.uuid4().hex)) for _ in range(3)]


BUGS: dict[str, type[SoundDevicePlugin]] = {
    "DP-LIST-1": SendsLate,
    "DP-LIST-2": EndsStream,
    "DP-LIST-3": LongIds,
    "DP-LIST-4": DoubleIds,
    "DP-LIST-5": OtherHealth,
    "DP-LIST-6": NoNode,
    "DP-LIST-7": OneStream,
    "DP-LIST-8": EndsTogether,
    "DP-LIST-9": LongList,
    "DP-LIST-10": Repeats,
    "DP-LIST-11": FewStreams,
    "DP-LIST-12": LeaksStreams,
    "DP-LIST-13": Blocked,
    "DP-CHANGE-1": DeafToChanges,
    "DP-CHANGE-2": SendsDifferences,
    "DP-CHANGE-3": TellsOne,
    "DP-CHANGE-4": TellsTheDead,
    "DP-CHANGE-5": TellsTheFirst,
    "DP-CHANGE-6": GrantsTheFirst,
    "DP-KILL-2": RandomIds,
}
