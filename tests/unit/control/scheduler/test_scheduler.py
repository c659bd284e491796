"""The scheduler and the claim controller on a real store."""

import pytest

from devlet.objects import kinds
from devlet.objects.documents import Document
from devlet.testing.waiting import until
from tests.support.workloads import claim, device_class, node, pod, slice_of, template, wish
from tests.unit.control.conftest import World

pytestmark = pytest.mark.anyio

ON = "kubernetes.io/hostname"


async def test_a_pod_with_a_template_gets_a_claim_a_device_and_a_node(world: World) -> None:
    await world.add(node("n1"), device_class(), slice_of("n1", 2), template("one"))
    async with world.scheduling():
        await world.add(pod("train", template="one"))
        assert await world.bound("train") == {"train": "n1"}
        found = await world.pod("train")
        name = found["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
        made = await world.claim(name)
        assert made["status"]["reservedFor"] == [{"resource": "pods", "name": "train", "uid": found["metadata"]["uid"]}]
        assert made["status"]["allocation"]["devices"]["results"][0]["pool"] == "n1"
        assert made["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]


async def test_a_pod_without_claims_gets_a_node(world: World) -> None:
    await world.add(node("n1"))
    async with world.scheduling():
        await world.add(pod("plain", requests={"cpu": "1"}))
        assert await world.bound("plain") == {"plain": "n1"}


async def test_an_unschedulable_pod_says_why_and_is_scheduled_when_it_fits(world: World) -> None:
    await world.add(node("n1"), device_class(), slice_of("n1", 1), template("one"))
    async with world.scheduling():
        await world.add(pod("first", template="one"))
        await world.bound("first")
        await world.add(pod("second", template="one"))
        await world.reason("second", "0/1 nodes are available: 1 ")
        await world.remove("first")
        assert await world.bound("second") == {"second": "n1"}


async def test_the_reason_is_also_an_event(world: World) -> None:
    await world.add(node("n1"))
    async with world.scheduling():
        await world.add(pod("large", requests={"cpu": "5"}))
        assert await world.reason("large") == "0/1 nodes are available: 1 Insufficient cpu"
    events = await world.events("FailedScheduling")
    assert [each["message"] for each in events] == ["0/1 nodes are available: 1 Insufficient cpu"]


async def test_no_device_is_allocated_twice(world: World) -> None:
    await world.add(*(node(f"n{i}") for i in range(4)), device_class(), template("one"))
    await world.add(*(slice_of(f"n{i}", 5) for i in range(4)))
    async with world.scheduling():
        await world.add(*(pod(f"p{i}", template="one") for i in range(20)))
        placed = await world.bound(*(f"p{i}" for i in range(20)))
        assert len(await world.devices()) == 20
        assert {name: list(placed.values()).count(name) for name in set(placed.values())} == {
            f"n{i}": 5 for i in range(4)
        }


async def test_pods_that_share_a_claim_are_placed_on_one_node(world: World) -> None:
    await world.add(node("n1"), node("n2"), device_class(), slice_of("n1", 1), slice_of("n2", 1), claim("shared"))
    async with world.scheduling():
        await world.add(pod("a", claim="shared"), pod("b", claim="shared"))
        placed = await world.bound("a", "b")
        assert placed["a"] == placed["b"]
        assert len((await world.claim("shared"))["status"]["reservedFor"]) == 2


ZONE_A = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}


@pytest.mark.parametrize("where", [{"allNodes": True}, {"nodeSelector": ZONE_A}])
async def test_a_network_attached_device_is_used_on_every_node_that_reaches_it(world: World, where: Document) -> None:
    attached = slice_of("fabric", 1)
    del attached["spec"]["nodeName"]
    attached["spec"] |= where
    zones = {"n1": "a", "n2": "a", "n3": "b"}
    await world.add(*(node(name, labels={"zone": zone}) for name, zone in zones.items()))
    await world.add(device_class(), attached, claim("shared"))
    async with world.scheduling():
        await world.add(*(pod(name, claim="shared", nodeSelector={ON: name}) for name in zones))
        if "allNodes" in where:
            assert await world.bound(*zones) == {name: name for name in zones}
        else:
            assert await world.bound("n1", "n2") == {"n1": "n1", "n2": "n2"}
            assert await world.reason("n3", "0/3 nodes are available")
    assert (await world.claim("shared"))["status"]["allocation"].get("nodeSelector") == where.get("nodeSelector")


async def test_a_placed_pod_gets_its_claim_allocated_on_its_node(world: World) -> None:
    await world.add(node("n1"), node("n2"), device_class(), slice_of("n1", 1), slice_of("n2", 1), template("one"))
    async with world.scheduling():
        await world.add(pod("placed", template="one", nodeName="n2"))

        async def devices() -> dict[str, str]:
            return await world.devices()

        assert list(await until(devices)) == ["gpu.example.com/n2/gpu-0"]


async def test_a_pod_waits_for_a_claim_that_does_not_exist_and_says_so(world: World) -> None:
    await world.add(node("n1"), device_class(), slice_of("n1", 1))
    async with world.scheduling():
        await world.add(pod("train", claim="later"))
        await world.reason("train", 'could not find ResourceClaim "default/later"')
        await world.add(claim("later"))
        assert await world.bound("train") == {"train": "n1"}


async def test_a_pod_is_scheduled_when_its_class_is_created(world: World) -> None:
    await world.add(node("n1"), slice_of("n1", 1), claim("c"))
    async with world.scheduling():
        await world.add(pod("train", claim="c"))
        await world.reason("train", "request gpu: device class gpu.example.com does not exist")
        await world.add(device_class())
        assert await world.bound("train") == {"train": "n1"}


async def test_claims_that_were_reserved_before_a_crash_decide_the_node(world: World) -> None:
    await world.add(node("n1"), node("n2"), device_class(), slice_of("n2", 1), claim("c"), pod("train", claim="c"))
    uid = (await world.pod("train"))["metadata"]["uid"]
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": "n2", "device": "gpu-0"}
    where = {"key": "metadata.name", "operator": "In", "values": ["n2"]}
    allocation = {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [where]}]},
    }
    reserved = [{"resource": "pods", "name": "train", "uid": uid}]
    await world.status("c", {"allocation": allocation, "reservedFor": reserved})
    async with world.scheduling():
        assert await world.bound("train") == {"train": "n2"}


