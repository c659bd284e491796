"""Devices that have to be attached first, with a clock that stands still."""

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


class Desk:
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
async def waiting(world: World) -> AsyncIterator[Desk]:
    """For a claim that was allocated just now."""
    desk = Desk(world)
    stamp = format_time(desk.clock.now())
    await world.add(claim("c"), pod("train"))
    await world.status("c", {"allocation": {**allocation_on("n1", **CONDITIONS), "allocationTimestamp": stamp}})
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(running(desk.recorder.run))
        await stack.enter_async_context(desk.informers.running())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(desk.wait, view(ResourceClaim, await world.claim("c")))
            yield desk
            tasks.cancel_scope.cancel()


@pytest.mark.spec("DA-5.7g")
async def test_an_event_reports_that_devices_are_being_attached(world: World) -> None:
    async with waiting(world):
        events = await until(lambda: world.events(PENDING))
        assert events[0]["message"] == f"claim c waits for {DRIVER}/n1/gpu-0: attached"


@pytest.mark.spec("DA-11.19a")
async def test_waiting_ends_when_the_driver_reports_the_condition(world: World) -> None:
    async with waiting(world) as desk:
        await desk.clock.sleeping(1)
        await desk.say("attached", "False")
        await desk.say("attached")
        assert await desk.ended() == "ready" and desk.counted("success")


@pytest.mark.spec("DA-5.7h")
async def test_a_failure_ends_the_wait(world: World) -> None:
    async with waiting(world) as desk:
        await desk.say("broken")
        assert await desk.ended() == 'device binding failed: claim=c, reason=Told, message="so it is"'
        assert desk.counted("failure")


@pytest.mark.spec("DA-5.7i")
async def test_the_timeout_is_counted_from_the_allocation(world: World) -> None:
    async with waiting(world) as desk:
        await desk.clock.sleeping(1)
        await desk.clock.advance(599)
        assert not desk.outcome
        await desk.clock.advance(2)
        assert (await desk.ended()).startswith("device binding timeout: claim c waits for")
        assert desk.counted("timeout")


async def test_a_deallocation_ends_the_wait(world: World) -> None:
    async with waiting(world) as desk:
        await desk.clock.sleeping(1)
        await world.status("c", {"allocation": None})
        assert "was deallocated while" in await desk.ended()


async def test_a_deletion_ends_the_wait(world: World) -> None:
    async with waiting(world) as desk:
        await desk.clock.sleeping(1)
        await world.store.delete(kinds.RESOURCE_CLAIMS, "c", "default")
        assert "was deleted while" in await desk.ended()


async def test_a_claim_without_conditions_is_not_waited_for(world: World) -> None:
    desk = Desk(world)
    await world.add(claim("c"), pod("train"))
    await world.status("c", {"allocation": allocation_on("n1")})
    await desk.wait(view(ResourceClaim, await world.claim("c")))
    assert desk.outcome == ["ready"]
