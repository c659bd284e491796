"""The row of a node."""

from collections.abc import Iterator
from datetime import datetime

from devlet.objects.documents import Document
from devlet.objects.subdocuments import at, mappings, name, text
from devlet.objects.table_cells import AGE, NAME, UNKNOWN, Cell, Column, Printer, age, none_if_empty, wide

__all__ = ["NODES"]

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE = "kubernetes.io/role"


def _cells(node: Document, now: datetime) -> list[Cell]:
    return [
        name(node),
        _status(node),
        none_if_empty(",".join(sorted(set(_roles(node))))),
        age(node, now),
        _info(node, "kubeletVersion"),
        none_if_empty(_address(node, "InternalIP")),
        none_if_empty(_address(node, "ExternalIP")),
        _info(node, "osImage") or UNKNOWN,
        _kernel(node),
        _info(node, "containerRuntimeVersion") or UNKNOWN,
    ]


def _status(node: Document) -> str:
    """Return the status of a node. A node whose Ready condition is Unknown is NotReady."""
    ready = [c.get("status") == "True" for c in mappings(node, "status", "conditions") if c.get("type") == "Ready"]
    words = ["Ready" if is_ready else "NotReady" for is_ready in ready[-1:]] or ["Unknown"]
    if at(node, "spec", "unschedulable") is True:
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(node: Document) -> Iterator[str]:
    labels = at(node, "metadata", "labels")
    for key, value in labels.items() if isinstance(labels, dict) else ():
        if role := key.removeprefix(_ROLE_PREFIX) if key.startswith(_ROLE_PREFIX) else "":
            yield role
        elif key == _ROLE and value:
            yield str(value)


def _kernel(node: Document) -> str:
    version, architecture = _info(node, "kernelVersion") or UNKNOWN, _info(node, "architecture")
    return f"{version} ({architecture})" if architecture else version


def _address(node: Document, type_: str) -> str:
    addresses = mappings(node, "status", "addresses")
    return next((text(address, "address") for address in addresses if address.get("type") == type_), "")


def _info(node: Document, key: str) -> str:
    return text(node, "status", "nodeInfo", key)


NODES = Printer(
    (
        NAME,
        Column("Status", description="Whether the node is ready, and whether pods may be scheduled to it."),
        Column("Roles", description="The roles in the node's labels."),
        AGE,
        Column("Version", description="The version of the node's agent."),
        wide("Internal-IP"),
        wide("External-IP"),
        wide("OS-Image"),
        wide("Kernel-Version"),
        wide("Container-Runtime"),
    ),
    _cells,
)
