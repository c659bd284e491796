"""The cassettes that are shipped, by name. They were made by hand from public lists of attributes."""

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
    """NotFound if there is none of that name."""
    if name not in names():
        raise NotFound(f"there is no cassette {name!r} among those that are shipped: {', '.join(names())}")
    return decode(resources.files(__package__).joinpath("library", name + _SUFFIX).read_bytes())


def opened(text: str) -> Cassette:
    """A file; or, if there is none and it is no path, one that is shipped."""
    path = Path(text)
    if "/" not in text and not path.exists() and text in names():
        return shipped(text)
    if not path.exists() and "/" not in text:
        raise InvalidInput(f"{text}: there is no such file, nor a cassette of that name: {', '.join(names())}")
    return read(path)
