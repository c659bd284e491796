"""The DRA manager's checkpoint, `dra_manager_state`: all versions are decoded, the current one is encoded.

The current file is JSON inside JSON, and the checksum covers the inner document, which is verified before it is parsed.
The kubelet decodes into an empty checkpoint with its checksum, so a file without fields is an empty checkpoint. Pure:
`checkpoint_file` does the I/O.
"""

from collections.abc import Iterator
from typing import Any
from zlib import crc32

from msgspec import Struct

from devlet.errors import StateCorrupt
from devlet.state import claim_legacy, go_json
from devlet.state.claim_entry import Checkpoint, ClaimEntry, Encoder, Form, PreparedDevice, by_name
from devlet.state.device_checkpoint import Failure
from devlet.state.go_json import Malformed

__all__ = [
    "Checkpoint",
    "ClaimEntry",
    "Damage",
    "Encoder",
    "Failure",
    "Form",
    "PreparedDevice",
    "attempts",
    "by_name",
    "decode",
    "legible",
    "read",
    "read_claim",
]

MAX_BYTES = 256 << 20

Drivers = dict[str, tuple[PreparedDevice, ...] | None] | None

_EMPTY = '{"kind":"DRACheckpoint","apiVersion":"checkpoint.dra.kubelet.k8s.io/v1","ClaimInfoStateList":null}'
_EMPTY_CHECKSUM = crc32(_EMPTY.encode())


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
    found = read(blob)
    return found.data if isinstance(found, Damage) and found.data else decode(blob)


def read(blob: bytes) -> Checkpoint | Damage:
    """Decode a checkpoint, or return why it is not of the newest version that it may be."""
    found = list(attempts(blob))
    return next((result for result in found if isinstance(result, Checkpoint)), found[0])


def attempts(blob: bytes) -> Iterator[Checkpoint | Damage]:
    """Try to decode the file as one version after the other, until one fits."""
    if len(blob) > MAX_BYTES:
        yield Damage(Form.V1_31, Failure.DECODE, f"it has {len(blob)} bytes, more than {MAX_BYTES}")
        return
    try:
        document = go_json.parse(blob)
        names = {name for name, _ in go_json.members(document)}
    except Malformed as e:
        yield Damage(Form.V1_31, Failure.DECODE, str(e))
        return
    for form in _candidates(names):
        result = _as(form, document)
        yield result
        if isinstance(result, Checkpoint):
            return


def _candidates(names: set[str]) -> Iterator[Form]:
    """Yield the versions to try. A file with entries outside of the data is old; the kubelet would take it for an empty
    one if the checksum matched."""
    is_old = "data" not in names and names & {"version", "entries"}
    if is_old:
        yield from (Form.V1_30, Form.V1_28, Form.V1_27, Form.BETA)
    if not is_old or "entries" not in names:
        yield Form.V1_31


def _as(form: Form, document: Any) -> Checkpoint | Damage:
    try:
        return _present(document) if form is Form.V1_31 else _legacy(document, form)
    except Malformed as e:
        return Damage(form, Failure.DECODE, str(e))


def _legacy(document: Any, form: Form) -> Checkpoint | Damage:
    file = claim_legacy.read(document, form)
    found = claim_legacy.imported(file)
    if not file.verifiable or (expected := claim_legacy.checksum(file)) == file.checksum:
        return found
    return Damage(form, Failure.CHECKSUM, _mismatch(file.checksum, expected), found)


def _present(document: Any) -> Checkpoint | Damage:
    text, stored = _EMPTY, _EMPTY_CHECKSUM
    for name, member in go_json.members(document):
        if name == "data":
            with go_json.inside("Data"):
                text = go_json.string(member, text)
        elif name == "checksum":
            with go_json.inside("Checksum"):
                stored = go_json.unsigned(member, stored, bits=32)
    blob = go_json.utf8(text)
    if (expected := crc32(blob)) == stored:
        return Checkpoint(_data(blob), Form.V1_31, stored)
    return Damage(Form.V1_31, Failure.CHECKSUM, _mismatch(stored, expected), _unverified(blob, stored))


def _mismatch(stored: int, expected: int) -> str:
    return f"the checksum does not match: the file says {stored}, its data give {expected}"


def _unverified(blob: bytes, stored: int) -> Checkpoint | None:
    try:
        return Checkpoint(_data(blob), Form.V1_31, stored, verified=False)
    except Malformed:
        return None


def _data(blob: bytes) -> tuple[ClaimEntry, ...] | None:
    """Decode the inner document. Kind and version must be strings, but are not compared, as in the kubelet."""
    claims: tuple[ClaimEntry, ...] | None = None
    with go_json.inside("Data"):
        for name, member in go_json.members(go_json.parse(blob)):
            if name == "claiminfostatelist":
                with go_json.inside("ClaimInfoStateList"):
                    claims = _claims(member)
            elif name in ("kind", "apiversion"):
                go_json.string(member)
    return claims


def _claims(value: Any) -> tuple[ClaimEntry, ...] | None:
    found: list[ClaimEntry] = []
    values = go_json.items(value)
    for index, item in enumerate(values or ()):
        try:
            found.append(read_claim(item))
        except Malformed as e:
            raise e.inside(f"[{index}]") from e
    return None if values is None else tuple(found)


_CLAIM = {name.lower(): name for name in ("ClaimUID", "ClaimName", "Namespace", "PodUIDs", "DriverState")}
_DEVICE = {name.lower(): name for name in ("PoolName", "DeviceName", "ShareID", "RequestNames", "CDIDeviceIDs")}


def read_claim(value: Any) -> ClaimEntry:
    """Decode one claim from parsed JSON. Raise Malformed if it is not one."""
    texts = dict.fromkeys(("claimuid", "claimname", "namespace"), "")
    pods: frozenset[str] | None = None
    drivers: Drivers = None
    for name, member in go_json.members(value):
        try:
            if name in texts:
                texts[name] = go_json.string(member, texts[name])
            elif name == "poduids":
                pods = go_json.keys(member, pods)
            elif name == "driverstate":
                drivers = _drivers(member, drivers)
        except Malformed as e:
            raise e.inside(_CLAIM[name]) from e
    return ClaimEntry(texts["claimuid"], texts["claimname"], texts["namespace"], pods, drivers)


def _drivers(value: Any, before: Drivers) -> Drivers:
    """Decode a map. A repeated field is merged."""
    pairs = go_json.pairs(value)
    return None if pairs is None else (before or {}) | {go_json.valid(name): _devices(state) for name, state in pairs}


def _devices(state: Any) -> tuple[PreparedDevice, ...] | None:
    devices = None
    for name, member in go_json.members(state):
        if name == "devices":
            with go_json.inside("Devices"):
                found = go_json.items(member)
                devices = None if found is None else tuple([_device(item) for item in found])
    return devices


def _device(value: Any) -> PreparedDevice:
    texts = dict.fromkeys(("poolname", "devicename"), "")
    lists: dict[str, tuple[str, ...] | None] = dict.fromkeys(("requestnames", "cdideviceids"))
    share: str | None = None
    for name, member in go_json.members(value):
        try:
            if name in texts:
                texts[name] = go_json.string(member, texts[name])
            elif name in lists:
                lists[name] = go_json.strings(member)
            elif name == "shareid":
                share = None if member is None else go_json.string(member)
        except Malformed as e:
            raise e.inside(_DEVICE[name]) from e
    return PreparedDevice(texts["poolname"], texts["devicename"], share, lists["requestnames"], lists["cdideviceids"])
