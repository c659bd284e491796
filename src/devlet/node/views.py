"""Devices, plugins and holders as documents: what this node shows of itself in the API, to be read and never written.

    Device   VENDOR:NAME:ID         one device of a plugin, and who has it
    Plugin   VENDOR:NAME[~N]        one plugin instance; N from 2 for more than one of a resource
    Holder   the pod's own name     one pod that has devices, and what its containers get with them

Names are used in URLs, and kubectl refuses "/" and "%" in them: "/" between vendor and name becomes ":", and whatever
else a device's id may hold is written as "~" and two hexadecimal digits per byte.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol
from urllib.parse import quote

from devlet.node.devices.container_options import ContainerOptions
from devlet.node.devices.order import natural
from devlet.node.devices.records import DeviceRecord, PluginRecord, PluginState
from devlet.objects.documents import Document
from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName
from devlet.objects.pod import Pod
from devlet.objects.timestamps import format_time

__all__ = ["API_VERSION", "NodeViews", "device_documents", "device_name", "holder_documents", "plugin_documents"]

API_VERSION = "devlet.dev/v1alpha1"

Held = Callable[[PodUID, ContainerName], Mapping[ResourceName, Mapping[DeviceID, Sequence[int]]]]
Options = Callable[[PodUID, ContainerName], ContainerOptions | None]


class Devices(Protocol):
    def device_records(self) -> Sequence[DeviceRecord]: ...

    def plugin_records(self) -> Sequence[PluginRecord]: ...

    def container_devices(
        self, pod: PodUID, container: ContainerName
    ) -> Mapping[ResourceName, Mapping[DeviceID, Sequence[int]]]: ...

    def options(self, pod: PodUID, container: ContainerName) -> ContainerOptions | None: ...


class Pods(Protocol):
    def active(self) -> Sequence[Pod]: ...


class NodeViews:
    """The documents as they are now, by name."""

    def __init__(self, devices: Devices, pods: Pods) -> None:
        self._devices = devices
        self._pods = pods

    def devices(self) -> list[Document]:
        return device_documents(self._devices.device_records(), self._pods.active())

    def plugins(self) -> list[Document]:
        return plugin_documents(self._devices.plugin_records())

    def holders(self) -> list[Document]:
        records, devices = self._devices.device_records(), self._devices
        return holder_documents(self._pods.active(), records, devices.container_devices, devices.options)


def device_documents(records: Iterable[DeviceRecord], pods: Iterable[Pod]) -> list[Document]:
    by_uid = {pod.uid: pod for pod in pods}
    return _by_name(_device(record, by_uid) for record in records)


def plugin_documents(records: Iterable[PluginRecord]) -> list[Document]:
    """The instance that is used has the plain name; those that stand by follow."""
    numbers: Counter[ResourceName] = Counter()
    documents = []
    for record in sorted(records, key=lambda record: record.state is PluginState.STANDBY):
        numbers[record.resource] += 1
        documents.append(_plugin(record, numbers[record.resource]))
    return _by_name(documents)


def holder_documents(
    pods: Iterable[Pod], records: Iterable[DeviceRecord], held: Held, options: Options
) -> list[Document]:
    since: dict[PodUID, list[datetime | None]] = {}
    for record in records:
        if record.pod is not None:
            since.setdefault(record.pod, []).append(record.since)
    made = (_holder(pod, since.get(pod.uid, []), list(_containers(pod, held, options))) for pod in pods)
    return _by_name(document for document in made if document["status"]["containers"])


def device_name(resource: ResourceName, id: DeviceID) -> str:
    return f"{_resource_name(resource)}:{_escaped(id)}"


def _resource_name(resource: ResourceName) -> str:
    return _escaped(resource.replace("/", ":"))


def _escaped(text: str) -> str:
    """Reversible: a "~" that is there already is escaped as well."""
    return quote(text, safe=":@+=,").replace("~", "%7E").replace("%", "~")


def _by_name(documents: Iterable[Document]) -> list[Document]:
    """As people count: gpu-2 before gpu-10."""
    return sorted(documents, key=lambda d: (d["metadata"].get("namespace", ""), natural(d["metadata"]["name"])))


def _document(kind: str, metadata: Document, spec: Document, status: Document) -> Document:
    """Without what is not known."""
    known = {key: value for key, value in status.items() if value is not None}
    return {"kind": kind, "apiVersion": API_VERSION, "metadata": metadata, "spec": spec, "status": known}


def _time(moment: datetime | None) -> str | None:
    return format_time(moment) if moment else None


def _device(record: DeviceRecord, pods: Mapping[PodUID, Pod]) -> Document:
    spec = {"resource": record.resource, "id": record.id, "numaNodes": list(record.nodes)}
    holder = _holder_of(record.pod, record.container, pods) if record.pod is not None else None
    status = {"health": record.health, "state": str(record.state), "holder": holder, "since": _time(record.since)}
    return _document("Device", {"name": device_name(record.resource, record.id)}, spec, status)


def _holder_of(uid: PodUID, container: ContainerName | None, pods: Mapping[PodUID, Pod]) -> Document:
    """A pod that is already gone is known by its UID alone."""
    holder: Document = {"podUID": uid}
    if (pod := pods.get(uid)) is not None:
        holder = {"namespace": pod.metadata.namespace, "pod": pod.name, **holder}
    return {**holder, "container": container} if container else holder


def _plugin(record: PluginRecord, number: int) -> Document:
    name = _resource_name(record.resource) + (f"~{number}" if number > 1 else "")
    spec: Document = {"resource": record.resource, "api": record.api}
    if record.socket is not None:
        spec["socket"] = str(record.socket)
    spec["options"] = {
        "preStartRequired": record.options.pre_start,
        "getPreferredAllocationAvailable": record.options.preferred_allocation,
    }
    status = {
        "state": str(record.state),
        "since": _time(record.since),
        "healthy": record.healthy,
        "unhealthy": record.unhealthy,
        "held": record.held,
        "pid": record.pid,
        "message": record.message or None,
    }
    return _document("Plugin", {"name": name}, spec, status)


def _holder(pod: Pod, since: Sequence[datetime | None], containers: list[Document]) -> Document:
    metadata: Document = {"name": pod.name, "namespace": pod.metadata.namespace}
    if pod.metadata.labels:
        metadata["labels"] = dict(pod.metadata.labels)
    known = [moment for moment in since if moment is not None]
    first = min(known) if known and len(known) == len(since) else None
    status = {"phase": pod.status.phase or None, "since": _time(first), "containers": containers}
    return _document("Holder", metadata, {"podUID": pod.uid}, status)


def _containers(pod: Pod, held: Held, options: Options) -> Iterator[Document]:
    for container in pod.containers:
        devices = [
            {"resource": r, "ids": sorted(ids, key=natural)} for r, ids in sorted(held(pod.uid, container.name).items())
        ]
        if not devices:
            continue
        document: Document = {"name": container.name, "devices": devices}
        if (given := options(pod.uid, container.name)) is not None:
            document["options"] = _options(given)
        yield document


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
