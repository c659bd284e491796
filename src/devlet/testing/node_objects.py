"""Create, read, await and delete the objects of a node's cluster, from YAML, documents or a few words.

Objects are in the namespace `default` unless another is given. Fields that the API does not have are refused.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

from devlet.cluster.client import ApplyPatch, DeleteOptions, FieldValidation, ListOptions, WriteOptions
from devlet.cluster.store.store import Store
from devlet.errors import InvalidInput, NotFound
from devlet.objects.documents import Document
from devlet.objects.kinds import Resource
from devlet.testing import builders
from devlet.testing.waiting import DEADLINE, until

__all__ = ["NodeObjects"]

FIELD_MANAGER = "devlet-testing"

_STRICT = WriteOptions(field_manager=FIELD_MANAGER, field_validation=FieldValidation.STRICT)


class NodeObjects(ABC):
    """The objects of a cluster. `name` is the name of the node, for slices."""

    name: str

    @property
    @abstractmethod
    def cluster(self) -> Store: ...

    async def apply(self, *what: str | Path | Document | Sequence[Document]) -> list[Document]:
        """Create or update objects from YAML text, files or documents."""
        return [await self._apply(document) for each in what for document in _documents(each)]

    async def _apply(self, document: Document) -> Document:
        resource, namespace = self._place(document)
        name = str(document.get("metadata", {}).get("name") or "")
        if not name:
            raise InvalidInput(f"{resource.kind.kind}: metadata.name is missing")
        patch = ApplyPatch(document, force=True)
        return await self.cluster.patch(resource, name, patch, namespace, options=_STRICT)

    async def create(self, *documents: Document) -> list[Document]:
        """Create objects, and return them as the API stored them. Raise AlreadyExists if one exists."""
        placed = [(document, *self._place(document)) for document in documents]
        return [await self.cluster.create(kind, each, where, options=_STRICT) for each, kind, where in placed]

    async def create_pod(self, name: str, /, **options: Any) -> Document:
        """Create a pod. The options are those of `builders.pod`."""
        return (await self.create(builders.pod(name, **options)))[0]

    async def create_claim(self, name: str, /, *requests: Document, **options: Any) -> Document:
        """Create a claim. The arguments are those of `builders.claim`."""
        return (await self.create(builders.claim(name, *requests, **options)))[0]

    async def create_template(self, name: str, /, *requests: Document, **options: Any) -> Document:
        """Create a template. The arguments are those of `builders.template`."""
        return (await self.create(builders.template(name, *requests, **options)))[0]

    async def create_class(self, name: str = "", /, **options: Any) -> Document:
        """Create a device class. The options are those of `builders.device_class`."""
        return (await self.create(builders.device_class(name, **options)))[0]

    async def create_slice(self, devices: Any = 1, /, **options: Any) -> Document:
        """Create a slice of this node, for a test without a driver. The arguments are those of
        `builders.resource_slice`."""
        return (await self.create(builders.resource_slice(self.name, devices, **options)))[0]

    async def get(self, kind: str, name: str, namespace: str = "default") -> Document:
        """Return an object of a kind such as `Pod` or `ResourceClaim`. Raise NotFound if it does not exist."""
        resource = self._resource(kind)
        return await self.cluster.get(resource, name, namespace if resource.namespaced else "")

    async def delete(self, kind: str, name: str, namespace: str = "default", *, now: bool = False) -> None:
        """Delete an object. Pods, and claims in use, take a while. `now` means without a grace period."""
        resource = self._resource(kind)
        options = DeleteOptions(grace_period=0) if now else DeleteOptions()
        await self.cluster.delete(resource, name, namespace if resource.namespaced else "", options)

    def _resource(self, kind: str) -> Resource:
        for each in self.cluster.catalogue:
            if kind in (each.kind, each.plural, *each.short_names):
                return Resource(each, each.api_versions[0])
        raise InvalidInput(f"{kind!r} is not a kind of this cluster: expected for example Pod or ResourceClaim")

    def _place(self, document: Document) -> tuple[Resource, str]:
        resource = self.cluster.catalogue.of_kind(str(document.get("apiVersion")), str(document.get("kind")))
        namespace = document.get("metadata", {}).get("namespace") or "default"
        return resource, namespace if resource.namespaced else ""

    async def wait_for(
        self,
        kind: str,
        name: str,
        holds: Callable[[Document], object] = bool,
        *,
        namespace: str = "default",
        within: float = DEADLINE,
    ) -> Document:
        """Return the object as soon as it exists and `holds` is true for it."""

        async def read() -> Document:
            try:
                return await self.get(kind, name, namespace)
            except NotFound:
                return {}

        try:
            return await until(read, lambda found: bool(found and holds(found)), within=within)
        except AssertionError:
            seen = _without_managers(await read()) or "nothing of that name"
            raise AssertionError(f"{kind} {name}: not within {within:g} s; last seen: {seen}") from None

    async def list(self, kind: str, namespace: str = "", labels: str = "") -> list[Document]:
        """Return all objects of a kind, of a namespace, or with the labels of a selector."""
        found = await self.cluster.list(self._resource(kind), namespace, ListOptions(label_selector=labels))
        return list(found.items)


def _without_managers(document: Document) -> Document:
    """Return the object without its managed fields, for messages."""
    metadata = document.get("metadata", {})
    return document and {**document, "metadata": {k: v for k, v in metadata.items() if k != "managedFields"}}


def _documents(what: str | Path | Document | Sequence[Document]) -> list[Document]:
    match what:
        case Path():
            return _documents(what.read_text())
        case str():
            return [each for each in yaml.safe_load_all(what) if each is not None]
        case dict():
            return [what]
    return [dict(each) for each in what]
