"""Rules for ResourceSlice.spec, the largest object that a driver writes: this is a hot path.

A driver uses the same attribute names for every device, so each name is checked once per slice.
"""

from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import counters, device, node_selector
from devlet.objects.validation.field_errors import (
    Causes,
    duplicates,
    immutable,
    invalid,
    name_errors,
    required,
    required_name,
    shown,
    too_many,
)

DEVICES_MAX = 128
ADVANCED_DEVICES_MAX = 64

_NODE_FIELDS = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ONE_NODE_FIELD = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"


def check(document: Document, old: Document | None) -> Causes:
    spec = document.get("spec") or {}
    old_spec = (old.get("spec") or {}) if old else None
    yield from required_name("spec.driver", spec.get("driver", ""), names.driver_name)
    yield from _check_pool(spec.get("pool") or {})
    yield from _check_node_fields(spec)
    if old_spec is not None:
        yield from _check_unchanged(spec, old_spec)
    shared, devices = spec.get("sharedCounters") or [], spec.get("devices") or []
    if shared and devices:
        yield invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    yield from counters.check_shared(shared, "spec.sharedCounters")
    old_devices = (old_spec or {}).get("devices") or []
    yield from _check_devices(devices, old_devices, spec.get("perDeviceNodeSelection") is True)


def warnings(document: Document) -> list[str]:
    driver = (document.get("spec") or {}).get("driver", "")
    if driver == driver.lower():
        return []
    return [f"spec.driver: driver names should be lowercase; {shown(driver)} contains uppercase characters"]


def _check_pool(pool: Document) -> Causes:
    yield from required_name("spec.pool.name", pool.get("name", ""), names.pool_name)
    if (generation := pool.get("generation", 0)) < 0:
        yield invalid("spec.pool.generation", generation, "must be greater than or equal to zero")
    if (count := pool.get("resourceSliceCount", 0)) <= 0:
        yield invalid("spec.pool.resourceSliceCount", count, "must be greater than zero")


def _check_node_fields(spec: Document) -> Causes:
    given = [member for member in _NODE_FIELDS if spec.get(member) not in (None, False, "")]
    if spec.get("nodeName") == "":
        yield invalid("spec.nodeName", "", "must be either unset or set to a non-empty string")
    elif "nodeName" in given:
        yield from name_errors("spec.nodeName", spec["nodeName"], names.dns_subdomain)
    if "nodeSelector" in given:
        yield from node_selector.check_single(spec["nodeSelector"], "spec.nodeSelector")
    for member in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(member) is False:
            yield invalid(f"spec.{member}", False, "must be either unset or set to true")
    if not given:
        yield required("spec", _ONE_NODE_FIELD)
    elif len(given) > 1:
        fields = "{" + ", ".join(f"`{member}`" for member in given) + "}"
        yield invalid("spec", fields, f"{_ONE_NODE_FIELD}, but multiple fields are set")


def _check_unchanged(spec: Document, old: Document) -> Causes:
    yield from immutable("spec.driver", spec.get("driver"), old.get("driver"))
    pool, old_pool = spec.get("pool") or {}, old.get("pool") or {}
    yield from immutable("spec.pool.name", pool.get("name"), old_pool.get("name"))
    yield from immutable("spec.nodeName", spec.get("nodeName"), old.get("nodeName"))


def _check_devices(devices: list[Document], old_devices: list[Document], per_device: bool) -> Causes:
    limit = DEVICES_MAX
    if len(devices) > ADVANCED_DEVICES_MAX and any(map(device.is_advanced, devices)):
        limit = ADVANCED_DEVICES_MAX
    if len(devices) > limit:
        yield too_many("spec.devices", len(devices), limit)
        return
    stored = {item.get("name"): item for item in old_devices}
    known: set[str] = set()
    for i, item in enumerate(devices):
        if not per_device and device.is_plain(item, known):
            continue
        yield from device.check(item, f"spec.devices[{i}]", known, per_device, stored.get(item.get("name")))
    yield from duplicates("spec.devices", [item.get("name", "") for item in devices])
