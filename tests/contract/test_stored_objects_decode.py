"""Whatever a write accepts, the typed views that devlet works with can decode."""

from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec
import pytest

from devlet.cluster.client import WriteOptions
from devlet.cluster.store.incoming import accept
from devlet.cluster.store.records import Head
from devlet.errors import InvalidInput
from devlet.objects.documents import copy, view
from devlet.objects.kinds import BUILT_IN, Resource
from devlet.objects.schema.messages import Field, Message, message_of
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.core import Lease, Namespace
from devlet.objects.types.device_class import DeviceClass
from devlet.objects.types.node import Node
from devlet.objects.types.pod import Pod
from devlet.objects.types.slice import ResourceSlice
from devlet.objects.types.taint_rule import DeviceTaintRule

VIEWS: dict[str, Any] = {
    "Pod": Pod,
    "Node": Node,
    "Namespace": Namespace,
    "Lease": Lease,
    "ResourceClaim": ResourceClaim,
    "ResourceSlice": ResourceSlice,
    "DeviceClass": DeviceClass,
    "DeviceTaintRule": DeviceTaintRule,
}
RESOURCES = [Resource(kind, version) for kind in BUILT_IN for version in kind.api_versions]
WRONG: tuple[Any, ...] = (None, True, 5, -1, 1.5, 10**30, "x", "", [], {}, [None], [5], {"a": None}, {"a": 5})
TRIES = 200
DEPTH = 7
SCALARS: dict[str, Any] = {
    "string": "a",
    "bool": True,
    "int32": 1,
    "int64": 1,
    "bytes": "YQ==",
    "quantity": "1",
    "intorstring": 1,
    "time": "2026-01-01T00:00:00Z",
    "microtime": "2026-01-01T00:00:00.000000Z",
    "rawextension": {"a": 1},
    "fieldsv1": {"f:a": {}},
    "items": ["a"],
}


def example(message: Message, depth: int = DEPTH) -> dict[str, Any]:
    """A document with every field down to a depth."""
    return {key: _member(field, depth) for key, field in message.properties.items() if depth or not field.is_message}


def _member(field: Field, depth: int) -> Any:
    one = example(field.message(), depth - 1) if field.is_message else SCALARS[field.special or field.type]
    return [copy(one)] if field.label == "repeated" else {"a": copy(one)} if field.label == "map" else copy(one)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield (*path, key)
        yield from places(part, (*path, key))


def mutated(document: Any, path: tuple[Any, ...], wrong: Any) -> Any:
    made = part = dict(document)
    for key in path[:-1]:
        part[key] = part[key].copy()
        part = part[key]
    part[path[-1]] = wrong
    return made


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda each: f"{each.api_version} {each.kind.kind}")
def test_a_write_with_a_value_of_another_type_is_refused_or_can_be_decoded(resource: Resource) -> None:
    message = message_of(resource.api_version, resource.kind.kind)
    assert message is not None
    whole, random = example(message), Random(17)
    every = list(places(whole))
    refused = 0
    for path in random.sample(every, min(len(every), TRIES)):
        document = mutated(whole, path, random.choice(WRONG))
        try:
            accepted = accept(resource, document, WriteOptions())
        except InvalidInput:
            refused += 1
            continue
        msgspec.json.decode(msgspec.json.encode(accepted), type=Head)
        if type_ := VIEWS.get(resource.kind.kind):
            view(type_, accepted)
    assert refused
