"""The node's end of a driver's sockets, as bytes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc

TIMEOUT = 60  # seconds


async def call(path: Path, method: str, blob: bytes = b"") -> bytes:
    async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
        ask: Any = channel.unary_unary(method)
        answer: bytes = await ask(blob, timeout=TIMEOUT)
        return answer


@asynccontextmanager
async def stream(path: Path, method: str, blob: bytes = b"") -> AsyncIterator[Any]:
    async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
        ask: Any = channel.unary_stream(method)
        yield ask(blob, timeout=TIMEOUT)
