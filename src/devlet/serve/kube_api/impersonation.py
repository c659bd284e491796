"""The Impersonate headers, by which a client asks to act as another user."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

from devlet.auth.impersonation import Impersonation
from devlet.errors import BadRequest

__all__ = ["MAX_CLAIMS", "impersonation"]

MAX_CLAIMS = 256

_EXTRA = "impersonate-extra-"


@dataclass(slots=True)
class _Headers:
    name: str = ""
    uid: str = ""
    groups: list[str] = field(default_factory=list)
    extra: dict[str, list[str]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return len(self.groups) + sum(map(len, self.extra.values()))

    def shown(self) -> str:
        claims = {"uid": self.uid, "groups": self.groups, "extra": self.extra}
        return ", ".join(f"{key} {value}" for key, value in claims.items() if value)


def impersonation(headers: Iterable[tuple[str, str]]) -> Impersonation | None:
    """Return the identity that the headers ask for, or None if they do not ask for one."""
    found = _Headers()
    for name, value in headers:
        if not (key := name.lower()).startswith("impersonate-"):
            continue
        _check_text(name, value)
        match key:
            case "impersonate-user":
                found.name = found.name or value
            case "impersonate-uid":
                found.uid = found.uid or value
            case "impersonate-group":
                found.groups.append(value)
            case key if key.startswith(_EXTRA):
                found.extra.setdefault(_extra_key(key.removeprefix(_EXTRA)), []).append(value)
    if found.size > MAX_CLAIMS:
        raise BadRequest(f"requested {found.size} groups and extra values: at most {MAX_CLAIMS} are accepted")
    if found.name:
        extra = {key: tuple(values) for key, values in found.extra.items()}
        return Impersonation(found.name, found.uid, tuple(found.groups), extra)
    if claims := found.shown():
        raise BadRequest(f"requested {claims} without impersonating a user name")
    return None


def _check_text(name: str, value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadRequest(f"header {name} is not UTF-8 text") from None


def _extra_key(encoded: str) -> str:
    """Decode a key of `extra`. Header names cannot contain every key, so keys arrive percent-encoded; a key that is not
    correctly encoded is taken as it is."""
    if any(not _is_hex(part[:2]) for part in encoded.split("%")[1:]):
        return encoded
    return unquote_to_bytes(encoded).decode(errors="replace")


def _is_hex(text: str) -> bool:
    return len(text) == 2 and all(c in "0123456789abcdef" for c in text)
