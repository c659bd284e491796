"""Which server a command talks to: `--kubeconfig`, `--root`, DEVLET_ROOT, or the default root's socket.

KUBECONFIG counts only with `--context` and as `kubectl devlet`: `devlet delete` never meets a cluster by accident.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from devlet.cli.node_socket import NodeSocket
from devlet.cli.session import Server, Session
from devlet.daemon.root import default_root
from devlet.errors import InvalidInput


class Target(NamedTuple):
    """What the command line says. `of_kubectl`: the command was started as `kubectl devlet`."""

    kubeconfig: Path | None = None
    context: str = ""
    root: Path | None = None
    of_kubectl: bool = False


def connect(target: Target) -> Session:
    """Nothing is sent before the first request. Warnings of the server go to standard error."""
    return Session(server(target), warn=_warn)


def _warn(text: str) -> None:
    sys.stderr.write(f"Warning: {text}\n")


def server(target: Target, environ: Mapping[str, str] = os.environ) -> Server:
    if target.root is not None and (target.kubeconfig or target.context):
        raise InvalidInput("--root is a node on this machine: it excludes --kubeconfig and --context")
    if target.kubeconfig or target.context or (target.of_kubectl and target.root is None):
        return _configured(target, environ)
    return node(target.root, environ)


def node(root: Path | None, environ: Mapping[str, str] = os.environ) -> NodeSocket:
    """The devlet on this machine: on the root that the command line gives, on DEVLET_ROOT, or on the default one."""
    given = root or (Path(environ["DEVLET_ROOT"]) if environ.get("DEVLET_ROOT") else None)
    found = (given or default_root(environ)).absolute()
    return NodeSocket(found, f"devlet up --root {found}" if root else "devlet up")  # which finds DEVLET_ROOT too


def _configured(target: Target, environ: Mapping[str, str]) -> Server:
    from devlet.cli.remote_server import RemoteServer
    from devlet.cluster.remote import kubeconfig

    files = [target.kubeconfig] if target.kubeconfig else kubeconfig.paths(environ)
    return RemoteServer(kubeconfig.connection(files, target.context))
