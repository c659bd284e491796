"""A publisher at work on a cluster in a file, with a server in between that refuses, loses and drops things."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from devlet.cluster.client import DeleteOptions, ListOptions, ObjectList, WatchEvent, WatchOptions, WriteOptions
from devlet.cluster.store.store import Store, open_store
from devlet.errors import NotFound
from devlet.kit.parts import first, running
from devlet.objects.documents import Document
from devlet.objects.kinds import NODES, RESOURCE_SLICES, Resource
from devlet.sdk.slices.controller import Settings, SlicePublisher
from devlet.sdk.values import Pool
from devlet.testing.fake_clock import FakeClock
from devlet.testing.waiting import deadline, until

DRIVER = "gpu.example.com"
Hook = Callable[[str, Document], Awaitable[None]]


async def _nothing(verb: str, document: Document) -> None:
    """Lets it pass."""


class Server:
    """A `Cluster`. `before` and `after` may raise: the write is refused, or done and its answer lost. `leave_out` takes
    fields out of a spec that is about to be stored. `served` are the API versions that it has."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.before: Hook = _nothing
        self.after: Hook = _nothing
        self.hearing: Hook = _nothing
        self.leave_out: Callable[[Document], Document] = lambda spec: spec
        self.served: tuple[str, ...] = RESOURCE_SLICES.kind.api_versions
        self.calls: list[str] = []
        self._cut = anyio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Document:
        self.calls.append(f"get {name}")
        await self.before("get", {"metadata": {"name": name}})
        return await self._store.get(resource, name, namespace)

    async def list(self, resource: Resource, namespace: str = "", options: ListOptions = ListOptions()) -> ObjectList:
        await self.before("list", {})
        self._check_served(resource)
        return await self._store.list(resource, namespace, options)

    @asynccontextmanager
    async def watch(
        self, resource: Resource, namespace: str = "", options: WatchOptions = WatchOptions()
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        self._check_served(resource)
        async with self._store.watch(resource, namespace, options) as events:
            yield self._heard(events)

    def cut(self) -> None:
        """End the watches that are open."""
        self._cut.set()
        self._cut = anyio.Event()

    def _check_served(self, resource: Resource) -> None:
        if resource.kind == RESOURCE_SLICES.kind and resource.api_version not in self.served:
            raise NotFound("the server could not find the requested resource")

    async def _heard(self, events: AsyncIterator[WatchEvent]) -> AsyncIterator[WatchEvent]:
        cut, heard = self._cut, aiter(events)
        while (event := await self._next(heard, cut)) is not None:
            await self.hearing(str(event.type), event.object)
            yield event

    async def _next(self, events: AsyncIterator[WatchEvent], cut: anyio.Event) -> WatchEvent | None:
        found: list[WatchEvent] = []

        async def read() -> None:
            with suppress(StopAsyncIteration):
                found.append(await anext(events))

        await first(read, cut.wait)
        return found[0] if found else None

    async def create(self, resource: Resource, document: Document, namespace: str = "", **_: Any) -> Document:
        return await self._write("create", resource, document, self._store.create)

    async def update(self, resource: Resource, document: Document, **_: Any) -> Document:
        return await self._write("update", resource, document, self._store.update)

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", options: DeleteOptions = DeleteOptions()
    ) -> Document:
        self.calls.append("delete")
        await self.before("delete", {"metadata": {"name": name}})
        answer = await self._store.delete(resource, name, namespace, options)
        await self.after("delete", {"metadata": {"name": name}})
        return answer

    async def _write(self, verb: str, resource: Resource, document: Document, write: Any) -> Document:
        self.calls.append(verb)
        await self.before(verb, document)
        answer: Document = await write(
            resource, {**document, "spec": self.leave_out(document["spec"])}, options=WriteOptions()
        )
        await self.after(verb, document)
        return answer


class World:
    def __init__(self, store: Store) -> None:
        self.store = store
        self.server = Server(store)
        self.clock = FakeClock()
        self.reports: list[tuple[Exception, str]] = []
        self.publisher = self.make()

    def make(self, owner: str | None = "node", settings: Settings = Settings(), **more: Any) -> SlicePublisher:
        self.publisher = SlicePublisher(
            self.server, DRIVER, owner, lambda e, text: self.reports.append((e, text)), self.clock, settings, **more
        )
        return self.publisher

    @asynccontextmanager
    async def running(self, pools: Mapping[str, Pool] | None = None) -> AsyncIterator[SlicePublisher]:
        async with running(self.publisher.run):
            if pools is not None:
                await self.publish(pools)
            yield self.publisher

    async def publish(self, pools: Mapping[str, Pool]) -> list[str]:
        """The calls that it took."""
        before = len(self.server.calls)
        self.publisher.publish(pools)
        with deadline():
            await self.publisher.published()
        return [call for call in self.server.calls[before:] if not call.startswith("get")]

    async def quiet(self) -> None:
        """Until all is heard, nothing is under way and nothing is planned any more."""

        async def look() -> tuple[bool, bool, list[float]]:
            informer, queue = self.publisher._informer, self.publisher._queue
            there = _versions(await self.publisher._slices.list())
            heard = _versions(informer.all()) if informer else None
            if there == heard and queue.is_idle:
                await self.clock.advance(60)
            return there == heard, queue.is_idle, self.clock.wakes_at

        await until(look, lambda found: found == (True, True, []))

    async def planned(self, seconds: float) -> None:
        """Until something is planned for so much later."""

        async def look() -> list[float]:
            return self.clock.wakes_at

        await until(look, lambda found: found == [self.clock.monotonic() + seconds])

    async def slices(self) -> list[Document]:
        return list((await self.store.list(RESOURCE_SLICES)).items)

    async def seen(self, holds: Callable[[list[Document]], bool]) -> list[Document]:
        return await until(self.slices, holds)

    async def retried(self, holds: Callable[[list[Document]], bool]) -> list[Document]:
        """Seen, after as many tries as it takes: a minute passes whenever nothing is under way."""

        async def look() -> list[Document]:
            if self.publisher._queue.is_idle:
                await self.clock.advance(60)
            return await self.slices()

        return await until(look, holds)

    async def numbers(self) -> list[tuple[str, int, int, int]]:
        """Of each slice: the beginning of its name, generation, count of slices, number of devices."""
        found = [(each["metadata"]["name"], each["spec"]) for each in await self.slices()]
        return [
            (name[:5], s["pool"]["generation"], s["pool"]["resourceSliceCount"], len(s.get("devices") or ()))
            for name, s in found
        ]


def _versions(slices: Iterable[Document]) -> dict[str, str]:
    return {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in slices if each}


@pytest.fixture
async def world(root: Path, anyio_backend: str) -> AsyncIterator[World]:
    async with open_store(root / "cluster.db") as store:
        await store.create(NODES, {"metadata": {"name": "node"}})
        yield World(store)
