"""Defaults of resource.k8s.io: claims, templates, slices, taint rules and pool status requests.

In a request with `firstAvailable` only the subrequests get defaults; no `exactly` is added. All functions modify the
storage document that they are given.
"""

from datetime import datetime

from devlet.objects.documents import Document
from devlet.objects.subdocuments import ensure, fill, fill_empty, mapping, mappings
from devlet.objects.values.timestamps import format_time

__all__ = [
    "default_claim",
    "default_pool_status_request",
    "default_slice",
    "default_taint_rule",
    "default_template",
]

POOL_STATUS_LIMIT = 100


def default_claim(claim: Document) -> None:
    _default_claim_spec(ensure(claim, "spec"))
    status = ensure(claim, "status")
    devices = mapping(mapping(status, "allocation") or {}, "devices") or {}
    for result in mappings(devices, "results"):
        _default_tolerations(result)


def default_template(template: Document) -> None:
    spec = ensure(template, "spec")
    ensure(spec, "metadata")
    _default_claim_spec(ensure(spec, "spec"))


def _default_claim_spec(spec: Document) -> None:
    for request in mappings(mapping(spec, "devices") or {}, "requests"):
        if (exactly := mapping(request, "exactly")) is not None:
            _default_request(exactly)
        for subrequest in mappings(request, "firstAvailable"):
            _default_request(subrequest)


def _default_request(request: Document) -> None:
    fill_empty(request, "allocationMode", "ExactCount")
    if request["allocationMode"] == "ExactCount":
        fill_empty(request, "count", 1)
    _default_tolerations(request)


def _default_tolerations(parent: Document) -> None:
    for toleration in mappings(parent, "tolerations"):
        fill_empty(toleration, "operator", "Equal")


# An unset allocationMultiplier of a mapping means 1. Unlike the reference we do not fill it in: a driver would take a
# value that it did not send for a dropped field, and complain.
def default_slice(slice_: Document, now: datetime) -> None:
    for device in mappings(ensure(slice_, "spec"), "devices"):
        if "taints" in device:
            for taint in mappings(device, "taints"):
                fill(taint, "timeAdded", format_time(now))


def default_taint_rule(rule: Document, now: datetime, old: Document | None) -> None:
    """Set the time of the taint. A changed effect counts as a new taint, whose time is now unless the writer sets
    one."""
    if (taint := mapping(ensure(rule, "spec"), "taint")) is None:
        return
    before = mapping(mapping(old or {}, "spec") or {}, "taint")
    if before is not None and _is_new_effect(taint, before):
        taint["timeAdded"] = format_time(now)
    fill(taint, "timeAdded", format_time(now))


def _is_new_effect(taint: Document, before: Document) -> bool:
    return taint.get("effect") != before.get("effect") and taint.get("timeAdded") == before.get("timeAdded")


def default_pool_status_request(request: Document) -> None:
    fill(ensure(request, "spec"), "limit", POOL_STATUS_LIMIT)
