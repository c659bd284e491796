"""Decide whether an object may be stored, by its namespace, its rules, and other objects."""

from dataclasses import replace
from functools import cache

from devlet.cluster.client import WriteOptions
from devlet.cluster.store.records import Newest, Record
from devlet.cluster.store.strategy import strategy_of
from devlet.errors import Cause, Forbidden, InvalidObject, NotFound
from devlet.objects import kind_rules
from devlet.objects.conversion import convert_path
from devlet.objects.documents import Document
from devlet.objects.kind_rules import Rules
from devlet.objects.kinds import NAMESPACES, Resource


class Admission:
    """Raise an error for an object that may not be stored. Fill in the fields that depend on other objects."""

    def __init__(self, ledger: Newest, rules: Rules) -> None:
        self._ledger = ledger
        self._rules = cache(lambda api_version: replace(rules, api_version=api_version))

    def admit_create(self, resource: Resource, new: Document, options: WriteOptions) -> None:
        namespace = self._namespace(new)
        if namespace is not None:
            _check_alive(resource, new, namespace)
        strategy_of(resource.kind).admit(new, self._ledger)
        causes = kind_rules.validate_create(new, self._rules(resource.api_version))
        causes += kind_rules.admission_errors(new, None, namespace.selectable if namespace else None)
        self._conclude(resource, new, None, causes, options)

    def admit_update(
        self, resource: Resource, new: Document, old: Document, subresource: str, options: WriteOptions
    ) -> None:
        validate = kind_rules.validate_status_update if subresource == "status" else kind_rules.validate_update
        causes = validate(new, old, self._rules(resource.api_version))
        namespace = self._namespace(new, required=False)
        causes += kind_rules.admission_errors(new, old, namespace.selectable if namespace else None)
        self._conclude(resource, new, old, causes, options)

    def _conclude(
        self, resource: Resource, new: Document, old: Document | None, causes: list[Cause], options: WriteOptions
    ) -> None:
        if causes:
            metadata = new["metadata"]
            shown = [Cause(c.reason, c.message, convert_path(c.field, resource.api_version)) for c in causes]
            raise InvalidObject(resource.kind_name, metadata.get("name") or metadata.get("generateName", ""), shown)
        if options.warn is not None:
            for text in kind_rules.warnings(new, old):
                options.warn(text)

    def _namespace(self, document: Document, *, required: bool = True) -> Record | None:
        name = document["metadata"].get("namespace")
        if not name:
            return None
        record = self._ledger.newest(NAMESPACES.kind, ("", name))
        if record is None and required:
            raise NotFound(f'namespaces "{name}" not found', resource="namespaces", name=name)
        return record


def _check_alive(resource: Resource, new: Document, namespace: Record) -> None:
    """Refuse new objects in a namespace that is being deleted."""
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
