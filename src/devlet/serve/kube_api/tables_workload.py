"""The rows of workloads: replica sets and the like, and disruption budgets."""

from datetime import datetime

from devlet.objects.documents import Document
from devlet.objects.subdocuments import at, mappings, name, number, text
from devlet.objects.table_cells import AGE, NAME, Cell, Column, Printer, age, label_text, selector_text, wide

__all__ = ["DAEMON_SETS", "POD_DISRUPTION_BUDGETS", "REPLICATION_CONTROLLERS", "REPLICA_SETS", "STATEFUL_SETS"]


def _containers(document: Document, key: str) -> str:
    containers = mappings(document, "spec", "template", "spec", "containers")
    return ",".join(text(container, key) for container in containers)


def _replicas(document: Document, now: datetime) -> list[Cell]:
    return [
        name(document),
        number(document, "spec", "replicas"),
        number(document, "status", "replicas"),
        number(document, "status", "readyReplicas"),
        age(document, now),
        _containers(document, "name"),
        _containers(document, "image"),
    ]


def _replication_controller(document: Document, now: datetime) -> list[Cell]:
    return [*_replicas(document, now), label_text(at(document, "spec", "selector"))]


def _replica_set(document: Document, now: datetime) -> list[Cell]:
    return [*_replicas(document, now), selector_text(at(document, "spec", "selector"))]


def _stateful_set(document: Document, now: datetime) -> list[Cell]:
    return [
        name(document),
        f"{number(document, 'status', 'readyReplicas')}/{number(document, 'spec', 'replicas')}",
        age(document, now),
        _containers(document, "name"),
        _containers(document, "image"),
    ]


def _daemon_set(document: Document, now: datetime) -> list[Cell]:
    counts = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return [
        name(document),
        *(number(document, "status", key) for key in counts),
        label_text(at(document, "spec", "template", "spec", "nodeSelector")),
        age(document, now),
        _containers(document, "name"),
        _containers(document, "image"),
        selector_text(at(document, "spec", "selector")),
    ]


def _pod_disruption_budget(document: Document, now: datetime) -> list[Cell]:
    limits = [at(document, "spec", key) for key in ("minAvailable", "maxUnavailable")]
    return [
        name(document),
        *("N/A" if limit is None else str(limit) for limit in limits),
        number(document, "status", "disruptionsAllowed"),
        age(document, now),
    ]


_TEMPLATE = (wide("Containers"), wide("Images"))
_REPLICAS = (
    NAME,
    Column("Desired", "integer"),
    Column("Current", "integer"),
    Column("Ready", "integer"),
    AGE,
    *_TEMPLATE,
    wide("Selector"),
)

REPLICATION_CONTROLLERS = Printer(_REPLICAS, _replication_controller)
REPLICA_SETS = Printer(_REPLICAS, _replica_set)
STATEFUL_SETS = Printer((NAME, Column("Ready"), AGE, *_TEMPLATE), _stateful_set)
DAEMON_SETS = Printer(
    (
        NAME,
        Column("Desired", "integer"),
        Column("Current", "integer"),
        Column("Ready", "integer"),
        Column("Up-to-date", "integer"),
        Column("Available", "integer"),
        Column("Node Selector"),
        AGE,
        *_TEMPLATE,
        wide("Selector"),
    ),
    _daemon_set,
)
POD_DISRUPTION_BUDGETS = Printer(
    (
        NAME,
        Column("Min Available"),
        Column("Max Unavailable"),
        Column("Allowed Disruptions", "integer"),
        AGE,
    ),
    _pod_disruption_budget,
)
