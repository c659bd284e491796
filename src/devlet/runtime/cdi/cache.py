"""The CDI specs of a node. `refresh` has to be called before each use.

A refresh costs one stat per file, and only changed files are read again. Watching the directories instead would be a
moment too late: a driver writes a spec, and a container needs it right after. A registry never changes once it has been
returned; it is replaced by a new one.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
from msgspec import Struct

from devlet.errors import InvalidInput, NotFound
from devlet.runtime.cdi.registry import Registry, SpecFile, build
from devlet.runtime.cdi.spec import Spec
from devlet.runtime.cdi.spec_dir import DEFAULT_DIRECTORIES, Settings, Stamp, list_files, read, stamp

__all__ = ["Cache", "CurrentSpecs"]

# A file may change again within one tick of its file system's clock, with the same stamp.
_UNSETTLED = 2_000_000_000  # nanoseconds


class _Outcome(Struct, frozen=True):
    """The result of reading a file. `settled`: its stamp was old enough that any later change gives another stamp."""

    stamp: Stamp
    settled: bool
    spec: Spec | None = None
    error: str = ""


class Cache:
    """`directories` may be missing; later ones take precedence. `now` returns the time in nanoseconds."""

    def __init__(
        self,
        directories: Sequence[Path] = DEFAULT_DIRECTORIES,
        *,
        settings: Settings = Settings(),
        now: Callable[[], int] = time.time_ns,
    ) -> None:
        self._directories = tuple(directories)
        self._settings = settings
        self._now = now
        self._outcomes: dict[Path, _Outcome] = {}
        self._registry = Registry()

    @property
    def directories(self) -> tuple[Path, ...]:
        return self._directories

    def refresh(self) -> Registry:
        """Return the present specs, and the same object as before if nothing has changed. Blocks on the disk. To be
        called by one thread at a time."""
        outcomes: dict[Path, _Outcome] = {}
        files: list[SpecFile] = []
        errors: dict[Path, list[str]] = {}
        for priority, directory in enumerate(self._directories):
            for path in self._paths(directory, errors):
                if (outcome := self._outcome(path)) is None:
                    continue
                outcomes[path] = outcome
                if outcome.spec is None:
                    errors[path] = [outcome.error]
                else:
                    files.append(SpecFile(path, priority, outcome.spec))
        self._outcomes = outcomes
        if (found := build(files, errors)) != self._registry:
            self._registry = found
        return self._registry

    def _paths(self, directory: Path, errors: dict[Path, list[str]]) -> list[Path]:
        try:
            return list_files(directory, self._settings)
        except InvalidInput as e:
            errors[directory] = [str(e)]
            return []

    def _outcome(self, path: Path) -> _Outcome | None:
        """Return None if the file was removed since it was listed, which is not an error."""
        started = self._now()
        try:
            present = stamp(path)
        except NotFound as e:
            # A dangling link is listed every time, so it is reported.
            return _Outcome(_NOWHERE, False, error=str(e)) if path.is_symlink() else None
        except InvalidInput as e:
            return _Outcome(_NOWHERE, False, error=str(e))
        known = self._outcomes.get(path)
        if known is not None and known.settled and known.stamp == present:
            return known
        return self._read(path, present, started)

    def _read(self, path: Path, present: Stamp, started: int) -> _Outcome | None:
        try:
            found, spec = read(path, self._settings)
        except NotFound:
            return None
        except InvalidInput as e:
            return _Outcome(present, _settled(present, started), error=str(e))
        return _Outcome(found, _settled(found, started), spec=spec)


_NOWHERE = Stamp(0, 0, 0, 0, 0)


def _settled(found: Stamp, now: int) -> bool:
    return max(found.modified, found.changed) < now - _UNSETTLED


class CurrentSpecs:
    """The present CDI specs, for many concurrent callers.

    A refresh takes a thread, and only one may run at a time. A caller gets the result of a refresh that began after its
    call, because a driver may have just written a spec. All callers that wait for the same refresh share its result.
    """

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._registry = Registry()
        self._looking = anyio.Lock()
        self._asked = 0  # number of calls
        self._answered = 0  # this many of them came before the last refresh began

    async def registry(self) -> Registry:
        self._asked += 1
        number = self._asked
        async with self._looking:
            if self._answered < number:
                waiting = self._asked
                self._registry = await anyio.to_thread.run_sync(self._cache.refresh)
                self._answered = waiting
            return self._registry
