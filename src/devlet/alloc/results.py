"""The allocation that is written into a claim: devices, configuration and the nodes where they can be used."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from devlet.alloc.allocator import Fit
from devlet.alloc.features import Features, Rules
from devlet.alloc.search import Chosen
from devlet.errors import InvalidInput
from devlet.objects.documents import Document
from devlet.objects.identifiers import RequestRef, ShareID
from devlet.objects.types.claim import DeviceResult, ResourceClaim
from devlet.objects.types.device_class import DeviceConfiguration
from devlet.objects.types.node import NodeSelector, NodeSelectorRequirement

__all__ = ["allocation_documents", "held_devices"]


def allocation_documents(fit: Fit, features: Features, rules: Rules, new_share_id: Callable[[], str]) -> list[Document]:
    """Return `status.allocation` of each claim. Raises InvalidInput if a device's node selector cannot be merged."""
    return [
        _allocation(claim, chosen, fit.node.name, features, rules, new_share_id)
        for claim, chosen in zip(fit.claims, fit.chosen, strict=True)
    ]


def held_devices(chosen: Sequence[Chosen], new_share_id: Callable[[], str]) -> tuple[DeviceResult, ...]:
    """Return what a claim holds from now on, as other claims see it."""
    return tuple(
        DeviceResult(
            request=RequestRef(each.step.full_name),
            driver=each.entry.identity.driver,
            pool=each.entry.identity.pool,
            device=each.entry.identity.device,
            admin_access=each.step.is_admin or None,
            share_id=ShareID(new_share_id()) if each.amounts is not None else None,
            consumed_capacity={amount.name: str(amount.consumed) for amount in each.amounts or ()},
        )
        for each in chosen
    )


def _allocation(
    claim: ResourceClaim,
    chosen: Sequence[Chosen],
    node: str,
    features: Features,
    rules: Rules,
    new_share_id: Callable[[], str],
) -> Document:
    devices: Document = {}
    if chosen:
        devices["results"] = [_result(each, features, new_share_id) for each in chosen]
    if config := _config(claim, chosen, rules):
        devices["config"] = config
    allocation: Document = {"devices": devices}
    if selector := _node_selector(claim, chosen, node):
        allocation["nodeSelector"] = selector
    return allocation


def _result(chosen: Chosen, features: Features, new_share_id: Callable[[], str]) -> Document:
    entry, wanted = chosen.entry, chosen.step.alternative
    result: Document = {
        "request": wanted.full_name,
        "driver": entry.identity.driver,
        "pool": entry.identity.pool,
        "device": entry.identity.device,
    }
    if wanted.admin_access:
        result["adminAccess"] = True
    if wanted.tolerations:
        result["tolerations"] = [_plain(toleration) for toleration in wanted.tolerations]
    if features.device_binding_and_status:
        if entry.device.binding_conditions:
            result["bindingConditions"] = list(entry.device.binding_conditions)
        if entry.device.binding_failure_conditions:
            result["bindingFailureConditions"] = list(entry.device.binding_failure_conditions)
    if chosen.amounts is not None:
        result["shareID"] = new_share_id()
        if chosen.amounts:
            result["consumedCapacity"] = {amount.name: str(amount.consumed) for amount in chosen.amounts}
    return result


def _plain(view: msgspec.Struct) -> Document:
    """Return a view as a document, without unset fields."""
    document: Document = msgspec.json.decode(msgspec.json.encode(view))
    return {key: value for key, value in document.items() if value not in (None, "", [], {})}


def _config(claim: ResourceClaim, chosen: Sequence[Chosen], rules: Rules) -> list[Document]:
    selected = {each.step.request: each.step.alternative for each in chosen}
    config: list[Document] = []
    of_class: dict[str, list[Document]] = {}
    for request in claim.spec.devices.requests:
        wanted = selected.get(request.name)
        if wanted is None:
            continue
        if wanted.device_class.name in of_class:
            for entry in of_class[wanted.device_class.name]:
                entry["requests"].append(wanted.full_name)
            continue
        entries = [
            {"source": "FromClass", "requests": [wanted.full_name], **_opaque(each)}
            for each in wanted.device_class.spec.config
        ]
        of_class[wanted.device_class.name] = entries
        config += entries
    for each in claim.spec.devices.config:
        copies = _copies(claim, each.requests, {name: wanted.full_name for name, wanted in selected.items()})
        for _ in range(min(copies, 1) if rules.single_config else copies):
            named = {"requests": list(each.requests)} if each.requests else {}
            config.append({"source": "FromClaim", **named, **_opaque(each)})
    return config


def _copies(claim: ResourceClaim, named: Sequence[str], selected: dict[str, str]) -> int:
    """Return how often the reference lists a configuration: once for each request that it names."""
    if not named:
        return 1
    return sum(
        request.name in named or (bool(request.first_available) and selected.get(request.name) in named)
        for request in claim.spec.devices.requests
    )


def _opaque(config: DeviceConfiguration) -> Document:
    return {"opaque": _plain(config.opaque)} if config.opaque else {}


def _node_selector(claim: ResourceClaim, chosen: Sequence[Chosen], node: str) -> Document | None:
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for each in chosen:
        device, spec = each.entry.device, each.entry.slice.slice.spec
        own = device if spec.per_device_node_selection else spec
        if own.node_name is not None or device.binds_to_node:
            return _of_node(node)
        terms = _terms(own.node_selector)
        if len(terms) > 1:
            text = f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            raise InvalidInput(f"create NodeSelector for claim {claim.metadata.name}: {text}: {each.entry.identity}")
        for term in terms:
            _merge(fields, term.match_fields)
            _merge(expressions, term.match_expressions)
    term_document: Document = {}
    if fields:
        term_document["matchFields"] = [_plain(each) for each in fields]
    if expressions:
        term_document["matchExpressions"] = [_plain(each) for each in expressions]
    return {"nodeSelectorTerms": [term_document]} if term_document else None


def _terms(selector: NodeSelector | None) -> Sequence[Any]:
    return selector.node_selector_terms if selector else ()


def _of_node(node: str) -> Document:
    requirement = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {"nodeSelectorTerms": [{"matchFields": [requirement]}]}


def _merge(into: list[NodeSelectorRequirement], requirements: Sequence[NodeSelectorRequirement]) -> None:
    """Add the missing requirements. The order of their values does not matter."""
    for new in requirements:
        if not any(
            (old.key, old.operator, set(old.values)) == (new.key, new.operator, set(new.values)) for old in into
        ):
            into.append(new)
