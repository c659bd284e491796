"""A second scheduler, independent of ours, allocates the same devices to its own claims."""

from collections.abc import Awaitable, Callable

import anyio
import pytest

from devlet.cluster.client import MergePatch
from devlet.control.scheduler.settings import ReportTimes, Settings
from devlet.errors import Forbidden
from devlet.kit.backoff import Backoff
from devlet.objects import kinds
from devlet.objects.documents import Document
from devlet.objects.validation.admin_access import NAMESPACE_LABEL
from devlet.testing.waiting import until
from tests.support.workloads import DRIVER, claim, device_class, node, pod, slice_of, template
from tests.unit.control.conftest import BINDING, CLAIM_STATUS, World, Write, allocation_on

pytestmark = pytest.mark.anyio

SOON = Settings(reports=ReportTimes(0.05), retry=Backoff(0.01, 0.05))
GPU_0, GPU_1 = f"{DRIVER}/n1/gpu-0", f"{DRIVER}/n1/gpu-1"
TOLD = f"device {GPU_0} was allocated to claim default/theirs by another scheduler; trying again"


async def furnish(world: World, devices: int = 2, settings: Settings = SOON) -> None:
    world.settings = settings
    await world.add(node("n1"), device_class(), slice_of("n1", devices), claim("c"), claim("theirs"))
    await world.add(pod("their-pod", claim="theirs", schedulerName="theirs"))


async def take(world: World, device: str = "gpu-0", **more: object) -> None:
    """Allocate a device as the second scheduler, and bind its pod without a check."""
    allocation = allocation_on("n1", device, **more)
    await world.status("theirs", {"allocation": allocation, "reservedFor": [await user(world, "their-pod")]})


async def user(world: World, name: str) -> Document:
    return {"resource": "pods", "name": name, "uid": (await world.pod(name))["metadata"]["uid"]}


async def device_of(world: World, name: str) -> str:
    status: Document = (await world.claim(name)).get("status") or {}
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or [{}]
    return str(results[0].get("device", ""))


def at_first(what: str, act: Callable[[], Awaitable[object]], name: str = "") -> Callable[[Write], Awaitable[None]]:
    left = [1]

    async def hook(write: Write) -> None:
        if write.what == what and name in ("", write.name) and left[0]:
            left[0] = 0
            await act()

    return hook


async def test_a_device_that_was_allocated_elsewhere_during_our_write_is_given_back(world: World) -> None:
    await furnish(world)
    world.cluster.before = at_first(CLAIM_STATUS, lambda: take(world))
    async with world.scheduling():
        await world.add(pod("ours", claim="c"))
        await world.bound("ours")
        assert (await device_of(world, "c"), await device_of(world, "theirs")) == ("gpu-1", "gpu-0")
        assert TOLD in [each["message"] for each in await until(lambda: world.events("FailedScheduling"))]
        assert "devlet_scheduler_allocation_overlaps_total 1\n" in world.metrics.text()
        assert "devlet_scheduler_allocation_overlaps 0\n" in world.metrics.text()


async def test_a_device_that_was_allocated_elsewhere_after_our_write_is_given_back_if_seen_in_time(
    world: World,
) -> None:
    """Our allocation was first, but the other scheduler does not give way, and our pod can run elsewhere."""
    await furnish(world)
    known = anyio.Event()

    async def hold_up(write: Write) -> None:
        if write.what == "watch resourceclaims" and "allocation" in write.document.get("status", {}):
            await known.wait()

    async def late() -> None:
        await take(world)
        known.set()
        await anyio.wait_all_tasks_blocked()

    world.cluster.heard = hold_up
    world.cluster.after = at_first(CLAIM_STATUS, late)
    async with world.scheduling():
        await world.add(pod("ours", claim="c"))
        await world.bound("ours")
        assert await device_of(world, "c") == "gpu-1"


async def test_a_device_that_was_allocated_elsewhere_while_being_attached_is_given_back(world: World) -> None:
    await furnish(world)
    slow = {"bindsToNode": True, "bindingConditions": ["attached"], "bindingFailureConditions": ["broken"]}
    await world.change(slice_of("n1", [{"name": "gpu-0", **slow}, {"name": "gpu-1", **slow}], generation=2))
    async with world.scheduling():
        await world.add(pod("ours", claim="c"))
        await until(lambda: world.events("BindingConditionsPending"))
        await take(world)
        stamp = {"type": "attached", "status": "True", "reason": "R", "lastTransitionTime": "2025-01-01T00:00:00Z"}
        place = {"driver": DRIVER, "pool": "n1", "device": "gpu-0"}
        await world.status("c", {"devices": [{**place, "conditions": [stamp]}]})
        await until(lambda: device_of(world, "c"), lambda found: found == "gpu-1")
        assert "nodeName" not in (await world.pod("ours"))["spec"]
        await world.status("c", {"devices": [{**place, "device": "gpu-1", "conditions": [stamp]}]})
        await world.bound("ours")


