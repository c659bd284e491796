"""Decoding request bodies: JSON, YAML and Kubernetes protobuf. Nothing in a body is trusted."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec
import yaml

from devlet.errors import BadRequest, TooLarge, UnsupportedPatch
from devlet.kit import json_yaml
from devlet.kit.json_yaml import MAX_DUPLICATES
from devlet.objects.documents import Document, read_float
from devlet.objects.patches.limits import MAX_OPERATIONS
from devlet.objects.protobuf import envelope as kube_protobuf

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

MAX_BODY = 3 << 20
MAX_CONTAINERS = 250_000  # objects and lists in a body; brackets in JSON strings count as well
MAX_UNSTORED_BODY = 256 << 10  # of requests that are not stored: reviews, token requests, bindings, delete options
# The event loop processes this many bytes itself; a thread processes anything larger.
INLINE = 64 << 10
INLINE_WITH_SELECTORS = 512  # of objects with CEL expressions, which are compiled

_json = msgspec.json.Decoder(float_hook=read_float)


class UnknownFormat(UnsupportedPatch):
    """The content type of the body is not supported (415)."""


@dataclass(frozen=True, slots=True)
class Body:
    """`duplicates` are the keys that occur twice in one JSON object. The last value counts."""

    document: Document
    duplicates: tuple[str, ...] = ()


def check_size(length: int | None, limit: int = MAX_BODY) -> None:
    if length is not None and length > limit:
        raise TooLarge(f"Request entity too large: limit is {limit}")


def check_encoding(encoding: str) -> None:
    if encoding.strip().lower() not in ("", "identity"):
        raise UnknownFormat(f"the body of the request is compressed ({encoding[:40]}): send it uncompressed")


def check_containers(number: int) -> None:
    """Raise TooLarge above the limit: creating and freeing many objects is work that no other request can interrupt."""
    if number > MAX_CONTAINERS:
        text = f"limit is {MAX_CONTAINERS} objects and lists, got {number}"
        raise TooLarge(f"Request entity too large: {text}")


def check_operations(number: int) -> None:
    if number > MAX_OPERATIONS:
        text = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {number}"
        raise TooLarge(f"Request entity too large: {text}")


def decode(blob: bytes, content_type: str, *, api_version: str = "", kind: str = "") -> Body:
    """Return the object in a body. `api_version` and `kind` come from the URL, for bodies that do not contain them."""
    media = media_type(content_type)
    if media == PROTOBUF:
        if blob == kube_protobuf.MAGIC:
            raise BadRequest(f"the object provided is unrecognized (must be of type {kind or 'object'}): empty body")
        return Body(kube_protobuf.decode(blob, api_version=api_version, kind=kind))
    if media == JSON:
        document = _object(_parse_json(blob))
        return Body(document, tuple(islice(duplicate_keys(blob, document), MAX_DUPLICATES)))
    if media in (YAML, "application/x-yaml"):
        loaded = _parse_yaml(blob)
        return Body(_object(loaded.value), loaded.duplicates)
    raise UnknownFormat(
        f"the body of the request was in an unknown format - accepted media types include: {JSON}, {YAML}, {PROTOBUF}"
    )


def decode_patch(blob: bytes, content_type: str) -> Any:
    """Return the value of a patch body. Its meaning depends on the media type."""
    media = media_type(content_type)
    if media == APPLY_PATCH:
        return _parse_yaml(blob).value if blob.lstrip()[:1] != b"{" else _parse_json(blob)
    if media in (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH):
        return _parse_json(blob)
    raise UnknownFormat(
        "415: Unsupported Media Type: a patch must have one of the types"
        f" {JSON_PATCH}, {MERGE_PATCH}, {STRATEGIC_MERGE_PATCH}, {APPLY_PATCH}"
    )


def media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower() or JSON


def _parse_json(blob: bytes) -> Any:
    if len(blob) > MAX_CONTAINERS:
        check_containers(blob.count(b"{") + blob.count(b"["))
    try:
        return _json.decode(blob)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise BadRequest(f"the object provided is unrecognized (must be of type JSON): {e}") from e


def _parse_yaml(blob: bytes) -> json_yaml.Loaded:
    try:
        return json_yaml.load(blob, max_containers=MAX_CONTAINERS)
    except json_yaml.TooManyContainers as e:
        raise TooLarge(f"Request entity too large: {e}") from e
    except (yaml.YAMLError, UnicodeDecodeError) as e:
        raise BadRequest(f"error converting YAML to JSON: {' '.join(str(e).split())}") from e


def _object(value: Any) -> Document:
    if not isinstance(value, dict):
        raise BadRequest(f"the object provided is unrecognized: expected an object, found {type(value).__name__}")
    return value


def duplicate_keys(blob: bytes, document: Document) -> Iterator[str]:
    """Yield the paths of keys that occur twice in one object. They are rare, so lengths are compared first."""
    if len(msgspec.json.encode(document)) == len(blob.strip()):
        return
    yield from _duplicates(json.loads(blob, object_pairs_hook=_Pairs), "")


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with its duplicate keys, in order."""


def _duplicates(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, member in value:
            here = f"{path}.{key}" if path else key
            if key in seen:
                yield here
            seen.add(key)
            yield from _duplicates(member, here)
    elif isinstance(value, list):
        for i, member in enumerate(value):
            yield from _duplicates(member, f"{path}[{i}]")
