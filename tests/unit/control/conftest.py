"""A cluster in a file, with our scheduler and claim controller at work on it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from devlet.cluster.client import Cluster, DeleteOptions, MergePatch, Patch, WatchEvent, WatchOptions, WriteOptions
from devlet.cluster.events import Recorder
from devlet.cluster.store.store import Store, open_store
from devlet.control.claims.controller import ClaimController
from devlet.control.fenced_cluster import FencedCluster
from devlet.control.informers import Informers
from devlet.control.scheduler.scheduler import Scheduler
from devlet.control.scheduler.settings import Settings
from devlet.errors import NotFound
from devlet.kit.clock import Clock, SystemClock
from devlet.kit.metrics import Registry
from devlet.kit.parts import running
from devlet.objects import kinds
from devlet.objects.documents import Document
from devlet.objects.kinds import Resource
from devlet.testing.waiting import until
from tests.support.workloads import DRIVER

_RESOURCES: dict[str, Resource] = {
    "Node": kinds.NODES,
    "DeviceClass": kinds.DEVICE_CLASSES,
    "DeviceTaintRule": kinds.DEVICE_TAINT_RULES,
    "ResourceSlice": kinds.RESOURCE_SLICES,
    "ResourceClaimTemplate": kinds.RESOURCE_CLAIM_TEMPLATES,
    "ResourceClaim": kinds.RESOURCE_CLAIMS,
    "Pod": kinds.PODS,
}


@dataclass(frozen=True)
class Write:
    """Before or after it was done: `verb resource[/subresource] name`."""

    what: str
    name: str
    document: Document


Hook = Callable[[Write], Awaitable[None]]


async def _nothing(_: Write) -> None:
    """Lets it pass."""


class FaultyCluster(FencedCluster):
    """Tells of each write before it is done and after; either may raise, and so refuse it or lose the answer. `heard`
    may keep an event of a watch back or break it, `watching` refuse one, `reading` refuse a get."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster, lambda: None)
        self.before: Hook = _nothing
        self.after: Hook = _nothing
        self.reading: Hook = _nothing
        self.heard: Hook = _nothing
        self.watching: Hook = _nothing
        self.writes: list[str] = []

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Document:
        await self.reading(Write(f"get {resource.plural}", name, {}))
        return await super().get(resource, name, namespace)

    @asynccontextmanager
    async def watch(
        self, resource: Resource, namespace: str = "", options: WatchOptions = WatchOptions()
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        await self.watching(Write(f"watch {resource.plural}", "", {}))
        async with super().watch(resource, namespace, options) as events:
            yield self._told(resource, events)

    async def _told(self, resource: Resource, events: AsyncIterator[WatchEvent]) -> AsyncIterator[WatchEvent]:
        async for event in events:
            await self.heard(Write(f"watch {resource.plural}", event.object["metadata"].get("name", ""), event.object))
            yield event

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
        made = super().create(resource, document, namespace, name=name, subresource=subresource, options=options)
        return await self._do("create", resource, subresource, name, document, made)

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
        document = patch.document if isinstance(patch, MergePatch) else {}
        made = super().patch(resource, name, patch, namespace, subresource=subresource, options=options)
        return await self._do("patch", resource, subresource, name, document, made)

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", options: DeleteOptions = DeleteOptions()
    ) -> Document:
        return await self._do("delete", resource, "", name, {}, super().delete(resource, name, namespace, options))

    async def _do(
        self,
        verb: str,
        resource: Resource,
        subresource: str,
        name: str,
        document: Document,
        work: Coroutine[Any, Any, Document],
    ) -> Document:
        if resource == kinds.EVENTS:
            return await work
        place = f"{resource.plural}/{subresource}" if subresource else resource.plural
        write = Write(f"{verb} {place}", name, document)
        self.writes.append(write.what)
        try:
            await self.before(write)
        except BaseException:
            work.close()
            raise
        answer = await work
        await self.after(write)
        return answer


BINDING = "create pods/binding"
CLAIM_STATUS = "patch resourceclaims/status"


def raises(error: Exception, what: str, *, times: int = 1, name: str = "") -> Hook:
    """The first so many writes of that kind fail."""
    left = [times]

    async def hook(write: Write) -> None:
        if write.what == what and name in ("", write.name) and left[0] > 0:
            left[0] -= 1
            raise error

    return hook


def allocation_on(node: str, device: str = "gpu-0", **more: Any) -> Document:
    """Of one device of a node's pool, usable there."""
    result = {"request": "gpu", "driver": DRIVER, "pool": node, "device": device, **more}
    where = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [where]}]}}


