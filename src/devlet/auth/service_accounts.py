"""Service accounts as users: their names and groups, and the node and driver that a user's token belongs to.

A driver of this host has the account `kube-system/devlet-driver-NAME`, so the account's name says which driver it is.
"""

from devlet.auth.users import AUTHENTICATED, User

__all__ = [
    "CREDENTIAL_ID",
    "DRIVER_NAMESPACE",
    "GROUP",
    "NODE_NAME",
    "NODE_UID",
    "POD_NAME",
    "POD_UID",
    "driver_account",
    "driver_of",
    "groups",
    "node_driver",
    "node_of",
    "split_username",
    "username",
]

GROUP = "system:serviceaccounts"
DRIVER_NAMESPACE = "kube-system"

# Keys of a user's `extra`.
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
NODE_NAME = "authentication.kubernetes.io/node-name"
NODE_UID = "authentication.kubernetes.io/node-uid"
POD_NAME = "authentication.kubernetes.io/pod-name"
POD_UID = "authentication.kubernetes.io/pod-uid"

_PREFIX = "system:serviceaccount:"
_DRIVER_PREFIX = "devlet-driver-"


def username(namespace: str, name: str) -> str:
    return f"{_PREFIX}{namespace}:{name}"


def groups(namespace: str) -> tuple[str, ...]:
    return (GROUP, f"{GROUP}:{namespace}", AUTHENTICATED)


def split_username(user: str) -> tuple[str, str] | None:
    """Return the namespace and name of a service account, or None for other users."""
    if not user.startswith(_PREFIX):
        return None
    namespace, _, name = user.removeprefix(_PREFIX).partition(":")
    return (namespace, name) if namespace and name and ":" not in name else None


def node_of(user: User) -> str | None:
    """Return the node that the user's token is for, or None if it is not for exactly one node."""
    names = user.extra.get(NODE_NAME, ())
    return names[0] if len(names) == 1 and names[0] else None


def driver_account(driver: str) -> str:
    """Return the name of a driver's service account in `DRIVER_NAMESPACE`. Driver names do not differ by case."""
    return _DRIVER_PREFIX + driver.lower()


def driver_of(user: User) -> str | None:
    """Return the driver, in lower case, that the user's account was created for; None for other users."""
    namespace, name = split_username(user.name) or ("", "")
    if namespace != DRIVER_NAMESPACE or not name.startswith(_DRIVER_PREFIX):
        return None
    return name.removeprefix(_DRIVER_PREFIX) or None


def node_driver(user: User) -> str | None:
    """Return the driver, in lower case, if the user is a driver on a particular node; None for other users."""
    return driver_of(user) if node_of(user) else None
