"""Rules for Event, in its stored shape (core/v1).

Clients of events.k8s.io/v1 must set more fields than those of core/v1: the time of the event and its reporter.
"""

from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation.field_errors import Causes, invalid, name_errors, required

REASON_MAX = 128
ACTION_MAX = 128
INSTANCE_MAX = 128
NOTE_MAX = 1024

_TYPES = ("Normal", "Warning")
_DEPRECATED = ("firstTimestamp", "lastTimestamp", "count", "source")
# The namespace of events about objects without a namespace.
_CLUSTER_NAMESPACES = ("", "default", "kube-system")


def check(document: Document) -> Causes:
    """Check the rules for every event."""
    namespace = (document.get("metadata") or {}).get("namespace") or ""
    involved = (document.get("involvedObject") or {}).get("namespace") or ""
    matches = involved == namespace if involved else namespace in _CLUSTER_NAMESPACES
    if not matches:
        yield invalid("involvedObject.namespace", involved, "does not match event.namespace")


def check_new_shape(document: Document) -> Causes:
    """Check the additional rules for an event created through events.k8s.io/v1."""
    if not document.get("eventTime"):
        yield required("eventTime")
    if document.get("type", "") not in _TYPES:
        yield invalid("type", "", f"has invalid value: {document.get('type', '')}")
    for member in _DEPRECATED:
        if document.get(member):
            yield invalid(member, "", "needs to be unset")
    yield from _check_reporter(document)
    yield from _check_text(document, "action", ACTION_MAX)
    yield from _check_text(document, "reason", REASON_MAX)
    if len(document.get("message", "")) > NOTE_MAX:
        yield invalid("message", "", f"can have at most {NOTE_MAX} characters")
    if (series := document.get("series")) is not None:
        if series.get("count", 0) < 2:
            yield invalid("series.count", "", "should be at least 2")
        if not series.get("lastObservedTime"):
            yield required("series.lastObservedTime")


def _check_reporter(document: Document) -> Causes:
    controller = document.get("reportingComponent", "")
    if controller:
        yield from name_errors("reportingController", controller, names.qualified_name)
    else:
        yield required("reportingController")
    yield from _check_text(document, "reportingInstance", INSTANCE_MAX)


def _check_text(document: Document, member: str, limit: int) -> Causes:
    text = document.get(member, "")
    if not text:
        yield required(member)
    elif len(text) > limit:
        yield invalid(member, "", f"can have at most {limit} characters")
