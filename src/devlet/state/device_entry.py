"""The content of a device checkpoint as values, its validation, the text that its checksum covers, and its encoder.

null and empty differ in that text, so they differ here. The type names in the text are those of the kubelet; they are
part of the format.

Whatever its checksum, a checkpoint may contain what cannot be true: a device without an id, or of two pods. Containers
of one pod may share a device, since an init container leaves its devices to later containers.

A checkpoint is written at every admission and contains all entries of the node. The JSON of an entry and its effect on
the checksum are cached as long as the entry is in the file, so that a change costs only the encoding of its own entry.
The bytes equal those that the kubelet writes for the same entries in the same order.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from enum import StrEnum
from operator import is_not

from msgspec import Struct, structs

from devlet.state import go_hash, go_json
from devlet.state.go_json import utf8, valid

__all__ = ["NO_NODE", "Checkpoint", "Encoder", "Entry", "Form", "Validated", "checksum", "hash_text", "validated"]

HEAD = b"(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)"
_START = b'{"Data":{"PodDeviceEntries":'
_SPARE = 256  # cached entries that are no longer in the file, before they are dropped

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


class _Written:
    """An entry and its encoding. The reference to the entry keeps its id from being reused."""

    __slots__ = ("entry", "json", "piece", "size")

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.json = _entry_json(entry) + b","
        self.size = len(self.json)
        self.piece = go_hash.Piece(b" " + entry_text(entry))


class _Tail:
    """The end of the file, after the entries."""

    def __init__(self, registered: Mapping[str, tuple[str, ...] | None] | None) -> None:
        self.registered = registered
        self.json = go_json.dump(None if registered is None else dict(by_name(registered)))
        self.piece = go_hash.Piece(tail_text(registered))


class Encoder:
    """Encodes one file. Entries are cached by identity: pass the same objects again. Not thread-safe."""

    def __init__(self) -> None:
        self._memory: dict[int, _Written] = {}
        # The last file: the entries, their JSON with a comma after each, and the hash after each.
        self._entries: list[Entry] = []
        self._written: list[_Written] = []
        self._json = bytearray()
        self._states: list[int] = []
        self._tail = _Tail({})

    def encode(self, entries: Sequence[Entry] | None, registered: Mapping[str, Sequence[str] | None] | None) -> bytes:
        """Encode the checkpoint. No entries become null and never an empty list, as in the kubelet."""
        self._turn_to(list(entries or ()))
        tail = self._tail_of(registered)
        if not self._states:
            return _file((b"null",), tail.json, tail.piece.after(_EMPTY))
        state = go_hash.after(self._states[-1], b"]")
        with memoryview(self._json) as json:
            return _file((b"[", json[:-1], b"]"), tail.json, tail.piece.after(state))

    def _turn_to(self, entries: list[Entry]) -> None:
        """Keep the unchanged beginning and end, and replace what is between them."""
        known = len(self._entries)
        if entries[:known] == self._entries:  # usually entries are only appended
            new = [self._remembered(entry) for entry in entries[known:]]
            self._json += b"".join([written.json for written in new])
            self._written += new
            self._entries = entries
            self._hash_from(known)
            return
        head = _common(self._entries, entries)
        rest = min(len(self._entries), len(entries)) - head
        tail = min(_common(self._entries[::-1], entries[::-1]), rest) if rest else 0
        old = slice(head, len(self._entries) - tail)
        new = [self._remembered(entry) for entry in entries[head : len(entries) - tail]]

        start = sum([written.size for written in self._written[:head]])
        end = start + sum([written.size for written in self._written[old]])
        self._json[start:end] = b"".join([written.json for written in new])
        self._written[old] = new
        self._entries = entries
        self._hash_from(head)
        if len(self._memory) > len(entries) + _SPARE:
            self._memory = {id(written.entry): written for written in self._written}

    def _remembered(self, entry: Entry) -> _Written:
        if (found := self._memory.get(id(entry))) is None:
            found = self._memory[id(entry)] = _Written(entry)
        return found

    def _hash_from(self, index: int) -> None:
        del self._states[index:]
        if not index and self._written:
            self._states.append(go_hash.after(_BEGUN, self._written[0].piece.text[1:]))  # no space before the first
            index = 1
        state = self._states[-1] if self._states else 0
        add = self._states.append
        for written in self._written[index:]:
            add(state := written.piece.after(state))

    def _tail_of(self, registered: Mapping[str, Sequence[str] | None] | None) -> _Tail:
        frozen = None
        if registered is not None:
            frozen = {name: None if ids is None else tuple(ids) for name, ids in registered.items()}
        if frozen != self._tail.registered:
            self._tail = _Tail(frozen)
        return self._tail


_BEGUN = go_hash.after(go_hash.BASIS, HEAD + b"[")
_EMPTY = go_hash.after(go_hash.BASIS, HEAD + go_hash.NIL)


def _file(entries: Sequence[bytes | memoryview], registered: bytes, checksum: int) -> bytes:
    return b"".join((_START, *entries, b',"RegisteredDevices":', registered, b'},"Checksum":%d}' % checksum))


def _common(one: Sequence[Entry], other: Sequence[Entry]) -> int:
    """Return how many entries at the beginning are the same objects."""
    return next((i for i, differ in enumerate(map(is_not, one, other)) if differ), min(len(one), len(other)))


def _entry_json(entry: Entry) -> bytes:
    devices = None
    if entry.devices is not None:
        devices = {str(node): entry.devices[node] for node in sorted(entry.devices, key=str)}
    return go_json.dump(
        {
            "PodUID": entry.pod,
            "ContainerName": entry.container,
            "ResourceName": entry.resource,
            "DeviceIDs": devices,
            "AllocResp": None if entry.response is None else b64encode(entry.response).decode(),
        }
    )
