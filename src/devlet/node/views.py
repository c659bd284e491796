"""Devices, plugins and holders as documents: what this node shows of itself in the API.

They cannot be written, but a prepared claim can be released.

    Device   VENDOR:NAME:ID         one device of a plugin, and who has it
             DRIVER:POOL:NAME       one device of a DRA driver that two claims on this node want
    Plugin   VENDOR:NAME[~N]        one plugin instance; N from 2 for more than one of a resource
    Holder   the pod's own name     one pod that has devices, and what its containers get with them

The documents of holders come from `holder_views`, those of DRA drivers and prepared claims from `claim_views`.

Names are used in URLs, and kubectl refuses "/" and "%" in them. So the "/" between vendor and name becomes ":", and any
other unsuitable byte of a device's ID is written as "~" and two hexadecimal digits.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from devlet.errors import NotFound
from devlet.node import claim_views, holder_views
from devlet.node.claims.records import ClaimKey, ClaimRecord, PodWait
from devlet.node.devices.records import DeviceRecord, PluginRecord, PluginState
from devlet.node.holder_views import Holders, NoClaims, NoRuntime
from devlet.node.view_documents import REFUSED, by_name, escaped, moment
from devlet.objects.documents import Document
from devlet.objects.identifiers import ClaimName, ContainerName, DeviceID, DriverName, PodUID, ResourceName
from devlet.objects.types.pod import Pod
from devlet.objects.views.device import DEVICES, DeviceSpec, DeviceStatus, HeldBy
from devlet.objects.views.plugin import PLUGINS, PluginOptions, PluginSpec, PluginStatus
from devlet.plugins.dra import DriverRecord
from devlet.plugins.dra_registry import TYPE as DRA_DRIVER
from devlet.plugins.refusals import Refusal

__all__ = ["NodeViews", "device_documents", "device_name", "plugin_documents"]


class Devices(holder_views.Devices, Protocol):
    def plugin_records(self) -> Sequence[PluginRecord]: ...


class Pods(Protocol):
    def active(self) -> Sequence[Pod]: ...


class Claims(holder_views.Claims, Protocol):
    def records(self) -> Sequence[ClaimRecord]: ...

    def waits(self) -> Sequence[PodWait]: ...

    async def release(self, key: ClaimKey, *, force: bool) -> None: ...


class Drivers(Protocol):
    def records(self) -> Sequence[DriverRecord]: ...


class Slices(Protocol):
    async def slices(self) -> Sequence[Document] | None:
        """Return the slices of this node, or None if the cluster does not answer."""
        ...

    def records(self) -> Mapping[DriverName, datetime]:
        """Return when the slices of each driver will be deleted."""
        ...


class NodeViews:
    """Returns the documents as they are now, sorted by name. Without `claims` or `drivers` there are none of those.
    `refusals` returns the plugins and drivers whose registration was refused."""

    def __init__(
        self,
        devices: Devices,
        pods: Pods,
        *,
        claims: Claims | None = None,
        drivers: Drivers | None = None,
        slices: Slices | None = None,
        runtime: holder_views.Runtime = NoRuntime(),
        refusals: Callable[[], Sequence[Refusal]] = tuple,
    ) -> None:
        self._refusals = refusals
        self._devices = devices
        self._pods = pods
        self._claims = claims
        self._drivers = drivers
        self._slices = slices
        self._holders = Holders(devices, claims or NoClaims(), runtime)

    def devices(self) -> list[Document]:
        waits = self._claims.waits() if self._claims else ()
        return device_documents(self._devices.device_records(), self._pods.active(), waits)

    def plugins(self) -> list[Document]:
        refused = [each for each in self._refusals() if each.type != DRA_DRIVER]
        return plugin_documents(self._devices.plugin_records(), refused)

    async def holders(self) -> list[Document]:
        return await self._holders.documents(self._pods.active())

    async def drivers(self) -> list[Document]:
        slices = await self._slices.slices() if self._slices else None
        claims, waits = (self._claims.records(), self._claims.waits()) if self._claims else ((), ())
        known = claim_views.Known(claims, waits, slices, self._slices.records() if self._slices else None)
        refused = [each for each in self._refusals() if each.type == DRA_DRIVER]
        return claim_views.driver_documents(self._drivers.records() if self._drivers else (), known, refused)

    async def release_claim(self, namespace: str, name: str, *, force: bool) -> None:
        """Release a prepared claim. See `ClaimManager.release`."""
        if self._claims is None:
            raise NotFound(f"ResourceClaim {namespace}/{name} is not prepared on this node", name=name)
        await self._claims.release(ClaimKey(namespace, ClaimName(name)), force=force)

    def prepared_claims(self) -> list[Document]:
        if self._claims is None:
            return []
        records, waits = self._claims.records(), self._claims.waits()
        return claim_views.prepared_claim_documents(records, waits, self._pods.active())


def device_documents(
    records: Iterable[DeviceRecord], pods: Iterable[Pod], waits: Iterable[PodWait] = ()
) -> list[Document]:
    by_uid = {pod.uid: pod for pod in pods}
    devices = [_device(record, by_uid) for record in records]
    return by_name([*devices, *claim_views.contested_documents(waits)])


def plugin_documents(records: Iterable[PluginRecord], refused: Iterable[Refusal] = ()) -> list[Document]:
    """Return the documents of plugins. The instance in use has the plain name; the ones on standby follow, then the
    refused ones."""
    numbers: Counter[ResourceName] = Counter()
    documents = []
    for record in sorted(records, key=lambda record: record.state is PluginState.STANDBY):
        numbers[record.resource] += 1
        documents.append(_plugin(record, numbers[record.resource]))
    for refusal in refused:
        resource = ResourceName(refusal.name or (refusal.socket.name if refusal.socket else refusal.type))
        numbers[resource] += 1
        documents.append(_refused(refusal, resource, numbers[resource]))
    return by_name(documents)


def device_name(resource: ResourceName, id: DeviceID) -> str:
    return f"{_resource_name(resource)}:{escaped(id)}"


def _resource_name(resource: ResourceName) -> str:
    return escaped(resource.replace("/", ":"))


def _device(record: DeviceRecord, pods: Mapping[PodUID, Pod]) -> Document:
    spec = DeviceSpec(resource=record.resource, id=record.id, numa_nodes=list(record.nodes))
    holder = _holder_of(record.pod, record.container, pods) if record.pod is not None else None
    status = DeviceStatus(health=record.health, state=record.state, holder=holder, since=moment(record.since))
    return DEVICES.document({"name": device_name(record.resource, record.id)}, spec, status)


def _holder_of(uid: PodUID, container: ContainerName | None, pods: Mapping[PodUID, Pod]) -> HeldBy:
    """Return the container that has the device. Of a pod that is already gone, only the UID is known."""
    if (pod := pods.get(uid)) is None:
        return HeldBy(pod_uid=uid, container=container or None)
    return HeldBy(namespace=pod.metadata.namespace, pod=pod.name, pod_uid=uid, container=container or None)


def _plugin(record: PluginRecord, number: int) -> Document:
    name = _numbered(record.resource, number)
    options = PluginOptions(record.options.pre_start, record.options.preferred_allocation)
    socket = str(record.socket) if record.socket is not None else None
    spec = PluginSpec(record.resource, api=record.api, socket=socket, options=options)
    status = PluginStatus(
        record.state,
        since=moment(record.since),
        healthy=record.healthy,
        unhealthy=record.unhealthy,
        held=record.held,
        pid=record.pid,
        message=record.message or None,
    )
    return PLUGINS.document({"name": name}, spec, status)


def _refused(refusal: Refusal, resource: ResourceName, number: int) -> Document:
    socket = str(refusal.socket) if refusal.socket is not None else None
    spec = PluginSpec(refusal.name, type=refusal.type, socket=socket)
    status = PluginStatus(REFUSED, since=moment(refusal.since), message=refusal.message)
    return PLUGINS.document({"name": _numbered(resource, number)}, spec, status)


def _numbered(resource: ResourceName, number: int) -> str:
    return _resource_name(resource) + (f"~{number}" if number > 1 else "")
