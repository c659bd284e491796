"""A unix socket that is served while a part runs, and served again if its file is removed.

A server cannot move to a new file, so a second one takes over and the first one lingers for the requests under way.
Each socket is bound in a private directory and linked to its path when it accepts connections. So other users can never
connect to it, watchers see it being created, and a file that has its name is never replaced.
"""

import logging
import os
import stat
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
from anyio import TASK_STATUS_IGNORED, CancelScope
from anyio.abc import TaskGroup, TaskStatus

from devlet.errors import Unavailable
from devlet.kit.facts import facts
from devlet.kit.kept_files import kind, look
from devlet.kit.upkeep import identity

__all__ = ["PRIVATE", "Serve", "ServedSocket"]

log = logging.getLogger(__name__)

PRIVATE = ".new"  # the directory in which a socket is bound, beside its path
LINGER = 30.0  # seconds that a server has to finish its requests after another has taken over
_SERVERS = 5  # at one time

Serve = Callable[[Path], AbstractAsyncContextManager[None]]


class _Attempt:
    """One attempt to serve the path, which the task that owns the servers carries out."""

    def __init__(self) -> None:
        self.wanted, self.ended = anyio.Event(), anyio.Event()
        self.succeeded = False
        self.error: Unavailable | None = None


class ServedSocket:
    """`serve` binds a socket to the path that it is given, and serves it while its block runs."""

    def __init__(self, path: Path, serve: Serve) -> None:
        self.path = path
        self._serve = serve
        self._number = 0
        self._identity: tuple[int, int] | None = None
        self._attempt: _Attempt | None = None  # the next one; None while `run` does not run
        self._servers: list[CancelScope] = []  # the newest is the last one

    async def run(self, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled. Ready when clients can connect. Replace a socket that a killed process left behind;
        raise Unavailable if something else is there."""
        self._clear()
        attempt = _Attempt()
        try:
            async with anyio.create_task_group() as tasks:
                await self._make(attempt, tasks)
                if attempt.succeeded:
                    task_status.started()
                    await self._make_more(tasks)
        finally:
            if self._attempt is not None:
                self._attempt.ended.set()
            if self._identity is not None and self.problem() is None:
                self.path.unlink()
            self._attempt, self._identity = None, None
            self._servers.clear()
        if attempt.error is not None:
            raise attempt.error

    def problem(self) -> str | None:
        """Return why clients cannot connect; None if they can, or if the socket is not being served."""
        if self._identity is None or self._identity == identity(self.path, os.lstat):
            return None
        try:
            found = look(self.path)
        except Unavailable as e:
            return str(e)
        if found is None:
            return f"{self.path} was removed"
        return f"{self.path} is {kind(found.st_mode)} that devlet did not create: move it away"

    def _is_missing(self) -> bool:
        return not os.path.lexists(self.path)

    async def restore(self) -> str:
        """Serve the path again if the socket was removed. Raise Unavailable if something else is there."""
        attempt, problem = self._attempt, self.problem()
        if attempt is None or problem is None:
            return ""
        if not self._is_missing():
            raise Unavailable(problem)
        attempt.wanted.set()
        await attempt.ended.wait()
        if attempt.error is not None:
            raise attempt.error
        return "removed socket is served again" if attempt.succeeded else ""

    async def _make_more(self, tasks: TaskGroup) -> None:
        while True:
            attempt = self._attempt = _Attempt()
            await attempt.wanted.wait()
            await self._make(attempt, tasks)

    async def _make(self, attempt: _Attempt, tasks: TaskGroup) -> None:
        """Start a server. The one before it lingers. If too many linger, stop the oldest ones."""
        try:
            server: CancelScope = await tasks.start(self._server)
        except Unavailable as e:
            attempt.error = e
        else:
            attempt.succeeded = True
            if self._servers:
                self._servers[-1].deadline = anyio.current_time() + LINGER
            self._servers.append(server)
            while len(self._servers) > _SERVERS:
                self._servers.pop(0).cancel()
        attempt.ended.set()

    async def _server(self, *, task_status: TaskStatus[CancelScope]) -> None:
        """Serve a new socket at the path."""
        private = self.path.parent / PRIVATE
        self._number += 1
        new = private / f"s{self._number}"  # a new name each time: gRPC removes the file of a server that it stops
        try:
            _make_private(private, new)
            async with self._serve(new):
                new.chmod(0o600)
                os.link(new, self.path)
                self._identity = identity(new)
                _remove_private(private, new)
                with CancelScope() as scope:
                    task_status.started(scope)
                    await anyio.sleep_forever()
        except (OSError, RuntimeError) as e:  # gRPC raises the latter when it cannot bind
            raise Unavailable(f"cannot listen on {self.path}: {e}") from e

    def _clear(self) -> None:
        found = look(self.path)
        if found is None:
            return
        if not stat.S_ISSOCK(found.st_mode):
            raise Unavailable(f"cannot listen on {self.path}: something else is there. Move it away.")
        try:
            self.path.unlink()
        except OSError as e:
            raise Unavailable(f"cannot listen on {self.path}: {e}") from e


def _make_private(private: Path, new: Path) -> None:
    private.mkdir(mode=0o700, exist_ok=True)
    found = private.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PermissionError(f"{private} is not a directory of devlet's own: move it away")
    private.chmod(0o700)
    new.unlink(missing_ok=True)


def _remove_private(private: Path, new: Path) -> None:
    """Remove the private directory. If that fails, the rest is harmless."""
    try:
        new.unlink()
        private.rmdir()
    except OSError as e:
        log.debug("private directory not removed", extra=facts(path=private, err=e))
