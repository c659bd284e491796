"""The server that a command uses: from `--kubeconfig`, `--root` or DEVLET_ROOT, or else the default root's socket.

KUBECONFIG is used only with `--context` and by `kubectl devlet`, so that `devlet delete` never reaches a cluster by
accident.
"""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from devlet.cli.node_socket import NodeSocket
from devlet.cli.session import Server, Session
from devlet.daemon.root import default_root
from devlet.errors import DevletError, InvalidInput

_NODE_NAME = re.compile(r'^kubelet_node_name\{node="([^"\\]+)"\} 1$', re.MULTILINE)  # a metric of kubelets


class Target(NamedTuple):
    """The flags that name a server. `of_kubectl` means that the command was started as `kubectl devlet`."""

    kubeconfig: Path | None = None
    context: str = ""
    root: Path | None = None
    of_kubectl: bool = False


def connect(target: Target) -> Session:
    """Return a session, which connects at the first request and prints the server's warnings to standard error."""
    return Session(server(target), warn=_warn)


def _warn(text: str) -> None:
    sys.stderr.write(f"Warning: {text}\n")


def server(target: Target, environ: Mapping[str, str] = os.environ) -> Server:
    if target.root is not None and (target.kubeconfig or target.context):
        raise InvalidInput(
            "--root names a devlet on this machine and cannot be combined with --kubeconfig or --context"
        )
    if target.kubeconfig or target.context or (target.of_kubectl and target.root is None):
        return _configured(target, environ)
    return node(target.root, environ)


def node(root: Path | None, environ: Mapping[str, str] = os.environ) -> NodeSocket:
    """Return the devlet on this machine, on the given root, or else on DEVLET_ROOT or the default root."""
    given = root or (Path(environ["DEVLET_ROOT"]) if environ.get("DEVLET_ROOT") else None)
    found = (given or default_root(environ)).absolute()
    return NodeSocket(found, f"devlet up --root {found}" if root else "devlet up")  # it reads DEVLET_ROOT as well


def _configured(target: Target, environ: Mapping[str, str]) -> Server:
    from devlet.cli.remote_server import RemoteServer
    from devlet.cluster.remote import kubeconfig

    files = [target.kubeconfig] if target.kubeconfig else kubeconfig.paths(environ)
    return RemoteServer(kubeconfig.connection(files, target.context))


def own_node(session: Session) -> str:
    """Return the node of the devlet; empty if the server is not a devlet or does not report its node."""
    if not session.is_node:
        return ""
    try:
        found = _NODE_NAME.search(session.text("/metrics"))
    except DevletError:
        return ""
    return found[1] if found else ""


def checked_node(session: Session, wanted: str, hint: str) -> str:
    """Return the wanted node, or else the devlet's own. Raises InvalidInput, with the hint, if they differ."""
    own = own_node(session)
    if own and wanted and wanted != own:
        raise InvalidInput(f"{session.address} belongs to node {own}, not {wanted}: {hint}")
    return wanted or own
