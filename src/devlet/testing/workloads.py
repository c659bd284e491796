"""Objects that scheduling is about, as documents: nodes, classes, slices, templates, claims and pods, in few words.

    node("n1"), device_class(), slice_of("n1", 4), template("one-gpu"), pod("train", template="one-gpu")

Everything is of the driver `gpu.example.com` unless told otherwise.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from devlet.objects.documents import Document

__all__ = ["DRIVER", "claim", "device_class", "node", "pod", "slice_of", "template", "wish"]

DRIVER = "gpu.example.com"
_API = "resource.k8s.io/v1"


def node(name: str, *, labels: Mapping[str, str] = {}, **allocatable: str) -> Document:
    """`allocatable` is what it has besides 4 cpu, 32Gi and 110 places, or instead; `_` stands for `-`."""
    amounts = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    amounts |= {key.replace("_", "-"): value for key, value in allocatable.items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def device_class(name: str = DRIVER, *, driver: str = DRIVER, extended: str = "") -> Document:
    spec: Document = {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]}
    if extended:
        spec["extendedResourceName"] = extended
    return {"apiVersion": _API, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def slice_of(
    node: str, devices: int | Sequence[Document], *, driver: str = DRIVER, generation: int = 1, pool: str = ""
) -> Document:
    """The whole pool of a node."""
    listed = [{"name": f"gpu-{i}"} for i in range(devices)] if isinstance(devices, int) else list(devices)
    pool_spec = {"name": pool or node, "generation": generation, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": node, "pool": pool_spec, "devices": listed}
    return {
        "apiVersion": _API,
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{driver}{f'-{pool}' if pool else ''}"},
        "spec": spec,
    }


def wish(name: str = "gpu", *, count: int = 1, device_class: str = DRIVER, select: str = "", **more: Any) -> Document:
    """A request for devices of a class; `more` goes into it as it is."""
    exactly: Document = {"deviceClassName": device_class, **more}
    if count != 1:
        exactly["count"] = count
    if select:
        exactly["selectors"] = [{"cel": {"expression": select}}]
    return {"name": name, "exactly": exactly}


def _spec(requests: Sequence[Document]) -> Document:
    return {"devices": {"requests": list(requests) or [wish()]}}


def template(name: str, *requests: Document) -> Document:
    return {
        "apiVersion": _API,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"spec": _spec(requests)},
    }


def claim(name: str, *requests: Document) -> Document:
    return {
        "apiVersion": _API,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": _spec(requests),
    }


def pod(
    name: str,
    *,
    template: str = "",
    claim: str = "",
    requests: Mapping[str, str] = {},
    annotations: Mapping[str, str] = {},
    **spec: Any,
) -> Document:
    """A pod with one container, which uses a claim or one that is made from a template. `spec` goes in as it is."""
    container: Document = {"name": "main", "image": "registry.example.com/train:1"}
    if requests:
        container["resources"] = {"requests": dict(requests), "limits": dict(requests)}
    found: Document = {"containers": [container], **spec}
    source = {"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": template}
    if claim or template:
        container.setdefault("resources", {})["claims"] = [{"name": "gpu"}]
        found["resourceClaims"] = [{"name": "gpu", **source}]
    metadata: Document = {"name": name, "namespace": "default"}
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": found}
