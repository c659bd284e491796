"""Cut a gRPC connection at an exact place of an answer: in the middle of its message, or right after its end.

    proxy = FrameProxy(root / "front.sock", root / "dra.sock")
    proxy.cut_at(Place.MIDDLE)      # of the next answer that comes

gRPC uses HTTP/2, which is parsed only as far as necessary to find the end of a frame. A cut in the middle cuts all
connections of the socket, as the end of a process does. A cut after the end closes only the connection of the answer,
and in order: otherwise the client might not be able to read the answer.
"""

import socket
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from weakref import WeakKeyDictionary

from devlet.testing.wire_faults import Direction, SocketProxy, send

__all__ = ["FrameProxy", "Place", "frames"]

_HEAD = 9  # bytes before the content of a frame
_DATA, _HEADERS = 0, 1
_END_STREAM = 0x1


class Place(StrEnum):
    MIDDLE = "in the middle of a message"
    END = "after the end of an answer"


class FrameProxy(SocketProxy):
    def __init__(self, path: Path, forward: Path | str, *, mode: int = 0o600) -> None:
        super().__init__(path, forward, mode=mode)
        self._place: Place | None = None
        self._rests: WeakKeyDictionary[socket.socket, bytearray] = WeakKeyDictionary()

    def cut_at(self, place: Place) -> None:
        """Cut the next answer, of any call, once."""
        self._place = place

    async def _pass(self, piece: bytes, sink: socket.socket, direction: Direction) -> None:
        if direction is Direction.TO_SERVER:
            await super()._pass(piece, sink, direction)
            return
        rest = self._rests.setdefault(sink, bytearray())
        rest += piece
        for frame in frames(rest):
            if self._is_place(frame):
                await self._cut_in(frame, sink)
                return
            await super()._pass(frame, sink, direction)

    def _is_place(self, frame: bytes) -> bool:
        if self._place is Place.MIDDLE:
            return _has_content(frame) or _ends(frame)
        return self._place is Place.END and _ends(frame)

    async def _cut_in(self, frame: bytes, sink: socket.socket) -> None:
        place, self._place = self._place, None
        if place is Place.END:
            await send(sink, frame)
            sink.shutdown(socket.SHUT_WR)  # the client closes its side
        else:
            await send(sink, frame[: (_HEAD + len(frame)) // 2])
            self.cut()


def frames(rest: bytearray) -> Iterator[bytes]:
    """Return the complete frames, and remove them."""
    while len(rest) >= _HEAD and len(rest) >= (size := _HEAD + int.from_bytes(rest[:3])):
        frame = bytes(rest[:size])
        del rest[:size]
        yield frame


def _has_content(frame: bytes) -> bool:
    """Return True if the frame has a part of a message beyond the five bytes that gRPC puts before each."""
    return frame[3] == _DATA and len(frame) > _HEAD + 5


def _ends(frame: bytes) -> bool:
    return frame[3] in (_DATA, _HEADERS) and bool(frame[4] & _END_STREAM)
