"""The directory of manifests: which pods its files define, and when to look again.

Manifests are files, or links to files, with names that end in .yaml, .yml or .json. Names that begin with a dot and
subdirectories are ignored. An invalid file does not affect the others. If a file becomes invalid, its last valid
content counts until it is corrected or removed, because an editor may be writing it. If two files define the same pod,
the first one counts.
"""

import logging
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio

from devlet.cluster.events import WARNING
from devlet.errors import InvalidInput
from devlet.kit import dir_watch
from devlet.kit.clock import Clock
from devlet.kit.dir_watch import DirWatch
from devlet.kit.facts import facts
from devlet.node.reports import Report
from devlet.node.static_pods import manifest
from devlet.node.static_pods.manifest import StaticPod
from devlet.objects.identifiers import NodeName, ObjectKey

__all__ = ["ManifestDirectory", "Settings"]

log = logging.getLogger(__name__)

REASON = "InvalidStaticPod"
SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class Settings:
    max_bytes: int = 1024 * 1024  # of one file; an API server would not accept a larger pod
    max_files: int = 500
    watch: dir_watch.Settings = field(default=dir_watch.Settings(rescan=20.0, max_depth=0))  # as the kubelet


@dataclass(slots=True)
class _File:
    content: bytes
    pod: StaticPod | None = None  # of this content, or of the last valid one
    problem: str = ""


class ManifestDirectory:
    """Call `report` once for each problem with a file. To be used by one task, inside `with`."""

    def __init__(
        self,
        path: Path,
        node: NodeName,
        clock: Clock,
        report: Callable[[Report], None],
        settings: Settings = Settings(),
    ) -> None:
        self._path = path
        self._node = node
        self._clock = clock
        self._report = report
        self._settings = settings
        self._files: dict[Path, _File] = {}
        self._reported: dict[Path, str] = {}
        self._watch = DirWatch(path, skip=_is_hidden, settings=settings.watch, contents=True)

    def __enter__(self) -> Self:
        self._watch.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.__exit__(kind, error, trace)

    async def changed(self) -> None:
        """Wait until something may have changed. Return at once the first time."""
        await self._watch.changes()

    async def pods(self) -> list[StaticPod]:
        """Return the pods that the files define now."""
        contents = await anyio.to_thread.run_sync(lambda: dict(self._contents()))
        self._files = {path: self._file(path, content) for path, content in contents.items()}
        problems = {path: file.problem for path, file in self._files.items() if file.problem}
        found: dict[ObjectKey, tuple[Path, StaticPod]] = {}
        for path, file in self._files.items():
            if file.pod is not None and (taken := found.setdefault(file.pod.key, (path, file.pod)))[0] != path:
                problems[path] = f"the pod {'/'.join(file.pod.key)} is already in {taken[0].name}"
        self._report_problems(problems)
        return [pod for _, pod in found.values()]

    def _file(self, path: Path, content: bytes | InvalidInput) -> _File:
        before = self._files.get(path, _File(b""))
        if isinstance(content, InvalidInput):
            return _File(b"", before.pod, str(content))
        if content == before.content and (before.pod or before.problem):
            return before
        try:
            return _File(content, manifest.read(content, path, self._node, self._clock.now()))
        except InvalidInput as e:
            return _File(content, before.pod, str(e))

    def _report_problems(self, problems: dict[Path, str]) -> None:
        for path, problem in problems.items():
            if self._reported.get(path) != problem:
                log.warning("static pod not read", extra=facts(path=path, err=problem))
                self._report(Report(WARNING, REASON, f"static pod {path.name}: {problem}"))
        self._reported = problems

    def _contents(self) -> Iterator[tuple[Path, bytes | InvalidInput]]:
        """Yield the files with their content. Empty files are left out: they are about to be written."""
        for number, path in enumerate(self._paths()):
            if number >= self._settings.max_files:
                yield path, InvalidInput(f"ignored: there are more than {self._settings.max_files} files")
                return
            try:
                content = _read(path, self._settings.max_bytes)
            except FileNotFoundError:
                continue
            except (OSError, InvalidInput) as e:
                yield path, InvalidInput(str(e.strerror or e) if isinstance(e, OSError) else str(e))
            else:
                if content.strip():
                    yield path, content

    def _paths(self) -> list[Path]:
        try:
            names = sorted(os.listdir(self._path))
        except FileNotFoundError:
            return []  # it may be created later
        except OSError as e:
            log.warning("static pods not listed", extra=facts(directory=self._path, err=e))
            return []
        usable = [self._path / name for name in names if name.endswith(SUFFIXES) and not _is_hidden(name)]
        return [path for path in usable if not path.is_dir()]


def _is_hidden(name: str) -> bool:
    return name.startswith(".")


def _read(path: Path, limit: int) -> bytes:
    """Read a file. If the path is a pipe, fail instead of waiting for a writer."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InvalidInput("not a file")
        content = file.read(limit + 1)
    if len(content) > limit:
        raise InvalidInput(f"larger than {limit} bytes")
    return content
