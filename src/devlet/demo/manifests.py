"""The objects that the demo creates: a class, claim templates, a claim, and pods that ask for FPGAs and GPUs."""

from devlet.objects.documents import Document

NAMESPACE = "demo"
NODE = "laptop"
FPGA = "example.com/fpga"  # the resource of the device plugin
GPU_DRIVER = "gpu.example.com"

_RESOURCE_API = "resource.k8s.io/v1"


def namespace() -> Document:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}


def device_class() -> Document:
    selector = {"cel": {"expression": f'device.driver == "{GPU_DRIVER}"'}}
    return _resource("DeviceClass", GPU_DRIVER, {"selectors": [selector]})


def claim(name: str) -> Document:
    return _namespaced(_resource("ResourceClaim", name, _one_gpu()))


def template(name: str, memory: str = "") -> Document:
    """Return a template for claims of one GPU, with at least this much memory if it is given."""
    return _namespaced(_resource("ResourceClaimTemplate", name, {"spec": _one_gpu(memory)}))


def pod(name: str, *, fpgas: int = 0, **source: str) -> Document:
    """Return a pod that asks for FPGAs or for a GPU; `source` is resourceClaimName=… or resourceClaimTemplateName=…"""
    container: Document = {"name": "main", "image": "registry.example.com/work:1", "resources": {}}
    spec: Document = {"containers": [container]}
    if fpgas:
        container["resources"]["limits"] = {FPGA: str(fpgas)}
    if source:
        container["resources"]["claims"] = [{"name": "gpu"}]
        spec["resourceClaims"] = [{"name": "gpu", **source}]
    return _namespaced({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})


def _one_gpu(memory: str = "") -> Document:
    request: Document = {"deviceClassName": GPU_DRIVER}
    if memory:
        enough = f'device.capacity["{GPU_DRIVER}"].memory.compareTo(quantity("{memory}")) >= 0'
        request["selectors"] = [{"cel": {"expression": enough}}]
    return {"devices": {"requests": [{"name": "gpu", "exactly": request}]}}


def _resource(kind: str, name: str, spec: Document) -> Document:
    return {"apiVersion": _RESOURCE_API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _namespaced(document: Document) -> Document:
    document["metadata"]["namespace"] = NAMESPACE
    return document
