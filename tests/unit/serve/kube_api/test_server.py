import socket
import stat
from pathlib import Path

import anyio
import pytest
from aiohttp import web

from devlet.errors import Unavailable
from devlet.serve.kube_api.server import Settings, bind_tcp, bind_unix, listening, listening_at
from devlet.testing.waiting import deadline

pytestmark = pytest.mark.anyio

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def hello(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(text="hello")


async def test_the_socket_is_private_and_replaces_one_that_was_left_behind(root: Path) -> None:
    path = root / "devlet.sock"
    bind_unix(path).close()
    async with listening_at(hello, path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        async with await anyio.connect_unix(path) as stream:
            await stream.send(GET)
            assert b"hello" in await stream.receive()
    assert not path.exists()


async def test_a_connection_survives_the_removal_of_its_socket(root: Path) -> None:
    path = root / "devlet.sock"
    async with listening_at(hello, path) as served, await anyio.connect_unix(path) as first:
        await first.send(GET)
        assert b"hello" in await first.receive()
        path.unlink()
        assert await served.restore() == "removed socket is served again"
        async with await anyio.connect_unix(path) as second:
            for stream in (first, second):
                await stream.send(GET)
                assert b"hello" in await stream.receive()


async def test_a_connection_without_a_request_is_closed(root: Path) -> None:
    async with listening(hello, bind_unix(root / "s"), tls=None, settings=Settings(idle_timeout=0.1)):
        async with await anyio.connect_unix(root / "s") as stream:
            with deadline(), pytest.raises(anyio.EndOfStream):
                await stream.receive()


async def test_work_for_a_disconnected_client_is_cancelled(root: Path) -> None:
    began, cancelled = anyio.Event(), anyio.Event()

    async def endless(request: web.BaseRequest) -> web.StreamResponse:
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()
        return web.Response()

    async with listening(endless, bind_unix(root / "s"), tls=None):
        with deadline():
            async with await anyio.connect_unix(root / "s") as stream:
                await stream.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                await began.wait()
            await cancelled.wait()
    assert cancelled.is_set()


def test_the_error_for_a_port_in_use_names_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Unavailable, match=f"cannot listen on 127.0.0.1:{port}"):
            bind_tcp("127.0.0.1", port)


def test_a_free_port_is_found() -> None:
    with bind_tcp("127.0.0.1", 0) as bound:
        assert bound.getsockname()[1] > 0
