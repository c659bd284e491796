"""Names that devices keep as long as they are present, whichever other devices are added or removed.

    identities = Identities(directory / "identities.json")
    identities.of({"1-2 4 0403:6001 A5002": ["0403-6001-a5002", "0403-6001-port-2"]})

Each device has a unique key, and names that it may get, the best first. A device that takes the place of another one
must have a different key. If several new devices may get a name, none of them gets it: the result would depend on which
one was found first, and so differ from start to start.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Final

from devlet.sdk.checkpoint import Checkpoint

__all__ = ["Identities", "slug"]

_LONGEST: Final = 63  # characters, for devices of plugins and for names of devices in slices
_HASH = 8  # characters


class Identities:
    """Without a `path` the names are kept in this process only. Instances of a driver that share the file, and threads,
    must hold an `Exclusion`."""

    def __init__(self, path: Path | None = None) -> None:
        self._file = Checkpoint(path, dict[str, str], kind="Identities") if path else None
        self._known: Mapping[str, str] = {}

    def of(self, names: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """Return the names of all present devices by key, and forget all others. The names are saved when it returns.

        Raise StateCorrupt or Unavailable as `Checkpoint` does."""
        known = self._load()
        made = {key: known[key] for key in names if key in known}
        new = {key: each for key, each in names.items() if key not in known}
        wishes = Counter(name for each in new.values() for name in set(each))
        for key, each in new.items():
            own = [name for name in each if wishes[name] == 1]
            made[key] = next(name for name in _candidates(own or each) if name not in made.values())
        if self._file is not None and made != known:
            self._file.save(made)
        self._known = made
        return made

    def _load(self) -> Mapping[str, str]:
        stored = self._file.load() if self._file is not None else None
        return self._known if stored is None else stored


def slug(*parts: str) -> str:
    """Return a name of lower-case letters, digits and dashes, at most 63 characters."""
    text = re.sub("[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")
    if len(text) <= _LONGEST:
        return text
    digest = sha256(text.encode()).hexdigest()[:_HASH]
    return f"{text[: _LONGEST - _HASH - 1].rstrip('-')}-{digest}"


def _candidates(names: Sequence[str]) -> Iterator[str]:
    yield from names
    for number in count(2):
        yield slug(names[-1], str(number))
