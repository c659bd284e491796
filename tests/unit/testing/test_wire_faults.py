import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import pytest

from devlet.kit.parts import running
from devlet.testing.waiting import deadline
from devlet.testing.wire_faults import Direction, SocketProxy

pytestmark = pytest.mark.anyio


class Peer:
    """One end of a connection."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._end.setblocking(False)

    def say(self, words: bytes) -> None:
        assert self._end.send(words) == len(words)

    def finish(self) -> None:
        self._end.shutdown(socket.SHUT_WR)

    async def hear(self, size: int) -> bytes:
        """So many bytes, or fewer if there are no more."""
        got = b""
        with deadline():
            while len(got) < size and (piece := await self._receive()):
                got += piece
        return got

    async def _receive(self) -> bytes:
        await anyio.wait_readable(self._end)
        try:
            return self._end.recv(65_536)
        except ConnectionResetError:
            return b""


@contextmanager
def connected(proxy: SocketProxy) -> Iterator[Peer]:
    with socket.socket(socket.AF_UNIX) as end:
        end.connect(str(proxy.path))
        yield Peer(end)


async def echo(end: socket.socket) -> None:
    with end:
        peer = Peer(end)
        while words := await peer.hear(1):
            try:
                peer.say(words.upper())
            except BrokenPipeError:
                return


async def echo_to_all(listener: socket.socket) -> None:
    async with anyio.create_task_group() as tasks:
        while True:
            await anyio.wait_readable(listener)
            tasks.start_soon(echo, listener.accept()[0])


@asynccontextmanager
async def echoing(root: Path) -> AsyncIterator[SocketProxy]:
    """A server that says everything again, loudly, behind a proxy at front.sock."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "echo.sock"))
        listener.listen()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(echo_to_all, listener)
            async with SocketProxy(root / "front.sock", root / "echo.sock") as proxy:
                yield proxy
            tasks.cancel_scope.cancel()


async def test_bytes_pass_in_both_directions_and_connections_are_counted(root: Path) -> None:
    async with echoing(root) as proxy:
        for number in (1, 2):
            with connected(proxy) as stream:
                stream.say(b"hello")
                assert await stream.hear(5) == b"HELLO"
                assert (proxy.accepted, proxy.open) == (number, 1)
            await proxy.until_open(0)


async def test_the_end_of_one_direction_is_passed_on_and_the_other_stays_open(root: Path) -> None:
    async with echoing(root) as proxy:
        with connected(proxy) as stream:
            stream.say(b"last")
            stream.finish()
            assert await stream.hear(100) == b"LAST"


async def test_while_it_holds_connections_are_accepted_and_nothing_passes_or_is_lost(root: Path) -> None:
    async with echoing(root) as proxy:
        proxy.hold()
        with connected(proxy) as stream:
            await proxy.until_accepted(1)
            stream.say(b"a")
            with anyio.move_on_after(0.05) as scope:
                await stream.hear(1)
            assert scope.cancelled_caught
            stream.say(b"b")
            proxy.release()
            assert await stream.hear(2) == b"AB"


async def test_what_is_delayed_arrives_later(root: Path) -> None:
    async with echoing(root) as proxy:
        with connected(proxy) as stream:
            proxy.delay = 0.02
            began = anyio.current_time()
            stream.say(b"a")
            assert await stream.hear(1) == b"A"
            assert anyio.current_time() - began >= 0.04  # once in each direction


async def test_a_cut_ends_all_connections_and_new_ones_work(root: Path) -> None:
    async with echoing(root) as proxy:
        with connected(proxy) as one, connected(proxy) as two:
            await proxy.until_accepted(2)
            proxy.cut()
            assert await one.hear(1) == await two.hear(1) == b""
        with connected(proxy) as three:
            three.say(b"a")
            assert await three.hear(1) == b"A"


@pytest.mark.parametrize(("direction", "answer"), [(Direction.TO_CLIENT, b"HEL"), (Direction.TO_SERVER, b"")])
async def test_it_cuts_after_so_many_bytes_of_a_direction_once(root: Path, direction: Direction, answer: bytes) -> None:
    async with echoing(root) as proxy:
        proxy.cut_after(3, direction)
        with connected(proxy) as stream:
            stream.say(b"hello")
            assert (await stream.hear(5)) in (answer, b"HEL")
        await proxy.until_open(0)
        with connected(proxy) as stream:
            stream.say(b"again")
            assert await stream.hear(5) == b"AGAIN"


async def test_a_budget_is_counted_over_several_pieces(root: Path) -> None:
    async with echoing(root) as proxy:
        with connected(proxy) as stream:
            proxy.cut_after(3, Direction.TO_CLIENT)
            stream.say(b"ab")
            assert await stream.hear(2) == b"AB"
            stream.say(b"cd")
            assert await stream.hear(2) == b"C"


async def test_new_connections_are_refused_and_open_ones_stay(root: Path) -> None:
    async with echoing(root) as proxy:
        with connected(proxy) as old:
            await proxy.until_accepted(1)
            proxy.refuse()
            with connected(proxy) as new:
                assert await new.hear(1) == b""
            old.say(b"a")
            assert await old.hear(1) == b"A"
            assert (proxy.accepted, proxy.refused) == (1, 1)
            proxy.admit()
            with connected(proxy) as later:
                later.say(b"b")
                assert await later.hear(1) == b"B"


async def test_without_anybody_behind_it_a_connection_ends_at_once(root: Path) -> None:
    async with SocketProxy(root / "front.sock", root / "nobody.sock") as proxy:
        with connected(proxy) as stream:
            assert await stream.hear(1) == b""
        assert proxy.accepted == 1


async def test_its_socket_is_private_and_goes_with_it_unless_it_is_to_stay(root: Path) -> None:
    proxy = SocketProxy(root / "front.sock", root / "nobody.sock")
    async with proxy:
        assert proxy.path.stat().st_mode & 0o777 == 0o600
    assert not proxy.path.exists()
    async with proxy:
        proxy.leaves_socket = True
    assert proxy.path.is_socket()
    with pytest.raises(ConnectionRefusedError), connected(proxy):
        pass


async def test_a_socket_that_replaced_this_one_is_not_removed(root: Path) -> None:
    async with echoing(root) as proxy:
        proxy.path.unlink()
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(proxy.path))
    assert proxy.path.is_socket()


async def test_it_is_a_part_that_can_run_again(root: Path) -> None:
    proxy = SocketProxy(root / "front.sock", root / "nobody.sock")
    for number in (1, 2):
        async with running(proxy.run):
            with connected(proxy):
                await proxy.until_accepted(number)


async def test_an_error_in_its_block_comes_out_as_it_is(root: Path) -> None:
    with pytest.raises(KeyError):
        async with SocketProxy(root / "front.sock", root / "nobody.sock"):
            raise KeyError
