"""Rules for one device taint, in slices and in DeviceTaintRule."""

from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation.field_errors import Causes, name_errors, not_supported, required

EFFECTS = ("NoExecute", "NoSchedule", "None")


def check(taint: Document, path: str) -> Causes:
    yield from name_errors(f"{path}.key", taint.get("key", ""), names.label_key)
    if taint.get("value"):
        yield from name_errors(f"{path}.value", taint["value"], names.label_value)
    effect = taint.get("effect", "")
    if not effect:
        yield required(f"{path}.effect")
    elif effect not in EFFECTS:
        yield not_supported(f"{path}.effect", effect, EFFECTS)
