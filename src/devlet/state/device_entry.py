"""The content of a device checkpoint as values, its validation, and the text that its checksum covers.

null and empty differ in that text, so they differ here. The type names in the text are those of the kubelet; they are
part of the format.

Whatever its checksum, a checkpoint may contain what cannot be true: a device without an id, or of two pods. Containers
of one pod may share a device, since an init container leaves its devices to later containers.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct, structs

from devlet.state import go_hash
from devlet.state.go_json import utf8, valid

__all__ = ["Validated", "validated"]

HEAD = b"(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)"

NO_NODE = -1  # the key of devices without a NUMA node


class Form(StrEnum):
    """Versions of the file; v2 is the current one."""

    V2 = "v2"  # 1.20 and later
    V1 = "v1"  # 1.11 to 1.19: devices are a list, without NUMA nodes
    RAW = "raw"  # 1.9 and 1.10: like v1, without a checksum
    V1_9_ALPHA = "1.9-alpha"  # builds between 1.8 and 1.9: only entries, like in v1 but under another name
    V1_8 = "1.8"  # one entry per device, without responses


class Entry(Struct, frozen=True):
    """The devices of one resource that a container has, by NUMA node. `response` is the answer of the plugin, a
    serialised ContainerAllocateResponse."""

    pod: str
    container: str
    resource: str
    devices: Mapping[int, tuple[str, ...] | None] | None
    response: bytes | None


class Checkpoint(Struct, frozen=True):
    """`registered` are the healthy devices of each resource. `form` is the version of the file."""

    entries: tuple[Entry, ...] | None
    registered: Mapping[str, tuple[str, ...] | None] | None
    form: Form = Form.V2


def checksum(checkpoint: Checkpoint) -> int:
    return go_hash.after(go_hash.BASIS, hash_text(checkpoint))


def hash_text(checkpoint: Checkpoint) -> bytes:
    entries = go_hash.NIL
    if checkpoint.entries is not None:
        entries = b"[%b]" % b" ".join([entry_text(entry, checkpoint.form) for entry in checkpoint.entries])
    return HEAD + entries + tail_text(checkpoint.registered)


def entry_text(entry: Entry, form: Form = Form.V2) -> bytes:
    return (
        b"{PodUID:(string)%b ContainerName:(string)%b ResourceName:(string)%b DeviceIDs:%b AllocResp:([]uint8)%b}"
        % (
            utf8(entry.pod),
            utf8(entry.container),
            utf8(entry.resource),
            _devices_text(entry.devices, form),
            go_hash.octets(entry.response),
        )
    )


def tail_text(registered: Mapping[str, Sequence[str] | None] | None) -> bytes:
    ordered = None if registered is None else ((utf8(name), ids) for name, ids in by_name(registered))
    return b" RegisteredDevices:(map[string][]string)%b}" % go_hash.mapping(ordered)


def by_name(registered: Mapping[str, Sequence[str] | None]) -> list[tuple[str, Sequence[str] | None]]:
    """Sort the resources as in the file, by UTF-8."""
    return sorted({valid(name): ids for name, ids in registered.items()}.items(), key=lambda item: item[0])


def _devices_text(devices: Mapping[int, tuple[str, ...] | None] | None, form: Form) -> bytes:
    if form is not Form.V2:
        return b"([]string)" + go_hash.strings(None if devices is None else devices.get(NO_NODE, ()))
    ordered = None if devices is None else ((b"%d" % node, devices[node]) for node in sorted(devices))
    return b"(checkpoint.DevicesPerNUMA)" + go_hash.mapping(ordered)


class Validated(Struct, frozen=True):
    """A checkpoint without its faults, and a line for each fault."""

    checkpoint: Checkpoint
    faults: tuple[str, ...]


def validated(found: Checkpoint) -> Validated:
    """Remove devices without an id, entries without a pod, and devices that belong to another pod in an earlier
    entry."""
    owners: dict[tuple[str, str], Entry] = {}
    faults: list[str] = []
    entries: list[Entry] = []
    for entry in found.entries or ():
        if not entry.pod:
            faults.append(f"an entry of {entry.resource or 'no resource'} names no pod")
            continue
        devices = None
        if entry.devices is not None:
            devices = {
                node: None if ids is None else tuple(id for id in ids if _is_valid(id, entry, owners, faults))
                for node, ids in entry.devices.items()
            }
        entries.append(entry if devices == entry.devices else structs.replace(entry, devices=devices))
    if not faults:
        return Validated(found, ())
    return Validated(structs.replace(found, entries=tuple(entries)), tuple(faults))


def _is_valid(id: str, entry: Entry, owners: dict[tuple[str, str], Entry], faults: list[str]) -> bool:
    if not id:
        faults.append(f"a device of {_holder(entry)}, {entry.resource}, has no name")
        return False
    owner = owners.setdefault((entry.resource, id), entry)
    if owner.pod != entry.pod:
        faults.append(f"device {id} of {entry.resource} is held twice: by {_holder(owner)}, and by {_holder(entry)}")
        return False
    return True


def _holder(entry: Entry) -> str:
    return f"pod {entry.pod}, container {entry.container or '?'}"
