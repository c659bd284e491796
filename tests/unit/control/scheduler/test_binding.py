"""Assignments are written, or undone completely."""

from collections.abc import Awaitable, Callable

import anyio
import pytest

from devlet.cluster.client import MergePatch
from devlet.control.scheduler.settings import ReportTimes, Settings
from devlet.errors import Conflict, Forbidden, Unavailable
from devlet.kit.backoff import Backoff
from devlet.objects import kinds
from devlet.objects.documents import Document
from devlet.testing.waiting import until
from tests.support.workloads import DRIVER, claim, device_class, node, pod, slice_of, template
from tests.unit.control.conftest import (
    BINDING,
    CLAIM_STATUS,
    World,
    Write,
    allocation_on,
    raises,
)

pytestmark = pytest.mark.anyio

SOON = Settings(reports=ReportTimes(0.05), retry=Backoff(0.01, 0.05))
NEVER = Settings(reports=ReportTimes(0.05), retry=Backoff(1000.0, 1000.0))


async def one_device(world: World, settings: Settings = SOON) -> None:
    world.settings = settings
    await world.add(node("n1"), device_class(), slice_of("n1", 1), claim("c"))


async def allocation(world: World, name: str = "c") -> Document:
    found: Document = (await world.claim(name)).get("status") or {}
    return found


def once(what: str, act: Callable[[], Awaitable[object]], name: str = "") -> Callable[[Write], Awaitable[None]]:
    """Act at the first such write."""
    left = [1]

    async def hook(write: Write) -> None:
        if write.what == what and name in ("", write.name) and left[0]:
            left[0] = 0
            await act()

    return hook


# Retries


@pytest.mark.spec("DA-5.8a")
async def test_a_refused_binding_gives_the_claims_back(world: World) -> None:
    await one_device(world, NEVER)
    world.cluster.before = raises(Forbidden("not you"), BINDING)
    async with world.scheduling():
        await world.add(pod("train", claim="c"))
        assert await world.reason("train", "not you")
        assert await allocation(world) == {}


async def test_the_last_consumer_of_a_shared_claim_frees_its_devices_when_its_binding_is_refused(world: World) -> None:
    """The claim controller would not free them: it sees a claim that was given back already."""
    await one_device(world, NEVER)

    async def refuse_alone() -> None:
        await world.remove("first")
        await until(lambda: allocation(world), lambda found: len(found["reservedFor"]) == 1)
        raise Forbidden("not you")

    async with world.scheduling():
        await world.add(pod("first", claim="c"))
        await world.bound("first")
        world.cluster.before = once(BINDING, refuse_alone, name="second")
        await world.add(pod("second", claim="c"))
        await world.reason("second", "not you")
        assert await allocation(world) == {}


async def test_an_allocation_of_another_client_stays_when_a_binding_is_refused(world: World) -> None:
    await one_device(world, NEVER)
    await world.status("c", {"allocation": allocation_on("n1")})
    world.cluster.before = raises(Forbidden("not you"), BINDING)
    async with world.scheduling():
        await world.add(pod("train", claim="c"))
        await world.reason("train", "not you")
        assert (await allocation(world)).keys() == {"allocation"}


async def test_a_refused_binding_frees_the_capacity_of_the_node(world: World) -> None:
    world.settings = NEVER
    await world.add(node("n1"))
    world.cluster.before = raises(Forbidden("not you"), BINDING, name="large")
    async with world.scheduling():
        await world.add(pod("large", requests={"cpu": "4"}))
        await world.reason("large", "not you")
        await world.add(pod("other", requests={"cpu": "4"}))
        await world.bound("other")


async def test_a_failed_binding_is_retried(world: World) -> None:
    await one_device(world)
    world.cluster.before = raises(Unavailable("not now"), BINDING, times=2)
    async with world.scheduling():
        await world.add(pod("train", claim="c"))
        assert await world.bound("train") == {"train": "n1"}
        assert len((await allocation(world))["reservedFor"]) == 1


async def test_a_pod_backs_off_after_an_error_whatever_happens_to_its_claims(world: World) -> None:
    await one_device(world, NEVER)
    world.cluster.before = raises(Forbidden("not you"), BINDING, times=1000, name="train")
    async with world.scheduling():
        await world.add(pod("train", claim="c"))
        await world.reason("train", "not you")
        await world.add(pod("other"))
        await world.bound("other")
        assert world.cluster.writes.count(BINDING) == 2


