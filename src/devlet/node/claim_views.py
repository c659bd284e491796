"""DRA drivers and prepared claims as documents: what this node shows of them in the API. They cannot be written.

    Driver          the driver's name[~N]   one instance; N from 2 for more than one, as in a rolling update
    PreparedClaim   the claim's own name    one claim in the checkpoint, or one that a pod here waits for

A driver that is not registered is also shown if it has slices or claims on this node, or if a pod waits for it. That is
the driver a user is looking for. Pure functions; `views` collects their arguments.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from msgspec.structs import replace

from devlet.node.claims.records import ClaimKey, ClaimRecord, ClaimState, Contested, DriverPart, PodWait
from devlet.node.view_documents import REFUSED, by_name, escaped, moment
from devlet.objects.documents import Document
from devlet.objects.identifiers import DriverName, PodUID
from devlet.objects.types.claim import PreparedDevice
from devlet.objects.types.pod import Pod
from devlet.objects.views.device import DEVICES, DeviceSpec, DeviceStatus
from devlet.objects.views.driver import DRIVERS, DriverSpec, DriverStatus
from devlet.objects.views.prepared_claim import (
    PREPARED_CLAIMS,
    ClaimDevice,
    ClaimDriver,
    ClaimPod,
    PreparedClaimSpec,
    PreparedClaimStatus,
    WaitingPod,
)
from devlet.plugins.dra import DriverRecord
from devlet.plugins.refusals import Refusal

__all__ = ["Known", "contested_documents", "driver_documents", "prepared_claim_documents"]

WAITING = "Waiting"  # a claim that is not in the checkpoint
CONTESTED = "Contested"  # a device that is prepared for one claim while another waits for it
MISSING = "Missing"  # a driver that is not registered


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of drivers besides their registration. `slices` are those of this node, or None if the cluster did
    not answer. `wipes` says when the slices of a driver will be deleted."""

    claims: Sequence[ClaimRecord] = ()
    waits: Sequence[PodWait] = ()
    slices: Sequence[Document] | None = None
    wipes: Mapping[DriverName, datetime] | None = None


def driver_documents(records: Iterable[DriverRecord], known: Known, refused: Iterable[Refusal] = ()) -> list[Document]:
    """Return the documents of drivers. The instance that is called has the plain name and the counts of the driver as a
    whole."""
    tallies = _tallies(known)
    numbers: Counter[DriverName] = Counter()
    documents = []
    for record in sorted(records, key=lambda record: not record.preferred):
        numbers[record.driver] += 1
        number = numbers[record.driver]
        documents.append(_driver(record, number, tallies[record.driver] if number == 1 else None))
    for refusal in refused:
        driver = DriverName(refusal.name or (refusal.socket.name if refusal.socket else refusal.type))
        numbers[driver] += 1
        documents.append(_refused(refusal, driver, numbers[driver], tallies[driver] if numbers[driver] == 1 else None))
    documents += [_missing(driver, tally) for driver, tally in tallies.items() if driver not in numbers]
    return by_name(documents)


def prepared_claim_documents(
    records: Iterable[ClaimRecord], waits: Iterable[PodWait], pods: Iterable[Pod]
) -> list[Document]:
    names = {pod.uid: pod.name for pod in pods}
    waiting: defaultdict[ClaimKey, list[PodWait]] = defaultdict(list)
    for wait in waits:
        for key in wait.claims:
            waiting[key].append(wait)
    numbers: Counter[ClaimKey] = Counter()
    documents = []
    # A claim that is being unprepared may have a successor of the same name, which then gets the plain name.
    for record in sorted(records, key=lambda record: record.state is ClaimState.UNPREPARING):
        numbers[record.key] += 1
        here = waiting[record.key] if numbers[record.key] == 1 else []
        documents.append(_prepared(record, numbers[record.key], here, names))
    documents += [_awaited(key, here, names) for key, here in waiting.items() if key not in numbers]
    return by_name(documents)


@dataclass(slots=True)
class _Tally:
    """The counts of one driver. None means that the number could not be found out."""

    slices: int | None = None
    devices: int | None = None
    claims: int = 0
    pods: int = 0
    wipe: datetime | None = None


def _tallies(known: Known) -> defaultdict[DriverName, _Tally]:
    none = None if known.slices is None else 0
    found: defaultdict[DriverName, _Tally] = defaultdict(lambda: _Tally(none, none))
    for record in known.claims:
        for driver in {part.driver for part in record.drivers}:
            found[driver].claims += 1
    for drivers in _awaited_drivers(known).values():
        for driver in drivers:
            found[driver].pods += 1
    for driver, when in (known.wipes or {}).items():
        found[driver].wipe = when
    for slice_ in known.slices or ():
        _count(slice_, found)
    return found


def _count(slice_: Document, found: defaultdict[DriverName, _Tally]) -> None:
    spec = slice_.get("spec") or {}
    tally = found[DriverName(spec.get("driver") or "")]
    tally.slices = (tally.slices or 0) + 1
    tally.devices = (tally.devices or 0) + len(spec.get("devices") or ())


def _awaited_drivers(known: Known) -> dict[PodUID, set[DriverName]]:
    """Return the drivers that each pod waits for: those that it reports, and those that have not prepared one of its
    claims."""
    undone = {
        record.key: {part.driver for part in record.drivers if part.devices is None}
        for record in known.claims
        if record.state is not ClaimState.UNPREPARING
    }
    found: defaultdict[PodUID, set[DriverName]] = defaultdict(set)
    for wait in known.waits:
        found[wait.pod].update(wait.drivers, *(undone.get(key, ()) for key in wait.claims))
    return found


