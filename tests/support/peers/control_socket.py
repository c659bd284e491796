"""Commands for a program of ours that listens on a unix socket: a line of JSON each, and a line in answer.

Every command is over, and in force, when it returns.
"""

from pathlib import Path
from typing import Any

import anyio
import msgspec
from anyio.streams.buffered import BufferedByteReceiveStream
from msgspec import Struct

from devlet.errors import InvalidInput, Unavailable
from devlet.testing.waiting import DEADLINE

__all__ = ["ControlSocket"]

ANSWER_TIMEOUT = DEADLINE  # the program itself gives up earlier
ANSWER_LIMIT = 64 << 20  # bytes


class _Answer(Struct):
    value: Any
    error: str = ""


class ControlSocket:
    """`name` is the program's, for messages."""

    def __init__(self, name: str, path: Path, *, timeout: float = ANSWER_TIMEOUT) -> None:
        self._name = name
        self._path = path
        self._timeout = timeout

    async def do(self, what: str, **arguments: object) -> Any:
        """What the program answers. InvalidInput with its text if it refuses, Unavailable if it says nothing."""
        answer = await self._ask(msgspec.json.encode({"do": what, **arguments}) + b"\n")
        if answer.error:
            raise InvalidInput(f"{self._name}: {what}: {answer.error}")
        return answer.value

    async def _ask(self, command: bytes) -> _Answer:
        try:
            with anyio.fail_after(self._timeout):
                async with await anyio.connect_unix(self._path) as stream:
                    await stream.send(command)
                    line = await BufferedByteReceiveStream(stream).receive_until(b"\n", ANSWER_LIMIT)
        except (OSError, TimeoutError, anyio.IncompleteRead) as e:
            raise Unavailable(f"{self._name} does not answer on {self._path}; has it ended?") from e
        return msgspec.json.decode(line, type=_Answer)
