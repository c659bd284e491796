"""A node without a daemon: the real store, device manager, topology manager and pods, and plugins on real sockets."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from devlet.cluster.client import Cluster
from devlet.cluster.events import Recorder
from devlet.cluster.store.store import Store, open_store
from devlet.kit.backoff import Backoff
from devlet.kit.parts import running
from devlet.node.claims.claim_reader import ClaimReader
from devlet.node.claims.manager import ClaimManager
from devlet.node.devices import manager as device_manager
from devlet.node.devices.manager import DeviceManager
from devlet.node.pods.manager import PodManager, Settings
from devlet.node.static_pods.directory import ManifestDirectory
from devlet.node.static_pods.pods import StaticPods
from devlet.node.topology.machine import simulated
from devlet.node.topology.manager import TopologyManager
from devlet.objects.documents import Document
from devlet.objects.identifiers import ContainerName, NodeName, PodUID, ResourceName
from devlet.objects.kinds import EVENTS, PODS
from devlet.objects.types.container import Container, ResourceHealth, ResourceStatus
from devlet.objects.types.meta import ObjectMeta
from devlet.objects.types.node import Node, NodeSpec, NodeStatus, Taint
from devlet.objects.types.pod import Pod
from devlet.plugins import device_plugin
from devlet.plugins.device_plugin import Offer
from devlet.plugins.dra_registry import DraRegistry
from devlet.runtime.none import NoneRuntime
from devlet.testing.fake_clock import FakeClock
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.waiting import deadline, until

GPU = ResourceName("vendor.com/gpu")
MAIN = ContainerName("main")
NODE = "n1"
QUICK = device_manager.Settings(
    plugin=device_plugin.Settings(dial=2.0, options=2.0, allocate=2.0, preferred=2.0, pre_start=2.0),
    reconnect=Backoff(0.01, 0.05),
)


def pod(name: str = "p", gpus: int = 0, **spec: Any) -> Document:
    limits = {"limits": {GPU: str(gpus)}} if gpus else {}
    container = {"name": "main", "image": "registry.example.com/app:1", "resources": limits}
    metadata = {"name": name, "annotations": spec.pop("annotations", {})}
    return {"metadata": metadata, "spec": {"nodeName": NODE, "containers": [container], **spec}}


@dataclass
class Running:
    """A running node."""

    devices: DeviceManager
    claims: ClaimManager
    drivers: DraRegistry
    pods: PodManager
    runtime: NoneRuntime

    def held(self, uid: str) -> set[str]:
        return {id for ids in self.devices.container_devices(PodUID(uid), MAIN).values() for id in ids}


class NodeHarness:
    """A root and a cluster on which nodes can run one after the other. `allocatable` may be changed at any time, and
    `cluster` may be replaced by an object that stands between the pods and the store."""

    def __init__(self, root: Path, store: Store) -> None:
        self.root = root
        self.store = store
        self.cluster: Cluster = store
        self.clock = FakeClock()
        self.boot = "b1"
        self.allocatable = {"cpu": "100", "memory": "64Gi", "pods": "110", str(GPU): "8"}
        self.labels: dict[str, str] = {}
        self.taints: tuple[Taint, ...] = ()
        self.manifests = root / "manifests"
        self.node_uid: str | None = None
        self.health: dict[str, str] = {}  # of each container's only device, by claim
        self.reports: list[str] = []
        self.directory = root / "device-plugins"
        self.directory.mkdir(mode=0o700)

    def _claim_health(self, pod: Pod, container: Container) -> tuple[ResourceStatus, ...]:
        device = "d"
        return tuple(
            ResourceStatus(name=name, resources=(ResourceHealth(resource_id=device, health=health),))
            for name, health in self.health.items()
        )

    def node(self) -> Node:
        metadata = ObjectMeta(name=NODE, labels=self.labels)
        spec = NodeSpec(taints=self.taints)
        return Node(metadata=metadata, spec=spec, status=NodeStatus(allocatable=dict(self.allocatable)))

    @asynccontextmanager
    async def running(
        self,
        settings: Settings = Settings(),
        *,
        use: Callable[[DeviceManager], Any] = lambda devices: devices,
        use_runtime: Callable[[NoneRuntime], Any] = lambda runtime: runtime,
    ) -> AsyncIterator[Running]:
        """`use` may put something between the pods and the device manager, and `use_runtime` between them and the
        runtime."""
        pods: list[PodManager] = []

        def on_health(uids: frozenset[PodUID]) -> None:
            for each in pods:
                each.health_changed(uids)

        devices = DeviceManager(self.directory, self.clock, QUICK, on_health=on_health)
        drivers = DraRegistry(self.clock)
        claims = ClaimManager(self.root, drivers, ClaimReader(self.cluster).read_claim, self.clock)
        topology = TopologyManager("none", "container", {}, simulated(1))
        recorder = Recorder(self.store, "devlet", NODE, self.clock)
        runtime = NoneRuntime(self.clock, self.boot, self.root / "state")
        name = NodeName(NODE)
        files = ManifestDirectory(self.manifests, name, self.clock, lambda report: self.reports.append(report.message))
        static = StaticPods(self.cluster, name, recorder, self.clock, files, owner=lambda: self.node_uid)
        manager = PodManager(
            self.cluster,
            name,
            use(devices),
            claims,
            topology,
            use_runtime(runtime),
            recorder,
            self.clock,
            settings,
            node=self.node,
            claim_health=self._claim_health,
            static=static,
        )
        pods.append(manager)
        async with running(recorder.run), running(devices.run), running(drivers.run), running(claims.run):
            async with running(manager.run):
                yield Running(devices, claims, drivers, manager, runtime)

    @asynccontextmanager
    async def plugged(self, node: Running, devices: int = 2, **options: Any) -> AsyncIterator[FakeDevicePlugin]:
        async with FakeDevicePlugin(self.directory, GPU, devices, **options) as plugin:
            await node.devices.register(Offer(GPU, plugin.path, plugin.api))
            await until(partial(_listed, node.devices), lambda number: number == devices)
            yield plugin

    async def create(self, document: Document) -> str:
        """Create the pod and return its UID."""
        made = await self.store.create(PODS, document, "default")
        uid: str = made["metadata"]["uid"]
        return uid

    async def status(self, name: str, holds: Callable[[Document], bool]) -> Document:
        """Wait until that is true of the pod's status, and return it."""

        async def read() -> Document:
            found: Document = (await self.store.get(PODS, name, "default"))["status"]
            return found

        return await until(read, holds)

    async def phase(self, name: str, phase: str) -> Document:
        return await self.status(name, lambda status: status.get("phase") == phase)

    async def gone(self, name: str) -> None:
        async def names() -> list[str]:
            return [each["metadata"]["name"] for each in (await self.store.list(PODS, "default")).items]

        await until(names, lambda found: name not in found)

    async def event(self, reason: str) -> Document:
        async def read() -> list[Document]:
            return [each for each in (await self.store.list(EVENTS)).items if each["reason"] == reason]

        return (await until(read))[0]

    async def pass_time(self, seconds: float, *, sleepers: int = 1) -> None:
        """Advance the clock as soon as so many tasks sleep: a worker, and after a restart also the device manager,
        which expects plugins back. The search for claims of pods that are gone, once a minute, is not counted."""
        with deadline():
            await self.clock.sleeping(sleepers + 1)
        await self.clock.advance(seconds)


async def _listed(devices: DeviceManager) -> int:
    return devices.capacity().allocatable.get(GPU, 0)


@pytest.fixture
async def node(root: Path, anyio_backend: str) -> AsyncIterator[NodeHarness]:
    async with open_store(root / "cluster.db") as store:
        yield NodeHarness(root, store)


@pytest.fixture
def make_pod() -> Callable[..., Document]:
    return pod