async def test_a_pod_whose_device_was_allocated_elsewhere_waits_if_there_is_no_other(world: World) -> None:
    await furnish(world, devices=1)
    world.cluster.before = at_first(CLAIM_STATUS, lambda: take(world))
    async with world.scheduling():
        await world.add(pod("ours", claim="c"))
        await world.reason("ours", "in use")
        assert BINDING not in world.cluster.writes and await device_of(world, "c") == ""
        await world.status("theirs", {"allocation": None, "reservedFor": None})
        await world.bound("ours")


async def test_a_share_that_no_longer_fits_is_given_back(world: World) -> None:
    await furnish(world)
    shared = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "16Gi"}}}
    await world.change(slice_of("n1", [{"name": "gpu-0", **shared}, {"name": "gpu-1", **shared}], generation=2))
    mine = claim("half")
    mine["spec"]["devices"]["requests"][0]["exactly"]["capacity"] = {"requests": {"memory": "8Gi"}}
    await world.add(mine)
    share: Document = {"shareID": "f5a4cf0c-4bcb-4ea0-9ae4-26d2f4a4dd4c", "consumedCapacity": {"memory": "12Gi"}}
    world.cluster.before = at_first(CLAIM_STATUS, lambda: take(world, **share))
    async with world.scheduling():
        await world.add(pod("ours", claim="half"))
        await world.bound("ours")
        assert await device_of(world, "half") == "gpu-1"


async def test_admin_access_of_another_claim_is_not_an_overlap(world: World) -> None:
    await furnish(world)
    label = MergePatch({"metadata": {"labels": {NAMESPACE_LABEL: "true"}}})
    await world.store.patch(kinds.NAMESPACES, "default", label)
    world.cluster.before = at_first(CLAIM_STATUS, lambda: take(world, adminAccess=True))
    async with world.scheduling():
        await world.add(pod("ours", claim="c"))
        await world.bound("ours")
        assert [each["message"] for each in await world.events("FailedScheduling")] == []
        assert await device_of(world, "c") == await device_of(world, "theirs") == "gpu-0"


async def test_devices_for_an_extended_resource_are_given_back(world: World) -> None:
    await furnish(world)
    await world.store.update(
        kinds.DEVICE_CLASSES,
        {**await world.store.get(kinds.DEVICE_CLASSES, DRIVER), "spec": device_class(extended="example.com/g")["spec"]},
    )
    world.cluster.before = at_first(CLAIM_STATUS, lambda: take(world))
    async with world.scheduling():
        await world.add(pod("ours", requests={"example.com/g": "1"}))
        await world.bound("ours")
        assert set(await world.devices()) == {GPU_0, GPU_1} and len(await world.claims()) == 3


async def test_a_pod_that_shares_a_claim_is_not_bound_before_the_check(world: World) -> None:
    """The second pod finds the claim allocated and does not write the allocation itself."""
    await furnish(world)
    known = anyio.Event()

    async def hold_up(write: Write) -> None:
        if write.what == "watch resourceclaims" and "allocation" in write.document.get("status", {}):
            await known.wait()

    world.cluster.heard = hold_up
    world.cluster.before = at_first(CLAIM_STATUS, lambda: take(world))
    async with world.scheduling():
        await world.add(pod("a", claim="c"), pod("b", claim="c"))

        async def users() -> int:
            return len(((await world.claim("c")).get("status") or {}).get("reservedFor") or ())

        await until(users, lambda found: found == 2)
        await anyio.wait_all_tasks_blocked()
        assert BINDING not in world.cluster.writes
        known.set()
        assert await world.bound("a", "b") == {"a": "n1", "b": "n1"}
        assert await device_of(world, "c") == "gpu-1"


