"""Read and write ResourceSlices as v1, whichever version the server has. Servers from 1.32 on are supported."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import cast

from devlet.cluster.client import (
    Cluster,
    DeleteOptions,
    ListOptions,
    ObjectList,
    Preconditions,
    WatchEvent,
    WatchOptions,
)
from devlet.cluster.informer import Informer
from devlet.errors import Expired, NotFound
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
    """The slices that match the field selector and, if a pool is given, belong to the pool."""

    def __init__(self, cluster: Cluster, selector: str, pool: str = "") -> None:
        self._cluster = cluster
        self._selector = selector
        self._pool = pool
        self._resource = RESOURCE_SLICES

    async def find(self) -> None:
        """Find a version that the server has. Raise NotFound if there is none."""
        await self._page(ListOptions(field_selector=self._selector, limit=1))

    async def _page(self, options: ListOptions) -> ObjectList:
        """List a page in the last known version, or in another one: the server may have been upgraded meanwhile."""
        for resource in dict.fromkeys([self._resource, *_VERSIONS]):
            try:
                page = await self._cluster.list(resource, options=options)
            except NotFound:
                continue
            self._resource = resource
            return page
        versions = ", ".join(RESOURCE_SLICES.kind.api_versions)
        raise NotFound(f"the cluster has ResourceSlices in none of {versions}", resource=RESOURCE_SLICES.kind.key)

    def informer(self, clock: Clock) -> Informer[Document]:
        """Return an informer with the index `pool`. Slices of other pools are in it, but empty."""
        indexes: dict[str, Callable[[Document], list[str]]] = {"pool": lambda each: [pool_of(each)] if each else []}
        seen = cast(Cluster, _AnyVersion(self._page, self._watch))
        return Informer(seen, self._resource, self._seen, field_selector=self._selector, indexes=indexes, clock=clock)

    @asynccontextmanager
    async def _watch(self, options: WatchOptions) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        """Raise Expired if the version is no longer served: the next list finds another one."""
        try:
            async with self._cluster.watch(self._resource, options=options) as events:
                yield events
        except NotFound as e:
            raise Expired(str(e)) from e

    async def list(self) -> list[Document]:
        found: list[Document] = []
        options = ListOptions(field_selector=self._selector, limit=_PAGE)
        while True:
            page = await self._page(options)
            found += filter(None, map(self._seen, page.items))
            if not page.continue_:
                return found
            options = ListOptions(field_selector=self._selector, limit=_PAGE, continue_=page.continue_)

    async def create(self, document: Document) -> Document:
        return self._read(await self._cluster.create(self._resource, self._written(document)))

    async def update(self, document: Document) -> Document:
        """Raise Conflict if the slice was changed since it was read."""
        return self._read(await self._cluster.update(self._resource, self._written(document)))

    async def delete(self, document: Document) -> None:
        """Raise Conflict if the slice was changed since it was read."""
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


class _AnyVersion:
    """The part of a cluster that an informer needs. It ignores the version that the informer asks for."""

    def __init__(self, page: "_Page", watch: "_Watch") -> None:
        self._page = page
        self._watch = watch

    async def list(self, resource: Resource, namespace: str, options: ListOptions) -> ObjectList:
        return await self._page(options)

    def watch(self, resource: Resource, namespace: str, options: WatchOptions) -> "_Events":
        return self._watch(options)


_Events = AbstractAsyncContextManager[AsyncIterator[WatchEvent]]
_Page = Callable[[ListOptions], Awaitable[ObjectList]]
_Watch = Callable[[WatchOptions], _Events]
