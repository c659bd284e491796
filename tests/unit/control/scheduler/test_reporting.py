"""Reports why pods wait."""

from dataclasses import replace

import pytest

from devlet.cluster.client import StrategicMergePatch
from devlet.control.scheduler.settings import ReportTimes, Settings
from devlet.errors import Unavailable
from devlet.objects import kinds
from devlet.testing.waiting import until
from tests.support.workloads import node, pod
from tests.unit.control.conftest import World, raises

pytestmark = pytest.mark.anyio

FAST = Settings(reports=ReportTimes(0.02, again=0.02))


async def condition(world: World, name: str) -> dict[str, object]:
    conditions = (await world.pod(name)).get("status", {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == "PodScheduled"), {})


@pytest.mark.spec("DA-5.4f")
async def test_the_condition_is_that_of_kube_scheduler(world: World) -> None:
    await world.add(node("n1"))
    async with world.scheduling():
        await world.add(pod("large", requests={"cpu": "5"}))
        await world.reason("large")
        found = await condition(world, "large")
    assert (found["status"], found["reason"]) == ("False", "Unschedulable")
    assert found["message"] == "0/1 nodes are available: 1 Insufficient cpu"
    (event,) = await world.events("FailedScheduling")
    assert event["type"] == "Warning" and event["involvedObject"]["name"] == "large"


async def test_a_new_reason_is_reported_and_keeps_the_transition_time(world: World) -> None:
    world.settings = FAST
    await world.add(node("n1"))
    async with world.scheduling():
        await world.add(pod("large", requests={"cpu": "5"}))
        await world.reason("large", "0/1")
        before = (await condition(world, "large"))["lastTransitionTime"]
        await world.add(node("n2"))
        await world.reason("large", "0/2 nodes are available: 2 Insufficient cpu")
        assert (await condition(world, "large"))["lastTransitionTime"] == before


async def test_a_reason_that_changes_because_capacity_was_taken_is_reported(world: World) -> None:
    world.settings = Settings(reports=replace(FAST.reports, refresh=0.02))
    await world.add(node("n1"), node("n2"))
    async with world.scheduling():
        await world.add(pod("large", requests={"cpu": "4", "memory": "64Gi"}))
        await world.reason("large", "0/2 nodes are available: 2 Insufficient memory")
        await world.add(pod("small", requests={"cpu": "1"}))
        await world.reason("large", "1 Insufficient cpu")
        await world.store.delete(kinds.NODES, "n1")
        await world.reason("large", "0/1 nodes")


async def test_a_reason_that_is_in_the_status_is_not_reported_again(world: World) -> None:
    await world.add(node("n1"))
    async with world.scheduling():
        await world.add(pod("large", requests={"cpu": "5"}))
        await world.reason("large")
    before = world.cluster.writes.count("patch pods/status")
    async with world.scheduling():
        await world.add(pod("larger", requests={"cpu": "6"}))
        await world.reason("larger")
    assert world.cluster.writes.count("patch pods/status") == before + 1


async def test_a_reason_that_could_not_be_written_is_written_later(world: World) -> None:
    world.settings = FAST
    await world.add(node("n1"))
    world.cluster.before = raises(Unavailable("not now"), "patch pods/status", times=2)
    async with world.scheduling():
        await world.add(pod("large", requests={"cpu": "5"}))
        await world.reason("large", "Insufficient cpu")


async def test_other_conditions_are_kept(world: World) -> None:
    await world.add(node("n1"), pod("large", requests={"cpu": "5"}))
    other = {"type": "example.com/ready", "status": "True"}
    patch = StrategicMergePatch({"status": {"conditions": [other]}})
    await world.store.patch(kinds.PODS, "large", patch, "default", subresource="status")
    async with world.scheduling():
        await world.reason("large")
        found = (await world.pod("large"))["status"]["conditions"]
    assert {each["type"] for each in found} == {"example.com/ready", "PodScheduled"}


async def test_a_deleted_pod_is_not_reported(world: World) -> None:
    await world.add(node("n1"))

    async def gone(_: object) -> None:
        await world.remove("large")

    world.cluster.before = gone
    async with world.scheduling():
        await world.add(pod("large", requests={"cpu": "5"}))
        await world.gone(kinds.PODS, "large")
        world.cluster.before = raises(Unavailable(""), "")
        await world.add(pod("small"))
        await world.bound("small")


async def test_a_bound_pod_has_its_condition_and_event(world: World) -> None:
    world.settings = FAST
    async with world.scheduling():
        await world.add(pod("early"))
        await world.reason("early", "no nodes available to schedule pods")
        await world.add(node("n1"))
        await world.bound("early")

        async def status() -> object:
            return (await condition(world, "early")).get("status")

        await until(status, lambda found: found == "True")
        events = await until(lambda: world.events("Scheduled"))
        assert events[0]["message"] == "Successfully assigned default/early to n1"
