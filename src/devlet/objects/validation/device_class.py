"""Rules for DeviceClass.spec.

The spec may change at any time. A list that did not change counts as stored: its expressions and parameters only need
to be valid in some version. Reordering is a change.
"""

from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import config, selectors
from devlet.objects.validation.field_errors import Causes, name_errors, too_many
from devlet.objects.validation.selectors import SelectorCheck

CONFIG_MAX = 32


def check(document: Document, old: Document | None, check_selector: SelectorCheck) -> Causes:
    spec = document.get("spec") or {}
    old_spec = (old.get("spec") or {}) if old else {}
    items, configs = spec.get("selectors") or [], spec.get("config") or []
    yield from selectors.check(items, "spec.selectors", check_selector, items == old_spec.get("selectors"))
    if len(configs) > CONFIG_MAX:
        yield too_many("spec.config", len(configs), CONFIG_MAX)
    else:
        stored = configs == old_spec.get("config")
        for i, item in enumerate(configs):
            yield from config.check(item, f"spec.config[{i}]", stored)
    if "extendedResourceName" in spec:
        yield from name_errors("spec.extendedResourceName", spec["extendedResourceName"], names.extended_resource_name)
