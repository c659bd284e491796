"""The driver under test: a process that we start, kill and stop, or one that runs already and is left alone.

A driver gets its directories by words in its command and environment, such as `{device_plugins}`. Only the words that
are known are replaced: braces are usual in arguments that are JSON. It has to be killed as a group: what was given
as a command is often a shell around the driver. It runs where the caller stands, as paths in its command are meant.
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

LOG_LIMIT = 4 << 20  # bytes; what a driver writes beyond is thrown away
_TAIL = 8 << 10
_TAIL_LINES = 12
_LINE = 300  # characters
_WANTS_ROOT = re.compile(
    r"permission denied|operation not permitted|must be (run as )?root|EACCES|EPERM", re.IGNORECASE
)
_LEFT_SOME = (
    "(it ended, and left processes behind: they are killed, as in a container; a driver stays in the foreground)"
)
_IN_BRACES = re.compile(r"(?<![{$])\{([A-Za-z_-]{3,})\}(?!\})")
_ALL_WORDS = frozenset("root registry cdi device_plugins kubelet_sock plugins kubeconfig node instance".split())
_ALIKE = 0.75  # of 1


@dataclass(frozen=True, slots=True)
class Command:
    """The program to start. With `private_mount`, /var/lib/kubelet is the rig's root for it. `start` is that of
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
    """With paths for the words in braces."""
    for name, path in places.items():
        word = word.replace(f"{{{name}}}", str(path))
    return word


def check_words(texts: Iterable[str], known: Collection[str]) -> None:
    """InvalidInput for a word in braces that is nearly a known one, or one for another kind of driver."""
    for text in texts:
        for word in _IN_BRACES.findall(text):
            if word not in known and difflib.get_close_matches(word.lower(), _ALL_WORDS, cutoff=_ALIKE):
                words = ", ".join(f"{{{each}}}" for each in known)
                raise InvalidInput(f"{text}: {{{word}}} stands for nothing here; the words are {words}")


class Driver(Protocol):
    """`starts` counts how often it was started."""

    starts: int

    @property
    def pid(self) -> int | None:
        """Of the process that was started; None if it is not known or has ended."""
        ...

    @property
    def ending(self) -> str:
        """How it ended, such as `exited with 1`; empty while it runs, or if it is not ours."""
        ...

    def log(self) -> str: ...
    async def start(self) -> None: ...
    async def kill(self) -> None: ...
    async def terminate(self, within: float) -> bool: ...


class DriverProcess:
    """Not running until `start`. Leave with `close`."""

    def __init__(self, command: Command, root: Path, log: Path, grace: float = 2.0) -> None:
        self.starts = 0
        self.log_bytes = 0  # thrown away as too many
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
        """Its last lines, and what they seem to mean."""
        lines = _tail(self._log)
        left = bool(self._process and self._process.left_some)
        return "\n".join([*lines, *_advice(lines), *[_LEFT_SOME] * left])

    async def start(self) -> None:
        """Again if it has ended. InvalidInput if there is no such program."""
        await self.close()
        words = list(self._command.words)
        if self._command.private_mount:
            words = [sys.executable, "-m", kubelet_paths.__name__, str(self._root), *words]
        self._process = await self._stack.enter_async_context(
            process(words, log=self._log, env=self._command.env, grace=self._grace, start=self._command.start)
        )
        self.starts += 1

    async def kill(self) -> None:
        """SIGKILL for all of it: nothing can be tidied up."""
        if self._process:
            self._process.kill_group()
            await self._process.wait()
            await self._process.end_all()

    async def terminate(self, within: float) -> bool:
        """SIGTERM, as a container gets it. Whether it ended in time; what it started ends with it then."""
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
        """Bytes of log, those that were thrown away too."""
        return self.log_bytes + (self._log.stat().st_size if self._log.exists() else 0)

    def trim_log(self) -> None:
        """A driver that floods must not fill the disk. It appends, so the file may be cut under it."""
        try:
            if (size := self._log.stat().st_size) > LOG_LIMIT:
                os.truncate(self._log, 0)
                self.log_bytes += size
        except FileNotFoundError:
            return


class AttachedDriver:
    """Somebody else's process. It is neither stopped nor started."""

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


_NOT_OURS = "the driver is attached: only one that the suite started is stopped and started"


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
    what_to_do = "run the suite as root" if os.geteuid() else "let it run as root, with the capabilities that it needs"
    return [f"(it seems to need rights that it does not have: {what_to_do})"]