async def test_a_binding_whose_answer_was_lost_counts(world: World) -> None:
    await one_device(world, NEVER)
    world.cluster.after = raises(Unavailable("connection lost"), BINDING)
    async with world.scheduling():
        await world.add(pod("train", claim="c"))
        await world.bound("train")
        await world.add(pod("other"))
        await world.bound("other")
        assert len((await allocation(world))["reservedFor"]) == 1
        assert world.cluster.writes.count(CLAIM_STATUS) == 1


async def test_nothing_is_undone_until_the_result_of_the_binding_is_known(world: World) -> None:
    await one_device(world)
    world.cluster.after = raises(Unavailable("connection lost"), BINDING)
    world.cluster.reading = raises(Unavailable("no connection"), "get pods", times=3)
    async with world.scheduling():
        await world.add(pod("train", claim="c"))
        await world.bound("train")
        await world.add(pod("other"))
        await world.bound("other")
        assert len((await allocation(world))["reservedFor"]) == 1
        assert world.cluster.writes.count(CLAIM_STATUS) == 1


async def test_a_write_to_a_claim_whose_answer_was_lost_counts(world: World) -> None:
    await one_device(world, NEVER)
    world.cluster.after = raises(Unavailable("connection lost"), CLAIM_STATUS)
    async with world.scheduling():
        await world.add(pod("train", claim="c"))
        await world.bound("train")
        assert world.cluster.writes.count(CLAIM_STATUS) == 1


async def test_devices_stay_held_until_the_result_of_a_write_is_known(world: World) -> None:
    """The answer is lost, the informer has not seen the write, the claim cannot be read, and another pod needs a
    device."""
    await one_device(world)
    await world.add(claim("d"))
    silence, asked = anyio.Event(), anyio.Event()

    async def keep_back(write: Write) -> None:
        if write.what == "watch resourceclaims" and "allocation" in write.document.get("status", {}):
            await silence.wait()

    async def refuse(write: Write) -> None:
        if not silence.is_set():
            asked.set()
            raise Unavailable("no connection")

    world.cluster.heard, world.cluster.reading = keep_back, refuse
    world.cluster.after = raises(Unavailable("connection lost"), CLAIM_STATUS)
    async with world.scheduling():
        await world.add(pod("train", claim="c"))
        await asked.wait()
        await world.add(pod("other", claim="d"))
        await world.reason("other", "0/1 nodes are available")
        silence.set()
        await world.bound("train")
        assert len(await world.devices()) == 1


# Concurrent writes


@pytest.mark.spec("DA-5.7c")
async def test_a_claim_that_was_modified_concurrently_is_read_again(world: World) -> None:
    await one_device(world, NEVER)

    async def label() -> None:
        patch = MergePatch({"metadata": {"labels": {"a": "b"}}})
        await world.store.patch(kinds.RESOURCE_CLAIMS, "c", patch, "default")

    world.cluster.before = once(CLAIM_STATUS, label)
    async with world.scheduling():
        await world.add(pod("train", claim="c"))
        await world.bound("train")
        assert world.cluster.writes.count(CLAIM_STATUS) == 2


@pytest.mark.spec("DA-5.7d")
async def test_a_claim_that_was_allocated_concurrently_keeps_its_allocation(world: World) -> None:
    await one_device(world)
    await world.add(node("n2"), slice_of("n2", 1))
    given = allocation_on("n2")
    world.cluster.before = once(CLAIM_STATUS, lambda: world.status("c", {"allocation": given}))
    async with world.scheduling():
        await world.add(pod("train", claim="c", nodeSelector={}))
        assert await world.bound("train") == {"train": "n2"}
        assert (await allocation(world))["allocation"]["devices"]["results"][0]["pool"] == "n2"


async def test_a_claim_that_was_deallocated_concurrently_is_allocated_again(world: World) -> None:
    await one_device(world)
    await world.status("c", {"allocation": allocation_on("n1")})
    world.cluster.before = once(CLAIM_STATUS, lambda: world.status("c", {"allocation": None}))
    async with world.scheduling():
        await world.add(pod("train", claim="c"))
        await world.bound("train")
        assert len((await allocation(world))["reservedFor"]) == 1


