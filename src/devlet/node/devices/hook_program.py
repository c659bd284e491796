"""Run a program to its end: a small environment, a message on its standard input, and no longer than it may take.

It gets a process group of its own, all of which is killed if it takes too long. What it prints is kept only to be shown
if it fails, and only the end of it.
"""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

from devlet.errors import Unavailable

__all__ = ["run"]

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_KEPT = 2_000  # bytes of output
_SHOWN = 500  # characters of it
_REST = 0.1  # seconds for output that is still on its way; a process that it left running may hold the pipe for ever


async def run(argv: Sequence[str], environment: Mapping[str, str], message: bytes, timeout: float) -> None:
    """`Unavailable` if it did not end well: not started, not in time, or not with exit code 0."""
    process = await _start(argv, {"PATH": _PATH, **environment})
    tail = bytearray()
    try:
        with anyio.move_on_after(timeout) as scope:
            await _communicate(process, message, tail)
    finally:
        await _end(process)
    if scope.cancelled_caught:
        raise Unavailable(f"{argv[0]} was killed after {timeout:g} s{_said(tail)}")
    if process.returncode != 0:
        raise Unavailable(f"{argv[0]} {_ending(process.returncode)}{_said(tail)}")


async def _start(argv: Sequence[str], environment: Mapping[str, str]) -> Process:
    try:
        # Cancelled half-way, it would kill the program but not what that has started.
        with anyio.CancelScope(shield=True):
            process = await anyio.open_process(
                list(argv), stderr=subprocess.STDOUT, env=environment, cwd="/", start_new_session=True
            )
    except (OSError, ValueError) as e:
        raise Unavailable(f"{argv[0]} cannot be started: {getattr(e, 'strerror', None) or e}") from e
    return process


async def _communicate(process: Process, message: bytes, tail: bytearray) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_tell, process.stdin, message)
        tasks.start_soon(_listen, process.stdout, tail)
        await process.wait()
        tasks.cancel_scope.deadline = anyio.current_time() + _REST


async def _tell(stdin: ByteSendStream, message: bytes) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # it need not listen
        await stdin.send(message)
        await stdin.aclose()


async def _listen(stdout: ByteReceiveStream, tail: bytearray) -> None:
    async for data in stdout:
        tail += data
        del tail[:-_KEPT]


async def _end(process: Process) -> None:
    with anyio.CancelScope(shield=True):
        # As long as it has not been waited for, the group with its number is certainly its own.
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        await process.aclose()


def _ending(returncode: int | None) -> str:
    if returncode is not None and returncode < 0:
        return f"was ended by {_signal(-returncode)}"
    return f"exited with {returncode}"


def _signal(number: int) -> str:
    """Real-time signals have no names."""
    return signal.Signals(number).name if number in {*signal.Signals} else f"signal {number}"


def _said(tail: bytearray) -> str:
    text = tail.decode(errors="replace").rstrip()[-_SHOWN:].lstrip()
    return f": {text}" if text else ""
