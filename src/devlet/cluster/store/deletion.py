"""Decide what a delete request does: remove the object now, or mark it and wait for finalizers or its node."""

from dataclasses import dataclass
from datetime import datetime

from devlet.cluster.client import DeleteOptions, Propagation
from devlet.cluster.store.strategy import Deletion, strategy_of
from devlet.errors import Conflict, Forbidden
from devlet.objects.documents import Document
from devlet.objects.kinds import Resource
from devlet.objects.values.timestamps import after, format_time

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What to do. `document` is a changed copy of the object; without it the object stays unchanged."""

    remove: bool
    document: Document | None = None


def decide(resource: Resource, document: Document, options: DeleteOptions, now: datetime) -> Outcome:
    """Raise Conflict if a precondition does not hold, and Forbidden if the object is protected."""
    _check_preconditions(resource, document, options)
    how = strategy_of(resource.kind).deletion
    metadata = document["metadata"]
    if (name := metadata["name"]) in how.protected:
        singular = resource.kind.kind.lower()
        message = f'{resource.name} "{name}" is forbidden: this {singular} may not be deleted'
        raise Forbidden(message, resource=resource.name, name=name)

    grace = how.grace(document, options)
    finalizers = _finalizers(metadata, options.propagation)
    waits = bool(finalizers) or bool(grace) or how.has_content(document)
    if not waits and not how.is_always_marked:
        return Outcome(remove=True)
    marked = _marked(how, document, grace, finalizers, now)
    if not waits:
        return Outcome(remove=True, document=marked)
    return Outcome(remove=False, document=marked if marked != document else None)


def _check_preconditions(resource: Resource, document: Document, options: DeleteOptions) -> None:
    metadata, wanted = document["metadata"], options.preconditions
    for label, expected, actual, guess in (
        ("UID", wanted.uid, metadata["uid"], "deleted and then recreated"),
        ("ResourceVersion", wanted.resource_version, metadata["resourceVersion"], "modified"),
    ):
        if expected is not None and expected != actual:
            raise Conflict(
                f'Operation cannot be fulfilled on {resource.kind_name} "{metadata["name"]}": the {label} in the'
                f" precondition ({expected}) does not match the {label} in record ({actual})."
                f" The object might have been {guess}",
                resource=resource.kind_name,
                name=metadata["name"],
            )


def _finalizers(metadata: Document, propagation: Propagation | None) -> list[str]:
    have: list[str] = list(metadata.get("finalizers") or ())
    if propagation is None:
        return have
    wanted = {Propagation.FOREGROUND: FOREGROUND, Propagation.ORPHAN: ORPHAN}.get(propagation)
    kept = [f for f in have if f not in (FOREGROUND, ORPHAN) or f == wanted]
    return kept if wanted is None or wanted in kept else [*kept, wanted]


def _marked(how: Deletion, document: Document, grace: int, finalizers: list[str], now: datetime) -> Document:
    metadata = dict(document["metadata"])
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    first_time = "deletionTimestamp" not in metadata
    if first_time or grace < metadata.get("deletionGracePeriodSeconds", 0):
        metadata["deletionTimestamp"] = format_time(after(now, grace))
        metadata["deletionGracePeriodSeconds"] = grace
    marked = {**document, "metadata": metadata}
    how.mark(marked, first_time)
    return marked
