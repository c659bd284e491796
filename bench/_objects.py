"""The objects that the benchmarks store, as the JSON a client would send.

Devices look like those of the example driver: some identity, a version, a capacity. 128 is the most a slice may hold.
"""

import msgspec

from devlet.objects.documents import Document
from devlet.objects.kinds import RESOURCE_CLAIMS, RESOURCE_SLICES, Resource

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


OBJECTS = {"slice": (RESOURCE_SLICES, slice_document), "claim": (RESOURCE_CLAIMS, claim_document)}


def bodies(object_: str, first: int, count: int) -> tuple[Resource, list[bytes]]:
    """Documents as bytes: thousands of decoded slices would keep the garbage collector busy, not the store."""
    resource, document = OBJECTS[object_]
    return resource, [msgspec.json.encode(document(number)) for number in range(first, first + count)]
