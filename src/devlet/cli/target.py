"""Which server a command talks to: `--kubeconfig`, `--root`, DEVLET_ROOT, or the default root's socket.

KUBECONFIG counts only with `--context` and as `kubectl devlet`, so that `devlet delete` never meets a cluster by accident.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from devlet.cli.session import Session
from devlet.cluster.remote.connection import Connection, at_socket
from devlet.daemon.root import default_root
from devlet.errors import InvalidInput

SOCKET = "devlet.sock"


@dataclass(frozen=True, slots=True)
class Target:
    """What the command line says. `of_kubectl`: the command was started as `kubectl devlet`."""

    kubeconfig: Path | None = None
    context: str = ""
    root: Path | None = None
    of_kubectl: bool = False


def connect(target: Target, environ: Mapping[str, str] = os.environ, *, warn: Callable[[str], None]) -> Session:
    """Nothing is sent before the first request."""
    if target.root is not None and (target.kubeconfig or target.context):
        raise InvalidInput("--root is a node on this machine: it excludes --kubeconfig and --context")
    if target.kubeconfig or target.context or (target.of_kubectl and target.root is None):
        return Session(_configured(target, environ), warn=warn)
    given = target.root or (Path(environ["DEVLET_ROOT"]) if environ.get("DEVLET_ROOT") else None)
    root = (given or default_root(environ)).absolute()
    start = f"devlet up --root {root}" if target.root else "devlet up"  # which finds DEVLET_ROOT as we do
    return Session(at_socket(root / SOCKET), warn=warn, start=start)


def _configured(target: Target, environ: Mapping[str, str]) -> Connection:
    from devlet.cluster.remote import kubeconfig

    files = [target.kubeconfig] if target.kubeconfig else kubeconfig.paths(environ)
    return kubeconfig.connection(files, target.context)
