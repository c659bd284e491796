"""The rows of namespaces, events, configuration, services, leases and priority classes."""

from datetime import datetime

from devlet.objects.documents import Document
from devlet.objects.subdocuments import at, mappings, name, number, text, texts
from devlet.objects.table_cells import (
    AGE,
    NAME,
    UNKNOWN,
    Cell,
    Column,
    Printer,
    age,
    label_text,
    none_if_empty,
    since,
    wide,
)

__all__ = [
    "CONFIG_MAPS",
    "EVENTS",
    "LEASES",
    "NAMESPACES",
    "NAME_AND_AGE",
    "OTHERS",
    "PRIORITY_CLASSES",
    "SECRETS",
    "SERVICES",
]


def _name_and_age(document: Document, now: datetime) -> list[Cell]:
    return [name(document), age(document, now)]


def _other(document: Document, now: datetime) -> list[Cell]:
    return [name(document), text(document, "metadata", "creationTimestamp")]


def _namespace(document: Document, now: datetime) -> list[Cell]:
    return [name(document), text(document, "status", "phase"), age(document, now)]


def _config_map(document: Document, now: datetime) -> list[Cell]:
    return [name(document), _keys(document, "data") + _keys(document, "binaryData"), age(document, now)]


def _secret(document: Document, now: datetime) -> list[Cell]:
    return [name(document), text(document, "type"), _keys(document, "data"), age(document, now)]


def _keys(document: Document, key: str) -> int:
    value = document.get(key)
    return len(value) if isinstance(value, dict) else 0


def _lease(document: Document, now: datetime) -> list[Cell]:
    return [name(document), text(document, "spec", "holderIdentity"), age(document, now)]


def _priority_class(document: Document, now: datetime) -> list[Cell]:
    return [
        name(document),
        number(document, "value"),
        document.get("globalDefault") is True,
        age(document, now),
        text(document, "preemptionPolicy"),
    ]


def _event(document: Document, now: datetime) -> list[Cell]:
    """Return the cells of an event of either API: `involvedObject` in one of them is `regarding` in the other."""
    new = "regarding" in document or "deprecatedSource" in document or "note" in document
    about = document.get("regarding" if new else "involvedObject") or {}
    first = document.get("deprecatedFirstTimestamp" if new else "firstTimestamp") or document.get("eventTime")
    last = document.get("deprecatedLastTimestamp" if new else "lastTimestamp") or first
    count = number(document, "deprecatedCount" if new else "count") or 1
    if isinstance(series := document.get("series"), dict):
        last, count = series.get("lastObservedTime"), number(series, "count")
    target = [text(about, "kind").lower(), text(about, "name")]
    return [
        since(last, now),
        text(document, "type"),
        text(document, "reason"),
        "/".join(target) if target[1] else target[0],
        text(about, "fieldPath"),
        _source(document, new),
        text(document, "note" if new else "message").strip(),
        since(first, now),
        count,
        name(document),
    ]


def _source(document: Document, new: bool) -> str:
    source = document.get("deprecatedSource" if new else "source") or {}
    parts = [text(source, "component"), text(source, "host")]
    if not parts[0]:
        controller = "reportingController" if new else "reportingComponent"
        parts = [text(document, controller), text(document, "reportingInstance")]
    return ", ".join(parts) if parts[1] else parts[0]


def _service(document: Document, now: datetime) -> list[Cell]:
    addresses = texts(document, "spec", "clusterIPs") or [text(document, "spec", "clusterIP")]
    return [
        name(document),
        text(document, "spec", "type"),
        none_if_empty(addresses[0]),
        _external_addresses(document),
        none_if_empty(",".join(_port(port) for port in mappings(document, "spec", "ports"))),
        age(document, now),
        label_text(at(document, "spec", "selector")),
    ]


def _external_addresses(service: Document) -> str:
    own = texts(service, "spec", "externalIPs")
    match text(service, "spec", "type"):
        case "ClusterIP" | "NodePort":
            return none_if_empty(",".join(own))
        case "LoadBalancer":
            ingress = mappings(service, "status", "loadBalancer", "ingress")
            balancers = sorted({text(entry, "ip") or text(entry, "hostname") for entry in ingress} - {""})
            return ",".join([*balancers, *own]) or "<pending>"
        case "ExternalName":
            return text(service, "spec", "externalName")
        case _:
            return UNKNOWN


def _port(port: Document) -> str:
    node_port = number(port, "nodePort")
    middle = f":{node_port}" if node_port else ""
    return f"{number(port, 'port')}{middle}/{text(port, 'protocol')}"


NAME_AND_AGE = Printer((NAME, AGE), _name_and_age)
# kubectl prints the time itself as an age.
OTHERS = Printer((NAME, Column("Created At", type="date", description="When the object was created.")), _other)
NAMESPACES = Printer((NAME, Column("Status", description="Active or Terminating."), AGE), _namespace)
CONFIG_MAPS = Printer((NAME, Column("Data", description="The number of keys."), AGE), _config_map)
SECRETS = Printer((NAME, Column("Type"), Column("Data", description="The number of keys."), AGE), _secret)
LEASES = Printer((NAME, Column("Holder", description="The current holder."), AGE), _lease)
PRIORITY_CLASSES = Printer(
    (NAME, Column("Value", "integer"), Column("Global-Default", "boolean"), AGE, Column("PreemptionPolicy")),
    _priority_class,
)
SERVICES = Printer(
    (
        NAME,
        Column("Type"),
        Column("Cluster-IP"),
        Column("External-IP"),
        Column("Port(s)"),
        AGE,
        wide("Selector"),
    ),
    _service,
)
EVENTS = Printer(
    (
        Column("Last Seen", description="The time since the last occurrence."),
        Column("Type"),
        Column("Reason"),
        Column("Object", description="The object that the event is about."),
        wide("Subobject", "The part of the object."),
        wide("Source", "The component that reported the event."),
        Column("Message"),
        wide("First Seen", "The time since the first occurrence."),
        wide("Count", "The number of occurrences."),
        wide("Name", "The name of the event.", format="name"),
    ),
    _event,
)
