"""Credentials for each request: tokens and certificates change while devlet runs.

Files are read again every minute or so, plugins are run again when what they issued expires, and both at once when the
server says it does not know us.
"""

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import quote

import anyio

from devlet.cluster.remote.connection import Connection, Impersonation, KeyPair, Source
from devlet.cluster.remote.exec_plugin import Issued, issue
from devlet.cluster.remote.settings import Settings
from devlet.cluster.remote.tls import tls_context
from devlet.errors import InvalidInput
from devlet.kit.clock import Clock

MAX_TOKEN_BYTES = 64 << 10
_MAX_FILE_BYTES = 1 << 20

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Proof:
    """The credentials of one request. `tls` is None if the connection is not encrypted."""

    headers: list[tuple[str, str]]
    tls: ssl.SSLContext | None


class Authenticator:
    def __init__(self, connection: Connection, settings: Settings, clock: Clock) -> None:
        self._connection = connection
        self._settings = settings
        self._clock = clock
        self._lock = anyio.Lock()
        self._issued: Issued | None = None
        self._token_file = _Aged[str](settings.reread_credentials, clock)
        self._pair_files = _Aged[tuple[bytes, bytes]](settings.reread_credentials, clock)
        self._tls: tuple[tuple[bytes, bytes], ssl.SSLContext] | None = None

    async def proof(self) -> Proof:
        headers: list[tuple[str, str]] = []
        issued = Issued()
        if self._connection.sends_credentials:
            issued = await self._issue()
            if token := issued.token or self._token():
                headers.append(("Authorization", f"Bearer {_printable(token, self._connection.address)}"))
            headers += _impersonating(self._connection.impersonate)
        return Proof(headers, self._context(issued.key_pair) if self._connection.is_tls else None)

    def renew(self) -> bool:
        """Forget credentials that can be read again. Return False if the next ones will be the same."""
        credentials = self._connection.credentials
        self._issued = None
        self._token_file.forget()
        self._pair_files.forget()
        return credentials.exec_plugin is not None or credentials.token_file is not None

    async def _issue(self) -> Issued:
        plugin = self._connection.credentials.exec_plugin
        if plugin is None:
            return Issued()
        async with self._lock:  # one run serves all who wait
            if self._issued is None or (self._issued.expires and self._issued.expires <= self._clock.now()):
                self._issued = await issue(plugin, self._settings.exec_timeout)
            return self._issued

    def _token(self) -> str:
        credentials = self._connection.credentials
        path = credentials.token_file
        return credentials.token if path is None else self._token_file.get(lambda: _read_token(path))

    def _context(self, issued: KeyPair | None) -> ssl.SSLContext:
        """Return the same object as long as nothing changed, so that connections are reused."""
        pair = self._connection.credentials.key_pair
        if issued is not None:
            content = _read_pair(issued)
        elif pair is not None:
            content = self._pair_files.get(lambda: _read_pair(pair))
        else:
            content = (b"", b"")
        if self._tls is None or self._tls[0] != content:
            self._tls = (content, tls_context(self._connection, *content))
        return self._tls[1]


class _Aged(Generic[T]):
    """A value that is read again when it is old. If that fails, the old value is used."""

    def __init__(self, age: float, clock: Clock) -> None:
        self._age = age
        self._clock = clock
        self._value: T | None = None
        self._until = 0.0

    def get(self, read: Callable[[], T]) -> T:
        now = self._clock.monotonic()
        if self._value is not None and now < self._until:
            return self._value
        try:
            self._value = read()
        except InvalidInput:
            if self._value is None:
                raise
        self._until = now + self._age
        return self._value

    def forget(self) -> None:
        self._until = 0.0


def _read(source: Source) -> bytes:
    if isinstance(source, bytes):
        return source
    try:
        with source.open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
    except OSError as e:
        raise InvalidInput(f"{source}: {e.strerror or e}") from e
    if len(content) > _MAX_FILE_BYTES:
        raise InvalidInput(f"{source}: larger than {_MAX_FILE_BYTES} bytes")
    return content


def _read_pair(pair: KeyPair) -> tuple[bytes, bytes]:
    return _read(pair.certificate), _read(pair.key)


def _read_token(path: Path) -> str:
    token = _read(path).decode(errors="replace").strip()
    if not token:
        raise InvalidInput(f"{path}: expected a token, found nothing")
    return token


def _printable(token: str, address: str) -> str:
    if len(token) > MAX_TOKEN_BYTES or not token.isascii() or not token.isprintable():
        raise InvalidInput(f"{address}: the token is longer than {MAX_TOKEN_BYTES} bytes or has unprintable characters")
    return token


def _impersonating(who: Impersonation) -> list[tuple[str, str]]:
    if not who.user:
        return []
    headers = [("Impersonate-User", who.user)]
    if who.uid:
        headers.append(("Impersonate-Uid", who.uid))
    headers += [("Impersonate-Group", group) for group in who.groups]
    for key, values in who.extra.items():
        name = f"Impersonate-Extra-{quote(key.lower(), safe='')}"
        headers += [(name, value) for value in values]
    for name, value in headers:
        if not value.isprintable():
            raise InvalidInput(f"{name}: {value!r} has unprintable characters")
    return headers
