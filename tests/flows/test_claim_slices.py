"""The slices of drivers that come and go on a whole node: which are deleted, when, and which never."""

import json
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from devlet.objects.documents import Document
from devlet.testing.fake_dra_cluster import slice_of
from devlet.testing.fake_dra_driver import PREPARE, UNPREPARE, FakeDraDriver, PreparedDevice
from devlet.testing.node_process import NODE
from devlet.testing.waiting import until
from tests.support.claim_node import CLAIMS, SLICES, ClaimNode, claim_pod, given
from tests.support.node_drivers import NodeDrivers, node_drivers
from tests.support.workloads import claim, device_class

pytestmark = [pytest.mark.anyio]

LAYOUTS = ["a directory of its own", "the registry directory"]


@pytest.fixture(scope="module")
async def patient_node() -> AsyncIterator[ClaimNode]:
    """One that waits as long as usual before it deletes slices."""
    root = Path(tempfile.mkdtemp(prefix="dv"))
    async with ClaimNode(root, "timeouts:\n  draCall: 1s\n") as node:
        yield node
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
async def patient_drivers(patient_node: ClaimNode) -> AsyncIterator[NodeDrivers]:
    async with node_drivers(patient_node) as drivers:
        yield drivers


async def publish(node: ClaimNode, driver: str) -> dict[str, Document]:
    """The slices that there are then."""
    await node.call("POST", SLICES, slice_of(driver, NODE, 2))
    return await node.slices()


def socket_in(node: ClaimNode, layout: str) -> Path | None:
    return node.registry / "gpu-dra.sock" if "registry" in layout else None


async def until_wiped(node: ClaimNode) -> None:
    await until(node.slices, lambda found: not found)


async def until_threatened(node: ClaimNode, driver: str, yes: bool = True) -> None:
    """Until the driver's slices are about to be deleted, some day; or no longer."""
    await until(node.driver_states, lambda states: ("wipeAt" in states.get(driver, {})) is yes)


# Gone


@pytest.mark.long
@pytest.mark.spec("DN-9.2.25")
async def test_slices_of_a_driver_that_stopped_vanish_and_stay_away(node: ClaimNode, gpu: FakeDraDriver) -> None:
    await publish(node, gpu.name)
    await gpu.stop()
    await until_wiped(node)
    await publish(node, gpu.name)
    await until_wiped(node)


@pytest.mark.spec("DN-9.2.26")
@pytest.mark.parametrize("layout", LAYOUTS)
async def test_slices_vanish_when_only_the_service_stops(node: ClaimNode, drivers: NodeDrivers, layout: str) -> None:
    gpu = await drivers.start("gpu", service_path=socket_in(node, layout))
    await publish(node, gpu.name)
    await gpu.stop_service()
    await until_wiped(node)
    assert (await node.driver_states())[gpu.name]["state"] == "Disconnected"


@pytest.mark.spec("DN-9.2.27")
async def test_slices_vanish_of_a_driver_whose_service_never_came(node: ClaimNode, drivers: NodeDrivers) -> None:
    gpu = await drivers.add("gpu")
    await publish(node, gpu.name)
    await gpu.start_registrar()
    await gpu.until_registered()
    await until_wiped(node)


@pytest.mark.long
@pytest.mark.spec("DN-9.2.15")
@pytest.mark.parametrize("layout", LAYOUTS)
async def test_a_pod_runs_on_without_the_service_and_ends_with_it(
    node: ClaimNode, drivers: NodeDrivers, layout: str
) -> None:
    gpu = await drivers.start("gpu", service_path=socket_in(node, layout))
    await publish(node, gpu.name)
    before = await node.run_pod("train", gpu.name)
    await gpu.stop_service()
    await until_wiped(node)
    assert await node.pod("train") == before
    await node.ask_to_delete("train")
    await node.until_failed("train", gpu.name, "FailedUnprepareDynamicResources")
    assert await node.pod("train") is not None
    await gpu.start_service()
    await node.until_gone("train")
    assert len(gpu.asked(UNPREPARE)) == 1


# Back in time


@pytest.mark.spec("DN-9.2.28")
@pytest.mark.parametrize("layout", LAYOUTS)
async def test_slices_are_untouched_when_the_service_is_back_in_time(
    patient_node: ClaimNode, patient_drivers: NodeDrivers, layout: str
) -> None:
    node = patient_node
    gpu = await patient_drivers.start("gpu", service_path=socket_in(node, layout))
    before = await publish(node, gpu.name)
    await gpu.stop_service()
    await until_threatened(node, gpu.name)
    await gpu.start_service()
    await until_threatened(node, gpu.name, False)
    assert await node.slices() == before


