"""What the definitions of custom resources say about how these are shown: schemas and printer columns."""

from devlet.cluster.store.store import Store
from devlet.objects.custom_resources import DEFINITION, version_of
from devlet.objects.documents import Document
from devlet.objects.kinds import Resource, group_of

_DEFINITIONS = Resource(DEFINITION, DEFINITION.storage_version)


class Definitions:
    def __init__(self, store: Store) -> None:
        self._store = store

    def schema(self, api_version: str, kind: str) -> Document | None:
        """The openAPIV3Schema of a custom kind."""
        for record in self._store.table(_DEFINITIONS).records.values():
            definition = record.document()
            spec = definition["spec"]
            if spec["group"] == group_of(api_version) and spec["names"]["kind"] == kind:
                version = version_of(definition, api_version) or {}
                found = (version.get("schema") or {}).get("openAPIV3Schema")
                return found if isinstance(found, dict) else None
        return None

    def columns(self, resource: Resource) -> list[Document] | None:
        """The additionalPrinterColumns of a custom resource; None for others."""
        record = self._store.table(_DEFINITIONS).get(("", resource.kind.key))
        if record is None:
            return None
        version = version_of(record.document(), resource.api_version) or {}
        columns = version.get("additionalPrinterColumns")
        return columns if isinstance(columns, list) else None
