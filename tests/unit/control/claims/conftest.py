"""The claim controller on a real store: `World` creates objects and waits until the controller is idle."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from anyio.lowlevel import checkpoint

from devlet.cluster.client import DeleteOptions, MergePatch
from devlet.cluster.events import Recorder
from devlet.cluster.store.settings import Settings as StoreSettings
from devlet.cluster.store.store import Store, open_store
from devlet.control.claims.controller import ClaimController, Settings
from devlet.control.informers import Informers
from devlet.errors import NotFound
from devlet.kit.backoff import Backoff
from devlet.kit.metrics import Registry
from devlet.kit.parts import running
from devlet.objects.documents import Document
from devlet.objects.kinds import EVENTS, PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, Resource
from devlet.testing.fake_clock import FakeClock
from devlet.testing.waiting import deadline

NS = "default"
FINALIZER = "resource.kubernetes.io/delete-protection"
Before = Callable[[str, Resource, Any], Awaitable[None]]


class Watched:
    """The store, with a hook before each write that may raise, wait, or write itself."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.before: Before | None = None
        self.writes: list[tuple[str, str]] = []
        self.questions = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def get(self, *args: Any) -> Document:
        self.questions += 1
        return await self._store.get(*args)

    async def create(self, resource: Resource, *args: Any, **more: Any) -> Document:
        await self._comes_first("create", resource, args)
        return await self._store.create(resource, *args, **more)

    async def patch(self, resource: Resource, *args: Any, **more: Any) -> Document:
        await self._comes_first("patch", resource, args)
        return await self._store.patch(resource, *args, **more)

    async def delete(self, resource: Resource, *args: Any, **more: Any) -> Document:
        await self._comes_first("delete", resource, args)
        return await self._store.delete(resource, *args, **more)

    async def _comes_first(self, verb: str, resource: Resource, args: Any) -> None:
        if resource != EVENTS:
            self.writes.append((verb, resource.plural))
            if self.before is not None:
                await self.before(verb, resource, args)


