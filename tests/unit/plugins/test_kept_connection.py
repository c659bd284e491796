from __future__ import annotations

import os
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import anyio
import grpc
import pytest
from anyio import create_task_group

from devlet.errors import PluginRefused, PluginUnavailable, PluginUnimplemented
from devlet.plugins.kept_connection import KeptConnection, Settings
from devlet.testing.waiting import deadline, until

if TYPE_CHECKING:
    from tests.unit.plugins.conftest import Context, Serve

pytestmark = pytest.mark.anyio

ECHO, STREAM = "/test.Service/Echo", "/test.Service/Watch"
FAST = Settings(dial=5.0, look=0.01)


class Kept(KeptConnection):
    """Records changes, and lets a test wait for them."""

    def __init__(self, path: Path, settings: Settings = FAST) -> None:
        self.changes: list[bool] = []
        self.heard: list[tuple[str, str]] = []
        self._happened = anyio.Event()
        super().__init__("p", path, settings, on_change=self._note, observe=self._hear)

    async def until(self, connected: bool) -> None:
        with deadline():
            while self.connected is not connected:
                await self._happened.wait()

    def _note(self) -> None:
        self.changes.append(self.connected)
        self._happened.set()
        self._happened = anyio.Event()

    def _hear(self, method: str, code: str, seconds: float) -> None:
        self.heard.append((method, code))


@asynccontextmanager
async def keeping(path: Path, settings: Settings = FAST) -> AsyncIterator[Kept]:
    kept = Kept(path, settings)
    async with create_task_group() as tasks:
        tasks.start_soon(kept.keep)
        yield kept
        tasks.cancel_scope.cancel()


async def echo(request: bytes, context: Context) -> bytes:
    return request


@contextmanager
def counted(front: Path, behind: Path) -> Iterator[list[socket.socket]]:
    """Accept connections on `front`, and pass bytes to and from the server on the other socket."""
    accepted: list[socket.socket] = []

    def pump(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(65_536):
                sink.sendall(piece)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def accept() -> None:
        with suppress(OSError):
            while True:
                accepted.append(client := listener.accept()[0])
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(behind))
                for ends in ((client, server), (server, client)):
                    threads.append(Thread(target=pump, args=ends))
                    threads[-1].start()
                servers.append(server)

    servers: list[socket.socket] = []
    threads: list[Thread] = [Thread(target=accept)]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(front))
        listener.listen()
        threads[0].start()
        try:
            yield accepted
        finally:
            for end in (listener, *accepted, *servers):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join()
            for end in (*accepted, *servers):
                end.close()


@pytest.mark.spec("DN-2.4a")
async def test_the_connection_is_established_without_a_call(root: Path, serve: Serve) -> None:
    async with serve(root / "s") as server, keeping(root / "s") as kept:
        assert not kept.connected
        await kept.until(connected=True)
        assert kept.changes == [True] and server.calls == []


@pytest.mark.spec("DN-2.4e")
async def test_a_server_that_starts_later_is_found(root: Path, serve: Serve) -> None:
    async with keeping(root / "later" / "s") as kept:
        with pytest.raises(PluginUnavailable, match=r"Echo failed: .*No such file or directory"):
            await kept.call(ECHO, b"", timeout=60)
        assert kept.problem() == f"{root}/later/s does not exist"
        (root / "later").mkdir()
        async with serve(root / "later" / "s") as server:
            server.unary[ECHO] = echo
            await kept.until(connected=True)
            assert await kept.call(ECHO, b"x", timeout=60) == b"x"


@pytest.mark.spec("DN-2.4b")
async def test_a_call_without_a_listener_fails_at_once(root: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(root / "s"))
        async with keeping(root / "s") as kept:
            for _ in range(50):
                with deadline(), pytest.raises(PluginUnavailable, match=r"Echo failed: .*Connection refused"):
                    await kept.call(ECHO, b"", timeout=600)
            with pytest.raises(PluginUnavailable, match=r"Watch failed: .*Connection refused"):
                await anext(kept.stream(STREAM, b""))
            assert kept.problem() == f"{root}/s: no answer"
            assert kept.changes == [] and set(kept.heard) == {(ECHO, "Unavailable")}


async def test_a_call_before_the_first_check_waits_for_the_connection(root: Path, serve: Serve) -> None:
    async with serve(root / "s") as server, keeping(root / "s", Settings(look=60)) as kept:
        server.unary[ECHO] = echo
        assert await kept.call(ECHO, b"x", timeout=60) == b"x"