async def test_devices_on_a_node_where_the_pod_cannot_run_are_freed(world: World) -> None:
    await world.add(node("n1"), node("n2"), device_class(), slice_of("n1", 1), slice_of("n2", 1), claim("c"))
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": "n2", "device": "gpu-0"}
    where = {"key": "metadata.name", "operator": "In", "values": ["n2"]}
    allocation = {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [where]}]},
    }
    await world.status("c", {"allocation": allocation})
    async with world.scheduling():
        await world.add(pod("train", claim="c", nodeSelector={"kubernetes.io/hostname": "n1"}))
        assert await world.bound("train") == {"train": "n1"}
        assert list(await world.devices()) == ["gpu.example.com/n1/gpu-0"]


async def test_the_first_alternative_is_preferred_wherever_it_is(world: World) -> None:
    big = {"name": "big", "deviceClassName": "gpu.example.com", "count": 2}
    small = {"name": "small", "deviceClassName": "gpu.example.com"}
    await world.add(node("n1"), node("n2"), device_class(), slice_of("n1", 1), slice_of("n2", 2))
    await world.add(claim("c", {"name": "gpu", "firstAvailable": [big, small]}))
    async with world.scheduling():
        await world.add(pod("train", claim="c"))
        assert await world.bound("train") == {"train": "n2"}
        results = (await world.claim("c"))["status"]["allocation"]["devices"]["results"]
        assert {each["request"] for each in results} == {"gpu/big"}


async def test_an_extended_resource_is_provided_by_a_claim_where_the_node_has_none(world: World) -> None:
    await world.add(node("n1"), device_class(extended="example.com/gpu"), slice_of("n1", 2))
    async with world.scheduling():
        await world.add(pod("train", requests={"example.com/gpu": "2"}))
        assert await world.bound("train") == {"train": "n1"}
        status = (await world.pod("train"))["status"]["extendedResourceClaimStatus"]
        made = await world.claim(status["resourceClaimName"])
        assert len(made["status"]["allocation"]["devices"]["results"]) == 2
        await world.remove("train")
        await world.gone(kinds.RESOURCE_CLAIMS, made["metadata"]["name"])


async def test_a_pod_is_bound_when_its_devices_are_attached(world: World) -> None:
    attached = {"name": "gpu-0", "bindsToNode": True, "bindingConditions": ["attached"]}
    attached["bindingFailureConditions"] = ["broken"]
    await world.add(node("n1"), device_class(), slice_of("n1", [attached]), claim("c"))
    async with world.scheduling():
        await world.add(pod("train", claim="c"))

        async def pending() -> list[object]:
            return list(await world.events("BindingConditionsPending"))

        await until(pending)
        assert "nodeName" not in (await world.pod("train"))["spec"]
        condition = {
            "type": "attached",
            "status": "True",
            "reason": "Done",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        device = {"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0", "conditions": [condition]}
        await world.status("c", {"devices": [device]})
        assert await world.bound("train") == {"train": "n1"}


async def test_a_pod_that_needs_more_devices_than_exist_says_so(world: World) -> None:
    await world.add(node("n1"), device_class(), slice_of("n1", 1), claim("c", wish(count=2)))
    async with world.scheduling():
        await world.add(pod("train", claim="c"))
        text = await world.reason("train")
        assert text.startswith("0/1 nodes are available: 1 ") and "2" in text
        await world.change(slice_of("n1", 2, generation=2))
        assert await world.bound("train") == {"train": "n1"}


@pytest.mark.spec("DA-11.17a")
async def test_a_claim_with_a_tainted_device_is_not_shared_with_further_pods(world: World) -> None:
    await world.add(node("n1"), device_class(), slice_of("n1", 1), claim("shared"))
    async with world.scheduling():
        await world.add(pod("first", claim="shared"))
        await world.bound("first")
        taint = {"key": "sick", "effect": "NoSchedule"}
        await world.change(slice_of("n1", [{"name": "gpu-0", "taints": [taint]}], generation=2))
        await world.add(pod("second", claim="shared"))
        assert "sick" in await world.reason("second", "resourceclaim shared cannot be shared")
        await world.change(slice_of("n1", 1, generation=3))
        assert await world.bound("second") == {"second": "n1"}
