"""The bundled examples as programs beside a node: pods get what they should."""

import re
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from devlet.kit.processes import RunningProcess, process
from devlet.objects.documents import Document
from devlet.sdk import metadata
from devlet.testing import builders, warm_start
from devlet.testing.node_process import NODE, NodeProcess, devices_in_status
from devlet.testing.waiting import until
from tests.support.fake_usb import FakeUsb

pytestmark = pytest.mark.anyio

CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"

_numbers = count(1)


@pytest.fixture(scope="module")
async def node() -> AsyncIterator[NodeProcess]:
    root = Path(tempfile.mkdtemp(prefix="dv"))
    async with NodeProcess(root, "timeouts:\n  sliceWipeDelay: 500ms\n", control=True) as node:
        yield node
    shutil.rmtree(root, ignore_errors=True)


def example(node: NodeProcess, name: str, *flags: str | Path) -> AbstractAsyncContextManager[RunningProcess]:
    paths = {"KUBELET_ROOT": node.root, "KUBECONFIG": node.root / "kubeconfig", "CDI_ROOT": node.root / "cdi"}
    return process(
        [sys.executable, "-m", f"devlet.examples.{name}", *flags],
        log=node.root / f"{name}-{next(_numbers)}.log",
        name=name,
        env={key: str(path) for key, path in paths.items()} | {"NODE_NAME": NODE},
        start=warm_start.start,
    )


async def published(node: NodeProcess, driver: str, number: int) -> list[str]:
    """The names of its devices, once there are so many."""

    async def names() -> list[str]:
        slices = [each["spec"] for each in (await node.slices()).values() if each["spec"]["driver"] == driver]
        return [device["name"] for each in slices for device in each.get("devices", [])]

    return await until(names, lambda found: len(found) == number)


async def ask(node: NodeProcess, driver: str, name: str, **claim: Any) -> None:
    """A pod with a claim of the same name. The class is made with the first."""
    if driver not in {each["metadata"]["name"] for each in await node.items(CLASSES)}:
        await node.call("POST", CLASSES, builders.device_class(driver=driver))
    requests = [builders.request(device_class=driver, **claim.pop("request", {}))]
    await node.call("POST", CLAIMS, builders.claim(name, *requests, **claim))
    await node.create(builders.pod(name, claim=name))


async def end(node: NodeProcess, *names: str) -> None:
    await node.delete(*names)
    for name in names:
        await node.call("DELETE", f"{CLAIMS}/{name}")


async def given(node: NodeProcess, claim: str) -> str:
    document = await node.call("GET", f"{CLAIMS}/{claim}")
    (result,) = document["status"]["allocation"]["devices"]["results"]
    return str(result["device"])


async def oci(node: NodeProcess, pod: str) -> Document:
    found: Document = (await node.containers(pod))["main"]["oci"]
    return found


def is_sick(pod: Document) -> bool:
    return "Unhealthy" in [health for each in devices_in_status(pod).values() for health in each.values()]


async def test_fake_gpus_of_a_device_plugin_come_with_neighbours_a_directory_and_health(node: NodeProcess) -> None:
    sick = node.root / "sick-plugin"
    async with example(node, "fake_gpu_plugin", "--numa-nodes", "2", "--sick-directory", sick):
        await node.until_healthy("example.com/gpu", 4)
        await node.create(builders.pod("pair", limits={"example.com/gpu": 2}))
        await node.until_phase("pair", "Running")
        gpus = (await node.environment("pair"))["GPU"].split(",")
        assert gpus in (["gpu-0", "gpu-1"], ["gpu-2", "gpu-3"])
        (mount,) = (await oci(node, "pair"))["mounts"]
        assert (mount["source"], mount["destination"]) == (str(node.root / "fake-gpu" / gpus[0]), "/var/cache/gpu")
        sick.mkdir()
        (sick / gpus[0]).touch()
        await node.until_pod("pair", is_sick)
        await node.until_healthy("example.com/gpu", 3)
        await node.delete("pair")


