from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import grpc
import pytest

from devlet.errors import PluginUnavailable
from devlet.plugins.channels import connection, listener_pid
from devlet.testing.grpc_socket import GrpcSocket
from devlet.testing.waiting import deadline
from devlet.testing.wire_faults import Direction

pytestmark = pytest.mark.anyio


async def reverse(blob: bytes, context: Any) -> bytes:
    return blob[::-1]


async def wait(blob: bytes, context: Any) -> bytes:
    await anyio.sleep_forever()
    return b""


@asynccontextmanager
async def serving(root: Path) -> AsyncIterator[tuple[GrpcSocket, anyio.abc.TaskGroup]]:
    methods: dict[str, Any] = {
        name: grpc.unary_unary_rpc_method_handler(do) for name, do in (("Reverse", reverse), ("Wait", wait))
    }
    socket = GrpcSocket(root / "a" / "x.sock")
    socket.add(grpc.method_handlers_generic_handler("Words", methods))
    async with anyio.create_task_group() as tasks:
        await socket.start(tasks)
        yield socket, tasks
        await socket.stop()


async def ask(socket: GrpcSocket) -> bytes:
    async with connection("p", socket.path, within=60, max_message=1 << 20) as dialled:
        return await dialled.call("/Words/Reverse", b"abc", timeout=60)


async def test_it_serves_in_a_directory_that_it_makes(root: Path) -> None:
    async with serving(root) as (socket, _):
        assert await ask(socket) == b"cba"
        assert socket.is_serving
        assert socket.path.stat().st_mode & 0o777 == 0o600


async def test_a_call_ends_when_its_connection_is_cut(root: Path) -> None:
    async with serving(root) as (socket, _):
        async with connection("p", socket.path, within=60, max_message=1 << 20) as dialled:
            socket.proxy.cut_after(1, Direction.TO_SERVER)
            with pytest.raises(PluginUnavailable), deadline():
                await dialled.call("/Words/Wait", b"", timeout=600)
        assert await ask(socket) == b"cba"


async def test_after_a_stop_there_is_no_socket_and_after_a_crash_no_listener(root: Path) -> None:
    async with serving(root) as (socket, tasks):
        await socket.stop()
        await socket.stop()
        assert not socket.path.exists() and not socket.is_serving
        await socket.start(tasks)
        assert await ask(socket) == b"cba"
        await socket.crash()
        assert socket.path.is_socket()
        with pytest.raises(ConnectionRefusedError):
            listener_pid(socket.path)
        await socket.start(tasks)
        await socket.start(tasks)
        assert await ask(socket) == b"cba"


async def test_connections_are_counted_over_all_its_lives(root: Path) -> None:
    async with serving(root) as (socket, tasks):
        for number in (1, 2):
            assert listener_pid(socket.path)
            await socket.proxy.until_accepted(number)
            await socket.stop()
            await socket.start(tasks)
        assert socket.proxy.accepted == 2
