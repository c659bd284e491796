"""A gRPC connection to a plugin's unix socket: connected on entry, closed on exit, with gRPC's errors translated.

Messages are passed as bytes. The caller decodes them, because it knows how large and how wrong they may be.

This is the only module that handles gRPC's errors and awaits gRPC's calls. grpc.aio raises `CancelledError` by itself,
when a channel is closed and instead of the one that a cancel scope has sent; the scope does not recognise it and lets
it pass. So every wait here has a scope of its own, which is cancelled before the channel is closed.
"""

import logging
import os
import socket
import stat
import struct
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

import anyio
import grpc
from anyio import CancelScope

from devlet.errors import PluginError, PluginRefused, PluginUnavailable, PluginUnimplemented
from devlet.kit import request_ids, socket_paths
from devlet.kit.facts import bound_fact, facts
from devlet.kit.grpc_calls import answered
from devlet.kit.kept_files import kind
from devlet.plugins import endpoints

log = logging.getLogger(__name__)

__all__ = ["Connection", "Observe", "connection", "dial_options", "listener_pid", "target"]

Observe: TypeAlias = Callable[[str, str, float], None]  # method path, gRPC code as Go spells it, seconds

# Caused by a dead process or socket. Every other status is an answer of the plugin.
_UNAVAILABLE = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED}
_RETRY = 0.02  # seconds between two attempts to connect: a socket exists a moment before its server listens
_DETAILS_LIMIT = 2_000  # characters of an error message of the plugin
_CREDENTIALS = struct.Struct("iII")  # pid, uid, gid
_CANCELED = "Canceled"
_GO_NAMES = {
    code: "OK" if code is grpc.StatusCode.OK else code.name.title().replace("_", "") for code in grpc.StatusCode
} | {grpc.StatusCode.CANCELLED: _CANCELED}


class Connection:
    """A connection, as yielded by `connection`. `plugin` is the name in errors, `pid` the process that listens (None if
    it is in another PID namespace). `observe` is called after each unary call."""

    def __init__(
        self, plugin: str, path: Path, pid: int | None, channel: grpc.aio.Channel, observe: Observe | None = None
    ) -> None:
        self.plugin = plugin
        self.path = path
        self.pid = pid
        self._channel = channel
        self._observe = observe
        self._methods: dict[str, grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]] = {}
        self._waits: set[CancelScope] = set()
        self._stopped = False
        self._left = anyio.Event()

    async def call(self, method: str, request: bytes, *, timeout: float) -> bytes:
        """Call a unary method, given by its full path, and return the answer."""
        began, code = time.monotonic(), _CANCELED
        about = {"plugin": self.plugin, "method": _short(method)}
        try:
            with self._errors(method, timeout), self._waiting():
                answer = await answered(self._method(method)(request, timeout=timeout, metadata=_metadata()))
            code = _GO_NAMES[grpc.StatusCode.OK]
            log.debug("driver called", extra=facts(**about, took=round(time.monotonic() - began, 6)))
        except PluginError as e:
            code = _code(e)
            took = round(time.monotonic() - began, 6)
            log.info("driver call failed", extra=facts(**about, code=code, took=took, err=e.message))
            raise
        finally:
            if self._observe:
                self._observe(method, code, time.monotonic() - began)
        return answer

    async def stream(self, method: str, request: bytes) -> AsyncGenerator[bytes, None]:
        """Yield the messages of a server-streaming method. The end of the stream is raised as an error."""
        with self._errors(method), self._waiting():
            open_stream: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = self._channel.unary_stream(method)
            call = open_stream(request)
        try:
            while True:
                with self._errors(method), self._waiting():
                    message = await call.read()
                if not isinstance(message, bytes):  # grpc.aio.EOF
                    raise PluginUnavailable(self.plugin, f"{_short(method)} ended: the plugin closed the stream")
                yield message
        finally:
            call.cancel()

    async def close(self) -> None:
        """Cancel the calls under way, and refuse new ones. Called on exit."""
        self._stopped = True
        for scope in self._waits:
            scope.cancel()
        if self._waits:
            await self._left.wait()
        await self._channel.close()

    def _method(self, path: str) -> grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]:
        if (known := self._methods.get(path)) is None:
            known = self._methods[path] = self._channel.unary_unary(path)
        return known

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        if self._stopped:
            raise self._has_stopped()
        with CancelScope() as scope:
            self._waits.add(scope)
            try:
                yield
            finally:
                self._leave(scope)
        if scope.cancelled_caught:
            raise self._has_stopped()

    def _leave(self, scope: CancelScope) -> None:
        self._waits.discard(scope)
        if self._stopped and not self._waits:
            self._left.set()

    def _has_stopped(self) -> PluginUnavailable:
        return PluginUnavailable(self.plugin, f"endpoint {self.path} has been stopped")

    @contextmanager
    def _errors(self, method: str, timeout: float | None = None) -> Iterator[None]:
        try:
            yield
        except grpc.aio.AioRpcError as e:
            raise _translated(self.plugin, _short(method), timeout, e) from e


def _metadata() -> tuple[tuple[str, str], ...] | None:
    """Return the caller's request id, for the driver's log."""
    number = bound_fact(request_ids.FACT)
    return ((request_ids.METADATA, number),) if number else None


