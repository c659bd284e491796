"""Whether an object may be stored: its namespace, its rules, and what other objects have to say."""

from dataclasses import replace
from functools import cache
from typing import Protocol

from devlet.cluster.client import WriteOptions
from devlet.cluster.store.records import Key, Record
from devlet.errors import Cause, Forbidden, InvalidObject, NotFound
from devlet.objects import validation
from devlet.objects.conversion import convert_path
from devlet.objects.documents import Document
from devlet.objects.kinds import NAMESPACES, PRIORITY_CLASSES, Kind, Resource
from devlet.objects.validation import Rules


class Newest(Protocol):
    """The part of the ledger that admission needs."""

    def newest(self, kind: Kind, key: Key) -> Record | None: ...


class Admission:
    """Raises what the client is told; may fill in what the decision settles (a pod's priority)."""

    def __init__(self, ledger: Newest, rules: Rules) -> None:
        self._ledger = ledger
        self._rules = cache(lambda api_version: replace(rules, api_version=api_version))

    def admit_create(self, resource: Resource, new: Document, options: WriteOptions) -> None:
        namespace = self._namespace(new)
        if namespace is not None:
            _check_alive(resource, new, namespace)
        if resource.kind.kind == "Pod":
            self._set_priority(new)
        causes = validation.validate_create(new, self._rules(resource.api_version))
        causes += validation.admission_errors(new, None, namespace.selectable if namespace else None)
        self._conclude(resource, new, None, causes, options)

    def admit_update(
        self, resource: Resource, new: Document, old: Document, subresource: str, options: WriteOptions
    ) -> None:
        validate = validation.validate_status_update if subresource == "status" else validation.validate_update
        causes = validate(new, old, self._rules(resource.api_version))
        namespace = self._namespace(new, required=False)
        causes += validation.admission_errors(new, old, namespace.selectable if namespace else None)
        self._conclude(resource, new, old, causes, options)

    def _conclude(
        self, resource: Resource, new: Document, old: Document | None, causes: list[Cause], options: WriteOptions
    ) -> None:
        if causes:
            metadata = new["metadata"]
            shown = [Cause(c.reason, c.message, convert_path(c.field, resource.api_version)) for c in causes]
            raise InvalidObject(resource.kind_name, metadata.get("name") or metadata.get("generateName", ""), shown)
        if options.warn is not None:
            for text in validation.warnings(new, old):
                options.warn(text)

    def _namespace(self, document: Document, *, required: bool = True) -> Record | None:
        name = document["metadata"].get("namespace")
        if not name:
            return None
        record = self._ledger.newest(NAMESPACES.kind, ("", name))
        if record is None and required:
            raise NotFound(f'namespaces "{name}" not found', resource="namespaces", name=name)
        return record

    def _set_priority(self, pod: Document) -> None:
        spec = pod["spec"]
        name = spec.get("priorityClassName")
        if not name:
            spec.setdefault("priority", 0)
            return
        record = self._ledger.newest(PRIORITY_CLASSES.kind, ("", name))
        if record is None:
            pod_name = pod["metadata"].get("name", "")
            message = f'pods "{pod_name}" is forbidden: no PriorityClass with name {name} was found'
            raise Forbidden(message, resource="pods", name=pod_name)
        spec["priority"] = record.document().get("value", 0)


def _check_alive(resource: Resource, new: Document, namespace: Record) -> None:
    """Nothing new in a namespace that is going away."""
    if namespace.metadata.deletion_timestamp is None:
        return
    name, where = new["metadata"].get("name", ""), namespace.metadata.name
    text = f"namespace {where} is being terminated"
    raise Forbidden(
        f'{resource.name} "{name}" is forbidden: unable to create new content in namespace {where} because it is'
        " being terminated",
        resource=resource.name,
        name=name,
        causes=[Cause("NamespaceTerminating", text, "metadata.namespace")],
    )
