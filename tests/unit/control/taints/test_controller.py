"""Pods that use tainted devices."""

from typing import TYPE_CHECKING, Any, cast

import pytest
from anyio.lowlevel import checkpoint

from devlet.cluster.client import Cluster, MergePatch
from devlet.cluster.store.store import Store
from devlet.control.informers import Informers
from devlet.control.taints import Settings, TaintController
from devlet.errors import Unavailable
from devlet.kit.metrics import Registry
from devlet.kit.parts import running
from devlet.objects import kinds

if TYPE_CHECKING:
    from tests.unit.control.taints.conftest import Tolerate, World

pytestmark = pytest.mark.anyio

GOES = "Marking for deletion"
STAYS = "Cancelling deletion"


@pytest.mark.spec("DA-7.3a")
async def test_a_pod_on_a_device_that_its_driver_taints_is_evicted(world: "World") -> None:
    async with world.controlled() as control:
        await world.publish()
        await world.user("p", "d0")
        await world.user("q", "d1")
        await control.settle()
        assert await world.leaving() == []
        await world.publish("d0")
        await control.settle()
        assert await world.leaving() == ["p"]


@pytest.mark.spec("DA-7.3b")
async def test_an_eviction_has_an_event_and_a_condition_and_is_counted(world: "World") -> None:
    await world.publish("d0")
    await world.user()
    await world.clock.advance(7)
    async with world.controlled() as control:
        pod = await world.store.get(kinds.PODS, "p", "default")
        [condition] = [each for each in pod["status"]["conditions"] if each["type"] == "DisruptionTarget"]
        assert condition == {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByDeviceTaintManager",
            "message": "Device Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": "2025-01-01T00:00:07Z",
            "lastProbeTime": None,
        }
        assert world.recorder.heard == [("Normal", "DeviceTaintManagerEviction", "default/p", GOES)]
        text = control.metrics.text()
        assert "device_taint_eviction_controller_pod_deletions_total 1\n" in text
        assert "device_taint_eviction_controller_pod_deletion_duration_seconds_sum 7\n" in text
        assert 'duration_seconds_bucket{le="2.5"} 0\n' in text
        assert 'duration_seconds_bucket{le="10"} 1\n' in text
        bounds = [line.split('"')[1] for line in text.splitlines() if "_bucket" in line]
        assert bounds == "0.005 0.025 0.1 0.5 1 2.5 10 30 60 120 180 240 +Inf".split()


async def test_the_event_is_about_the_pod(world: "World") -> None:
    await world.publish("d0")
    pod = await world.user()
    async with world.controlled():
        pass
    [event] = (await world.store.list(kinds.EVENTS, "default")).items
    assert event["involvedObject"]["kind"] == "Pod"
    assert event["involvedObject"]["uid"] == pod["metadata"]["uid"]


@pytest.mark.spec("DA-7.3c")
async def test_a_pod_stays_as_long_as_its_claim_tolerates_the_taint(world: "World", tolerate: "Tolerate") -> None:
    async with world.controlled() as control:
        await world.user(tolerations=tolerate(300))
        await world.publish("d0")
        await control.pass_time(299)
        assert await world.leaving() == []
        await control.pass_time(1)
        assert await world.leaving() == ["p"]
        assert world.messages == [("p", GOES)]


async def test_a_toleration_without_end_prevents_the_eviction(world: "World", tolerate: "Tolerate") -> None:
    async with world.controlled() as control:
        await world.user(tolerations=tolerate())
        await world.publish("d0")
        await control.pass_time(10_000)
        assert await world.leaving() == []


@pytest.mark.spec("DA-11.17b")
async def test_a_toleration_for_every_effect_prevents_the_eviction(world: "World", tolerate: "Tolerate") -> None:
    async with world.controlled() as control:
        await world.user("for-ever", "d0", tolerations=tolerate(effect=""))
        await world.user("other-effect", "d1", tolerations=tolerate(effect="NoSchedule"))
        await world.publish("d0", "d1")
        await control.settle()
        assert await world.leaving() == ["other-effect"]


@pytest.mark.spec("DA-7.3d")
async def test_a_pod_is_evicted_at_the_earliest_of_all_times(world: "World", tolerate: "Tolerate") -> None:
    async with world.controlled() as control:
        pod = await world.pod("p", "late", "soon")
        await world.claim("late", "d0", users=[pod], tolerations=tolerate(100))
        await world.claim("soon", "d1", users=[pod], tolerations=tolerate(50))
        await world.publish("d0", "d1")
        await control.pass_time(49)
        assert await world.leaving() == []
        await control.pass_time(1)
        assert await world.leaving() == ["p"]