@pytest.mark.spec("DN-10.R13")
async def test_all_calls_and_streams_share_one_connection(root: Path, serve: Serve) -> None:
    async def watch(request: bytes, context: Context) -> AsyncIterator[bytes]:
        yield b"1"
        await anyio.sleep_forever()

    with counted(root / "s", root / "b") as accepted:
        async with serve(root / "b") as server, keeping(root / "s") as kept:
            server.unary[ECHO], server.streams[STREAM] = echo, watch
            async with aclosing(kept.stream(STREAM, b"")) as messages, create_task_group() as tasks:
                assert await anext(messages) == b"1"
                for _ in range(20):
                    tasks.start_soon(lambda: kept.call(ECHO, b"x", timeout=60))
            await kept.until(connected=True)
            assert await kept.call(ECHO, b"x", timeout=60) == b"x"
            assert len(server.calls) == 21 and len(accepted) == 1 and kept.changes == [True]


@pytest.mark.spec("DN-10.R13")
async def test_a_connection_that_the_server_closed_while_idle_is_dialled_again(root: Path, serve: Serve) -> None:
    async with serve(root / "s", options=[("grpc.max_connection_idle_ms", 50)]) as server:
        server.unary[ECHO] = echo
        async with keeping(root / "s") as kept:
            await kept.until(connected=True)
            await kept.until(connected=False)
            await kept.until(connected=True)
            assert await kept.call(ECHO, b"x", timeout=60) == b"x"


@pytest.mark.spec("DN-2.4c")
async def test_a_server_that_stops_and_starts_on_a_new_file_is_found_again(root: Path, serve: Serve) -> None:
    async with serve(root / "s") as server, keeping(root / "s") as kept:
        server.unary[ECHO] = echo
        for number in range(3):
            await kept.until(connected=True)
            assert await kept.call(ECHO, b"x", timeout=60) == b"x"
            await server.stop()
            await kept.until(connected=False)
            if number == 1:
                (root / "s").unlink(missing_ok=True)
                (root / "s").touch()
                with pytest.raises(PluginUnavailable, match="is a file, not a socket"):
                    await kept.call(ECHO, b"", timeout=60)
            (root / "s").unlink(missing_ok=True)
            await server.start()
        await kept.until(connected=True)
        assert kept.changes == [True, False, True, False, True, False, True]


async def test_a_lost_call_marks_the_connection_as_lost(root: Path, serve: Serve) -> None:
    """Even if the next check is far away, because a waiting pod is woken by the change. The first call may fail before
    gRPC reports that the connection is lost."""
    async with serve(root / "s") as server, keeping(root / "s", Settings(look=60)) as kept:
        server.unary[ECHO] = echo
        await kept.call(ECHO, b"", timeout=60)
        await kept.call(ECHO, b"", timeout=60)
        assert kept.changes == [True]
        await server.stop()
        with deadline():
            while kept.changes == [True]:
                with suppress(PluginUnavailable):
                    await kept.call(ECHO, b"", timeout=60)
        assert kept.changes == [True, False]


async def test_a_status_of_the_server_does_not_mean_that_the_connection_is_lost(root: Path, serve: Serve) -> None:
    async def refuse(request: bytes, context: Context) -> bytes:
        return await context.abort(grpc.StatusCode[request.decode()], "not now")

    async with serve(root / "s") as server, keeping(root / "s") as kept:
        server.unary[ECHO] = refuse
        await kept.until(connected=True)
        with pytest.raises(PluginUnavailable, match="not now"):
            await kept.call(ECHO, b"UNAVAILABLE", timeout=60)
        with pytest.raises(PluginRefused, match="not now"):
            await kept.call(ECHO, b"INTERNAL", timeout=60)
        with pytest.raises(PluginUnimplemented):
            await kept.call("/test.Service/Other", b"", timeout=60)
        assert kept.changes == [True]
        assert kept.heard == [(ECHO, "Unavailable"), (ECHO, "Internal"), ("/test.Service/Other", "Unimplemented")]


SERVER = """
import sys, concurrent.futures, grpc
class Echo(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(lambda request, context: request)
server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
server.add_generic_rpc_handlers([Echo()])
server.add_insecure_port("unix:" + sys.argv[1])
server.start()
server.wait_for_termination()
"""


