"""The directories of CDI specs, as a runtime sees them: what is in them, and what was seen on the way there.

The last one is the driver's alone. The others are the machine's: other drivers write there, at any time, so a file in
one of them counts only if a claim of ours is in its name, or in it.
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

_READ = 64 << 10  # bytes of a file in which a claim is looked for


@dataclass(slots=True)
class Traffic:
    """`written` are files that were written to under a name that runtimes read."""

    written: set[Path] = field(default_factory=set)


class CdiDirectories:
    """Later directories win over earlier ones. `claims` are the UIDs of those that were made."""

    def __init__(self, directories: Sequence[Path], claims: Callable[[], set[str]] = set) -> None:
        self.directories = tuple(dict.fromkeys(directories))
        self.claims = claims

    def now(self) -> Registry:
        return Cache(self.directories).refresh()

    def devices(self, ids: Sequence[str]) -> tuple[KnownDevice, ...]:
        """NotFound, which says why, if a runtime would not find one of them."""
        return self.now().resolve(ids).complete()

    def missing(self, ids: Sequence[str]) -> str:
        """Those that a runtime would not find, for people; empty if it finds all."""
        return ", ".join(self.now().resolve(ids).missing)

    def errors(self) -> dict[Path, tuple[str, ...]]:
        """What is wrong with the driver's files."""
        return {path: texts for path, texts in self.now().errors.items() if self.is_own(path)}

    def files(self) -> set[Path]:
        """All that are the driver's, also those that no runtime reads."""
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
        """What is written there within the block is known afterwards."""
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
