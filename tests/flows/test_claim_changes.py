"""Claims that change underneath pods, on a whole node: deleted, made anew, given other devices, taken from the pod.

A pod that waits takes what there is then; one that runs keeps what it has until its end."""

import pytest

from devlet.errors import Conflict
from devlet.testing.fake_dra_driver import PREPARE, UNPREPARE, FakeDraDriver
from tests.flows.conftest import NO_RETRY
from tests.support.claim_node import CLAIMS, ClaimNode, claim_pod, container, given
from tests.support.node_drivers import NodeDrivers

pytestmark = [pytest.mark.anyio]

CONFIGURATION = NO_RETRY

ABSENT, FAILING = "its driver is not there", "its driver fails"


async def wait_for(node: ClaimNode, drivers: NodeDrivers, why: str) -> FakeDraDriver:
    """Have a pod wait, for a driver that did not hear of the claim, or that did and has not prepared it."""
    gpu = await (drivers.add if why is ABSENT else drivers.start)("gpu")
    gpu.fail(PREPARE, text="out of order")
    await node.add_claim("train", given(gpu.name))
    await node.add_pod(claim_pod("train", "train"))
    await node.until_failed("train", "out of order" if why is FAILING else "is not registered")
    return gpu


async def recover(gpu: FakeDraDriver) -> None:
    gpu.recover()
    await gpu.start()


async def pod(node: ClaimNode, name: str = "train") -> dict[str, object]:
    return await node.pod(name) or {}


@pytest.mark.parametrize("why", [ABSENT, FAILING])
async def test_a_pod_whose_claim_is_deleted_waits_for_a_new_one(
    node: ClaimNode, drivers: NodeDrivers, nic: FakeDraDriver, why: str
) -> None:
    gpu = await wait_for(node, drivers, why)
    await node.call("DELETE", f"{CLAIMS}/train")
    await node.until_failed("train", "ResourceClaim train was not found")
    await node.run_pod("other", nic.name)
    await recover(gpu)
    uid = await node.add_claim("train", given(gpu.name))
    await node.until_failed("train", "it is not reserved for the pod")
    await node.reserve("train", await pod(node))
    await node.until_phase("train", "Running")
    assert await node.environment("train") == {"CLAIM_train": uid}
    assert list(gpu.prepared) == [uid]


@pytest.mark.parametrize("why", [ABSENT, FAILING])
async def test_a_pod_whose_claim_gets_a_device_of_another_driver_uses_that(
    node: ClaimNode, drivers: NodeDrivers, nic: FakeDraDriver, why: str
) -> None:
    gpu = await wait_for(node, drivers, why)
    await node.allocate("train")
    await node.until_failed("train", "ResourceClaim train is not allocated")
    await node.run_pod("other", nic.name)
    if why is FAILING:
        gpu.recover()
    await node.allocate("train", given(nic.name, "dev-1"))
    await node.reserve("train", await pod(node))
    await node.until_phase("train", "Running")
    [driver] = (await node.prepared())["train"]["drivers"]
    assert driver["driver"] == nic.name
    assert not gpu.prepared


@pytest.mark.parametrize("why", [ABSENT, FAILING])
async def test_a_pod_that_may_not_use_its_claim_any_more_waits_until_it_may(
    node: ClaimNode, drivers: NodeDrivers, nic: FakeDraDriver, why: str
) -> None:
    gpu = await wait_for(node, drivers, why)
    await node.set_status("train", {"reservedFor": None})
    await node.until_failed("train", "it is not reserved for the pod")
    await node.run_pod("other", nic.name)
    await recover(gpu)
    asked = len(gpu.asked(PREPARE))
    await node.reserve("train", await pod(node))
    await node.until_phase("train", "Running")
    assert len(gpu.asked(PREPARE)) == asked + 1


@pytest.mark.parametrize("how", ["deleted", "made anew", "given other devices", "taken from the pod"])
async def test_a_pod_that_runs_keeps_its_claim_to_the_end_whatever_happens_to_the_object(
    node: ClaimNode, gpu: FakeDraDriver, nic: FakeDraDriver, how: str
) -> None:
    before = await node.run_pod("train", gpu.name)
    [uid] = gpu.prepared
    match how:
        case "deleted":
            await node.call("DELETE", f"{CLAIMS}/train")
        case "made anew":
            await node.call("DELETE", f"{CLAIMS}/train")
            await node.add_claim("train", given(nic.name))
        case "given other devices":
            await node.allocate("train")
            await node.allocate("train", given(nic.name))
        case "taken from the pod":
            await node.set_status("train", {"reservedFor": None})
    await node.run_pod("other", nic.name)
    assert await node.pod("train") == before
    assert await node.environment("train") == {"CLAIM_train": uid}
    await node.delete("train")
    assert [call.claims[0].uid for call in gpu.asked(UNPREPARE)] == [uid]
    assert await node.failures("train") == []


