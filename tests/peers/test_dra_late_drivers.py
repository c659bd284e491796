"""Drivers that are not there yet, or are there no more: pods that wait for one start when it comes, and its slices go
some time after it, but not before."""

import shutil
import tempfile
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devlet.testing.node_process import NODE
from devlet.testing.waiting import until
from tests.support.claim_node import NOT_PREPARED, SLICES
from tests.support.cluster_contract.specimens import resource_slice
from tests.support.peers.hooked_driver import Part
from tests.support.peers.peer_node import EXAMPLE, TEST, PeerNode, device

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

SETTINGS = "timeouts: {sliceWipeDelay: 2s, prepareRetry: 10m}\n"  # a pod that is not woken would sleep for long


@pytest.fixture(scope="module")
async def running(peers: "Peers") -> AsyncIterator[PeerNode]:
    peers.need("dra-example-kubeletplugin", "kubelet-claims")
    root = Path(tempfile.mkdtemp(prefix="dv"))
    async with PeerNode(root, peers.binaries, SETTINGS) as node:
        yield node
    shutil.rmtree(root)


@pytest.fixture
async def node(running: PeerNode) -> AsyncIterator[PeerNode]:
    """There are no drivers when the test begins, and no slices."""
    await until(running.driver_states, lambda found: not any("registered" in each for each in found.values()))
    await running.call("DELETE", SLICES)
    yield running
    assert "Traceback" not in running.log


async def failed(node: PeerNode, pod: str) -> int:
    """How often its claims could not be prepared."""
    events = await node.events(NOT_PREPARED)
    return sum(each["count"] for each in events if each["involvedObject"]["name"] == pod)


async def until_gone(node: PeerNode, driver: str) -> None:
    await until(partial(node.own_slices, driver), lambda left: not left)


# Pods that wait


@pytest.mark.spec("DN-11.11")
@pytest.mark.spec("DN-9.2.14")
async def test_pods_start_as_soon_as_their_drivers_are_there(node: PeerNode) -> None:
    """One is not registered, the other is and does not answer. Without a driver that comes up the next try of both pods
    would be minutes away."""
    async with node.test_driver(stopped=True) as hooked:
        await hooked.running.start(Part.REGISTRAR)
        await node.submit("a", device(EXAMPLE))
        await node.submit("b", device(TEST))
        await node.until_failed("a", f"DRA driver {EXAMPLE} is not registered")
        await node.until_failed("b", f"DRA driver {TEST} is registered, but not connected")
        assert {name: each["phase"] for name, each in (await statuses(node)).items()} == {
            "a": "Pending",
            "b": "Pending",
        }
        await hooked.running.start(Part.SERVICE)
        await node.until_phase("b", "Running")
        async with node.example_driver():
            await node.until_up(EXAMPLE)
            await node.until_phase("a", "Running")
            await node.leave_nothing(hooked.running)


async def statuses(node: PeerNode) -> dict[str, dict[str, str]]:
    return {name: each["status"] for name, each in (await node.pods()).items()}


async def test_a_pod_goes_when_the_driver_is_back_that_has_to_unprepare_its_claim(node: PeerNode) -> None:
    async with node.example_driver() as driver:
        await node.until_up(EXAMPLE)
        await node.run("train", device(EXAMPLE))
        await driver.kill()
        await until(node.driver_states, lambda found: found[EXAMPLE]["state"] != "Connected")
        await node.ask_to_delete("train")
        await node.until_failed("train", EXAMPLE, "FailedUnprepareDynamicResources")
        await driver.start()
        await node.until_up(EXAMPLE)
        await node.until_gone("train")
        await node.leave_nothing()
        assert node.example_claims() == []


# Slices


@pytest.mark.spec("DN-9.3.01")
@pytest.mark.spec("DN-9.3.09")
@pytest.mark.parametrize("name", [EXAMPLE, TEST])
async def test_a_driver_has_one_slice_that_belongs_to_the_node(node: PeerNode, name: str) -> None:
    async with node.example_driver() if name == EXAMPLE else node.test_driver():
        await node.until_up(name)
        before = await node.until_published(name)
        await node.run("train", device(name))
        await node.leave_nothing()
        [(found, version)] = (await node.own_slices(name)).items()
        assert {found: version} == before
        slice_ = (await node.slices())[found]
    [owner] = slice_["metadata"]["ownerReferences"]
    uid = (await node.call("GET", f"/api/v1/nodes/{NODE}"))["metadata"]["uid"]
    assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == ("Node", NODE, uid, True)
    assert (slice_["spec"]["nodeName"], slice_["spec"]["pool"]["name"]) == (NODE, NODE)
    assert slice_["spec"]["pool"]["resourceSliceCount"] == 1


