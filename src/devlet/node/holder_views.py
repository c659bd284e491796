"""Pods that have devices, as documents: the devices of each container, from plugins and claims, and what they add to
it. Pure functions; `Holders` collects their arguments.

What devices add to a container is decided when it starts and kept by the runtime, so it is shown as it was then. Only
after a restart of devlet is it computed again, from the CDI specs of that moment."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from devlet.node.claims.records import ContainerClaim, DriverPart
from devlet.node.devices.container_options import ContainerOptions
from devlet.node.devices.order import natural
from devlet.node.devices.records import DeviceRecord
from devlet.node.pods.containers import config
from devlet.node.view_documents import by_name, moment
from devlet.objects.documents import Document
from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName
from devlet.objects.types.container import Container
from devlet.objects.types.pod import Pod
from devlet.objects.views.holder import (
    HOLDERS,
    DeviceNode,
    HeldClaim,
    HeldContainer,
    HeldDevices,
    HolderSpec,
    HolderStatus,
    Mount,
    Options,
    Variable,
)
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
        """Return one description for each, in the same order. This may take a while."""
        ...


class NoClaims:
    """For a node without a claim manager."""

    def container_claims(self, pod: Pod, container: Container) -> Sequence[ContainerClaim]:
        return ()


class NoRuntime:
    """For a node whose runtime cannot describe its containers."""

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
        """Return the documents. All that may change is read before the first await, so the documents fit together."""
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
    containers = [_container(holding) for holding in held]
    status = HolderStatus(phase=pod.status.phase or None, since=moment(first), containers=containers)
    return HOLDERS.document(metadata, HolderSpec(pod.uid), status)


def _container(holding: Holding) -> HeldContainer:
    devices = [HeldDevices(name, sorted(ids, key=natural)) for name, ids in sorted(holding.devices.items())]
    return HeldContainer(
        holding.container.name,
        devices=devices or None,
        claims=[entry for claim in holding.claims for entry in _claim(claim)] or None,
        oci=holding.description.added or None,
        notes=list(holding.description.notes) or None,
        options=_options(holding.options) if holding.options is not None else None,
    )


def _claim(claim: ContainerClaim) -> Iterator[HeldClaim]:
    """Yield an entry for each device, or one without a device if there is none or it is not prepared yet."""
    about = HeldClaim(name=claim.pod_claim or None, claim=claim.key.name or None, request=claim.request or None)
    entries = [entry for part in claim.drivers for entry in _part(about, part)]
    yield from entries or [about]


def _part(about: HeldClaim, part: DriverPart) -> list[HeldClaim]:
    """Return one entry for a driver that has not answered yet, and none for one without devices for the container."""
    about = replace(about, driver=part.driver)
    if part.devices is None:
        return [about]
    return [
        replace(
            about,
            pool=device.pool or None,
            device=device.device or None,
            share_id=device.share or None,
            cdi_devices=list(device.cdi_devices or ()) or None,
        )
        for device in part.devices
    ]


def _options(options: ContainerOptions) -> Options:
    return Options(
        env=[Variable(name, value) for name, value in options.env] or None,
        mounts=[Mount(each.container_path, each.host_path, each.read_only) for each in options.mounts] or None,
        devices=[DeviceNode(each.container_path, each.host_path, each.permissions) for each in options.devices] or None,
        annotations=dict(options.annotations) or None,
        cdi_devices=list(options.cdi_devices) or None,
        conflicts=list(options.conflicts) or None,
    )
