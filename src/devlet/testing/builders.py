"""Build API objects in a few words: device classes, slices, claims, templates and pods, as plain documents.

    resource_slice("node", [device("gpu-0", {"model": "a100"}, {"memory": "40Gi"})])
    device_class()
    claim("training", select='device.attributes["gpu.example.com"].model == "a100"')
    pod("train", claim="training")

By default everything is of the driver `gpu.example.com`, whose class has the same name, and in the namespace `default`.
Documents may be changed before they are used. Other keyword arguments are added to the spec unchanged, with the names
of the API: `pod("p", priorityClassName="high")`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from devlet.objects.documents import Document
from devlet.sdk.values import Version

__all__ = [
    "DRIVER",
    "Value",
    "Version",
    "claim",
    "container",
    "device",
    "device_class",
    "pod",
    "request",
    "resource_slice",
    "template",
]

DRIVER = "gpu.example.com"
IMAGE = "registry.example.com/train:1"  # the runtime `none` pulls nothing
CONTAINER = "main"
ENTRY = "gpu"  # of a pod that has one claim

_API = "resource.k8s.io/v1"
_RUNTIME = "devlet.dev/"

Value = str | int | bool | Version
Amount = str | int


# What drivers publish


def device(
    name: str,
    attributes: Mapping[str, Value | Sequence[Value]] = {},
    capacity: Mapping[str, Amount] = {},
    **more: Any,
) -> Document:
    """Return a device of a slice. The type of an attribute is that of its value; `Version("1.2.3")` is a semantic
    version."""
    found: Document = {"name": name}
    if attributes:
        found["attributes"] = {key: _attribute(value) for key, value in attributes.items()}
    if capacity:
        found["capacity"] = {key: {"value": str(amount)} for key, amount in capacity.items()}
    return found | more


def _attribute(value: Value | Sequence[Value]) -> Document:
    if isinstance(value, str | int | Version):
        return {_type(value): _plain(value)}
    return {f"{_type(value[0])}s": [_plain(each) for each in value]}


def _type(value: Value) -> str:
    match value:
        case bool():
            return "bool"
        case int():
            return "int"
        case Version():
            return "version"
    return "string"


def _plain(value: Value) -> str | int | bool:
    return value.text if isinstance(value, Version) else value


def resource_slice(
    node: str,
    devices: int | Iterable[Document | str] = 1,
    *,
    driver: str = DRIVER,
    pool: str = "",
    generation: int = 1,
    slices: int = 1,
    name: str = "",
    **spec: Any,
) -> Document:
    """Return a slice with devices of a node: a number of them (`gpu-0`, …), or a list of names or results of `device`.
    The pool has the name of the node, and is complete unless it has more `slices` than this one."""
    listed = [f"gpu-{i}" for i in range(devices)] if isinstance(devices, int) else list(devices)
    return {
        "apiVersion": _API,
        "kind": "ResourceSlice",
        "metadata": {"name": name or f"{node}-{driver}{f'-{pool}' if pool else ''}"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": pool or node, "generation": generation, "resourceSliceCount": slices},
            "devices": [{"name": each} if isinstance(each, str) else each for each in listed],
            **spec,
        },
    }


def device_class(
    name: str = "", *, driver: str = DRIVER, select: str = "", extended: str = "", **spec: Any
) -> Document:
    """Return a class with all devices of a driver, or only those for which the CEL expression `select` is true. By
    default its name is that of the driver. With `extended` pods can also ask for it as an extended resource of that
    name."""
    expressions = [f'device.driver == "{driver}"', *([select] if select else [])]
    found: Document = {"selectors": [{"cel": {"expression": each}} for each in expressions]}
    if extended:
        found["extendedResourceName"] = extended
    return {"apiVersion": _API, "kind": "DeviceClass", "metadata": {"name": name or driver}, "spec": found | spec}


# What users ask for


def request(
    name: str = ENTRY, *, device_class: str = DRIVER, count: int = 1, select: str = "", **exactly: Any
) -> Document:
    """Return a request for `count` devices of a class, for which `select` (CEL) is true."""
    found: Document = {"deviceClassName": device_class, **exactly}
    if count != 1:
        found["count"] = count
    if select:
        found["selectors"] = [{"cel": {"expression": select}}]
    return {"name": name, "exactly": found}


def claim(
    name: str,
    *requests: Document,
    device_class: str = DRIVER,
    count: int = 1,
    select: str = "",
    namespace: str = "default",
    **devices: Any,
) -> Document:
    """Return a claim with these requests, or with one that `device_class`, `count` and `select` describe. Other
    arguments about devices, such as `constraints` and `config`, are added unchanged."""
    return {
        "apiVersion": _API,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": _claim_spec(requests, device_class, count, select, devices),
    }


def template(
    name: str,
    *requests: Document,
    device_class: str = DRIVER,
    count: int = 1,
    select: str = "",
    namespace: str = "default",
    **devices: Any,
) -> Document:
    """Return a template with the arguments of `claim`. Each pod that names the template gets a claim of its own."""
    return {
        "apiVersion": _API,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": _claim_spec(requests, device_class, count, select, devices)},
    }


def _claim_spec(
    requests: Sequence[Document], device_class: str, count: int, select: str, devices: Mapping[str, Any]
) -> Document:
    wanted = list(requests) or [request(device_class=device_class, count=count, select=select)]
    return {"devices": {"requests": wanted, **devices}}


def container(
    name: str = CONTAINER,
    *,
    limits: Mapping[str, Amount] = {},
    claims: Iterable[str | Document] = (),
    image: str = IMAGE,
    **more: Any,
) -> Document:
    """Return a container with these amounts of resources (of device plugins, `cpu`, …) and these entries of the pod's
    claims. An entry can also be `{"name": entry, "request": request}`."""
    found: Document = {"name": name, "image": image}
    amounts = {key: str(amount) for key, amount in limits.items()}
    used = [{"name": each} if isinstance(each, str) else each for each in claims]
    if amounts:
        found["resources"] = {"requests": amounts, "limits": dict(amounts)}
    if used:
        found.setdefault("resources", {})["claims"] = used
    return found | more


def pod(
    name: str,
    *,
    claim: str = "",
    template: str = "",
    claims: Mapping[str, str] = {},
    templates: Mapping[str, str] = {},
    limits: Mapping[str, Amount] = {},
    containers: Sequence[Document] = (),
    node: str = "",
    restart: str = "",
    run_for: str = "",
    exit_code: int | None = None,
    annotations: Mapping[str, str] = {},
    labels: Mapping[str, str] = {},
    namespace: str = "default",
    **spec: Any,
) -> Document:
    """Return a pod with one container, `main`, that uses all its claims and the resources in `limits`, or with these
    `containers`.

    `claim` and `template` name one claim or template; `claims` and `templates` map several to their entries. `node`
    binds the pod without a scheduler. `run_for` ("2s") and `exit_code` determine how its containers end; without them
    they run until the pod is deleted."""
    entries = {name: {"resourceClaimName": each} for name, each in claims.items()}
    entries |= {name: {"resourceClaimTemplateName": each} for name, each in templates.items()}
    if claim or template:
        entries[ENTRY] = {"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": template}
    found: Document = {"containers": list(containers) or [container(limits=limits, claims=entries)], **spec}
    if entries:
        found["resourceClaims"] = [{"name": name, **source} for name, source in entries.items()]
    found |= {key: value for key, value in {"nodeName": node, "restartPolicy": restart}.items() if value}
    ends = {"run-for": run_for, "exit-code": "" if exit_code is None else str(exit_code)}
    notes = dict(annotations) | {_RUNTIME + key: value for key, value in ends.items() if value}
    metadata: Document = {"name": name, "namespace": namespace}
    metadata |= {key: dict(value) for key, value in {"labels": labels, "annotations": notes}.items() if value}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": found}
