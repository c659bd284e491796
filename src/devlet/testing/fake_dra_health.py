"""The health streams of a fake DRA driver: complete lists, now and at each change, to each stream in its own order.

    health = FakeDraHealth()
    health.set([DeviceReport("pool", "dev-0", "Unhealthy", message="too hot")])

A stream starts with the present list. The list is repeated after `every` seconds without a change, as real drivers do
before the timeouts of their devices.
"""

import math
import time
from collections.abc import AsyncGenerator, Sequence

import anyio
import grpc
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from devlet.kit.changes import Changes
from devlet.plugins.dra import DeviceReport
from devlet.testing.dra_script import Context
from devlet.testing.fake_dra_messages import health_list
from devlet.testing.spelling import status_code

__all__ = ["FakeDraHealth"]

_Message = bytes | tuple[grpc.StatusCode, str]  # a list, or the status that ends the stream


class FakeDraHealth:
    def __init__(self) -> None:
        self.every: float | None = None
        self._reports: tuple[DeviceReport, ...] = ()
        self._streams: set[MemoryObjectSendStream[_Message]] = set()
        self._changes = Changes()

    @property
    def reports(self) -> tuple[DeviceReport, ...]:
        return self._reports

    @property
    def streams(self) -> int:
        """The number of open streams."""
        return len(self._streams)

    def set(self, reports: Sequence[DeviceReport]) -> None:
        """Send this list on every open stream, and first on later streams. A `health` other than Healthy, Unhealthy and
        Unknown is a number, and sent as such."""
        self._reports = tuple(reports)
        self.send(self._list())

    def send(self, message: bytes) -> None:
        """Send any bytes on every open stream."""
        for stream in self._streams:
            stream.send_nowait(message)

    def end(self, code: str = "", text: str = "") -> None:
        """End every open stream: with the gRPC status of that name, or without an error."""
        status = status_code(code) if code else None
        for stream in list(self._streams):
            if status:
                stream.send_nowait((status, text))
            else:
                stream.close()
                self._streams.discard(stream)

    async def until_streams(self, count: int) -> None:
        """Wait until exactly `count` streams are open."""
        await self._changes.until(lambda: self.streams == count)

    async def lists(self, first: bytes | None, context: Context) -> AsyncGenerator[bytes, None]:
        """Serve one stream."""
        send, receive = anyio.create_memory_object_stream[_Message](math.inf)
        with send, receive:
            send.send_nowait(self._list() if first is None else first)
            self._streams.add(send)
            self._changes.notify()
            try:
                while (message := await self._next(receive)) is not None:
                    if isinstance(message, tuple):
                        await context.abort(message[0], message[1])
                    yield message
            finally:
                self._streams.discard(send)
                self._changes.notify()

    async def _next(self, receive: MemoryObjectReceiveStream[_Message]) -> _Message | None:
        with anyio.move_on_after(self.every):
            try:
                return await receive.receive()
            except anyio.EndOfStream:
                return None
        return self._list()

    def _list(self) -> bytes:
        return health_list(self._reports, time.time())
