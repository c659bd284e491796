"""What a delete request does to an object: remove it now, or mark it and wait for finalizers or its node."""

from dataclasses import dataclass
from datetime import datetime

from devlet.cluster.client import DeleteOptions, Propagation
from devlet.errors import Conflict, Forbidden
from devlet.objects.documents import Document
from devlet.objects.kinds import Resource
from devlet.objects.timestamps import after, format_time

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
PROTECTED_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})


@dataclass(frozen=True, slots=True)
class Outcome:
    """`document` is a changed copy; without it the object stays just as it is."""

    remove: bool
    document: Document | None = None


def decide(resource: Resource, document: Document, options: DeleteOptions, now: datetime) -> Outcome:
    """Raises Conflict if a precondition does not hold, Forbidden for what may never go."""
    _check_preconditions(resource, document, options)
    metadata = document["metadata"]
    if resource.kind.kind == "Namespace" and metadata["name"] in PROTECTED_NAMESPACES:
        name = metadata["name"]
        message = f'namespaces "{name}" is forbidden: this namespace may not be deleted'
        raise Forbidden(message, resource=resource.name, name=name)

    grace = _grace(document, options) if resource.kind.kind == "Pod" else 0
    finalizers = _finalizers(metadata, options.propagation)
    waits = bool(finalizers) or bool(grace) or _has_content(document)
    if not waits and resource.kind.kind != "Pod":
        return Outcome(remove=True)
    marked = _marked(document, grace, finalizers, now)
    if not waits:  # a pod is last seen with the time of its deletion, however short its grace
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


def _grace(pod: Document, options: DeleteOptions) -> int:
    """Seconds that the pod's node may take. Only ever shortened once deletion has begun."""
    spec, phase = pod.get("spec", {}), pod.get("status", {}).get("phase")
    asked = options.grace_period
    if asked is None:
        asked = spec.get("terminationGracePeriodSeconds", 0)
    if not spec.get("nodeName") or phase in ("Succeeded", "Failed"):
        asked = 0
    if asked < 0:
        asked = 1
    begun: int | None = pod["metadata"].get("deletionGracePeriodSeconds")
    return asked if begun is None else min(asked, begun)


def _finalizers(metadata: Document, propagation: Propagation | None) -> list[str]:
    have: list[str] = list(metadata.get("finalizers") or ())
    if propagation is None:
        return have
    wanted = {Propagation.FOREGROUND: FOREGROUND, Propagation.ORPHAN: ORPHAN}.get(propagation)
    kept = [f for f in have if f not in (FOREGROUND, ORPHAN) or f == wanted]
    return kept if wanted is None or wanted in kept else [*kept, wanted]


def _has_content(document: Document) -> bool:
    return document["kind"] == "Namespace" and bool(document.get("spec", {}).get("finalizers"))


def _marked(document: Document, grace: int, finalizers: list[str], now: datetime) -> Document:
    metadata = dict(document["metadata"])
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    first_time = "deletionTimestamp" not in metadata
    if first_time or grace < metadata.get("deletionGracePeriodSeconds", 0):
        metadata["deletionTimestamp"] = format_time(after(now, grace))
        metadata["deletionGracePeriodSeconds"] = grace
        if document["kind"] == "Pod" and first_time:
            metadata["generation"] = metadata.get("generation", 0) + 1
    marked = {**document, "metadata": metadata}
    if document["kind"] == "Namespace":
        marked["status"] = {**document.get("status", {}), "phase": "Terminating"}
    return marked
