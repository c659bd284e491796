"""kube-scheduler and devlet's scheduler give away the one GPU of a node, on a real API server, at the same time. What
was written, and in which order, is read from the watches."""

import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from devlet.cluster.client import Cluster, DeleteOptions, EventType, WatchOptions
from devlet.cluster.remote import kubeconfig as kubeconfigs
from devlet.cluster.remote.client import connected
from devlet.cluster.remote.settings import Settings
from devlet.objects.documents import Document
from devlet.objects.kinds import (
    DEVICE_CLASSES,
    EVENTS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from devlet.testing.node_process import NODE
from devlet.testing.waiting import until
from tests.support.chaos.worlds import THEIRS, control_process
from tests.support.peers.control_plane import control_plane
from tests.support.peers.drivers import dra_example_driver
from tests.support.peers.kube_programs import kube_controller_manager, kube_scheduler
from tests.support.peers.peer_node import EXAMPLE, PeerNode
from tests.support.workloads import device_class, pod, template

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

TRIALS, TRIALS_MAX = 8, 40  # usually more than half of them have an overlap
TAKEN_BACK = "by another scheduler; trying again"
REFUSED = "is still prepared for ResourceClaim"
Devices = frozenset[tuple[str, str]]


@dataclass
class History:
    """What claims held and which pods were bound and running, by the versions of the API."""

    held: list[tuple[int, str, Devices]] = field(default_factory=list)
    bound: dict[str, str] = field(default_factory=dict)  # the claim of each pod that has a node
    running: set[str] = field(default_factory=set)
    at_once: int = 0  # most pods that were running at the same time

    async def follow(self, cluster: Cluster, resource: Resource) -> None:
        see = self._claim if resource == RESOURCE_CLAIMS else self._pod
        version = (await cluster.list(resource, "default")).resource_version
        async with cluster.watch(resource, "default", WatchOptions(resource_version=version)) as events:
            async for event in events:
                see(event.object, event.type is EventType.DELETED)

    def _claim(self, claim: Document, is_gone: bool) -> None:
        metadata = claim["metadata"]
        self.held.append(
            (int(metadata["resourceVersion"]), metadata["name"], frozenset() if is_gone else devices(claim))
        )

    def _pod(self, pod: Document, is_gone: bool) -> None:
        name = pod["metadata"]["name"]
        if pod["spec"].get("nodeName") and name not in self.bound:
            self.bound[name] = claim_of(pod)
        is_running = not is_gone and pod.get("status", {}).get("phase") == "Running"
        self.running = self.running | {name} if is_running else self.running - {name}
        self.at_once = max(self.at_once, len(self.running))

    def overlaps_before(self, claim: str) -> set[str]:
        """The claims that held a device of this one when its last allocation was written."""
        before: Devices = frozenset()
        holding: dict[str, Devices] = {}
        found: set[str] = set()
        for _, name, held in sorted(self.held):
            if name == claim and held and held != before:
                found = {other for other, theirs in holding.items() if other != claim and theirs & held}
            before = held if name == claim else before
            holding[name] = held
        return found

    @property
    def overlaps(self) -> int:
        """How often a device came to be held by a second claim."""
        holding: dict[str, Devices] = {}
        count = 0
        for _, name, held in sorted(self.held):
            new = held - holding.get(name, frozenset())
            count += any(new & theirs for other, theirs in holding.items() if other != name)
            holding[name] = held
        return count


def devices(claim: Document) -> Devices:
    allocation = (claim.get("status") or {}).get("allocation") or {"devices": {}}
    return frozenset((each["pool"], each["device"]) for each in allocation["devices"].get("results", ()))


def claim_of(pod: Document) -> str:
    statuses = pod.get("status", {}).get("resourceClaimStatuses") or [{}]
    return str(statuses[0].get("resourceClaimName", ""))


@dataclass
class Scene:
    cluster: Cluster
    node: PeerNode

    async def pods(self) -> dict[str, Document]:
        return {each["metadata"]["name"]: each for each in (await self.cluster.list(PODS, "default")).items}

    async def running(self) -> list[str]:
        return [name for name, each in (await self.pods()).items() if each["status"].get("phase") == "Running"]

    async def told(self, text: str) -> list[str]:
        """The pods that have an event with this text."""
        events = (await self.cluster.list(EVENTS, "default")).items
        return [each["involvedObject"]["name"] for each in events if text in (each.get("message") or "")]

    async def clear(self) -> None:
        for name in await self.pods():
            await self.cluster.delete(PODS, name, "default", DeleteOptions(grace_period=0))

        async def left() -> int:
            claims = (await self.cluster.list(RESOURCE_CLAIMS, "default")).items
            return len(await self.pods()) + len(claims) + len(self.node.claim_checkpoint())

        await until(left, lambda count: count == 0)


@pytest.fixture
async def scene(peers: "Peers") -> AsyncIterator[Scene]:
    needed = ("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager", "dra-example-kubeletplugin")
    peers.need(*needed)
    root = Path(tempfile.mkdtemp(prefix="dv"))
    user = f"system:node:{NODE}"
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(
            control_plane(peers.binaries, root / "plane", users={user: ["system:nodes"]}, fsync=False)
        )
        for program in (
            kube_controller_manager(peers.binaries, root / "plane", plane.kubeconfig, controllers=THEIRS),
            kube_scheduler(peers.binaries, root / "plane", plane.kubeconfig),
            control_process(plane.kubeconfig, root / "control.log", "--controllers", "*"),
        ):
            await stack.enter_async_context(program)
        (root / "node").mkdir()
        node = PeerNode(root / "node", peers.binaries, arguments=["--kubeconfig", str(plane.kubeconfig_of(user))])
        await stack.enter_async_context(node)
        driver = dra_example_driver(peers.binaries, node.root, plane.kubeconfig, node_name=NODE, num_devices=1)
        await stack.enter_async_context(driver)
        connection = kubeconfigs.connection([plane.kubeconfig])
        cluster = await stack.enter_async_context(connected(connection, Settings(qps=0)))
        await cluster.create(DEVICE_CLASSES, device_class())
        await cluster.create(RESOURCE_CLAIM_TEMPLATES, template("one"), "default")
        await until(partial(published, cluster))
        yield Scene(cluster, node)
    shutil.rmtree(root)


async def published(cluster: Cluster) -> int:
    slices = (await cluster.list(RESOURCE_SLICES)).items
    return sum(len(each["spec"].get("devices") or ()) for each in slices if each["spec"]["driver"] == EXAMPLE)


async def test_a_gpu_that_two_schedulers_give_away_has_one_pod_at_a_time(scene: Scene) -> None:
    history = History()
    ours, refused = set[str](), set[str]()
    async with anyio.create_task_group() as tasks:
        for resource in (RESOURCE_CLAIMS, PODS):
            tasks.start_soon(history.follow, scene.cluster, resource)
        for number in range(TRIALS_MAX):
            if number >= TRIALS and history.overlaps:
                break
            await trial(scene, number)
            ours |= set(await scene.told(TAKEN_BACK))
            refused |= set(await scene.told(REFUSED))
            await scene.clear()
        tasks.cancel_scope.cancel()
    assert history.at_once == 1, "two pods ran with one device"
    mine = {name: claim for name, claim in history.bound.items() if name.startswith("ours")}
    assert len(mine) >= TRIALS
    assert {name: found for name, claim in mine.items() if (found := history.overlaps_before(claim))} == {}
    # Every overlap was reported: by our scheduler, which gave way, or by the node, which refused.
    assert len(ours | refused) >= history.overlaps > 0
    assert all(name.startswith("ours-") for name in ours)


async def trial(scene: Scene, number: int) -> None:
    """A pod for each scheduler, at once. When the first pod has gone, the other runs. This does not wait for a pod that
    kube-scheduler has not placed: it may take half a minute to look at the pod again."""
    names = {f"ours-{number}": "devlet", f"theirs-{number}": "default-scheduler"}
    for name, scheduler in names.items():
        await scene.cluster.create(PODS, pod(name, template="one", schedulerName=scheduler), "default")
    (first,) = await until(scene.running)
    (other,) = names.keys() - {first}
    await until(partial(settled, scene, other))
    await scene.cluster.delete(PODS, first, "default", DeleteOptions(grace_period=0))
    if other.startswith("ours") or (await scene.pods())[other]["spec"].get("nodeName"):
        await until(scene.running, lambda found: found == [other])


async def settled(scene: Scene, name: str) -> bool:
    """The pod is not scheduled, or its node has refused it."""
    found = (await scene.pods())[name]
    conditions = found["status"].get("conditions") or ()
    if any(each["type"] == "PodScheduled" and each["status"] == "False" for each in conditions):
        return True
    return bool(found["spec"].get("nodeName")) and name in await scene.told(REFUSED)
