"""Keep a proxy in front of a socket, which appears, disappears and crashes together with the socket.

    back                                        front
    a process listens                           listens, and forwards
    the file is gone                            the file is gone
    it was created again                        is created again
    its process was killed: no listener         is left behind: no listener
    is removed, by the mirror                   was removed, by another process

So the front shows what the back would show. A file alone does not mean that a process listens: a killed process leaves
its file, so the mirror has to test the connection.
"""

import socket
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio

from devlet.kit import dir_watch
from devlet.kit.changes import Changes
from devlet.kit.dir_watch import DirWatch
from devlet.kit.parts import first
from devlet.testing.grpc_proxy import GrpcProxy

__all__ = ["SocketMirror"]

LOOK = 0.05  # seconds between checks that a process listens

_FLAT = dir_watch.Settings(max_depth=0)

_Identity = tuple[int, int, int]


class SocketMirror:
    """Mirrors a socket until it is cancelled. `proxy` creates the proxy that serves next."""

    def __init__(self, back: Path, front: Path, proxy: Callable[[Path, Path], GrpcProxy]) -> None:
        self.back = back
        self.front = front
        self.proxy: GrpcProxy | None = None  # while it serves
        self._make = proxy
        self._served: _Identity | None = None
        self._changes = Changes()

    async def run(self) -> None:
        try:
            while True:
                await self._step()
        finally:
            self._remove_front()

    async def until_served(self) -> None:
        """Wait until the present socket at the back has a proxy. Return at once if no process listens there."""
        while _identity(self.back) != self._served and _is_served(self.back):
            with anyio.move_on_after(LOOK):
                await self._changes.next()

    async def _step(self) -> None:
        now = _identity(self.back)
        if now is None:
            self._remove_front()
            await _change(self.back, now)
        elif _is_served(self.back):
            await self._serve(now)
        else:
            await first(partial(_change, self.back, now), partial(anyio.sleep, LOOK))

    async def _serve(self, now: _Identity) -> None:
        proxy = self._make(self.front, self.back)
        self.front.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        async with proxy:
            self.proxy = proxy
            own = _identity(self.front)
            self._set_served(now)
            await first(
                partial(_change, self.back, now), partial(_change, self.front, own), partial(self._until_dead, proxy)
            )
            self._set_served(None)
            self.proxy = None
            if _identity(self.back) == now and _is_served(self.back):  # so the front changed
                self.back.unlink(missing_ok=True)
            elif _identity(self.back) == now:
                await proxy.crash()

    async def _until_dead(self, proxy: GrpcProxy) -> None:
        while True:
            if not proxy.is_connected and not _is_served(self.back):
                return
            await anyio.sleep(LOOK)

    def _set_served(self, served: _Identity | None) -> None:
        self._served = served
        self._changes.notify()

    def _remove_front(self) -> None:
        """Remove the socket that a crash left behind."""
        if self.front.is_socket() and not _is_served(self.front):
            self.front.unlink(missing_ok=True)


async def _change(path: Path, now: _Identity | None) -> None:
    """Wait until another file, or none, is at the path."""
    with DirWatch(path.parent, skip=lambda name: name != path.name, settings=_FLAT) as watch:
        while _identity(path) == now:
            await watch.changes()


def _identity(path: Path) -> _Identity | None:
    """Return the identity of a socket. Inode numbers are reused, so its creation time is part of it; a change of its
    mode does not change it."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_mtime_ns) if stat.S_ISSOCK(found.st_mode) else None


def _is_served(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
        try:
            probe.connect(str(path))
        except BlockingIOError:  # a process listens, and is busy
            return True
        except OSError:
            return False
    return True
