"""A cluster that refuses writes of a process that no longer leads.

Cancelling a task is not enough: a task that computes for ten seconds, or a process that was stopped for a while, would
write once more before it is cancelled. Here each write checks the lease immediately before it is sent. Reads always
pass.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

from devlet.cluster.client import (
    Cluster,
    DeleteOptions,
    ListOptions,
    ObjectList,
    Patch,
    WatchEvent,
    WatchOptions,
    WriteOptions,
)
from devlet.objects.documents import Document
from devlet.objects.kinds import Resource

__all__ = ["FencedCluster"]


class FencedCluster:
    """A `devlet.cluster.client.Cluster`. `check` raises if this process may no longer write."""

    def __init__(self, cluster: Cluster, check: Callable[[], None]) -> None:
        self._cluster = cluster
        self._check = check

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Document:
        return await self._cluster.get(resource, name, namespace)

    async def list(self, resource: Resource, namespace: str = "", options: ListOptions = ListOptions()) -> ObjectList:
        return await self._cluster.list(resource, namespace, options)

    def watch(
        self, resource: Resource, namespace: str = "", options: WatchOptions = WatchOptions()
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        return self._cluster.watch(resource, namespace, options)

    async def create(
        self,
        resource: Resource,
        document: Document,
        namespace: str = "",
        *,
        name: str = "",
        subresource: str = "",
        options: WriteOptions = WriteOptions(),
    ) -> Document:
        self._check()
        return await self._cluster.create(
            resource, document, namespace, name=name, subresource=subresource, options=options
        )

    async def update(
        self, resource: Resource, document: Document, *, subresource: str = "", options: WriteOptions = WriteOptions()
    ) -> Document:
        self._check()
        return await self._cluster.update(resource, document, subresource=subresource, options=options)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Patch,
        namespace: str = "",
        *,
        subresource: str = "",
        options: WriteOptions = WriteOptions(),
    ) -> Document:
        self._check()
        return await self._cluster.patch(resource, name, patch, namespace, subresource=subresource, options=options)

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", options: DeleteOptions = DeleteOptions()
    ) -> Document:
        self._check()
        return await self._cluster.delete(resource, name, namespace, options)

    async def delete_collection(
        self,
        resource: Resource,
        namespace: str = "",
        options: DeleteOptions = DeleteOptions(),
        select: ListOptions = ListOptions(),
    ) -> ObjectList:
        self._check()
        return await self._cluster.delete_collection(resource, namespace, options, select)
