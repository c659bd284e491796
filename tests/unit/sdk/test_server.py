"""A socket of our own: what lies there before, what happens while it serves, what is left."""

import asyncio
import socket
import stat
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import grpc
import pytest

from devlet.errors import (
    Conflict,
    DevletError,
    Forbidden,
    InUse,
    InvalidInput,
    NotFound,
    TooManyRequests,
    Unavailable,
)
from devlet.kit.parts import running
from devlet.sdk.server import Context, Limits, Methods, SocketServer
from devlet.testing.waiting import deadline, until
from tests.unit.sdk.conftest import call, stream

pytestmark = pytest.mark.anyio

ECHO, COUNT = "/test.Service/Echo", "/test.Service/Count"


async def echo(blob: bytes, context: Context) -> bytes:
    return blob


async def count(blob: bytes, context: Context) -> AsyncIterator[bytes]:
    for number in range(int(blob)):
        yield str(number).encode()


METHODS = Methods({ECHO: echo}, {COUNT: count})


def failing(error: BaseException) -> Methods:
    async def fail(blob: bytes, context: Context) -> bytes:
        raise error

    return Methods({ECHO: fail})


async def refused(path: Path, error: BaseException) -> tuple[grpc.StatusCode, str]:
    async with SocketServer(path, [failing(error)]).serving():
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await call(path, ECHO, b"hello")
    return raised.value.code(), raised.value.details() or ""


async def test_it_answers_and_streams_and_leaves_nothing(root: Path) -> None:
    path = root / "a" / "dra.sock"
    server = SocketServer(path, [METHODS])
    async with server.serving():
        assert server.is_there and stat.S_IMODE(path.stat().st_mode) == 0o600
        assert await call(path, ECHO, b"hello") == b"hello"
        async with stream(path, COUNT, b"3") as messages:
            assert [message async for message in messages] == [b"0", b"1", b"2"]
    assert not path.exists() and not server.is_there


async def test_a_path_may_have_any_character(root: Path) -> None:
    path = root / "100% ü?" / "dra#.sock"
    async with SocketServer(path, [METHODS]).serving():
        assert path.is_socket()


async def test_what_it_does_not_have_is_unimplemented(root: Path) -> None:
    async with SocketServer(root / "s", [METHODS]).serving():
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await call(root / "s", "/test.Service/Other")
    assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidInput("no"), grpc.StatusCode.INVALID_ARGUMENT),
        (Forbidden("no"), grpc.StatusCode.PERMISSION_DENIED),
        (NotFound("no"), grpc.StatusCode.NOT_FOUND),
        (Conflict("no"), grpc.StatusCode.ABORTED),
        (InUse("no"), grpc.StatusCode.FAILED_PRECONDITION),
        (TooManyRequests("no"), grpc.StatusCode.RESOURCE_EXHAUSTED),
        (Unavailable("no"), grpc.StatusCode.UNAVAILABLE),
        (DevletError("no"), grpc.StatusCode.UNKNOWN),
    ],
)
async def test_an_error_with_a_meaning_is_an_answer(root: Path, error: DevletError, code: grpc.StatusCode) -> None:
    assert await refused(root / "s", error) == (code, "no")


