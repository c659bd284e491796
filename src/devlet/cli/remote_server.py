"""A server named by a kubeconfig: TLS and credentials.

Tokens and certificates, in the kubeconfig or in files, are handled here. Credential plugins, token files and
impersonation are left to the cluster client, whose event loop is started only for them.
"""

import socket
import ssl
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from devlet.cluster.remote.connection import Connection, KeyPair, Source
from devlet.cluster.remote.tls import tls_context
from devlet.errors import InvalidInput

CONNECT_TIMEOUT = 10.0  # seconds

Proof = tuple[list[tuple[str, str]], ssl.SSLContext | None]


class RemoteServer:
    is_node = False

    def __init__(self, connection: Connection) -> None:
        url = urlsplit(connection.server)
        self.address = connection.address
        self.host = url.netloc
        self.prefix = url.path.rstrip("/")
        self.namespace = connection.namespace
        self._connection = connection
        self._peer = (url.hostname or "", url.port or (443 if connection.is_tls else 80))

    @property
    def headers(self) -> Sequence[tuple[str, str]]:
        return self._proof[0]

    def dial(self) -> socket.socket:
        tls = self._proof[1]
        line = socket.create_connection(self._peer, CONNECT_TIMEOUT)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is None:
            return line
        try:
            return tls.wrap_socket(line, server_hostname=self._connection.tls_server_name or self._peer[0])
        except OSError:
            line.close()
            raise

    def trouble(self, error: OSError) -> str:
        if isinstance(error, ssl.SSLCertVerificationError):
            why = error.verify_message
            return (
                f"{self.address}: the server's certificate is not trusted ({why}): is the kubeconfig for this server?"
            )
        if isinstance(error, TimeoutError):
            return f"{self.address} does not answer: is it running, and is the address in the kubeconfig right?"
        return f"cannot connect to {self.address}: {error.strerror or error}"

    @cached_property
    def _proof(self) -> Proof:
        return prove(self._connection)


def prove(connection: Connection) -> Proof:
    """Return the headers for each request, and the TLS context if the server uses TLS."""
    credentials = connection.credentials
    if credentials.exec_plugin or credentials.token_file or connection.impersonate.user:
        return _prove_with_client(connection)
    headers = []
    if credentials.token and connection.sends_credentials:
        headers.append(("Authorization", f"Bearer {_printable(credentials.token, connection.address)}"))
    return headers, tls_context(connection, *_pair(credentials.key_pair)) if connection.is_tls else None


def _prove_with_client(connection: Connection) -> Proof:
    import anyio

    from devlet.cluster.remote.authenticator import Authenticator
    from devlet.cluster.remote.settings import Settings
    from devlet.kit.clock import SystemClock

    proof = anyio.run(Authenticator(connection, Settings(), SystemClock()).proof)
    return proof.headers, proof.tls


def _pair(pair: KeyPair | None) -> tuple[bytes, bytes]:
    return (b"", b"") if pair is None else (_content(pair.certificate), _content(pair.key))


def _content(source: Source) -> bytes:
    if not isinstance(source, Path):
        return source
    try:
        return source.read_bytes()
    except OSError as e:
        raise InvalidInput(f"cannot read {source}: {e.strerror or e}") from e


def _printable(token: str, address: str) -> str:
    if not token.isascii() or not token.isprintable():
        raise InvalidInput(f"{address}: the token in the kubeconfig contains unprintable characters")
    return token
