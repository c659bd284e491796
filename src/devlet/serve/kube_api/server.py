"""The listeners: HTTPS for clients with credentials, and a unix socket for the owner of the node.

Both speak HTTP/1.1. Connections that are idle for too long are closed, so that they do not pile up."""

import asyncio
import logging
import os
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from devlet.errors import Unavailable
from devlet.kit.parts import running
from devlet.kit.served_socket import ServedSocket
from devlet.serve.kube_api.connections import HEADER_MAX, LINE_MAX, Handle, Server, continued
from devlet.serve.kube_api.transports import TlsListener, most_connections

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    """Durations in seconds."""

    idle_timeout: float = 30.0  # of a connection without a request
    handshake_timeout: float = 30.0
    stop_timeout: float = 0.5  # for requests in progress; watches are ended at once
    backlog: int = 1_024
    connections: int = 0  # open at the same time over TLS; 0: three quarters of the files that may be open


@asynccontextmanager
async def listening(
    handle: Handle, address: socket.socket, *, tls: ssl.SSLContext | None, settings: Settings = Settings()
) -> AsyncIterator[None]:
    """Serve on a bound socket while the block runs."""
    async with _serving(handle, settings) as server, _accepting(server, address, tls, settings):
        yield


@asynccontextmanager
async def listening_at(handle: Handle, path: Path, *, settings: Settings = Settings()) -> AsyncIterator[ServedSocket]:
    """Serve a unix socket at the path while the block runs. Connections outlast a socket that was removed."""
    async with _serving(handle, settings) as server:
        served = ServedSocket(path, lambda new: _accepting(server, bind_unix(new), None, settings))
        async with running(served.run):
            yield served


@asynccontextmanager
async def _serving(handle: Handle, settings: Settings) -> AsyncIterator[Server]:
    server = Server(
        continued(handle),
        keepalive_timeout=settings.idle_timeout,
        access_log=None,
        max_line_size=LINE_MAX,
        max_field_size=HEADER_MAX,
        auto_decompress=False,  # handlers refuse compressed bodies: a few bytes can expand to gigabytes
        lingering_time=1.0,
        # Otherwise a quiet watch would notice only after up to an hour that its client is gone.
        handler_cancellation=True,
    )
    try:
        yield server
    finally:
        await server.shutdown(settings.stop_timeout)


@asynccontextmanager
async def _accepting(
    server: Server, address: socket.socket, tls: ssl.SSLContext | None, settings: Settings
) -> AsyncIterator[None]:
    loop = asyncio.get_running_loop()
    if tls is not None:
        most = settings.connections or most_connections()
        connections = TlsListener(server, tls, settings.handshake_timeout, most)
        connections.bind(address)
        listener = await loop.create_server(connections, sock=address, backlog=settings.backlog)
    elif address.family == socket.AF_UNIX:
        listener = await loop.create_unix_server(server, sock=address, backlog=settings.backlog)
    else:
        listener = await loop.create_server(server, sock=address, backlog=settings.backlog)
    try:
        yield
    finally:
        listener.close()


def bind_tcp(host: str, port: int) -> socket.socket:
    """Bind a TCP socket. Port 0 selects any free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError as e:
        bound.close()
        raise Unavailable(f"cannot listen on {host}:{port}: {e.strerror}. Choose another --api-address.") from e
    return bound


def bind_unix(path: Path) -> socket.socket:
    """Bind a unix socket that only its owner can ever connect to."""
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        os.fchmod(bound.fileno(), 0o600)  # the file gets the mode of the socket; a umask would affect the whole process
        bound.bind(str(path))
    except OSError as e:
        bound.close()
        raise Unavailable(f"cannot listen on {path}: {e.strerror}") from e
    return bound
