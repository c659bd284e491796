from collections.abc import AsyncIterator, Set
from pathlib import Path

import anyio
import pytest

from devlet.cassettes.offered import STATUS_LATE, offered
from devlet.cluster.client import Cluster, MergePatch
from devlet.cluster.store.store import open_store
from devlet.objects.identifiers import DeviceID
from devlet.objects.kinds import NODES
from devlet.plugins.devices import Device
from devlet.testing.fake_clock import FakeClock
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.node import Node
from devlet.testing.waiting import until

pytestmark = pytest.mark.anyio

LED, HORN = "example.com/led", "example.com/horn"


@pytest.fixture
async def cluster(root: Path) -> AsyncIterator[Cluster]:
    async with open_store(root / "cluster.db") as store:
        await store.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
        yield store


async def report(cluster: Cluster, **allocatable: str) -> None:
    named = {f"example.com/{name}": amount for name, amount in allocatable.items()}
    patch = MergePatch({"status": {"capacity": named, "allocatable": named}})
    await cluster.patch(NODES, "n1", patch, subresource="status")


async def test_a_devlet_says_which_plugins_run() -> None:
    """Healthy devices or not, and at once when it has ended."""
    async with Node.start() as node:
        devices = [Device(DeviceID("a"), "Unhealthy")]
        async with FakeDevicePlugin(node.device_plugins, LED, devices, follow=True):
            await until(node.plugin_states)
            assert await offered({LED, HORN}, node.root, node.name, node.cluster) == {LED}
        await until(node.plugin_states, lambda states: states["example.com:led"]["state"] == "Disconnected")
        assert await offered({LED}, node.root, node.name, node.cluster) == set()


async def test_of_a_kubelet_there_is_the_status_of_its_node(root: Path, cluster: Cluster) -> None:
    assert await offered({LED}, root, "n1", cluster) == set()
    await report(cluster, led="0", lamp="2")
    assert await offered({LED}, root, "n1", cluster) == set()


async def test_a_status_may_be_late(root: Path, cluster: Cluster) -> None:
    clock, found = FakeClock(), list[Set[str]]()

    async def look() -> None:
        found.append(await offered({LED, HORN}, root, "n1", cluster, clock))

    await report(cluster, led="2", horn="1")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(look)
        await clock.sleeping(1)
        await report(cluster, led="2", horn="0")
        await clock.advance(STATUS_LATE)
    assert found == [{LED}]
