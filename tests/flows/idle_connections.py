"""Open connections and say nothing: `python idle_connections.py PORT PLAIN TLS`.

PLAIN of them do not even begin the TLS handshake; TLS of them finish it and send half a request. Prints `open` when
all are there and then, when the server has closed each of them, the seconds between that and the last close.
"""

import asyncio
import resource
import ssl
import sys
import time

from anyio import create_task_group

AT_ONCE = 200


def trusting() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def main(port: int, plain: int, tls: int) -> None:
    gate, context = asyncio.Semaphore(AT_ONCE), trusting()
    connections: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def connect(encrypted: bool) -> None:
        async with gate:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=context if encrypted else None, ssl_handshake_timeout=60 if encrypted else None
            )
        if encrypted:
            writer.write(b"GET /version HTTP/1.1\r\nHost:")
        connections.append((reader, writer))

    async with create_task_group() as tasks:
        for number in range(plain + tls):
            tasks.start_soon(connect, number >= plain)
    say("open")
    began = time.monotonic()
    async with create_task_group() as tasks:
        for reader, _ in connections:
            tasks.start_soon(closed, reader)
    say(f"{time.monotonic() - began:.1f}")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def closed(reader: asyncio.StreamReader) -> None:
    try:
        while await reader.read(1 << 12):
            pass
    except (ConnectionError, ssl.SSLError):
        return


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(main(*map(int, sys.argv[1:])))
