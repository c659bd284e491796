"""Devices that must be attached first, with a fake clock."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import anyio
import pytest

from devlet.cluster.events import Recorder
from devlet.control.informers import Informers
from devlet.control.scheduler.binding_conditions import PENDING, BindingConditions
from devlet.control.scheduler.claim_book import ClaimBook
from devlet.control.scheduler.devices import Devices
from devlet.control.scheduler.metrics import SchedulerMetrics
from devlet.errors import Conflict
from devlet.kit.metrics import Registry
from devlet.kit.parts import running
from devlet.objects import kinds
from devlet.objects.documents import Document, view
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.pod import Pod
from devlet.objects.values.timestamps import format_time
from devlet.testing.fake_clock import FakeClock
from devlet.testing.waiting import until
from tests.support.workloads import DRIVER, claim, pod
from tests.unit.control.conftest import World, allocation_on

pytestmark = pytest.mark.anyio

CONDITIONS: Document = {"bindingConditions": ["attached"], "bindingFailureConditions": ["broken"]}


class Fixture:
    def __init__(self, world: World) -> None:
        self.world = world
        self.clock = FakeClock()
        self.informers = Informers(world.store)
        self.recorder = Recorder(world.store, "test", "host", self.clock)
        self.registry = Registry()
        book = ClaimBook(self.informers.claims, Devices())
        metrics = SchedulerMetrics(self.registry)
        self.conditions = BindingConditions(book, self.recorder, metrics, self.clock, 600.0)
        self.outcome: list[str] = []

    async def wait(self, *claims: ResourceClaim) -> None:
        try:
            await self.conditions.met(view(Pod, await self.world.pod("train")), claims)
        except Conflict as e:
            self.outcome.append(str(e))
        else:
            self.outcome.append("ready")

    async def ended(self) -> str:
        async def outcome() -> list[str]:
            return self.outcome

        return (await until(outcome))[0]

    async def say(self, type: str, status: str = "True", **more: str) -> None:
        condition = {"type": type, "status": status, "reason": "Told", "message": "so it is"}
        condition["lastTransitionTime"] = format_time(self.clock.now())
        device: Document = {"driver": DRIVER, "pool": "n1", "device": "gpu-0", "conditions": [condition], **more}
        await self.world.status("c", {"devices": [device]})

    def counted(self, status: str) -> bool:
        line = (
            f'scheduler_dra_bindingconditions_allocations_total{{profile="devlet",driver="{DRIVER}",status="{status}"}}'
        )
        return f"{line} 1" in self.registry.text()


@asynccontextmanager
async def waiting(world: World) -> AsyncIterator[Fixture]:
    """Wait for a claim that was just allocated."""
    fixture = Fixture(world)
    stamp = format_time(fixture.clock.now())
    await world.add(claim("c"), pod("train"))
    await world.status("c", {"allocation": {**allocation_on("n1", **CONDITIONS), "allocationTimestamp": stamp}})
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(running(fixture.recorder.run))
        await stack.enter_async_context(fixture.informers.running())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fixture.wait, view(ResourceClaim, await world.claim("c")))
            yield fixture
            tasks.cancel_scope.cancel()


@pytest.mark.spec("DA-5.7g")
async def test_an_event_reports_that_devices_are_being_attached(world: World) -> None:
    async with waiting(world):
        events = await until(lambda: world.events(PENDING))
        assert events[0]["message"] == f"claim c waits for {DRIVER}/n1/gpu-0: attached"


@pytest.mark.spec("DA-11.19a")
async def test_waiting_ends_when_the_driver_reports_the_condition(world: World) -> None:
    async with waiting(world) as fixture:
        await fixture.clock.sleeping(1)
        await fixture.say("attached", "False")
        await fixture.say("attached")
        assert await fixture.ended() == "ready" and fixture.counted("success")


@pytest.mark.spec("DA-5.7h")
async def test_a_failure_ends_the_wait(world: World) -> None:
    async with waiting(world) as fixture:
        await fixture.say("broken")
        assert await fixture.ended() == 'device binding failed: claim=c, reason=Told, message="so it is"'
        assert fixture.counted("failure")


@pytest.mark.spec("DA-5.7i")
async def test_the_timeout_is_counted_from_the_allocation(world: World) -> None:
    async with waiting(world) as fixture:
        await fixture.clock.sleeping(1)
        await fixture.clock.advance(599)
        assert not fixture.outcome
        await fixture.clock.advance(2)
        assert (await fixture.ended()).startswith("device binding timeout: claim c waits for")
        assert fixture.counted("timeout")


async def test_a_deallocation_ends_the_wait(world: World) -> None:
    async with waiting(world) as fixture:
        await fixture.clock.sleeping(1)
        await world.status("c", {"allocation": None})
        assert "was deallocated while" in await fixture.ended()


async def test_a_deletion_ends_the_wait(world: World) -> None:
    async with waiting(world) as fixture:
        await fixture.clock.sleeping(1)
        await world.store.delete(kinds.RESOURCE_CLAIMS, "c", "default")
        assert "was deleted while" in await fixture.ended()


async def test_a_claim_without_conditions_is_not_waited_for(world: World) -> None:
    fixture = Fixture(world)
    await world.add(claim("c"), pod("train"))
    await world.status("c", {"allocation": allocation_on("n1")})
    await fixture.wait(view(ResourceClaim, await world.claim("c")))
    assert fixture.outcome == ["ready"]
