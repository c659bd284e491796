"""A proxy for unix sockets that fails like networks and processes: it holds, delays, cuts and refuses.

    async with SocketProxy(root / "front.sock", root / "dra.sock") as proxy:
        ...                                        # clients use front.sock
        proxy.hold()                               # connections are accepted, and nothing passes
        proxy.release()
        proxy.cut_after(100, Direction.TO_CLIENT)  # in the middle of an answer
        assert proxy.accepted == 1

It copies bytes without interpreting them. gRPC sends data in both directions as soon as it is connected, so `cut_after`
counts bytes from the moment of the call, not of one message.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
from anyio.abc import TaskGroup, TaskStatus

from devlet.kit.changes import Changes
from devlet.kit.parts import running

__all__ = ["Direction", "SocketProxy", "send"]

_PIECE = 65_536  # bytes
_PAUSE = 0.01  # seconds between attempts to connect to a busy server


class Direction(StrEnum):
    TO_SERVER = "to server"
    TO_CLIENT = "to client"


class SocketProxy:
    """A proxy that listens on `path` and opens a connection to `forward` for each of its connections. `forward` may be
    created later; if it starts with a zero byte it is an abstract socket. Use it as a part (`run`), or as an async
    context manager.

    `delay` is the number of seconds that each piece waits before it is passed on. It may be changed at any time."""

    def __init__(self, path: Path, forward: Path | str, *, mode: int = 0o600) -> None:
        self.path = path
        self.forward = forward
        self.delay = 0.0
        self.accepted = 0  # connections so far, without the refused ones
        self.refused = 0
        self.leaves_socket = False  # at its end, as a killed process does
        self._mode = mode
        self._open: set[anyio.CancelScope] = set()
        self._budgets: dict[Direction, int] = {}
        self._refuses = False
        self._holds = False
        self._changes = Changes()
        self._life = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._life.enter_async_context(running(self.run))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._life.aclose()  # so an error of the block is not wrapped in a group

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        with _listener(self.path, self._mode) as listener, self._own_path():
            async with anyio.create_task_group() as tasks:
                task_status.started()
                await self._accept(listener, tasks)

    @property
    def open(self) -> int:
        """The number of open connections."""
        return len(self._open)

    def hold(self) -> None:
        """Hold all data in both directions until `release`. Nothing is lost."""
        self._holds = True

    def release(self) -> None:
        self._holds = False
        self._changes.notify()

    def cut(self) -> None:
        """Close every connection now. New ones are accepted."""
        for scope in self._open:
            scope.cancel()

    def cut_after(self, size: int, direction: Direction) -> None:
        """Let `size` more bytes pass in that direction, over all connections together, then `cut`. Happens once."""
        self._budgets[direction] = size

    def refuse(self) -> None:
        """Close each new connection at once, until `admit`. Open connections stay."""
        self._refuses = True

    def admit(self) -> None:
        self._refuses = False

    async def until_accepted(self, count: int) -> None:
        """Wait until `count` connections were accepted since the start."""
        await self._changes.until(lambda: self.accepted >= count)

    async def until_open(self, count: int) -> None:
        """Wait until exactly `count` connections are open."""
        await self._changes.until(lambda: self.open == count)

    @contextmanager
    def _own_path(self) -> Iterator[None]:
        """Remove the socket at the end, unless another process replaced it."""
        own = os.stat(self.path).st_ino
        try:
            yield
        finally:
            if not self.leaves_socket and self.path.exists() and os.stat(self.path).st_ino == own:
                self.path.unlink()

    async def _accept(self, listener: socket.socket, tasks: TaskGroup) -> None:
        while True:
            await anyio.wait_readable(listener)
            try:
                client, _ = listener.accept()
            except BlockingIOError:  # it was closed again
                continue
            client.setblocking(False)
            tasks.start_soon(self._connected, client)

    async def _connected(self, client: socket.socket) -> None:
        with client:
            if self._refuses:
                self.refused += 1
                return
            self.accepted += 1
            with anyio.CancelScope() as scope, self._counted(scope):
                await self._joined(client)

    @contextmanager
    def _counted(self, scope: anyio.CancelScope) -> Iterator[None]:
        self._open.add(scope)
        self._changes.notify()
        try:
            yield
        finally:
            self._open.discard(scope)
            self._changes.notify()

    async def _joined(self, client: socket.socket) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as server:
            try:
                await _connect(server, os.fspath(self.forward))
            except OSError:  # no server: the connection of the client ends
                return
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._pump, client, server, Direction.TO_SERVER, tasks.cancel_scope)
                tasks.start_soon(self._pump, server, client, Direction.TO_CLIENT, tasks.cancel_scope)

    async def _pump(
        self, source: socket.socket, sink: socket.socket, direction: Direction, both: anyio.CancelScope
    ) -> None:
        try:
            while piece := await _receive(source):
                await self._changes.until(lambda: not self._holds)
                if self.delay:
                    await anyio.sleep(self.delay)
                await self._pass(piece, sink, direction)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            both.cancel()

    async def _pass(self, piece: bytes, sink: socket.socket, direction: Direction) -> None:
        budget = self._budgets.get(direction)
        if budget is None:
            await send(sink, piece)
        elif len(piece) < budget:
            self._budgets[direction] = budget - len(piece)
            await send(sink, piece)
        else:
            del self._budgets[direction]
            await send(sink, piece[:budget])
            self.cut()


# The streams of anyio sometimes fail for unix sockets if a wait for them is cancelled.


@contextmanager
def _listener(path: Path, mode: int) -> Iterator[socket.socket]:
    """Listen on a socket. No client can connect before its mode is set."""
    if path.is_socket():
        path.unlink()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as listener:
        listener.bind(os.fspath(path))
        path.chmod(mode)
        listener.listen()
        yield listener


async def _connect(client: socket.socket, address: str) -> None:
    while True:
        try:
            client.connect(address)
        except BlockingIOError:
            await anyio.sleep(_PAUSE)
        else:
            return


async def _receive(source: socket.socket) -> bytes:
    while True:
        try:
            return source.recv(_PIECE)
        except BlockingIOError:
            await anyio.wait_readable(source)


async def send(sink: socket.socket, piece: bytes) -> None:
    rest = memoryview(piece)
    while rest:
        try:
            rest = rest[sink.send(rest) :]
        except BlockingIOError:
            await anyio.wait_writable(sink)