@pytest.mark.spec("DA-7.3e")
async def test_an_eviction_is_cancelled_when_the_taint_is_removed(world: "World", tolerate: "Tolerate") -> None:
    async with world.controlled() as control:
        await world.user(tolerations=tolerate(300))
        await world.publish("d0")
        await control.settle()
        await world.publish()
        await control.settle()
        assert world.messages == [("p", STAYS)]
        await control.pass_time(1000)
        assert await world.leaving() == []
        await world.publish("d0")
        await control.pass_time(300)
        assert world.messages == [("p", STAYS), ("p", GOES)]


@pytest.mark.spec("DA-7.3e")
async def test_an_eviction_is_cancelled_when_the_claim_is_released(world: "World", tolerate: "Tolerate") -> None:
    async with world.controlled() as control:
        await world.user(tolerations=tolerate(300))
        await world.publish("d0")
        await control.settle()
        await world.reserve("p")
        await control.settle()
        assert world.messages == [("p", STAYS)]


async def test_a_taint_that_is_added_again_counts_from_then(world: "World", tolerate: "Tolerate") -> None:
    async with world.controlled() as control:
        await world.user(tolerations=tolerate(100))
        await world.rule()
        await control.pass_time(60)
        later = MergePatch({"spec": {"taint": {"timeAdded": "2025-01-01T00:01:00Z"}}})
        await world.store.patch(kinds.DEVICE_TAINT_RULES, "r", later)
        await control.pass_time(99)
        assert await world.leaving() == []
        await control.pass_time(1)
        assert await world.leaving() == ["p"]
        assert world.messages == [("p", GOES)]


async def test_a_taint_with_an_earlier_time_takes_effect_at_once(world: "World", tolerate: "Tolerate") -> None:
    async with world.controlled() as control:
        await world.user(tolerations=tolerate(100))
        await world.rule()
        await control.settle()
        long_ago = MergePatch({"spec": {"taint": {"timeAdded": "2024-01-01T00:00:00Z"}}})
        await world.store.patch(kinds.DEVICE_TAINT_RULES, "r", long_ago)
        await control.settle()
        assert await world.leaving() == ["p"]


@pytest.mark.spec("DA-7.3f")
async def test_only_pods_with_a_node_are_evicted(world: "World") -> None:
    async with world.controlled() as control:
        pod = await world.pod(node="")
        await world.claim(users=[pod])
        await world.publish("d0")
        await control.settle()
        assert await world.leaving() == []
        await world.store.create(
            kinds.PODS, {"target": {"kind": "Node", "name": "n1"}}, "default", name="p", subresource="binding"
        )
        await control.settle()
        assert await world.leaving() == ["p"]


@pytest.mark.spec("DA-7.3g")
async def test_only_pods_for_which_the_claim_is_reserved_are_evicted(world: "World") -> None:
    async with world.controlled() as control:
        await world.pod("stranger", "c")
        pod = await world.pod("user", "c")
        await world.claim("c", users=[pod])
        await world.publish("d0")
        await control.settle()
        assert await world.leaving() == ["user"]


async def test_a_pod_is_evicted_when_its_claim_is_reserved_later(world: "World") -> None:
    async with world.controlled() as control:
        pod = await world.pod()
        await world.claim()
        await world.publish("d0")
        await control.settle()
        assert await world.leaving() == []
        await world.reserve("c", pod)
        await control.settle()
        assert await world.leaving() == ["p"]


@pytest.mark.spec("DA-11.17c")
async def test_a_pod_is_evicted_because_of_a_claim_for_extended_resources(world: "World") -> None:
    async with world.controlled() as control:
        mapping = {"containerName": "main", "resourceName": "example.com/gpu", "requestName": "r"}
        extended = {"resourceClaimName": "made", "requestMappings": [mapping]}
        pod = await world.pod("p", status={"extendedResourceClaimStatus": extended})
        await world.claim("made", users=[pod])
        await world.publish("d0")
        await control.settle()
        assert await world.leaving() == ["p"]


