"""A cluster in a file, with our scheduler and claim controller at work on it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from devlet.cluster.client import DeleteOptions
from devlet.cluster.events import Recorder
from devlet.cluster.store.store import Store, open_store
from devlet.control.claims.controller import ClaimController
from devlet.control.informers import Informers
from devlet.control.scheduler.scheduler import Scheduler
from devlet.control.scheduler.settings import Settings
from devlet.errors import NotFound
from devlet.kit.clock import SystemClock
from devlet.kit.metrics import Registry
from devlet.kit.parts import running
from devlet.objects import kinds
from devlet.objects.documents import Document
from devlet.objects.kinds import Resource
from devlet.testing.waiting import until

_RESOURCES: dict[str, Resource] = {
    "Node": kinds.NODES,
    "DeviceClass": kinds.DEVICE_CLASSES,
    "ResourceSlice": kinds.RESOURCE_SLICES,
    "ResourceClaimTemplate": kinds.RESOURCE_CLAIM_TEMPLATES,
    "ResourceClaim": kinds.RESOURCE_CLAIMS,
    "Pod": kinds.PODS,
}


class World:
    def __init__(self, store: Store, settings: Settings) -> None:
        self.store = store
        self.settings = settings
        self.metrics = Registry()

    @asynccontextmanager
    async def scheduling(self) -> AsyncIterator[None]:
        """The control loops at work, from the start."""
        clock = SystemClock()
        self.metrics = Registry()
        informers = Informers(self.store)
        recorder = Recorder(self.store, "test", "host", clock)
        claims = ClaimController(self.store, informers, recorder, clock, self.metrics)
        scheduler = Scheduler(self.store, informers, recorder, clock, self.metrics, self.settings)
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

        return await until(nodes, lambda found: all(found.values()), within=10)

    async def told(self, name: str, text: str = "") -> str:
        """What the pod says it waits for, as soon as the text is in it."""

        async def message() -> str:
            conditions = (await self.pod(name)).get("status", {}).get("conditions") or []
            return next((each["message"] for each in conditions if each.get("reason") == "Unschedulable"), "")

        return await until(message, lambda found: bool(found) and text in found, within=10)

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

    async def gone(self, resource: Resource, name: str) -> None:
        async def is_there() -> bool:
            try:
                await self.store.get(resource, name, "default")
            except NotFound:
                return False
            return True

        await until(is_there, lambda there: not there, within=10)

    async def status(self, name: str, patch: Any) -> None:
        """Write a claim's status, as a driver does."""
        from devlet.cluster.client import MergePatch

        await self.store.patch(
            kinds.RESOURCE_CLAIMS, name, MergePatch({"status": patch}), "default", subresource="status"
        )


@pytest.fixture
async def world(root: Path, anyio_backend: str) -> AsyncIterator[World]:
    async with open_store(root / "cluster.db") as store:
        yield World(store, Settings(report_after=0.05))
