"""A gRPC server on a unix socket of our own, for one life: it listens, serves, ends what is under way, leaves no file.

    server = SocketServer(path, [methods])
    async with server.serving():
        ...

gRPC removes whatever lies at the path of a socket without asking. So the path is looked at first: a socket where nobody
answers is left over from a process that was killed, one where somebody does is in use.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import anyio
import grpc
from anyio.abc import TaskStatus

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
from devlet.kit import dir_watch, request_ids, socket_paths
from devlet.kit.changes import Changes
from devlet.kit.dir_watch import DirWatch
from devlet.kit.facts import bound, facts
from devlet.sdk.dead_sockets import is_served
from devlet.sdk.mistakes import contained, described

__all__ = ["Context", "Limits", "Methods", "SocketServer", "Stream", "Unary"]

log = logging.getLogger(__name__)

Context = grpc.aio.ServicerContext[bytes, bytes]
Unary = Callable[[bytes, Context], Awaitable[bytes]]
Stream = Callable[[bytes, Context], AsyncIterator[bytes]]

_Identity = tuple[int, int, int]

_CODES: Final = (
    (InvalidInput, grpc.StatusCode.INVALID_ARGUMENT),
    (Forbidden, grpc.StatusCode.PERMISSION_DENIED),
    (NotFound, grpc.StatusCode.NOT_FOUND),
    (Conflict, grpc.StatusCode.ABORTED),
    (InUse, grpc.StatusCode.FAILED_PRECONDITION),
    (TooManyRequests, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (Unavailable, grpc.StatusCode.UNAVAILABLE),
)
_TEXT = 2_000  # bytes of an answer: in its header they may become three times as many, and 8 KiB are the limit
_FLAT = dir_watch.Settings(max_depth=0)
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Methods:
    """The methods to serve, by their literal paths: several APIs have the same names of packages and services."""

    unary: Mapping[str, Unary] = field(default_factory=dict)
    streams: Mapping[str, Stream] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes, counts and seconds."""

    max_message: int = 16 << 20
    max_streams: int = 256  # per connection
    grace: float = 5.0  # for calls that are under way when the server ends


class SocketServer:
    """A gRPC server on a unix socket. The directory of `path` is created if it does not exist."""

    def __init__(self, path: Path, methods: Iterable[Methods], limits: Limits = Limits()) -> None:
        self.path = path
        self._methods = tuple(methods)
        self._limits = limits
        self._own: _Identity | None = None

    @property
    def is_there(self) -> bool:
        """Return True if the socket at the path is that of this server: another process may have removed it."""
        return self._own is not None and self._own == _identity(self.path)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Serve while the block runs. Raise InvalidInput if no socket can be created at the path, and InUse if another
        process serves there."""
        await anyio.to_thread.run_sync(_make_way, self.path)
        handler = _Handler(self._methods)
        server = self._server(handler)
        try:
            self._listen(server)
            await server.start()
            yield
        finally:
            with anyio.CancelScope(shield=True):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(handler.end_streams)
                    await server.stop(self._limits.grace)
                    tasks.cancel_scope.cancel()
                if self.is_there:
                    self.path.unlink(missing_ok=True)
                self._own = None

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled. Listen again if another process removes the socket."""
        started = False
        while True:
            async with self.serving():
                if not started:
                    task_status.started()
                    started = True
                await self._until_removed()
            log.warning("socket was removed: listening again", extra=facts(path=self.path))

    async def _until_removed(self) -> None:
        with DirWatch(self.path.parent, skip=lambda name: name != self.path.name, settings=_FLAT) as watch:
            while self.is_there:
                await watch.changes()

    def _server(self, handler: "_Handler") -> grpc.aio.Server:
        options = [
            ("grpc.max_receive_message_length", self._limits.max_message),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_concurrent_streams", self._limits.max_streams),
        ]
        server = grpc.aio.server(options=options)
        server.add_generic_rpc_handlers([handler])
        return server

    def _listen(self, server: grpc.aio.Server) -> None:
        try:
            server.add_insecure_port(f"unix:{quote(str(self.path))}")  # gRPC expects a URL
            self.path.chmod(0o600)
        except (OSError, RuntimeError) as e:  # gRPC raises the latter when it cannot bind
            raise Unavailable(f"cannot listen on {self.path}: {e}") from e
        self._own = _identity(self.path)
        log.info("listening", extra=facts(path=self.path))


