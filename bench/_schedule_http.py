"""HTTPS connections that are kept open, with as little Python per request as possible: a client that takes processor
time from the measured server distorts the measurement."""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_LONGEST_LINE = 16 << 20


@dataclass(frozen=True)
class Target:
    """An API server, and the scheduler that its pods name."""

    endpoint: str
    ca_file: Path
    token: str
    kubeconfig: Path
    scheduler: str = "default-scheduler"


@asynccontextmanager
async def connected(target: Target) -> AsyncIterator["Connection"]:
    server = urlsplit(target.endpoint)
    context = ssl.create_default_context(cafile=target.ca_file)
    # kube-apiserver's own certificate lacks fields that Python 3.13 requires
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    reader, writer = await asyncio.open_connection(server.hostname, server.port, ssl=context, limit=_LONGEST_LINE)
    try:
        yield Connection(reader, writer, f"Host: {server.netloc}\r\nAuthorization: Bearer {target.token}\r\n".encode())
    finally:
        writer.transport.abort()  # an orderly shutdown would only take time


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, headers: bytes) -> None:
        self._reader = reader
        self._writer = writer
        self._headers = headers

    async def post(self, path: str, body: bytes) -> None:
        about = b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body)
        await self._body(await self._ask(b"POST", path, about, body))

    async def delete(self, path: str) -> None:
        await self._body(await self._ask(b"DELETE", path))

    async def get(self, path: str) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(await self._body(await self._ask(b"GET", path)))
        return answer

    async def _body(self, head: bytes) -> bytes:
        if b"transfer-encoding: chunked" in head:
            return b"".join([chunk async for chunk in self._chunks()])
        return await self._reader.readexactly(_length(head))

    async def get_lines(self, path: str) -> AsyncGenerator[bytes, None]:
        """Yield the lines of an endless response, such as a watch, until the server ends it. An empty line comes first:
        from then on no event is missed."""
        await self._ask(b"GET", path)
        yield b""
        rest = b""
        async for chunk in self._chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield line

    async def _ask(self, verb: bytes, path: str, about: bytes = b"", body: bytes = b"") -> bytes:
        """Return the head of a successful response, in lower case."""
        self._writer.write(b"%b %b HTTP/1.1\r\n%b%b\r\n%b" % (verb, path.encode(), self._headers, about, body))
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        if head[9:10] != b"2":
            text = await self._reader.read(500)
            raise SystemExit(
                f"{verb.decode()} {path}: {head.splitlines()[0].decode()}: {text.decode(errors='replace')}"
            )
        return head

    async def _chunks(self) -> AsyncIterator[bytes]:
        try:
            while size := int(await self._reader.readuntil(b"\r\n"), 16):
                yield (await self._reader.readexactly(size + 2))[:-2]
            await self._reader.readexactly(2)
        except asyncio.IncompleteReadError:
            return  # the server exited


def _length(head: bytes) -> int:
    return int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
