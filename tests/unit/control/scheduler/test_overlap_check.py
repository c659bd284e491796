"""The check whether another scheduler allocated the same devices."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import anyio
import pytest

from devlet.cluster.client import MergePatch
from devlet.control.informers import Informers
from devlet.control.scheduler.claim_book import ClaimBook
from devlet.control.scheduler.devices import Devices
from devlet.control.scheduler.metrics import SchedulerMetrics
from devlet.control.scheduler.overlap_check import OverlapCheck
from devlet.errors import Overlapping, Unavailable
from devlet.kit.metrics import Registry
from devlet.objects.documents import view
from devlet.objects.kinds import RESOURCE_CLAIMS
from devlet.objects.types.claim import ResourceClaim
from tests.support.workloads import DRIVER, claim
from tests.unit.control.conftest import World, Write, allocation_on

pytestmark = pytest.mark.anyio

C = ("default", "c")
COUNTED = "devlet_scheduler_allocation_overlaps_total"


class Fixture:
    """Claims c and d of a cluster. Events of claims are delayed until `silent` is set."""

    def __init__(self, world: World, patience: float) -> None:
        self.world = world
        self.silent = anyio.Event()
        self.registry = Registry()
        self.informers = Informers(world.cluster)
        devices = Devices()
        self.book = ClaimBook(self.informers.claims, devices)
        metrics = SchedulerMetrics(self.registry)
        self.check = OverlapCheck(self.book, devices.ledger, metrics, patience)

    async def keep_back(self, write: Write) -> None:
        if write.what == "watch resourceclaims":
            await self.silent.wait()

    async def allocate(self, name: str, device: str = "gpu-0") -> ResourceClaim:
        """Allocate a claim as a scheduler does, and return the answer."""
        patch = MergePatch({"status": {"allocation": allocation_on("n1", device)}})
        answer = await self.world.store.patch(RESOURCE_CLAIMS, name, patch, "default", subresource="status")
        return view(ResourceClaim, answer)


@asynccontextmanager
async def fixture(world: World, patience: float = 600.0) -> AsyncIterator[Fixture]:
    await world.add(claim("c"), claim("d"))
    found = Fixture(world, patience)
    world.cluster.heard = found.keep_back
    async with found.informers.running():
        yield found


async def test_the_check_waits_until_the_informer_has_our_write(world: World) -> None:
    async with fixture(world) as at, anyio.create_task_group() as tasks:
        written = await at.allocate("c")
        tasks.start_soon(at.check.seen, [written])
        await anyio.wait_all_tasks_blocked()
        known = at.informers.claims.get("c", "default")
        assert known and not known.results
        at.silent.set()
    assert at.informers.claims.version >= written.metadata.resource_version


async def test_when_a_write_was_seen_earlier_writes_were_seen_too(world: World) -> None:
    async with fixture(world) as at:
        await at.allocate("d")
        written = at.book.read(await world.store.get(RESOURCE_CLAIMS, (await at.allocate("c")).name, "default"))
        at.check.compare([C])  # the other write was not seen
        at.silent.set()
        await at.check.seen([written])
        with pytest.raises(Overlapping) as caught:
            at.check.compare([C])
        expected = f"device {DRIVER}/n1/gpu-0 was allocated to claim default/d by another scheduler; trying again"
        assert str(caught.value) == expected
        assert f"{COUNTED} 1" in at.registry.text()


async def test_the_check_does_not_wait_for_a_version_that_was_seen(world: World) -> None:
    async with fixture(world) as at:
        at.silent.set()
        written = await at.allocate("c")
        await at.check.seen([await at.allocate("d", "gpu-1")])
        at.silent = anyio.Event()
        await at.check.seen([written])
        at.check.compare([C])
        assert f"{COUNTED} 0" in at.registry.text()


async def test_the_check_does_not_wait_for_a_deleted_claim(world: World) -> None:
    async with fixture(world) as at, anyio.create_task_group() as tasks:
        written = await at.allocate("c")
        tasks.start_soon(at.check.seen, [written])
        await anyio.wait_all_tasks_blocked()
        await world.store.delete(RESOURCE_CLAIMS, "c", "default")
        at.silent.set()


async def test_two_pods_may_wait_for_one_claim(world: World) -> None:
    async with fixture(world) as at, anyio.create_task_group() as tasks:
        written = await at.allocate("c")
        for _ in range(2):
            tasks.start_soon(at.check.seen, [written])
        await anyio.wait_all_tasks_blocked()
        at.silent.set()


async def test_a_write_that_is_not_seen_in_time_is_an_error(world: World) -> None:
    async with fixture(world, patience=0.01) as at:
        wait = partial(at.check.seen, [await at.allocate("c")])
        with pytest.raises(Unavailable, match=r"the allocation of claim c did not come back in a watch within 0.01 s"):
            await wait()
        at.silent.set()
