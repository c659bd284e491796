"""Rules for ResourcePoolStatusRequest: the spec is immutable, and the status is written once."""

from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import conditions
from devlet.objects.validation.field_errors import (
    Causes,
    byte_length,
    immutable,
    invalid,
    name_errors,
    required_name,
    too_long,
    too_many,
)

LIMIT_MAX = 1000
CONDITIONS_MAX = 10
ERROR_MAX = 256

_COUNTS = ("totalDevices", "allocatedDevices", "availableDevices", "unavailableDevices", "generation")


def check(document: Document) -> Causes:
    spec = document.get("spec") or {}
    yield from required_name("spec.driver", spec.get("driver", ""), names.driver_name)
    if "poolName" in spec:
        yield from name_errors("spec.poolName", spec["poolName"], names.pool_name)
    if "limit" not in spec:
        return
    if spec["limit"] < 1:
        yield invalid("spec.limit", spec["limit"], "must be greater than or equal to 1")
    elif spec["limit"] > LIMIT_MAX:
        yield invalid("spec.limit", spec["limit"], f"must be less than or equal to {LIMIT_MAX}")


def check_update(document: Document, old: Document) -> Causes:
    yield from immutable("spec", document.get("spec") or {}, old.get("spec") or {})


def check_status_update(document: Document, old: Document) -> Causes:
    status, old_status = document.get("status") or {}, old.get("status") or {}
    if old_status:
        yield from immutable("status", status, old_status)
        return
    if status.get("poolCount", 0) < 0:
        yield invalid("status.poolCount", status["poolCount"], "must be greater than or equal to 0")
    yield from conditions.check(status.get("conditions") or [], "status.conditions", CONDITIONS_MAX)
    pools = status.get("pools") or []
    if len(pools) > LIMIT_MAX:
        yield too_many("status.pools", len(pools), LIMIT_MAX)
        return
    for i, pool in enumerate(pools):
        yield from _check_pool(pool, f"status.pools[{i}]")


def _check_pool(pool: Document, path: str) -> Causes:
    yield from required_name(f"{path}.driver", pool.get("driver", ""), names.driver_name)
    yield from required_name(f"{path}.poolName", pool.get("poolName", ""), names.pool_name)
    for member in _COUNTS:
        if pool.get(member, 0) < 0:
            yield invalid(f"{path}.{member}", pool[member], "must be greater than or equal to 0")
    if pool.get("resourceSliceCount", 1) < 1:
        yield invalid(f"{path}.resourceSliceCount", pool["resourceSliceCount"], "must be greater than or equal to 1")
    if "nodeName" in pool:
        yield from name_errors(f"{path}.nodeName", pool["nodeName"], names.dns_subdomain)
    if byte_length(pool.get("validationError", "")) > ERROR_MAX:
        yield too_long(f"{path}.validationError", ERROR_MAX)
