"""Run a program with a small environment, a message on its standard input, and a timeout.

The program gets its own process group, which is killed after the timeout. Only the end of its output is kept, for the
error message if it fails.
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
_REST = 0.1  # seconds to wait for the rest of the output; a process that it left running may keep the pipe open


async def run(argv: Sequence[str], environment: Mapping[str, str], message: bytes, timeout: float) -> None:
    """Raise `Unavailable` if the program cannot be started, exceeds the timeout, or does not exit with 0."""
    process = await _start(argv, {"PATH": _PATH, **environment})
    tail = bytearray()
    try:
        with anyio.move_on_after(timeout) as scope:
            await _communicate(process, message, tail)
    finally:
        await _end(process)
    if scope.cancelled_caught:
        raise Unavailable(f"{argv[0]} was killed after {timeout:g} s{_output(tail)}")
    if process.returncode != 0:
        raise Unavailable(f"{argv[0]} {_how_it_ended(process.returncode)}{_output(tail)}")


async def _start(argv: Sequence[str], environment: Mapping[str, str]) -> Process:
    try:
        # A cancellation half-way would kill the program, but not the processes that it has started.
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
        tasks.start_soon(_send, process.stdin, message)
        tasks.start_soon(_collect, process.stdout, tail)
        await process.wait()
        tasks.cancel_scope.deadline = anyio.current_time() + _REST


async def _send(stdin: ByteSendStream, message: bytes) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # it may ignore its input
        await stdin.send(message)
        await stdin.aclose()


async def _collect(stdout: ByteReceiveStream, tail: bytearray) -> None:
    async for data in stdout:
        tail += data
        del tail[:-_KEPT]


async def _end(process: Process) -> None:
    with anyio.CancelScope(shield=True):
        # Until it has been waited for, its process group id cannot be reused.
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        await process.aclose()


def _how_it_ended(returncode: int | None) -> str:
    if returncode is not None and returncode < 0:
        return f"was ended by {_signal(-returncode)}"
    return f"exited with {returncode}"


def _signal(number: int) -> str:
    """Real-time signals have no names."""
    return signal.Signals(number).name if number in {*signal.Signals} else f"signal {number}"


def _output(tail: bytearray) -> str:
    text = tail.decode(errors="replace").rstrip()[-_SHOWN:].lstrip()
    return f": {text}" if text else ""
