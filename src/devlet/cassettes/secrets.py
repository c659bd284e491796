"""What a cassette must not contain, because people share it: anything like credentials, and UIDs of claims."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar

from devlet.cassettes.placeholders import CLAIM, changed

__all__ = ["REDACTED", "is_secret", "redacted", "redacted_args", "redacted_env", "without_claims"]

REDACTED: Final = "redacted"

_WORDS = re.compile(
    r"(?i)token(?!iz)|secret|password|passwd|passphrase|credential|(?:api|access|private)_?key"
    r"|(?:^|[^a-z])(?:keys?|pass)(?:$|[^a-z])"
)
_CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")  # where a word begins in sshKey
_VALUES = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*"  # a JSON web token
    r"|\b(?:Bearer|Basic) [A-Za-z0-9+/=._-]{16,}"
    r"|\b[a-z][a-z0-9+.-]*://[^/\s:@]+:[^/\s@]+@"  # a URL with a password
)

T = TypeVar("T")


def is_secret(name: str, value: str) -> bool:
    return bool(_names_secret(name) or _VALUES.search(value))


def _names_secret(name: str) -> bool:
    return any(_WORDS.search(each) for each in (name, _CAMEL_CASE.sub("_", name)))


def redacted(env: Mapping[str, str]) -> dict[str, str]:
    return {name: REDACTED if is_secret(name, value) else value for name, value in env.items()}


def redacted_env(env: Iterable[str]) -> Iterator[str]:
    """Redact the secrets in `NAME=VALUE` strings."""
    for each in env:
        name, equals, value = each.partition("=")
        if equals and is_secret(name, value):
            yield f"{name}={REDACTED}"
        else:
            yield REDACTED if is_secret("", each) else each


def redacted_args(args: Iterable[str]) -> Iterator[str]:
    """Redact the secrets in arguments: in `--name=VALUE`, and in a VALUE that follows a `--name`."""
    option = ""
    for each in redacted_env(args):
        is_option = each.startswith("-")
        yield REDACTED if not is_option and is_secret(option, "") else each
        option = each if is_option and "=" not in each else ""


def without_claims(value: T, uids: Iterable[str]) -> T:
    """Replace these UIDs by a placeholder, wherever they occur."""
    known = [re.escape(uid) for uid in uids if len(uid) >= 8]
    if not known:
        return value
    pattern = re.compile("|".join(known))
    return changed(value, lambda text: pattern.sub(CLAIM, text))
