"""Semantic versions (semver.org 2.0.0), as device attributes contain them.

Versions are equal and ordered by precedence, which ignores build metadata: `1.0.0+a` equals `1.0.0+b`, though they
print differently. Error texts are those that users know from CEL selectors on a real cluster.
"""

import re
from functools import lru_cache
from typing import Final

import msgspec

from devlet.errors import InvalidInput

MAX_TEXT: Final = 1024
_MAX_NUMBER = 2**64 - 1

_digits = re.compile(r"[0-9]*").fullmatch
_identifier = re.compile(r"[0-9A-Za-z-]+").fullmatch

# Numbers sort before words, and a version before a longer one that starts with the same identifiers.
_Identifier = tuple[int, int, str]
_Precedence = tuple[int, int, int, bool, tuple[_Identifier, ...]]


class Semver(msgspec.Struct, frozen=True, eq=False):
    """An immutable version. `parse` and `parse_normalized` create it."""

    precedence: _Precedence
    prerelease: tuple[str, ...] = ()
    build: tuple[str, ...] = ()

    @property
    def major(self) -> int:
        return self.precedence[0]

    @property
    def minor(self) -> int:
        return self.precedence[1]

    @property
    def patch(self) -> int:
        return self.precedence[2]

    def compare(self, other: "Semver") -> int:
        """Return -1, 0 or 1."""
        return (self.precedence > other.precedence) - (self.precedence < other.precedence)

    def __eq__(self, other: object) -> bool:
        return self.precedence == other.precedence if isinstance(other, Semver) else NotImplemented

    def __lt__(self, other: "Semver") -> bool:
        return self.precedence < other.precedence

    def __le__(self, other: "Semver") -> bool:
        return self.precedence <= other.precedence

    def __gt__(self, other: "Semver") -> bool:
        return self.precedence > other.precedence

    def __ge__(self, other: "Semver") -> bool:
        return self.precedence >= other.precedence

    def __hash__(self) -> int:
        return hash(self.precedence)

    def __str__(self) -> str:
        prerelease = f"-{'.'.join(self.prerelease)}" if self.prerelease else ""
        build = f"+{'.'.join(self.build)}" if self.build else ""
        return f"{self.major}.{self.minor}.{self.patch}{prerelease}{build}"

    def __repr__(self) -> str:
        return f"Semver({str(self)!r})"


def parse(text: str) -> Semver:
    """Parse strictly: three numbers without leading zeros, no `v`."""
    _check_length(text)
    return _parse(text)


def parse_normalized(text: str) -> Semver:
    """Parse leniently: a leading `v`, leading zeros and missing minor and patch numbers are valid."""
    _check_length(text)
    parts = [_without_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3 and re.search("[-+]", parts[-1]):
        raise InvalidInput("short version cannot contain PreRelease/Build meta data")
    return _parse(".".join(parts + ["0"] * (3 - len(parts))))


def is_semver(text: str, *, normalize: bool = False) -> bool:
    """Return whether `parse`, or `parse_normalized`, accepts the string."""
    read = parse_normalized if normalize else parse
    try:
        read(text)
    except InvalidInput:
        return False
    return True


def _check_length(text: str) -> None:
    if len(text) > MAX_TEXT:
        raise InvalidInput(f"version has {len(text)} characters, at most {MAX_TEXT} are allowed")


def _without_zeros(part: str) -> str:
    if len(part) < 2:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1] in tuple("123456789") else f"0{stripped}"


@lru_cache(8192)
def _parse(text: str) -> Semver:
    if not text:
        raise InvalidInput("Version string empty")
    parts = text.split(".", 2)
    if len(parts) < 3:
        raise InvalidInput("No Major.Minor.Patch elements found")
    major, minor = _number("Major", parts[0]), _number("Minor", parts[1])
    rest, plus, build = parts[2].partition("+")
    patch_text, dash, prerelease = rest.partition("-")
    patch = _number("Patch", patch_text)
    identifiers = tuple(prerelease.split(".")) if dash else ()
    key = tuple(map(_prerelease, identifiers))
    metadata = tuple(map(_build, build.split("."))) if plus else ()
    return Semver((major, minor, patch, not identifiers, key), identifiers, metadata)


def _number(what: str, text: str) -> int:
    if not _digits(text):
        raise InvalidInput(f"Invalid character(s) found in {what.lower()} number {_quoted(text)}")
    if len(text) > 1 and text[0] == "0":
        raise InvalidInput(f"{what} number must not contain leading zeroes {_quoted(text)}")
    return _uint64(text)


def _uint64(text: str) -> int:
    if not text:
        raise InvalidInput('strconv.ParseUint: parsing "": invalid syntax')
    if (value := int(text)) > _MAX_NUMBER:
        raise InvalidInput(f'strconv.ParseUint: parsing "{text}": value out of range')
    return value


def _prerelease(text: str) -> _Identifier:
    if not text:
        raise InvalidInput("Prerelease is empty")
    if _digits(text):
        if len(text) > 1 and text[0] == "0":
            raise InvalidInput(f"Numeric PreRelease version must not contain leading zeroes {_quoted(text)}")
        return (0, _uint64(text), "")
    if not _identifier(text):
        raise InvalidInput(f"Invalid character(s) found in prerelease {_quoted(text)}")
    return (1, 0, text)


def _build(text: str) -> str:
    if not text:
        raise InvalidInput("Build meta data is empty")
    if not _identifier(text):
        raise InvalidInput(f"Invalid character(s) found in build meta data {_quoted(text)}")
    return text


def _quoted(text: str) -> str:
    return msgspec.json.encode(text.encode(errors="replace").decode()).decode()
