"""Claim checkpoints of Kubernetes 1.27 to 1.30, which later kubelets refuse.

Like in the device checkpoint, the checksum covers a dump of the decoded values (`go_hash`), which differs between the
versions. These files contain the names of CDI devices, but no pools, devices or requests.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from devlet.state import go_hash, go_json
from devlet.state.claim_entry import Checkpoint, ClaimEntry, Form, PreparedDevice
from devlet.state.go_json import Malformed, utf8

_HEAD = b"(*state.DRAManagerCheckpoint){Version:(string)%b Entries:(state.ClaimInfoStateList)%b Checksum:"
_TAIL = b"(checksum.Checksum)0}"

Devices = Mapping[str, tuple[str, ...] | None]


class Handle(Struct, frozen=True):
    """Data from the controller of a driver for its node plugin. Structured data is only detected."""

    driver: str = ""
    data: str = ""
    structured: bool = False


class LegacyEntry(Struct, frozen=True):
    driver: str
    class_name: str
    uid: str
    name: str
    namespace: str
    pods: frozenset[str] | None
    handles: tuple[Handle, ...] | None
    cdi_devices: Devices | None


class LegacyFile(Struct, frozen=True):
    form: Form
    version: str = "v1"
    entries: tuple[LegacyEntry, ...] | None = ()
    checksum: int = 0

    @property
    def verifiable(self) -> bool:
        """Return True if the dump is known. It is not for a beta, nor for structured data."""
        handles = (handle for entry in self.entries or () for handle in entry.handles or ())
        structured = self.form is Form.V1_30 and any(handle.structured for handle in handles)
        return self.form is not Form.BETA and not structured


def read(document: Any, form: Form) -> LegacyFile:
    """Decode a file from parsed JSON. Raise Malformed if it is not of this form."""
    found: dict[str, Any] = {"version": "v1", "entries": (), "checksum": 0}
    for name, member in go_json.members(document):
        with go_json.inside(name):
            if name == "version":
                found[name] = go_json.string(member, found[name])
            elif name == "checksum":
                found[name] = go_json.unsigned(member, found[name])
            elif name == "entries":
                found[name] = _entries(member, form)
    return LegacyFile(form, **found)


def _entries(value: Any, form: Form) -> tuple[LegacyEntry, ...] | None:
    items = go_json.items(value)
    if items is None:
        return None
    found: list[LegacyEntry] = []
    for index, item in enumerate(items):
        with go_json.inside(f"[{index}]"):
            found.append(read_entry(item, form))
    if form is Form.BETA and not any(entry.cdi_devices for entry in found):
        raise Malformed("expected a list of CDI devices")  # otherwise it is a damaged file of a release
    return tuple(found)


_TEXTS = ("drivername", "classname", "claimuid", "claimname", "namespace")
_NAMES = {
    name.lower(): name
    for name in ("DriverName", "ClassName", "ClaimUID", "ClaimName", "Namespace", "PodUIDs", "ResourceHandles")
} | {"cdidevices": "CDIDevices"}


def read_entry(value: Any, form: Form) -> LegacyEntry:
    """Decode one entry from parsed JSON. Raise Malformed if it is not of this form."""
    texts = dict.fromkeys(_TEXTS, "")
    pods: frozenset[str] | None = None
    handles: tuple[Handle, ...] | None = None
    cdi: Any = None
    for name, member in go_json.members(value):
        with go_json.inside(_NAMES.get(name, name)):
            if name in texts:
                texts[name] = go_json.string(member, texts[name])
            elif name == "poduids":
                pods = go_json.keys(member, pods)
            elif name == "resourcehandles" and form not in (Form.V1_27, Form.BETA):
                handles = _handles(member)
            elif name == "cdidevices":
                cdi = go_json.strings(member) if form is Form.BETA else _by_driver(member, cdi)
    if form is Form.BETA and cdi is not None:
        cdi = {texts["drivername"]: cdi}
    driver, class_name, uid, claim_name, namespace = texts.values()
    return LegacyEntry(driver, class_name, uid, claim_name, namespace, pods, handles, cdi)


def _by_driver(value: Any, before: Devices | None) -> Devices | None:
    pairs = go_json.pairs(value)
    if pairs is None:
        return None
    return {**(before or {}), **{go_json.valid(name): go_json.strings(names) for name, names in pairs}}


def _handles(value: Any) -> tuple[Handle, ...] | None:
    items = go_json.items(value)
    return None if items is None else tuple([_handle(item) for item in items])


def _handle(value: Any) -> Handle:
    texts = {"drivername": "", "data": ""}
    structured = False
    for name, member in go_json.members(value):
        if name in texts:
            texts[name] = go_json.string(member, texts[name])
        elif name == "structureddata":
            structured = go_json.pairs(member) is not None
    return Handle(texts["drivername"], texts["data"], structured)


def checksum(file: LegacyFile) -> int:
    return go_hash.after(go_hash.BASIS, hash_text(file))


def hash_text(file: LegacyFile) -> bytes:
    entries = _list(file.entries, lambda entry: _entry_text(entry, file.form))
    return _HEAD % (utf8(file.version), entries) + _TAIL


def _entry_text(entry: LegacyEntry, form: Form) -> bytes:
    pods = None if entry.pods is None else sorted(entry.pods)
    cdi = None if entry.cdi_devices is None else sorted(entry.cdi_devices.items())
    parts = [
        b"DriverName:(string)" + utf8(entry.driver),
        b"ClassName:(string)" + utf8(entry.class_name),
        b"ClaimUID:(types.UID)" + utf8(entry.uid),
        b"ClaimName:(string)" + utf8(entry.name),
        b"Namespace:(string)" + utf8(entry.namespace),
        b"PodUIDs:(sets.Set[string])" + (go_hash.NIL if pods is None else b"map" + _list(pods, _member)),
        b"ResourceHandles:([]v1alpha2.ResourceHandle)"
        + _list(entry.handles, lambda handle: _handle_text(handle, form)),
        b"CDIDevices:(map[string][]string)"
        + go_hash.mapping(None if cdi is None else [(utf8(driver), names) for driver, names in cdi]),
    ]
    if form is Form.V1_27:
        del parts[6]
    return b"{%b}" % b" ".join(parts)


def _handle_text(handle: Handle, form: Form) -> bytes:
    structured = b" StructuredData:(*v1alpha2.StructuredResourceHandle)<nil>" if form is Form.V1_30 else b""
    return b"{DriverName:(string)%b Data:(string)%b%b}" % (utf8(handle.driver), utf8(handle.data), structured)


def _member(name: str) -> bytes:
    return utf8(name) + b":{}"


def _list(values: Sequence[Any] | None, text: Any) -> bytes:
    return go_hash.NIL if values is None else b"[%b]" % b" ".join([text(value) for value in values])


def imported(file: LegacyFile) -> Checkpoint:
    claims = None if file.entries is None else tuple([claim(entry) for entry in file.entries])
    return Checkpoint(claims, file.form, file.checksum, file.verifiable)


def claim(entry: LegacyEntry) -> ClaimEntry:
    """Convert an entry. A driver with only a resource handle has no devices, but has to unprepare the claim too."""
    asked = [handle.driver or entry.driver for handle in entry.handles or ()]
    if not asked and not entry.cdi_devices:
        asked = [entry.driver]
    names: Devices = {driver: None for driver in asked if driver} | dict(entry.cdi_devices or {})
    drivers = {driver: _devices(found) for driver, found in names.items()}
    return ClaimEntry(entry.uid, entry.name, entry.namespace, entry.pods, drivers)


def _devices(names: tuple[str, ...] | None) -> tuple[PreparedDevice, ...]:
    return (PreparedDevice("", "", None, (), names),) if names else ()
