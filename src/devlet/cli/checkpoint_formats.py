"""The kinds of checkpoints that `devlet checkpoint` knows. A file is recognised by its content, or else by its name."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from devlet.errors import InvalidInput, StateCorrupt
from devlet.state import (
    claim_checkpoint,
    claim_salvage,
    device_checkpoint,
    device_entry,
    device_salvage,
    health_file,
    health_salvage,
)
from devlet.state.claim_checkpoint import ClaimEntry
from devlet.state.device_checkpoint import Checkpoint, Damage, Encoder, Failure, Form
from devlet.state.health_salvage import ByDriver


class Verdict(NamedTuple):
    """The result of verifying a file. `text` is its version and content, or what is wrong; each warning is about an
    entry of a valid file. A file may be `legible` even if it is not valid."""

    valid: bool
    text: str
    warnings: tuple[str, ...] = ()
    legible: bool = True


class Rescue(NamedTuple):
    """A file with the data that could be read. `content` is empty if nothing could be read."""

    content: bytes
    kept: str
    lost: tuple[str, ...]


class Format(Protocol):
    """A kind of checkpoint. `table` and `document` raise StateCorrupt for an illegible file, `convert` for an invalid
    one."""

    @property
    def name(self) -> str: ...

    def recognises(self, blob: bytes) -> bool: ...

    def verify(self, blob: bytes) -> Verdict: ...

    def table(self, blob: bytes, *, wide: bool) -> Iterator[str]: ...

    def document(self, blob: bytes) -> dict[str, Any]: ...

    def convert(self, blob: bytes) -> bytes:
        """Return the content in the current version."""
        ...

    def rescue(self, blob: bytes) -> Rescue: ...


class DeviceManagerFormat:
    name = device_checkpoint.FILE_NAME

    _NAMES = re.compile(rb'"(PodDeviceEntries|RegisteredDevices|Entries)"', re.IGNORECASE)

    def recognises(self, blob: bytes) -> bool:
        return bool(self._NAMES.search(blob)) or isinstance(device_checkpoint.read(blob), Checkpoint)

    def verify(self, blob: bytes) -> Verdict:
        *damages, last = device_checkpoint.attempts(blob)
        if isinstance(last, Damage):
            found = [*(d for d in damages if isinstance(d, Damage)), last]
            return Verdict(False, _damage_text(found), legible=any(damage.data for damage in found))
        if faults := device_entry.validated(last).faults:
            return Verdict(False, f"{last.form}: damaged (content): {'; '.join(faults)}")
        has_checksum = last.form in (Form.V2, Form.V1)
        checksum = f"checksum {device_checkpoint.checksum(last)}" if has_checksum else "no checksum"
        return Verdict(True, f"{last.form}: valid, {checksum}, {_contents(last)}", tuple(_warnings(last)))

    def table(self, blob: bytes, *, wide: bool) -> Iterator[str]:
        from devlet.cli.views import device_checkpoint as view

        return view.table(device_checkpoint.legible(blob), wide=wide)

    def document(self, blob: bytes) -> dict[str, Any]:
        from devlet.cli.views import device_checkpoint as view

        return {"format": self.name} | view.document(device_checkpoint.legible(blob))

    def convert(self, blob: bytes) -> bytes:
        found = device_checkpoint.decode(blob)
        return Encoder().encode(found.entries, found.registered)

    def rescue(self, blob: bytes) -> Rescue:
        found = device_salvage.salvage(blob)
        content = b"" if found.is_empty else Encoder().encode(found.checkpoint.entries, found.checkpoint.registered)
        return Rescue(content, _contents(found.checkpoint), found.lost)


class ClaimManagerFormat:
    name = "dra_manager_state"

    _NAMES = re.compile(rb'"(DRACheckpoint|ClaimInfoStateList|ClaimUID)\\?"', re.IGNORECASE)
    _OUTSIDE = re.compile(rb'"(Data|Checksum)"', re.IGNORECASE)  # without one of them any object is an empty checkpoint

    def recognises(self, blob: bytes) -> bool:
        if self._NAMES.search(blob):
            return True
        return bool(self._OUTSIDE.search(blob)) and isinstance(claim_checkpoint.read(blob), claim_checkpoint.Checkpoint)

    def verify(self, blob: bytes) -> Verdict:
        found = claim_checkpoint.read(blob)
        if isinstance(found, claim_checkpoint.Damage):
            return Verdict(False, _claim_damage_text(found), legible=found.data is not None)
        checksum = f"checksum {found.checksum}" + ("" if found.verified else " not verified")
        claims = _claims(len(found.claims or ()))
        return Verdict(True, f"{found.form}: valid, {checksum}, {claims}", tuple(_claim_warnings(found)))

    def table(self, blob: bytes, *, wide: bool) -> Iterator[str]:
        from devlet.cli.views import claim_checkpoint as view

        return view.table(claim_checkpoint.legible(blob), wide=wide)

    def document(self, blob: bytes) -> dict[str, Any]:
        from devlet.cli.views import claim_checkpoint as view

        return {"format": self.name} | view.document(claim_checkpoint.legible(blob))

    def convert(self, blob: bytes) -> bytes:
        return claim_checkpoint.Encoder().encode(claim_checkpoint.decode(blob).claims)

    def rescue(self, blob: bytes) -> Rescue:
        found = claim_salvage.salvage(blob)
        content = claim_checkpoint.Encoder().encode(found.claims) if found.claims else b""
        return Rescue(content, _claims(len(found.claims)), found.lost)


class HealthFormat:
    """The health of devices. There are no versions: fields that older kubelets did not write get their defaults."""

    name = "dra_health_state"

    _NAMES = re.compile(
        rb'"(LastUpdated|HealthCheckTimeout)"|"Devices"\s*:\s*(\{\s*("[^"]*"\s*:\s*\{|\}))', re.IGNORECASE
    )

    def recognises(self, blob: bytes) -> bool:
        return bool(self._NAMES.search(blob))

    def verify(self, blob: bytes) -> Verdict:
        try:
            found = health_file.decode(blob)
        except StateCorrupt as e:
            return Verdict(False, f"damaged ({Failure.DECODE}): {e}", legible=False)
        return Verdict(True, f"valid, no checksum, {_health_contents(found)}", tuple(_health_warnings(found)))

    def table(self, blob: bytes, *, wide: bool) -> Iterator[str]:
        from devlet.cli.views import health_state as view

        return view.table(health_file.decode(blob))

    def document(self, blob: bytes) -> dict[str, Any]:
        from devlet.cli.views import health_state as view

        return {"format": self.name} | view.document(health_file.decode(blob))

    def convert(self, blob: bytes) -> bytes:
        return health_file.encode(health_file.decode(blob))

    def rescue(self, blob: bytes) -> Rescue:
        found = health_salvage.salvage(blob)
        content = health_file.encode(found.drivers) if found.drivers else b""
        return Rescue(content, _health_contents(found.drivers), found.lost)


# In the order in which they are tried, because old claim checkpoints contain `entries` as well.
FORMATS: dict[str, Format] = {
    found.name: found for found in (ClaimManagerFormat(), HealthFormat(), DeviceManagerFormat())
}


def recognised(blob: bytes, name: str | None, file: str = "") -> Format:
    """Return the format with the given name, or else recognise it by the content, or by the name of the file."""
    if name is not None:
        return FORMATS[name]
    if blob and not blob.strip(b"\0"):
        raise StateCorrupt(
            "it contains only zero bytes, as after a power failure: move it away, and the node starts without it"
        )
    for found in FORMATS.values():
        if found.recognises(blob):
            return found
    if file in FORMATS:
        return FORMATS[file]
    what = "it is empty" if not blob.strip() else "it has none of the expected fields"
    raise InvalidInput(f"not a known checkpoint: {what}; if the file is damaged, name its kind with --format")


def _damage_text(damages: Sequence[Damage]) -> str:
    """Describe the failure in the current version, and in an older one whose data could be decoded."""
    first, *older = damages
    text = f"damaged ({first.failure}): {first.reason}"
    closer = [d for d in older if first.failure is Failure.DECODE and d.failure is Failure.CHECKSUM]
    return "; ".join([text, *(f"as {d.form}: {d.reason}" for d in closer)])


def _contents(found: Checkpoint) -> str:
    entries, resources = len(found.entries or ()), len(found.registered or ())
    return f"{_counted(entries, 'entry', 'entries')}, {_counted(resources, 'resource', 'resources')}"


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _warnings(found: Checkpoint) -> Iterator[str]:
    """Yield a warning for each entry that a kubelet or devlet drops when it reads the file."""
    from devlet.plugins import grants

    for entry in found.entries or ():
        try:
            grants.decode(entry.response or b"")
        except StateCorrupt as e:
            yield f"pod {entry.pod}, container {entry.container}, {entry.resource} will be dropped: {e}"


def _claims(number: int) -> str:
    return _counted(number, "claim", "claims")


def _claim_damage_text(damage: claim_checkpoint.Damage) -> str:
    version = "" if damage.form is claim_checkpoint.Form.V1_31 else f"as {damage.form}: "
    return f"damaged ({damage.failure}): {version}{damage.reason}"


def _claim_warnings(found: claim_checkpoint.Checkpoint) -> Iterator[str]:
    if not found.verified:
        yield f"the checksum of a file of {found.form} cannot be verified"
    counted = claim_checkpoint.by_name(found.claims or ())
    for claim in found.claims or ():
        if counted[claim.namespace, claim.name] is not claim:
            yield f"claim {claim.namespace}/{claim.name} with UID {claim.uid} will be dropped: a later one has its name"
        elif not claim.uid:
            yield f"claim {claim.namespace}/{claim.name} has no UID"
    for claim in counted.values():
        yield from _nameless(claim)
    yield from _held_twice(counted.values())


def _nameless(claim: ClaimEntry) -> Iterator[str]:
    """Warn of devices without a pool or name, except for those with CDI devices alone, written before 1.31."""
    for driver, devices in (claim.drivers or {}).items():
        for device in devices or ():
            is_old = device.cdi_devices and not (device.pool or device.device)
            if not (is_old or (device.pool and device.device)):
                what = f"device {device.pool or '?'}/{device.device or '?'} of {driver or '?'}"
                yield f"{what} of claim {claim.namespace}/{claim.name} has no name: it may be any device of the driver"


def _held_twice(claims: Iterable[ClaimEntry]) -> Iterator[str]:
    owners: dict[tuple[str, str], ClaimEntry] = {}
    for claim in claims:
        for name in sorted(_unshared(claim)):
            if (owner := owners.setdefault(name, claim)) is not claim:
                driver, device = name
                both = f"by claims {owner.namespace}/{owner.name} and {claim.namespace}/{claim.name}"
                yield f"device {device} of {driver} is held twice: {both}; this is correct only with admin access"


def _unshared(claim: ClaimEntry) -> set[tuple[str, str]]:
    """Return the drivers and devices that a claim holds without sharing; before 1.31, names of CDI devices."""
    found: set[tuple[str, str]] = set()
    for driver, devices in (claim.drivers or {}).items():
        for device in devices or ():
            names = (f"{device.pool}/{device.device}",) if device.device else device.cdi_devices or ()
            found |= {(driver, name) for name in names if device.share is None}
    return found


def _health_contents(found: ByDriver) -> str:
    devices = _counted(sum(map(len, found.values())), "device", "devices")
    return f"{devices}, {_counted(len(found), 'driver', 'drivers')}"


def _health_warnings(found: ByDriver) -> Iterator[str]:
    for driver, devices in found.items():
        for device in devices:
            if not device.pool or not device.device:
                yield f"device {device.pool or '?'}/{device.device or '?'} of {driver} will be dropped: it has no name"
