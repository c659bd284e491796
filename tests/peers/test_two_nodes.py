"""Two devlet nodes on one embedded API: the second has joined with the credentials of a node, and each has a driver of
its own. There are exactly as many devices as pods."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from devlet.cluster.client import Cluster
from devlet.cluster.remote import kubeconfig as kubeconfigs
from devlet.cluster.remote.client import connected
from devlet.cluster.remote.settings import Settings
from devlet.objects.documents import Document
from devlet.objects.kinds import DEVICE_CLASSES, PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, RESOURCE_SLICES
from devlet.testing.node_process import NODE
from devlet.testing.waiting import until
from tests.support.chaos.doubles import Doubles
from tests.support.chaos.leaks import leaks
from tests.support.chaos.reasons import unexplained
from tests.support.chaos.snapshot import Snapshot, take
from tests.support.chaos.worlds import node_kubeconfig
from tests.support.peers.drivers import dra_example_driver
from tests.support.peers.peer_node import EXAMPLE, PeerNode
from tests.support.workloads import device_class, pod, template

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

SECOND = "n2"
GPUS = 20
WORK = 2 * GPUS  # pods


@dataclass(frozen=True, slots=True)
class Scene:
    cluster: Cluster
    nodes: dict[str, PeerNode]
    doubles: Doubles = field(default_factory=Doubles)

    async def pods(self) -> dict[str, Document]:
        return {each["metadata"]["name"]: each for each in (await self.cluster.list(PODS, "default")).items}

    async def create(self, *names: str) -> None:
        for name in names:
            await self.cluster.create(PODS, pod(name, template="one-gpu", restartPolicy="Never"), "default")

    async def delete(self, *names: str) -> None:
        for name in names:
            await self.cluster.delete(PODS, name, "default")

    async def until_running(self, count: int) -> dict[str, Document]:
        """So many, and none of them is on its way out."""

        def running(pods: dict[str, Document]) -> bool:
            going = [name for name, each in pods.items() if "deletionTimestamp" in each["metadata"]]
            return not going and [each["status"]["phase"] for each in pods.values()].count("Running") == count

        return await until(self.pods, running)

    async def settled(self) -> Snapshot:
        """Nothing is left of pods that are over, and who waits has to."""
        seen: list[Snapshot] = []

        async def complaints() -> list[str]:
            seen[:] = [await take(self.cluster, self.nodes)]
            return [*leaks(seen[0]), *unexplained(seen[0])]

        await until(complaints, lambda found: not found)
        return seen[0]


@pytest.fixture
async def scene(peers: "Peers", root: Path) -> AsyncIterator[Scene]:
    peers.need("dra-example-kubeletplugin")
    async with AsyncExitStack() as stack:
        roots = {NODE: root / "1", SECOND: root / "2"}
        for path in roots.values():
            path.mkdir()
        first = await stack.enter_async_context(PeerNode(roots[NODE], peers.binaries, control=True))
        credentials = root / "n2.kubeconfig"
        credentials.write_text(await node_kubeconfig(roots[NODE], SECOND))
        arguments = ["--node-name", SECOND, "--kubeconfig", str(credentials)]
        second = await stack.enter_async_context(PeerNode(roots[SECOND], peers.binaries, arguments=arguments))
        for name, path in roots.items():
            driver = dra_example_driver(peers.binaries, path, first.kubeconfig, node_name=name, num_devices=GPUS)
            await stack.enter_async_context(driver)
        connection = kubeconfigs.connection([first.kubeconfig])
        cluster = await stack.enter_async_context(connected(connection, Settings(qps=0)))
        await cluster.create(DEVICE_CLASSES, device_class())
        await cluster.create(RESOURCE_CLAIM_TEMPLATES, template("one-gpu"), "default")
        scene = Scene(cluster, {NODE: first, SECOND: second})
        for node in scene.nodes.values():
            await node.until_up(EXAMPLE)
        await until(lambda: pools(cluster), lambda found: found == {NODE, SECOND})
        tasks = await stack.enter_async_context(anyio.create_task_group())
        tasks.start_soon(scene.doubles.follow_claims, cluster)
        for node in scene.nodes.values():
            tasks.start_soon(scene.doubles.follow_node, node)
        yield scene
        tasks.cancel_scope.cancel()


async def pools(cluster: Cluster) -> set[str]:
    return {each["spec"]["pool"]["name"] for each in (await cluster.list(RESOURCE_SLICES)).items}


async def devices(cluster: Cluster) -> set[tuple[str, str]]:
    """Of all claims: pool and name."""
    claims = (await cluster.list(RESOURCE_CLAIMS, "default")).items
    results = [each for claim in claims for each in claim["status"]["allocation"]["devices"]["results"]]
    return {(each["pool"], each["device"]) for each in results}


def on(node: str, pods: dict[str, Document]) -> list[str]:
    return sorted(name for name, each in pods.items() if each["spec"].get("nodeName") == node)


@pytest.mark.spec("KA-9.3w")
async def test_pods_fill_both_nodes_and_what_is_deleted_while_one_is_away_goes_when_it_is_back(scene: Scene) -> None:
    await scene.create(*(f"p{number:02}" for number in range(WORK)))
    pods = await scene.until_running(WORK)
    assert (len(on(NODE, pods)), len(on(SECOND, pods))) == (GPUS, GPUS)
    assert len(await devices(scene.cluster)) == WORK
    await scene.settled()

    second = scene.nodes[SECOND]
    await second.kill()
    gone = on(SECOND, pods)[:8]
    await scene.delete(*gone, *on(NODE, pods)[:2])
    left = await until(scene.pods, lambda found: len(found) == WORK - 2)
    assert all(left[name]["metadata"].get("deletionTimestamp") for name in gone)
    assert len(second.specs()) == GPUS  # who is away has unprepared nothing

    await scene.create(*(f"again-{number}" for number in range(4)))
    # Devices of pods that a dead node may still run are not given away.
    await until(scene.pods, lambda found: (len(on(NODE, found)), len(waiting(found))) == (GPUS, 2))
    await second.start()
    pods = await scene.until_running(WORK - 10 + 4)
    assert not pods.keys() & set(gone)
    snapshot = await scene.settled()
    assert {each.name: len(each.prepared) for each in snapshot.states} == {NODE: GPUS, SECOND: GPUS - 8 + 2}

    await scene.delete(*pods)
    await until(scene.pods, lambda found: not found)
    snapshot = await scene.settled()
    assert (snapshot.claims, [each.specs for each in snapshot.states]) == ((), [(), ()])
    assert scene.doubles.found == {}


def waiting(pods: dict[str, Document]) -> list[str]:
    """Those that were told why."""
    conditions = {name: each["status"].get("conditions") or () for name, each in pods.items()}
    return [name for name, found in conditions.items() if any(one.get("reason") == "Unschedulable" for one in found)]
