"""Turns the text of a manifest into the pod that this node runs. A file defines one pod. Pure.

The UID is derived from the text, the file's name and the node's name. So the same file is the same pod after a restart,
and a changed file is another pod. The pod runs and holds devices under this UID; its mirror pod in the cluster has a
UID of its own. The UID, owners, finalizers and status in a manifest are ignored.
"""

import hashlib
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import Struct

from devlet.errors import InvalidInput, InvalidObject
from devlet.kit import yaml_depth
from devlet.objects.documents import Document, copy
from devlet.objects.identifiers import NodeName, ObjectKey, PodUID
from devlet.objects.kind_rules import Rules, default, validate_create
from devlet.objects.pods import references as api_references
from devlet.objects.schema.messages import message_of
from devlet.objects.schema.shape import conform
from devlet.objects.validation.pod import MIRROR_ANNOTATION
from devlet.objects.values.timestamps import format_time

__all__ = ["HASH", "MIRROR", "SEEN", "SOURCE", "StaticPod", "read"]

HASH = "kubernetes.io/config.hash"
SOURCE = "kubernetes.io/config.source"
SEEN = "kubernetes.io/config.seen"
MIRROR = MIRROR_ANNOTATION

MAX_VALUES = 100_000
_CLAIMS = (
    "static pods may not use resource claims, because no scheduler allocates devices for them."
    " Request resources of a device plugin, or create the pod in the cluster"
)
_TOLERATION = {"operator": "Exists", "effect": "NoExecute"}


class StaticPod(Struct, frozen=True):
    """`document` is the pod as it runs here. `mirror` is the mirror pod for the cluster, without its owner."""

    uid: PodUID
    document: Document
    mirror: Document

    @property
    def key(self) -> ObjectKey:
        return self.document["metadata"]["namespace"], self.document["metadata"]["name"]


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Keeps times as strings."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read(content: bytes, file: Path, node: NodeName, now: datetime) -> StaticPod:
    """Return the pod that the file defines. Raise InvalidInput with the reason if the content is not a valid pod."""
    given = _pod(_parsed(content))
    uid = _uid(given, file, node)
    mirror = _mirror(given, uid, node, now)
    made = default(copy(mirror), now=now)
    _check(made)
    made["metadata"]["uid"] = uid
    made["status"] = {"phase": "Pending"}
    return StaticPod(uid, made, mirror)


def _parsed(content: bytes) -> Any:
    try:
        yaml_depth.check(content)
        value = yaml.load(content, Loader=_Loader)  # a SafeLoader
    except yaml.MarkedYAMLError as e:
        line = f"line {e.problem_mark.line + 1}: " if e.problem_mark else ""
        raise InvalidInput(f"{line}not YAML: {e.problem}") from e
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as e:
        raise InvalidInput(f"not YAML: {' '.join(str(e).split())[:200]}") from e
    _count(value, [MAX_VALUES])
    return value


def _count(value: Any, left: list[int]) -> None:
    """Limit the number of values: a few lines with aliases can stand for gigabytes."""
    left[0] -= 1
    if left[0] < 0:
        raise InvalidInput(f"more than {MAX_VALUES} values")
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _count(each, left)


def _pod(value: Any) -> Document:
    """Return the value with the fields of a pod."""
    if not isinstance(value, dict) or (value.get("apiVersion"), value.get("kind")) != ("v1", "Pod"):
        raise InvalidInput("not a pod: expected one object with apiVersion: v1 and kind: Pod")
    message = message_of("v1", "Pod")
    assert message is not None
    try:
        document = conform(json.loads(msgspec.json.encode(value)), message).document
    except (TypeError, ValueError) as e:
        raise InvalidInput(f"not a pod: {e}") from e
    if not document["metadata"].get("name"):
        raise InvalidInput("metadata.name is missing")
    if document["spec"].get("resourceClaims"):
        raise InvalidInput(_CLAIMS)
    if reference := api_references.first(document["spec"]):
        raise InvalidInput(f"static pods may not reference {reference}")
    return document


def _uid(given: Document, file: Path, node: NodeName) -> PodUID:
    text = msgspec.json.encode([given, str(node), str(file)], order="deterministic")
    return PodUID(hashlib.sha256(text).hexdigest()[:32])


def _mirror(given: Document, uid: PodUID, node: NodeName, now: datetime) -> Document:
    before, spec = given["metadata"], given["spec"]
    annotations = {key: value for key, value in (before.get("annotations") or {}).items() if key != MIRROR}
    metadata = {
        "name": f"{before['name']}-{node.lower()}",
        "namespace": before.get("namespace") or "default",
        "labels": before.get("labels") or {},
        "annotations": annotations | {HASH: uid, SOURCE: "file", SEEN: format_time(now)},
    }
    tolerations = [each for each in spec.get("tolerations") or () if each != _TOLERATION]
    spec = {**spec, "nodeName": node, "tolerations": [*tolerations, _TOLERATION]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _check(document: Document) -> None:
    causes = validate_create(document, Rules())
    if causes:
        raise InvalidInput(str(InvalidObject("Pod", document["metadata"]["name"], causes)))
