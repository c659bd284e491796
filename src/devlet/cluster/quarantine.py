"""Objects that some part of devlet cannot read or handle: each is logged, reported with an event, and listed.

The part continues with the other objects. An entry belongs to one version of the object: a newer version that can be
handled, and the deletion of the object, remove it.
"""

import logging
from typing import Protocol

from msgspec import Struct

from devlet.kit.facts import facts
from devlet.kit.metrics import Labels, Registry
from devlet.objects.documents import Document
from devlet.objects.identifiers import ObjectKey
from devlet.objects.kinds import Resource
from devlet.objects.types.meta import ObjectReference

__all__ = ["MOST", "REASON", "Quarantine", "SetAside"]

log = logging.getLogger(__name__)

REASON = "CannotBeHandled"  # of the events
MOST = 1000  # entries; objects beyond that are logged and reported, but not listed
_PROBLEM_MAX = 500  # characters


class Record(Protocol):
    """A function that records events, such as `cluster.events.Recorder.record`."""

    def __call__(self, about: ObjectReference, type: str, reason: str, message: str) -> None: ...


class SetAside(Struct, frozen=True):
    version: str
    problem: str


class Quarantine:
    """Shared by all informers of a program. Without `record` there are no events, and without `metrics` no series."""

    def __init__(self, record: Record | None = None, metrics: Registry | None = None) -> None:
        self._record = record
        self._entries: dict[tuple[str, str, str], SetAside] = {}
        if metrics is not None:
            text = "Objects that devlet cannot read or handle; events about them say why."
            metrics.gauge("devlet_set_aside_objects", text, ("resource", "namespace", "name"), read=self._samples)

    @property
    def entries(self) -> dict[tuple[str, str, str], SetAside]:
        """Return the entries by resource, namespace and name. They must not be changed."""
        return self._entries

    def add(self, resource: Resource, document: Document, error: Exception, *, handler: str = "") -> None:
        """Add an object that could not be read, or that `handler` failed to handle."""
        about = _reference(resource, document)
        doing = f"{handler} failed on this object" if handler else "this object cannot be read"
        problem = f"{doing}: {type(error).__name__}: {error}"[:_PROBLEM_MAX]
        key = (resource.name, about.namespace, about.name)
        log.error(
            "object set aside",
            exc_info=error if handler else None,
            extra=facts(resource=resource.name, object=f"{about.namespace}/{about.name}", err=problem),
        )
        if len(self._entries) < MOST or key in self._entries:
            self._entries[key] = SetAside(about.resource_version, problem)
        if self._record is not None:
            message = f"{problem[0].upper()}{problem[1:]}. Correct or delete the object."
            self._record(about, "Warning", REASON, message)

    def remove(self, resource: Resource, key: ObjectKey, version: str = "") -> None:
        """Drop the entry of an object unless it is about this very version."""
        if self._entries and (found := self._entries.get((resource.name, *key))) and found.version != version:
            del self._entries[resource.name, *key]

    def _samples(self) -> dict[Labels, float]:
        return dict.fromkeys(self._entries, 1.0)


def _reference(resource: Resource, document: Document) -> ObjectReference:
    metadata = document["metadata"]
    return ObjectReference(
        kind=resource.kind.kind,
        api_version=resource.api_version,
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        resource_version=metadata.get("resourceVersion", ""),
    )
