"""Start a Python program without waiting for its imports: fork a process that has imported devlet already.

A test run starts hundreds of nodes, drivers and commands, and two thirds of the processor time of a start are imports.
The started program is a process like any other, with a session, a log and an exit status of its own. Only the command
line and the environment that /proc shows are those of the process that it was forked from.

    async with process(argv, log=log, start=warm_start.start) as program: ...
    done = warm_start.run([sys.executable, "-m", "devlet", "get", "pods"])

The forking process is started once for each process that asks, and ends with it.
"""

import atexit
import ctypes
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import anyio

from devlet.errors import Unavailable
from devlet.kit import chance

__all__ = ["ForkedProcess", "run", "start"]

PRELOADED = ("devlet.cli.up", "devlet.daemon.main", "devlet.daemon.control", "devlet.testing.fake_device_plugin")
_MAX_REQUEST = 128 << 10  # bytes
_MAX_STATUS = 64
_FILES = 3
_PR_SET_PDEATHSIG = 1


async def start(argv: Sequence[str], log: int, env: Mapping[str, str], cwd: Path | None) -> "ForkedProcess":
    """Start `python -m MODULE …` or `python FILE …`. Both outputs go to the file descriptor `log`."""
    with _ask(argv, [_nothing(), log, log], env, cwd) as status:
        with anyio.CancelScope(shield=True):  # the caller can end the process only once it has its pid
            await anyio.wait_readable(status)
        return ForkedProcess(_pid(status), status.detach())


def run(
    argv: Sequence[str],
    *,
    input: str = "",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = 300.0,
) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end, like `subprocess.run` with captured text. The program is killed after `timeout`."""
    with TemporaryFile("w+") as stdin, TemporaryFile("w+") as stdout, TemporaryFile("w+") as stderr:
        stdin.write(input)
        stdin.seek(0)
        files = [stdin.fileno(), stdout.fileno(), stderr.fileno()]
        with _ask(argv, files, os.environ if env is None else env, cwd) as status:
            pid = _pid(status)
            status.settimeout(timeout)
            try:
                code = int(status.recv(_MAX_STATUS))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise
        for file in (stdout, stderr):
            file.seek(0)
        return subprocess.CompletedProcess(argv, code, stdout.read(), stderr.read())


def _ask(argv: Sequence[str], files: Sequence[int], env: Mapping[str, str], cwd: Path | None) -> socket.socket:
    """Start the program with these standard files. Return the socket on which its pid and status arrive."""
    if argv[0] != sys.executable or len(argv) < 2 or (argv[1].startswith("-") and argv[1] != "-m"):
        raise ValueError(f"only {sys.executable} -m MODULE or FILE can be started by a fork, not {argv}")
    request = json.dumps({"argv": argv[1:], "env": dict(env), "cwd": str(cwd or os.getcwd())}).encode()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        try:
            socket.send_fds(_forker(), [request], [*files, theirs.fileno()])
        except BaseException:
            ours.close()
            raise
    return ours


@cache
def _nothing() -> int:
    return os.open(os.devnull, os.O_RDONLY)


def _pid(status: socket.socket) -> int:
    answer = status.recv(_MAX_STATUS)
    if not answer:
        raise Unavailable("the process that forks others has ended")
    return int(answer)


class ForkedProcess:
    """A process that was started by a fork. Its exit status comes from the process that forked it."""

    def __init__(self, pid: int, status: int) -> None:
        """`status` is the file descriptor that the exit status comes from. This object closes it."""
        self.pid = pid
        self._status = status
        os.set_blocking(status, False)
        self._returncode: int | None = None
        self._waiting = anyio.Lock()

    @property
    def returncode(self) -> int | None:
        if self._returncode is None:
            with suppress(BlockingIOError):
                self._returncode = int(os.read(self._status, _MAX_STATUS) or -signal.SIGKILL)
                os.close(self._status)
        return self._returncode

    def send_signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    async def wait(self) -> int:
        while True:
            async with self._waiting:
                if (code := self.returncode) is not None:
                    return code
                await anyio.wait_readable(self._status)

    def __del__(self) -> None:
        if self._returncode is None:  # not a socket object, which warns if the collector gets to it first
            os.close(self._status)


@cache
def _forker() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, "-m", __name__, str(theirs.fileno())]
        forker = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True)
    atexit.register(_end, forker, ours)
    return ours


def _end(forker: "subprocess.Popen[bytes]", control: socket.socket) -> None:
    control.close()
    forker.wait()


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    for name in PRELOADED:
        importlib.import_module(name)
    if len(os.listdir("/proc/self/task")) > 1:
        raise RuntimeError("the imports have started threads, so this process must not fork")
    gc.collect()
    gc.freeze()
    if request := _serve(control):
        _run(json.loads(request))


def _serve(control: socket.socket) -> bytes:
    """Fork for each request. Return the request in the forked process, and nothing when no more requests can come."""
    running: dict[int, tuple[int, socket.socket]] = {}
    parent = os.getpid()
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is not control:
                    pid, status = running.pop(key.fd)
                    selector.unregister(key.fd)
                    os.close(key.fd)
                    with suppress(OSError), status:  # the other end may be closed
                        status.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
                    continue
                request, fds, _, _ = socket.recv_fds(control, _MAX_REQUEST, _FILES + 1)
                if not request:
                    return b""
                *files, status_file = fds
                status = socket.socket(fileno=status_file)
                if (pid := os.fork()) == 0:
                    _detach(parent, files, [control, status, *(each for _, each in running.values())], list(running))
                    return request
                for file in files:
                    os.close(file)
                with suppress(OSError):  # the requester may have exited; the process is waited for anyway
                    status.send(str(pid).encode())
                pidfd = os.pidfd_open(pid)
                running[pidfd] = pid, status
                selector.register(pidfd, selectors.EVENT_READ)


def _detach(parent: int, files: Sequence[int], sockets: Sequence[socket.socket], pidfds: Sequence[int]) -> None:
    os.setsid()
    _die_with(parent)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    for each in sockets:
        each.close()
    for fd in pidfds:
        os.close(fd)


def _die_with(parent: int) -> None:
    """Let the kernel kill this process when its parent ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _run(request: dict[str, Any]) -> None:
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    chance.random.seed()
    first, *rest = request["argv"]
    importlib.invalidate_caches()
    if first == "-m":
        sys.path[0] = request["cwd"]
        sys.argv[:] = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(first).parent.absolute())
        sys.argv[:] = request["argv"]
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    main()
