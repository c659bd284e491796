"""A cluster with devices, claims, pods that use them, and the controller. The clock is a fake."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from anyio.lowlevel import checkpoint

from devlet.cluster.client import DeleteOptions, MergePatch
from devlet.cluster.events import Recorder
from devlet.cluster.informer import Informer
from devlet.cluster.store.store import Store, open_store
from devlet.control.informers import Informers
from devlet.control.taints import Settings, TaintController
from devlet.kit.metrics import Registry
from devlet.kit.parts import running
from devlet.objects import kinds
from devlet.objects.documents import Document
from devlet.objects.kinds import Resource
from devlet.objects.types.meta import ObjectReference
from devlet.testing.fake_clock import FakeClock
from devlet.testing.waiting import deadline

DRIVER = "gpu.example.com"
POOL: Document = {"pool": "p"}


class HeardRecorder(Recorder):
    """A recorder that also keeps what was recorded."""

    def __init__(self, store: Store, clock: FakeClock) -> None:
        super().__init__(store, "test", "here", clock)
        self.heard: list[tuple[str, str, str, str]] = []

    def record(self, about: ObjectReference, type: str, reason: str, message: str) -> None:
        self.heard.append((type, reason, f"{about.namespace}/{about.name}", message))
        super().record(about, type, reason, message)


class World:
    def __init__(self, store: Store, clock: FakeClock) -> None:
        self.store = store
        self.clock = clock
        self.recorder = HeardRecorder(store, clock)

    @asynccontextmanager
    async def controlled(self, settings: Settings = Settings()) -> AsyncIterator["Control"]:
        """Start a controller."""
        informers, metrics = Informers(self.store), Registry()
        controller = TaintController(self.store, informers, self.recorder, self.clock, metrics, settings)
        async with running(self.recorder.run), informers.running():
            async with running(controller.run):
                control = Control(self, informers, controller, metrics)
                await control.settle()
                yield control

    async def publish(
        self, *tainted: str, name: str = "s", pool: str = "p", generation: int = 1, effect: str = "NoExecute"
    ) -> None:
        """Publish the devices d0, d1, d2, some of them tainted from now on."""
        taints = [{"key": "broken", "effect": effect}]
        names = ("d0", "d1", "d2")
        devices = [{"name": each, **({"taints": taints} if each in tainted else {})} for each in names]
        spec = {
            "driver": DRIVER,
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": 1},
            "nodeName": "n1",
            "devices": devices,
        }
        found = [slice_["metadata"]["name"] for slice_ in (await self.store.list(kinds.RESOURCE_SLICES)).items]
        if name in found:
            await self.store.patch(kinds.RESOURCE_SLICES, name, MergePatch({"spec": spec}))
        else:
            await self.store.create(kinds.RESOURCE_SLICES, {"metadata": {"name": name}, "spec": spec})

    async def claim(
        self,
        name: str = "c",
        *devices: str,
        users: Sequence[Document] = (),
        tolerations: Sequence[Document] = (),
        namespace: str = "default",
        pool: str = "p",
    ) -> Document:
        """Create an allocated claim, with the tolerations of its request in each result."""
        request = {"name": "r", "exactly": {"deviceClassName": "gpu", "tolerations": list(tolerations)}}
        document = {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}
        made = await self.store.create(kinds.RESOURCE_CLAIMS, document, namespace)
        found = [
            {"request": "r", "driver": DRIVER, "pool": pool, "device": device, "tolerations": list(tolerations)}
            for device in devices or ("d0",)
        ]
        status = {"allocation": {"devices": {"results": found}}, "reservedFor": [_consumer(user) for user in users]}
        return await self.store.update(kinds.RESOURCE_CLAIMS, {**made, "status": status}, subresource="status")

    async def reserve(self, name: str, *users: Document) -> None:
        status = {"status": {"reservedFor": [_consumer(user) for user in users] or None}}
        await self.store.patch(kinds.RESOURCE_CLAIMS, name, MergePatch(status), "default", subresource="status")

    async def pod(
        self,
        name: str = "p",
        *claims: str,
        node: str = "n1",
        namespace: str = "default",
        status: Document | None = None,
    ) -> Document:
        wanted = claims or (() if status else ("c",))
        resources = {"claims": [{"name": each} for each in wanted], "limits": {"example.com/gpu": "1"}}
        container = {"name": "main", "image": "x", "resources": resources}
        spec: Document = {
            "containers": [container],
            "resourceClaims": [{"name": each, "resourceClaimName": each} for each in wanted],
            **({"nodeName": node} if node else {}),
        }
        made = await self.store.create(kinds.PODS, {"metadata": {"name": name}, "spec": spec}, namespace)
        if status:
            await self.pod_status(name, namespace, **status)
        return made

    async def pod_status(self, name: str, namespace: str = "default", **status: Any) -> None:
        await self.store.patch(kinds.PODS, name, MergePatch({"status": status}), namespace, subresource="status")

    async def user(self, name: str = "p", *devices: str, namespace: str = "default", tolerations: Any = ()) -> Document:
        """Create a placed pod with a claim of the same name that holds these devices, or d0."""
        pod = await self.pod(name, name, namespace=namespace)
        await self.claim(name, *devices, users=[pod], tolerations=tolerations, namespace=namespace)
        return pod

    async def rule(
        self, name: str = "r", effect: str = "NoExecute", selector: Document | None = POOL, **taint: str
    ) -> Document:
        chosen = {"deviceSelector": selector} if selector is not None else {}
        spec = {**chosen, "taint": {"key": "dry", "effect": effect, **taint}}
        return await self.store.create(kinds.DEVICE_TAINT_RULES, {"metadata": {"name": name}, "spec": spec})

    async def set_effect(self, effect: str, name: str = "r") -> None:
        await self.store.patch(kinds.DEVICE_TAINT_RULES, name, MergePatch({"spec": {"taint": {"effect": effect}}}))

    async def condition(self, name: str = "r") -> Document:
        rule = await self.store.get(kinds.DEVICE_TAINT_RULES, name)
        [condition] = rule["status"]["conditions"]
        assert isinstance(condition, dict)
        return condition

    async def said(self, name: str = "r") -> tuple[str, str, str]:
        condition = await self.condition(name)
        return condition["status"], condition["reason"], condition["message"]

    async def remove_pod(self, name: str, namespace: str = "default") -> None:
        await self.store.delete(kinds.PODS, name, namespace, DeleteOptions(grace_period=0))

    async def leaving(self) -> list[str]:
        """Return the pods that are being deleted."""
        pods = (await self.store.list(kinds.PODS)).items
        return [pod["metadata"]["name"] for pod in pods if "deletionTimestamp" in pod["metadata"]]

    @property
    def messages(self) -> list[tuple[str, str]]:
        return [(pod.removeprefix("default/"), message) for _, _, pod, message in self.recorder.heard]


class Control:
    """A running controller and what it sees."""

    def __init__(self, world: World, informers: Informers, controller: TaintController, metrics: Registry) -> None:
        self._world = world
        self.informers = informers
        self.controller = controller
        self.metrics = metrics

    async def settle(self) -> None:
        """Wait until all changes were seen and the controller is idle."""
        quiet = 0
        while quiet < 2:
            await checkpoint()
            is_quiet = await self._has_seen_all() and self.controller.is_idle
            quiet = quiet + 1 if is_quiet else 0

    async def _has_seen_all(self) -> bool:
        watched: list[tuple[Resource, Informer[Any]]] = [
            (kinds.PODS, self.informers.pods),
            (kinds.RESOURCE_CLAIMS, self.informers.claims),
            (kinds.RESOURCE_SLICES, self.informers.slices),
            (kinds.DEVICE_TAINT_RULES, self.informers.rules),
        ]
        for resource, informer in watched:
            there = {each["metadata"]["resourceVersion"] for each in (await self._world.store.list(resource)).items}
            if there != {each.metadata.resource_version for each in informer.all()}:
                return False
        return True

    async def pass_time(self, seconds: float) -> None:
        await self.settle()
        await self._world.clock.advance(seconds)
        await self.settle()


def _consumer(pod: Document) -> Document:
    return {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}


Tolerate = Callable[..., list[Document]]


@pytest.fixture
def tolerate() -> Tolerate:
    def tolerate(seconds: int | None = None, effect: str = "NoExecute", **rest: Any) -> list[Document]:
        ends = {"tolerationSeconds": seconds} if seconds is not None else {}
        return [{"operator": "Exists", **({"effect": effect} if effect else {}), **ends, **rest}]

    return tolerate


@pytest.fixture
async def world(root: Path) -> AsyncIterator[World]:
    clock = FakeClock()
    with deadline():
        async with open_store(root / "db", clock=clock) as store:
            yield World(store, clock)
