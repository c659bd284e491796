"""The rows of the node's views: devices, plugins and holders."""

from datetime import datetime

from devlet.objects.documents import Document
from devlet.serve.kube_api.table_cells import (
    NAME,
    NONE,
    Cell,
    Column,
    Printer,
    at,
    documents_at,
    name,
    none_if_empty,
    number,
    since,
    text,
    texts,
    wide,
)

__all__ = ["DEVICES", "HOLDERS", "PLUGINS"]

SHOWN = 8  # devices of a holder; there may be hundreds


def _devices(document: Document, now: datetime) -> list[Cell]:
    holder = at(document, "status", "holder")
    return [
        text(document, "spec", "resource"),
        text(document, "spec", "id"),
        text(document, "status", "health"),
        _nodes(document),
        text(document, "status", "state"),
        _holder(holder) if isinstance(holder, dict) else NONE,
        since(at(document, "status", "since"), now) if isinstance(holder, dict) else NONE,
    ]


def _nodes(document: Document) -> str:
    nodes = at(document, "spec", "numaNodes")
    return none_if_empty(",".join(map(str, nodes))) if isinstance(nodes, list) else NONE


def _holder(holder: Document) -> str:
    """A pod that is gone has only its UID."""
    pod = [text(holder, "namespace"), text(holder, "pod")] if text(holder, "pod") else [text(holder, "podUID")]
    return "/".join(filter(None, [*pod, text(holder, "container")]))


def _plugins(document: Document, now: datetime) -> list[Cell]:
    pid = at(document, "status", "pid")
    return [
        text(document, "spec", "resource"),
        none_if_empty(text(document, "spec", "socket")),
        none_if_empty(text(document, "spec", "api")),
        text(document, "status", "state"),
        *(number(document, "status", key) for key in ("healthy", "unhealthy", "held")),
        since(at(document, "status", "since"), now),
        str(pid) if isinstance(pid, int) else NONE,
        _options(document),
        none_if_empty(text(document, "status", "message")),
    ]


def _options(document: Document) -> str:
    wanted = {"PreStart": "preStartRequired", "PreferredAllocation": "getPreferredAllocationAvailable"}
    set_ = [shown for shown, key in wanted.items() if at(document, "spec", "options", key) is True]
    return none_if_empty(",".join(set_))


def _holders(document: Document, now: datetime) -> list[Cell]:
    containers = documents_at(document, "status", "containers")
    devices = [device for container in containers for device in documents_at(container, "devices")]
    ids = list(dict.fromkeys(id for device in devices for id in texts(device, "ids")))
    more = f" + {len(ids) - SHOWN} more..." if len(ids) > SHOWN else ""
    return [
        name(document),
        ",".join(sorted({text(device, "resource") for device in devices})),
        ",".join(ids[:SHOWN]) + more,
        ",".join(text(container, "name") for container in containers),
        since(at(document, "status", "since"), now),
    ]


DEVICES = Printer(
    (
        Column("Resource", description="The resource name under which containers ask for it."),
        Column("ID", format="name", description="What its plugin calls it."),
        Column("Health", description="What its plugin says; Unknown for a device that is held but no longer listed."),
        Column("NUMA", description="The NUMA nodes it is near to."),
        Column("State", description="Free, Reserved for a pod that is being admitted, Held, or Releasing."),
        Column("Holder", description="Namespace, pod and container that have it."),
        Column("Since", description="How long the holder has had it."),
    ),
    _devices,
)

PLUGINS = Printer(
    (
        Column("Resource", description="What it offers."),
        Column("Socket", description="Where it listens."),
        Column("API", description="The version of the device plugin API it speaks."),
        Column("State", description="Whether it is connected, and used."),
        Column("Healthy", "integer", description="How many of its devices are healthy."),
        Column("Unhealthy", "integer", description="How many are not."),
        Column("Held", "integer", description="How many devices of the resource are held by pods."),
        Column("Age", description="How long it has been in that state."),
        wide("PID", "The process that listens on the socket."),
        wide("Options", "Which of the optional calls it wants."),
        wide("Message", "What went wrong last."),
    ),
    _plugins,
)

HOLDERS = Printer(
    (
        NAME,
        Column("Resource", description="The resources of its devices."),
        Column("Devices", description="The devices, as their plugins call them."),
        Column("Container", description="The containers that have them."),
        Column("Since", description="How long it has had the first of them."),
    ),
    _holders,
)