class _Handler(grpc.GenericRpcHandler):
    def __init__(self, methods: Iterable[Methods]) -> None:
        self._unary = {path: unary for each in methods for path, unary in each.unary.items()}
        self._streams = {path: stream for each in methods for path, stream in each.streams.items()}
        self._calls = 0  # under way
        self._done = Changes()  # calls that ended
        self._open: set[anyio.CancelScope] = set()  # streams
        self._ends = False

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        path = handler_call_details.method
        if unary := self._unary.get(path):
            return grpc.unary_unary_rpc_method_handler(partial(self._call, path, unary))
        if stream := self._streams.get(path):
            return grpc.unary_stream_rpc_method_handler(partial(self._stream, path, stream))
        return None

    async def end_streams(self) -> None:
        """End the streams, which would otherwise last until the server stops. Wait for calls first: a kubelet whose
        stream ends closes the connection."""
        await self._done.until(lambda: not self._calls)
        self._ends = True
        for scope in self._open:
            scope.cancel()

    async def _call(self, path: str, method: Unary, blob: bytes, context: Context) -> bytes:
        self._calls += 1
        try:
            return await _answered(path, method, blob, context)
        finally:
            self._calls -= 1
            self._done.notify()

    async def _stream(self, path: str, method: Stream, blob: bytes, context: Context) -> None:
        if self._ends:
            return
        with anyio.CancelScope() as scope:
            self._open.add(scope)
            try:
                await _streamed(path, method, blob, context)
            finally:
                self._open.discard(scope)


async def _answered(path: str, method: Unary, blob: bytes, context: Context) -> bytes:
    with bound(requestID=_request_id(context)):
        log.debug("called", extra=facts(method=path, bytes=len(blob)))
        try:
            with contained("the driver"):
                return await method(blob, context)
        except Exception as e:
            await _refuse(context, e, path)
    raise AssertionError("unreachable")


async def _streamed(path: str, method: Stream, blob: bytes, context: Context) -> None:
    with bound(requestID=_request_id(context)):
        log.debug("stream opened", extra=facts(method=path))
        try:
            async with aclosing(method(blob, context)) as messages:  # type: ignore[type-var]
                async for message in messages:
                    with anyio.CancelScope(shield=True):  # gRPC never ends a call that is cancelled during a write
                        await context.write(message)
        except Exception as e:
            await _refuse(context, e, path)
        finally:
            log.debug("stream closed", extra=facts(method=path))


def _request_id(context: Context) -> str:
    """Return the id that the node sent, or a number of our own if it sent none."""
    sent = dict(context.invocation_metadata() or ()).get(request_ids.METADATA)
    return str(sent) if request_ids.is_valid(sent) else str(next(_numbers))


async def _refuse(context: Context, error: Exception, path: str) -> None:
    """Answer with an error. An error that is not a DevletError is a bug in the driver, and reported as one."""
    if isinstance(error, grpc.aio.AbortError):
        raise error
    known = isinstance(error, DevletError)
    log.warning("call failed", extra=facts(method=path, err=error), exc_info=None if known else error)
    code = next((code for kind, code in _CODES if isinstance(error, kind)), grpc.StatusCode.UNKNOWN)
    await context.abort(code, described(error).encode(errors="replace")[:_TEXT].decode(errors="ignore"))


def _make_way(path: Path) -> None:
    if (size := socket_paths.length(path)) > socket_paths.MAX_BYTES:
        limit = f"a socket path has at most {socket_paths.MAX_BYTES}: use a shorter directory"
        raise InvalidInput(f"{path} has {size} bytes, {limit}")
    try:
        path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        if is_served(path):
            raise InUse(f"{path} is served by another process: stop it, or give each instance its own name")
        path.unlink(missing_ok=True)
    except OSError as e:
        raise InvalidInput(f"{path} cannot be created as a socket: {e.strerror or e}") from e


def _identity(path: Path) -> _Identity | None:
    """Return the identity of a file. Inode numbers are reused, so its creation time is part of it; a chmod does not
    change that."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns
