"""Invalid input: the pod says why it waits, other pods are not affected, and it is scheduled as soon as possible."""

import pytest

from devlet.cluster.client import MergePatch
from devlet.control.scheduler.settings import ReportTimes, SearchLimits, Settings
from devlet.errors import DevletError
from devlet.objects import kinds
from devlet.objects.documents import Document
from tests.support.workloads import DRIVER, claim, device_class, node, pod, slice_of, template, wish
from tests.unit.control.conftest import World, allocation_on

pytestmark = pytest.mark.anyio


async def start(world: World, devices: int = 2) -> None:
    await world.add(node("n1"), device_class(), slice_of("n1", devices), template("one"))


async def refused(world: World, name: str, text: str) -> None:
    """Check that condition and event have the text, and that another pod is scheduled."""
    message = await world.reason(name, text)
    await world.add(pod("other", template="one"))
    await world.bound("other")
    await world.remove("other")
    assert "nodeName" not in (await world.pod(name))["spec"]
    assert text in message


async def test_an_unknown_class(world: World) -> None:
    await start(world)
    async with world.scheduling():
        await world.add(claim("c", wish(device_class="tpu.example.com")), pod("train", claim="c"))
        await refused(world, "train", "request gpu: device class tpu.example.com does not exist")
        await world.add(device_class("tpu.example.com"))
        await world.bound("train")
    messages = [each["message"] for each in await world.events("FailedScheduling")]
    assert any("tpu.example.com does not exist" in message for message in messages), messages


async def test_a_missing_template(world: World) -> None:
    await start(world)
    async with world.scheduling():
        await world.add(pod("train", template="later"))
        await refused(world, "train", 'pod "default/train": ResourceClaim not created yet')
        await world.add(template("later"))
        await world.bound("train")


async def test_a_claim_of_another_owner(world: World) -> None:
    """The pod's status names a claim that was not created for it."""
    await start(world)
    await world.add(claim("others"), pod("train", template="missing"))
    status = {"status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "others"}]}}
    await world.store.patch(kinds.PODS, "train", MergePatch(status), "default", subresource="status")
    async with world.scheduling():
        await refused(world, "train", "was not created for Pod default/train (Pod is not owner)")
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "train", "controller": True}
        owner["uid"] = (await world.pod("train"))["metadata"]["uid"]
        patch = MergePatch({"metadata": {"ownerReferences": [owner]}})
        await world.store.patch(kinds.RESOURCE_CLAIMS, "others", patch, "default")
        await world.bound("train")


async def test_more_devices_than_exist(world: World) -> None:
    await start(world)
    async with world.scheduling():
        await world.add(claim("c", wish(count=3)), pod("train", claim="c"))
        await refused(world, "train", "0/1 nodes are available: 1 ")
        await world.change(slice_of("n1", 3, generation=2))
        await world.bound("train")


async def test_more_devices_than_one_claim_can_have(world: World) -> None:
    await start(world)
    async with world.scheduling():
        await world.add(claim("c", wish(count=2_000_000_000)), pod("train", claim="c"))
        await refused(world, "train", "")


async def test_selectors_that_contradict_each_other(world: World) -> None:
    await start(world)
    async with world.scheduling():
        both = wish(selectors=[{"cel": {"expression": "false"}}, {"cel": {"expression": "true"}}])
        await world.add(claim("c", both), pod("train", claim="c"))
        await refused(world, "train", "0/1 nodes are available: 1 ")


async def test_a_selector_that_fails_at_runtime(world: World) -> None:
    await start(world)
    async with world.scheduling():
        broken = wish(select=f'device.attributes["{DRIVER}"].missing == "x"')
        await world.add(claim("c", broken), pod("train", claim="c"))
        await refused(world, "train", "no such key: missing")
        value = {"attributes": {"missing": {"string": "x"}}}
        await world.change(slice_of("n1", [{"name": "gpu-0", **value}, {"name": "gpu-1", **value}], generation=2))
        await world.bound("train")


async def test_an_affinity_that_cannot_be_read(world: World) -> None:
    """An API server refuses such a pod, but one may be stored already."""
    await start(world)
    term = {"matchExpressions": [{"key": "zone", "operator": "Near", "values": ["a"]}]}
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}},
    }
    async with world.scheduling():
        try:
            await world.add(pod("train", affinity=affinity))
        except DevletError as e:
            assert "operator" in str(e)
            return
        await refused(world, "train", "operator")