@pytest.mark.spec("DN-9.3.15")
@pytest.mark.spec("DN-9.3.16")
@pytest.mark.parametrize("stays", ["new", "old"])
async def test_in_an_update_pods_are_served_by_the_instance_that_stays_and_slices_by_nobody_touched(
    patient_node: ClaimNode, patient_drivers: NodeDrivers, stays: str
) -> None:
    node = patient_node
    old = await patient_drivers.start("gpu", keep=True)
    before = await publish(node, old.name)
    await node.run_pod("first", old.name)
    new = await patient_drivers.start("gpu", instance="new", keep=True)
    await until(node.driver_states, lambda states: states.get(f"{old.name}~2", {}).get("state") == "Standby")
    await node.run_pod("second", old.name, device="dev-1")
    assert [len(each.asked(PREPARE)) for each in (old, new)] == [1, 1]
    leaves, remains = (old, new) if stays == "new" else (new, old)
    await leaves.stop()
    await until(node.driver_states, lambda states: f"{old.name}~2" not in states)
    assert (await node.driver_states())[old.name]["state"] == "Connected"
    asked = len(remains.asked(PREPARE))
    await node.run_pod("third", old.name, device="dev-2")
    assert len(remains.asked(PREPARE)) == asked + 1
    await node.delete("first", "second", "third")
    assert len(remains.asked(UNPREPARE)) == 3
    assert await node.slices() == before


@pytest.mark.spec("DN-9.3.17")
async def test_slices_survive_an_update_that_stops_the_driver_for_a_while(
    patient_node: ClaimNode, patient_drivers: NodeDrivers
) -> None:
    node = patient_node
    gpu = await patient_drivers.start("gpu")
    before = await publish(node, gpu.name)
    await gpu.stop()
    await until_threatened(node, gpu.name)
    assert (await node.driver_states())[gpu.name]["state"] == "Missing"
    await gpu.start()
    await until_threatened(node, gpu.name, False)
    await node.run_pod("train", gpu.name)
    assert await node.slices() == before


@pytest.mark.spec("DN-9.3.17")
async def test_slices_go_with_the_last_instance_of_a_driver(node: ClaimNode, drivers: NodeDrivers) -> None:
    first, second = await drivers.start("gpu"), await drivers.start("gpu", instance="new")
    before = await publish(node, first.name)
    await first.stop()
    await until(node.driver_states, lambda states: f"{first.name}~2" not in states)
    assert await node.slices() == before
    await second.stop()
    await until_wiped(node)


@pytest.mark.spec("DN-9.3.14")
async def test_a_pod_waits_for_its_driver_and_runs_when_that_starts(node: ClaimNode, drivers: NodeDrivers) -> None:
    gpu = await drivers.add("gpu")
    await node.add_claim("train", given(gpu.name))
    await node.add_pod(claim_pod("train", "train"))
    text = await node.until_failed("train", "")
    assert text == f"Failed to prepare dynamic resources: DRA driver {gpu.name} is not registered"
    assert node.claim_checkpoint() == {}
    await gpu.start()
    await node.until_phase("train", "Running")


# Who is scheduled meanwhile


async def drivers_of(node: ClaimNode) -> list[Document]:
    """Return what the Node says about its drivers."""
    (found,) = await node.items("/api/v1/nodes")
    drivers: list[Document] = json.loads(found["metadata"].get("annotations", {}).get("devlet.dev/drivers", "[]"))
    return drivers


@pytest.mark.parametrize("restarted", [False, True], ids=["the driver stops", "devlet is restarted without it"])
async def test_a_pod_waits_while_its_driver_is_gone_and_is_placed_when_it_is_back(root: Path, restarted: bool) -> None:
    configuration = "timeouts:\n  sliceWipeDelay: 10m\n"
    async with ClaimNode(root, configuration, control=True) as node, node_drivers(node) as drivers:
        gpu = await drivers.start("gpu")
        await publish(node, gpu.name)
        gpu.set_devices("train", [PreparedDevice(NODE, "dev-0")])
        await node.call("POST", "/apis/resource.k8s.io/v1/deviceclasses", device_class(gpu.name))
        await until(lambda: drivers_of(node), lambda found: bool(found) and "registeredSince" in found[0])
        if restarted:
            await node.stop()
        await gpu.stop()
        if restarted:
            await node.start()
            assert "goneSince" in (await drivers_of(node))[0]
        await until(lambda: drivers_of(node), lambda found: "goneSince" in found[0])
        await node.call("POST", CLAIMS, claim("train", {"name": "gpu", "exactly": {"deviceClassName": gpu.name}}))
        await node.create(claim_pod("train", "train"))
        waits = await node.until_pod("train", lambda pod: bool(pod["status"].get("conditions")))
        (condition,) = (each for each in waits["status"]["conditions"] if each["type"] == "PodScheduled")
        assert f"not connected: {gpu.name} on {NODE}" in condition["message"]
        assert (await node.call("GET", f"{CLAIMS}/train")).get("status", {}).get("allocation") is None
        await gpu.start()
        await node.until_phase("train", "Running")
        assert [each["name"] for each in await drivers_of(node)] == [gpu.name]
