"""Acting as another user.

Each part of the other identity (name, uid, each group, each extra value) requires the permission `impersonate` of its
own. The request then runs as that user, with nothing left of the real one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from devlet.auth import service_accounts
from devlet.auth.rules import Attributes
from devlet.auth.users import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, User

__all__ = ["Impersonation"]

_GROUP_NAME = "authentication.k8s.io"


@dataclass(frozen=True, slots=True)
class Impersonation:
    """The identity that a request asks for."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def permissions(self) -> Iterator[Attributes]:
        """Yield what the real user must be allowed to do."""
        if account := service_accounts.split_username(self.name):
            yield Attributes("impersonate", resource="serviceaccounts", namespace=account[0], name=account[1])
        else:
            yield Attributes("impersonate", resource="users", name=self.name)
        for group in self.groups:
            yield Attributes("impersonate", resource="groups", name=group)
        for key, values in self.extra.items():
            for value in values:
                yield Attributes(
                    "impersonate", group=_GROUP_NAME, version="v1", resource="userextras", subresource=key, name=value
                )
        if self.uid:
            yield Attributes("impersonate", group=_GROUP_NAME, version="v1", resource="uids", name=self.uid)

    def user(self) -> User:
        """Return the user that the request runs as once every permission has been checked."""
        return User(self.name, self.uid, tuple(self._groups()), self.extra)

    def _groups(self) -> list[str]:
        """Return the groups asked for, or else those that such a user always has, with the group that says whether
        the user is authenticated."""
        groups = list(self.groups)
        account = service_accounts.split_username(self.name)
        if account and not groups:
            groups = list(service_accounts.groups(account[0]))
        mark = UNAUTHENTICATED if self.name == ANONYMOUS.name else AUTHENTICATED
        return groups if {mark, UNAUTHENTICATED} & set(groups) else [*groups, mark]