async def test_a_pod_is_evicted_as_soon_as_its_status_names_the_claim(world: "World") -> None:
    async with world.controlled() as control:
        pod_spec = {
            "nodeName": "n1",
            "containers": [{"name": "main", "image": "x", "resources": {"claims": [{"name": "gpu"}]}}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
        }
        pod = await world.store.create(kinds.PODS, {"metadata": {"name": "p"}, "spec": pod_spec}, "default")
        await world.claim("p-gpu-x", users=[pod])
        await world.publish("d0")
        await control.settle()
        assert await world.leaving() == []
        await world.pod_status("p", resourceClaimStatuses=[{"name": "gpu", "resourceClaimName": "p-gpu-x"}])
        await control.settle()
        assert await world.leaving() == ["p"]


async def test_a_finished_pod_is_not_evicted(world: "World", tolerate: "Tolerate") -> None:
    async with world.controlled() as control:
        await world.user("ended", "d0")
        await world.pod_status("ended", phase="Succeeded")
        await world.user("ends", "d1", tolerations=tolerate(60))
        await world.publish("d0", "d1")
        await control.settle()
        await world.pod_status("ends", phase="Failed")
        await control.pass_time(60)
        assert await world.leaving() == []
        assert world.messages == [("ends", STAYS)]


async def test_a_pod_that_is_being_deleted_is_not_evicted(world: "World", tolerate: "Tolerate") -> None:
    async with world.controlled() as control:
        await world.user(tolerations=tolerate(60))
        await world.publish("d0")
        await control.settle()
        await world.store.delete(kinds.PODS, "p", "default")
        await control.pass_time(60)
        assert world.messages == []
        assert "pod_deletions_total 0\n" in control.metrics.text()


async def test_a_new_pod_with_the_name_of_an_evicted_one_stays(world: "World") -> None:
    async with world.controlled() as control:
        await world.user()
        await world.publish("d0")
        await control.settle()
        await world.remove_pod("p")
        await world.pod("p", "p")
        await control.settle()
        assert await world.leaving() == []
        assert world.messages == [("p", GOES)]


@pytest.mark.spec("DA-7.3h")
async def test_a_rule_applies_to_a_device_whose_slice_is_gone(world: "World") -> None:
    async with world.controlled() as control:
        await world.user()
        await world.rule(selector={"driver": "gpu.example.com", "pool": "p", "device": "d0"})
        await control.settle()
        assert await world.leaving() == ["p"]


@pytest.mark.spec("DA-7.3a")
async def test_only_the_highest_generation_of_a_pool_counts(world: "World", tolerate: "Tolerate") -> None:
    async with world.controlled() as control:
        await world.user(tolerations=tolerate(60))
        await world.publish("d0", generation=1)
        await control.settle()
        await world.publish(name="t", generation=2)
        await control.settle()
        assert world.messages == [("p", STAYS)]
        await control.pass_time(1000)
        await world.store.delete(kinds.RESOURCE_SLICES, "t")
        await control.settle()
        assert await world.leaving() == ["p"]


@pytest.mark.spec("DA-7.4")
async def test_a_rule_without_a_selector_evicts_no_pod_and_an_empty_selector_all(world: "World") -> None:
    async with world.controlled() as control:
        await world.user("p", "d0")
        await world.user("q", "d1")
        await world.rule("nothing", selector=None)
        await control.settle()
        assert await world.leaving() == []
        await world.rule("everything", selector={})
        await control.settle()
        assert await world.leaving() == ["p", "q"]


@pytest.mark.parametrize("effect", ["NoSchedule", "None"])
async def test_only_no_execute_evicts_pods(world: "World", effect: str) -> None:
    async with world.controlled() as control:
        await world.user()
        await world.rule(effect=effect)
        await world.publish("d0", effect=effect)
        await control.pass_time(100)
        assert await world.leaving() == []


@pytest.mark.spec("DA-1.5a")
async def test_a_rule_whose_effect_changes_stops_evicting(world: "World", tolerate: "Tolerate") -> None:
    async with world.controlled() as control:
        await world.user(tolerations=tolerate(100))
        await world.rule(effect="None")
        await control.pass_time(1000)
        await world.set_effect("NoExecute")
        rule = await world.store.get(kinds.DEVICE_TAINT_RULES, "r")
        assert rule["spec"]["taint"]["timeAdded"] == "2025-01-01T00:16:40Z"
        assert rule["metadata"]["generation"] == 2
        await control.pass_time(99)
        assert await world.leaving() == []
        await control.pass_time(1)
        assert await world.leaving() == ["p"]


@pytest.mark.spec("DA-7.3i")
async def test_disruption_budgets_are_not_considered(world: "World") -> None:
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {}}}
    await world.store.create(kinds.POD_DISRUPTION_BUDGETS, budget, "default")
    await world.user()
    await world.publish("d0")
    async with world.controlled():
        assert await world.leaving() == ["p"]