async def test_a_mistake_in_the_driver_is_shown_as_what_it_is(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert await refused(root / "s", KeyError("gpu")) == (grpc.StatusCode.UNKNOWN, "KeyError: 'gpu'")
    assert caplog.records[-1].exc_info is not None


async def test_a_long_error_is_cut(root: Path) -> None:
    code, text = await refused(root / "s", InvalidInput("é" * 50_000))
    assert code is grpc.StatusCode.INVALID_ARGUMENT and 0 < len(text) <= 2_000


async def test_an_error_that_is_not_utf_8_is_shown_as_far_as_possible(root: Path) -> None:
    assert await refused(root / "s", NotFound("no file bad\udcff")) == (grpc.StatusCode.NOT_FOUND, "no file bad?")


async def test_a_socket_that_a_killed_process_left_is_replaced(root: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(root / "s"))
    async with SocketServer(root / "s", [METHODS]).serving():
        assert await call(root / "s", ECHO, b"hello") == b"hello"


async def test_a_served_socket_is_not_removed(root: Path) -> None:
    async with SocketServer(root / "s", [METHODS]).serving():
        with pytest.raises(InUse, match="served by another process"):
            async with SocketServer(root / "s", [METHODS]).serving():
                pytest.fail("two servers on one socket")
        assert await call(root / "s", ECHO, b"hello") == b"hello"


async def test_a_socket_whose_mode_was_changed_is_the_same(root: Path) -> None:
    server = SocketServer(root / "s", [METHODS])
    async with server.serving():
        (root / "s").chmod(0o660)
        assert server.is_there


async def test_a_file_is_not_removed(root: Path) -> None:
    (root / "s").write_text("mine")
    with pytest.raises(InvalidInput, match="is not a socket"):
        async with SocketServer(root / "s", [METHODS]).serving():
            pytest.fail("a file became a socket")
    assert (root / "s").read_text() == "mine"


async def test_a_path_that_is_too_long_is_refused_with_its_length(root: Path) -> None:
    with pytest.raises(InvalidInput, match=r"has \d+ bytes, a socket path has at most 107"):
        async with SocketServer(root / ("x" * 120), [METHODS]).serving():
            pytest.fail("no such socket can be")


async def test_a_directory_that_cannot_be_made_is_named(root: Path) -> None:
    (root / "file").touch()
    with pytest.raises(InvalidInput, match="cannot be created as a socket"):
        async with SocketServer(root / "file" / "s", [METHODS]).serving():
            pytest.fail("no such directory can be")


async def test_calls_under_way_may_end(root: Path) -> None:
    begun, go_on = anyio.Event(), anyio.Event()

    async def slow(blob: bytes, context: Context) -> bytes:
        begun.set()
        await go_on.wait()
        return b"done"

    answers: list[bytes] = []
    path = root / "s"

    async def ask() -> None:
        answers.append(await call(path, ECHO, b"hello"))

    async with anyio.create_task_group() as tasks:
        async with SocketServer(path, [Methods({ECHO: slow})], Limits(grace=10)).serving():
            tasks.start_soon(ask)
            await begun.wait()
            tasks.start_soon(_later, go_on)
    assert answers == [b"done"]


async def test_streams_end_at_once(root: Path) -> None:
    """They last for ever: nobody would wait for their end but those who want to start the driver again."""

    async def forever(blob: bytes, context: Context) -> AsyncIterator[bytes]:
        yield b"first"
        await anyio.sleep_forever()

    path = root / "s"
    async with AsyncExitStack() as stack:
        with deadline():
            async with SocketServer(path, [Methods(streams={COUNT: forever})], Limits(grace=600)).serving():
                messages = await stack.enter_async_context(stream(path, COUNT))
                assert await messages.read() == b"first"
        assert await messages.read() is grpc.aio.EOF


async def test_a_stream_lasts_until_calls_under_way_have_ended(root: Path) -> None:
    """A kubelet whose stream ends gives up its other calls, and the pod for which it made them."""
    begun, go_on = anyio.Event(), anyio.Event()
    ended: list[str] = []

    async def slow(blob: bytes, context: Context) -> bytes:
        begun.set()
        await go_on.wait()
        ended.append("call")
        return b"done"

    async def forever(blob: bytes, context: Context) -> AsyncIterator[bytes]:
        yield b"first"
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("stream")

    path = root / "s"
    async with AsyncExitStack() as stack, anyio.create_task_group() as tasks:
        async with SocketServer(path, [Methods({ECHO: slow}, {COUNT: forever})], Limits(grace=600)).serving():
            messages = await stack.enter_async_context(stream(path, COUNT))
            await messages.read()
            tasks.start_soon(call, path, ECHO)
            await begun.wait()
            tasks.start_soon(_later, go_on)
    assert ended == ["call", "stream"]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ExceptionGroup("unhandled errors in a TaskGroup", [OSError("lamp")]), "OSError: lamp"),
        (asyncio.CancelledError(), "RuntimeError: the driver was cancelled from within: CancelledError"),
        (SystemExit(3), "RuntimeError: the driver called sys.exit: raise an error instead: SystemExit: 3"),
    ],
)
async def test_a_driver_that_cancels_its_own_tasks_says_what_went_wrong(
    root: Path, error: BaseException, text: str
) -> None:
    assert await refused(root / "s", error) == (grpc.StatusCode.UNKNOWN, text)


async def _later(event: anyio.Event) -> None:
    await anyio.sleep(0.05)
    event.set()


async def test_a_removed_socket_is_created_again(root: Path) -> None:
    path = root / "s"
    server = SocketServer(path, [METHODS], Limits(grace=0))
    async with running(server.run):
        before = path.stat().st_ctime_ns
        path.unlink()

        async def is_back() -> bool:
            return server.is_there and path.stat().st_ctime_ns != before

        await until(is_back)
        assert await call(path, ECHO, b"hello") == b"hello"
    assert not path.exists()


async def test_what_lies_beside_its_socket_is_none_of_its_business(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (root / "held").mkdir()
    server = SocketServer(root / "s", [METHODS], Limits(grace=0))

    async def is_watched() -> bool:
        return _is_watched(root)

    async def is_back() -> bool:
        return server.is_there

    async with running(server.run):
        await until(is_watched)
        (root / "s").unlink()
        await until(is_back)
    assert [each.message for each in caplog.records if each.levelname == "WARNING"] == [
        "socket was removed: listening again"
    ]


def _is_watched(directory: Path) -> bool:
    """By this process, as the kernel tells."""
    watch = f"ino:{directory.stat().st_ino:x} "
    return any(watch in _content(each) for each in Path("/proc/self/fdinfo").iterdir())


def _content(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
