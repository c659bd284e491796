"""Read the connection to the API server that every pod has: two variables and three files."""

import os
from collections.abc import Mapping
from pathlib import Path

from devlet.cluster.remote.connection import Connection, Credentials
from devlet.errors import InvalidInput

FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOST, PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"


def in_cluster(environment: Mapping[str, str] = os.environ, folder: Path = FOLDER) -> Connection:
    host, port = environment.get(HOST, ""), environment.get(PORT, "")
    if not host or not port:
        raise InvalidInput(
            f"not in a pod, as {HOST} and {PORT} are not both set: give a kubeconfig (--kubeconfig, or KUBECONFIG)"
        )
    name = f"[{host}]" if ":" in host else host
    namespace = folder / "namespace"
    return Connection(
        f"https://{name}:{port}",
        ca=_read(folder / "ca.crt"),
        credentials=Credentials(token_file=folder / "token"),
        namespace=(_read(namespace).decode(errors="replace").strip() if namespace.exists() else "") or "default",
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as e:
        raise InvalidInput(f"{path}: {e.strerror or e}; the pod's service account token is not mounted") from e
