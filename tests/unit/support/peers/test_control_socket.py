"""With a small server in the place of the program."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream

from devlet.errors import InvalidInput, Unavailable
from tests.support.peers.control_socket import ControlSocket

pytestmark = pytest.mark.anyio


class Program:
    def __init__(self) -> None:
        self.asked = b""
        self.answer = b'{"value": 7}\n'

    async def serve(self, stream: SocketStream) -> None:
        async with stream:
            self.asked = await stream.receive()
            if self.answer:
                await stream.send(self.answer)
            else:
                await anyio.sleep_forever()


@pytest.fixture
async def program(root: Path) -> AsyncIterator[Program]:
    program = Program()
    async with await anyio.create_unix_listener(root / "s") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, program.serve)
        yield program
        tasks.cancel_scope.cancel()


async def test_a_command_is_a_line_and_so_is_the_answer(program: Program, root: Path) -> None:
    assert await ControlSocket("p", root / "s").do("count", of={"a": 1}) == 7
    assert program.asked == b'{"do":"count","of":{"a":1}}\n'


async def test_what_is_refused_is_said(program: Program, root: Path) -> None:
    program.answer = b'{"value": null, "error": "no such thing"}\n'
    with pytest.raises(InvalidInput, match=r"^p: count: no such thing$"):
        await ControlSocket("p", root / "s").do("count")


@pytest.mark.parametrize("answer", [b"", b'{"value"'], ids=["silent", "cut off"])
async def test_a_program_that_does_not_answer_is_given_up(program: Program, root: Path, answer: bytes) -> None:
    program.answer = answer
    with pytest.raises(Unavailable, match=f"p does not answer on {root}/s; has it ended"):
        await ControlSocket("p", root / "s", timeout=0.05 if not answer else 10.0).do("count")


async def test_a_program_that_is_not_there_does_not_answer(root: Path) -> None:
    with pytest.raises(Unavailable, match="has it ended"):
        await ControlSocket("p", root / "s").do("count")
