"""The objects of the scheduling workloads: nodes, a slice of each, a class, templates and pods, as plain as possible.

The nodes have no agent and no driver: only the scheduler and the claim controller have work.
"""

from devlet.objects.documents import Document

DRIVER = "test-driver.cdi.k8s.io"
CLASS, TEMPLATE = "test-class", "test-claim-template"
_RESOURCE_API = "resource.k8s.io/v1"


def node(name: str) -> Document:
    room = {"pods": "110", "cpu": "4", "memory": "32Gi"}
    status = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def resource_slice(node_name: str, devices: int) -> Document:
    spec = {
        "driver": DRIVER,
        "nodeName": node_name,
        "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
        "devices": [_device(number) for number in range(devices)],
    }
    return _resource("ResourceSlice", node_name, spec)


def device_class() -> Document:
    return _resource("DeviceClass", CLASS, {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]})


def namespace(name: str) -> Document:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def claim_template(in_namespace: str) -> Document:
    request = {"name": "req-0", "exactly": {"deviceClassName": CLASS}}
    document = _resource("ResourceClaimTemplate", TEMPLATE, {"spec": {"devices": {"requests": [request]}}})
    document["metadata"]["namespace"] = in_namespace
    return document


def pod(in_namespace: str, number: int, scheduler: str) -> Document:
    container = {"name": "pause", "image": "registry.k8s.io/pause:3.10.1", "resources": {"claims": [{"name": "one"}]}}
    spec = {
        "containers": [container],
        "resourceClaims": [{"name": "one", "resourceClaimTemplateName": TEMPLATE}],
        "schedulerName": scheduler,
    }
    metadata = {"name": f"pod-{number:05d}", "namespace": in_namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _device(number: int) -> Document:
    return {
        "name": f"instance-{number}",
        "attributes": {
            "model": {"string": "A100"},
            "family": {"string": "GPU"},
            "driverVersion": {"version": "1.2.3"},
            "dra.example.com/numa": {"int": number},
        },
        "capacity": {"memory": {"value": "1Gi"}},
    }


def _resource(kind: str, name: str, spec: Document) -> Document:
    return {"apiVersion": _RESOURCE_API, "kind": kind, "metadata": {"name": name}, "spec": spec}
