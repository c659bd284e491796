"""The health of devices of claims on a whole node, from the driver's stream to the pod's status."""

from pathlib import Path

import pytest

from devlet.objects.documents import Document
from devlet.testing.fake_dra_driver import PREPARE, WATCH, DeviceReport, FakeDraDriver, HealthService, PreparedDevice
from devlet.testing.node_process import devices_in_status
from tests.support.claim_node import ClaimNode, claim_pod, given
from tests.support.node_drivers import NodeDrivers

pytestmark = [pytest.mark.anyio]

SERVICES = (HealthService.V1ALPHA1,)
SHARES = ("6f0b1ef0-7c5c-4b1a-9a2c-2c5f2ab7b1b0", "0c9e6c1e-54c1-4b9f-8f0a-9d1f3f1c2d3e")


@pytest.fixture
async def gpu(drivers: NodeDrivers) -> FakeDraDriver:
    """A driver that streams the health of its devices."""
    driver = await drivers.start("gpu", health_services=SERVICES)
    await driver.health.until_streams(1)
    return driver


def report(device: str, health: str, message: str = "") -> DeviceReport:
    return DeviceReport("pool", device, health, message=message)


async def until_health(node: ClaimNode, pod: str, *health: str) -> None:
    """Of the pod's devices, in their order."""
    await node.until_pod(pod, lambda document: shown(document) == list(health))


def shown(document: Document) -> list[str]:
    return [health for devices in devices_in_status(document).values() for health in devices.values()]


@pytest.mark.spec("DN-9.2.29")
@pytest.mark.parametrize("service", HealthService)
async def test_the_health_of_a_device_is_followed_in_the_pod(
    node: ClaimNode, drivers: NodeDrivers, service: HealthService
) -> None:
    gpu = await drivers.start("gpu", health_services=(service,))
    await node.run_pod("train", gpu.name)
    for health in ("Healthy", "Unhealthy", "Healthy"):
        gpu.health.set([report("dev-train", health)])
        await until_health(node, "train", health)
    document = await node.pod("train") or {}
    [uid] = gpu.prepared
    assert list(devices_in_status(document)["claim:train"]) == [gpu.prepared.cdi_id(uid)]
    assert document["status"]["containerStatuses"][0]["restartCount"] == 0


@pytest.mark.spec("DN-9.2.30")
async def test_health_and_calls_share_one_connection(node: ClaimNode, gpu: FakeDraDriver) -> None:
    await node.run_pod("train", gpu.name)
    gpu.health.set([report("dev-train", "Healthy")])
    await until_health(node, "train", "Healthy")
    await node.delete("train")
    assert gpu.connections == 1
    assert len(gpu.asked(WATCH)) == 1


@pytest.mark.spec("DN-9.2.31")
async def test_health_is_unknown_while_the_driver_is_away(node: ClaimNode, gpu: FakeDraDriver) -> None:
    gpu.health.set([report("dev-train", "Healthy")])
    await node.run_pod("train", gpu.name)
    await until_health(node, "train", "Healthy")
    await gpu.stop()
    await until_health(node, "train", "Unknown")
    await gpu.start()
    await until_health(node, "train", "Healthy")


@pytest.mark.spec("DN-9.2.32")
async def test_after_a_lost_connection_a_new_pod_is_prepared_and_its_health_is_known(
    node: ClaimNode, gpu: FakeDraDriver
) -> None:
    gpu.health.set([report("dev-first", "Healthy"), report("dev-second", "Unhealthy")])
    await node.run_pod("first", gpu.name)
    await until_health(node, "first", "Healthy")
    await gpu.stop_service()
    await until_health(node, "first", "Unknown")
    await gpu.start_service()
    await node.until_connected(gpu)
    await node.run_pod("second", gpu.name)
    await until_health(node, "second", "Unhealthy")
    await until_health(node, "first", "Healthy")
    assert gpu.connections > 1


@pytest.mark.spec("DN-9.2.33")
async def test_the_health_of_devices_of_three_pods_at_once_is_told_to_each(node: ClaimNode, gpu: FakeDraDriver) -> None:
    pods = ("a", "b", "c")
    for name in pods:
        await node.add_claim(name, given(gpu.name, f"dev-{name}"))
        await node.add_pod(claim_pod(name, name))
    for health in (("Healthy", "Unhealthy", "Unknown"), ("Unhealthy", "Healthy", "Healthy")):
        gpu.health.set([report(f"dev-{name}", each) for name, each in zip(pods, health, strict=True)])
        for name, each in zip(pods, health, strict=True):
            await until_health(node, name, each)


@pytest.mark.spec("DN-9.2.35")
async def test_all_shares_of_a_device_are_as_healthy_as_the_device(node: ClaimNode, gpu: FakeDraDriver) -> None:
    for name, share in zip(("a", "b"), SHARES, strict=True):
        gpu.set_devices(name, [PreparedDevice("pool", "dev-0", share, requests=("req",))])
        await node.add_claim(name, given(gpu.name, "dev-0", share=share))
        await node.add_pod(claim_pod(name, name))
    for health in ("Healthy", "Unhealthy", "Healthy"):
        gpu.health.set([report("dev-0", health)])
        for name in ("a", "b"):
            await until_health(node, name, health)


@pytest.mark.spec("DN-9.3.27")
async def test_what_the_driver_says_of_a_device_is_in_the_pod_as_long_as_it_says_it(
    node: ClaimNode, gpu: FakeDraDriver
) -> None:
    await node.run_pod("train", gpu.name)
    for health, message in (("Unhealthy", "too hot"), ("Unhealthy", "on fire"), ("Healthy", "")):
        gpu.health.set([report("dev-train", health, message)])

        def holds(document: Document, health: str = health, message: str = message) -> bool:
            return said(document) == [(health, message)]

        await node.until_pod("train", holds)


def said(document: Document) -> list[tuple[str, str]]:
    statuses = document["status"]["containerStatuses"]
    entries = [one for each in statuses[0].get("allocatedResourcesStatus", []) for one in each["resources"]]
    return [(each["health"], each.get("message", "")) for each in entries]


@pytest.mark.spec("DN-9.2.34")
async def test_without_the_feature_gate_nobody_asks_for_health(root: Path) -> None:
    async with (
        ClaimNode(root, "featureGates:\n  ResourceHealthStatus: false\n") as node,
        FakeDraDriver(root, health_services=SERVICES) as gpu,
    ):
        gpu.health.set([report("dev-train", "Unhealthy")])
        await node.run_pod("train", gpu.name)
        await node.finish("train")
        document = await node.until_phase("train", "Succeeded")
        assert shown(document) == []
        assert "allocatedResourcesStatus" not in document["status"]["containerStatuses"][0]
        assert gpu.asked(WATCH) == [] and len(gpu.asked(PREPARE)) == 1
