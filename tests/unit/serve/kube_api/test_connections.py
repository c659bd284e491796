"""The answers to malformed HTTP, and to clients that wait before they send a body."""

import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from aiohttp import web

from devlet.serve.kube_api.connections import HEAD_MAX, HEADER_MAX, LINE_MAX
from devlet.serve.kube_api.server import Settings, bind_unix, listening
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
CHUNKED = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
REFUSED = {
    "a long request line": (b"GET /" + LONG + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414, f"longer than {LINE_MAX} bytes"),
    "a long header": (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + LONG + b"\r\n\r\n", 431, f"longer than {HEADER_MAX} bytes"),
    "a head that does not end": (
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X%d: %s\r\n" % (i, b"x" * 60_000) for i in range(5)),
        431,
        f"longer than {HEAD_MAX} bytes together",
    ),
    "many headers": (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 2_000 + b"\r\n", 400, "Too many headers"),
    "not HTTP": (b"\x16\x03\x01 hello\r\n\r\n", 400, ""),
    "another method": (b"BREW / HTTP/1.1\r\nHost: x\r\n\r\n", 405, "does not allow this method"),
    "a word": (b"GARBAGE\r\n\r\n", 400, "Invalid method"),
    "another version": (b"GET / HTTP/9.9\r\nHost: x\r\n\r\n", 400, "Invalid HTTP version"),
    "HTTP/2 in words": (b"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505, "use HTTP/1.1"),
    "HTTP/0.9": (b"GET /\r\n\r\n", 505, "use HTTP/1.1"),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 505, "use HTTP/1.1"),
    "a broken URL": (
        b"GET http://x:99999999/ HTTP/1.1\r\nHost: x\r\n\r\n",
        400,
        "the target of the request is not valid",
    ),
    "a header without a colon": (b"GET / HTTP/1.1\r\nHost: x\r\nfoo\r\n\r\n", 400, "Invalid header token"),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400, "Host"),
    "two lengths": (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, "Content-Length"),
    "a bad chunk": (CHUNKED + b"zz\r\n", 400, "chunk size"),
    "an endless chunk": (CHUNKED + b"f" * 30 + b"\r\n", 400, "Chunk size overflow"),
    "a chunk that is longer than it says": (CHUNKED + b"1\r\nabc\r\n", 400, "chunk data"),
    "a length that is not a number": (b"POST / HTTP/1.1\r\nContent-Length: abc\r\n\r\n", 400, "Content-Length"),
    "another expectation": (b"POST / HTTP/1.1\r\nHost: x\r\nExpect: cake\r\n\r\n", 417, "only 100-continue is"),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_malformed_http_is_refused_with_a_status_and_without_a_traceback(
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
    (record,) = [record for record in caplog.records if record.levelno >= logging.INFO]
    assert (record.getMessage(), record.exc_info) == ("request refused", None)


async def test_a_client_that_expects_100_continue_gets_it(path: Path) -> None:
    request = b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
    first, second = await answers(path, request, b"hello")
    assert first == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert second.startswith(b"HTTP/1.1 200 OK") and second.endswith(b"hello")


async def test_a_client_of_http_1_0_does_not_get_100_continue(path: Path) -> None:
    request = b"POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello"
    (answer,) = await answers(path, request)
    assert answer.startswith(b"HTTP/1.0 200 OK") and answer.endswith(b"hello")


UPGRADE = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n"


@pytest.mark.parametrize("protocol", [b"websocket", b"h2c", b"SPDY/3.1"])
async def test_a_request_to_upgrade_is_answered_over_http_1(path: Path, protocol: bytes) -> None:
    (answer,) = await answers(path, UPGRADE % protocol)
    assert answer.startswith(b"HTTP/1.1 200 OK")


async def test_a_head_that_does_not_arrive_in_time_is_refused(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = Settings(idle_timeout=5)
    async with listening(echo, bind_unix(root / "s"), tls=None, settings=settings):
        with caplog.at_level(logging.INFO):
            (answer,) = await answers(root / "s", b"GET / HTTP/1.1\r\nHost:")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ") and json.loads(body)["code"] == 408
    assert [record.getMessage() for record in caplog.records] == ["request refused"]


async def test_a_connection_may_carry_any_number_of_requests_with_large_bodies(path: Path) -> None:
    body = b"x" * (2 * HEAD_MAX)
    request = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    with deadline():
        async with await anyio.connect_unix(path) as stream:
            for _ in range(5):
                await stream.send(request)
                got = b""
                while len(got.partition(b"\r\n\r\n")[2]) < len(body):
                    got += await stream.receive()
                assert got.startswith(b"HTTP/1.1 200 OK")
