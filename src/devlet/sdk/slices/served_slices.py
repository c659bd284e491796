"""ResourceSlices in the version that the server has, seen as if they were all v1: servers from 1.32 on will do."""

from collections.abc import Callable

from devlet.cluster.client import Cluster, DeleteOptions, ListOptions, Preconditions
from devlet.cluster.informer import Informer
from devlet.errors import NotFound
from devlet.kit.clock import Clock
from devlet.objects.conversion import convert
from devlet.objects.documents import Document
from devlet.objects.kinds import RESOURCE_SLICES, Resource

__all__ = ["ServedSlices", "pool_of"]

_VERSIONS = tuple(Resource(RESOURCE_SLICES.kind, version) for version in RESOURCE_SLICES.kind.api_versions)
_PAGE = 500


def pool_of(document: Document) -> str:
    return str(document["spec"]["pool"]["name"])


class ServedSlices:
    """Those that the field selector selects and, if a pool is given, that belong to it."""

    def __init__(self, cluster: Cluster, selector: str, pool: str = "") -> None:
        self._cluster = cluster
        self._selector = selector
        self._pool = pool
        self._resource = RESOURCE_SLICES

    async def find(self) -> None:
        """Look for a version that is served. NotFound if there is none."""
        for resource in _VERSIONS:
            try:
                await self._cluster.list(resource, options=ListOptions(field_selector=self._selector, limit=1))
            except NotFound:
                continue
            self._resource = resource
            return
        versions = ", ".join(RESOURCE_SLICES.kind.api_versions)
        raise NotFound(f"the cluster has ResourceSlices in none of {versions}", resource=RESOURCE_SLICES.kind.key)

    def informer(self, clock: Clock) -> Informer[Document]:
        """With the index `pool`. Slices of strangers are there, but empty."""
        indexes: dict[str, Callable[[Document], list[str]]] = {"pool": lambda each: [pool_of(each)] if each else []}
        return Informer(
            self._cluster, self._resource, self._seen, field_selector=self._selector, indexes=indexes, clock=clock
        )

    async def list(self) -> list[Document]:
        found: list[Document] = []
        options = ListOptions(field_selector=self._selector, limit=_PAGE)
        while True:
            page = await self._cluster.list(self._resource, options=options)
            found += filter(None, map(self._seen, page.items))
            if not page.continue_:
                return found
            options = ListOptions(field_selector=self._selector, limit=_PAGE, continue_=page.continue_)

    async def create(self, document: Document) -> Document:
        return self._read(await self._cluster.create(self._resource, self._written(document)))

    async def update(self, document: Document) -> Document:
        """Conflict if somebody wrote since it was read."""
        return self._read(await self._cluster.update(self._resource, self._written(document)))

    async def delete(self, document: Document) -> None:
        """Conflict if it is not as it was read."""
        metadata = document["metadata"]
        unchanged = Preconditions(metadata["uid"], metadata["resourceVersion"])
        await self._cluster.delete(self._resource, metadata["name"], options=DeleteOptions(preconditions=unchanged))

    def _seen(self, document: Document) -> Document:
        found = self._read(document)
        return found if not self._pool or pool_of(found) == self._pool else {}

    def _read(self, document: Document) -> Document:
        return convert({"apiVersion": self._resource.api_version, **document}, RESOURCE_SLICES.api_version)

    def _written(self, document: Document) -> Document:
        return convert(document, self._resource.api_version)
