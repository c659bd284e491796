"""The rows of the node's views: devices, plugins, holders, DRA drivers and prepared claims."""

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
    duration,
    instant,
    name,
    none_if_empty,
    number,
    since,
    text,
    texts,
    wide,
)

__all__ = ["DEVICES", "DRIVERS", "HOLDERS", "PLUGINS", "PREPARED_CLAIMS"]

SHOWN = 8  # devices or pods; there may be hundreds


def _devices(document: Document, now: datetime) -> list[Cell]:
    holder = at(document, "status", "holder")
    claims = texts(document, "status", "claims")
    return [
        text(document, "spec", "resource") or "/".join(text(document, "spec", key) for key in ("driver", "pool")),
        text(document, "spec", "id"),
        none_if_empty(text(document, "status", "health")),
        _nodes(document),
        text(document, "status", "state"),
        _holder(holder) if isinstance(holder, dict) else _claimants(document) if claims else NONE,
        since(at(document, "status", "since"), now) if claims or isinstance(holder, dict) else NONE,
    ]


def _claimants(document: Document) -> str:
    """Return the claim that has the device, and the claims that wait for it."""
    holders, waiting = (",".join(texts(document, "status", key)) for key in ("claims", "waiting"))
    return f"claim {holders} (wanted by {waiting})"


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
    claims = [claim for container in containers for claim in documents_at(container, "claims")]
    resources = [text(d, "resource") for d in devices] + [
        f"claim:{text(c, 'name') or text(c, 'claim')}" for c in claims
    ]
    ids = [id for device in devices for id in texts(device, "ids")]
    return [
        name(document),
        ",".join(sorted(set(resources))),
        _some(ids + [_claimed(claim) for claim in claims]),
        ",".join(text(container, "name") for container in containers),
        since(at(document, "status", "since"), now),
    ]


def _claimed(claim: Document) -> str:
    """Empty if it has not been prepared yet."""
    return "/".join(text(claim, key) for key in ("driver", "pool", "device")) if text(claim, "device") else ""


def _drivers(document: Document, now: datetime) -> list[Cell]:
    return [
        name(document),
        text(document, "status", "state"),
        none_if_empty(text(document, "spec", "service")),
        *(_count(document, key) for key in ("slices", "devices", "claims", "pods")),
        _until(document, now),
        since(at(document, "status", "since"), now),
        none_if_empty(text(document, "spec", "endpoint")),
        none_if_empty(text(document, "spec", "healthService")),
        none_if_empty(text(document, "status", "message")),
    ]


def _count(document: Document, key: str) -> str:
    """Said once for all instances of a driver, and not at all if it could not be found out."""
    value = at(document, "status", key)
    return str(value) if isinstance(value, int) else NONE


def _until(document: Document, now: datetime) -> str:
    wipe = instant(at(document, "status", "wipeAt"))
    return f"in {duration(max(0.0, (wipe - now).total_seconds()))}" if wipe else NONE


def _prepared_claims(document: Document, now: datetime) -> list[Cell]:
    parts = documents_at(document, "status", "drivers")
    devices = [text(device, "device") for part in parts for device in documents_at(part, "devices")]
    pods = [text(pod, "name") or text(pod, "uid") for pod in documents_at(document, "status", "pods")]
    waiting = [text(pod, "pod") or text(pod, "uid") for pod in documents_at(document, "status", "waiting")]
    return [
        name(document),
        text(document, "status", "state"),
        none_if_empty(",".join(text(part, "driver") for part in parts)),
        none_if_empty(_some(devices)),
        none_if_empty(_some(pods)),
        none_if_empty(_some(waiting)),
        since(at(document, "status", "since"), now),
        none_if_empty(text(document, "spec", "uid")),
        none_if_empty(text(document, "status", "message")),
    ]


def _some(names: list[str]) -> str:
    unique = list(dict.fromkeys(filter(None, names)))
    return ",".join(unique[:SHOWN]) + (f" + {len(unique) - SHOWN} more..." if len(unique) > SHOWN else "")


DEVICES = Printer(
    (
        Column("Resource", description="The resource name under which containers ask for it, or DRA driver and pool."),
        Column("ID", format="name", description="What its plugin calls it."),
        Column("Health", description="What its plugin says; Unknown for a device that is held but no longer listed."),
        Column("NUMA", description="The NUMA nodes it is near to."),
        Column("State", description="Free, Reserved for a pod that is being admitted, Held, Releasing, or Contested."),
        Column("Holder", description="Namespace, pod and container that have it, or claims."),
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
        Column("Resource", description="The resources of its devices; claim:NAME for those of a claim."),
        Column("Devices", description="The devices, as their plugins call them; with driver and pool those of claims."),
        Column("Container", description="The containers that have them."),
        Column("Since", description="How long it has had the first of them."),
    ),
    _holders,
)

DRIVERS = Printer(
    (
        NAME,
        Column("State", description="Connected, Disconnected, Standby, or Missing if it is not registered."),
        Column("Service", description="The version of the API by which it is called."),
        Column("Slices", description="How many it publishes for this node."),
        Column("Devices", description="How many devices these have."),
        Column("Claims", description="How many claims on this node are its own."),
        Column("Waiting", description="How many pods wait for it."),
        Column("Wipe", description="When its slices will be deleted because it is away."),
        Column("Age", description="How long it has been in that state."),
        wide("Endpoint", "Where it listens."),
        wide("Health", "By which service it tells of the health of its devices."),
        wide("Message", "What is wrong with it."),
    ),
    _drivers,
)

PREPARED_CLAIMS = Printer(
    (
        NAME,
        Column("State", description="Preparing, Prepared, Failed, Unpreparing, or Waiting if it was not begun."),
        Column("Drivers", description="Whose devices it has."),
        Column("Devices", description="The devices, as far as they are prepared."),
        Column("Pods", description="The pods here that use it."),
        Column("Waiting", description="The pods here that cannot start without it."),
        Column("Since", description="How long it has been in that state."),
        wide("UID", "The claim's own."),
        wide("Message", "What went wrong last, or what is awaited."),
    ),
    _prepared_claims,
)
