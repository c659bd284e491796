from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from devlet.sdk.server import Context, Methods, SocketServer
from devlet.testing.crashes import CrashPoint, crash_at, crash_points
from devlet.testing.grpc_faults import Call, Faults
from devlet.testing.grpc_proxy import GrpcProxy
from tests.unit.sdk.conftest import call

pytestmark = pytest.mark.anyio

SAY = "/test.Echo/Say"


@pytest.fixture
async def proxy(root: Path) -> AsyncIterator[GrpcProxy]:
    async def say(blob: bytes, context: Context) -> bytes:
        return blob

    server = SocketServer(root / "back.sock", [Methods({SAY: say})])
    async with server.serving(), GrpcProxy(root / "front.sock", root / "back.sock", Faults()) as proxy:
        yield proxy


def test_there_are_two_points_for_each_call() -> None:
    calls = [Call("/a.B/C", Path("/s")), Call("/a.B/D", Path("/s")), Call("/a.B/C", Path("/s"))]
    assert [str(point) for point in crash_points(calls)] == [
        "before call 1 of C",
        "after call 1 of C",
        "before call 1 of D",
        "after call 1 of D",
        "before call 2 of C",
        "after call 2 of C",
    ]


@pytest.mark.parametrize("after", [False, True])
async def test_the_kill_comes_at_the_point(proxy: GrpcProxy, after: bool) -> None:
    seen: list[tuple[int, int]] = []

    async def kill() -> None:
        seen.append((len(proxy.faults.over()), len(proxy.faults.calls[-1].answers)))

    async with crash_at(proxy.faults, CrashPoint(SAY, 1, after), kill):
        for _ in range(3):
            assert await call(proxy.front, SAY, b"x") == b"x"
    assert seen == [(1, int(after))]


async def test_every_point_of_a_conversation_is_reached(proxy: GrpcProxy) -> None:
    for _ in range(2):
        await call(proxy.front, SAY, b"x")
    points = crash_points(proxy.faults.calls)
    killed: list[CrashPoint] = []
    for point in points:

        async def kill(point: CrashPoint = point) -> None:
            killed.append(point)

        async with crash_at(proxy.faults, point, kill):
            for _ in range(2):
                await call(proxy.front, SAY, b"x")
    assert killed == points and len(points) == 4


async def test_a_point_that_is_never_reached_is_an_error_that_tells_what_was(proxy: GrpcProxy) -> None:
    with pytest.raises(
        AssertionError, match=r"the point before call 2 of Say was not reached within 0.01 s\n.*Say: OK"
    ):
        async with crash_at(proxy.faults, CrashPoint(SAY, 1), anyio.sleep_forever, within=0.01):
            await call(proxy.front, SAY, b"x")
            await proxy.faults.until_over(SAY)


async def test_an_error_of_the_block_stays_itself(proxy: GrpcProxy) -> None:
    with pytest.raises(KeyError):
        async with crash_at(proxy.faults, CrashPoint(SAY), anyio.sleep_forever):
            raise KeyError("mine")
