"""Users and the groups that mean something: administrators, nodes, and everyone who has, or has not, authenticated."""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = [
    "ADMINISTRATOR",
    "ANONYMOUS",
    "AUTHENTICATED",
    "MASTERS",
    "NODES_GROUP",
    "NODE_PREFIX",
    "UNAUTHENTICATED",
    "User",
    "node_name",
]

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"
NODES_GROUP = "system:nodes"
NODE_PREFIX = "system:node:"


@dataclass(frozen=True, slots=True)
class User:
    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


ANONYMOUS = User("system:anonymous", groups=(UNAUTHENTICATED,))
ADMINISTRATOR = User("admin", groups=(MASTERS, AUTHENTICATED))


def node_name(user: User) -> str | None:
    """Return the name of the node that the user is, or None for other users."""
    if not user.name.startswith(NODE_PREFIX) or NODES_GROUP not in user.groups:
        return None
    return user.name.removeprefix(NODE_PREFIX) or None
