"""Acting as somebody else: the Impersonate headers.

Every single thing that is claimed (name, uid, each group, each extra value) needs the permission `impersonate` of its
own; then the request runs as that user and nothing is left of the real one.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

from devlet.errors import BadRequest
from devlet.serve.kube_api import service_accounts
from devlet.serve.kube_api.requests import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, Attributes, User

__all__ = ["MAX_CLAIMS", "impersonate"]

MAX_CLAIMS = 256

_EXTRA = "impersonate-extra-"
_GROUP_NAME = "authentication.k8s.io"


@dataclass(slots=True)
class _Wanted:
    name: str = ""
    uid: str = ""
    groups: list[str] = field(default_factory=list)
    extra: dict[str, list[str]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return len(self.groups) + sum(map(len, self.extra.values()))


def impersonate(headers: Iterable[tuple[str, str]], check: Callable[[Attributes], None]) -> User | None:
    """Whom the headers ask to be, or None if they do not ask. `check` raises for what the real user may not."""
    wanted = _read(headers)
    if wanted is None:
        return None
    for attributes in _permissions(wanted):
        check(attributes)
    return User(
        wanted.name,
        wanted.uid,
        tuple(_groups(wanted)),
        {key: tuple(values) for key, values in wanted.extra.items()},
    )


def _read(headers: Iterable[tuple[str, str]]) -> _Wanted | None:
    wanted = _Wanted()
    for name, value in headers:
        if not (key := name.lower()).startswith("impersonate-"):
            continue
        _check_text(name, value)
        match key:
            case "impersonate-user":
                wanted.name = wanted.name or value
            case "impersonate-uid":
                wanted.uid = wanted.uid or value
            case "impersonate-group":
                wanted.groups.append(value)
            case key if key.startswith(_EXTRA):
                wanted.extra.setdefault(_extra_key(key.removeprefix(_EXTRA)), []).append(value)
    if wanted.size > MAX_CLAIMS:
        raise BadRequest(f"requested {wanted.size} groups and extra values: at most {MAX_CLAIMS} are accepted")
    if wanted.name:
        return wanted
    if claims := _shown(wanted):
        raise BadRequest(f"requested {claims} without impersonating a user name")
    return None


def _check_text(name: str, value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadRequest(f"header {name} is not UTF-8 text") from None


def _extra_key(encoded: str) -> str:
    """Header names cannot hold every key, so keys come percent-encoded; what is no such encoding is taken as it is."""
    if any(not _is_hex(part[:2]) for part in encoded.split("%")[1:]):
        return encoded
    return unquote_to_bytes(encoded).decode(errors="replace")


def _is_hex(text: str) -> bool:
    return len(text) == 2 and all(c in "0123456789abcdef" for c in text)


def _shown(wanted: _Wanted) -> str:
    claims = {"uid": wanted.uid, "groups": wanted.groups, "extra": wanted.extra}
    return ", ".join(f"{key} {value}" for key, value in claims.items() if value)


def _permissions(wanted: _Wanted) -> Iterable[Attributes]:
    account = service_accounts.split_username(wanted.name)
    if account:
        yield Attributes("impersonate", resource="serviceaccounts", namespace=account[0], name=account[1])
    else:
        yield Attributes("impersonate", resource="users", name=wanted.name)
    for group in wanted.groups:
        yield Attributes("impersonate", resource="groups", name=group)
    for key, values in wanted.extra.items():
        for value in values:
            yield Attributes(
                "impersonate", group=_GROUP_NAME, version="v1", resource="userextras", subresource=key, name=value
            )
    if wanted.uid:
        yield Attributes("impersonate", group=_GROUP_NAME, version="v1", resource="uids", name=wanted.uid)


def _groups(wanted: _Wanted) -> list[str]:
    """Those asked for, else those such a user always has; and whether the user is known at all."""
    groups = list(wanted.groups)
    account = service_accounts.split_username(wanted.name)
    if account and not groups:
        groups = list(service_accounts.groups(account[0]))
    mark = UNAUTHENTICATED if wanted.name == ANONYMOUS.name else AUTHENTICATED
    return groups if {mark, UNAUTHENTICATED} & set(groups) else [*groups, mark]
