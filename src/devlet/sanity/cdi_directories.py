"""The directories of CDI specs, as a runtime sees them, and the files that are written there.

The last directory belongs to the driver alone. Other drivers may write to the others at any time, so a file there
counts only if its name or content has the UID of one of our claims.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from inotify_simple import INotify, flags

from devlet.runtime.cdi.cache import Cache
from devlet.runtime.cdi.registry import KnownDevice, Registry
from devlet.runtime.cdi.spec_dir import SUFFIXES

__all__ = ["CdiDirectories", "Traffic"]

_READ = 64 << 10  # bytes of a file that are searched for a claim


@dataclass(slots=True)
class Traffic:
    """Files that were `written` in place, under a name that runtimes read."""

    written: set[Path] = field(default_factory=set)


class CdiDirectories:
    """The directories, of which later ones take precedence. `claims` returns the UIDs of all created claims."""

    def __init__(self, directories: Sequence[Path], claims: Callable[[], set[str]] = set) -> None:
        self.directories = tuple(dict.fromkeys(directories))
        self.claims = claims

    def now(self) -> Registry:
        return Cache(self.directories).refresh()

    def devices(self, ids: Sequence[str]) -> tuple[KnownDevice, ...]:
        """Return the CDI devices. Raises NotFound, with the reason, if a runtime would not find one of them."""
        return self.now().resolve(ids).complete()

    def missing(self, ids: Sequence[str]) -> str:
        """Return the IDs that a runtime would not find, as text; empty if it finds all."""
        return ", ".join(self.now().resolve(ids).missing)

    def errors(self) -> dict[Path, tuple[str, ...]]:
        """Return what is wrong with the driver's files."""
        return {path: texts for path, texts in self.now().errors.items() if self.is_own(path)}

    def files(self) -> set[Path]:
        """Return all files of the driver, including those that no runtime reads."""
        found = {path for each in self.directories if each.is_dir() for path in each.iterdir()}
        return {path for path in found if self.is_own(path)}

    def is_own(self, path: Path) -> bool:
        if path.parent == self.directories[-1]:
            return True
        claims = self.claims()
        if any(uid in path.name for uid in claims):
            return True
        try:
            with path.open("rb") as file:
                text = file.read(_READ).decode(errors="replace")
        except OSError:
            return False
        return any(uid in text for uid in claims)

    @contextmanager
    def watched(self) -> Iterator[Traffic]:
        """Record the files that are written in place within the block."""
        traffic = Traffic()
        with INotify(nonblocking=True) as changes:
            places = {
                changes.add_watch(each, flags.CLOSE_WRITE | flags.MODIFY): each
                for each in self.directories
                if each.is_dir()
            }
            yield traffic
            for event in changes.read(timeout=0):
                path = places.get(event.wd, Path()) / event.name
                if path.suffix in SUFFIXES and self.is_own(path):
                    traffic.written.add(path)
