"""Checkpoints on disk: a file that is replaced as a whole, and writes that are shared by all waiting tasks.

`CheckpointFile` blocks: call it in a thread. `GroupSaver` runs on the event loop. It requests the content right before
it writes, so all tasks that call `save` while a write is under way share the next one.
"""

import logging
import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from anyio import TASK_STATUS_IGNORED, CancelScope, Event, to_thread
from anyio.abc import TaskStatus

from devlet.errors import InvalidInput, StateCorrupt, TooLarge, Unavailable
from devlet.kit import atomic_file
from devlet.kit.backoff import Backoff
from devlet.kit.chance import random
from devlet.kit.clock import Clock, SystemClock, wait
from devlet.kit.facts import facts

log = logging.getLogger(__name__)

MAX_BYTES = 256 << 20
MAX_KEY = 250  # characters of a file's name
DIRECTORY_MODE = 0o755

_KEY = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_KUBELET_TEMPORARY = re.compile(r"\.[0-9]+")
_ASIDE = "%Y%m%dT%H%M%SZ"


def check_key(name: str) -> None:
    if len(name) > MAX_KEY or not _KEY.fullmatch(name):
        raise InvalidInput(
            f"invalid key {name[:MAX_KEY]!r}: the name of a checkpoint has at most {MAX_KEY} letters, digits, '-', '_'"
            " and '.', and begins and ends with a letter or digit"
        )


def names(directory: Path) -> list[str]:
    """Return the names of the checkpoints in a directory. Names that begin with a dot are unfinished writes."""
    try:
        return sorted(name for name in os.listdir(directory) if not name.startswith("."))
    except FileNotFoundError:
        return []


