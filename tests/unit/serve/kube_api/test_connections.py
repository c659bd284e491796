"""What clients get that do not speak HTTP as they should, or wait before they send a body."""

import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from aiohttp import web

from devlet.serve.kube_api.connections import HEADER_MAX, LINE_MAX
from devlet.serve.kube_api.server import bind_unix, listening
from devlet.testing.waiting import deadline

pytestmark = pytest.mark.anyio


async def echo(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(body=await request.read())


@pytest.fixture
async def path(root: Path) -> AsyncIterator[Path]:
    async with listening(echo, bind_unix(root / "s"), tls=None):
        yield root / "s"


async def answers(path: Path, *parts: bytes) -> list[bytes]:
    """Send the parts, each after something was received for the one before. Return what was received."""
    found = []
    with deadline():
        async with await anyio.connect_unix(path) as stream:
            for part in parts:
                await stream.send(part)
                found.append(await stream.receive())
    return found


LONG = b"x" * (2 * HEADER_MAX)
REFUSED = {
    "a long request line": (b"GET /" + LONG + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414, f"longer than {LINE_MAX} bytes"),
    "a long header": (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + LONG + b"\r\n\r\n", 431, f"longer than {HEADER_MAX} bytes"),
    "many headers": (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 2_000 + b"\r\n", 400, "Too many headers"),
    "not HTTP": (b"\x16\x03\x01 hello\r\n\r\n", 400, ""),
    "another method": (b"BREW / HTTP/1.1\r\nHost: x\r\n\r\n", 400, "Invalid method"),
    "another version": (b"GET / HTTP/9.9\r\nHost: x\r\n\r\n", 400, "Invalid HTTP version"),
    "a length that is not a number": (b"POST / HTTP/1.1\r\nContent-Length: abc\r\n\r\n", 400, "Content-Length"),
    "another expectation": (b"POST / HTTP/1.1\r\nHost: x\r\nExpect: cake\r\n\r\n", 417, "only 100-continue is"),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_what_cannot_be_understood_is_refused_with_a_status_and_no_traceback(
    path: Path, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    request, code, text = REFUSED[what]
    with caplog.at_level(logging.DEBUG):
        (answer,) = await answers(path, request)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert f" {code} ".encode() in head.splitlines()[0] and b"application/json" in head
    status = json.loads(body)
    assert (status["kind"], status["code"], status["status"]) == ("Status", code, "Failure")
    assert text in status["message"] and len(status["message"]) < 300
    assert not any(record.exc_info for record in caplog.records)


async def test_a_client_that_waits_for_leave_to_send_its_body_gets_it(path: Path) -> None:
    request = b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
    first, second = await answers(path, request, b"hello")
    assert first == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert second.startswith(b"HTTP/1.1 200 OK") and second.endswith(b"hello")