async def test_a_node_with_invalid_quantities_is_ignored_until_it_is_fixed(world: World) -> None:
    await start(world)
    broken = node("n2", labels={"zone": "b"})
    broken["status"]["allocatable"]["cpu"] = "much"
    async with world.scheduling():
        try:
            await world.add(broken)
        except DevletError:
            return
        await world.add(pod("train", nodeSelector={"zone": "b"}))
        await refused(world, "train", "0/1 nodes are available")
        found = await world.store.get(kinds.NODES, "n2")
        found["status"]["allocatable"]["cpu"] = "4"
        await world.store.update(kinds.NODES, found, subresource="status")
        await world.bound("train")


async def test_the_257th_consumer_of_a_claim_waits_until_one_goes(world: World) -> None:
    await world.add(node("n1", pods="500"), device_class(), slice_of("n1", 2), template("one"))
    await world.add(claim("c"))
    await world.add(*(pod(f"p{i}", claim="c", nodeName="n1", schedulerName="other") for i in range(256)))
    found = (await world.store.list(kinds.PODS)).items
    reserved = [{"resource": "pods", **{key: each["metadata"][key] for key in ("name", "uid")}} for each in found]
    await world.status("c", {"allocation": allocation_on("n1"), "reservedFor": reserved})
    async with world.scheduling():
        await world.add(pod("train", claim="c"))
        await refused(world, "train", "claim c already has the maximum of 256 consumers")
        await world.remove("p0")
        await world.bound("train")


@pytest.mark.long
@pytest.mark.parametrize("times", [1, 3])
async def test_a_claim_that_is_deleted_and_created_again_while_its_pod_waits(world: World, times: int) -> None:
    await start(world)
    async with world.scheduling():
        await world.add(claim("c", wish(count=3)), pod("train", claim="c"))
        await refused(world, "train", "0/1 nodes")
        for _ in range(times):
            await world.store.delete(kinds.RESOURCE_CLAIMS, "c", "default")
            await world.reason("train", "could not find ResourceClaim")
            await world.add(claim("c", wish(count=3)))
            await world.reason("train", "0/1 nodes")
        await world.store.delete(kinds.RESOURCE_CLAIMS, "c", "default")
        await world.add(claim("c"))
        await world.bound("train")


def hard(node: str) -> tuple[Document, Document]:
    """Return slices with devices that all differ. A search for 12 of them never ends, because no count shows that there
    are too few."""
    devices = [
        {
            "name": f"gpu-{i}",
            "attributes": {"lanes": {"int": i}},
            "consumesCounters": [
                {"counterSet": "s", "counters": {"n": {"value": str(10 + i)}, "m": {"value": str(40 - i)}}}
            ],
        }
        for i in range(30)
    ]
    parts = slice_of(node, devices)
    whole = slice_of(node, [])
    whole["metadata"]["name"] += "-counters"
    whole["spec"].pop("devices")
    whole["spec"]["sharedCounters"] = [{"name": "s", "counters": {"n": {"value": "299"}, "m": {"value": "299"}}}]
    for each in (parts, whole):
        each["spec"]["pool"]["resourceSliceCount"] = 2
    return parts, whole


@pytest.mark.spec("DA-11.03b")
async def test_a_search_that_takes_too_long_is_stopped_and_other_pods_are_scheduled(world: World) -> None:
    world.settings = Settings(reports=ReportTimes(0.05), search=SearchLimits(quick=0.001, node=0.2, explain=0.2))
    await world.add(node("n1"), device_class(), *hard("n1"), template("one"), claim("c", wish(count=12)))
    async with world.scheduling():
        await world.add(pod("train", claim="c"))
        await refused(world, "train", "0/1 nodes are available")


async def _gate(world: World) -> None:
    await world.store.patch(kinds.PODS, "train", MergePatch({"spec": {"schedulingGates": []}}), "default")


async def test_a_pod_with_a_scheduling_gate_waits_until_it_is_removed(world: World) -> None:
    await start(world)
    async with world.scheduling():
        await world.add(pod("train", template="one", schedulingGates=[{"name": "later"}]))
        await world.add(pod("other", template="one"))
        await world.bound("other")
        gated = await world.pod("train")
        assert "nodeName" not in gated["spec"]
        assert [each["reason"] for each in gated["status"]["conditions"]] == ["SchedulingGated"]
        await _gate(world)
        await world.bound("train")
        (condition,) = (await world.pod("train"))["status"]["conditions"]
        assert (condition["status"], condition.get("reason")) == ("True", None)


async def test_pods_of_another_scheduler_are_ignored(world: World) -> None:
    await start(world)
    async with world.scheduling():
        await world.add(pod("theirs", schedulerName="other"), pod("ours", template="one"))
        await world.bound("ours")
        assert "nodeName" not in (await world.pod("theirs"))["spec"]
