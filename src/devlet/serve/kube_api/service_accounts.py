"""Service accounts as users: what they are called, their groups, and what their tokens say about where they run.

A driver of this host has the account `kube-system/devlet-driver-NAME`; the driver it stands for is in its name.
"""

from devlet.serve.kube_api.requests import AUTHENTICATED, User

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
    """Namespace and name, if the user is a service account."""
    if not user.startswith(_PREFIX):
        return None
    namespace, _, name = user.removeprefix(_PREFIX).partition(":")
    return (namespace, name) if namespace and name and ":" not in name else None


def node_of(user: User) -> str | None:
    """The node that the user's token is for, if it is for exactly one."""
    names = user.extra.get(NODE_NAME, ())
    return names[0] if len(names) == 1 and names[0] else None


def driver_account(driver: str) -> str:
    """The name of a driver's service account, in `DRIVER_NAMESPACE`. Driver names do not differ by case."""
    return _DRIVER_PREFIX + driver.lower()


def driver_of(user: User) -> str | None:
    """The driver that the user's account was made for, in lower case."""
    namespace, name = split_username(user.name) or ("", "")
    if namespace != DRIVER_NAMESPACE or not name.startswith(_DRIVER_PREFIX):
        return None
    return name.removeprefix(_DRIVER_PREFIX) or None