async def test_a_claim_that_got_other_devices_is_for_the_next_pod_when_the_one_before_has_ended(
    node: ClaimNode, gpu: FakeDraDriver, nic: FakeDraDriver
) -> None:
    await node.run_pod("train", gpu.name)
    await node.allocate("train")
    await node.allocate("train", given(nic.name))
    await node.add_pod(claim_pod("next", "train"))
    await node.until_failed(
        "next", "ResourceClaim train was reallocated while still prepared with its previous devices"
    )
    assert len(gpu.prepared) == 1 and not nic.prepared
    await node.delete("train")
    await node.until_phase("next", "Running")
    assert len(nic.prepared) == 1 and not gpu.prepared


async def test_a_claim_that_is_named_twice_is_prepared_once(node: ClaimNode, gpu: FakeDraDriver) -> None:
    uid = await node.add_claim("shared", given(gpu.name))
    document = claim_pod("train", "a", "b")
    document["spec"]["resourceClaims"] = [{"name": name, "resourceClaimName": "shared"} for name in ("a", "b")]
    document["spec"]["containers"] = [container("first", ["a"]), container("both", ["a", "b"])]
    await node.call("POST", "/api/v1/namespaces/default/pods", document)
    await node.reserve("shared", await pod(node))
    await node.bind("train")
    await node.until_phase("train", "Running")
    for name in ("first", "both"):
        assert await node.environment("train", name) == {"CLAIM_shared": uid}
    assert [call.names for call in gpu.asked(PREPARE)] == [("shared",)]
    await node.delete("train")
    assert [call.names for call in gpu.asked(UNPREPARE)] == [("shared",)]


async def test_one_bad_claim_of_a_pod_is_named_and_the_good_ones_are_kept(
    node: ClaimNode, gpu: FakeDraDriver, nic: FakeDraDriver
) -> None:
    gpu.fail_claim("bad", "no such device")
    for name in ("bad", "good"):
        await node.add_claim(name, given(gpu.name, f"dev-{name}"))
    await node.add_claim("other", given(nic.name))
    await node.add_pod(claim_pod("train", "bad", "good", "other"))
    text = await node.until_failed("train", "")
    assert text == f"Failed to prepare dynamic resources: claim bad: driver {gpu.name}: no such device"
    gpu.recover()
    await node.until_phase("train", "Running")
    asked = [call.names for call in gpu.asked(PREPARE)]
    assert set(asked[0]) == {"bad", "good"}
    assert set(asked[1:]) == {("bad",)}
    assert len(nic.asked(PREPARE)) == 1


async def test_the_device_of_a_pod_deleted_by_force_is_not_prepared_again_before_it_is_unprepared_or_released(
    node: ClaimNode, gpu: FakeDraDriver
) -> None:
    await node.run_pod("first", gpu.name, device="dev-0")
    gpu.fail(UNPREPARE, "INTERNAL", "stuck")
    await node.ask_to_delete("first", force=True)
    await gpu.until_asked(UNPREPARE)
    await node.add_claim("second", given(gpu.name, "dev-0"))
    await node.add_pod(claim_pod("second", "second", restart="Never"))
    text = "is still prepared for ResourceClaim default/first, whose pod is gone"
    assert "devlet claim release default/first --force" in await node.until_failed("second", text)
    assert [call.names for call in gpu.asked(PREPARE)] == [("first",)]
    [shown] = (await node.call("GET", "/apis/devlet.dev/v1alpha1/devices"))["items"]
    assert shown["spec"]["driver"] == gpu.name and shown["spec"]["id"] == "dev-0"
    status = shown["status"]
    assert (status["state"], status["claims"], status["waiting"]) == (
        "Contested",
        ["default/first"],
        ["default/second"],
    )
    view = "/apis/devlet.dev/v1alpha1/namespaces/default/preparedclaims/first"
    with pytest.raises(Conflict, match="stuck"):
        await node.call("DELETE", view)
    await node.call("DELETE", f"{view}?gracePeriodSeconds=0")
    await node.until_phase("second", "Running")
    (released,) = [line for line in node.log.splitlines() if '"claim released by force"' in line]
    assert released.startswith("W") and 'claim="default/first"' in released
    gpu.recover()
    gpu.prepared.remove((await node.call("GET", f"{CLAIMS}/first"))["metadata"]["uid"])