@pytest.mark.parametrize("what", ["devlet", "driver"])
async def test_slices_survive_a_restart(node: PeerNode, what: str) -> None:
    async with node.example_driver() as driver:
        await node.until_up(EXAMPLE)
        slices = await node.until_published(EXAMPLE)
        killed = node if what == "devlet" else driver
        await killed.kill()
        assert what == "devlet" or await node.own_slices(EXAMPLE) == slices
        await killed.start()
        await until(node.driver_states, lambda found: found[EXAMPLE]["state"] == "Connected")
        await until(node.driver_states, lambda found: "wipeAt" not in found[EXAMPLE])
        await node.run("train", device(EXAMPLE))
        assert await node.own_slices(EXAMPLE) == slices
        await node.leave_nothing()


@pytest.mark.spec("DN-9.2.24")
@pytest.mark.spec("DN-9.2.25")
@pytest.mark.parametrize("how", ["stopped", "killed", "killed while devlet is down"])
async def test_the_slices_of_a_driver_that_is_gone_go_and_no_others(node: PeerNode, how: str) -> None:
    other = resource_slice("other", driver=EXAMPLE, node_name="n2")
    await node.call("POST", SLICES, other)
    async with node.example_driver() as driver:
        await node.until_up(EXAMPLE)
        await until(partial(node.own_slices, EXAMPLE), lambda found: len(found) == 2)
        if "devlet" in how:
            await node.kill()
        await (driver.stop() if how == "stopped" else driver.kill())
        if "devlet" in how:
            await node.start()
        assert len(await node.own_slices(EXAMPLE)) == 2
        await until(partial(node.own_slices, EXAMPLE), lambda left: list(left) == ["other"])


@pytest.mark.spec("DN-9.2.15")
@pytest.mark.spec("DN-9.2.26")
async def test_a_service_that_stops_loses_its_slices_and_unprepares_when_it_is_back(node: PeerNode) -> None:
    async with node.test_driver() as driver:
        await node.until_up(TEST)
        await node.until_published(TEST)
        await node.run("train", device(TEST))
        await driver.running.stop(Part.SERVICE)
        await until_gone(node, TEST)
        assert (await statuses(node))["train"]["phase"] == "Running"
        await node.ask_to_delete("train")
        await driver.running.start(Part.SERVICE)
        await node.until_gone("train")
        await node.until_published(TEST)
        (spec,) = node.specs()  # its claims are forgotten with the service
        (node.root / "cdi" / spec).unlink()
        await node.leave_nothing(driver.running)


@pytest.mark.spec("DN-9.2.27")
async def test_a_slice_of_a_driver_that_only_registers_goes(node: PeerNode) -> None:
    async with node.test_driver(stopped=True) as driver:
        await driver.running.start(Part.REGISTRAR)
        await until(driver.running.is_registered)
        await node.call("POST", SLICES, resource_slice("by-hand", driver=TEST, node_name=NODE))
        await until_gone(node, TEST)


@pytest.mark.spec("DN-9.2.28")
async def test_slices_stay_as_they_are_if_the_service_is_soon_back(node: PeerNode) -> None:
    async with node.test_driver() as driver:
        await node.until_up(TEST)
        slices = await node.until_published(TEST)
        await driver.running.stop(Part.SERVICE)
        waiting = await until(node.driver_states, lambda found: "wipeAt" in found[TEST])
        assert waiting[TEST]["state"] == "Disconnected"
        await driver.running.start(Part.SERVICE)
        await until(node.driver_states, lambda found: "wipeAt" not in found[TEST])
        assert await node.own_slices(TEST) == slices
        await node.run("train", device(TEST))
        await node.leave_nothing(driver.running)
        assert await node.own_slices(TEST) == slices
