"""Rules for device tolerations, in requests and in allocation results."""

from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation.device_taint import EFFECTS
from devlet.objects.validation.field_errors import Causes, invalid, name_errors, not_supported, required, too_many

TOLERATIONS_MAX = 16

_OPERATORS = ("Equal", "Exists")


def check(tolerations: list[Document], path: str) -> Causes:
    # The reference documents the limit but does not enforce it.
    if len(tolerations) > TOLERATIONS_MAX:
        yield too_many(path, len(tolerations), TOLERATIONS_MAX)
        return
    for i, toleration in enumerate(tolerations):
        yield from _check_toleration(toleration, f"{path}[{i}]")


def _check_toleration(toleration: Document, path: str) -> Causes:
    key, operator, value = (toleration.get(member, "") for member in ("key", "operator", "value"))
    if key:
        yield from name_errors(f"{path}.key", key, names.label_key)
    if operator == "Exists":
        if value:
            yield invalid(f"{path}.value", value, "must be empty for operator `Exists`")
    elif operator == "Equal":
        yield from name_errors(f"{path}.value", value, names.label_value)
    elif operator:
        yield not_supported(f"{path}.operator", operator, _OPERATORS)
    else:
        yield required(f"{path}.operator")
    effect = toleration.get("effect", "")
    if effect and effect not in EFFECTS:
        yield not_supported(f"{path}.effect", effect, EFFECTS)