async def test_a_pod_waits_for_a_claim_that_was_deleted_concurrently(world: World) -> None:
    await one_device(world)

    async def delete() -> None:
        await world.store.delete(kinds.RESOURCE_CLAIMS, "c", "default")

    world.cluster.before = once("patch resourceclaims", delete)
    async with world.scheduling():
        await world.add(pod("train", claim="c"))
        await world.reason("train", "could not find ResourceClaim")
        await world.add(claim("c"))
        await world.bound("train")


async def test_a_claim_that_was_replaced_concurrently_is_a_different_one(world: World) -> None:
    await one_device(world)

    async def replace() -> None:
        await world.store.delete(kinds.RESOURCE_CLAIMS, "c", "default")
        await world.add(claim("c"))

    world.cluster.before = once("patch resourceclaims", replace)
    async with world.scheduling():
        await world.add(pod("train", claim="c"))
        await world.bound("train")
        assert len((await allocation(world))["reservedFor"]) == 1


async def test_a_pod_that_is_deleted_while_it_is_being_bound_leaves_nothing(world: World) -> None:
    await one_device(world)
    world.cluster.before = once(BINDING, lambda: world.remove("train"))
    async with world.scheduling():
        await world.add(pod("train", claim="c"))
        await until(lambda: allocation(world), lambda found: not found and BINDING in world.cluster.writes)
        await world.add(pod("other", claim="c", requests={"cpu": "4"}))
        await world.bound("other")


async def test_a_new_pod_of_the_same_name_is_a_different_one(world: World) -> None:
    await one_device(world)

    async def replace() -> None:
        await world.remove("train")
        await world.add(pod("train", claim="c", nodeSelector={"kubernetes.io/hostname": "n2"}))
        replaced.set()

    replaced = anyio.Event()
    world.cluster.before = once(BINDING, replace)
    async with world.scheduling():
        await world.add(pod("train", claim="c"))
        await replaced.wait()
        await world.reason("train", "node affinity/selector")
        assert "nodeName" not in (await world.pod("train"))["spec"]


# Wake-ups


async def test_a_pod_can_share_a_claim_as_soon_as_it_is_written(world: World) -> None:
    await one_device(world)
    world.cluster.after = once(CLAIM_STATUS, lambda: world.bound("b"))
    async with world.scheduling():
        await world.add(pod("a", claim="c"), pod("b", claim="c"))
        assert await world.bound("a", "b") == {"a": "n1", "b": "n1"}


async def test_a_pod_that_waits_for_a_claim_in_flight_is_retried_when_the_first_pod_fails(world: World) -> None:
    await one_device(world, NEVER)

    async def give_up() -> None:
        await world.reason("b", "in the process of being allocated")
        raise Forbidden("not you")

    world.cluster.before = once(CLAIM_STATUS, give_up)
    async with world.scheduling():
        await world.add(pod("a", claim="c"), pod("b", claim="c"))
        await world.bound("b")


async def test_changes_older_than_the_binding_are_ignored(world: World) -> None:
    world.settings = SOON
    await world.add(node("n1"), node("n2"))
    bound, go = anyio.Event(), anyio.Event()

    async def label() -> None:
        await world.store.patch(kinds.PODS, "p", MergePatch({"metadata": {"generation": 7}}), "default")
        patch = MergePatch({"metadata": {"labels": {"a": "b"}}})
        await world.store.patch(kinds.PODS, "p", patch, "default")

    async def lag(write: Write) -> None:
        if write.what == "watch pods" and write.name == "p":
            if write.document["spec"].get("nodeName"):
                await go.wait()
            elif write.document["metadata"].get("labels"):
                await bound.wait()

    world.cluster.heard = lag
    world.cluster.before = once(BINDING, label)
    async with world.scheduling():
        await world.add(pod("p"))
        await world.bound("p")
        await anyio.wait_all_tasks_blocked()
        bound.set()
        await anyio.wait_all_tasks_blocked()
        go.set()
        await world.add(pod("q"))
        await world.bound("q")
        assert world.cluster.writes.count(BINDING) == 2


# Stopping


