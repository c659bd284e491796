"""The cluster to which the node on a root belongs: the embedded one, or another. It never changes.

The state in a root, such as who holds which device, refers to pods of one cluster. In another cluster these pods do not
exist, so all their devices would be released.
"""

import logging
from pathlib import Path

from devlet.daemon.root import DATABASE
from devlet.errors import InvalidInput
from devlet.kit import atomic_file
from devlet.kit.facts import facts

__all__ = ["FILE", "embed", "join", "server_of"]

log = logging.getLogger(__name__)

FILE = "joined"  # in the root of a node that has joined another cluster: that cluster's address


def embed(root: Path) -> None:
    """Raise InvalidInput if the node on the root belongs to another cluster."""
    if (root / FILE).exists():
        raise InvalidInput(
            f"the node on root {root} belongs to the cluster at {server_of(root)}, not to an embedded one;"
            " start it with --kubeconfig, or choose another --root"
        )


def join(root: Path, server: str) -> None:
    """Record that the node on the root belongs to the cluster at that address.

    Raises InvalidInput if the root has an embedded cluster."""
    if (root / DATABASE).exists():
        raise InvalidInput(
            f"root {root} has an embedded cluster, so its node cannot join {server};"
            " start it without --kubeconfig, or choose another --root"
        )
    before = server_of(root)
    if before == server:
        return
    if before:
        log.warning("cluster has another address", extra=facts(server=server, before=before))
    atomic_file.write(root / FILE, f"{server}\n".encode())


def server_of(root: Path) -> str:
    """Return the address of the cluster that the node has joined; empty if it has joined none."""
    path = root / FILE
    return path.read_text(errors="replace").strip() if path.exists() else ""
