"""Rules for NodeSelector: terms of label expressions and of field expressions (only `metadata.name`)."""

from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation.field_errors import Causes, forbidden, invalid, name_errors, required


def check(selector: Document, path: str) -> Causes:
    path = f"{path}.nodeSelectorTerms"
    terms = selector.get("nodeSelectorTerms") or []
    if not terms:
        yield required(path, "must have at least one node selector term")
    for i, term in enumerate(terms):
        yield from check_term(term, f"{path}[{i}]")


def check_single(selector: Document, path: str) -> Causes:
    """As devices and slices have it: exactly one term."""
    terms = selector.get("nodeSelectorTerms") or []
    if len(terms) != 1:
        yield invalid(f"{path}.nodeSelectorTerms", terms or None, "must have exactly one node selector term")
    yield from check(selector, path)


def check_term(term: Document, path: str) -> Causes:
    for i, requirement in enumerate(term.get("matchExpressions") or ()):
        yield from _check_expression(requirement, f"{path}.matchExpressions[{i}]")
    for i, requirement in enumerate(term.get("matchFields") or ()):
        yield from _check_field(requirement, f"{path}.matchFields[{i}]")


def _check_expression(requirement: Document, path: str) -> Causes:
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    match operator:
        case "In" | "NotIn":
            if not values:
                yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        case "Exists" | "DoesNotExist":
            if values:
                yield forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        case "Gt" | "Lt":
            if len(values) != 1:
                yield required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
        case _:
            yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    yield from name_errors(f"{path}.key", requirement.get("key", ""), names.label_key)
    for i, value in enumerate(values):
        yield from name_errors(f"{path}.values[{i}]", value, names.label_value)


def _check_field(requirement: Document, path: str) -> Causes:
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    if operator not in ("In", "NotIn"):
        yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    elif len(values) != 1:
        yield required(
            f"{path}.values", "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        )
    if requirement.get("key") != "metadata.name":
        yield invalid(f"{path}.key", requirement.get("key", ""), "not a valid field selector key")
        return
    for i, value in enumerate(values):
        yield from name_errors(f"{path}.values[{i}]", value, names.dns_subdomain)
