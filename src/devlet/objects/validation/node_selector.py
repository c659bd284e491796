"""Rules for NodeSelector: terms of label expressions and of field expressions (only `metadata.name`)."""

from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import label_selector
from devlet.objects.validation.field_errors import Causes, invalid, name_errors, required, too_many

PARTS_MAX = 2_000  # terms and their requirements; the limit exists because the scheduler compares them with every node


def check(selector: Document, path: str) -> Causes:
    path = f"{path}.nodeSelectorTerms"
    terms = selector.get("nodeSelectorTerms") or []
    if not terms:
        yield required(path, "must have at least one node selector term")
    parts = len(terms) + sum(len(term.get(key) or ()) for term in terms for key in ("matchExpressions", "matchFields"))
    if parts > PARTS_MAX:
        yield too_many(path, parts, PARTS_MAX)
        return
    for i, term in enumerate(terms):
        yield from check_term(term, f"{path}[{i}]")


def check_single(selector: Document, path: str) -> Causes:
    """Check the selector of a device or slice: exactly one term."""
    terms = selector.get("nodeSelectorTerms") or []
    if len(terms) != 1:
        yield invalid(f"{path}.nodeSelectorTerms", terms or None, "must have exactly one node selector term")
    yield from check(selector, path)


def check_term(term: Document, path: str) -> Causes:
    for i, requirement in enumerate(term.get("matchExpressions") or ()):
        yield from label_selector.check_expression(requirement, f"{path}.matchExpressions[{i}]", compares=True)
    for i, requirement in enumerate(term.get("matchFields") or ()):
        yield from _check_field(requirement, f"{path}.matchFields[{i}]")


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