async def test_fake_gpus_of_a_dra_driver_take_parameters_and_show_their_health(node: NodeProcess) -> None:
    sick, driver = node.root / "sick-dra", "gpu.example.com"
    async with example(node, "fake_gpu_dra", "--device-metadata", "all", "--numa-nodes", "2", "--sick-directory", sick):
        await published(node, driver, 4)
        opaque = {"opaque": {"driver": driver, "parameters": {"sharing": "timeslice"}}}
        select = f'device.attributes["{driver}"].numa == 1'
        await ask(node, driver, "sliced", config=[opaque], request={"select": select})
        await node.until_phase("sliced", "Running")
        gpu = await given(node, "sliced")
        name = gpu.upper().replace("-", "_")
        assert gpu in ("gpu-2", "gpu-3")
        assert (await node.environment("sliced"))[f"{name}_SHARING"] == "timeslice"
        (mount,) = [each for each in (await oci(node, "sliced"))["mounts"] if "fake-gpu" in each["destination"]]
        assert Path(mount["source"]).read_text() == "timeslice\n"  # noqa: ASYNC240
        told = str(metadata.claim_file(driver, "sliced", "gpu"))
        (file,) = [each["source"] for each in (await oci(node, "sliced"))["mounts"] if each["destination"] == told]
        (request,) = metadata.read(Path(file)).requests
        assert request.devices[0].attributes["uuid"].string == (await node.environment("sliced"))[name]
        sick.mkdir()
        (sick / gpu).write_text("too hot")
        await node.until_pod("sliced", is_sick)
        await end(node, "sliced")


async def test_a_claim_is_unprepared_by_a_driver_that_was_killed_meanwhile(node: NodeProcess) -> None:
    driver = "killed.example.com"
    files = node.root / f"plugins/{driver}/claims"
    async with example(node, "fake_gpu_dra", "--driver-name", driver) as running:
        await ask(node, driver, "survivor")
        await node.until_phase("survivor", "Running")
        assert len(list(files.iterdir())) == 1
        running.send_signal(signal.SIGKILL)
        await running.wait()
    async with example(node, "fake_gpu_dra", "--driver-name", driver):
        await end(node, "survivor")
        assert list(files.iterdir()) == []


async def test_wrong_parameters_are_told_to_the_user(node: NodeProcess) -> None:
    driver = "told.example.com"
    async with example(node, "fake_gpu_dra", "--driver-name", driver):
        config = [{"opaque": {"driver": driver, "parameters": {"sharing": "never"}}}]
        await ask(node, driver, "mistaken", config=config)
        await node.until_event("FailedPrepareDynamicResources", "parameters of request")
        await end(node, "mistaken")


async def test_the_memory_of_a_shared_gpu_goes_to_several_claims(node: NodeProcess) -> None:
    driver = "shared.example.com"
    async with example(node, "fake_gpu_dra", "--driver-name", driver, "--shared", "--num-devices", "1"):
        await published(node, driver, 1)
        for name in ("half", "other-half"):
            await ask(node, driver, name, request={"capacity": {"requests": {"memory": "20Gi"}}})
        for name in ("half", "other-half"):
            await node.until_phase(name, "Running")
            assert (await node.environment(name))["GPU_0_MEMORY"] == "20Gi"
        await ask(node, driver, "too-much", request={"capacity": {"requests": {"memory": "1Gi"}}})
        await node.until_event("FailedScheduling")
        await end(node, "half")
        await node.until_phase("too-much", "Running")
        await end(node, "other-half", "too-much")


async def test_a_gpu_is_given_out_whole_or_in_parts(node: NodeProcess) -> None:
    driver = "parts.example.com"
    async with example(node, "fake_gpu_dra", "--driver-name", driver, "--partitions", "2", "--num-devices", "1"):
        await published(node, driver, 3)
        part, whole = (f'device.attributes["{driver}"].type == "{kind}"' for kind in ("partition", "gpu"))
        for name in ("left", "right"):
            await ask(node, driver, name, request={"select": part})
            await node.until_phase(name, "Running")
        assert {await given(node, "left"), await given(node, "right")} == {"gpu-0-part-0", "gpu-0-part-1"}
        await ask(node, driver, "all", request={"select": whole})
        await end(node, "left")
        assert (await node.pods())["all"]["status"]["phase"] == "Pending"
        await end(node, "right")
        await node.until_phase("all", "Running")
        await end(node, "all")


