"""Requests to an API server: sent with our credentials, within our rate, again if the server says so.

Everything HTTP can do wrong ends here: callers get answers, or errors of `devlet.errors` that name the server. A
request is repeated only after 429 and 503 with Retry-After, which promise that nothing was done.
"""

import math
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import count
from urllib.parse import urlencode

import aiohttp

from devlet.cluster.remote.authenticator import Authenticator
from devlet.cluster.remote.connection import Connection
from devlet.cluster.remote.rate_limit import RateLimit
from devlet.cluster.remote.settings import Settings
from devlet.errors import BadRequest, DevletError, TooLarge, Unavailable
from devlet.kit.clock import Clock, SystemClock
from devlet.objects.statuses import error_from_answer

JSON = "application/json"
MAX_ERROR_BYTES = 1 << 20

Query = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    query: Query = ()
    body: bytes | None = None
    content_type: str = JSON


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    body: bytes
    warnings: tuple[str, ...]  # the header's values, as they came


class Transport:
    """Sends requests to one server. Use `open_transport`."""

    def __init__(
        self, session: aiohttp.ClientSession, connection: Connection, settings: Settings, clock: Clock
    ) -> None:
        self.address = connection.address
        self.settings = settings
        self._session = session
        self._connection = connection
        self._clock = clock
        self._authenticator = Authenticator(connection, settings, clock)
        self._limit = RateLimit(settings.qps, settings.burst, clock)

    async def call(self, request: Request) -> Answer:
        """Return the whole answer to a request that succeeded."""
        timeout = self._timeout(self.settings.answer_timeout)
        response = await self._send(request, timeout)
        async with response:
            with self._errors():
                body = await _read(response, self.settings.max_answer_bytes)
        if len(body) > self.settings.max_answer_bytes:
            limit = self.settings.max_answer_bytes
            raise TooLarge(f"{self.address}{request.path}: the answer has more than {limit} bytes; ask for pages")
        return Answer(response.status, body, tuple(response.headers.getall("Warning", ())))

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yield the answer as it arrives. The chunks end with the stream, whether it was closed, cut off, or silent for
        too long. A caller that needs the whole answer must check its content."""
        response = await self._send(request, self._timeout(self.settings.silence))
        async with response, aclosing(_chunks(response)) as chunks:
            yield chunks

    @asynccontextmanager
    async def exchange(
        self, request: Request, headers: Sequence[tuple[str, str]], *, streams: bool = False
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Forward another client's request with our credentials, and return any answer: nothing is retried, and no
        answer is an error. `streams` is for a watch, which may be silent for long."""
        silence = self.settings.silence if streams else self.settings.answer_timeout
        await self._limit.take()
        with self._errors():
            response = await self._once(request, self._timeout(silence), headers)
        async with response:
            yield response

    def _timeout(self, silence: float) -> aiohttp.ClientTimeout:
        return aiohttp.ClientTimeout(total=None, sock_connect=self.settings.connect_timeout, sock_read=silence)

    async def _send(self, request: Request, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        renewed = False
        for attempt in count():
            await self._limit.take()
            with self._errors():
                response = await self._once(request, timeout)
                if response.status < 300:
                    return response
                async with response:
                    text = await _read(response, MAX_ERROR_BYTES)
            wait = _retry_after(response.headers)
            error = self._error(response, text, wait)
            if response.status == 401 and not renewed and self._authenticator.renew():
                renewed = True
                continue
            again = response.status in (429, 503) and wait is not None and wait <= self.settings.longest_wait
            if not again or attempt >= self.settings.retries:
                raise error
            await self._clock.sleep(wait or 0.0)
        raise AssertionError("unreachable")

    async def _once(
        self, request: Request, timeout: aiohttp.ClientTimeout, own: Sequence[tuple[str, str]] | None = None
    ) -> aiohttp.ClientResponse:
        proof = await self._authenticator.proof()
        headers = [("Accept", JSON), ("User-Agent", self.settings.user_agent)] if own is None else list(own)
        if request.body is not None:
            headers.append(("Content-Type", request.content_type))
        return await self._session.request(
            request.method,
            self._url(request),
            data=request.body,
            headers=[*headers, *proof.headers],
            ssl=proof.tls or True,
            server_hostname=self._connection.tls_server_name or None,
            timeout=timeout,
            allow_redirects=False,
        )

    def _url(self, request: Request) -> str:
        try:
            query = urlencode(request.query)
            request.path.encode()
        except UnicodeEncodeError as e:
            raise BadRequest(f"{request.method} {request.path!r}: not Unicode text: {e.reason}") from None
        return self._connection.server.rstrip("/") + request.path + (f"?{query}" if query else "")

    def _error(self, response: aiohttp.ClientResponse, text: bytes, wait: float | None) -> DevletError:
        if response.status < 400:
            return DevletError(f"{self.address}: answered with the code {response.status}, is this an API server?")
        return error_from_answer(response.status, text, retry_after=wait)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (aiohttp.ClientError, TimeoutError, OSError) as e:
            raise Unavailable(f"{self.address}: {_text(e)}") from e


@asynccontextmanager
async def open_transport(
    connection: Connection, settings: Settings = Settings(), clock: Clock | None = None
) -> AsyncIterator[Transport]:
    """Open a transport. Nothing is sent before the first request."""
    connector = (
        aiohttp.UnixConnector(str(connection.socket), limit=0)
        if connection.socket
        else aiohttp.TCPConnector(limit=0)  # a watch holds its connection for as long as it lasts
    )
    async with aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), skip_auto_headers=("Content-Type",)
    ) as session:
        yield Transport(session, connection, settings, clock or SystemClock())


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """Return the body, or slightly more than the limit of it."""
    parts, size = [], 0
    async for chunk in response.content.iter_any():
        parts.append(chunk)
        size += len(chunk)
        if size > limit:
            response.close()
            break
    return b"".join(parts)


async def _chunks(response: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    try:
        async for chunk in response.content.iter_any():
            yield chunk
    except (aiohttp.ClientError, TimeoutError, OSError):
        return


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of the header. API servers do not use its other form, a date."""
    try:
        seconds = float(headers.get("Retry-After", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds and math.isfinite(seconds) else None


def _text(error: Exception) -> str:
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return f"its certificate is not trusted: {_reason(error.certificate_error)}"
        case aiohttp.ClientConnectorError():
            return _cause(error.os_error)
        case TimeoutError():
            return "no answer in time"
        case aiohttp.ServerDisconnectedError():
            return "the connection was closed before an answer came"
        case aiohttp.ClientPayloadError():
            return "the answer broke off"
        case _:
            return str(error) or type(error).__name__


def _cause(error: OSError) -> str:
    if isinstance(error, ssl.SSLError) or not error.errno or error.errno < 0:  # numbers of another table
        return error.strerror or str(error)
    return os.strerror(error.errno)


def _reason(error: Exception) -> str:
    return error.verify_message if isinstance(error, ssl.SSLCertVerificationError) else str(error)
