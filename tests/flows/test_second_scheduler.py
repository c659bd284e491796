"""Another scheduler gives away, again and again, the very devices that ours has just decided on."""

from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

import pytest

from devlet.cluster.store.store import open_store
from devlet.control.scheduler.settings import ReportTimes, Settings
from devlet.kit.backoff import Backoff
from devlet.objects.documents import Document
from devlet.objects.kinds import PODS, RESOURCE_CLAIMS
from devlet.testing.waiting import until
from tests.support.workloads import claim, device_class, node, pod, slice_of, template
from tests.unit.control.conftest import BINDING, CLAIM_STATUS, World, Write

pytestmark = pytest.mark.anyio

ROUNDS, AT_ONCE, DEVICES = 50, 2, 8
POINTS = ("before our write", "after our write", "before the binding", "never")


@dataclass
class Rival:
    """A scheduler that takes the devices of our next decision for a claim of its own, and never gives way."""

    world: World
    point: str = "never"
    taken: list[str] = field(default_factory=list)  # its claims
    ours: dict[str, Document] = field(default_factory=dict)  # our allocations as written, by claim
    bound: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    async def before(self, write: Write) -> None:
        if write.what == CLAIM_STATUS and (allocation := write.document["status"].get("allocation")):
            self.ours[write.name] = allocation
            await self._take("before our write", allocation)
        elif write.what == BINDING:
            await self._check(write.name)

    async def after(self, write: Write) -> None:
        if write.what == CLAIM_STATUS and (allocation := write.document["status"].get("allocation")):
            await self._take("after our write", allocation)

    async def _take(self, point: str, allocation: Document) -> None:
        if self.point != point:
            return
        self.point = "never"
        name = f"theirs-{len(self.taken)}"
        self.taken.append(name)
        await self.world.add(claim(name), pod(name, claim=name, schedulerName="rival"))
        user = {"resource": "pods", "name": name, "uid": (await self.world.pod(name))["metadata"]["uid"]}
        await self.world.status(name, {"allocation": allocation, "reservedFor": [user]})

    async def _check(self, name: str) -> None:
        """What the pod gets was given to no other claim before, nor to another pod of ours."""
        found = {each["metadata"]["name"]: each for each in await self.world.claims()}
        (entry,) = (await self.world.pod(name))["status"]["resourceClaimStatuses"]
        mine = found[entry["resourceClaimName"]]
        for other in found.values():
            if other is mine or devices(other).isdisjoint(devices(mine)):
                continue
            is_ours = not other["metadata"]["name"].startswith("theirs")
            if is_ours or version(other) < version(mine):
                self.violations.append(f"{name} has {devices(mine)} of {other['metadata']['name']}")
        self.bound.append(name)
        await self._take("before the binding", mine["status"]["allocation"])


def devices(claim: Document) -> set[tuple[str, str]]:
    allocation = (claim.get("status") or {}).get("allocation") or {"devices": {}}
    return {(each["pool"], each["device"]) for each in allocation["devices"].get("results", ())}


def version(claim: Document) -> int:
    return int(claim["metadata"]["resourceVersion"])


async def test_a_pod_is_never_bound_to_a_device_that_another_scheduler_allocated_before(root: Path) -> None:
    settings = Settings(reports=ReportTimes(0.05), retry=Backoff(0.01, 0.1))
    async with open_store(root / "cluster.db") as store:
        world = World(store, settings)
        rival = Rival(world)
        world.cluster.before, world.cluster.after = rival.before, rival.after
        await world.add(device_class(), template("one"), node("n1"), slice_of("n1", DEVICES))
        async with world.scheduling():
            for number, point in zip(range(ROUNDS), cycle(POINTS), strict=False):
                rival.point = point
                names = [f"ours-{number}-{each}" for each in range(AT_ONCE)]
                await world.add(*(pod(name, template="one") for name in names))
                await world.bound(*names)
                await clear(world, [*names, *rival.taken])
            text = world.metrics.text()
    assert rival.violations == []
    assert len(rival.taken) >= ROUNDS // 2 and len(rival.bound) == ROUNDS * AT_ONCE
    line = next(each for each in text.splitlines() if each.startswith("devlet_scheduler_allocation_overlaps_total "))
    assert int(line.split()[1]) >= ROUNDS // len(POINTS)
    assert "devlet_scheduler_allocation_overlaps 0\n" in text


async def clear(world: World, pods: list[str]) -> None:
    """End the round: all pods go, and the claims with them."""
    there = {each["metadata"]["name"] for each in (await world.store.list(PODS, "default")).items}
    await world.remove(*(name for name in pods if name in there))

    async def claims() -> int:
        for each in await world.claims():
            name = each["metadata"]["name"]
            if name.startswith("theirs") and "deletionTimestamp" not in each["metadata"]:
                await world.store.delete(RESOURCE_CLAIMS, name, "default")
        return len(await world.claims())

    await until(claims, lambda left: left == 0)
