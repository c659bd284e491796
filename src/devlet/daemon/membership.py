"""Which cluster a root is a node of: the embedded one that it holds, or another. It stays that one's.

What is written down in a root, such as who holds which device, is about pods of one cluster. In another these pods do
not exist: everything they have would be taken for left over.
"""

import logging
from pathlib import Path

from devlet.daemon.root import DATABASE
from devlet.errors import InvalidInput
from devlet.kit import atomic_file
from devlet.kit.facts import facts

__all__ = ["FILE", "embed", "join", "server_of"]

log = logging.getLogger(__name__)

FILE = "joined"  # in the root of a node that is one of another cluster: where that was when it joined


def embed(root: Path) -> None:
    """InvalidInput for the root of another cluster's node."""
    if (root / FILE).exists():
        raise InvalidInput(
            f"root {root} is of a node of {server_of(root)}, not of an embedded cluster;"
            " start it with --kubeconfig, or choose another --root"
        )


def join(root: Path, server: str) -> None:
    """Write down that the root is of a node of the cluster at that address. InvalidInput if it has its own."""
    if (root / DATABASE).exists():
        raise InvalidInput(
            f"root {root} holds an embedded cluster, so it cannot be of a node of {server};"
            " start it without --kubeconfig, or choose another --root"
        )
    before = server_of(root)
    if before == server:
        return
    if before:
        log.warning("cluster has another address", extra=facts(server=server, before=before))
    atomic_file.write(root / FILE, f"{server}\n".encode())


def server_of(root: Path) -> str:
    """The address of the cluster that the root's node has joined; empty if it has joined none."""
    path = root / FILE
    return path.read_text(errors="replace").strip() if path.exists() else ""
