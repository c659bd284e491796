"""The driver under test: a process that we start, kill and stop, or a running one that is left alone.

A driver gets its directories through placeholders in its command and environment, such as `{device_plugins}`. Only
known placeholders are replaced, because JSON arguments contain braces. The driver is killed as a process group, because
its command is often a shell around it. It runs in the caller's working directory, so that relative paths work.
"""

import difflib
import os
import re
import shlex
import signal
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import anyio

from devlet.errors import InvalidInput
from devlet.kit.processes import RunningProcess, Start, ending, process, spawn
from devlet.runtime import kubelet_paths
from devlet.sanity.check import CannotTell

__all__ = ["AttachedDriver", "Command", "Driver", "DriverProcess", "check_words", "filled"]

LOG_LIMIT = 4 << 20  # bytes; a longer log is truncated
_TAIL = 8 << 10
_TAIL_LINES = 12
_LINE = 300  # characters
_WANTS_ROOT = re.compile(
    r"permission denied|operation not permitted|must be (run as )?root|EACCES|EPERM", re.IGNORECASE
)
_LEFT_SOME = (
    "(it exited and left processes behind, which were killed, as in a container: run the driver in the foreground)"
)
_IN_BRACES = re.compile(r"(?<![{$])\{([A-Za-z_-]{3,})\}(?!\})")
_ALL_WORDS = frozenset("root registry cdi device_plugins kubelet_sock plugins kubeconfig node instance".split())
_ALIKE = 0.75  # a ratio from 0 to 1


@dataclass(frozen=True, slots=True)
class Command:
    """The program to start. With `private_mount`, /var/lib/kubelet is mapped to the rig's root. `start` is passed to
    `process`."""

    words: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    private_mount: bool = False
    start: Start = spawn

    def filled(self, places: Mapping[str, Path]) -> "Command":
        env = {name: filled(value, places) for name, value in self.env.items()}
        return Command([filled(word, places) for word in self.words], env, self.private_mount, self.start)

    def __str__(self) -> str:
        return shlex.join(self.words)


def filled(word: str, places: Mapping[str, Path]) -> str:
    """Replace the placeholders in a word by paths."""
    for name, path in places.items():
        word = word.replace(f"{{{name}}}", str(path))
    return word


def check_words(texts: Iterable[str], known: Collection[str]) -> None:
    """Raise InvalidInput for a placeholder that is misspelt, or that belongs to another kind of driver."""
    for text in texts:
        for word in _IN_BRACES.findall(text):
            if word not in known and difflib.get_close_matches(word.lower(), _ALL_WORDS, cutoff=_ALIKE):
                words = ", ".join(f"{{{each}}}" for each in known)
                raise InvalidInput(f"{text}: unknown placeholder {{{word}}}: use one of {words}")


class Driver(Protocol):
    """A driver; `starts` counts how often it was started."""

    starts: int

    @property
    def pid(self) -> int | None:
        """The ID of the process that was started; None if it is not known or has exited."""
        ...

    @property
    def ending(self) -> str:
        """How the process ended, such as `exited with 1`; empty while it runs, or if it is attached."""
        ...

    def log(self) -> str: ...
    async def start(self) -> None: ...
    async def kill(self) -> None: ...
    async def terminate(self, within: float) -> bool: ...


class DriverProcess:
    """A driver that runs after `start` and until `close`."""

    def __init__(self, command: Command, root: Path, log: Path, grace: float = 2.0) -> None:
        self.starts = 0
        self.log_bytes = 0  # that were truncated
        self._command = command
        self._root = root
        self._log = log
        self._grace = grace
        self._stack = AsyncExitStack()
        self._process: RunningProcess | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process and self._process.returncode is None else None

    @property
    def ending(self) -> str:
        code = self._process.returncode if self._process else None
        return "" if code is None else ending(code)

    def log(self) -> str:
        """Return the last lines of the log, with advice if they suggest a common problem."""
        lines = _tail(self._log)
        left = bool(self._process and self._process.left_some)
        return "\n".join([*lines, *_advice(lines), *[_LEFT_SOME] * left])

    async def start(self) -> None:
        """Start the driver, after ending the one before. Raises InvalidInput if the program does not exist."""
        await self.close()
        words = list(self._command.words)
        if self._command.private_mount:
            words = [sys.executable, "-m", kubelet_paths.__name__, str(self._root), *words]
        self._process = await self._stack.enter_async_context(
            process(words, log=self._log, env=self._command.env, grace=self._grace, start=self._command.start)
        )
        self.starts += 1

    async def kill(self) -> None:
        """Kill the process group with SIGKILL, so that nothing can be cleaned up."""
        if self._process:
            self._process.kill_group()
            await self._process.wait()
            await self._process.end_all()

    async def terminate(self, within: float) -> bool:
        """Send SIGTERM, as a container gets it. Return whether the driver exited in time; then end its children."""
        if not self._process:
            return True
        self._process.send_signal(signal.SIGTERM)
        with anyio.move_on_after(within):
            await self._process.wait()
        ended = self._process.returncode is not None
        if ended:
            await self._process.end_all()
        return ended

    async def close(self) -> None:
        await self._stack.aclose()
        self._process = None

    def written(self) -> int:
        """Return the number of bytes logged, including those that were truncated."""
        return self.log_bytes + (self._log.stat().st_size if self._log.exists() else 0)

    def trim_log(self) -> None:
        """Truncate a log that is too long. The driver appends, so the file may be truncated while it writes."""
        try:
            if (size := self._log.stat().st_size) > LOG_LIMIT:
                os.truncate(self._log, 0)
                self.log_bytes += size
        except FileNotFoundError:
            return


class AttachedDriver:
    """A running driver that the suite does not control, so it is neither stopped nor started."""

    starts = 1
    pid = None
    ending = ""

    def log(self) -> str:
        return ""

    async def start(self) -> None:
        raise CannotTell(_NOT_OURS)

    async def kill(self) -> None:
        raise CannotTell(_NOT_OURS)

    async def terminate(self, within: float) -> bool:
        raise CannotTell(_NOT_OURS)


_NOT_OURS = "the driver is attached, and the suite restarts only drivers that it has started"


def _tail(log: Path) -> list[str]:
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return []
    return [line[:_LINE] for line in text.splitlines()[-_TAIL_LINES:]]


def _advice(lines: Sequence[str]) -> list[str]:
    if not any(_WANTS_ROOT.search(line) for line in lines):
        return []
    what_to_do = "run the suite as root" if os.geteuid() else "run it as root with the capabilities that it needs"
    return [f"(the driver seems to lack permissions: {what_to_do})"]