class CheckpointFile:
    """A checkpoint. A write is atomic, and durable when `write` returns. `prepare` creates the directory; `write` does
    not, because writing a checkpoint must not recreate a root that was removed."""

    def __init__(self, path: Path, *, max_bytes: int = MAX_BYTES) -> None:
        check_key(path.name)
        self.path = path
        self._max_bytes = max_bytes

    def read(self) -> bytes | None:
        """Return the content, or None if the file does not exist."""
        try:
            return read(self.path, self._max_bytes)
        except FileNotFoundError:
            return None
        except OSError as e:
            raise Unavailable(f"{self.path} cannot be read: {e.strerror or e}") from e

    def exists(self) -> bool:
        """Return True if anything exists at the path."""
        return os.path.lexists(self.path)

    def write(self, content: bytes) -> None:
        if len(content) > self._max_bytes:
            raise TooLarge(f"{self.path}: {len(content)} bytes are more than the {self._max_bytes} of a checkpoint")
        try:
            atomic_file.write(self.path, content)
        except OSError as e:
            raise Unavailable(f"{self.path} cannot be written: {e.strerror or e}") from e

    def remove(self) -> None:
        """Remove the file if it exists."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as e:
            raise Unavailable(f"{self.path} cannot be removed: {e.strerror or e}") from e

    def set_aside(self, now: datetime) -> Path:
        """Rename a damaged file, so that it can be examined and the next write does not replace it."""
        try:
            aside = free_name(self.path, now)
            os.replace(self.path, aside)
            atomic_file.sync_directory(self.path.parent)
        except OSError as e:
            raise Unavailable(f"{self.path} cannot be set aside: {e.strerror or e}") from e
        return aside

    def set_aside_files(self) -> list[Path]:
        """Return the damaged files that were set aside, oldest first."""
        pattern = re.compile(re.escape(self.path.name) + r"\.damaged-(\d{8}T\d{6}Z)(?:-(\d+))?")
        found = [match for name in names(self.path.parent) if (match := pattern.fullmatch(name))]
        return [self.path.with_name(m[0]) for m in sorted(found, key=lambda m: (m[1], int(m[2] or 0)))]

    def prepare(self) -> None:
        """Create the directory, and remove unfinished writes of killed processes, including a kubelet. Only the owner
        of the file may call this, before it writes."""
        directory = self.path.parent
        try:
            directory.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
            left = [p for p in directory.iterdir() if _KUBELET_TEMPORARY.fullmatch(p.name) and _is_file(p)]
            for leftover in left:
                leftover.unlink(missing_ok=True)
            removed = len(left) + atomic_file.remove_leftovers(self.path)
        except OSError as e:
            raise Unavailable(f"{directory} cannot be prepared for {self.path.name}: {e.strerror or e}") from e
        if removed:
            log.info("unfinished checkpoints removed", extra=facts(path=str(self.path), count=removed))


def read(path: Path, max_bytes: int = MAX_BYTES) -> bytes:
    """Read a regular file of limited size, and not a pipe without a writer or an endless device. Raise OSError if it
    cannot be read."""
    with open(path, "rb", opener=_regular) as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise StateCorrupt(f"{path} has more than the {max_bytes} bytes of a checkpoint")
    return content


def _regular(path: str, flags: int) -> int:
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise InvalidInput(f"{path} is not a file; move it away")
    return fd


def free_name(path: Path, now: datetime) -> Path:
    """Create an empty file `NAME.damaged-TIME` beside `path`, with a number appended if that exists. A rename replaces
    an existing file, so the name has to be reserved first."""
    stem = f"{path.name}.damaged-{now.astimezone(UTC).strftime(_ASIDE)}"
    for number in count():
        aside = path.with_name(f"{stem}-{number}" if number else stem)
        try:
            os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            continue
        return aside
    raise AssertionError("unreachable")


def _is_file(path: Path) -> bool:
    return stat.S_ISREG(path.lstat().st_mode)


@dataclass(frozen=True, slots=True)
class Settings:
    retry: Backoff = field(default=Backoff(1.0, 30.0))  # after a write that failed


class _Batch:
    """The tasks that wait for the same write."""

    def __init__(self) -> None:
        self.done = Event()
        self.waiting = 0
        self.problem: Exception | None = None


class GroupSaver:
    """Writes the result of `content` on request, if it has changed. `content` must not await.

    After a failed write the content of the disk is unknown, so the write is retried until it succeeds."""

    def __init__(
        self,
        file: CheckpointFile,
        content: Callable[[], bytes],
        *,
        clock: Clock = SystemClock(),
        settings: Settings = Settings(),
    ) -> None:
        self._file = file
        self._content = content
        self._clock = clock
        self._settings = settings
        self._batch = _Batch()  # for the next write
        self._asked = Event()
        self._durable: bytes | None = None  # the content of the disk, if it is known
        self._owed = False  # a write was requested with `save_soon`
        self._failures = 0
        self._ended = False
        self.problem: str | None = None  # why the last write failed

    @property
    def path(self) -> Path:
        return self._file.path

    async def restore(self) -> str:
        """Write the file again if it was removed. See `kit.upkeep`."""
        if self._durable is None or self._ended or self._file.exists():
            return ""
        self._durable = None
        await self.save()
        return "removed file written again"

    async def save(self) -> None:
        """Return when the present state is durable. Raise Unavailable if it could not be written."""
        if self._ended:
            raise Unavailable(f"{self._file.path} is no longer written: devlet is stopping")
        batch = self._batch
        batch.waiting += 1
        self._asked.set()
        try:
            await batch.done.wait()
        finally:
            batch.waiting -= 1
        if batch.problem is not None:
            raise Unavailable(str(batch.problem)) from batch.problem

    def save_soon(self) -> None:
        """Request a write without waiting for it. While writes fail, this does not bring the next attempt forward."""
        self._owed = True
        if not self._failures:
            self._asked.set()

    async def run(self, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        task_status.started()
        try:
            while True:
                await self._until_asked()
                await self._write()
        finally:
            self._ended = True
            with CancelScope(shield=True):
                if self._asked.is_set() or self._owed or self._failures:
                    await self._write()

    async def _until_asked(self) -> None:
        if self._failures:
            await wait(self._asked, self._clock, self._settings.retry.delay(self._failures - 1, random.random))
        else:
            await self._asked.wait()

    async def _write(self) -> None:
        """Write for the current batch. There is no await between taking the batch and the content."""
        batch, self._batch, self._asked, self._owed = self._batch, _Batch(), Event(), False
        try:
            await self._make_durable(self._content())
        except (Unavailable, TooLarge) as e:
            self._failures += 1
            batch.problem, self.problem = e, str(e)
            if not batch.waiting:
                log.warning("checkpoint not written", extra=facts(path=str(self._file.path), err=e))
        except BaseException:
            batch.problem = Unavailable(f"{self._file.path} is no longer written: devlet is stopping")
            raise
        finally:
            batch.done.set()

    async def _make_durable(self, content: bytes) -> None:
        if content != self._durable:
            self._durable = None
            with CancelScope(shield=True):
                await to_thread.run_sync(self._file.write, content)
            self._durable = content
        self._failures, self.problem = 0, None
        if self._owed:  # requested after the content was taken
            self._asked.set()