async def test_an_overlapping_claim_in_use_gets_no_further_pods(world: World) -> None:
    await furnish(world, devices=1)
    await world.add(pod("other", claim="c", nodeName="n1"))
    await world.status("c", {"allocation": allocation_on("n1"), "reservedFor": [await user(world, "other")]})
    await take(world)
    async with world.scheduling():
        await world.add(pod("ours", claim="c"))
        await world.reason("ours", f"device {GPU_0} is allocated to two claims: default/c and default/theirs")
        assert BINDING not in world.cluster.writes
        assert "devlet_scheduler_allocation_overlaps 1\n" in world.metrics.text()
        await world.status("theirs", {"allocation": None, "reservedFor": None})
        await world.bound("ours")


async def test_an_allocation_before_a_crash_is_checked_by_the_next_scheduler(world: World) -> None:
    await furnish(world)
    begun = anyio.Event()

    async def block(write: Write) -> None:
        if write.what == BINDING:
            begun.set()
            await anyio.sleep_forever()

    heard, world.cluster.before = world.cluster.before, block
    async with world.scheduling():
        await world.add(pod("ours", claim="c"))
        await begun.wait()
    await take(world)
    world.cluster.before = heard
    async with world.scheduling():
        await world.bound("ours")
        assert await device_of(world, "c") == "gpu-1"


async def test_a_placed_pod_keeps_its_allocation(world: World) -> None:
    """Its node may have prepared the claim already, and refuses to prepare a device twice."""
    await furnish(world, devices=1)
    world.cluster.before = at_first(CLAIM_STATUS, lambda: take(world))
    async with world.scheduling():
        await world.add(pod("ours", claim="c", nodeName="n1"))
        await until(lambda: device_of(world, "c"))
        await world.add(pod("later"))
        await world.bound("later")
        assert await device_of(world, "c") == "gpu-0"


async def test_devices_are_given_back_if_the_watch_of_claims_is_silent(world: World) -> None:
    await furnish(world, settings=Settings(reports=ReportTimes(0.05), own_write=0.05, retry=Backoff(1000.0, 1000.0)))
    silence = anyio.Event()

    async def hold_up(write: Write) -> None:
        if write.what == "watch resourceclaims" and "allocation" in write.document.get("status", {}):
            await silence.wait()

    world.cluster.heard = hold_up
    async with world.scheduling():
        await world.add(pod("ours", claim="c"))
        await world.reason("ours", "did not come back in a watch within 0.05 s")
        assert await device_of(world, "c") == "" and BINDING not in world.cluster.writes
        silence.set()


async def test_an_allocation_without_overlaps_takes_no_further_request(world: World) -> None:
    await furnish(world)
    await world.add(template("one"))
    async with world.scheduling():
        await world.add(pod("ours", claim="c"), pod("made", template="one"))
        await world.bound("ours", "made")
        writes = [each for each in world.cluster.writes if "resourceclaims" in each]
        # The finalizer of the user's claim, and one write for each allocation.
        assert sorted(writes) == ["patch resourceclaims", *[CLAIM_STATUS] * 2]


async def test_a_binding_that_fails_after_the_check_gives_the_claims_back(world: World) -> None:
    await furnish(world, settings=Settings(reports=ReportTimes(0.05), retry=Backoff(1000.0, 1000.0)))

    async def refuse(write: Write) -> None:
        if write.what == BINDING:
            raise Forbidden("not you")

    world.cluster.before = refuse
    async with world.scheduling():
        await world.add(pod("ours", claim="c"))
        await world.reason("ours", "not you")
        assert await device_of(world, "c") == ""


async def test_a_device_that_was_allocated_elsewhere_before_our_write_takes_no_write(world: World) -> None:
    """The slot for the writes is taken, so the pod waits with its decision."""
    await furnish(world, settings=Settings(reports=ReportTimes(0.05), at_once=1, retry=Backoff(0.01, 0.05)))
    begun, go = anyio.Event(), anyio.Event()

    async def occupy(write: Write) -> None:
        if write.what == BINDING and write.name == "first":
            begun.set()
            await go.wait()

    world.cluster.before = occupy
    async with world.scheduling():
        await world.add(pod("first"))
        await begun.wait()
        await world.add(pod("ours", claim="c"))
        await anyio.wait_all_tasks_blocked()
        await take(world)
        await anyio.wait_all_tasks_blocked()
        go.set()
        await world.bound("ours")
        assert await device_of(world, "c") == "gpu-1"
        assert world.cluster.writes.count(CLAIM_STATUS) == 1
