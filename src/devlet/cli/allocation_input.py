"""The input of the allocator: nodes, classes, slices, claims, templates, taint rules and pods.

Objects come from files (`allocation_files`) or from a server (`allocation_server`), in any served version. They are
converted to the storage version, with the defaults that an API server sets.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from devlet.alloc.inventory import Inventory
from devlet.cli.session import Document
from devlet.errors import InvalidInput
from devlet.objects.claims.overlaps import Ledger
from devlet.objects.conversion import convert
from devlet.objects.documents import copy
from devlet.objects.identifiers import DriverName, ObjectKey
from devlet.objects.kind_rules import default
from devlet.objects.kinds import BUILT_IN, Kind
from devlet.objects.node_drivers import is_of_gone_driver
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.device_class import DeviceClass
from devlet.objects.types.node import Node
from devlet.objects.types.pod import Pod
from devlet.objects.types.slice import Device, ResourceSlice
from devlet.objects.types.taint_rule import DeviceTaintRule

__all__ = ["KINDS", "Objects", "stored", "text_of"]

"""Namespace, which may be empty, and name."""

_VIEWS: Final[dict[str, type[Any]]] = {
    "Node": Node,
    "DeviceClass": DeviceClass,
    "ResourceSlice": ResourceSlice,
    "ResourceClaim": ResourceClaim,
    "ResourceClaimTemplate": dict,
    "DeviceTaintRule": DeviceTaintRule,
    "Pod": Pod,
}
KINDS: Final[dict[str, Kind]] = {kind.kind: kind for kind in BUILT_IN if kind.kind in _VIEWS}


def stored(document: Document, kind: Kind) -> Document:
    """Convert a document to the storage version and set defaults."""
    return default(copy(convert(document, kind.storage_version)), now=datetime.now(UTC))


def text_of(key: ObjectKey) -> str:
    return "/".join(part for part in key if part)


@dataclass(slots=True)
class Objects:
    """The objects by key, in the order in which they were found. `documents` are the documents of claims."""

    nodes: dict[ObjectKey, Node] = field(default_factory=dict)
    classes: dict[ObjectKey, DeviceClass] = field(default_factory=dict)
    slices: dict[ObjectKey, ResourceSlice] = field(default_factory=dict)
    claims: dict[ObjectKey, ResourceClaim] = field(default_factory=dict)
    templates: dict[ObjectKey, Document] = field(default_factory=dict)
    rules: dict[ObjectKey, DeviceTaintRule] = field(default_factory=dict)
    pods: dict[ObjectKey, Pod] = field(default_factory=dict)
    documents: dict[ObjectKey, Document] = field(default_factory=dict)

    def add(self, document: Document, origin: str, *, is_default: bool = False) -> None:
        """Add a document returned by `stored`. Adding it twice is allowed; a different one of its name is an error.

        With `is_default`, an object that is already present is kept.
        """
        kind, metadata = document["kind"], document["metadata"]
        key = (str(metadata.get("namespace") or ""), str(metadata["name"]))
        try:
            view = msgspec.convert(document, _VIEWS[kind])
        except msgspec.ValidationError as e:
            raise InvalidInput(f"{origin}: {kind} {text_of(key)}: {e}") from e
        if is_default and key in self._of(kind):
            return
        if self._of(kind).setdefault(key, view) != view:
            raise InvalidInput(f"{origin}: there are two different objects named {kind} {text_of(key)}: remove one")
        if kind == "ResourceClaim":
            self.documents[key] = document

    def _of(self, kind: str) -> dict[ObjectKey, Any]:
        by_kind: dict[str, dict[ObjectKey, Any]] = {
            "Node": self.nodes,
            "DeviceClass": self.classes,
            "ResourceSlice": self.slices,
            "ResourceClaim": self.claims,
            "ResourceClaimTemplate": self.templates,
            "DeviceTaintRule": self.rules,
            "Pod": self.pods,
        }
        return by_kind[kind]

    def put_claim(self, document: Document) -> ResourceClaim:
        """Add or replace a claim."""
        claim = msgspec.convert(document, ResourceClaim)
        key = (claim.metadata.namespace, claim.metadata.name)
        self.claims[key] = claim
        self.documents[key] = document
        return claim

    def inventory(self, *, without: Sequence[ObjectKey] = (), hide: bool = False) -> Inventory:
        """Return the devices with the taints of rules, and what allocated claims hold, except the claims in `without`.

        With `hide`, leave out the devices of drivers that are gone from their node, as devlet's scheduler does."""
        rules = list(self.rules.values())
        slices = (_tainted(slice, rules) for slice in self.slices.values() if not (hide and self._is_hidden(slice)))
        inventory = Inventory(slices, self.classes.values())
        for key, claim in self.claims.items():
            if key not in without:
                inventory.hold(claim)
        return inventory

    def ledger(self) -> Ledger:
        """Return which claims hold which devices, to find claims that together hold more than there is."""
        ledger = Ledger()
        for slice in self.slices.values():
            ledger.put_slice(slice)
        for key, claim in self.claims.items():
            ledger.hold(key, claim.results)
        return ledger

    def hidden_drivers(self) -> list[tuple[DriverName, str]]:
        """Return the drivers that are gone from a node where they still have slices, each with the node."""
        found = {
            (slice.spec.driver, slice.spec.node_name or "") for slice in self.slices.values() if self._is_hidden(slice)
        }
        return sorted(found)

    def _is_hidden(self, slice: ResourceSlice) -> bool:
        return is_of_gone_driver(slice, self.nodes.get(("", slice.spec.node_name or "")))

    def node_list(self) -> list[Node]:
        """Return the nodes, or else nodes with the names that slices and devices mention."""
        if self.nodes:
            return list(self.nodes.values())
        specs = [slice.spec for slice in self.slices.values()]
        names = [name for spec in specs for name in (spec.node_name, *(device.node_name for device in spec.devices))]
        return [msgspec.convert({"metadata": {"name": name}}, Node) for name in dict.fromkeys(names) if name]


def _tainted(slice: ResourceSlice, rules: Sequence[DeviceTaintRule]) -> ResourceSlice:
    if not any(rule.matches(slice.identity(device)) for rule in rules for device in slice.spec.devices):
        return slice
    devices = tuple(_tainted_device(slice, device, rules) for device in slice.spec.devices)
    return msgspec.structs.replace(slice, spec=msgspec.structs.replace(slice.spec, devices=devices))


def _tainted_device(slice: ResourceSlice, device: Device, rules: Sequence[DeviceTaintRule]) -> Device:
    added = tuple(rule.spec.taint for rule in rules if rule.matches(slice.identity(device)))
    return msgspec.structs.replace(device, taints=device.taints + added)