async def test_many_pods_of_one_pool_are_evicted_and_no_others(world: "World") -> None:
    async with world.controlled() as control:
        for number in range(30):
            pod = await world.pod(f"p{number}", f"c{number}")
            await world.claim(f"c{number}", "d0", users=[pod], pool="p" if number < 25 else "q")
        await world.rule()
        await control.settle()
        assert sorted(await world.leaving()) == sorted(f"p{number}" for number in range(25))
        assert "pod_deletions_total 25\n" in control.metrics.text()


@pytest.mark.spec("DA-7.3j")
async def test_a_restarted_controller_keeps_the_time(world: "World", tolerate: "Tolerate") -> None:
    async with world.controlled() as control:
        await world.user(tolerations=tolerate(100))
        await world.publish("d0")
        await control.pass_time(60)
    await world.clock.advance(30)
    async with world.controlled() as control:
        await control.pass_time(9)
        assert await world.leaving() == []
        await control.pass_time(1)
        assert await world.leaving() == ["p"]


async def test_a_marked_pod_is_deleted_by_the_next_run(world: "World") -> None:
    await world.user()
    mark = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByDeviceTaintManager"}
    mark["message"] = "Device Taint manager: deleting due to NoExecute taint"
    await world.pod_status("p", conditions=[{**mark, "lastTransitionTime": "2024-12-31T23:59:59Z"}])
    await world.publish("d0")
    async with world.controlled():
        assert await world.leaving() == ["p"]
        pod = await world.store.get(kinds.PODS, "p", "default")
        [condition] = pod["status"]["conditions"]
        assert condition["lastTransitionTime"] == "2024-12-31T23:59:59Z"


async def test_a_controller_does_nothing_between_two_runs(world: "World") -> None:
    informers = Informers(world.store)
    controller = TaintController(world.store, informers, world.recorder, world.clock, Registry())
    async with informers.running():
        async with running(controller.run):
            pass
        await world.user()
        await world.publish("d0")
        while informers.slices.get("s") is None:
            await checkpoint()
        assert controller.is_idle
        assert await world.leaving() == []
        async with running(controller.run):
            while not await world.leaving():
                await checkpoint()


async def test_a_pod_of_a_group_is_evicted_if_claims_may_be_reserved_for_groups(world: "World") -> None:
    spec = {
        "nodeName": "n1",
        "schedulingGroup": {"podGroupName": "g"},
        "containers": [{"name": "main", "image": "x", "resources": {"claims": [{"name": "c"}]}}],
        "resourceClaims": [{"name": "c", "resourceClaimName": "c"}],
    }
    await world.store.create(kinds.PODS, {"metadata": {"name": "p"}, "spec": spec}, "default")
    claim = await world.claim()
    group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "u"}
    claim["status"]["reservedFor"] = [group]
    await world.store.update(kinds.RESOURCE_CLAIMS, claim, subresource="status")
    await world.publish("d0")
    async with world.controlled():
        assert await world.leaving() == []
    async with world.controlled(Settings(workloads=True)):
        assert await world.leaving() == ["p"]


class Flaky:
    """The store, but the first attempt of each of these calls fails."""

    def __init__(self, store: Store, *calls: str) -> None:
        self._store = store
        self._left = set(calls)

    def __getattr__(self, name: str) -> Any:
        if name not in self._left:
            return getattr(self._store, name)
        self._left.remove(name)
        return self._refuse

    async def _refuse(self, *_: object, **__: object) -> None:
        raise Unavailable("not reachable")


async def test_a_failed_eviction_is_retried(world: "World") -> None:
    informers, metrics = Informers(world.store), Registry()
    flaky = cast(Cluster, Flaky(world.store, "get", "patch", "delete"))
    controller = TaintController(flaky, informers, world.recorder, world.clock, metrics)
    await world.user()
    await world.publish("d0")
    async with informers.running(), running(controller.run):
        while not await world.leaving():
            await world.clock.advance(0.01)
        while "pod_deletions_total 1\n" not in metrics.text():
            await checkpoint()
