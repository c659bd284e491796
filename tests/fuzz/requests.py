"""Random requests to a Kubernetes API: every verb, every kind of patch, subresources, odd queries."""

import json
from dataclasses import dataclass
from random import Random
from typing import Any
from urllib.parse import quote

from devlet.objects.custom_resources import DEFINITION
from devlet.objects.documents import Document
from devlet.objects.kinds import BUILT_IN, Kind, Resource
from tests.fuzz.documents import NAMES, ODD_STRINGS, document, odd
from tests.fuzz.specimens import SPECIMENS

WIDGET = Kind("Widget", "widgets", ("example.com/v1",), subresources=("status",), counts_generation=True)
KINDS = (*BUILT_IN, DEFINITION, WIDGET)
JSON = "application/json"
PATCHES = ("json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml")
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
SPECIAL = (
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/apis/example.com/v1",
    "/apis",
    "/api",
    "/metrics",
    "/readyz?verbose",
)
QUERY: dict[str, tuple[str, ...]] = {
    "limit": ("1", "0", "-1", "x", "9" * 30),
    "continue": ("x", "e30=", ""),
    "labelSelector": ("a=b", "a in (", "!", "a,,b", "a notin (b,c)"),
    "fieldSelector": ("metadata.name=a", "spec.nodeName=", "x", "status.phase!=Running"),
    "resourceVersion": ("0", "1", "999999999999", "x", "-1", "9" * 40),
    "resourceVersionMatch": ("Exact", "NotOlderThan", "x"),
    "dryRun": ("All", "x"),
    "fieldManager": ("m", "x" * 200, "\0"),
    "fieldValidation": ("Strict", "Ignore", "Warn", "x"),
    "force": ("true", "x"),
    "pretty": ("true", "1", "x"),
    "includeObject": ("Object", "None", "x"),
    "timeoutSeconds": ("x", "-1", "9" * 30),
    "gracePeriodSeconds": ("0", "-1", "x", "9" * 30),
    "propagationPolicy": ("Foreground", "Orphan", "x"),
}


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    body: bytes | None = None
    content_type: str = JSON
    accept: str = JSON

    def __str__(self) -> str:
        body = "" if self.body is None else f" {self.content_type} {self.body[:1500]!r}"
        return f"{self.method} {self.path} (Accept: {self.accept}){body}"


def request(random: Random) -> Request:
    resource = _resource(random)
    choice = random.random()
    if choice < 0.35:
        return _write(random, resource)
    if choice < 0.6:
        return _patch(random, resource)
    if choice < 0.72:
        return _subresource(random)
    if choice < 0.9:
        return _read(random, resource)
    if choice < 0.97:
        return _delete(random, resource)
    return Request("GET", random.choice(SPECIAL))


def _resource(random: Random) -> Resource:
    kind = random.choice(KINDS)
    return Resource(kind, random.choice(kind.api_versions))


def _path(random: Random, resource: Resource, name: str = "", subresource: str = "") -> str:
    namespace = "/namespaces/default" if resource.namespaced else ""
    parts = [resource.path + namespace, resource.plural, quote(name, safe=""), subresource]
    return "/".join(part for part in parts if part) + _query(random)


def _query(random: Random) -> str:
    if random.random() < 0.7:
        return ""
    keys = random.sample(sorted(QUERY), random.choice((1, 1, 2, 4)))
    said = (f"{key}={quote(random.choice((*QUERY[key], *ODD_STRINGS[:6])), safe='')}" for key in keys)
    return "?" + "&".join(said)


def _name(random: Random, resource: Resource) -> str:
    if resource.kind == DEFINITION:
        return "widgets.example.com"
    return random.choice(NAMES) if random.random() < 0.97 else random.choice(ODD_STRINGS)


def _write(random: Random, resource: Resource) -> Request:
    body = document(random, resource.kind, resource.api_version, SPECIMENS)
    if random.random() < 0.6:
        return _encoded(random, "POST", _path(random, resource), body)
    name = body["metadata"].get("name") if isinstance(body.get("metadata"), dict) else None
    name = name if isinstance(name, str) else _name(random, resource)
    subresource = random.choice(("", *resource.kind.subresources))
    return _encoded(random, "PUT", _path(random, resource, name, subresource), body)


