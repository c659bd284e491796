"""DRA drivers that report health incorrectly. See `faulty_dra_driver`."""

import os
from collections.abc import AsyncIterator, Sequence

import anyio

from devlet.sdk.server import Context, Stream, Unary
from devlet.sdk.values import DeviceHealth
from devlet.wire.dra_health import api_pb2 as pb
from tests.support.mutants.sound_dra_driver import PREPARE, SoundDraDriver

__all__ = ["BUGS", "CountsStreams"]

Driver = SoundDraDriver


class Mute(Driver):
    """Never send a health list."""

    async def watched(self, path: str, stream: Stream, blob: bytes, context: Context) -> AsyncIterator[bytes]:
        await anyio.sleep_forever()
        yield b""


class UnknownDevice(Driver):
    """Report the health of a device that it does not publish."""

    def reports(self) -> Sequence[DeviceHealth]:
        return [*super().reports(), DeviceHealth(self.node, "led-99")]


class NotAll(Driver):
    """Leave out the health of a device."""

    def reports(self) -> Sequence[DeviceHealth]:
        return super().reports()[:-1]


class Twice(Driver):
    """Report the health of a device twice."""

    def reports(self) -> Sequence[DeviceHealth]:
        return [*super().reports(), *super().reports()[:1]]


class _Changes(Driver):
    """Change the first device of each health list."""

    async def watched(self, path: str, stream: Stream, blob: bytes, context: Context) -> AsyncIterator[bytes]:
        async for each in stream(blob, context):
            message = pb.NodeWatchResourcesResponse.FromString(each)
            self.change(message.devices[0])
            yield message.SerializeToString()

    def change(self, device: pb.DeviceHealth) -> None:
        raise NotImplementedError


class NegativeTimeout(_Changes):
    """Report a negative timeout."""

    def change(self, device: pb.DeviceHealth) -> None:
        device.health_check_timeout_seconds = -1


class Talkative(_Changes):
    """Report a message that is too long for the kubelet."""

    def change(self, device: pb.DeviceHealth) -> None:
        device.message = "x" * 2000


class Endless(_Changes):
    """Send a health list of more than 4 MiB."""

    def change(self, device: pb.DeviceHealth) -> None:
        device.message = "x" * (5 << 20)


class HangsUp(Driver):
    """End the health stream after the first list."""

    def reports(self) -> Sequence[DeviceHealth]:
        return [DeviceHealth(each.pool, each.device, timeout=3600) for each in super().reports()]

    async def watched(self, path: str, stream: Stream, blob: bytes, context: Context) -> AsyncIterator[bytes]:
        async for each in stream(blob, context):
            yield each
            return


class SaysItOnce(Driver):
    """Never repeat the health of devices."""

    async def watched(self, path: str, stream: Stream, blob: bytes, context: Context) -> AsyncIterator[bytes]:
        async for each in stream(blob, context):
            yield each
            await anyio.sleep_forever()


class RepeatsTheFirst(Driver):
    """Repeat the first health list even if devices change."""

    async def watched(self, path: str, stream: Stream, blob: bytes, context: Context) -> AsyncIterator[bytes]:
        first = b""
        async for each in stream(blob, context):
            first = first or each
            yield first


class CountsStreams(Driver):
    """Count the open health streams; a base for other bugs."""

    streams = 0

    async def watched(self, path: str, stream: Stream, blob: bytes, context: Context) -> AsyncIterator[bytes]:
        self.streams += 1
        try:
            async for each in self.listened(stream(blob, context)):
                yield each
        finally:
            self.streams -= 1

    async def listened(self, lists: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for each in lists:
            yield each


class OneListener(CountsStreams):
    """Serve only one health stream at a time."""

    async def listened(self, lists: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        if self.streams > 1:
            await anyio.sleep_forever()
        async for each in lists:
            yield each


class KeepsStreams(CountsStreams):
    """Leak a file descriptor for each health stream."""

    async def listened(self, lists: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        os.open("/dev/null", os.O_RDONLY)
        async for each in lists:
            yield each


class ListensOrActs(CountsStreams):
    """Block prepare calls while a health stream is open."""

    async def called(self, path: str, unary: Unary, blob: bytes, context: Context) -> bytes:
        if path.endswith(f"/{PREPARE}") and self.streams:
            await anyio.sleep_forever()
        return await super().called(path, unary, blob, context)


BUGS: dict[str, type[Driver]] = {
    "DRA-HEALTH-1": Mute,
    "DRA-HEALTH-2": UnknownDevice,
    "DRA-HEALTH-3": NotAll,
    "DRA-HEALTH-4": Twice,
    "DRA-HEALTH-5": NegativeTimeout,
    "DRA-HEALTH-6": Talkative,
    "DRA-HEALTH-7": SaysItOnce,
    "DRA-HEALTH-8": OneListener,
    "DRA-HEALTH-9": KeepsStreams,
    "DRA-HEALTH-10": Endless,
    "DRA-HEALTH-11": HangsUp,
    "DRA-CALL-8": ListensOrActs,
    "DRA-CHANGE-4": RepeatsTheFirst,
}
