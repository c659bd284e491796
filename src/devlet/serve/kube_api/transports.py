"""Connections that use little memory while their clients neither read nor write.

asyncio's own TLS connection has a read buffer of 256 KiB and lets 576 KiB wait to be sent, and Linux lets some
megabytes wait in addition. With the limits here, all of that together is less than 150 KiB per connection. Events that
do not fit wait in the store, where watches share them.
"""

import asyncio
import logging
import resource
import socket
import ssl
from asyncio import sslproto
from collections.abc import Callable
from typing import cast

from devlet.kit.facts import facts

__all__ = ["Tls", "TlsListener", "limit_writes", "most_connections"]

log = logging.getLogger(__name__)

_READ = 16 << 10  # bytes, one TLS record
_UNSENT = 64 << 10  # bytes that the kernel takes while the client reads nothing
_LOG_EVERY = 10.0  # seconds


def limit_writes(transport: asyncio.WriteTransport) -> None:
    """Make the transport report at once if written data has to wait."""
    transport.set_write_buffer_limits(high=1, low=0)


def most_connections() -> int:
    """Return how many connections leave enough files for everything else that the process opens."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (1 << 20 if soft == resource.RLIM_INFINITY else soft) * 3 // 4


class TlsListener:
    """Makes the protocols of a TLS server, and closes connections beyond `most` at once."""

    def __init__(
        self, serve: Callable[[], asyncio.BaseProtocol], tls: ssl.SSLContext, handshake_timeout: float, most: int
    ) -> None:
        self.open = 0
        self._serve = serve
        self._tls = tls
        self._handshake_timeout = handshake_timeout
        self._most = most
        self._refused = 0
        self._logged = 0.0

    def __call__(self) -> "Tls":
        return Tls(self, self._serve(), self._tls, self._handshake_timeout)

    def bind(self, address: socket.socket) -> None:
        """Set options for the connections that will be accepted from this socket."""
        address.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT)

    def admits(self) -> bool:
        """Return whether the connection that was just counted is within the limit."""
        if self.open <= self._most:
            return True
        self._refused += 1
        now = asyncio.get_running_loop().time()
        if now >= self._logged + _LOG_EVERY:
            log.warning("connections refused", extra=facts(count=self._refused, limit=self._most))
            self._refused, self._logged = 0, now
        return False


class Tls(sslproto.SSLProtocol):
    max_size = _READ

    def __init__(
        self, listener: TlsListener, protocol: asyncio.BaseProtocol, tls: ssl.SSLContext, handshake_timeout: float
    ) -> None:
        self._listener = listener
        ready = asyncio.get_running_loop().create_future()
        ready.cancel()  # nothing waits for the handshake
        super().__init__(
            asyncio.get_running_loop(),
            protocol,
            tls,
            ready,
            server_side=True,
            ssl_handshake_timeout=cast(int, handshake_timeout),  # a float works as well
        )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._listener.open += 1
        transport = cast(asyncio.Transport, transport)  # uvloop's transports are not subclasses of it
        if not self._listener.admits():
            transport.abort()
            return
        limit_writes(transport)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._listener.open -= 1
        super().connection_lost(exc)
