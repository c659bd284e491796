"""The device manager's checkpoint, `kubelet_internal_checkpoint`: all versions are decoded, the current one is encoded.

The checksum covers a dump of the decoded values (`go_hash`), not the bytes of the file. So a file is decoded as one
version after the other until a checksum matches. Pure: `checkpoint_file` does the I/O.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any

from msgspec import Struct

from devlet.errors import StateCorrupt
from devlet.state import go_json
from devlet.state.device_entry import NO_NODE, Checkpoint, Encoder, Entry, Form, checksum, hash_text
from devlet.state.go_json import Malformed

__all__ = [
    "FILE_NAME",
    "Checkpoint",
    "Damage",
    "Encoder",
    "Entry",
    "Failure",
    "Form",
    "attempts",
    "checksum",
    "decode",
    "hash_text",
    "legible",
    "one_entry_per_owner",
    "read",
    "read_entry",
]

FILE_NAME = "kubelet_internal_checkpoint"  # in the directory of the device plugins' sockets

MAX_BYTES = 256 << 20

Devices = dict[int, tuple[str, ...] | None] | None
Registered = dict[str, tuple[str, ...] | None] | None


class Failure(StrEnum):
    DECODE = "decode"
    CHECKSUM = "checksum"


class Damage(Struct, frozen=True):
    """Why a file is not a checkpoint of this form. `data` is its content, if it can be decoded nevertheless."""

    form: Form
    failure: Failure
    reason: str
    data: Checkpoint | None = None


def decode(blob: bytes) -> Checkpoint:
    """Decode a checkpoint. StateCorrupt says what is wrong, without naming the file."""
    found = read(blob)
    if isinstance(found, Damage):
        raise StateCorrupt(f"the checkpoint is corrupted ({found.failure}): {found.reason}")
    return found


def legible(blob: bytes) -> Checkpoint:
    """Return the content of the file, even if its checksum is wrong. Raise StateCorrupt if it cannot be decoded."""
    found = list(attempts(blob))
    said = (result if isinstance(result, Checkpoint) else result.data for result in reversed(found))
    return next(filter(None, said), None) or decode(blob)


def read(blob: bytes) -> Checkpoint | Damage:
    """Decode a checkpoint, or return why it is not of the current version."""
    found = list(attempts(blob))
    return next((result for result in found if isinstance(result, Checkpoint)), found[0])


def attempts(blob: bytes) -> Iterator[Checkpoint | Damage]:
    """Try to decode the file as one version after the other, until one fits. Files of 1.10 and older have no checksum:
    these versions are tried only if the file has their fields."""
    if len(blob) > MAX_BYTES:
        yield _undecodable(Form.V2, f"it has {len(blob)} bytes, more than {MAX_BYTES}")
        return
    try:
        document = go_json.parse(blob)
        names = {name for name, _ in go_json.members(document)}
        if document is None:
            raise Malformed("expected an object, found null")
    except Malformed as e:
        yield _undecodable(Form.V2, str(e))
        return
    for form in _candidates(names):
        result = _as(form, document)
        yield result
        if isinstance(result, Checkpoint):
            return


def _candidates(names: set[str]) -> Iterator[Form]:
    yield Form.V2
    yield Form.V1
    if names & {"data", "checksum"}:
        return
    if names & {"poddeviceentries", "registereddevices"}:
        yield Form.RAW
    elif "entries" in names:
        yield Form.V1_8
        yield Form.V1_9_ALPHA


def _as(form: Form, document: Any) -> Checkpoint | Damage:
    try:
        match form:
            case Form.RAW:
                return _data([document], form)
            case Form.V1_8 | Form.V1_9_ALPHA:
                return _without_data(document, form)
            case _:
                return _verified(*_wrapped(document, form))
    except Malformed as e:
        return _undecodable(form, str(e))


def _undecodable(form: Form, reason: str) -> Damage:
    return Damage(form, Failure.DECODE, reason)


def _verified(data: Checkpoint, stored: int) -> Checkpoint | Damage:
    if (expected := checksum(data)) == stored:
        return data
    reason = f"the checksum does not match: the file says {stored}, its data give {expected}"
    return Damage(data.form, Failure.CHECKSUM, reason, data)


def _wrapped(document: Any, form: Form) -> tuple[Checkpoint, int]:
    """Return the data, and the checksum in the file."""
    parts, stored = [], 0
    for name, member in go_json.members(document):
        if name == "data":
            parts.append(member)
        elif name == "checksum":
            with go_json.inside("Checksum"):
                stored = go_json.unsigned(member, stored)
    with go_json.inside("Data"):
        return _data(parts, form), stored


def _data(parts: list[Any], form: Form) -> Checkpoint:
    """Decode the data. Missing fields are empty, not null."""
    entries: tuple[Entry, ...] | None = ()
    registered: Registered = {}
    for name, member in (pair for part in parts for pair in go_json.members(part)):
        if name == "poddeviceentries":
            with go_json.inside("PodDeviceEntries"):
                entries = _entries(member, form)
        elif name == "registereddevices":
            with go_json.inside("RegisteredDevices"):
                registered = _registered(member, registered)
    return Checkpoint(entries, registered, form)


def _entries(value: Any, form: Form) -> tuple[Entry, ...] | None:
    found: list[Entry] = []
    values = go_json.items(value)
    for index, item in enumerate(values or ()):
        try:
            found.append(read_entry(item, form))
        except Malformed as e:
            raise e.inside(f"[{index}]") from e
    return None if values is None else tuple(found)


def read_entry(value: Any, form: Form) -> Entry:
    """Decode one entry from parsed JSON. Raise Malformed if it is not of this form."""
    if form in _DEVICES and _DEVICES[form].lower() not in {name for name, _ in go_json.members(value)}:
        raise Malformed(f"it has no {_DEVICES[form]}")
    texts = dict.fromkeys(("poduid", "containername", "resourcename"), "")
    devices: Devices = None
    response: bytes | None = None
    for name, member in go_json.members(value):
        try:
            if name in texts:
                texts[name] = go_json.string(member, texts[name])
            elif name == "deviceids" and form is not Form.V1_8:
                devices = _by_node(member, devices) if form is Form.V2 else _without_nodes(member)
            elif name == "deviceid" and form is Form.V1_8:
                devices = {NO_NODE: (go_json.string(member),)}
            elif name == "allocresp":
                response = go_json.octets(member)
        except Malformed as e:
            raise e.inside(_NAMES_BY_LOWER[name]) from e
    return Entry(texts["poduid"], texts["containername"], texts["resourcename"], devices, response)


_NAMES = ("PodUID", "ContainerName", "ResourceName", "DeviceID", "DeviceIDs", "AllocResp")
_NAMES_BY_LOWER = {name.lower(): name for name in _NAMES}
_DEVICES = {Form.V1_8: "DeviceID", Form.V1_9_ALPHA: "DeviceIDs"}  # the only difference between these two


def _by_node(value: Any, before: Devices) -> Devices:
    """Decode a map. A repeated field is merged."""
    pairs = go_json.pairs(value)
    return None if pairs is None else (before or {}) | {go_json.integer(k): go_json.strings(v) for k, v in pairs}


def _without_nodes(value: Any) -> Devices:
    """Decode a list without NUMA nodes. The kubelet's conversion assumes node 0, which may be wrong."""
    ids = go_json.strings(value)
    return None if ids is None else {NO_NODE: ids}


def _registered(value: Any, before: Registered) -> Registered:
    pairs = go_json.pairs(value)
    return None if pairs is None else (before or {}) | {go_json.valid(k): go_json.strings(v) for k, v in pairs}


def _without_data(document: Any, form: Form) -> Checkpoint:
    entries: tuple[Entry, ...] = ()
    for name, member in go_json.members(document):
        if name == "entries":
            with go_json.inside("Entries"):
                entries = _entries(member, form) or ()
    return Checkpoint(one_entry_per_owner(entries) if form is Form.V1_8 else entries, {}, form)


def one_entry_per_owner(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Join the entries of 1.8, which have one device each, into one for each container and resource."""
    held: dict[tuple[str, str, str], list[str]] = {}
    for entry in entries:
        ids = (entry.devices or {}).get(NO_NODE) or ()
        held.setdefault((entry.pod, entry.container, entry.resource), []).extend(ids)
    return tuple(Entry(*owner, {NO_NODE: tuple(ids)}, None) for owner, ids in held.items())
