"""What must not get onto a cassette, because people pass it on: what looks like credentials, and UIDs of claims."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar

from devlet.testing.cassettes.placeholders import CLAIM, changed

__all__ = ["REDACTED", "is_secret", "redacted", "redacted_env", "without_claims"]

REDACTED: Final = "redacted"

_WORDS = re.compile(
    r"(?i)(?:^|[^a-z])(?:token|secret|password|passwd|passphrase|credentials?|api_?key|private_?key|access_?key)(?:$|[^a-z])"
)
_VALUES = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*"  # a JSON web token
    r"|\b(?:Bearer|Basic) [A-Za-z0-9+/=._-]{16,}"
    r"|\b[a-z][a-z0-9+.-]*://[^/\s:@]+:[^/\s@]+@"  # a URL with a password
)

T = TypeVar("T")


def is_secret(name: str, value: str) -> bool:
    return bool(_WORDS.search(name) or _VALUES.search(value))


def redacted(env: Mapping[str, str]) -> dict[str, str]:
    return {name: REDACTED if is_secret(name, value) else value for name, value in env.items()}


def redacted_env(env: Iterable[str]) -> Iterator[str]:
    """The same for `NAME=VALUE`."""
    for each in env:
        name, _, value = each.partition("=")
        yield f"{name}={REDACTED}" if is_secret(name, value) else each


def without_claims(value: T, uids: Iterable[str]) -> T:
    """With a placeholder for each of these UIDs, wherever they stand."""
    known = [re.escape(uid) for uid in uids if len(uid) >= 8]
    if not known:
        return value
    pattern = re.compile("|".join(known))
    return changed(value, lambda text: pattern.sub(CLAIM, text))
