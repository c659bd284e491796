"""Rules for ResourceClaim.spec, which templates also contain.

If a list is too long, its elements are not checked. A reference to a request is `request` or `request/subrequest`. It
must be well-formed and the request must exist; a malformed reference violates both rules.
"""

from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import config, selectors, toleration
from devlet.objects.validation.amounts import check_not_negative
from devlet.objects.validation.field_errors import (
    Causes,
    duplicates,
    invalid,
    name_errors,
    not_supported,
    required,
    required_name,
    too_many,
)
from devlet.objects.validation.selectors import SelectorCheck

REQUESTS_MAX = 32
SUBREQUESTS_MAX = 8
CONSTRAINTS_MAX = 32
CONFIG_MAX = 32
REFERENCES_MAX = 32

_MODES = ("All", "ExactCount")
_ONE_OF = "exactly one of `exactly` or `firstAvailable` is required"


def check_spec(spec: Document, path: str, check_selector: SelectorCheck) -> Causes:
    devices, path = spec.get("devices") or {}, f"{path}.devices"
    requests = devices.get("requests") or []
    yield from _check_requests(requests, f"{path}.requests", check_selector)
    known = request_references(requests)
    yield from _check_constraints(devices.get("constraints") or [], f"{path}.constraints", known)
    configs = devices.get("config") or []
    if len(configs) > CONFIG_MAX:
        yield too_many(f"{path}.config", len(configs), CONFIG_MAX)
        return
    for i, item in enumerate(configs):
        yield from check_references(item.get("requests") or [], f"{path}.config[{i}].requests", known)
        yield from config.check(item, f"{path}.config[{i}]")


def request_references(requests: list[Document]) -> set[str]:
    """Return everything that a reference may name: requests, and subrequests as `request/subrequest`."""
    known: set[str] = set()
    for request in requests:
        name = request.get("name", "")
        known.add(name)
        known.update(f"{name}/{sub.get('name', '')}" for sub in request.get("firstAvailable") or ())
    return known


def check_references(references: list[str], path: str, known: set[str]) -> Causes:
    if len(references) > REFERENCES_MAX:
        yield too_many(path, len(references), REFERENCES_MAX)
        return
    for i, reference in enumerate(references):
        yield from check_reference(reference, f"{path}[{i}]", known)
    yield from duplicates(path, references)


def check_reference(reference: str, path: str, known: set[str]) -> Causes:
    if reference in known:
        return
    if reference.count("/") <= 1:
        for segment in reference.split("/"):
            yield from name_errors(path, segment, names.dns_label)
    detail = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
    yield invalid(path, reference, detail)


def _check_requests(requests: list[Document], path: str, check_selector: SelectorCheck) -> Causes:
    if len(requests) > REQUESTS_MAX:
        yield too_many(path, len(requests), REQUESTS_MAX)
        return
    for i, request in enumerate(requests):
        yield from _check_request(request, f"{path}[{i}]", check_selector)
    yield from duplicates(path, [request.get("name", "") for request in requests])


def _check_request(request: Document, path: str, check_selector: SelectorCheck) -> Causes:
    yield from name_errors(f"{path}.name", request.get("name", ""), names.dns_label)
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable") or []
    if exactly is None and not alternatives:
        yield required(path, _ONE_OF)
    elif exactly is not None and alternatives:
        yield invalid(path, None, f"{_ONE_OF}, but multiple fields are set")
    if exactly is not None:
        yield from _check_wanted(exactly, f"{path}.exactly", check_selector)
    if alternatives:
        yield from _check_alternatives(alternatives, f"{path}.firstAvailable", check_selector)


def _check_alternatives(alternatives: list[Document], path: str, check_selector: SelectorCheck) -> Causes:
    if len(alternatives) > SUBREQUESTS_MAX:
        yield too_many(path, len(alternatives), SUBREQUESTS_MAX)
        return
    for i, subrequest in enumerate(alternatives):
        yield from name_errors(f"{path}[{i}].name", subrequest.get("name", ""), names.dns_label)
        yield from _check_wanted(subrequest, f"{path}[{i}]", check_selector)
    yield from duplicates(path, [subrequest.get("name", "") for subrequest in alternatives])


def _check_wanted(wanted: Document, path: str, check_selector: SelectorCheck) -> Causes:
    """Check what `exactly` and a subrequest have in common."""
    yield from required_name(f"{path}.deviceClassName", wanted.get("deviceClassName", ""), names.dns_subdomain)
    yield from selectors.check(wanted.get("selectors") or [], f"{path}.selectors", check_selector)
    yield from _check_count(wanted, path)
    yield from toleration.check(wanted.get("tolerations") or [], f"{path}.tolerations")
    if capacity := wanted.get("capacity"):
        yield from _check_capacity(capacity.get("requests") or {}, f"{path}.capacity.requests")


def _check_count(wanted: Document, path: str) -> Causes:
    mode, count = wanted.get("allocationMode", ""), wanted.get("count", 0)
    if mode == "All":
        if count:
            yield invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    elif mode == "ExactCount":
        if count <= 0:
            yield invalid(f"{path}.count", count, "must be greater than zero")
    else:
        yield not_supported(f"{path}.allocationMode", mode, _MODES)


def _check_capacity(amounts: Document, path: str) -> Causes:
    # The reference checks neither keys nor values; a negative amount would reduce what other claims have consumed.
    for name, amount in amounts.items():
        yield from name_errors(path, name, names.device_qualified_name)
        if cause := check_not_negative(f"{path}[{name}]", amount):
            yield cause


def _check_constraints(constraints: list[Document], path: str, known: set[str]) -> Causes:
    if len(constraints) > CONSTRAINTS_MAX:
        yield too_many(path, len(constraints), CONSTRAINTS_MAX)
        return
    for i, constraint in enumerate(constraints):
        yield from check_references(constraint.get("requests") or [], f"{path}[{i}].requests", known)
        # Both may be set: the reference accepts that and then uses only matchAttribute.
        for member in ("matchAttribute", "distinctAttribute"):
            if (attribute := constraint.get(member)) is not None:
                yield from name_errors(f"{path}[{i}].{member}", attribute, names.fully_qualified_device_name)
                break
        else:
            yield required(f"{path}[{i}]", 'exactly one of "matchAttribute" or "distinctAttribute" is required')
