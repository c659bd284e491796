"""Nodes that stop renewing their lease."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from devlet.cluster.client import MergePatch, StrategicMergePatch
from devlet.cluster.store.store import Store, open_store
from devlet.control.node_lifecycle import UNREACHABLE, NodeLifecycle
from devlet.kit.parts import running
from devlet.objects.kinds import LEASES, NODES
from devlet.objects.types.core import NODE_LEASES
from devlet.testing.fake_clock import FakeClock
from devlet.testing.waiting import until
from tests.support.workloads import node

pytestmark = pytest.mark.anyio


class World:
    def __init__(self, store: Store, clock: FakeClock) -> None:
        self.store = store
        self.clock = clock

    async def join(self, name: str) -> None:
        await self.store.create(NODES, node(name))
        lease = {"metadata": {"name": name}, "spec": {"holderIdentity": name, "leaseDurationSeconds": 40}}
        await self.store.create(LEASES, lease, NODE_LEASES)

    async def renew(self, name: str, number: int) -> None:
        time = f"2026-01-01T00:00:{number:02}.000000Z"
        await self.store.patch(LEASES, name, MergePatch({"spec": {"renewTime": time}}), NODE_LEASES)

    async def say_ready(self, name: str) -> None:
        condition = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        patch = StrategicMergePatch({"status": {"conditions": [condition]}})
        await self.store.patch(NODES, name, patch, subresource="status")

    async def state(self, name: str) -> tuple[str, list[str]]:
        found = await self.store.get(NODES, name)
        ready = next(each for each in found["status"]["conditions"] if each["type"] == "Ready")
        taints: list[Any] = found["spec"].get("taints") or []
        return ready["status"], [taint["key"] for taint in taints]

    async def until(self, name: str, *state: object) -> None:
        async def read() -> tuple[object, ...]:
            return await self.state(name)

        await until(read, lambda found: found == state)


@asynccontextmanager
async def at_work(root: Path) -> AsyncIterator[World]:
    clock = FakeClock()
    async with open_store(root / "cluster.db") as store:
        async with running(NodeLifecycle(store, clock).run):
            yield World(store, clock)


async def test_a_node_that_stops_renewing_its_lease_is_unreachable_until_it_is_back(root: Path) -> None:
    async with at_work(root) as world:
        await world.join("n1")
        await world.until("n1", "True", [])
        await world.clock.advance(51)
        await world.until("n1", "Unknown", [UNREACHABLE])
        await world.renew("n1", 1)
        await world.say_ready("n1")
        await world.until("n1", "True", [])


async def test_a_node_that_renews_its_lease_stays_ready(root: Path) -> None:
    async with at_work(root) as world:
        await world.join("n1")
        await world.join("silent")
        for number in range(6):
            await world.clock.advance(10)
            await world.renew("n1", number)
        await world.until("silent", "Unknown", [UNREACHABLE])
        assert await world.state("n1") == ("True", [])


async def test_a_node_without_a_lease_is_ignored(root: Path) -> None:
    async with at_work(root) as world:
        await world.store.create(NODES, node("paper"))
        await world.join("n1")
        await world.clock.advance(100)
        await world.until("n1", "Unknown", [UNREACHABLE])
        assert await world.state("paper") == ("True", [])


async def test_other_taints_are_kept(root: Path) -> None:
    async with at_work(root) as world:
        await world.join("n1")
        mine = {"key": "mine", "effect": "NoSchedule"}
        await world.store.patch(NODES, "n1", StrategicMergePatch({"spec": {"taints": [mine]}}))
        await world.until("n1", "True", ["mine"])
        await world.clock.advance(51)
        await world.until("n1", "Unknown", ["mine", UNREACHABLE])
        await world.renew("n1", 1)
        await world.say_ready("n1")
        await world.until("n1", "True", ["mine"])
