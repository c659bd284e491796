"""Rules for a pod's tolerations of node taints. For device tolerations see `toleration`."""

from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation.field_errors import Causes, invalid, name_errors, not_supported

_OPERATORS = ("Equal", "Exists")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def check(tolerations: list[Document], path: str) -> Causes:
    for i, toleration in enumerate(tolerations):
        yield from _check_toleration(toleration, f"{path}[{i}]")


def _check_toleration(toleration: Document, path: str) -> Causes:
    key, operator, effect = (toleration.get(member, "") for member in ("key", "operator", "effect"))
    if key:
        yield from name_errors(f"{path}.key", key, names.label_key)
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(f"{path}.operator", operator, detail)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield invalid(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    yield from _check_operator(operator, toleration, path)
    if effect and effect not in _EFFECTS:
        yield not_supported(f"{path}.effect", effect, _EFFECTS)


def _check_operator(operator: str, toleration: Document, path: str) -> Causes:
    value = toleration.get("value", "")
    if operator in ("", "Equal"):
        yield from name_errors(f"{path}.operator", value, names.label_value)
    elif operator == "Exists":
        if value:
            yield invalid(f"{path}.operator", toleration, "value must be empty when `operator` is 'Exists'")
    else:
        yield not_supported(f"{path}.operator", operator, _OPERATORS)
