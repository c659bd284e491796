"""Rules for one device of a slice.

Most devices have a name, attributes and capacity and nothing else; other fields are checked only if present.
"""

from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import attributes, capacity, conditions, counters, device_taint, node_selector
from devlet.objects.validation.amounts import parse, unreadable
from devlet.objects.validation.field_errors import Causes, invalid, name_errors, not_found, required, too_many

ENTRIES_MAX = 32
ATTRIBUTE_VALUES_MAX = 48
TAINTS_MAX = 16

_PLAIN = frozenset(("name", "attributes", "capacity"))
_NODE_FIELDS = ("nodeName", "nodeSelector", "allNodes")
_ONE_NODE_FIELD = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true "
    "in the ResourceSlice spec"
)
_NO_NODE_FIELD = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the "
    "ResourceSlice spec"
)
_NODE_RESOURCES = ("cpu", "memory", "ephemeral-storage")


def check(device: Document, path: str, known: set[str], per_device: bool, old: Document | None) -> Causes:
    """Check a device. `known` are names of attributes and capacity already found valid; `old` is the stored device."""
    name = device.get("name", "")
    if names.dns_label(name):
        yield from name_errors(f"{path}.name", name, names.dns_label)
    given, capacities = device.get("attributes") or {}, device.get("capacity") or {}
    if not known.issuperset(given):
        yield from attributes.check_keys(given.keys(), f"{path}.attributes", known)
    yield from attributes.check(given, f"{path}.attributes")
    if capacities:
        yield from _check_capacities(capacities, f"{path}.capacity", known, device.get("allowMultipleAllocations"))
    yield from _check_counts(given, capacities, path)
    if per_device or not _PLAIN.issuperset(device):
        yield from _check_rest(device, path, per_device, old)


def is_plain(device: Document, known: set[str]) -> bool:
    """Return whether `check` certainly finds nothing, provided that no node is selected per device."""
    given, capacities = device.get("attributes") or {}, device.get("capacity") or {}
    return (
        _PLAIN.issuperset(device)
        and len(given) + len(capacities) <= ENTRIES_MAX
        and known.issuperset(given)
        and known.issuperset(capacities)
        and not names.dns_label(device.get("name", ""))
        and attributes.are_plain(given)
        and _are_plain(capacities)
    )


def is_advanced(device: Document) -> bool:
    """Return whether the device uses a feature that halves the number of devices that a slice may have."""
    if device.get("taints") or device.get("consumesCounters"):
        return True
    return attributes.has_lists(device.get("attributes") or {})


def _check_capacities(capacities: dict[str, Document], path: str, known: set[str], shared: bool | None) -> Causes:
    if not known.issuperset(capacities):
        yield from attributes.check_keys(capacities.keys(), path, known)
    for name, item in capacities.items():
        if "requestPolicy" in item or parse(item.get("value", "0")) is None:
            yield from capacity.check(item, f"{path}[{name}]", shared is True)


def _are_plain(capacities: dict[str, Document]) -> bool:
    for item in capacities.values():
        if "requestPolicy" in item or parse(item.get("value", "0")) is None:
            return False
    return True


def _check_counts(given: dict[str, Document], capacities: dict[str, Document], path: str) -> Causes:
    if (total := len(given) + len(capacities)) > ENTRIES_MAX:
        yield invalid(path, total, f"the total number of attributes and capacities must not exceed {ENTRIES_MAX}")
    if attributes.has_lists(given) or len(given) > ATTRIBUTE_VALUES_MAX:
        if (total := attributes.count_values(given)) > ATTRIBUTE_VALUES_MAX:
            yield invalid(path, total, f"the total number of attribute values must not exceed {ATTRIBUTE_VALUES_MAX}")


def _check_rest(device: Document, path: str, per_device: bool, old: Document | None) -> Causes:
    yield from counters.check_consumed(device.get("consumesCounters") or [], f"{path}.consumesCounters")
    yield from _check_nodes(device, path, per_device)
    taints = device.get("taints") or []
    if taints and (old is None or taints != old.get("taints")):
        yield from _check_taints(taints, f"{path}.taints")
    yield from conditions.check_binding(device, path)
    for name, mapping in (device.get("nodeAllocatableResourceMappings") or {}).items():
        yield from _check_mapping(name, mapping, f"{path}.nodeAllocatableResourceMappings[{name}]", device)


def _check_nodes(device: Document, path: str, per_device: bool) -> Causes:
    given = [member for member in _NODE_FIELDS if device.get(member) is not None]
    if not per_device:
        if given:
            yield invalid(path, None, _NO_NODE_FIELD)
        return
    if device.get("nodeName") == "":
        given.remove("nodeName")
        yield invalid(f"{path}.nodeName", "", "must not be empty")
    elif "nodeName" in given:
        yield from name_errors(f"{path}.nodeName", device["nodeName"], names.dns_subdomain)
    if "nodeSelector" in given:
        # The reference accepts several terms here, but its allocator then fails.
        yield from node_selector.check_single(device["nodeSelector"], f"{path}.nodeSelector")
    if device.get("allNodes") is False:
        given.remove("allNodes")
        yield invalid(f"{path}.allNodes", False, "must be either unset or set to true")
    if not given:
        yield required(path, _ONE_NODE_FIELD)
    elif len(given) > 1:
        yield invalid(path, "{" + ", ".join(f"`{member}`" for member in given) + "}", _ONE_NODE_FIELD)


def _check_taints(taints: list[Document], path: str) -> Causes:
    if len(taints) > TAINTS_MAX:
        yield too_many(path, len(taints), TAINTS_MAX)
        return
    for i, taint in enumerate(taints):
        yield from device_taint.check(taint, f"{path}[{i}]")


def _check_mapping(name: str, mapping: Document, path: str, device: Document) -> Causes:
    if name not in _NODE_RESOURCES and not name.startswith("hugepages-"):
        yield invalid(path, name, "must be a node allocatable resource name")
    multiplier, key = mapping.get("allocationMultiplier"), mapping.get("capacityKey")
    if multiplier is None and key is None:
        yield invalid(path, "", "at least one of allocationMultiplier or capacityKey must be set")
    if multiplier is not None:
        amount = parse(multiplier)
        if amount is None:
            yield unreadable(f"{path}.allocationMultiplier", multiplier)
        elif amount.sign <= 0:
            yield invalid(f"{path}.allocationMultiplier", str(amount), "must be positive")
    if key == "":
        yield invalid(f"{path}.capacityKey", "", "capacityKey must not be an empty string")
    elif key is not None and key not in (device.get("capacity") or {}):
        yield not_found(f"{path}.capacityKey", key)
