"""The Node object as a document: what it should say about this node, and the patch that leads there. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from devlet.node.capacity import Resources
from devlet.node.host import Host
from devlet.objects.documents import Document
from devlet.objects.release import DEVLET, KUBERNETES
from devlet.objects.values.timestamps import format_time

__all__ = ["DAMAGED", "READY", "conditions", "labels", "metadata_patch", "node_info", "status_patch", "wanted_status"]

READY = "Ready"
DAMAGED = "DeviceCheckpointDamaged"
_PRESSURES = (  # devlet watches none of them, but if a node is lost, conditions that it never reported become Unknown
    ("MemoryPressure", "KubeletHasSufficientMemory", "devlet does not watch memory"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "devlet does not watch disks"),
    ("PIDPressure", "KubeletHasSufficientPID", "devlet does not watch process ids"),
)
_DAMAGE_MAX = 32 * 1024  # characters of a condition's message


def labels(name: str, host: Host) -> dict[str, str]:
    found = {"kubernetes.io/hostname": name, "kubernetes.io/os": host.system, "kubernetes.io/arch": host.architecture}
    # Some programs still read the beta labels.
    return found | {"beta.kubernetes.io/os": host.system, "beta.kubernetes.io/arch": host.architecture}


def node_info(host: Host, runtime: str) -> Document:
    return {
        "machineID": host.machine_id,
        "systemUUID": host.system_uuid,
        "bootID": host.boot_id,
        "kernelVersion": host.kernel,
        "osImage": host.image,
        "containerRuntimeVersion": runtime,
        "kubeletVersion": f"{KUBERNETES}+devlet{DEVLET}",
        "operatingSystem": host.system,
        "architecture": host.architecture,
    }


def conditions(damage: Sequence[str], now: datetime) -> list[Document]:
    """Return the conditions of the node. The one about damaged files is present only while there are some."""
    found = [_condition(type_, False, reason, message) for type_, reason, message in _PRESSURES]
    found.append(_condition(READY, True, "KubeletReady", "devlet is posting ready status"))
    if damage:
        found.append(_condition(DAMAGED, True, "CheckpointSetAside", "; ".join(damage)[:_DAMAGE_MAX]))
    at = format_time(now)
    return [each | {"lastHeartbeatTime": at, "lastTransitionTime": at} for each in found]


def _condition(type_: str, status: bool, reason: str, message: str) -> Document:
    return {"type": type_, "status": str(status), "reason": reason, "message": message}


def status_patch(before: Document, wanted: Document, *, beat: bool) -> Document | None:
    """Return a strategic merge patch of the status, or None if nothing differs. `beat` renews the heartbeats as
    well."""
    status = before.get("status") or {}
    changes = {
        "capacity": _map_changes(status.get("capacity") or {}, wanted["capacity"]),
        "allocatable": _map_changes(status.get("allocatable") or {}, wanted["allocatable"]),
        "conditions": _condition_changes(status.get("conditions") or [], wanted["conditions"], beat),
        "addresses": [each for each in wanted["addresses"] if each not in (status.get("addresses") or ())],
        "nodeInfo": {k: v for k, v in wanted["nodeInfo"].items() if (status.get("nodeInfo") or {}).get(k, "") != v},
    }
    found = {key: value for key, value in changes.items() if value}
    return {"status": found} if found else None


def metadata_patch(before: Document, wanted: Mapping[str, Mapping[str, str]]) -> Document | None:
    """Return a merge patch of labels and annotations, or None if the object has all of them."""
    changes = {
        key: {name: value for name, value in values.items() if (before["metadata"].get(key) or {}).get(name) != value}
        for key, values in wanted.items()
    }
    found = {key: values for key, values in changes.items() if values}
    return {"metadata": found} if found else None


def wanted_status(
    resources: Resources, host: Host, runtime: str, name: str, address: str, damage: Sequence[str], now: datetime
) -> Document:
    return {
        "capacity": resources.capacity,
        "allocatable": resources.allocatable,
        "conditions": conditions(damage, now),
        "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
        "nodeInfo": node_info(host, runtime),
    }


def _map_changes(before: Document, wanted: Document) -> Document:
    gone: dict[str, Any] = dict.fromkeys(before.keys() - wanted.keys())
    return gone | {key: value for key, value in wanted.items() if before.get(key) != value}


def _condition_changes(before: Sequence[Document], wanted: Sequence[Document], beat: bool) -> list[Document]:
    known = {each.get("type"): each for each in before}
    changes = []
    for each in wanted:
        old = known.get(each["type"], {})
        same = all(old.get(key) == each[key] for key in ("status", "reason", "message"))
        if not same or beat:
            since = old.get("lastTransitionTime") if old.get("status") == each["status"] else None
            changes.append(each | {"lastTransitionTime": since or each["lastTransitionTime"]})
    if DAMAGED in known and not any(each["type"] == DAMAGED for each in wanted):
        changes.append({"type": DAMAGED, "$patch": "delete"})
    return changes