def _encoded(random: Random, method: str, path: str, body: Any) -> Request:
    blob = json.dumps(body).encode()
    if random.random() < 0.1:
        return Request(method, path, blob, "application/yaml")  # JSON is YAML
    if random.random() < 0.02:
        blob = blob[: random.randrange(len(blob) + 1)]
    return Request(method, path, blob, JSON, random.choice((JSON, JSON, TABLE, METADATA)))


def _patch(random: Random, resource: Resource) -> Request:
    type_ = random.choice(PATCHES)
    whole = document(random, resource.kind, resource.api_version, SPECIMENS)
    name = _name(random, resource)
    body: Any = whole
    if type_ == PATCHES[0]:
        body = [_operation(random, whole) for _ in range(random.choice((1, 1, 2, 5)))]
    elif type_ == PATCHES[3]:
        if isinstance(whole.get("metadata"), dict) and random.random() < 0.9:
            whole["metadata"]["name"] = name
            whole["metadata"].pop("managedFields", None)
    elif random.random() < 0.7:
        body = {key: whole[key] for key in random.sample(list(whole), min(len(whole), 2))}
    if random.random() < 0.02:
        body = odd(random)
    path = _path(random, resource, name, random.choice(("", "", *resource.kind.subresources)))
    if type_ == PATCHES[3] and "fieldManager" not in path:
        path += ("&" if "?" in path else "?") + f"fieldManager=m&force={random.choice(('true', 'false'))}"
    return Request("PATCH", path, json.dumps(body).encode(), f"application/{type_}")


def _operation(random: Random, whole: Document) -> Any:
    path = ""
    part: Any = whole
    for _ in range(random.choice((1, 2, 3, 4))):
        if not isinstance(part, dict | list) or not part:
            break
        key: Any = random.choice(list(part)) if isinstance(part, dict) else random.randrange(len(part))
        path, part = f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}", part[key]
    op = random.choice(("add", "remove", "replace", "move", "copy", "test", "x"))
    made = {"op": op, "path": path, "from": random.choice(("/metadata", "/spec", path)), "value": odd(random)}
    return made if random.random() < 0.97 else odd(random)


def _subresource(random: Random) -> Request:
    """What is created below an object, and reviews."""
    group, kind, where = random.choice(
        [
            ("v1", "Binding", "/api/v1/namespaces/default/pods/{}/binding"),
            ("policy/v1", "Eviction", "/api/v1/namespaces/default/pods/{}/eviction"),
            ("authentication.k8s.io/v1", "TokenRequest", "/api/v1/namespaces/default/serviceaccounts/{}/token"),
            ("authentication.k8s.io/v1", "TokenReview", "/apis/authentication.k8s.io/v1/tokenreviews"),
            *(
                ("authorization.k8s.io/v1", f"{kind}Review", f"/apis/authorization.k8s.io/v1/{kind.lower()}reviews")
                for kind in ("SubjectAccess", "SelfSubjectAccess", "SelfSubjectRules")
            ),
        ]
    )
    body = document(random, Kind(kind, kind.lower(), (group,)), group, SPECIMENS)
    name = random.choice((*NAMES, "default"))
    if isinstance(body.get("metadata"), dict) and random.random() < 0.8:
        body["metadata"]["name"] = name
    return Request("POST", where.format(name) + _query(random), json.dumps(body).encode())


def _read(random: Random, resource: Resource) -> Request:
    name = random.choice(("", _name(random, resource)))
    return Request("GET", _path(random, resource, name), accept=random.choice((JSON, TABLE, METADATA, "*/*")))


def _delete(random: Random, resource: Resource) -> Request:
    name = _name(random, resource) if random.random() < 0.95 else ""
    options: Any = {"kind": "DeleteOptions", "apiVersion": "v1", random.choice(sorted(_DELETE)): odd(random)}
    body = None if random.random() < 0.6 else json.dumps(options).encode()
    return Request("DELETE", _path(random, resource, name), body)


_DELETE = ("gracePeriodSeconds", "preconditions", "propagationPolicy", "orphanDependents", "dryRun")
