"""Sockets that nobody serves any more, and those that somebody does."""

import os
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from devlet.errors import InvalidInput
from devlet.kit.clock import SystemClock
from devlet.sdk.dead_sockets import is_served, sweep

pytestmark = pytest.mark.anyio


def dead(path: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    return path


@pytest.fixture
def living(root: Path) -> Iterator[Path]:
    with closing(socket.socket(socket.AF_UNIX)) as one:
        one.bind(str(root / "living"))
        one.listen()
        yield root / "living"


def test_a_socket_is_served_if_a_process_listens(root: Path, living: Path) -> None:
    (root / "file").touch()
    assert is_served(living) and not is_served(dead(root / "dead")) and not is_served(root / "none")
    with pytest.raises(InvalidInput, match="is not a socket"):
        is_served(root / "file")


async def test_only_sockets_without_a_listener_are_removed(root: Path, living: Path) -> None:
    (root / "file").touch()
    gone = dead(root / "dead")
    await sweep([gone, living, root / "file", root / "none"], SystemClock())
    assert set(os.listdir(root)) == {"living", "file"}


class Slow(SystemClock):
    """Time enough for an instance to start to listen."""

    def __init__(self, wakes: socket.socket) -> None:
        super().__init__()
        self._wakes = wakes

    async def sleep(self, seconds: float) -> None:
        self._wakes.listen()


async def test_an_instance_that_is_about_to_listen_is_not_taken_for_dead(root: Path) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as starting:
        starting.bind(str(root / "s"))
        await sweep([root / "s"], Slow(starting))
        assert (root / "s").exists()