@pytest.mark.spec("DN-2.4c")
async def test_a_server_that_was_killed_and_one_that_follows_it_is_found_again(root: Path) -> None:
    async with keeping(root / "s") as kept:
        for _ in range(2):  # the second finds the file of the first
            async with await anyio.open_process([sys.executable, "-c", SERVER, root / "s"]) as process:
                await kept.until(connected=True)
                assert await kept.call(ECHO, b"x", timeout=60) == b"x"
                process.kill()
                await kept.until(connected=False)
            assert (root / "s").exists()
            with pytest.raises(PluginUnavailable):
                await kept.call(ECHO, b"x", timeout=60)


async def test_a_server_that_does_not_speak_grpc_is_not_connected(root: Path) -> None:
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(root / "s"))
        mute.listen()
        async with keeping(root / "s", Settings(dial=0.2, look=0.01)) as kept:
            with deadline(), pytest.raises(PluginUnavailable):
                await kept.call(ECHO, b"", timeout=600)
            assert kept.changes == [] and not kept.connected


async def test_closing_ends_calls_under_way_and_refuses_new_ones(root: Path, serve: Serve) -> None:
    problems: list[str] = []

    async def hang(request: bytes, context: Context) -> bytes:
        asked.set()
        await anyio.sleep_forever()
        return b""

    async def watch(request: bytes, context: Context) -> AsyncIterator[bytes]:
        yield b""
        await anyio.sleep_forever()

    async def wait_for_answer() -> None:
        try:
            await kept.call(ECHO, b"", timeout=600)
        except PluginUnavailable as e:
            problems.append(e.message)

    async def wait_for_messages() -> None:
        try:
            async for _ in kept.stream(STREAM, b""):
                opened.set()
        except PluginUnavailable as e:
            problems.append(e.message)

    asked, opened = anyio.Event(), anyio.Event()
    async with serve(root / "s") as server, create_task_group() as tasks:
        server.unary[ECHO], server.streams[STREAM] = hang, watch
        async with keeping(root / "s") as kept:
            tasks.start_soon(wait_for_answer)
            tasks.start_soon(wait_for_messages)
            await asked.wait()
            await opened.wait()
            await kept.until(connected=True)
        assert not kept.connected and kept.changes == [True]
        with pytest.raises(PluginUnavailable, match="has been stopped"):
            await kept.call(ECHO, b"", timeout=60)
    assert problems == [f"endpoint {root}/s has been stopped"] * 2
    assert kept.changes == [True]


@pytest.mark.spec("DN-11.21")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
async def test_a_socket_of_another_user_is_not_dialled_and_not_called(root: Path, serve: Serve) -> None:
    async with serve(root / "s") as server:
        server.unary[ECHO] = echo
        os.chown(root / "s", 65534, -1)
        async with keeping(root / "s") as kept:
            for _ in range(2):
                with pytest.raises(PluginUnavailable, match="belongs to uid 65534"):
                    await kept.call(ECHO, b"", timeout=60)
            with pytest.raises(PluginUnavailable, match="belongs to uid 65534"):
                await anext(kept.stream(STREAM, b""))
            assert kept.changes == [] and "belongs to uid 65534" in kept.problem()
            os.chown(root / "s", 0, -1)
            await kept.until(connected=True)
            assert await kept.call(ECHO, b"x", timeout=60) == b"x"
            assert len(server.calls) == 1


@pytest.mark.spec("DN-11.21")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
async def test_a_connection_to_a_socket_of_another_user_does_not_count_when_the_file_changes(
    root: Path, serve: Serve
) -> None:
    """gRPC dials again by itself after a failed attempt."""

    async def is_foreign() -> bool:
        return kept._is_foreign

    async with keeping(root / "s") as kept:
        with pytest.raises(PluginUnavailable):
            await kept.call(ECHO, b"", timeout=60)
        async with serve(root / "x") as foreign:
            os.chown(root / "x", 65534, -1)
            (root / "x").rename(root / "s")
            await until(is_foreign)
            os.chown(root / "s", 0, -1)
            with pytest.raises(PluginUnavailable, match="was not a socket of root or of our user"):
                await kept.call(ECHO, b"", timeout=60)
            assert kept.changes == [] and foreign.calls == []
        (root / "s").unlink(missing_ok=True)
        async with serve(root / "s") as server:
            server.unary[ECHO] = echo
            await kept.until(connected=True)
            assert await kept.call(ECHO, b"x", timeout=60) == b"x"
