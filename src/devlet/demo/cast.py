"""The objects that appear in the tour: fake GPUs on one node, and two workloads that want some of them."""

from devlet.objects.documents import Document

NAMESPACE = "demo"
DRIVER = "gpu.example.com"
NODE = "laptop"

_RESOURCE_API = "resource.k8s.io/v1"


def namespace() -> Document:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}


def device_class() -> Document:
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    return _resource("DeviceClass", DRIVER, {"selectors": [selector]})


def slice_of(*devices: str, generation: int = 1) -> Document:
    """What a driver publishes: its devices on this node."""
    spec = {
        "driver": DRIVER,
        "nodeName": NODE,
        "pool": {"name": NODE, "generation": generation, "resourceSliceCount": 1},
        "devices": [_gpu(device) for device in devices],
    }
    return _resource("ResourceSlice", "laptop-gpus", spec)


def claim(name: str, count: int = 1) -> Document:
    return _namespaced(_resource("ResourceClaim", name, _gpus(count)))


def template(name: str) -> Document:
    return _namespaced(_resource("ResourceClaimTemplate", name, {"spec": _gpus(1)}))


def pod(name: str, **source: str) -> Document:
    """`source` is resourceClaimName=… or resourceClaimTemplateName=…"""
    container = {"name": "main", "image": "registry.example.com/train:1", "resources": {"claims": [{"name": "gpu"}]}}
    spec = {"containers": [container], "resourceClaims": [{"name": "gpu", **source}]}
    return _namespaced({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})


def _gpu(name: str) -> Document:
    attributes = {"model": {"string": "Imaginary 9000"}, "index": {"int": int(name.rpartition("-")[2])}}
    return {"name": name, "attributes": attributes, "capacity": {"memory": {"value": "40Gi"}}}


def _gpus(count: int) -> Document:
    return {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": DRIVER, "count": count}}]}}


def _resource(kind: str, name: str, spec: Document) -> Document:
    return {"apiVersion": _RESOURCE_API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _namespaced(document: Document) -> Document:
    document["metadata"]["namespace"] = NAMESPACE
    return document
