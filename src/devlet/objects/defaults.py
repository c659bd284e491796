"""What the server fills in where an object says nothing.

Defaults are applied to documents in their storage version, on every write. They are idempotent: a stored object has
them all, so an update only adds to what the client sent. What has to look at other objects is not done here.
"""

import base64
from collections.abc import Callable
from datetime import datetime

from devlet.objects import defaults_resource as resource
from devlet.objects.defaults_pod import default_pod
from devlet.objects.documents import Document
from devlet.objects.subdocuments import ensure, fill, fill_empty, mapping, mappings

__all__ = ["default"]

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


def default(document: Document, *, now: datetime, old: Document | None = None) -> Document:
    """The document with its defaults. It is changed in place: give a private copy.

    `old` is the stored object on an update and None on a create; it is only read. `now` has a time zone. The name of
    the object must be known already. Kinds without defaults and values of the wrong shape are left as they are."""
    key = document.get("apiVersion"), document.get("kind")
    if (apply := _DEFAULTS.get(key)) is not None:
        apply(document, now, old)
    return document


_Apply = Callable[[Document, datetime, Document | None], None]


def _plain(apply: Callable[[Document], None]) -> _Apply:
    return lambda document, now, old: apply(document)


def _default_node(node: Document) -> None:
    ensure(node, "spec")
    status = ensure(node, "status")
    if (capacity := mapping(status, "capacity")) is not None:
        fill(status, "allocatable", dict(capacity))
    fill(ensure(ensure(status, "daemonEndpoints"), "kubeletEndpoint"), "Port", 0)
    info = ensure(status, "nodeInfo")
    for key in _NODE_INFO:
        fill(info, key, "")


def _default_namespace(namespace: Document, now: datetime, old: Document | None) -> None:
    """Finalizers only at the start: later their absence means that the content is gone."""
    metadata = ensure(namespace, "metadata")
    if name := metadata.get("name"):
        ensure(metadata, "labels")[NAMESPACE_LABEL] = name
    spec = ensure(namespace, "spec")
    if old is None and isinstance(finalizers := spec.get("finalizers") or [], list) and FINALIZER not in finalizers:
        spec["finalizers"] = [*finalizers, FINALIZER]
    fill_empty(ensure(namespace, "status"), "phase", "Active")


def _default_secret(secret: Document) -> None:
    """`stringData` can only be written: it is merged into `data`, over what is there."""
    fill_empty(secret, "type", "Opaque")
    texts = mapping(secret, "stringData")
    if texts is not None and all(isinstance(text, str) for text in texts.values()):
        ensure(secret, "data").update({key: _base64(text) for key, text in texts.items()})
        del secret["stringData"]


def _base64(text: str) -> str:
    return base64.b64encode(text.encode(errors="replace")).decode()


def _default_event(event: Document) -> None:
    """No values, but the keys that a core event always has."""
    for key in ("metadata", "involvedObject", "source"):
        ensure(event, key)
    for key in ("firstTimestamp", "lastTimestamp", "eventTime"):
        event.setdefault(key, None)
    for key in ("reportingComponent", "reportingInstance"):
        fill(event, key, "")


def _default_priority_class(priority_class: Document) -> None:
    fill(priority_class, "value", 0)
    fill(priority_class, "preemptionPolicy", "PreemptLowerPriority")


def _default_service(service: Document) -> None:
    spec = ensure(service, "spec")
    fill_empty(spec, "type", "ClusterIP")
    fill_empty(spec, "sessionAffinity", "None")
    for port in mappings(spec, "ports"):
        fill_empty(port, "protocol", "TCP")
        if "port" in port:
            fill_empty(port, "targetPort", port["port"])


def _default_volume(volume: Document) -> None:
    spec = ensure(volume, "spec")
    fill_empty(spec, "persistentVolumeReclaimPolicy", "Retain")
    fill(spec, "volumeMode", "Filesystem")
    fill_empty(ensure(volume, "status"), "phase", "Pending")


def _default_volume_claim(claim: Document) -> None:
    fill(ensure(claim, "spec"), "volumeMode", "Filesystem")
    fill_empty(ensure(claim, "status"), "phase", "Pending")


def _default_storage_class(storage_class: Document) -> None:
    fill(storage_class, "reclaimPolicy", "Delete")
    fill(storage_class, "volumeBindingMode", "Immediate")


_DEFAULTS: dict[tuple[object, object], _Apply] = {
    ("v1", "Pod"): lambda pod, now, old: default_pod(pod, old),
    ("v1", "Node"): _plain(_default_node),
    ("v1", "Namespace"): _default_namespace,
    ("v1", "Secret"): _plain(_default_secret),
    ("v1", "Event"): _plain(_default_event),
    ("v1", "Service"): _plain(_default_service),
    ("v1", "PersistentVolume"): _plain(_default_volume),
    ("v1", "PersistentVolumeClaim"): _plain(_default_volume_claim),
    ("storage.k8s.io/v1", "StorageClass"): _plain(_default_storage_class),
    ("scheduling.k8s.io/v1", "PriorityClass"): _plain(_default_priority_class),
    ("resource.k8s.io/v1", "ResourceClaim"): _plain(resource.default_claim),
    ("resource.k8s.io/v1", "ResourceClaimTemplate"): _plain(resource.default_template),
    ("resource.k8s.io/v1", "ResourceSlice"): lambda slice_, now, old: resource.default_slice(slice_, now),
    ("resource.k8s.io/v1beta2", "DeviceTaintRule"): resource.default_taint_rule,
    ("resource.k8s.io/v1alpha3", "ResourcePoolStatusRequest"): _plain(resource.default_pool_status_request),
}
