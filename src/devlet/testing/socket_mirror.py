"""Keeps a proxy in front of a socket that comes and goes: wherever it is, and however it ends, so does the proxy's.

    back                                        front
    somebody listens                            listens, and forwards
    the file is gone                            the file is gone
    it was made anew                            is made anew
    its process was killed: nobody listens      is left behind: nobody listens
    is removed, by us                           was removed, by somebody else

So whoever looks at the front sees what they would see at the back. A newcomer might take the file for the socket: a
process that is killed leaves its file, and that nobody listens any more has to be found out.
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

LOOK = 0.05  # seconds between two looks whether somebody listens

_FLAT = dir_watch.Settings(max_depth=0)

_Identity = tuple[int, int, int]


class SocketMirror:
    """`proxy` makes the one that serves next. Runs until it is cancelled."""

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
        """Until the socket that is at the back now has a front; at once if nobody listens there."""
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
            if _identity(self.back) == now and _is_served(self.back):  # so it is the front that has changed
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
        """That a crash has left behind."""
        if self.front.is_socket() and not _is_served(self.front):
            self.front.unlink(missing_ok=True)


async def _change(path: Path, now: _Identity | None) -> None:
    """Until another file is there, or none."""
    with DirWatch(path.parent, skip=lambda name: name != path.name, settings=_FLAT) as watch:
        while _identity(path) == now:
            await watch.changes()


def _identity(path: Path) -> _Identity | None:
    """Of a socket. The numbers of files that are gone are used again, so they are not enough. The time is that of its
    making: a change of its mode does not make it another one."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_mtime_ns) if stat.S_ISSOCK(found.st_mode) else None


def _is_served(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
        try:
            probe.connect(str(path))
        except BlockingIOError:  # somebody listens, and has no time
            return True
        except OSError:
            return False
    return True
