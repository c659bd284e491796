"""When the taints of devices were added. A taint keeps its time even if its device moves to another slice.

Drivers rarely set a time, so the server adds one. It must survive every update of the slice, because the time for which
a pod tolerates the taint starts then.
"""

from collections.abc import Iterable, Mapping

from devlet.objects.documents import Document

__all__ = ["Times", "filled", "kept", "of_devices", "of_slices"]

Triple = tuple[str, str, str]
Times = Mapping[str, Mapping[Triple, str]]
"""The times by device, and by key, value and effect of its taints."""


def of_devices(devices: Iterable[Document]) -> dict[str, dict[Triple, str]]:
    return {device["name"]: _times(device) for device in devices}


def of_slices(slices: Iterable[Document]) -> dict[str, dict[Triple, str]]:
    """Return the times of all devices. If a device is in several slices, the newest generation counts."""
    found: dict[str, dict[Triple, str]] = {}
    for document in sorted(slices, key=lambda each: each["spec"]["pool"].get("generation", 0)):
        found |= of_devices(document["spec"].get("devices") or ())
    return found


def filled(devices: Iterable[Document], times: Times) -> list[Document]:
    """Return the devices with known times added to taints that have none."""
    return [_filled(device, times.get(device["name"], {})) for device in devices]


def kept(devices: Iterable[Document], times: Times) -> Times:
    """Return the times of the taints that these devices have."""
    wanted = {device["name"]: {_triple(taint) for taint in device.get("taints") or ()} for device in devices}
    found = {name: {t: since for t, since in times.get(name, {}).items() if t in has} for name, has in wanted.items()}
    return {name: since for name, since in found.items() if since}


def _times(device: Document) -> dict[Triple, str]:
    return {_triple(taint): taint["timeAdded"] for taint in device.get("taints") or () if taint.get("timeAdded")}


def _filled(device: Document, times: Mapping[Triple, str]) -> Document:
    if not times or not device.get("taints"):
        return device
    return {**device, "taints": [_with_time(taint, times.get(_triple(taint))) for taint in device["taints"]]}


def _with_time(taint: Document, since: str | None) -> Document:
    return taint if taint.get("timeAdded") or not since else {**taint, "timeAdded": since}


def _triple(taint: Document) -> Triple:
    return taint.get("key") or "", taint.get("value") or "", taint.get("effect") or ""
