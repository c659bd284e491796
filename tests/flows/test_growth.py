"""A node does not grow: what belonged to pods that are gone, and Events whose time is over, are gone too."""

import gc
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import anyio
import pytest

from devlet.cluster.client import EventType, WatchOptions
from devlet.objects.kinds import EVENTS, PODS, RESOURCE_CLAIMS
from devlet.testing import builders
from devlet.testing.fake_clock import FakeClock
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.fake_dra_driver import FakeDraDriver
from devlet.testing.node import Node
from devlet.testing.waiting import deadline, until

pytestmark = pytest.mark.anyio

GPU = "vendor.com/gpu"
PODS_AT_ONCE = 30
SPARE = 12  # objects of a type that may be there more or less at any moment: tasks, timers, connections

# What is remembered of pods that are gone, each up to a number that does not depend on how many there were.
BOUNDED = (
    "devlet.cluster.events.",  # Events that can be counted up
    "devlet.cluster.store.records.Table._changes",  # the history: at least 1,000 changes
    "devlet.control.claims.pod_outcomes.PodOutcomes._removed",
    "devlet.node.claims.tombstones.Tombstones._pods",  # for a minute
    "devlet.objects.types.claim.PreparedDevice",
    "devlet.state.claim_en",  # as the checkpoints have them: 256 more than are written
    "devlet.state.device_en",
    "devlet.state.go_hash.Piece",
)


@pytest.fixture
async def node(anyio_backend: str) -> AsyncIterator[Node]:
    timeouts = {"historyAge": 0.1, "compactEvery": 0.1, "eventTTL": 0.2}
    async with Node.start(timeouts=timeouts) as node:
        yield node


def kept() -> Counter[str]:
    """How many objects of each of devlet's own types there are, and how many entries their collections have. What is
    bounded, and the fakes, are left out."""
    gc.collect()
    found: Counter[str] = Counter()
    for each in gc.get_objects():
        module = str(type(each).__module__)  # a few C types have a descriptor there
        if module.startswith("devlet.") and ".testing." not in module:
            name = f"{module}.{type(each).__qualname__}"
            found[name] += 1
            for attribute, value in list(getattr(each, "__dict__", {}).items()):
                if isinstance(value, dict | list | set):
                    found[f"{name}.{attribute}"] += len(value)
    return Counter({name: count for name, count in found.items() if not name.startswith(BOUNDED)})


async def come_and_go(node: Node, round: int) -> None:
    names = [f"r{round}-{number}" for number in range(PODS_AT_ONCE)]
    kinds: list[dict[str, Any]] = [{"template": "one"}, {"limits": {GPU: 1}}, {}]
    async with anyio.create_task_group() as tasks:
        for number, name in enumerate(names):
            tasks.start_soon(partial(node.create_pod, name, **kinds[number % 3]))
    for name in names:
        await node.until_running(name)
    for name in names:
        await node.delete("Pod", name)
    await until(partial(left, node), lambda count: count == 0)


async def left(node: Node) -> int:
    """What a node at rest has none of: pods, their claims, and their Events."""
    return sum([len((await node.cluster.list(kind)).items) for kind in (PODS, RESOURCE_CLAIMS, EVENTS)])


async def test_of_pods_that_are_gone_nothing_is_kept(node: Node) -> None:
    await node.create(builders.device_class(), builders.template("one"))
    await node.create(builders.resource_slice(node.name, PODS_AT_ONCE))
    plugin = FakeDevicePlugin(node.device_plugins, GPU, PODS_AT_ONCE, follow=True)
    async with plugin, FakeDraDriver(node.root, builders.DRIVER):
        await node.until_registered(GPU)
        await node.until_registered(builders.DRIVER)
        await come_and_go(node, 0)
        first = kept()
        for round in (1, 2):
            await come_and_go(node, round)

        async def grown() -> dict[str, tuple[int, int]]:
            return {name: (first[name], count) for name, count in kept().items() if count > first[name] + SPARE}

        assert await until(grown, lambda found: not found) == {}


async def test_events_expire_in_a_running_node_and_watchers_see_it() -> None:
    clock = FakeClock.at_present()
    async with Node.start(clock=clock, configuration={"maxEvents": 5}, timeouts={"eventTTL": "10m"}) as node:
        await node.create_pod("p", node=node.name)
        created = await until(partial(node.list, "Event", "default"), bool)
        version = created[0]["metadata"]["resourceVersion"]
        gone = {each["metadata"]["name"] for each in created}
        async with node.cluster.watch(EVENTS, "default", WatchOptions(resource_version=version)) as events:
            await node.advance(620)
            with deadline():
                async for event in events:
                    if event.type is EventType.DELETED and event.object["metadata"]["name"] in gone:
                        break
        assert int(event.object["metadata"]["resourceVersion"]) > int(version)


async def test_an_event_survives_a_restart_with_the_time_that_it_has_left() -> None:
    clock = FakeClock.at_present()
    async with Node.start(clock=clock, control=False, timeouts={"eventTTL": "10m"}) as node:
        about = {"kind": "Pod", "apiVersion": "v1", "name": "p", "namespace": "default"}
        event = {"kind": "Event", "apiVersion": "v1", "metadata": {"name": "e", "namespace": "default"}}
        await node.create(event | {"involvedObject": about, "reason": "Test", "message": "m", "type": "Normal"})
        await node.advance(300)
        await node.restart()
        assert [each["metadata"]["name"] for each in await node.list("Event", "default")] == ["e"]
        await node.advance(320)
        await until(partial(node.list, "Event", "default"), lambda found: found == [])


async def test_a_restart_alone_writes_no_status_of_a_pod() -> None:
    async with Node.start() as node:
        await node.create(builders.device_class(), builders.template("one"), builders.resource_slice(node.name, 2))
        plugin = FakeDevicePlugin(node.device_plugins, GPU, 8, follow=True)
        async with plugin, FakeDraDriver(node.root, builders.DRIVER):
            await node.until_registered(GPU)
            await node.until_registered(builders.DRIVER)
            for number in range(6):
                await node.create_pod(f"device-{number}", limits={GPU: 1})
            await node.create_pod("claim", template="one")
            for name in ("claim", *(f"device-{number}" for number in range(6))):
                await node.until_running(name)
            before = await versions(node)
            await node.restart()
            await node.until_registered(GPU)
            await node.create_pod("new", limits={GPU: 1})
            await node.until_running("new")
            assert before.items() <= (await versions(node)).items()


async def versions(node: Node) -> dict[str, str]:
    return {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in await node.list("Pod", "default")}
