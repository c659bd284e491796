"""A cluster on a real store, with our scheduler and claim controller."""

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
from devlet.control.scheduler.settings import ReportTimes, Settings
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
    """A write, before or after it is done: `verb resource[/subresource]`, name and document."""

    what: str
    name: str
    document: Document


Hook = Callable[[Write], Awaitable[None]]


async def _nothing(_: Write) -> None:
    """Do nothing."""


class FaultyCluster(FencedCluster):
    """A cluster with hooks. `before` and `after` each write may raise, which refuses it or loses its answer. `heard`
    may delay an event of a watch or break the watch, `watching` may refuse a watch, `reading` a get."""

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
            yield self._events(resource, events)

    async def _events(self, resource: Resource, events: AsyncIterator[WatchEvent]) -> AsyncIterator[WatchEvent]:
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
    """Let the first so many writes of a kind fail."""
    left = [times]

    async def hook(write: Write) -> None:
        if write.what == what and name in ("", write.name) and left[0] > 0:
            left[0] -= 1
            raise error

    return hook


def allocation_on(node: str, device: str = "gpu-0", **more: Any) -> Document:
    """Return an allocation of one device of a node's pool, usable on that node."""
    result = {"request": "gpu", "driver": DRIVER, "pool": node, "device": device, **more}
    where = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [where]}]}}


class World:
    """`cluster` is for the scheduler; the test itself and the claim controller use `store`."""

    def __init__(self, store: Store, settings: Settings, cluster: Cluster | None = None) -> None:
        self.store = store
        self.cluster = FaultyCluster(cluster or store)
        self.settings = settings
        self.metrics = Registry()
        self.clock: Clock = SystemClock()

    @asynccontextmanager
    async def scheduling(self) -> AsyncIterator[None]:
        """Run the control loops for the block."""
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
        """Wait until all pods are bound, and return their nodes."""

        async def nodes() -> dict[str, str]:
            return {name: (await self.pod(name))["spec"].get("nodeName", "") for name in names}

        return await until(nodes, lambda found: all(found.values()))

    async def reason(self, name: str, text: str = "") -> str:
        """Wait until the reason of the pod contains the text, and return it."""

        async def message() -> str:
            conditions = (await self.pod(name)).get("status", {}).get("conditions") or []
            return next((each["message"] for each in conditions if each.get("reason") == "Unschedulable"), "")

        return await until(message, lambda found: bool(found) and text in found)

    async def events(self, reason: str) -> list[Document]:
        return [each for each in (await self.store.list(kinds.EVENTS)).items if each["reason"] == reason]

    async def devices(self) -> dict[str, str]:
        """Return the claim of each device. Fail if two claims have the same one."""
        found: dict[str, str] = {}
        for claim in await self.claims():
            allocation = (claim.get("status") or {}).get("allocation") or {}
            for result in (allocation.get("devices") or {}).get("results") or ():
                key = "/".join((result["driver"], result["pool"], result["device"]))
                if not result.get("shareID") and not result.get("adminAccess"):
                    assert key not in found, f"{key} was allocated twice"
                found[key] = claim["metadata"]["name"]
        return found

    async def remove(self, *names: str) -> None:
        """Delete pods at once: there is no node to stop them."""
        for name in names:
            await self.store.delete(kinds.PODS, name, "default", DeleteOptions(grace_period=0))

    async def settled(self) -> None:
        """Wait until all writes under way are stored: a stopped scheduler may have written a moment before."""
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
        yield World(store, Settings(reports=ReportTimes(0.05)))
