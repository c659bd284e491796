"""Answers that are sent in pieces, because a list of thousands of slices has hundreds of megabytes.

After the first piece has been sent, the answer can no longer become an error. A client that stops reading is cut off.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import chain

from aiohttp import web

from devlet.serve.kube_api import answers, bodies
from devlet.serve.kube_api.calls import Call

WRITE_TIMEOUT = 60.0  # seconds for which a client may leave its socket full
_SLICE = 16 << 10  # bytes, one TLS record: if more were sent at a time, the rest would wait without being counted

# Counts data that waits for the client to read it, and may cut the client off.
Hold = Callable[[Sequence[bytes], Callable[[], None]], AbstractContextManager[None]]


def free(pieces: Sequence[bytes], cut_off: Callable[[], None]) -> AbstractContextManager[None]:
    """Count nothing."""
    return nullcontext()


async def send(call: Call, pieces: Iterable[bytes], hold: Hold = free) -> web.StreamResponse:
    """Send a single piece as an ordinary answer. Stream several pieces as they are made."""
    left = iter(pieces)
    first, second = next(left, b""), next(left, None)
    if second is None:
        return web.Response(body=first, content_type=bodies.JSON)
    response = web.StreamResponse(headers={"Content-Type": bodies.JSON})
    for text in call.warnings:
        response.headers.add("Warning", answers.warning(text))
    try:
        await response.prepare(call.http)
        for piece in chain((first, second), left):
            await write(call.http, response, piece, hold=hold)
        await response.write_eof()
    except ConnectionError:
        cut_off(call.http)
    return response


async def write(request: web.BaseRequest, response: web.StreamResponse, *pieces: bytes, hold: Hold = free) -> None:
    """Send the pieces. Raise ConnectionError if the client has gone, or was cut off because it did not read.
    While they wait for the client to read, they count in `hold`."""
    timer: asyncio.TimerHandle | None = None
    try:
        for piece in pieces:
            for start in range(0, len(piece), _SLICE):
                await response.write(memoryview(piece)[start : start + _SLICE] if len(piece) > _SLICE else piece)
                if request.protocol.writing_paused:
                    timer = timer or asyncio.get_running_loop().call_later(WRITE_TIMEOUT, cut_off, request)
                    with hold(pieces, partial(cut_off, request)):
                        await request.writer.drain()
    finally:
        if timer is not None:
            timer.cancel()


def cut_off(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()
