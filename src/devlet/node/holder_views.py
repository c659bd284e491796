"""Pods that have devices, as documents: which ones each container has, from plugins and of claims, and what it gets
with them. Pure functions; `Holders` asks those who know.

What a container gets is decided when it starts and kept by the runtime, so it is shown as it was then. Only after a
restart of devlet it is worked out again, from the CDI specs of that moment."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from devlet.node.claims.records import ContainerClaim, DriverPart
from devlet.node.devices.container_options import ContainerOptions
from devlet.node.devices.order import natural
from devlet.node.devices.records import DeviceRecord
from devlet.node.pods.container_config import config
from devlet.node.view_documents import by_name, document, moment
from devlet.objects.container import Container
from devlet.objects.documents import Document
from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName
from devlet.objects.pod import Pod
from devlet.objects.prepared import PreparedDevice
from devlet.runtime.description import Description, Wanted

__all__ = ["Claims", "Devices", "Holders", "Holding", "NoClaims", "NoRuntime", "Runtime", "holder_documents"]

Held = Mapping[ResourceName, Mapping[DeviceID, Sequence[int]]]


class Devices(Protocol):
    """The device manager."""

    def device_records(self) -> Sequence[DeviceRecord]: ...

    def container_devices(self, pod: PodUID, container: ContainerName) -> Held: ...

    def options(self, pod: PodUID, container: ContainerName) -> ContainerOptions | None: ...


class Claims(Protocol):
    """The claim manager."""

    def container_claims(self, pod: Pod, container: Container) -> Sequence[ContainerClaim]: ...


class Runtime(Protocol):
    async def described(self, wanted: Sequence[Wanted]) -> Sequence[Description]:
        """One for each, in their order. May take its time."""
        ...


class NoClaims:
    """For a node without a claim manager."""

    def container_claims(self, pod: Pod, container: Container) -> Sequence[ContainerClaim]:
        return ()


class NoRuntime:
    """For a node whose runtime cannot tell."""

    async def described(self, wanted: Sequence[Wanted]) -> Sequence[Description]:
        return [Description()] * len(wanted)


class Holding(Struct, frozen=True):
    """What one container has."""

    pod: Pod
    container: Container
    devices: Held
    claims: Sequence[ContainerClaim] = ()
    options: ContainerOptions | None = None
    description: Description = Description()


class Holders:
    def __init__(self, devices: Devices, claims: Claims = NoClaims(), runtime: Runtime = NoRuntime()) -> None:
        self._devices = devices
        self._claims = claims
        self._runtime = runtime

    async def documents(self, pods: Iterable[Pod]) -> list[Document]:
        """All that may change is read before anything is waited for."""
        records = self._devices.device_records()
        found = [holding for pod in pods for holding in self._of(pod)]
        described = await self._runtime.described([_wanted(holding) for holding in found])
        return holder_documents(
            [
                Holding(each.pod, each.container, each.devices, each.claims, each.options, description)
                for each, description in zip(found, described, strict=True)
            ],
            records,
        )

    def _of(self, pod: Pod) -> Iterator[Holding]:
        for container in pod.containers:
            devices = self._devices.container_devices(pod.uid, container.name)
            claims = self._claims.container_claims(pod, container)
            if devices or claims:
                yield Holding(pod, container, devices, claims, self._devices.options(pod.uid, container.name))


def holder_documents(holdings: Iterable[Holding], records: Iterable[DeviceRecord]) -> list[Document]:
    since: dict[PodUID, list[datetime | None]] = {}
    for record in records:
        if record.pod is not None:
            since.setdefault(record.pod, []).append(record.since)
    by_pod: dict[PodUID, list[Holding]] = {}
    for holding in holdings:
        by_pod.setdefault(holding.pod.uid, []).append(holding)
    return by_name(_holder(held, since.get(uid, [])) for uid, held in by_pod.items())


def _wanted(holding: Holding) -> Wanted:
    devices = [device for claim in holding.claims for part in claim.drivers for device in part.devices or ()]
    claimed = [name for device in devices for name in device.cdi_devices or ()]
    return Wanted(holding.pod, holding.container, config(holding.options, claimed))


def _holder(held: Sequence[Holding], since: Sequence[datetime | None]) -> Document:
    pod = held[0].pod
    metadata: Document = {"name": pod.name, "namespace": pod.metadata.namespace}
    if pod.metadata.labels:
        metadata["labels"] = dict(pod.metadata.labels)
    known = [when for when in since if when is not None]
    first = min(known) if known and len(known) == len(since) else None
    status = {"phase": pod.status.phase or None, "since": moment(first), "containers": [_container(h) for h in held]}
    return document("Holder", metadata, {"podUID": pod.uid}, status)


def _container(holding: Holding) -> Document:
    found: Document = {
        "devices": [
            {"resource": resource, "ids": sorted(ids, key=natural)} for resource, ids in sorted(holding.devices.items())
        ],
        "claims": [entry for claim in holding.claims for entry in _claim(claim)],
        "oci": holding.description.added,
        "notes": list(holding.description.notes),
    }
    shown = {"name": holding.container.name, **{key: value for key, value in found.items() if value}}
    return shown if holding.options is None else {**shown, "options": _options(holding.options)}


def _claim(claim: ContainerClaim) -> Iterator[Document]:
    """An entry for each device; one without a device for what has none, or has not been prepared yet."""
    about = {"name": claim.pod_claim, "claim": str(claim.key.name), "request": claim.request}
    parts = [entry for part in claim.drivers for entry in _part(part)]
    for entry in parts or [{}]:
        yield {key: value for key, value in (about | entry).items() if value}


def _part(part: DriverPart) -> list[Document]:
    """A driver that has not answered yet is shown alone; one without devices for the container not at all."""
    if part.devices is None:
        return [{"driver": part.driver}]
    return [{"driver": part.driver, **_device(device)} for device in part.devices]


def _device(device: PreparedDevice) -> Document:
    return {
        "pool": device.pool,
        "device": device.device,
        "shareID": device.share,
        "cdiDevices": list(device.cdi_devices or ()),
    }


def _options(options: ContainerOptions) -> Document:
    found: Document = {
        "env": [{"name": name, "value": value} for name, value in options.env],
        "mounts": [
            {"containerPath": mount.container_path, "hostPath": mount.host_path, "readOnly": mount.read_only}
            for mount in options.mounts
        ],
        "devices": [
            {"containerPath": node.container_path, "hostPath": node.host_path, "permissions": node.permissions}
            for node in options.devices
        ],
        "annotations": dict(options.annotations),
        "cdiDevices": list(options.cdi_devices),
        "conflicts": list(options.conflicts),
    }
    return {key: value for key, value in found.items() if value}
