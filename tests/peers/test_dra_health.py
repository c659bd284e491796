"""What Kubernetes' DRA test driver says of its devices' health is in the status of the pods that have them. The driver
repeats it every two seconds."""

import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devlet.objects.documents import Document
from devlet.testing.node_process import NODE
from devlet.testing.restarts import Restarts
from devlet.testing.waiting import until
from tests.support.peers.hooked_driver import HookedDriver, Method
from tests.support.peers.peer_node import TEST, PeerNode, device

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

SETTINGS = "timeouts: {healthRetry: 200ms}\n"
SHARE = "6f0b1ef0-7c5c-4b1a-9a2c-2c5f2ab7b1b0"


@pytest.fixture(scope="module")
async def running(peers: "Peers") -> AsyncIterator[tuple[PeerNode, Restarts[HookedDriver]]]:
    peers.need("kubelet-claims")
    root = Path(tempfile.mkdtemp(prefix="dv"))
    async with PeerNode(root, peers.binaries, SETTINGS) as node, node.test_driver() as driver:
        yield node, driver
    shutil.rmtree(root)


@pytest.fixture
async def node(running: tuple[PeerNode, Restarts[HookedDriver]]) -> AsyncIterator[PeerNode]:
    node, driver = running
    await node.until_up(TEST)
    yield node
    await node.leave_nothing(driver.running)


@pytest.fixture
def driver(running: tuple[PeerNode, Restarts[HookedDriver]]) -> Restarts[HookedDriver]:
    return running[1]


def statuses(pod: Document) -> list[dict[str, str]]:
    """Of the devices of its first container."""
    container = pod.get("status", {}).get("containerStatuses", [{}])[0]
    return [each for entry in container.get("allocatedResourcesStatus", ()) for each in entry["resources"]]


def health(pod: Document) -> list[tuple[str, str]]:
    return [(each["health"], each.get("message", "")) for each in statuses(pod)]


async def until_healthy(node: PeerNode, pod: str, status: str, message: str = "") -> Document:
    return await node.until_pod(pod, lambda found: health(found) == [(status, message)])


@pytest.mark.spec("DN-9.2.29")
async def test_a_device_falls_ill_and_recovers(node: PeerNode, driver: Restarts[HookedDriver]) -> None:
    uid = await node.run("train", device(TEST, "device-03"))
    await until_healthy(node, "train", "Unknown")
    for status in ("Healthy", "Unhealthy", "Healthy"):
        await driver.running.set_health(NODE, "device-03", status)
        found = await until_healthy(node, "train", status)
    [container] = found["status"]["containerStatuses"]
    [entry] = container["allocatedResourcesStatus"]
    assert entry["name"] == "claim:train"
    assert [each["resourceID"] for each in entry["resources"]] == [f"{TEST}/test=claim-{uid}-req"]
    assert container["restartCount"] == 0 and "running" in container["state"]


@pytest.mark.spec("DN-9.3.27")
async def test_what_the_driver_says_about_it_is_told_too(node: PeerNode, driver: Restarts[HookedDriver]) -> None:
    await node.run("train", device(TEST))
    for status, message in [("Unhealthy", "too hot"), ("Unhealthy", "on fire"), ("Healthy", "")]:
        await driver.running.set_health(NODE, "device-00", status, message)
        await until_healthy(node, "train", status, message)


@pytest.mark.spec("DN-9.2.33")
async def test_three_pods_are_told_of_their_own_devices(node: PeerNode, driver: Restarts[HookedDriver]) -> None:
    for number in range(3):
        await node.submit(f"p{number}", device(TEST, f"device-0{number}"))
    for turn in range(2):
        wanted = ["Healthy" if number % 2 == turn else "Unhealthy" for number in range(3)]
        for number, status in enumerate(wanted):
            await driver.running.set_health(NODE, f"device-0{number}", status, f"turn {turn}")
        for number, status in enumerate(wanted):
            await until_healthy(node, f"p{number}", status, f"turn {turn}")


