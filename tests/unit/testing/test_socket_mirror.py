from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import anyio
import pytest

from devlet.kit.parts import running
from devlet.sdk.server import Context, Methods, SocketServer
from devlet.testing.grpc_faults import Faults
from devlet.testing.grpc_proxy import GrpcProxy
from devlet.testing.grpc_socket import GrpcSocket
from devlet.testing.socket_mirror import SocketMirror
from devlet.testing.waiting import until
from tests.unit.sdk.conftest import call

pytestmark = pytest.mark.anyio

ECHO = "/test.Service/Echo"


async def echo(blob: bytes, context: Context) -> bytes:
    return blob


def server(path: Path) -> SocketServer:
    return SocketServer(path, [Methods({ECHO: echo})])


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
async def mirror(root: Path, faults: Faults) -> AsyncIterator[SocketMirror]:
    (root / "b").mkdir()
    made = SocketMirror(root / "b" / "s.sock", root / "f" / "s.sock", partial(GrpcProxy, faults=faults))

    async def run(*, task_status: anyio.abc.TaskStatus[None]) -> None:
        task_status.started()
        await made.run()

    async with running(run):
        yield made


async def listens(path: Path) -> bool:
    try:
        async with await anyio.connect_unix(path):
            return True
    except OSError:
        return False


async def test_a_socket_gets_a_front_as_long_as_it_is_there(mirror: SocketMirror, faults: Faults) -> None:
    await mirror.until_served()  # nothing to wait for
    assert mirror.proxy is None
    async with server(mirror.back).serving():
        await mirror.until_served()
        assert await call(mirror.front, ECHO, b"hello") == b"hello"
        assert [each.socket for each in faults.asked(ECHO)] == [mirror.front]
    await until(partial(anyio.Path(mirror.front).exists), lambda there: not there)


async def test_a_new_socket_gets_a_new_front(mirror: SocketMirror) -> None:
    seen = set()
    for _ in range(3):
        async with server(mirror.back).serving():
            await mirror.until_served()
            seen.add(mirror.proxy)
            assert await call(mirror.front, ECHO, b"hello") == b"hello"
    assert len(seen) == 3


async def test_removing_the_front_removes_the_back(mirror: SocketMirror) -> None:
    one = server(mirror.back)
    async with running(one.run):
        await mirror.until_served()
        first = mirror.proxy
        mirror.front.unlink()

        async def replaced() -> bool:
            return mirror.proxy not in (None, first)

        await until(replaced)
        assert one.is_there
        assert await call(mirror.front, ECHO, b"hello") == b"hello"


async def test_a_killed_server_leaves_a_front_without_a_listener(mirror: SocketMirror, root: Path) -> None:
    async with anyio.create_task_group() as tasks:
        back = GrpcSocket(mirror.back)
        await back.start(tasks)
        await mirror.until_served()
        await back.crash()
        await until(partial(listens, mirror.front), lambda does: not does)
        assert mirror.front.is_socket() and mirror.back.is_socket()
        await back.start(tasks)
        await mirror.until_served()
        assert await listens(mirror.front)
        await back.stop()
    await until(partial(anyio.Path(mirror.front).exists), lambda there: not there)


async def test_a_front_that_was_left_behind_goes_with_the_file_of_the_dead(mirror: SocketMirror) -> None:
    async with anyio.create_task_group() as tasks:
        back = GrpcSocket(mirror.back)
        await back.start(tasks)
        await mirror.until_served()
        await back.crash()
        await until(partial(listens, mirror.front), lambda does: not does)
        mirror.back.unlink()
        await until(partial(anyio.Path(mirror.front).exists), lambda there: not there)


async def test_a_change_of_mode_does_not_make_another_socket(mirror: SocketMirror) -> None:
    async with server(mirror.back).serving():
        await mirror.until_served()
        before = mirror.proxy
        mirror.back.chmod(0o666)
        await mirror.until_served()
        assert await call(mirror.front, ECHO, b"x") == b"x"
        assert mirror.proxy is before
