"""The parts of custom resource definitions that describe how objects are shown: schemas and printer columns."""

from devlet.cluster.served_store import ServedStore, StoredObject
from devlet.objects.custom_resources import DEFINITION, kind_of, version_of
from devlet.objects.documents import Document
from devlet.objects.kinds import Resource, group_of
from devlet.objects.types.definition import is_schema

_DEFINITIONS = Resource(DEFINITION, DEFINITION.storage_version)


class Definitions:
    def __init__(self, store: ServedStore) -> None:
        self._store = store

    def schema(self, api_version: str, kind: str) -> Document | None:
        """Return the openAPIV3Schema of a custom kind; None if it has no schema that clients can read."""
        # A copy: this may run in a thread.
        for record in [*self._store.table(_DEFINITIONS).records.values()]:
            definition = _readable(record)
            spec = definition["spec"] if definition else {}
            if definition and spec["group"] == group_of(api_version) and spec["names"]["kind"] == kind:
                version = version_of(definition, api_version) or {}
                found = (version.get("schema") or {}).get("openAPIV3Schema")
                return found if isinstance(found, dict) and is_schema(found) else None
        return None

    def columns(self, resource: Resource) -> list[Document] | None:
        """Return the additionalPrinterColumns of a custom resource; None for others."""
        record = self._store.table(_DEFINITIONS).get(("", resource.kind.key))
        definition = _readable(record) if record else None
        if definition is None:
            return None
        version = version_of(definition, resource.api_version) or {}
        columns = version.get("additionalPrinterColumns")
        return columns if isinstance(columns, list) else None


def _readable(record: StoredObject) -> Document | None:
    """Return the definition, or None if an earlier release accepted it although it cannot be served."""
    definition = record.document()
    try:
        kind_of(definition)
    except (AttributeError, KeyError, StopIteration, TypeError):
        return None
    return definition
