"""An answer in pieces: a list of thousands of slices is hundreds of megabytes, of which the next few are enough.

Once the first piece is on its way the answer can no longer become an error; a reader that stops reading is cut off.
"""

import asyncio
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING

from aiohttp import web

from devlet.serve.kube_api import answers, bodies

if TYPE_CHECKING:
    from devlet.serve.kube_api.handlers import Call

WRITE_TIMEOUT = 60.0  # seconds that a reader may leave its socket full


async def send(call: "Call", pieces: Iterable[bytes]) -> web.StreamResponse:
    """A single piece goes as an ordinary answer."""
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
            await write(call.http, response, piece)
        await response.write_eof()
    except ConnectionError:
        cut_off(call.http)
    return response


async def write(request: web.BaseRequest, response: web.StreamResponse, piece: bytes) -> None:
    """One piece. ConnectionError if the reader has gone, or has not read for so long that it was cut off."""
    # A cancel scope would do the same, for a quarter of what a watch event costs (measured with 100 watchers).
    timer = asyncio.get_running_loop().call_later(WRITE_TIMEOUT, cut_off, request)
    try:
        await response.write(piece)
    finally:
        timer.cancel()


def cut_off(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()