@pytest.mark.spec("DN-9.2.35")
async def test_a_share_of_a_device_is_as_healthy_as_the_device(node: PeerNode, driver: Restarts[HookedDriver]) -> None:
    await node.run("train", device(TEST, share=SHARE))
    for status in ("Unhealthy", "Healthy"):
        await driver.running.set_health(NODE, "device-00", status)
        await until_healthy(node, "train", status)


@pytest.mark.spec("DN-9.2.31")
@pytest.mark.spec("DN-9.2.32")
@pytest.mark.parametrize("how", ["stopped", "killed"])
async def test_without_the_driver_nothing_is_known_and_with_it_all_is_as_before(
    node: PeerNode, driver: Restarts[HookedDriver], how: str
) -> None:
    uid = await node.run("train", device(TEST))
    await driver.running.set_health(NODE, "device-00", "Healthy")
    await until_healthy(node, "train", "Healthy")
    await (driver.stop() if how == "stopped" else driver.kill())
    await until_healthy(node, "train", "Unknown")
    await driver.start()
    await driver.running.set_health(NODE, "device-00", "Healthy", "again")
    await until_healthy(node, "train", "Healthy", "again")
    await node.run("new", device(TEST, "device-01"))
    await driver.running.set_health(NODE, "device-01", "Unhealthy")
    await until_healthy(node, "new", "Unhealthy")
    (node.root / "cdi" / f"{TEST}-{uid}-req.json").unlink()  # the driver does not know of it any more


async def test_a_stream_that_fails_is_opened_again(node: PeerNode, driver: Restarts[HookedDriver]) -> None:
    await node.run("train", device(TEST))
    await driver.running.set_health(NODE, "device-00", "Healthy")
    await until_healthy(node, "train", "Healthy")
    await driver.running.refuse(Method.WATCH_HEALTH, "INTERNAL", "no streams")
    await until_healthy(node, "train", "Unknown")
    await driver.running.accept(Method.WATCH_HEALTH)
    await until_healthy(node, "train", "Healthy")


async def test_health_is_known_again_after_a_restart_of_devlet(node: PeerNode, driver: Restarts[HookedDriver]) -> None:
    await node.run("train", device(TEST))
    await driver.running.set_health(NODE, "device-00", "Unhealthy", "too hot")
    await until_healthy(node, "train", "Unhealthy", "too hot")
    await node.kill()
    await node.start()
    await driver.running.set_health(NODE, "device-00", "Healthy", "cold")
    await until_healthy(node, "train", "Healthy", "cold")


@pytest.mark.spec("DN-11.07")
async def test_the_end_of_an_old_instance_takes_nothing_from_the_new_one(peers: "Peers", root: Path) -> None:
    peers.need("kubelet-claims")
    async with PeerNode(root, peers.binaries, SETTINGS) as node:
        async with node.test_driver(uid="old") as old, node.test_driver(uid="new") as new:
            await until(node.driver_states, lambda found: len(found) == 2)
            await node.run("train", device(TEST))
            for each in (old, new):
                await each.running.set_health(NODE, "device-00", "Healthy", "fine")
            before = await until_healthy(node, "train", "Healthy", "fine")
            await old.stop()
            await until(node.driver_states, lambda found: len(found) == 1)
            await node.run("later", device(TEST, "device-01"))
            after = (await node.pods())["train"]  # it was not even written anew
            assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
            await node.leave_nothing(new.running)


@pytest.mark.spec("DN-9.2.34")
async def test_with_the_gate_off_pods_are_told_nothing(peers: "Peers", root: Path) -> None:
    peers.need("kubelet-claims")
    gate = ["--feature-gates=ResourceHealthStatus=false"]
    async with PeerNode(root, peers.binaries, SETTINGS, arguments=gate) as node, node.test_driver() as driver:
        await node.until_up(TEST)
        await node.run("train", device(TEST))
        await driver.running.set_health(NODE, "device-00", "Unhealthy")
        await node.run("later", device(TEST, "device-01"))
        assert [statuses(each) for each in (await node.pods()).values()] == [[], []]
        assert await driver.running.calls(Method.WATCH_HEALTH) == []
        await node.leave_nothing(driver.running)
