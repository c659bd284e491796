"""Pods are deleted from their devices."""

from typing import TYPE_CHECKING

import pytest

from devlet.control.taints.deletion import Deleter, PodKey
from devlet.objects import kinds
from devlet.objects.documents import Document

if TYPE_CHECKING:
    from tests.unit.control.taints.conftest import World

pytestmark = pytest.mark.anyio


def key(pod: Document) -> PodKey:
    return PodKey("default", pod["metadata"]["name"], pod["metadata"]["uid"])


@pytest.fixture
def deleter(world: "World") -> Deleter:
    return Deleter(world.store, world.recorder, world.clock)


@pytest.mark.spec("DA-7.3b")
async def test_a_pod_is_marked_and_then_deleted(world: "World", deleter: Deleter) -> None:
    pod = await world.pod()
    assert await deleter.delete(key(pod), lambda: True)
    assert await world.leaving() == ["p"]
    assert world.messages == [("p", "Marking for deletion")]


async def test_a_different_condition_is_replaced_and_keeps_its_time(world: "World", deleter: Deleter) -> None:
    pod = await world.pod()
    since = "2024-01-01T00:00:00Z"
    mark = {"type": "DisruptionTarget", "status": "True", "reason": "Preempted", "lastTransitionTime": since}
    ready = {"type": "Ready", "status": "True"}
    await world.pod_status("p", conditions=[mark, ready])
    assert await deleter.delete(key(pod), lambda: True)
    found = (await world.store.get(kinds.PODS, "p", "default"))["status"]["conditions"]
    conditions = {each["type"]: each for each in found}
    assert conditions.keys() == {"DisruptionTarget", "Ready"}
    assert conditions["DisruptionTarget"]["reason"] == "DeletionByDeviceTaintManager"
    assert conditions["DisruptionTarget"]["lastTransitionTime"] == since


async def test_another_pod_of_that_name_is_not_deleted(world: "World", deleter: Deleter) -> None:
    pod = await world.pod()
    assert not await deleter.delete(key(pod)._replace(uid="before"), lambda: True)
    assert await world.leaving() == []
    assert world.messages == []


async def test_pods_that_are_gone_being_deleted_or_finished_are_not_deleted(world: "World", deleter: Deleter) -> None:
    assert not await deleter.delete(PodKey("default", "gone", "u"), lambda: True)
    going, ended = await world.pod("going"), await world.pod("ended")
    await world.store.delete(kinds.PODS, "going", "default")
    await world.pod_status("ended", phase="Failed")
    assert not await deleter.delete(key(going), lambda: True)
    assert not await deleter.delete(key(ended), lambda: True)
    assert await world.leaving() == ["going"]
    assert world.messages == []


async def test_a_pod_that_may_stay_after_all_is_not_deleted(world: "World", deleter: Deleter) -> None:
    pod = await world.pod()
    assert not await deleter.delete(key(pod), lambda: False)
    assert await world.leaving() == []


async def test_a_cancelled_deletion_has_an_event(world: "World", deleter: Deleter) -> None:
    deleter.cancel(PodKey("ns", "p", "u"))
    assert world.recorder.heard == [("Normal", "DeviceTaintManagerEviction", "ns/p", "Cancelling deletion")]
