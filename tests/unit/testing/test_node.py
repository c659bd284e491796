"""A node in the process of the test."""

import gc
import os
from pathlib import Path

import anyio
import pytest
import yaml

from devlet.cluster.client import MergePatch
from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import connected
from devlet.errors import Forbidden, InvalidInput, NotFound, Unavailable
from devlet.objects.kinds import DEVICE_CLASSES, PODS, RESOURCE_SLICES
from devlet.testing.builders import claim, device_class, resource_slice
from devlet.testing.dra_script import PREPARE
from devlet.testing.fake_clock import FakeClock
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.fake_dra_driver import FakeDraDriver
from devlet.testing.node import Node
from devlet.testing.waiting import deadline, until

pytestmark = pytest.mark.anyio

GPU = "vendor.com/gpu"
DRIVER = "gpu.example.com"


async def test_a_pod_gets_a_device_of_a_device_plugin() -> None:
    async with Node.start() as node, FakeDevicePlugin(node.device_plugins, GPU, 2, follow=True):
        await node.until_registered(GPU)
        await node.until_healthy(GPU, 2)
        await node.create_pod("train", limits={GPU: 2})
        await node.until_running("train")
        assert (await node.holders())["train"]["main"]["devices"] == [{"resource": GPU, "ids": ["dev-0", "dev-1"]}]
        assert await node.environment("train") == {"VENDOR_COM_GPU": "dev-0,dev-1"}
        assert node.pod_resources.is_socket() and node.socket.is_socket()


async def test_a_pod_gets_a_device_of_a_dra_driver_by_way_of_scheduler_and_controllers() -> None:
    async with Node.start() as node, FakeDraDriver(node.root, DRIVER) as driver:
        await node.until_registered(DRIVER)
        await node.create_slice(["dev-0"])
        assert [each["name"] for each in await node.until_published(DRIVER)] == ["dev-0"]
        await node.create_class()
        await node.create_template("one")
        await node.create_pod("train", template="one")
        await node.until_running("train")
        [made] = await node.list("ResourceClaim")
        assert await node.until_allocated(made["metadata"]["name"]) == ["dev-0"]
        assert list(driver.prepared) == [made["metadata"]["uid"]]
        assert node.cdi.is_dir() and node.plugins_registry.is_dir() and (node.plugins / DRIVER).is_dir()
        await node.delete("Pod", "train")
        await node.until_gone("train")
        assert not driver.prepared
    assert not node.root.exists()


async def test_what_was_given_out_outlives_a_restart_and_a_crash() -> None:
    async with Node.start() as node, FakeDevicePlugin(node.device_plugins, GPU, 2, follow=True):
        await node.until_healthy(GPU, 2)
        await node.create_pod("train", limits={GPU: 1})
        await node.until_running("train")
        before, address = await node.held(), node.kubeconfig.read_text()
        await node.restart()
        await node.until_healthy(GPU, 2)
        assert (await node.held(), node.kubeconfig.read_text()) == (before, address)
        await node.crash()
        with pytest.raises(Unavailable):
            _ = node.cluster
        await node.restart()
        await node.until_healthy(GPU, 2)
        assert await node.held() == before
        await node.stop()
        await node.restart()
        await node.until_healthy(GPU, 2)


async def test_a_crash_does_not_wait_for_a_driver_that_hangs() -> None:
    async with Node.start(timeouts={"draCall": 600}) as node, FakeDraDriver(node.root, DRIVER) as driver:
        driver.hang(PREPARE)
        await node.until_registered(DRIVER)
        await node.create_slice(["dev-0"])
        await node.create(device_class(), claim("c"))
        await node.create_pod("train", claim="c")
        await driver.until_asked(PREPARE)
        with deadline():
            await node.crash()
        driver.recover()
        await node.restart()
        await node.until_running("train")


async def test_a_root_that_is_given_is_kept_and_continued(root: Path) -> None:
    async with Node.start(root / "new") as node:
        await node.create_claim("c")
    async with Node.start(root / "new") as node:
        assert (await node.get("ResourceClaim", "c"))["metadata"]["name"] == "c"


