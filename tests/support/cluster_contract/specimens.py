"""Small valid objects for the contract, under names that no other test uses."""

import secrets
from typing import Any

from devlet.objects.documents import Document
from devlet.objects.kinds import RESOURCE_CLAIMS, RESOURCE_SLICES, Resource

CLAIMS_V1BETA1 = Resource(RESOURCE_CLAIMS.kind, "resource.k8s.io/v1beta1")
CLAIMS_V1BETA2 = Resource(RESOURCE_CLAIMS.kind, "resource.k8s.io/v1beta2")
SLICES_V1BETA1 = Resource(RESOURCE_SLICES.kind, "resource.k8s.io/v1beta1")

DRIVER = "gpu.example.com"
POOL = "pool"


def unique(prefix: str = "x") -> str:
    return f"{prefix}-{secrets.token_hex(4)}"


def named(name: str = "", **metadata: Any) -> Document:
    """An object of a kind that needs no spec (ConfigMap, Secret, ServiceAccount, Namespace, Node)."""
    return {"metadata": {"name": name or unique(), **metadata}}


def config_map(name: str = "", *, data: dict[str, str] | None = None, **metadata: Any) -> Document:
    return {**named(name, **metadata), "data": {"k": "v"} if data is None else data}


def pod(name: str = "", *, spec: Document | None = None, **metadata: Any) -> Document:
    container = {"name": "main", "image": "registry.example.com/app:1"}
    return {**named(name, **metadata), "spec": {"containers": [container], **(spec or {})}}


def node(name: str = "", *, status: Document | None = None, **metadata: Any) -> Document:
    return {**named(name, **metadata), "status": status or {}}


def lease(name: str = "", **metadata: Any) -> Document:
    return {**named(name, **metadata), "spec": {"holderIdentity": "me", "leaseDurationSeconds": 40}}


def event(namespace: str, name: str = "", **members: Any) -> Document:
    """In the shape of v1."""
    return {
        **named(name),
        "involvedObject": {"kind": "Pod", "namespace": namespace, "name": "p", "apiVersion": "v1"},
        "reason": "Tested",
        "message": "it happened",
        "type": "Normal",
        "source": {"component": "tester"},
        "firstTimestamp": "2024-01-02T03:04:05Z",
        "lastTimestamp": "2024-01-02T03:04:05Z",
        "count": 1,
        **members,
    }


def claim(name: str = "", **metadata: Any) -> Document:
    """In the shape of resource.k8s.io/v1 and v1beta2."""
    request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER}}
    return {**named(name, **metadata), "spec": {"devices": {"requests": [request]}}}


def allocation(*devices: str) -> Document:
    results = [{"request": "gpu", "driver": DRIVER, "pool": POOL, "device": device} for device in devices]
    return {"devices": {"results": results}}


def claim_template(name: str = "", **metadata: Any) -> Document:
    return {**named(name, **metadata), "spec": {"spec": claim()["spec"]}}


def device_class(name: str = "", **metadata: Any) -> Document:
    return {**named(name, **metadata), "spec": {}}


def resource_slice(name: str = "", *, node_name: str = "n1", driver: str = DRIVER, **metadata: Any) -> Document:
    """In the shape of resource.k8s.io/v1 and v1beta2."""
    pool = {"name": unique("pool"), "generation": 1, "resourceSliceCount": 1}
    device = {"name": "d0", "attributes": {"model": {"string": "big"}}, "capacity": {"memory": {"value": "1Gi"}}}
    return {
        **named(name, **metadata),
        "spec": {"driver": driver, "pool": pool, "nodeName": node_name, "devices": [device]},
    }


def owner_reference(api_version: str, kind: str, owner: Document, **more: Any) -> Document:
    metadata = owner["metadata"]
    return {"apiVersion": api_version, "kind": kind, "name": metadata["name"], "uid": metadata["uid"], **more}


def version(document: Document) -> int:
    return int(document["metadata"]["resourceVersion"])