async def test_a_cancelled_scheduler_writes_nothing_more(world: World) -> None:
    await one_device(world)
    begun = anyio.Event()

    async def block(write: Write) -> None:
        if write.what == BINDING:
            begun.set()
            await anyio.sleep_forever()

    world.cluster.before = block
    async with world.scheduling():
        await world.add(pod("train", claim="c"))
        await begun.wait()
    assert world.cluster.writes[-1] == BINDING
    assert len((await allocation(world))["reservedFor"]) == 1


async def test_claims_reserved_before_a_stop_are_used_by_the_next_scheduler(world: World) -> None:
    await test_a_cancelled_scheduler_writes_nothing_more(world)
    world.cluster.before = world.cluster.heard
    before = world.cluster.writes.count(CLAIM_STATUS)
    async with world.scheduling():
        await world.bound("train")
        assert world.cluster.writes.count(CLAIM_STATUS) == before


# Slots


async def test_devices_that_are_being_attached_do_not_delay_other_pods(world: World) -> None:
    await one_device(world, Settings(at_once=1))
    slow = {"name": "gpu-0", "bindsToNode": True, "bindingConditions": ["attached"], "bindingFailureConditions": ["x"]}
    await world.change(slice_of("n1", [slow], generation=2))
    async with world.scheduling():
        await world.add(pod("train", claim="c"))
        await until(lambda: world.events("BindingConditionsPending"))
        await world.add(pod("other"))
        await world.bound("other")


# Extended resources

EXTENDED = "example.com/gpu"


async def extended(world: World, settings: Settings = SOON) -> None:
    world.settings = settings
    await world.add(node("n1"), device_class(extended=EXTENDED), slice_of("n1", 1))


