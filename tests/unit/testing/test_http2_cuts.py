"""Frames by hand here; with gRPC in `test_grpc_proxy`."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.testing.http2_cuts import FrameProxy, Place, frames
from devlet.testing.waiting import deadline

DATA, HEADERS, SETTINGS = 0, 1, 4
END = 1


def frame(kind: int, flags: int = 0, content: bytes = b"") -> bytes:
    return len(content).to_bytes(3) + bytes([kind, flags]) + (1).to_bytes(4) + content


FRAMES = st.builds(frame, st.integers(0, 9), st.integers(0, 255), st.binary(max_size=40))


@given(parts=st.lists(FRAMES), cuts=st.lists(st.integers(0, 200), max_size=5))
def test_frames_are_found_however_the_bytes_arrive(parts: list[bytes], cuts: list[int]) -> None:
    whole, rest, found = b"".join(parts), bytearray(), list[bytes]()
    places = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    for start, end in pairwise(places):
        rest += whole[start:end]
        found += frames(rest)
    assert (found, bytes(rest)) == (parts, b"")


def test_half_a_frame_waits_for_the_rest() -> None:
    rest = bytearray(frame(DATA, content=b"hello")[:12])
    assert list(frames(rest)) == []
    assert len(rest) == 12


async def heard(root: Path, place: Place, *said: bytes) -> bytes:
    """What a client hears of these frames before it is cut off."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "back.sock"))
        listener.listen()
        async with FrameProxy(root / "front.sock", root / "back.sock") as proxy, _client(proxy) as client:
            server, _ = await anyio.to_thread.run_sync(listener.accept)
            with server:
                proxy.cut_at(place)
                server.sendall(b"".join(said))
                return await _all(client)


@asynccontextmanager
async def _client(proxy: FrameProxy) -> AsyncIterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(proxy.path))
        await proxy.until_open(1)
        client.setblocking(False)
        yield client


async def _all(client: socket.socket) -> bytes:
    got = b""
    with deadline():
        while True:
            await anyio.wait_readable(client)
            try:
                piece = client.recv(1000)
            except ConnectionResetError:
                return got
            if not piece:
                return got
            got += piece


@pytest.mark.anyio
async def test_a_message_is_cut_in_its_middle(root: Path) -> None:
    head, message = frame(SETTINGS), frame(DATA, content=b"12345" + b"m" * 20)
    got = await heard(root, Place.MIDDLE, head, message, frame(HEADERS, END, b"trailers"))
    assert got == head + message[: 9 + 12]


@pytest.mark.anyio
async def test_an_answer_without_message_is_cut_in_its_trailers(root: Path) -> None:
    head, trailers = frame(HEADERS, 0, b"h"), frame(HEADERS, END, b"trailers")
    assert await heard(root, Place.MIDDLE, head, frame(DATA, 0, b"12345"), trailers) == (
        head + frame(DATA, 0, b"12345") + trailers[:13]
    )


@pytest.mark.anyio
async def test_after_the_end_nothing_follows(root: Path) -> None:
    answer = [frame(HEADERS, 0, b"h"), frame(DATA, 0, b"12345m"), frame(HEADERS, END, b"trailers")]
    assert await heard(root, Place.END, *answer, frame(SETTINGS)) == b"".join(answer)
