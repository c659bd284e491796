"""Who a command is, to a server behind a kubeconfig: headers and TLS, proven once.

Tokens and certificates in the kubeconfig or in files cost nothing more. What the cluster client does besides (credential
plugins, token files, impersonation) is left to it; then its event loop is worth its start.
"""

import ssl
from pathlib import Path

from devlet.cluster.remote.connection import Connection, KeyPair, Source
from devlet.cluster.remote.tls import tls_context
from devlet.errors import InvalidInput

Proof = tuple[list[tuple[str, str]], ssl.SSLContext | None]


def prove(connection: Connection) -> Proof:
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
        raise InvalidInput(f"{source}: {e.strerror or e}") from e


def _printable(token: str, address: str) -> str:
    if not token.isascii() or not token.isprintable():
        raise InvalidInput(f"{address}: the token has unprintable characters")
    return token