@asynccontextmanager
async def connection(
    plugin: str, path: Path, *, within: float, max_message: int, below: Path | None = None
) -> AsyncIterator[Connection]:
    """Connect for the block. Calls that are under way at its end raise `PluginUnavailable`.

    Wait at most `within` seconds for a gRPC server on the socket. A path that is not a socket, or that leads outside of
    `below`, fails at once."""
    deadline = anyio.current_time() + within
    pid = await _listened(plugin, path, deadline, within, below)
    channel = grpc.aio.insecure_channel(target(path), options=dial_options(max_message, within))
    dialled = Connection(plugin, path, pid, channel)
    try:
        with anyio.CancelScope(deadline=deadline) as scope:
            await _ready(channel)
        if scope.cancelled_caught:
            raise PluginUnavailable(plugin, f"{path}: something listens, but did not speak gRPC within {within:g} s")
        yield dialled
    finally:
        with anyio.CancelScope(shield=True):
            await dialled.close()


def target(path: Path) -> str:
    """Return the path as a gRPC target. gRPC decodes percent signs: unquoted, `..%2f` would lead out of a directory."""
    return f"unix:{quote(os.fsencode(path))}"


def listener_pid(path: Path) -> int | None:
    """Return the process that listens on a unix socket, or None if it is in another PID namespace. Raise OSError if
    there is no listener."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
        probe.connect(os.fspath(path))
        raw = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid: int = _CREDENTIALS.unpack(raw)[0]
    return pid or None


async def _ready(channel: grpc.aio.Channel) -> None:
    """Poll the state of the channel. An abandoned wait for gRPC's own notification would outlive the channel."""
    pause = 0.001
    while channel.get_state(try_to_connect=True) is not grpc.ChannelConnectivity.READY:
        await anyio.sleep(pause)
        pause = min(2 * pause, _RETRY)


async def _listened(plugin: str, path: Path, deadline: float, within: float, below: Path | None) -> int | None:
    while True:
        try:
            _check_kind(plugin, path, below)
            return listener_pid(path)
        except (
            ConnectionRefusedError,
            FileNotFoundError,
            BlockingIOError,
        ) as e:  # the last one means that its backlog is full
            problem = e.strerror
        except OSError as e:
            raise PluginUnavailable(plugin, f"{path}: {e.strerror or e}") from e
        if anyio.current_time() + _RETRY > deadline:
            raise PluginUnavailable(plugin, f"{path}: no listener within {within:g} s ({problem})")
        await anyio.sleep(_RETRY)


def _check_kind(plugin: str, path: Path, below: Path | None) -> None:
    """Raise PluginUnavailable for a path that can never be connected; connect() does not tell. A missing path is
    fine."""
    if "\0" in str(path):
        raise PluginUnavailable(plugin, f"{str(path)!r}: a path cannot contain zero bytes")
    if socket_paths.length(path) > socket_paths.MAX_BYTES:
        limit = f"a socket path has at most {socket_paths.MAX_BYTES} bytes"
        raise PluginUnavailable(plugin, f"{path}: {socket_paths.length(path)} bytes are too many, {limit}")
    if path.is_symlink() and not path.exists():
        raise PluginUnavailable(plugin, f"{path}: is a link to {os.readlink(path)}, which does not exist")
    if below is not None and (elsewhere := endpoints.outside(path, below)):
        raise PluginUnavailable(plugin, f"{path} {elsewhere}")
    mode = path.stat().st_mode
    if not stat.S_ISSOCK(mode):
        raise PluginUnavailable(plugin, f"{path}: is {kind(mode)}, not a socket")


def dial_options(max_message: int, within: float) -> list[tuple[str, Any]]:
    """Return the options of a channel to a unix socket. `within` is the timeout of one attempt to connect."""
    return [
        # The default for unix sockets is a path, which some servers refuse.
        ("grpc.default_authority", "localhost"),
        # With a shared pool, a restarted plugin would inherit the back-off of its predecessor.
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.initial_reconnect_backoff_ms", 50),
        ("grpc.max_reconnect_backoff_ms", 1_000),
        (
            "grpc.min_reconnect_backoff_ms",
            max(int(within * 1_000), 1_000),
        ),  # the timeout of one attempt, despite its name
        ("grpc.enable_retries", 0),
        ("grpc.enable_http_proxy", 0),
        ("grpc.max_receive_message_length", max_message),
        ("grpc.max_send_message_length", max_message),
    ]


def _translated(plugin: str, method: str, timeout: float | None, error: grpc.aio.AioRpcError) -> PluginError:
    code, details = error.code(), (error.details() or "")[:_DETAILS_LIMIT]
    if code is grpc.StatusCode.DEADLINE_EXCEEDED and timeout is not None:
        return PluginUnavailable(plugin, f"{method} was not answered within {timeout:g} s")
    return _kind(code)(plugin, f"{method} failed: {details or code.name}")


def _kind(code: grpc.StatusCode) -> type[PluginError]:
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return PluginUnimplemented
    return PluginUnavailable if code in _UNAVAILABLE else PluginRefused


def _code(error: PluginError) -> str:
    """Return the code of the translated status. An error of our own means that the connection was closed."""
    cause = error.__cause__
    return _GO_NAMES[cause.code()] if isinstance(cause, grpc.aio.AioRpcError) else _CANCELED


def _short(method: str) -> str:
    return method.rpartition("/")[2]
