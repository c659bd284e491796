"""Run a foreign program beside a test: ready on entry, stopped on exit, its output kept in a file.

    async with process(["etcd", "--data-dir", "d"], log=Path("etcd.log"), ready=line("ready to serve")) as etcd:
        ...  # etcd.pid

The program gets a small environment of its own, not the caller's: with the caller's KUBECONFIG some drivers would use a
real cluster without a warning. If the caller is killed, the kernel kills the program as well (Linux).
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import anyio

from devlet.errors import InvalidInput, Unavailable
from devlet.kit import diagnostics, orphans

__all__ = [
    "SHORT_GRACE",
    "Child",
    "Ready",
    "RunningProcess",
    "Start",
    "ending",
    "line",
    "log_tail",
    "process",
    "socket_accepts",
    "spawn",
]


class Child(Protocol):
    """A process that was started; `anyio.abc.Process` is one."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    def send_signal(self, number: signal.Signals, /) -> None: ...
    async def wait(self) -> int: ...


Ready = Callable[["RunningProcess"], Awaitable[bool]]
# Starts a command in a session of its own, with both outputs going to a file descriptor, and this environment only.
Start = Callable[[Sequence[str], int, Mapping[str, str], Path | None], Awaitable[Child]]

DEADLINE = 60.0  # seconds; long enough for a very busy machine
SHORT_GRACE = 5.0  # seconds; for programs that lose nothing if they are killed
POLL_INTERVAL = 0.03  # seconds between checks of a program that is not ready yet
TAIL_LINES = 20
TAIL_BYTES = 16 * 1024

_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "SYSTEMROOT")

# A fresh interpreter asks for the parent-death signal and becomes the program, under the same pid. Doing it
# between fork and exec (preexec_fn) can deadlock when the caller has threads. The second check is for a caller
# that died before the signal was asked for.
_LAUNCHER = """
import os, signal, sys
try:
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
except (ImportError, OSError, AttributeError):
    pass
if os.getppid() == int(sys.argv[1]):
    try:
        os.execv(sys.argv[2], sys.argv[2:])
    except OSError as e:
        print(f"{sys.argv[2]}: {e.strerror}", flush=True)
        sys.exit(126)
"""


@dataclass(slots=True)
class RunningProcess:
    """A program that was started. `name` is for messages. It may have ended since: see `returncode`."""

    name: str
    pid: int
    log: Path
    _process: Child = field(repr=False)
    _mark: str = ""  # of the processes that it starts
    _was_killed: bool = False  # by us, with its group

    @property
    def returncode(self) -> int | None:
        """The exit status; None while the program runs, negative for the signal that ended it."""
        return self._process.returncode

    def describe(self) -> str:
        """Return the state of the process and the end of its log."""
        state = "runs" if self.returncode is None else ending(self.returncode)
        return f"pid {self.pid}, {state}; {log_tail(self.log)}"

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the program has ended: another process may have its pid."""
        if self.returncode is None:
            self._process.send_signal(number)

    async def wait(self) -> int:
        """Wait for the program to end."""
        return await self._process.wait()

    def kill_group(self) -> None:
        """Kill the process group, also after the program has ended."""
        self._was_killed = True
        if self.returncode is not None and Path(f"/proc/{self.pid}").exists():
            return  # another process has its pid, which is possible only if the group is empty
        with suppress(ProcessLookupError, PermissionError):  # macOS raises the latter if the whole group has ended
            os.killpg(self.pid, signal.SIGKILL)

    @property
    def left_some(self) -> bool:
        """Return True if the program has ended and processes that it started still run."""
        has_ended = self.returncode is not None and not self._was_killed
        return has_ended and (_has_members(self.pid) or bool(orphans.of(self._mark)))

    async def end_all(self) -> None:
        """Kill the processes that the ended program left behind, and note that in its log. Processes in sessions of
        their own are found only if this process is `adopting` orphans."""
        left = self.left_some
        self.kill_group()
        await orphans.end(self._mark)
        if left:
            with self.log.open("a") as file:
                file.write("(devlet: it left processes behind when it ended; they were killed)\n")


def _has_members(group: int) -> bool:
    """Return True if any process of the group runs."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, its_group = path.read_text(errors="replace").rpartition(") ")[2].split()[:3]
            if int(its_group) == group and state not in "ZX":
                return True
    return False


