"""What decisions need to know about the cluster's objects, read from the store's memory without waiting."""

from collections.abc import Mapping
from typing import Protocol

from devlet.auth.rbac import Policy
from devlet.objects.documents import Document
from devlet.objects.kinds import NODES, PODS, RBAC, RESOURCE_SLICES, SECRETS, SERVICE_ACCOUNTS, Resource

__all__ = ["Objects", "StoredObjects"]

_WITH_UID = {resource.plural: resource for resource in (NODES, PODS, SECRETS, SERVICE_ACCOUNTS)}


class Metadata(Protocol):
    @property
    def uid(self) -> str: ...


class StoredObject(Protocol):
    @property
    def metadata(self) -> Metadata: ...

    @property
    def selectable(self) -> Document:
        """Return the fields that field selectors can ask for."""
        ...

    def document(self) -> Document: ...


class Table(Protocol):
    """The objects of one kind, by namespace (empty for cluster-scoped kinds) and name."""

    @property
    def version(self) -> int:
        """Return a number that differs after each change."""
        ...

    @property
    def records(self) -> Mapping[tuple[str, str], StoredObject]: ...


class Objects(Protocol):
    def table(self, resource: Resource) -> Table: ...


class StoredObjects:
    """Answers the questions of `Authenticator`, `Authorizer` and `Admission`."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._policy = Policy()
        self._policy_of: tuple[int, ...] = ()

    def pods_on(self, node: str) -> list[Document]:
        records = self._objects.table(PODS).records.values()
        return [r.document() for r in records if (r.selectable.get("spec") or {}).get("nodeName") == node]

    def slice_node(self, name: str) -> str | None:
        record = self._objects.table(RESOURCE_SLICES).records.get(("", name))
        return (record.selectable.get("spec") or {}).get("nodeName") if record else None

    def uid_of(self, plural: str, namespace: str, name: str) -> str | None:
        record = self._objects.table(_WITH_UID[plural]).records.get((namespace, name))
        return record.metadata.uid if record else None

    def policy(self) -> Policy:
        """Return the policy of the stored RBAC objects. It is built again only after one of them has changed."""
        tables = [self._objects.table(resource) for resource in RBAC]
        versions = tuple(table.version for table in tables)
        if versions != self._policy_of:
            self._policy = Policy(record.document() for table in tables for record in table.records.values())
            self._policy_of = versions
        return self._policy
