"""The roots in tests/vectors/upgrade: unpack one, and say what of it a running devlet does not show any more.

`tools.make_upgrade_root` writes them.
"""

import json
import socket
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from devlet.node import host
from devlet.objects.documents import Document
from devlet.runtime.none import STATE_FILE
from devlet.testing.node_api import NodeApi
from tests.support.free_ports import free_ports

__all__ = ["ARCHIVES", "OldRoot", "changed", "unpack"]

ARCHIVES = sorted((Path(__file__).parents[1] / "vectors" / "upgrade").glob("*.tar.xz"))
# What the killed programs left behind. Archives have no sockets.
_SOCKETS = (
    "devlet.sock",
    "device-plugins/kubelet.sock",
    "device-plugins/vendor_com_gpu.sock",
    "plugins/gpu.example.com/dra.sock",
    "plugins/nic.example.com/dra.sock",
    "plugins_registry/gpu.example.com-reg.sock",
    "plugins_registry/nic.example.com-reg.sock",
    "pod-resources/kubelet.sock",
)
# Kinds whose objects the node and the control loops write without being asked. The versions of all others stay.
_WRITTEN = ("nodes", "pods", "resourceclaims", "resourceslices", "events")
_NODE_LEASES = "/namespaces/kube-node-lease/"


@dataclass(frozen=True)
class OldRoot:
    """`kept` is `kept.json` of the archive, with the root's own port in it."""

    path: Path
    port: int
    kept: Document

    @property
    def newest(self) -> int:
        """The newest version that a client has seen."""
        return max(int(each["object"]["metadata"]["resourceVersion"]) for each in self.kept["objects"])


def unpack(archive: Path, root: Path, *, same_boot: bool = True) -> OldRoot:
    """As if the old devlet had been killed a moment ago on this machine. Without `same_boot`: before the machine was
    started again.

    The port of the archive may be in use here, and several tests run at once, so the kubeconfigs get another one."""
    with tarfile.open(archive) as packed:
        for entry in packed:
            entry.name = entry.name.removeprefix("root/")
            packed.extract(entry, root, filter="data")
    for name in _SOCKETS:
        _leave_socket(root / name)
    (port,) = free_ports(1)
    text = (root / "kept.json").read_text()
    (root / "kept.json").unlink()
    old, new = urlsplit(json.loads(text)["server"]).netloc, f"127.0.0.1:{port}"
    for path in (root / "kubeconfig", *(root / "drivers").iterdir()):
        path.write_text(path.read_text().replace(old, new))
    if same_boot:
        state = json.loads((root / STATE_FILE).read_text())
        (root / STATE_FILE).write_text(json.dumps(state | {"bootID": host.read(root).boot_id}))
    return OldRoot(root, port, json.loads(text.replace(old, new)))


def _leave_socket(path: Path) -> None:
    path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))


async def changed(api: NodeApi, kept: Iterable[Document]) -> list[str]:
    """Return a line for each object that is gone, went back, or is not what it was. Events may have expired."""
    found: list[str] = []
    for each in kept:
        path, old = each["path"], each["object"]
        code, text = await api.read(path)
        if code == 404 and "/events/" in path:
            continue
        if code != 200:
            found.append(f"{path}: {code} {text[:200]}")
        else:
            found += [f"{path}: {problem}" for problem in _differences(path, old, json.loads(text))]
    return found


def _differences(path: str, old: Document, new: Document) -> Iterator[str]:
    before, after = old["metadata"], new["metadata"]
    for name in ("uid", "creationTimestamp", "deletionTimestamp", "finalizers", "ownerReferences"):
        if before.get(name) != after.get(name):
            yield f"{name} was {before.get(name)} and is {after.get(name)}"
    versions = int(before["resourceVersion"]), int(after["resourceVersion"])
    if versions[1] < versions[0]:
        yield f"resourceVersion went back from {versions[0]} to {versions[1]}"
    elif versions[0] == versions[1]:
        if {**old, "kind": "", "apiVersion": ""} != {**new, "kind": "", "apiVersion": ""}:  # lists leave these out
            yield f"the same version was {old} and is {new}"
    elif _stays(path):
        yield f"resourceVersion was {versions[0]} and is {versions[1]}"
    elif "/nodes/" not in path and _NODE_LEASES not in path and _content(old) != _content(new):
        yield f"it was {_content(old)} and is {_content(new)}"


def _stays(path: str) -> bool:
    return not any(f"/{kind}/" in path for kind in _WRITTEN) and _NODE_LEASES not in path


def _content(document: Document) -> Document:
    return {key: value for key, value in document.items() if key not in ("kind", "apiVersion", "metadata", "status")}
