"""A device checkpoint as a table for people, and as a JSON document for programs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from devlet.cli.tables import Layout, cell_text
from devlet.errors import StateCorrupt
from devlet.plugins import grants
from devlet.plugins.devices import Grant
from devlet.state.device_entry import NO_NODE, Checkpoint, Entry

NONE = "<none>"


def table(checkpoint: Checkpoint, *, wide: bool) -> Iterator[str]:
    """Yield the containers and their devices, then the resources with their healthy devices."""
    yield from _entries(checkpoint.entries or (), wide)
    yield ""
    yield from _registered(checkpoint.registered or {})


def _entries(entries: Sequence[Entry], wide: bool) -> Iterator[str]:
    if not entries:
        yield "No devices are allocated."
        return
    response = _response if wide else _response_summary
    rows = [[e.pod, e.container, e.resource, _devices(e.devices), response(e.response)] for e in entries]
    yield from _lines(["POD UID", "CONTAINER", "RESOURCE", "DEVICES", "RESPONSE"], rows)


def _registered(registered: Mapping[str, tuple[str, ...] | None]) -> Iterator[str]:
    if not registered:
        yield "No resources are registered."
        return
    rows = [[name, str(len(ids or ())), ",".join(ids or ()) or NONE] for name, ids in sorted(registered.items())]
    yield from _lines(["REGISTERED", "HEALTHY", "DEVICES"], rows)


def _lines(header: list[str], rows: list[list[str]]) -> Iterator[str]:
    return Layout().lines([header, *([cell_text(cell) for cell in row] for row in rows)])


def _devices(devices: Mapping[int, tuple[str, ...] | None] | None) -> str:
    """Return the devices, grouped by NUMA node if they have one."""
    groups = []
    for node, ids in sorted((devices or {}).items()):
        listed = ",".join(ids or ()) or NONE
        groups.append(listed if node == NO_NODE else f"node {node}: {listed}")
    return "; ".join(groups) or NONE


def _parts(grant: Grant) -> dict[str, list[str]]:
    return {
        "env": sorted(grant.env),
        "devices": [device.container_path for device in grant.devices],
        "mounts": [mount.container_path for mount in grant.mounts],
        "annotations": sorted(grant.annotations),
        "cdi": list(grant.cdi_devices),
    }


def _response_summary(blob: bytes | None) -> str:
    return _described(blob, lambda names: str(len(names)))


def _response(blob: bytes | None) -> str:
    return _described(blob, ",".join)


def _described(blob: bytes | None, text: Any) -> str:
    if blob is None:
        return NONE
    try:
        parts = _parts(grants.decode(blob))
    except StateCorrupt:
        return "<unreadable>"
    return "; ".join(f"{title}: {text(names)}" for title, names in parts.items() if names) or "empty"


def document(checkpoint: Checkpoint) -> dict[str, Any]:
    entries, registered = checkpoint.entries, checkpoint.registered
    return {
        "version": str(checkpoint.form),
        "entries": None if entries is None else [_entry(entry) for entry in entries],
        "registeredDevices": None if registered is None else {name: _list(ids) for name, ids in registered.items()},
    }


def _entry(entry: Entry) -> dict[str, Any]:
    devices = entry.devices
    return {
        "podUID": entry.pod,
        "containerName": entry.container,
        "resourceName": entry.resource,
        "deviceIDs": None if devices is None else {str(node): _list(ids) for node, ids in devices.items()},
        "response": None if entry.response is None else _grant(entry.response),
    }


def _list(ids: tuple[str, ...] | None) -> list[str] | None:
    return None if ids is None else list(ids)


def _grant(blob: bytes) -> dict[str, Any]:
    """Return the response with the field names of the device plugin API."""
    try:
        grant = grants.decode(blob)
    except StateCorrupt as e:
        return {"error": str(e)}
    return {
        "envs": dict(grant.env),
        "mounts": [
            {"containerPath": m.container_path, "hostPath": m.host_path, "readOnly": m.read_only} for m in grant.mounts
        ],
        "devices": [
            {"containerPath": d.container_path, "hostPath": d.host_path, "permissions": d.permissions}
            for d in grant.devices
        ],
        "annotations": dict(grant.annotations),
        "cdiDevices": list(grant.cdi_devices),
    }
