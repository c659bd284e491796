"""Defaults of the core kinds, and of storage and priority classes. Each function modifies its argument.

`kind_rules` assigns the defaults to kinds.
"""

import base64
from datetime import datetime

from devlet.objects.documents import Document
from devlet.objects.subdocuments import ensure, fill, fill_empty, mapping, mappings

__all__ = [
    "FINALIZER",
    "NAMESPACE_LABEL",
    "default_event",
    "default_namespace",
    "default_node",
    "default_priority_class",
    "default_secret",
    "default_service",
    "default_storage_class",
    "default_volume",
    "default_volume_claim",
]

_NODE_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)
NAMESPACE_LABEL = "kubernetes.io/metadata.name"
FINALIZER = "kubernetes"


def default_node(node: Document) -> None:
    ensure(node, "spec")
    status = ensure(node, "status")
    if (capacity := mapping(status, "capacity")) is not None:
        fill(status, "allocatable", dict(capacity))
    fill(ensure(ensure(status, "daemonEndpoints"), "kubeletEndpoint"), "Port", 0)
    info = ensure(status, "nodeInfo")
    for key in _NODE_INFO:
        fill(info, key, "")


def default_namespace(namespace: Document, now: datetime, old: Document | None) -> None:
    """Set the finalizers, only on create: later a missing finalizer means that the content is gone."""
    metadata = ensure(namespace, "metadata")
    if name := metadata.get("name"):
        ensure(metadata, "labels")[NAMESPACE_LABEL] = name
    spec = ensure(namespace, "spec")
    if old is None and isinstance(finalizers := spec.get("finalizers") or [], list) and FINALIZER not in finalizers:
        spec["finalizers"] = [*finalizers, FINALIZER]
    fill_empty(ensure(namespace, "status"), "phase", "Active")


def default_secret(secret: Document) -> None:
    """Merge `stringData`, which is write-only, into `data`. It overrides existing values."""
    fill_empty(secret, "type", "Opaque")
    texts = mapping(secret, "stringData")
    if texts is not None and all(isinstance(text, str) for text in texts.values()):
        ensure(secret, "data").update({key: _base64(text) for key, text in texts.items()})
        del secret["stringData"]


def _base64(text: str) -> str:
    return base64.b64encode(text.encode(errors="replace")).decode()


def default_event(event: Document) -> None:
    """Add the keys that a core event always has, without values."""
    for key in ("metadata", "involvedObject", "source"):
        ensure(event, key)
    for key in ("firstTimestamp", "lastTimestamp", "eventTime"):
        event.setdefault(key, None)
    for key in ("reportingComponent", "reportingInstance"):
        fill(event, key, "")


def default_priority_class(priority_class: Document) -> None:
    fill(priority_class, "value", 0)
    fill(priority_class, "preemptionPolicy", "PreemptLowerPriority")


def default_service(service: Document) -> None:
    spec = ensure(service, "spec")
    fill_empty(spec, "type", "ClusterIP")
    fill_empty(spec, "sessionAffinity", "None")
    for port in mappings(spec, "ports"):
        fill_empty(port, "protocol", "TCP")
        if "port" in port:
            fill_empty(port, "targetPort", port["port"])


def default_volume(volume: Document) -> None:
    spec = ensure(volume, "spec")
    fill_empty(spec, "persistentVolumeReclaimPolicy", "Retain")
    fill(spec, "volumeMode", "Filesystem")
    fill_empty(ensure(volume, "status"), "phase", "Pending")


def default_volume_claim(claim: Document) -> None:
    fill(ensure(claim, "spec"), "volumeMode", "Filesystem")
    fill_empty(ensure(claim, "status"), "phase", "Pending")


def default_storage_class(storage_class: Document) -> None:
    fill(storage_class, "reclaimPolicy", "Delete")
    fill(storage_class, "volumeBindingMode", "Immediate")
