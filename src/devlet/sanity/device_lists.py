"""A ListAndWatch stream of a plugin, read while a check runs: the lists that were sent, and how the stream ended."""

import math
from collections import deque
from collections.abc import Callable

import anyio
from google.protobuf.message import DecodeError

from devlet.errors import PluginError
from devlet.plugins.channels import Connection
from devlet.wire.deviceplugin_v1beta1 import api_pb2 as pb

__all__ = ["METHOD", "DeviceListWatch", "UnreadStream"]

METHOD = "/v1beta1.DevicePlugin/ListAndWatch"
_KEPT = 32  # lists, so that a plugin cannot fill the memory


class DeviceListWatch:
    """Reads the stream while `run` is active. `count` lists were sent, of which `lists` has the newest; the largest has
    `size` bytes. `ended` says why the stream has ended, if it has."""

    def __init__(self, connection: Connection) -> None:
        self.lists: deque[pb.ListAndWatchResponse] = deque(maxlen=_KEPT)
        self.count = 0
        self.size = 0
        self.ended = ""
        self._connection = connection
        self._changed = anyio.Event()
        self._scope = anyio.CancelScope()

    @property
    def newest(self) -> pb.ListAndWatchResponse | None:
        return self.lists[-1] if self.lists else None

    async def run(self) -> None:
        with self._scope:
            stream = self._connection.stream(METHOD, b"")
            try:
                async for blob in stream:
                    self._take(blob)
            except PluginError as e:
                self._end(e.message)
            except DecodeError as e:
                self._end(f"a list cannot be decoded as v1beta1: {e}")
            finally:
                with anyio.CancelScope(shield=True):
                    await stream.aclose()

    async def until(self, holds: Callable[["DeviceListWatch"], bool], within: float = math.inf) -> bool:
        """Wait until a condition on this stream holds. Return False if the stream ends or the time is up."""
        with anyio.move_on_after(within):
            while not holds(self):
                if self.ended:
                    return False
                await self._changed.wait()
            return True
        return False

    def close(self) -> None:
        """Close the stream as a kubelet that exits does."""
        self._scope.cancel()

    def _take(self, blob: bytes) -> None:
        self.lists.append(pb.ListAndWatchResponse.FromString(blob))
        self.count += 1
        self.size = max(self.size, len(blob))
        self._notify()

    def _end(self, why: str) -> None:
        self.ended = why
        self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


class UnreadStream:
    """A stream of which only the first list is read; the rest stays in the connection."""

    def __init__(self, connection: Connection) -> None:
        self.opened = anyio.Event()  # also set if the stream ended
        self._connection = connection
        self._scope = anyio.CancelScope()

    async def run(self) -> None:
        with self._scope:
            stream = self._connection.stream(METHOD, b"")
            try:
                async for _ in stream:
                    self.opened.set()
                    await anyio.sleep_forever()
            except PluginError:
                return
            finally:
                self.opened.set()
                with anyio.CancelScope(shield=True):
                    await stream.aclose()

    def close(self) -> None:
        self._scope.cancel()