def line(pattern: str) -> Ready:
    """Ready when a line of the log contains the regular expression."""
    wanted = re.compile(pattern)

    async def seen(program: RunningProcess) -> bool:
        text = await anyio.Path(program.log).read_text(errors="replace")
        return any(wanted.search(one) for one in text.splitlines())

    return seen


def socket_accepts(path: Path) -> Ready:
    """Ready when something listens on the unix socket."""

    async def accepts(_: RunningProcess) -> bool:
        try:
            async with await anyio.connect_unix(path):
                return True
        except OSError:
            return False

    return accepts


@asynccontextmanager
async def process(
    argv: Sequence[str | Path],
    *,
    log: Path,
    name: str = "",
    ready: Ready | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = DEADLINE,
    grace: float = DEADLINE,
    start: Start | None = None,
) -> AsyncIterator[RunningProcess]:
    """Start `argv` in a session of its own and yield it once `ready` says so.

    `env` is added to PATH, HOME, locale and TMPDIR. Both outputs are appended to the log. On exit the program gets
    SIGTERM, and after `grace` seconds SIGKILL; then the processes that it started are killed. If the program ends
    before it is ready, or is not ready within `timeout` seconds, raise `Unavailable` with the last lines of its log.
    Raise `InvalidInput` if there is no such program. It is not an error if the program ends later: see `returncode`.
    `start` is `spawn` unless the program can be started faster (`warm_start`)."""
    mark = uuid4().hex
    child = await _start(argv, log, {**(env or {}), orphans.MARK: mark}, cwd, start or spawn)
    program = RunningProcess(name or Path(argv[0]).name, child.pid, log, child, mark)
    try:
        if ready:
            await _until_ready(program, ready, timeout)
        with diagnostics.attach(program.name, program.describe):
            yield program
    finally:
        await _stop(program, grace)


async def _start(
    argv: Sequence[str | Path], log: Path, env: Mapping[str, str], cwd: Path | None, start: Start
) -> Child:
    environment = {name: os.environ[name] for name in _INHERITED if name in os.environ} | dict(env)
    words = [_executable(argv[0], environment.get("PATH")), *map(str, argv[1:])]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as sink:
        return await start(words, sink.fileno(), environment, cwd)


async def spawn(argv: Sequence[str], log: int, env: Mapping[str, str], cwd: Path | None) -> Child:
    """Start any program."""
    return await anyio.open_process(
        [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid()), *argv],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        env=env,
        cwd=cwd,
        start_new_session=True,
    )


def _executable(program: str | Path, path: str | None) -> str:
    if not str(program):
        raise InvalidInput("the name of the program is empty")
    found = shutil.which(program, path=path)
    if not found:
        raise InvalidInput(f"{program}: no such program, or it is not executable")
    return str(Path(found).absolute())


async def _until_ready(program: RunningProcess, ready: Ready, timeout: float) -> None:
    with anyio.move_on_after(timeout):
        while program.returncode is None:
            if await ready(program):
                return
            await anyio.sleep(POLL_INTERVAL)
    if program.returncode is None:
        raise Unavailable(f"{program.name}: not ready after {timeout:g} s; {log_tail(program.log)}")
    raise Unavailable(f"{program.name}: {ending(program.returncode)} before it was ready; {log_tail(program.log)}")


def ending(returncode: int) -> str:
    """Return how a program ended, as the middle of a sentence."""
    if returncode >= 0:
        return f"exited with {returncode}"
    number = -returncode
    named = number in {each.value for each in signal.Signals}  # those for real time are not, but for two
    return f"was ended by {signal.Signals(number).name if named else f'signal {number}'}"


def log_tail(log: Path) -> str:
    """Return the log's last lines, as the end of an error message."""
    with log.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL_BYTES))
        lines = file.read().decode(errors="replace").splitlines()[-TAIL_LINES:]
    if not lines:
        return f"its log {log} is empty"
    return "\n    ".join([f"the end of {log}:", *lines])


async def _stop(program: RunningProcess, grace: float) -> None:
    with anyio.CancelScope(shield=True):
        program.send_signal(signal.SIGTERM)
        with anyio.move_on_after(grace):
            await program.wait()
        if program.returncode is None:
            program.kill_group()
        await program.wait()
        await program.end_all()
