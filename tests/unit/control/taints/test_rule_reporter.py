"""Conditions of rules, as they are written."""

from typing import TYPE_CHECKING

import pytest

from devlet.cluster.client import ApplyPatch, MergePatch, WriteOptions
from devlet.objects import kinds

if TYPE_CHECKING:
    from tests.unit.control.taints.conftest import Tolerate, World

pytestmark = pytest.mark.anyio


@pytest.mark.spec("DA-7.5a")
async def test_a_new_rule_is_reported_at_once_and_later_changes_after_ten_seconds(world: "World") -> None:
    async with world.controlled() as control:
        await world.user()
        await world.rule()
        await control.settle()
        assert await world.leaving() == ["p"]
        first = await world.condition()
        assert await world.said() == ("True", "PodsPendingEviction", "1 pod needs to be evicted in 1 namespace.")
        assert first["observedGeneration"] == 1
        await control.pass_time(9)
        assert await world.condition() == first
        await control.pass_time(1)
        assert await world.said() == ("False", "Completed", "1 pod evicted since starting the controller.")
        assert (await world.condition())["lastTransitionTime"] == "2025-01-01T00:00:10Z"


@pytest.mark.spec("DA-7.5a")
async def test_the_condition_counts_pending_pods_and_namespaces(world: "World", tolerate: "Tolerate") -> None:
    await world.store.create(kinds.NAMESPACES, {"metadata": {"name": "far"}})
    async with world.controlled() as control:
        await world.user("p", tolerations=tolerate(15))
        await world.rule()
        await control.settle()
        await world.user("q", "d1", tolerations=tolerate(1000), namespace="far")
        await control.settle()
        assert (await world.said())[2] == "1 pod needs to be evicted in 1 namespace."
        await control.pass_time(10)
        assert (await world.said())[2] == "2 pods need to be evicted in 2 different namespaces."
        await control.pass_time(5)
        await control.pass_time(10)
        assert (await world.said())[2] == (
            "1 pod needs to be evicted in 1 namespace. 1 pod evicted since starting the controller."
        )


async def test_the_condition_is_updated_when_pods_are_deleted_by_others(world: "World", tolerate: "Tolerate") -> None:
    async with world.controlled() as control:
        await world.user(tolerations=tolerate(1000))
        await world.rule()
        await control.settle()
        await world.remove_pod("p")
        await control.pass_time(10)
        assert await world.said() == ("False", "Completed", "")


@pytest.mark.spec("DA-7.5a")
async def test_a_rule_without_pods_has_not_started(world: "World") -> None:
    async with world.controlled() as control:
        await world.rule()
        await control.pass_time(100)
        assert await world.said() == ("False", "NotStarted", "")
        assert (await world.condition())["lastTransitionTime"] == "2025-01-01T00:00:00Z"


@pytest.mark.spec("DA-7.5b")
async def test_a_dry_run_counts_devices_and_pods_once(world: "World", tolerate: "Tolerate") -> None:
    async with world.controlled() as control:
        await world.publish(name="s", generation=2)
        await world.publish(name="old", generation=1)
        await world.publish(name="far", pool="q")
        await world.user("two", "d0", "d1")
        await world.user("tolerant", "d2", tolerations=tolerate())
        await world.rule(effect="None")
        await control.settle()
        status, reason, message = await world.said()
        assert (status, reason) == ("False", "NoEffect")
        assert message.startswith(
            "3 published devices selected. 3 allocated devices selected. 1 pod would be evicted in 1 namespace "
        )
        assert await world.leaving() == []
        await world.user("late", "d0")
        await control.pass_time(100)
        assert (await world.said())[2] == message


async def test_a_dry_run_of_a_rule_without_selector_finds_nothing(world: "World") -> None:
    async with world.controlled() as control:
        await world.publish()
        await world.user()
        await world.rule(effect="None", selector=None)
        await control.settle()
        assert (await world.said())[2].startswith("0 published devices selected. 0 allocated devices selected. 0 pods")


@pytest.mark.spec("DA-7.5b")
async def test_a_rule_with_a_new_effect_is_reported_at_once(world: "World") -> None:
    async with world.controlled() as control:
        await world.user()
        await world.rule(effect="None")
        await control.settle()
        await world.set_effect("NoSchedule")
        await control.settle()
        assert await world.said() == ("False", "OtherEffect", "Eviction only happens for the NoExecute effect.")
        assert (await world.condition())["observedGeneration"] == 2
        await world.set_effect("None")
        await control.settle()
        assert (await world.said())[1] == "NoEffect"
        assert (await world.condition())["observedGeneration"] == 3


async def test_a_dry_run_is_not_repeated_by_the_next_controller(world: "World") -> None:
    async with world.controlled() as control:
        await world.rule(effect="None")
        await control.settle()
    said = await world.condition()
    await world.publish()
    await world.clock.advance(100)
    async with world.controlled():
        assert await world.condition() == said


async def test_other_conditions_are_kept(world: "World") -> None:
    await world.rule()
    other = {"type": "Seen", "status": "True", "reason": "R", "message": "", "observedGeneration": 1}
    other["lastTransitionTime"] = "2025-01-01T00:00:00Z"
    document = {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "status": {"conditions": [other]},
    }
    options = WriteOptions(field_manager="other")
    await world.store.patch(kinds.DEVICE_TAINT_RULES, "r", ApplyPatch(document), subresource="status", options=options)
    async with world.controlled():
        rule = await world.store.get(kinds.DEVICE_TAINT_RULES, "r")
        assert {each["type"] for each in rule["status"]["conditions"]} == {"Seen", "EvictionInProgress"}


async def test_a_rule_that_is_created_again_is_reported_again(world: "World") -> None:
    async with world.controlled() as control:
        await world.user()
        await world.rule()
        await control.pass_time(10)
        await world.remove_pod("p")
        await world.store.delete(kinds.DEVICE_TAINT_RULES, "r")
        await world.rule()
        await control.settle()
        assert await world.said() == ("False", "NotStarted", "")


@pytest.mark.parametrize("when", ["2030-01-01T00:00:00Z", None])
async def test_a_condition_with_an_impossible_time_is_written_again(world: "World", when: str | None) -> None:
    await world.rule()
    said = {"type": "EvictionInProgress", "status": "False", "reason": "Odd", "message": "", "observedGeneration": 1}
    status = {"status": {"conditions": [{**said, "lastTransitionTime": when or "2024-01-01T00:00:00Z"}]}}
    await world.store.patch(kinds.DEVICE_TAINT_RULES, "r", MergePatch(status), subresource="status")
    async with world.controlled():
        assert (await world.said())[1] == "NotStarted"
