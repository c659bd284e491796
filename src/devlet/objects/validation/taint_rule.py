"""Rules for DeviceTaintRule: the selected devices and their taint. Every field of the selector is optional."""

from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import conditions, device_taint
from devlet.objects.validation.field_errors import Causes, name_errors

CONDITIONS_MAX = 8

_SELECTOR = (("driver", names.driver_name), ("pool", names.pool_name), ("device", names.dns_label))


def check(document: Document, old: Document | None) -> Causes:
    spec = document.get("spec") or {}
    selector, taint = spec.get("deviceSelector") or {}, spec.get("taint") or {}
    for member, rule in _SELECTOR:
        if member in selector:
            yield from name_errors(f"spec.deviceSelector.{member}", selector[member], rule)
    if old is None or taint != (old.get("spec") or {}).get("taint"):
        yield from device_taint.check(taint, "spec.taint")


def check_status(document: Document) -> Causes:
    items = (document.get("status") or {}).get("conditions") or []
    yield from conditions.check(items, "status.conditions", CONDITIONS_MAX)
