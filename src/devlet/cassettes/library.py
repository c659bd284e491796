"""The cassettes that are included in devlet, by name. They were written by hand from public lists of attributes."""

from importlib import resources
from pathlib import Path
from typing import Final

from devlet.cassettes.cassette import Cassette
from devlet.cassettes.cassette_file import decode, read
from devlet.errors import InvalidInput, NotFound

__all__ = ["names", "opened", "shipped"]

_SUFFIX: Final = ".yaml"


def names() -> list[str]:
    found = resources.files(__package__).joinpath("library").iterdir()
    return sorted(each.name.removesuffix(_SUFFIX) for each in found if each.name.endswith(_SUFFIX))


def shipped(name: str) -> Cassette:
    """Return a shipped cassette. Raises NotFound if none has that name."""
    if name not in names():
        raise NotFound(f"devlet ships no cassette {name!r}, only {', '.join(names())}")
    return decode(resources.files(__package__).joinpath("library", name + _SUFFIX).read_bytes())


def opened(text: str) -> Cassette:
    """Read a file, or else return a shipped cassette if the text is not a path."""
    path = Path(text)
    if "/" not in text and not path.exists() and text in names():
        return shipped(text)
    if not path.exists() and "/" not in text:
        raise InvalidInput(f"{text}: no such file; devlet ships the cassettes {', '.join(names())}")
    return read(path)