async def test_a_serial_port_that_is_plugged_in_later_is_found_by_both_kinds(node: NodeProcess, root: Path) -> None:
    usb = FakeUsb(root)
    roots = ("--sysfs", usb.roots.sysfs, "--dev", usb.roots.dev)
    async with example(node, "serial_ports", "dra", *roots), example(node, "serial_ports", "device-plugin", *roots):
        await until(node.plugin_states, lambda found: "example.com:serial" in found)
        await ask(node, "serial.example.com", "modem")
        usb.plug("2", "0403", "6001", serial="A50285BI", tty="ttyUSB0")
        if not usb.has_nodes:
            pytest.skip("only root may make device nodes")
        await node.until_phase("modem", "Running")
        assert await given(node, "modem") == "0403-6001-a50285bi-if00"
        await node.until_healthy("example.com/serial", 1)
        await node.create(builders.pod("plugged", limits={"example.com/serial": 1}))
        await node.until_phase("plugged", "Running")
        for name in ("modem", "plugged"):
            expected = {"DEVICE_0403_6001_A50285BI_IF00": str(usb.roots.dev / "ttyUSB0")}
            assert await node.environment(name) == expected
            assert [each["path"] for each in (await oci(node, name))["linux"]["devices"]] == list(expected.values())
        usb.unplug("2")
        await node.until_pod("plugged", is_sick)
        await node.delete("plugged")
        await end(node, "modem")


async def test_a_file_in_dev_is_had_by_as_many_as_may(node: NodeProcess) -> None:
    flags = ("--device", "zero=/dev/zero:r", "--users", "2")
    async with example(node, "dev_nodes", "dra", *flags), example(node, "dev_nodes", "device-plugin", *flags):
        await node.until_healthy("example.com/dev", 2)
        for name in ("one", "two", "three"):
            await ask(node, "dev.example.com", name)
        await until(node.pods, lambda found: [_phase(found[name]) for name in ("one", "two")] == ["Running"] * 2)
        await node.create(builders.pod("plain", limits={"example.com/dev": 2}))
        await node.until_phase("plain", "Running")
        for name in ("one", "plain"):
            linux = (await oci(node, name))["linux"]
            assert [each["path"] for each in linux["devices"]] == ["/dev/zero"]
            assert linux["resources"]["devices"][-1]["access"] == "r"
        assert _phase((await node.pods())["three"]) == "Pending"
        await node.delete("plain")
        await end(node, "one", "two", "three")


def _phase(pod: Document) -> str:
    return str(pod["status"].get("phase"))


def request_ids(log: str, text: str, **facts: str) -> set[str]:
    """Return the request ids of the lines with this text and these facts."""
    wanted = [f'"{text}"', *(f'{key}="{value}"' for key, value in facts.items())]
    lines = [line for line in log.splitlines() if all(word in line for word in wanted)]
    return {found[1] for line in lines if (found := re.search(r'requestID="([^"]+)"', line))}


async def test_the_work_of_node_and_driver_is_logged_with_one_request_id(node: NodeProcess) -> None:
    async with (
        example(node, "fake_gpu_dra") as driver,
        example(node, "fake_gpu_plugin", "--resource", "logged.com/gpu") as plugin,
    ):
        await published(node, "gpu.example.com", 4)
        await node.until_healthy("logged.com/gpu", 4)
        await ask(node, "gpu.example.com", "logged")
        await node.until_phase("logged", "Running")
        await node.create(builders.pod("counted", limits={"logged.com/gpu": 1}))
        await node.until_phase("counted", "Running")
        await end(node, "logged")
        for text in ("claim prepared", "claim unprepared"):
            (number,) = request_ids(node.log, text, claim="default/logged")
            assert number in request_ids(driver.log.read_text(), text, claim="default/logged")
        assert request_ids(node.log, "devices allocated", pod="default/counted", resourceName="logged.com/gpu")
        assert plugin.returncode is None
        await node.delete("counted")