async def left_over(world: World, name: str) -> None:
    """Create the claim for extended resources of a scheduler that crashed."""
    owner = (await world.pod(name))["metadata"]["uid"]
    document = claim("left")
    document["metadata"] |= {
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "finalizers": ["resource.kubernetes.io/delete-protection"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": owner, "controller": True}],
    }
    await world.add(document)


@pytest.mark.spec("DA-5.5b")
@pytest.mark.parametrize("allocated", [False, True])
async def test_a_claim_left_over_by_a_crash_is_replaced(world: World, allocated: bool) -> None:
    await extended(world)
    await world.add(pod("train", requests={EXTENDED: "1"}))
    await left_over(world, "train")
    if allocated:
        await world.status("left", {"allocation": allocation_on("n1")})
    async with world.scheduling():
        await world.bound("train")
        await world.gone(kinds.RESOURCE_CLAIMS, "left")
        assert len(await world.claims()) == 1


async def test_a_claim_for_extended_resources_is_removed_when_the_binding_fails(world: World) -> None:
    await extended(world, NEVER)
    world.cluster.before = raises(Forbidden("not you"), BINDING, name="train")
    async with world.scheduling():
        await world.add(pod("train", requests={EXTENDED: "1"}))
        await world.reason("train", "not you")
        assert not await world.claims()
        await world.add(pod("other", requests={EXTENDED: "1"}))
        await world.bound("other")


@pytest.mark.parametrize("what", ["create resourceclaims", "patch pods/status", CLAIM_STATUS, BINDING])
async def test_a_failure_at_any_step_of_extended_resources_is_retried(world: World, what: str) -> None:
    await extended(world)
    world.cluster.before = raises(Unavailable("not now"), what)
    async with world.scheduling():
        await world.add(pod("train", requests={EXTENDED: "1"}))
        await world.bound("train")
        assert len(await world.claims()) == 1 and len(await world.devices()) == 1


@pytest.mark.parametrize("what", ["create resourceclaims", "patch pods/status", CLAIM_STATUS, BINDING])
async def test_a_lost_answer_at_any_step_of_extended_resources_is_handled(world: World, what: str) -> None:
    await extended(world)
    world.cluster.after = raises(Unavailable("connection lost"), what)
    async with world.scheduling():
        await world.add(pod("train", requests={EXTENDED: "1"}))
        await world.bound("train")
        status = (await world.pod("train"))["status"]["extendedResourceClaimStatus"]
        used = await world.claim(status["resourceClaimName"])
        assert used["status"]["reservedFor"][0]["name"] == "train" and len(await world.devices()) == 1


async def test_a_pod_that_is_deleted_while_its_left_over_claim_is_removed_uses_no_capacity(world: World) -> None:
    await extended(world)
    await world.add(pod("train", requests={EXTENDED: "1", "cpu": "4"}))
    await left_over(world, "train")

    async def go() -> None:
        await world.remove("train")
        await anyio.wait_all_tasks_blocked()

    world.cluster.before = once("delete resourceclaims", go)
    async with world.scheduling():
        await world.gone(kinds.PODS, "train")
        await world.add(pod("other", requests={"cpu": "4"}))
        await world.bound("other")


async def test_the_claim_of_a_pod_that_was_just_bound_does_not_count_as_left_over(world: World) -> None:
    await world.add(node("n1"), device_class(extended=EXTENDED))
    world.settings = SOON
    news = anyio.Event()

    async def keep_back(write: Write) -> None:
        if write.what == "watch pods" and write.document["spec"].get("nodeName"):
            await news.wait()

    world.cluster.heard = keep_back
    async with world.scheduling():
        await world.add(pod("train", requests={EXTENDED: "1"}), pod("other", requests={EXTENDED: "1"}))
        await world.reason("train")
        await world.reason("other")
        await left_over(world, "train")
        binding = {"metadata": {"name": "train"}, "target": {"name": "n1"}}
        await world.store.create(kinds.PODS, binding, "default", name="train", subresource="binding")
        await world.add(slice_of("n1", 1))
        await until(world.devices)  # the other pod was attempted, and it comes later
        assert await world.claim("left")
        news.set()
        await world.bound("other")


async def test_two_concurrent_pods_do_not_get_one_device(world: World) -> None:
    await extended(world)
    async with world.scheduling():
        await world.add(pod("a", requests={EXTENDED: "1"}), pod("b", requests={EXTENDED: "1"}))
        await world.reason("b")
        assert await world.bound("a") == {"a": "n1"} and len(await world.devices()) == 1
        await world.remove("a")
        await world.bound("b")


async def test_a_pod_on_a_node_with_the_resource_does_not_name_a_deleted_claim(world: World) -> None:
    await extended(world)

    async def plugin_comes() -> None:
        document = await world.store.get(kinds.NODES, "n1")
        document["status"]["allocatable"][EXTENDED] = "1"
        document["status"]["capacity"][EXTENDED] = "1"
        await world.store.update(kinds.NODES, document, subresource="status")
        raise Conflict("try again")

    world.cluster.before = once(BINDING, plugin_comes)
    async with world.scheduling():
        await world.add(pod("train", requests={EXTENDED: "1"}))
        await world.bound("train")
        assert not await world.claims()
        assert "extendedResourceClaimStatus" not in (await world.pod("train"))["status"]


@pytest.mark.spec("DA-5.7e")
async def test_created_claims_are_counted(world: World) -> None:
    await extended(world)
    world.cluster.before = raises(Unavailable("not now"), "create resourceclaims")
    async with world.scheduling():
        await world.add(pod("train", requests={EXTENDED: "1"}))
        await world.bound("train")
        text = world.metrics.text()
    assert 'scheduler_resourceclaim_creates_total{status="success"} 1' in text
    assert 'scheduler_resourceclaim_creates_total{status="failure"} 1' in text


# Several claims


async def test_both_claims_are_given_back_if_one_cannot_be_written(world: World) -> None:
    world.settings = NEVER
    await world.add(node("n1"), device_class(), slice_of("n1", 2), claim("c"), claim("d"))
    both = pod("train", claim="c")
    both["spec"]["resourceClaims"].append({"name": "more", "resourceClaimName": "d"})
    world.cluster.before = raises(Forbidden("not that one"), CLAIM_STATUS, name="d")
    async with world.scheduling():
        await world.add(both)
        await world.reason("train", "not that one")
        assert await world.devices() == {}


async def test_an_allocation_and_its_reservation_are_one_write(world: World) -> None:
    await one_device(world)
    await world.add(template("one"))
    async with world.scheduling():
        await world.add(pod("train", template="one"))
        await world.bound("train")
        assert world.cluster.writes == [CLAIM_STATUS, BINDING]
        assert list(await world.devices()) == [f"{DRIVER}/n1/gpu-0"]
