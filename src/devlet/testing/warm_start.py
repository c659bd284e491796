"""Start `python -m devlet` without waiting for its imports: fork a process that has imported them already.

A test run starts hundreds of nodes and drivers, and two thirds of the processor time of a start are imports. What is
started here is a process like any other, with a session, a log and an exit status of its own. Only its command line
in /proc and the environment that /proc shows are those of the process that it was forked from.

    async with process(argv, log=log, start=warm_start.start) as program: ...

The forking process is started once for each process that asks, and ends with it.
"""

import atexit
import ctypes
import gc
import importlib
import json
import os
import random
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
from typing import Any

import anyio

from devlet.errors import Unavailable
from devlet.kit import chance

__all__ = ["start"]

PRELOADED = ("devlet.cli.up", "devlet.daemon.main", "devlet.daemon.control", "devlet.testing.fake_device_plugin")
_MAX_REQUEST = 128 << 10
_PR_SET_PDEATHSIG = 1


async def start(argv: Sequence[str], log: int, env: Mapping[str, str], cwd: Path | None) -> "ForkedProcess":
    """Run `python -m MODULE …` in a fork. Both outputs go to the file descriptor `log`."""
    if list(argv[:2]) != [sys.executable, "-m"]:
        raise ValueError(f"only {sys.executable} -m MODULE can be started by a fork, not {argv}")
    request = json.dumps({"argv": argv[2:], "env": dict(env), "cwd": str(cwd or os.getcwd())}).encode()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        socket.send_fds(_forker(), [request], [log, theirs.fileno()])
    await anyio.wait_readable(ours)
    answer = ours.recv(64)
    if not answer:
        raise Unavailable("the process that forks others has ended")
    ours.setblocking(False)
    return ForkedProcess(int(answer), ours)


class ForkedProcess:
    """A process that was started by a fork. Its exit status comes from the process that forked it."""

    def __init__(self, pid: int, status: socket.socket) -> None:
        self.pid = pid
        self._status = status
        self._returncode: int | None = None
        self._waiting = anyio.Lock()

    @property
    def returncode(self) -> int | None:
        if self._returncode is None:
            with suppress(BlockingIOError):
                self._returncode = int(self._status.recv(64) or -signal.SIGKILL)
                self._status.close()
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
        self._status.close()


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
                    with suppress(OSError), status:  # nobody may be waiting any more
                        status.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
                    continue
                request, fds, _, _ = socket.recv_fds(control, _MAX_REQUEST, 2)
                if not request:
                    return b""
                log, status = fds[0], socket.socket(fileno=fds[1])
                if (pid := os.fork()) == 0:
                    _detach(parent, log, [control, status, *(each for _, each in running.values())], list(running))
                    return request
                os.close(log)
                status.send(str(pid).encode())
                pidfd = os.pidfd_open(pid)
                running[pidfd] = pid, status
                selector.register(pidfd, selectors.EVENT_READ)


def _detach(parent: int, log: int, sockets: Sequence[socket.socket], pidfds: Sequence[int]) -> None:
    os.setsid()
    _die_with(parent)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
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
    module, *arguments = request["argv"]
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    random.seed()
    chance.random.seed()
    sys.path[0] = request["cwd"]  # as with `python -m`
    importlib.invalidate_caches()
    sys.argv[:] = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