def _driver(record: DriverRecord, number: int, tally: _Tally | None) -> Document:
    spec = DriverSpec(
        record.driver,
        endpoint=str(record.endpoint),
        service=record.service,
        advertised=list(record.advertised),
        health_service=record.health or None,
    )
    status = replace(
        _counted(_state(record), tally, record.message or None),
        since=moment(record.since),
        registered=moment(record.registered),
    )
    return DRIVERS.document({"name": _name(record.driver, number)}, spec, status)


def _state(record: DriverRecord) -> str:
    """Return the state of an instance. A lost connection is shown even for an instance on standby."""
    if not record.connected:
        return "Disconnected"
    return "Connected" if record.preferred else "Standby"


def _missing(driver: DriverName, tally: _Tally) -> Document:
    status = _counted(MISSING, tally, _why_known(tally))
    return DRIVERS.document({"name": _name(driver)}, DriverSpec(driver), status)


def _refused(refusal: Refusal, driver: DriverName, number: int, tally: _Tally | None) -> Document:
    status = replace(_counted(REFUSED, tally, refusal.message), since=moment(refusal.since))
    spec = DriverSpec(driver, socket=str(refusal.socket) if refusal.socket else None)
    return DRIVERS.document({"name": _name(driver, number)}, spec, status)


def _name(driver: DriverName, number: int = 1) -> str:
    """Return a name that can be used in URLs. Valid names of drivers are, but a checkpoint may contain others."""
    return escaped(driver) + (f"~{number}" if number > 1 else "")


def _why_known(tally: _Tally) -> str:
    signs = [
        text
        for text, holds in (
            ("its slices are published for this node", bool(tally.slices)),
            ("its slices on this node are about to be deleted", not tally.slices and tally.wipe is not None),
            ("claims on this node have its devices", bool(tally.claims)),
            ("pods on this node wait for it", bool(tally.pods)),
        )
        if holds
    ]
    return f"not registered on this node, but {' and '.join(signs)}"


def _counted(state: str, tally: _Tally | None, message: str | None) -> DriverStatus:
    if tally is None:
        return DriverStatus(state, message=message)
    return DriverStatus(
        state,
        slices=tally.slices,
        devices=tally.devices,
        claims=tally.claims,
        pods=tally.pods,
        wipe_at=moment(tally.wipe),
        message=message,
    )


def contested_documents(waits: Iterable[PodWait]) -> Iterator[Document]:
    """Return the devices of DRA drivers that are prepared for one claim while another waits for them."""
    found: defaultdict[str, list[tuple[PodWait, Contested]]] = defaultdict(list)
    for wait in waits:
        for each in wait.contested:
            found[each.device].append((wait, each))
    for device, entries in sorted(found.items()):
        place, _, name = device.rpartition("/")
        driver, _, pool = place.partition("/")
        status = DeviceStatus(
            state=CONTESTED,
            since=moment(min(wait.since for wait, _ in entries)),
            claims=sorted({each.holder for _, each in entries}),
            waiting=sorted({each.claim for _, each in entries}),
        )
        spec = DeviceSpec(driver=driver, pool=pool, id=name)
        yield DEVICES.document({"name": escaped(device.replace("/", ":"))}, spec, status)


def _prepared(record: ClaimRecord, number: int, waits: Collection[PodWait], names: Mapping[PodUID, str]) -> Document:
    name = record.key.name + (f"~{number}" if number > 1 else "")
    status = PreparedClaimStatus(
        record.state,
        since=moment(record.since),
        message=record.message or None,
        drivers=[_part(part) for part in sorted(record.drivers, key=lambda part: part.driver)],
        pods=[ClaimPod(names.get(uid), uid) for uid in sorted(record.pods, key=lambda uid: (names.get(uid, ""), uid))],
        waiting=list(_waiting(waits, names)),
    )
    metadata = {"name": name, "namespace": record.key.namespace}
    return PREPARED_CLAIMS.document(metadata, PreparedClaimSpec(record.uid), status)


def _awaited(key: ClaimKey, waits: Collection[PodWait], names: Mapping[PodUID, str]) -> Document:
    first = min(waits, key=lambda wait: wait.since)
    status = PreparedClaimStatus(
        WAITING,
        since=moment(first.since),
        message=first.message or None,
        drivers=[],
        pods=[],
        waiting=list(_waiting(waits, names)),
    )
    return PREPARED_CLAIMS.document({"name": key.name, "namespace": key.namespace}, PreparedClaimSpec(), status)


def _part(part: DriverPart) -> ClaimDriver:
    if part.devices is None:
        return ClaimDriver(part.driver, prepared=False)
    return ClaimDriver(part.driver, prepared=True, devices=[_device(device) for device in part.devices])


def _device(device: PreparedDevice) -> ClaimDevice:
    return ClaimDevice(
        pool=device.pool or None,
        device=device.device or None,
        share_id=device.share or None,
        requests=list(device.requests or ()) or None,
        cdi_devices=list(device.cdi_devices or ()) or None,
    )


def _waiting(waits: Iterable[PodWait], names: Mapping[PodUID, str]) -> Iterator[WaitingPod]:
    for wait in sorted(waits, key=lambda wait: wait.since):
        yield WaitingPod(names.get(wait.pod) or None, wait.pod, moment(wait.since), wait.message or None)
