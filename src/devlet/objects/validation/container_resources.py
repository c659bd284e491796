"""Rules for a container's resources: requests, limits, and the claims it uses.

cpu and memory may be overcommitted. Extended resources and huge pages may not, so their requests equal their limits.
"""

from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation.amounts import parse, unreadable
from devlet.objects.validation.field_errors import (
    Causes,
    duplicate,
    invalid,
    name_errors,
    not_found,
    required,
)
from devlet.objects.values.quantity import Quantity

DEVICE_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"

_STANDARD = frozenset(("cpu", "memory", "ephemeral-storage"))


def check(resources: Document, path: str, pod_claims: frozenset[str]) -> Causes:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for member, amounts in (("limits", limits), ("requests", requests)):
        for name, value in amounts.items():
            yield from _check_amount(name, value, f"{path}.{member}[{name}]")
    for name, value in requests.items():
        yield from _check_request(name, parse(value), limits, path)
    yield from check_claims(resources.get("claims") or [], f"{path}.claims", pod_claims)


def is_extended(name: str) -> bool:
    return name.startswith(DEVICE_CLASS_PREFIX) or ("/" in name and "kubernetes.io/" not in name)


def check_claims(claims: list[Document], path: str, pod_claims: frozenset[str]) -> Causes:
    seen: dict[str, set[str]] = {}
    for i, claim in enumerate(claims):
        name, request = claim.get("name", ""), claim.get("request") or ""
        used = seen.setdefault(name, set())
        if not name:
            yield required(f"{path}[{i}].name")
        elif name not in pod_claims:
            empty = "" if pod_claims else " which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims{empty}"
            yield not_found(f"{path}[{i}].name", name, detail)
        # Using the whole claim includes each of its requests.
        if name and used and (not request or not {request, ""}.isdisjoint(used)):
            yield duplicate(f"{path}[{i}]", f"{name}/{request}" if request else name)
        used.add(request)
        if request:
            yield from name_errors(f"{path}[{i}].request", request, names.dns_label)


def _check_amount(name: str, value: object, path: str) -> Causes:
    yield from _check_resource_name(name, path)
    amount = parse(value)
    if amount is None:
        yield unreadable(path, value)
    elif amount.sign < 0:
        yield invalid(path, str(amount), "must be greater than or equal to 0")
    elif is_extended(name) and amount.exact_int() is None:
        yield invalid(path, str(amount), "must be an integer")


def _check_resource_name(name: str, path: str) -> Causes:
    if name in _STANDARD:
        return
    yield from name_errors(path, name, names.qualified_name)
    if "/" not in name:
        if not name.startswith("hugepages-"):
            yield invalid(path, name, "must be a standard resource type or fully qualified")
            yield invalid(path, name, "must be a standard resource for containers")
    elif "kubernetes.io/" not in name and names.extended_resource_name(name):
        yield invalid(path, name, "doesn't follow extended resource name standard")


def _check_request(name: str, request: Quantity | None, limits: Document, path: str) -> Causes:
    exact = is_extended(name) or name.startswith("hugepages-")
    limit = parse(limits[name]) if name in limits else None
    if name not in limits:
        if exact:
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
    elif request is None or limit is None:
        return
    elif exact and request != limit:
        yield invalid(f"{path}.requests", str(request), f"must be equal to {name} limit of {limit}")
    elif request > limit:
        yield invalid(f"{path}.requests", str(request), f"must be less than or equal to {name} limit of {limit}")
