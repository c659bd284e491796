"""Building blocks for the requests of bench/_attacks.py."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from devlet.objects.protobuf import envelope as kube_protobuf

LIMIT = 3 << 20
BIG = LIMIT - 4096  # bytes; the rest is for the surrounding document

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/attack.example.com/v1/namespaces/default/widgets"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
TOKEN = "/api/v1/namespaces/default/serviceaccounts/default/token"


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    body: bytes = b""
    content_type: str = JSON
    accept: str = JSON


@dataclass(frozen=True)
class Attack:
    """An expensive request. `before` prepares what `request` needs, `after` reads what it left behind; `codes` are the
    expected status codes."""

    name: str
    make: Callable[[], Request]
    codes: tuple[int, ...] = (200, 201)
    before: tuple[Callable[[], Request], ...] = ()
    after: tuple[Request, ...] = ()
    remove: tuple[str, ...] = field(default=())


def as_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def config_map(data: Any = None, **metadata: Any) -> dict[str, Any]:
    document = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "attack", **metadata}}
    return document if data is None else {**document, "data": data}


def post(path: str, body: Any, content_type: str = JSON, accept: str = JSON) -> Request:
    return Request("POST", path, body if isinstance(body, bytes) else as_json(body), content_type, accept)


YAML_HEAD = b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: attack}\n"


def yaml(rest: bytes) -> Request:
    return post(MAPS, YAML_HEAD + rest, YAML)


def yaml_of(piece: str, count: int) -> Callable[[], Request]:
    return lambda: yaml("".join(piece.format(i=i) for i in range(count)).encode()[:BIG].rpartition(b"\n")[0])


def keys(count: int) -> dict[str, str]:
    return {f"k{i}": "" for i in range(count)}


def in_map(path: str, value: Callable[[], Any]) -> Callable[[], Request]:
    def make() -> Request:
        return post(MAPS, config_map(**{path: value()}))

    return make


def patch(content_type: str, value: Callable[[], Any]) -> Callable[[], Request]:
    return lambda: Request("PATCH", f"{MAPS}/attack", as_json(value()), content_type)


def apply(manager: str, value: Callable[[], Any], path: str = f"{MAPS}/attack") -> Callable[[], Request]:
    return lambda: Request("PATCH", f"{path}?fieldManager={manager}&force=true", as_json(value()), APPLY_PATCH)


def long_list() -> Request:
    return post(WIDGETS, {**widget(), "spec": {"list": list(range(150_000))}})


def widget(**spec: Any) -> dict[str, Any]:
    return {"kind": "Widget", "apiVersion": "attack.example.com/v1", "metadata": {"name": "attack"}, "spec": spec}


def definition(properties: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the definition of widgets, which allow any spec, and optionally more properties."""
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "status": {"type": "object", "properties": properties or {}},
        },
    }
    return {
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": "widgets.attack.example.com"},
        "spec": {
            "group": "attack.example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


DEFINITION = f"{DEFINITIONS}/widgets.attack.example.com"


def device_class(*expressions: str) -> dict[str, Any]:
    return {
        "kind": "DeviceClass",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"name": "attack"},
        "spec": {"selectors": [{"cel": {"expression": text}} for text in expressions]},
    }


def selector(name: str, *expressions: str, codes: tuple[int, ...] = (201, 422)) -> Attack:
    return Attack(name, lambda: post(CLASSES, device_class(*expressions)), codes, remove=(f"{CLASSES}/attack",))


def claim_of(expressions: Callable[[int, int], str], requests: int = 32, selectors: int = 32) -> dict[str, Any]:
    return {
        "kind": "ResourceClaim",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"name": "attack"},
        "spec": {
            "devices": {
                "requests": [
                    {
                        "name": f"r{i}",
                        "exactly": {
                            "deviceClassName": "attack",
                            "selectors": [{"cel": {"expression": expressions(i, j)}} for j in range(selectors)],
                        },
                    }
                    for i in range(requests)
                ]
            }
        },
    }


def claim(name: str, expressions: Callable[[int, int], str], selectors: int = 32) -> Attack:
    def make() -> Request:
        return post(CLAIMS, claim_of(expressions, selectors=selectors))

    return Attack(name, make, (201, 413, 422), remove=(f"{CLAIMS}/attack",))


def chain(i: int, j: int, size: int = 2500) -> str:
    text = f"{i} != {j} + 100"
    while len(text) < size:
        text += f' || device.driver == "{i}.{j}.{len(text)}"'
    return text


def pod(**spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "x"}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "attack"},
        "spec": {"containers": [container], **spec},
    }


def containers(count: int) -> list[dict[str, Any]]:
    limits = {"cpu": "1m", "memory": "1Ki"}
    return [{"name": f"c{i}", "image": "x", "resources": {"requests": limits}} for i in range(count)]


def slice_of(devices: int) -> dict[str, Any]:
    attributes = {f"a{i}": {"string": f"value-{i}"} for i in range(32)}
    return {
        "kind": "ResourceSlice",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"name": "attack"},
        "spec": {
            "driver": "gpu.example.com",
            "allNodes": True,
            "pool": {"name": "attack", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"d{i}", "attributes": attributes} for i in range(devices)],
        },
    }


def protobuf(document: dict[str, Any], path: str) -> Request:
    return post(path, kube_protobuf.encode(document), PROTOBUF)


def nested_groups() -> Request:
    """Return a CRD with its schema nested as protobuf: JSONSchemaProps in JSONSchemaProps; here a raw message of
    unknown fields."""
    inner = b"\x0a\x00" * (BIG // 2)
    envelope = b"\x0a\x0f" + b"\x0a\x02v1" + b"\x12\x09ConfigMap"
    length = len(inner)
    varint = b""
    while length > 127:
        varint += bytes([length & 127 | 128])
        length >>= 7
    return post(MAPS, b"k8s\0" + envelope + b"\x12" + varint + bytes([length]) + inner, PROTOBUF)


def list_patch(operations: list[dict[str, Any]]) -> Callable[[], Request]:
    return lambda: Request("PATCH", f"{WIDGETS}/attack", as_json(operations), JSON_PATCH)


WIDGET_BEFORE = (lambda: post(DEFINITIONS, definition()), long_list)
WIDGET_AFTER = (f"{WIDGETS}/attack", DEFINITION)
MAP = (f"{MAPS}/attack",)
