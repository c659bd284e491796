"""The objects that the benchmarks store, encoded as clients send them: as JSON, or as protobuf like Go clients.

Devices resemble those of the example driver: some identity, a version, a capacity. 128 is the maximum per slice.
"""

from collections.abc import Callable

import msgspec

from devlet.objects.documents import Document
from devlet.objects.kinds import CONFIG_MAPS, RESOURCE_CLAIMS, RESOURCE_SLICES, Resource
from devlet.objects.protobuf import envelope as kube_protobuf

DEVICES_PER_SLICE = 128


def slice_document(number: int) -> Document:
    node = f"node-{number:06d}"
    return {
        "kind": "ResourceSlice",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"name": f"{node}-gpu.example.com"},
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "nodeName": node,
            "devices": [_device(number, i) for i in range(DEVICES_PER_SLICE)],
        },
    }


def _device(number: int, i: int) -> Document:
    return {
        "name": f"gpu-{i}",
        "attributes": {
            "driverVersion": {"version": "1.0.0"},
            "healthy": {"bool": True},
            "index": {"int": i},
            "model": {"string": "LATEST-GPU-MODEL"},
            "numa": {"int": i // 16},
            "uuid": {"string": f"gpu-{number:08x}-99e9-c746-8531-{i:012x}"},
        },
        "capacity": {"memory": {"value": "80Gi"}},
    }


def claim_document(number: int) -> Document:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
    return {
        "kind": "ResourceClaim",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"name": f"claim-{number:06d}", "namespace": "default"},
        "spec": {"devices": {"requests": [request]}},
    }


def config_map_document(number: int) -> Document:
    return {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": f"settings-{number:06d}", "namespace": "default"},
        "data": {"number": str(number), "text": "x" * 64},
    }


OBJECTS: dict[str, tuple[Resource, Callable[[int], Document]]] = {
    "slice": (RESOURCE_SLICES, slice_document),
    "claim": (RESOURCE_CLAIMS, claim_document),
    "config map": (CONFIG_MAPS, config_map_document),
}
JSON, PROTOBUF = "application/json", "application/vnd.kubernetes.protobuf"
ENCODE: dict[str, Callable[[Document], bytes]] = {JSON: msgspec.json.encode, PROTOBUF: kube_protobuf.encode}


def bodies(object_: str, first: int, count: int, content_type: str = JSON) -> tuple[Resource, list[bytes]]:
    """Return documents as bytes: thousands of decoded slices would mainly keep the garbage collector busy."""
    resource, document = OBJECTS[object_]
    encode = ENCODE[content_type]
    return resource, [encode(document(number)) for number in range(first, first + count)]


def collection_path(resource: Resource) -> str:
    prefix = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.api_version}"
    return f"{prefix}{'/namespaces/default' if resource.namespaced else ''}/{resource.plural}"
