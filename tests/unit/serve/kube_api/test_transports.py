import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
import uvloop
from aiohttp import web
from anyio import to_thread

from devlet.auth import certificates
from devlet.auth.credentials import open_credentials
from devlet.serve.kube_api import long_answers
from devlet.serve.kube_api.connections import Handle, Server
from devlet.serve.kube_api.server import bind_tcp
from devlet.serve.kube_api.transports import TlsListener, most_connections
from devlet.testing.waiting import DEADLINE, deadline, until

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    """The daemon runs on uvloop where it is installed."""
    return "asyncio", {"loop_factory": uvloop.new_event_loop} if request.param == "uvloop" else {}


class Tls:
    """A TLS server and its clients."""

    def __init__(self, root: Path) -> None:
        names = certificates.server_names(["127.0.0.1"])
        self._tls = certificates.server_context(open_credentials(root, names, datetime.now(UTC)).pki)
        self.trust = ssl.create_default_context(cafile=root / "pki" / "ca.crt")
        self.port = 0

    @asynccontextmanager
    async def serving(self, handle: Handle, *, most: int = 100) -> AsyncIterator[TlsListener]:
        server = Server(handle, access_log=None, handler_cancellation=True)
        listener = TlsListener(server, self._tls, DEADLINE, most)
        bound = bind_tcp("127.0.0.1", 0)
        listener.bind(bound)
        self.port = bound.getsockname()[1]
        accepting = await asyncio.get_running_loop().create_server(listener, sock=bound)
        try:
            yield listener
        finally:
            accepting.close()
            await server.shutdown(0.1)

    def connect(self) -> ssl.SSLSocket:
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.settimeout(DEADLINE)
        raw.connect(("127.0.0.1", self.port))
        return self.trust.wrap_socket(raw, server_hostname="127.0.0.1")

    def ask(self, connection: ssl.SSLSocket) -> bytes:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        return connection.recv(1 << 16)


@pytest.fixture
def tls(root: Path) -> Tls:
    return Tls(root)


async def hello(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(text="hello")


async def is_open(listener: TlsListener) -> int:
    return listener.open


async def test_connections_beyond_the_limit_are_closed_until_another_one_ends(
    tls: Tls, caplog: pytest.LogCaptureFixture
) -> None:
    async with tls.serving(hello, most=2) as listener:
        with ExitStack() as stack:
            first = stack.enter_context(await to_thread.run_sync(tls.connect))
            stack.enter_context(await to_thread.run_sync(tls.connect))
            for _ in range(5):
                with pytest.raises(OSError):
                    await to_thread.run_sync(tls.connect)
            assert b"hello" in await to_thread.run_sync(tls.ask, first)
            first.close()
            with deadline():
                await until(lambda: is_open(listener), lambda count: count == 1)
            assert b"hello" in await to_thread.run_sync(
                tls.ask, stack.enter_context(await to_thread.run_sync(tls.connect))
            )
        with deadline():
            await until(lambda: is_open(listener), lambda count: count == 0)
    (warning,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert warning.getMessage() == "connections refused"


async def test_a_failed_handshake_leaves_nothing_behind(tls: Tls, caplog: pytest.LogCaptureFixture) -> None:
    async with tls.serving(hello) as listener:
        for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\x05hello", b"", b"\0" * 100_000):
            with socket.create_connection(("127.0.0.1", tls.port)) as connection:
                connection.sendall(garbage)
        with deadline():
            await until(lambda: is_open(listener), lambda count: count == 0)
            with await to_thread.run_sync(tls.connect) as connection:
                assert b"hello" in await to_thread.run_sync(tls.ask, connection)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_little_data_waits_for_a_client_that_does_not_read(tls: Tls, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the limits it would be megabytes."""
    monkeypatch.setattr(long_answers, "WRITE_TIMEOUT", 0.2)
    written, given_up = 0, asyncio.Event()

    async def endless(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal written
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await long_answers.write(request, response, b"x" * 4096)
                written += 4096
        finally:
            given_up.set()

    async with tls.serving(endless):
        with await to_thread.run_sync(tls.connect) as connection:
            await to_thread.run_sync(tls.ask, connection)
            with deadline():
                await given_up.wait()
    assert 0 < written < 1 << 20


async def test_a_large_answer_arrives_complete(tls: Tls) -> None:
    body = bytes(range(256)) * 40_000

    async def large(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        response.content_length = len(body)
        await response.prepare(request)
        await long_answers.write(request, response, body[:5_000_000], body[5_000_000:])
        return response

    def read(connection: ssl.SSLSocket) -> bytes:
        got = tls.ask(connection)
        while len(got.partition(b"\r\n\r\n")[2]) < len(body):
            got += connection.recv(1 << 20)
        return got.partition(b"\r\n\r\n")[2]

    async with tls.serving(large):
        with await to_thread.run_sync(tls.connect) as connection:
            assert await to_thread.run_sync(read, connection) == body


def test_connections_leave_files_for_everything_else() -> None:
    assert 0 < most_connections() < 1 << 20