async def test_many_nodes_run_side_by_side_and_know_nothing_of_each_other() -> None:
    names: dict[str, list[str]] = {}

    async def live(name: str) -> None:
        async with Node.start(name=name) as node:
            await node.create_pod(f"pod-of-{name}")
            await node.until_running(f"pod-of-{name}")
            names[name] = [*(await node.pods()), *(each["metadata"]["name"] for each in await node.list("Node"))]

    async with anyio.create_task_group() as tasks:
        for i in range(8):
            tasks.start_soon(live, f"n{i}")
    assert names == {f"n{i}": [f"pod-of-n{i}", f"n{i}"] for i in range(8)}


async def test_nothing_of_the_process_is_changed_by_a_node() -> None:
    async def state() -> tuple[int, dict[str, str], str, int]:
        old = os.umask(0o022)
        os.umask(old)
        gc.collect()  # gRPC closes what it polls with when the last of its objects is gone
        return old, dict(os.environ), os.getcwd(), len(os.listdir("/proc/self/fd"))

    async with Node.start():
        pass
    before = await state()
    async with Node.start() as node:
        await node.create_pod("p")
        await node.until_running("p")
    await until(state, lambda found: found == before)


async def test_without_control_no_pod_is_scheduled() -> None:
    async with Node.start(control=False) as node:
        await node.create_pod("waits")
        await node.create_pod("runs", node=node.name)
        await node.until_running("runs")
        assert "nodeName" not in (await node.get("Pod", "waits"))["spec"]


async def test_time_passes_only_in_advance() -> None:
    async with Node.start(clock=FakeClock.at_present()) as node:
        await node.create_pod("job", run_for="1h", restart="Never")
        await node.until_running("job")
        await node.advance(3600)
        await node.until_phase("job", "Succeeded")
    async with Node.start() as node:
        with pytest.raises(InvalidInput, match="at_present"):
            await node.advance(1)


async def test_settings_are_those_of_the_configuration_file() -> None:
    configuration = {"maxPods": 7, "topologyPolicy": "single-numa-node"}
    async with Node.start(timeouts={"draCall": 1.5}, configuration=configuration) as node:
        written = yaml.safe_load((node.root / "devlet.yaml").read_text())
        assert written["timeouts"] == {"draCall": 1.5}
        assert (await node.get("Node", node.name))["status"]["allocatable"]["pods"] == "7"
    with pytest.raises(InvalidInput, match=r'unknown key "timeouts\.draCal"; did you mean "timeouts\.draCall"'):
        async with Node.start(timeouts={"draCal": 1}):
            pass


async def test_an_error_of_the_test_stays_itself() -> None:
    with pytest.raises(KeyError):
        async with Node.start():
            raise KeyError("mine")


async def test_the_administrator_may_do_anything_over_https() -> None:
    async with Node.start() as node, connected(kubeconfig.connection([node.kubeconfig])) as cluster:
        await cluster.create(DEVICE_CLASSES, device_class())
        assert await node.get("DeviceClass", DRIVER)


async def test_a_driver_may_do_what_drivers_may() -> None:
    async with Node.start() as node:
        path = await node.driver_kubeconfig(DRIVER)
        assert await node.driver_kubeconfig(DRIVER) == path
        async with connected(kubeconfig.connection([path])) as cluster:
            await cluster.create(RESOURCE_SLICES, resource_slice(node.name, 1))
            await node.create_pod("p")
            with pytest.raises(Forbidden):
                await cluster.patch(PODS, "p", MergePatch({"metadata": {"labels": {"a": "b"}}}), "default")
        with pytest.raises(InvalidInput, match="Not_A_Name"):
            await node.driver_kubeconfig("Not_A_Name")


async def test_a_driver_that_does_not_come_is_named() -> None:
    async with Node.start() as node:
        with pytest.raises(AssertionError, match=r"gpu\.example\.com did not register: not within 0\.2 s"):
            await node.until_registered(DRIVER, within=0.2)
        with pytest.raises(NotFound):
            await node.get("Pod", "p")