class World:
    """`cluster` is what the scheduler has; the test itself and the claim controller use `store`."""

    def __init__(self, store: Store, settings: Settings, cluster: Cluster | None = None) -> None:
        self.store = store
        self.cluster = FaultyCluster(cluster or store)
        self.settings = settings
        self.metrics = Registry()
        self.clock: Clock = SystemClock()

    @asynccontextmanager
    async def scheduling(self) -> AsyncIterator[None]:
        """The control loops at work, from the start."""
        clock = self.clock
        self.metrics = Registry()
        informers = Informers(self.cluster)
        recorder = Recorder(self.store, "test", "host", clock)
        claims = ClaimController(self.store, informers, recorder, clock, self.metrics)
        scheduler = Scheduler(self.cluster, informers, recorder, clock, self.metrics, self.settings)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(running(recorder.run))
            await stack.enter_async_context(informers.running())
            await stack.enter_async_context(running(claims.run))
            await stack.enter_async_context(running(scheduler.run))
            yield

    async def add(self, *documents: Document) -> None:
        for document in documents:
            metadata = document["metadata"]
            await self.store.create(_RESOURCES[document["kind"]], document, metadata.get("namespace", ""))

    async def change(self, document: Document) -> None:
        """Replace an object's spec."""
        resource, metadata = _RESOURCES[document["kind"]], document["metadata"]
        found = await self.store.get(resource, metadata["name"], metadata.get("namespace", ""))
        await self.store.update(resource, {**found, "spec": document["spec"]})

    async def pod(self, name: str) -> Document:
        return await self.store.get(kinds.PODS, name, "default")

    async def claim(self, name: str) -> Document:
        return await self.store.get(kinds.RESOURCE_CLAIMS, name, "default")

    async def claims(self) -> Sequence[Document]:
        return (await self.store.list(kinds.RESOURCE_CLAIMS)).items

    async def bound(self, *names: str) -> dict[str, str]:
        """The node of each, as soon as all have one."""

        async def nodes() -> dict[str, str]:
            return {name: (await self.pod(name))["spec"].get("nodeName", "") for name in names}

        return await until(nodes, lambda found: all(found.values()))

    async def told(self, name: str, text: str = "") -> str:
        """What the pod says it waits for, as soon as the text is in it."""

        async def message() -> str:
            conditions = (await self.pod(name)).get("status", {}).get("conditions") or []
            return next((each["message"] for each in conditions if each.get("reason") == "Unschedulable"), "")

        return await until(message, lambda found: bool(found) and text in found)

    async def events(self, reason: str) -> list[Document]:
        return [each for each in (await self.store.list(kinds.EVENTS)).items if each["reason"] == reason]

    async def devices(self) -> dict[str, str]:
        """Which claim has which device; fails if two have the same."""
        found: dict[str, str] = {}
        for claim in await self.claims():
            allocation = (claim.get("status") or {}).get("allocation") or {}
            for result in (allocation.get("devices") or {}).get("results") or ():
                key = "/".join((result["driver"], result["pool"], result["device"]))
                if not result.get("shareID") and not result.get("adminAccess"):
                    assert key not in found, f"{key} was given twice"
                found[key] = claim["metadata"]["name"]
        return found

    async def remove(self, *names: str) -> None:
        """Pods, at once: there is no node that would stop them."""
        for name in names:
            await self.store.delete(kinds.PODS, name, "default", DeleteOptions(grace_period=0))

    async def settled(self) -> None:
        """Until all is stored that was on its way: who is stopped may have written a moment before, and who begins to
        lead comes later than that."""
        name = f"settled-{self.store.version}"
        await self.store.create(kinds.NAMESPACES, {"metadata": {"name": name}})

    async def gone(self, resource: Resource, name: str) -> None:
        async def is_there() -> bool:
            try:
                await self.store.get(resource, name, "default")
            except NotFound:
                return False
            return True

        await until(is_there, lambda there: not there)

    async def status(self, name: str, patch: Any) -> None:
        """Write a claim's status, as a driver does."""
        await self.store.patch(
            kinds.RESOURCE_CLAIMS, name, MergePatch({"status": patch}), "default", subresource="status"
        )


@pytest.fixture
async def world(root: Path, anyio_backend: str) -> AsyncIterator[World]:
    async with open_store(root / "cluster.db") as store:
        yield World(store, Settings(report_after=0.05))
