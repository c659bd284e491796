import logging
import os
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream

from devlet.errors import Unavailable
from devlet.kit import served_socket
from devlet.kit.parts import running
from devlet.kit.served_socket import PRIVATE, ServedSocket
from devlet.testing.waiting import deadline, until

pytestmark = pytest.mark.anyio


class Greeter:
    """Says its number to whoever connects; the first server is number 1."""

    def __init__(self) -> None:
        self.started = 0
        self.running: list[int] = []

    @asynccontextmanager
    async def serve(self, path: Path) -> AsyncIterator[None]:
        self.started += 1
        number = self.started
        async with await anyio.create_unix_listener(path) as listener:
            task = running(partial(self._listen, listener, number))
            async with task:
                self.running.append(number)
                try:
                    yield
                finally:
                    self.running.remove(number)

    async def _listen(
        self, listener: anyio.abc.Listener[SocketStream], number: int, *, task_status: anyio.abc.TaskStatus[None]
    ) -> None:
        async def greet(stream: SocketStream) -> None:
            async with stream:
                await stream.send(str(number).encode())

        task_status.started()
        await listener.serve(greet)


async def greeting(path: Path) -> str:
    with deadline():
        async with await anyio.connect_unix(path) as stream:
            return (await stream.receive()).decode()


@pytest.fixture
def greeter() -> Greeter:
    return Greeter()


@pytest.fixture
def served(root: Path, greeter: Greeter) -> ServedSocket:
    return ServedSocket(root / "s", greeter.serve)


async def test_it_is_private_and_alone_while_it_runs_and_gone_afterwards(root: Path, served: ServedSocket) -> None:
    async with running(served.run):
        assert await greeting(served.path) == "1"
        assert stat.S_IMODE(served.path.stat().st_mode) == 0o600
        assert os.listdir(root) == ["s"]
        assert served.problem() is None
        assert await served.restore() == ""
    assert os.listdir(root) == []
    assert served.problem() is None
    assert await served.restore() == ""


async def test_what_a_killed_process_left_behind_is_replaced(root: Path, served: ServedSocket) -> None:
    async with await anyio.create_unix_listener(root / "s"):
        (root / PRIVATE).mkdir()
        (root / PRIVATE / "s1").touch()
    async with running(served.run):
        assert await greeting(served.path) == "1"
        assert os.listdir(root) == ["s"]


def to_a_file(path: Path) -> None:
    path.write_text("precious")


def to_a_link(path: Path) -> None:
    (path.parent / "target").touch()
    path.symlink_to("target")


PLACED = {"a file": to_a_file, "a symbolic link": to_a_link, "a directory": Path.mkdir}


@pytest.mark.parametrize(("what", "place"), PLACED.items())
async def test_what_is_in_its_place_at_the_start_is_left_alone(
    what: str, place: Callable[[Path], None], root: Path, served: ServedSocket
) -> None:
    place(served.path)
    before = served.path.lstat()
    with pytest.raises(Unavailable, match="something else is there"):
        await served.run()
    assert served.path.lstat() == before


@pytest.mark.parametrize(("what", "place"), PLACED.items())
async def test_what_takes_its_place_while_it_runs_is_left_alone_and_named(
    what: str, place: Callable[[Path], None], root: Path, served: ServedSocket
) -> None:
    async with running(served.run):
        served.path.unlink()
        assert served.problem() == f"{served.path} was removed"
        place(served.path)
        problem = f"{served.path} is {what} that devlet did not create: move it away"
        assert served.problem() == problem
        with pytest.raises(Unavailable, match=problem):
            await served.restore()
        served.path.rename(root / "away")
        assert await served.restore() == "removed socket is served again"
        assert await greeting(served.path) == "2"
        served.path.unlink()
        (root / "away").rename(served.path)
    assert "s" in os.listdir(root)


async def test_a_socket_of_another_process_in_its_place_is_left_alone(root: Path, served: ServedSocket) -> None:
    other = Greeter()
    async with running(served.run):
        served.path.unlink()
        async with other.serve(served.path):
            with pytest.raises(Unavailable, match="is a socket that devlet did not create"):
                await served.restore()
            assert await greeting(served.path) == "1"
        served.path.unlink(missing_ok=True)
        assert await served.restore() == "removed socket is served again"


async def test_connections_of_a_removed_socket_continue_until_its_server_has_lingered(
    root: Path, served: ServedSocket, greeter: Greeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(served.run):
        served.path.unlink()
        assert await served.restore()
        assert greeter.running == [1, 2]
        monkeypatch.setattr(served_socket, "LINGER", 0.01)
        served.path.unlink()
        assert await served.restore()

        async def left() -> list[int]:
            return greeter.running

        await until(left, lambda numbers: numbers == [1, 3])
    assert greeter.running == []


async def test_only_some_servers_linger_however_often_it_is_removed(served: ServedSocket, greeter: Greeter) -> None:
    async with running(served.run):
        for number in range(2, 12):
            served.path.unlink()
            assert await served.restore()
            assert await greeting(served.path) == str(number)

        async def left() -> int:
            return len(greeter.running)

        await until(left, lambda count: count <= 5)
        assert greeter.running[-1] == 11


async def test_without_its_directory_it_cannot_be_served_and_says_so(root: Path, greeter: Greeter) -> None:
    (root / "d").mkdir()
    served = ServedSocket(root / "d" / "s", greeter.serve)
    async with running(served.run):
        (root / "d").rename(root / "away")
        with pytest.raises(Unavailable, match=f"cannot listen on {root}/d/s: .*No such file"):
            await served.restore()
        (root / "d").mkdir()
        assert await served.restore() == "removed socket is served again"
        assert await greeting(served.path) == "2"


async def test_a_private_directory_of_another_user_is_not_used(root: Path, served: ServedSocket) -> None:
    (root / "elsewhere").mkdir()
    (root / PRIVATE).symlink_to("elsewhere")
    with pytest.raises(Unavailable, match="is not a directory of devlet's own"):
        await served.run()
    assert list((root / "elsewhere").iterdir()) == []


async def test_leftovers_in_the_private_directory_do_no_harm(
    root: Path, served: ServedSocket, caplog: pytest.LogCaptureFixture
) -> None:
    (root / PRIVATE).mkdir()
    (root / PRIVATE / "s99").touch()
    with caplog.at_level(logging.DEBUG):
        async with running(served.run):
            assert await greeting(served.path) == "1"
    assert "private directory not removed" in caplog.messages
