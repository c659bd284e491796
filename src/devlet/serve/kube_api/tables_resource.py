"""The rows of resource.k8s.io. The columns use only fields that are the same in all versions of a kind."""

from datetime import datetime

from devlet.objects.documents import Document
from devlet.objects.subdocuments import at, mappings, name, number, text
from devlet.objects.table_cells import AGE, NAME, NONE, Cell, Column, Printer, age, since

__all__ = ["DEVICE_TAINT_RULES", "RESOURCE_CLAIMS", "RESOURCE_POOL_STATUS_REQUESTS", "RESOURCE_SLICES"]

_COUNTS = ("totalDevices", "availableDevices", "allocatedDevices", "unavailableDevices")


def _slice(document: Document, now: datetime) -> list[Cell]:
    spec = at(document, "spec")
    return [
        name(document),
        text(spec, "nodeName"),
        text(spec, "driver"),
        text(spec, "pool", "name"),
        age(document, now),
    ]


def _claim(document: Document, now: datetime) -> list[Cell]:
    return [name(document), _claim_state(document), age(document, now)]


def _claim_state(claim: Document) -> str:
    deleted = bool(at(claim, "metadata", "deletionTimestamp"))
    allocated = at(claim, "status", "allocation") is not None
    states = {
        "deleted": deleted,
        "pending": not allocated and not deleted,
        "allocated": allocated,
        "reserved": allocated and bool(mappings(claim, "status", "reservedFor")),
    }
    return ",".join(state for state, holds in states.items() if holds)


def _taint_rule(document: Document, now: datetime) -> list[Cell]:
    taint = at(document, "spec", "taint")
    return [
        name(document),
        text(taint, "key"),
        text(taint, "value"),
        text(taint, "effect"),
        since(at(taint, "timeAdded"), now),
        age(document, now),
    ]


def _pool_status(document: Document, now: datetime) -> list[Cell]:
    outcome = _outcome(document)
    return [
        name(document),
        text(document, "spec", "driver"),
        *_counts(document, outcome),
        number(document, "status", "poolCount"),
        _pool_status_word(document, outcome),
        since(outcome.get("lastTransitionTime"), now) if outcome.get("type") == "Complete" else NONE,
    ]


def _outcome(request: Document) -> Document:
    """Return the condition with the outcome of the request; an empty one while it is pending."""
    for condition in mappings(request, "status", "conditions"):
        if condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True":
            return condition
    return {}


def _counts(request: Document, outcome: Document) -> list[Cell]:
    """Return the sums over the pools and the number of pools with errors, or dashes while there is no answer."""
    if not isinstance(at(request, "status"), dict) or outcome.get("type") == "Failed":
        return ["-"] * (len(_COUNTS) + 1)
    pools = mappings(request, "status", "pools")
    sums = [sum(number(pool, key) for pool in pools) for key in _COUNTS]
    return [str(count) for count in (*sums, sum(bool(text(pool, "validationError")) for pool in pools))]


def _pool_status_word(request: Document, outcome: Document) -> str:
    word = outcome.get("type", "Pending")
    listed, count = len(mappings(request, "status", "pools")), number(request, "status", "poolCount")
    return f"{word} ({listed}/{count} pools)" if word == "Complete" and listed < count else word


RESOURCE_SLICES = Printer(
    (
        NAME,
        Column("Node", description="The node of the devices; empty if they do not belong to a single node."),
        Column("Driver", description="The driver that publishes the devices and prepares them."),
        Column("Pool", description="The pool that the slice is part of."),
        AGE,
    ),
    _slice,
)
RESOURCE_CLAIMS = Printer(
    (NAME, Column("State", description="Pending, or any of deleted, allocated and reserved."), AGE), _claim
)
DEVICE_TAINT_RULES = Printer(
    (
        NAME,
        Column("Key"),
        Column("Value"),
        Column("Effect", description="The effect on pods that use a tainted device."),
        Column("TimeAdded", description="The time since the taint was set."),
        AGE,
    ),
    _taint_rule,
)
RESOURCE_POOL_STATUS_REQUESTS = Printer(
    (
        NAME,
        Column("Driver", description="The driver whose pools are requested."),
        Column("Total", description="The number of devices in these pools."),
        Column("Available", description="The number of devices that can be allocated."),
        Column("Allocated", description="The number of allocated devices."),
        Column("Unavailable", description="The number of devices that are tainted or unavailable for another reason."),
        Column("Errors", description="The number of invalid pools."),
        Column("Pools", "integer", description="The number of pools that were found."),
        Column("Status", description="Pending, Complete or Failed."),
        Column("Completed", description="The time since the request was answered."),
    ),
    _pool_status,
)