class World:
    def __init__(self, store: Store) -> None:
        self.store = store
        self.watched = Watched(store)
        self.clock = FakeClock()
        self.metrics = Registry()
        self.informers = Informers(store)
        self.recorder = Recorder(store, "resource_claim", "here", self.clock)
        self.controller = self.new_controller(self.metrics)

    def new_controller(self, metrics: Registry | None = None) -> ClaimController:
        settings = Settings(retry=Backoff(1.0, 4.0, jitter=0.0))
        cluster: Any = self.watched
        return ClaimController(cluster, self.informers, self.recorder, self.clock, metrics or Registry(), settings)

    def working(self) -> Any:
        """Run the controller for the block."""
        return running(self.controller.run)

    async def template(self, name: str = "one-gpu", *, admin: bool = False, **metadata: Any) -> Document:
        exactly = {"deviceClassName": "gpu"} | ({"adminAccess": True} if admin else {})
        spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
        inner = {"spec": spec} | ({"metadata": metadata} if metadata else {})
        return await self.store.create(RESOURCE_CLAIM_TEMPLATES, {"metadata": {"name": name}, "spec": inner}, NS)

    async def pod(self, name: str = "train", node: str = "", **entries: str) -> Document:
        """Create a pod. An entry is the name of a template, or the name of a claim after a colon."""
        container = {"name": "main", "image": "x", "resources": {"claims": [{"name": entry} for entry in entries]}}
        spec: Document = {
            "containers": [container],
            "resourceClaims": [
                {
                    "name": entry,
                    "resourceClaimName" if of.startswith(":") else "resourceClaimTemplateName": of[
                        of.startswith(":") :
                    ],
                }
                for entry, of in entries.items()
            ],
        }
        return await self.store.create(
            PODS, {"metadata": {"name": name}, "spec": spec | ({"nodeName": node} if node else {})}, NS
        )

    async def claim(self, name: str = "shared", **metadata: Any) -> Document:
        spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
        return await self.store.create(RESOURCE_CLAIMS, {"metadata": {"name": name, **metadata}, "spec": spec}, NS)

    async def allocate(
        self, name: str, *pods: Document, others: list[Document] | None = None, selector: Document | None = None
    ) -> Document:
        """Allocate a claim as a scheduler does: first the finalizer, then devices and consumers. `selector` selects
        nodes."""
        claim = await self.store.get(RESOURCE_CLAIMS, name, NS)
        finalizers = sorted({*claim["metadata"].get("finalizers", []), FINALIZER})
        await self.store.patch(RESOURCE_CLAIMS, name, MergePatch({"metadata": {"finalizers": finalizers}}), NS)
        result = {"request": "gpu", "driver": "gpu.example.com", "pool": "p", "device": "d0"}
        status = {
            "allocation": {"devices": {"results": [result]}}
            | ({"nodeSelector": {"nodeSelectorTerms": [selector]}} if selector else {}),
            "reservedFor": [*map(consumer, pods), *(others or [])] or None,
        }
        return await self.store.patch(RESOURCE_CLAIMS, name, MergePatch({"status": status}), NS, subresource="status")

    async def bind(self, name: str, node: str = "n1") -> None:
        target = {"target": {"kind": "Node", "name": node}}
        await self.store.create(PODS, target, NS, name=name, subresource="binding")

    async def finish(self, name: str, phase: str = "Succeeded") -> None:
        await self.store.patch(PODS, name, MergePatch({"status": {"phase": phase}}), NS, subresource="status")

    async def record(self, name: str, **entries: str | None) -> None:
        """Write the names of claims into the pod's status, as any client may."""
        statuses = [{"name": e} | ({"resourceClaimName": c} if c else {}) for e, c in entries.items()]
        patch = MergePatch({"status": {"resourceClaimStatuses": statuses}})
        await self.store.patch(PODS, name, patch, NS, subresource="status")

    async def remove(self, name: str) -> None:
        await self.store.delete(PODS, name, NS, DeleteOptions(grace_period=0))

    async def claims(self) -> dict[str, Document]:
        page = await self.store.list(RESOURCE_CLAIMS, NS)
        return {claim["metadata"]["name"]: claim for claim in page.items}

    async def get_claim(self, name: str) -> Document | None:
        try:
            return await self.store.get(RESOURCE_CLAIMS, name, NS)
        except NotFound:
            return None

    async def recorded(self, name: str = "train") -> dict[str, str | None]:
        pod = await self.store.get(PODS, name, NS)
        return {s["name"]: s.get("resourceClaimName") for s in pod["status"].get("resourceClaimStatuses", [])}

    async def events(self) -> list[tuple[str, str]]:
        async with running(self.recorder.run):
            await self.settled()
        return [(event["reason"], event["message"]) for event in (await self.store.list(EVENTS, NS)).items]

    async def settled(self) -> None:
        """Wait until all copies are complete and the controller has been idle for a while."""
        with deadline():
            quiet, seen = 0, -1
            while quiet < 20:
                rests = self.controller.is_idle and self.store.version == seen and await self._copies_are_complete()
                quiet, seen = (quiet + 1 if rests else 0), self.store.version
                await checkpoint()

    async def _copies_are_complete(self) -> bool:
        for resource, copy in ((PODS, self.informers.pods), (RESOURCE_CLAIMS, self.informers.claims)):
            page = await self.store.list(resource)
            stored = {d["metadata"]["uid"]: d["metadata"]["resourceVersion"] for d in page.items}
            copied: Any = copy.all()
            if {o.metadata.uid: o.metadata.resource_version for o in copied} != stored:
                return False
        return len((await self.store.list(RESOURCE_CLAIM_TEMPLATES)).items) == len(self.informers.templates.all())


def consumer(pod: Document) -> Document:
    return {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}


@asynccontextmanager
async def open_world(root: Path, *, garbage: bool = True) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        settings = StoreSettings(collect_garbage=garbage)
        store = await stack.enter_async_context(open_store(root / "cluster.db", settings))
        world = World(store)
        await stack.enter_async_context(world.informers.running())
        yield world


@pytest.fixture
async def world(root: Path, anyio_backend: str) -> AsyncIterator[World]:
    """A store without a garbage collector: whatever is deleted, the controller has deleted."""
    async with open_world(root, garbage=False) as world:
        yield world


@pytest.fixture(scope="session")
def new_world() -> Callable[..., Any]:
    return open_world
