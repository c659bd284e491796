"""Rules for LabelSelector, and for expressions, which NodeSelector also has."""

from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation.field_errors import Causes, forbidden, invalid, name_errors, required
from devlet.objects.validation.metadata import check_labels


def check(selector: Document, path: str) -> Causes:
    yield from check_labels(selector.get("matchLabels") or {}, f"{path}.matchLabels")
    for i, requirement in enumerate(selector.get("matchExpressions") or ()):
        yield from check_expression(requirement, f"{path}.matchExpressions[{i}]")


def check_expression(requirement: Document, path: str, *, compares: bool = False) -> Causes:
    """Check an expression. With `compares`, labels may be compared as numbers, as those of nodes are."""
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    match operator:
        case "In" | "NotIn":
            if not values:
                yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        case "Exists" | "DoesNotExist":
            if values:
                yield forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        case "Gt" | "Lt" if compares:
            if len(values) != 1:
                yield required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
        case _:
            yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    yield from name_errors(f"{path}.key", requirement.get("key", ""), names.label_key)
    for i, value in enumerate(values):
        yield from name_errors(f"{path}.values[{i}]", value, names.label_value)
