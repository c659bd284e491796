"""Watching on behalf of the contract: what a test is told about, and nothing that others do in its namespace."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from devlet.cluster.client import Cluster, EventType, ListOptions, ObjectList, WatchEvent, WatchOptions
from devlet.errors import NotFound
from devlet.objects.documents import Document
from devlet.objects.kinds import Resource
from devlet.testing.waiting import deadline

# Controllers put these into every namespace.
_BYSTANDERS = {"kube-root-ca.crt", "default"}
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


def ours(document: Document) -> bool:
    return document["metadata"].get("name") not in _BYSTANDERS


def names(page: ObjectList) -> list[str]:
    return [document["metadata"]["name"] for document in page.items if ours(document)]


def is_end_of_initial_events(event: WatchEvent) -> bool:
    annotations: Document = event.object["metadata"].get("annotations") or {}
    return event.type is EventType.BOOKMARK and annotations.get(INITIAL_EVENTS_END) == "true"


class Stream:
    """The events of a watch, without what is nobody's business and, unless asked for, without bookmarks."""

    def __init__(self, events: AsyncIterator[WatchEvent]) -> None:
        self._events = events

    async def next(self, *, bookmarks: bool = False) -> WatchEvent:
        with deadline():
            async for event in self._events:
                if event.type is EventType.BOOKMARK:
                    if bookmarks:
                        return event
                elif ours(event.object):
                    return event
        raise AssertionError("the watch ended")

    async def take(self, number: int) -> list[tuple[EventType, str]]:
        """Types and names of the next events."""
        events = [await self.next() for _ in range(number)]
        return [(event.type, event.object["metadata"]["name"]) for event in events]

    async def rest(self) -> list[WatchEvent]:
        """All events until the stream ends by itself."""
        with deadline():
            return [event async for event in self._events if event.type is EventType.BOOKMARK or ours(event.object)]


@asynccontextmanager
async def watching(cluster: Cluster, resource: Resource, namespace: str = "", **options: Any) -> AsyncIterator[Stream]:
    """From now on, unless the options say where from."""
    if not options.keys() & {"resource_version", "send_initial_events"}:
        page = await cluster.list(resource, namespace, ListOptions(limit=1))
        options["resource_version"] = page.resource_version
    async with cluster.watch(resource, namespace, WatchOptions(**options)) as events:
        yield Stream(events)


async def eventually(
    cluster: Cluster, resource: Resource, name: str, namespace: str, holds: Callable[[Document], bool]
) -> Document:
    """The first state of the object, from the present one on, of which that is true."""
    options = WatchOptions(field_selector=f"metadata.name={name}")
    with deadline():
        async with cluster.watch(resource, namespace, options) as events:
            async for event in events:
                if event.type in (EventType.ADDED, EventType.MODIFIED) and holds(event.object):
                    return event.object
    raise AssertionError(f"{resource.name} {name}: the watch ended")


async def eventually_gone(cluster: Cluster, resource: Resource, name: str, namespace: str = "") -> None:
    selector = f"metadata.name={name}"
    page = await cluster.list(resource, namespace, ListOptions(field_selector=selector))
    if not page.items:
        return
    options = WatchOptions(field_selector=selector, resource_version=page.resource_version)
    with deadline():
        async with cluster.watch(resource, namespace, options) as events:
            async for event in events:
                if event.type is EventType.DELETED:
                    return
    raise AssertionError(f"{resource.name} {name}: the watch ended")


async def exists(cluster: Cluster, resource: Resource, name: str, namespace: str = "") -> bool:
    try:
        await cluster.get(resource, name, namespace)
    except NotFound:
        return False
    return True
