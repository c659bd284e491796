"""Drivers of the SDK on a node of Kubernetes: kube-apiserver, kube-scheduler, kube-controller-manager, and a kubelet
whose container runtime runs nothing, but writes down what containers were to get."""

import json
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import RemoteCluster, connected
from devlet.cluster.remote.settings import Settings
from devlet.errors import InvalidInput, NotFound
from devlet.examples import fake_gpu_dra
from devlet.kit.parts import running
from devlet.kit.processes import RunningProcess, process
from devlet.objects.documents import Document
from devlet.objects.kinds import (
    DEVICE_CLASSES,
    EVENTS,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_SLICES,
    SERVICE_ACCOUNTS,
)
from devlet.sdk.device_plugin import DevicePlugin, PluginOptions
from devlet.sdk.dra_driver import DraDriver, DraOptions
from devlet.sdk.registrar import Registrar
from devlet.sdk.values import Claim, ClaimRef, Device, DeviceNode, Grant, PluginDevice, Prepared
from devlet.testing.restarts import Restarts
from devlet.testing.waiting import until
from tests.support.peers.control_plane import ControlPlane
from tests.support.peers.real_kubelet import Container, ContainerRuntime, container_runtime, is_possible, real_kubelet

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
    pytest.mark.skipif(not is_possible(), reason="a kubelet that changes nothing on this host needs root"),
]

NODE = "n1"
GPU = fake_gpu_dra.FakeGpus.name


class Leds(DraDriver):
    name = "led.example.com"

    def __init__(self) -> None:
        self.fault = ""
        self.prepared: list[str] = []  # claims, in the order of the calls
        self.unprepared: list[str] = []

    async def devices(self) -> AsyncIterator[Sequence[Device]]:
        yield [Device(f"led-{number}", {"number": number}) for number in range(4)]

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        if self.fault:
            raise InvalidInput(self.fault)
        self.prepared.append(claim.ref.name)
        return [Prepared(result, env={"LED": result.device}) for result in claim.results]

    async def unprepare(self, claim: ClaimRef) -> None:
        self.unprepared.append(claim.name)


class Fans(DevicePlugin):
    resource = "example.com/fan"

    def __init__(self) -> None:
        self.started: list[list[str]] = []

    async def devices(self) -> AsyncIterator[Sequence[PluginDevice]]:
        yield [PluginDevice("left"), PluginDevice("right")]

    async def allocate(self, ids: Sequence[str]) -> Grant:
        return Grant(env={"FAN": ",".join(ids)}, devices=[DeviceNode("/dev/null", "/dev/fan")])

    async def pre_start(self, ids: Sequence[str]) -> None:
        self.started.append(list(ids))


class Node:
    def __init__(
        self, root: Path, cluster: RemoteCluster, kubelet: Restarts[RunningProcess], runtime: ContainerRuntime
    ) -> None:
        self.root = root
        self.cluster = cluster
        self.kubelet = kubelet
        self.runtime = runtime

    @asynccontextmanager
    async def served(self, driver: DraDriver, instance: str = "") -> AsyncIterator[Registrar]:
        """Until the kubelet has accepted it, and its devices can be asked for."""
        options = DraOptions(NODE, self.root, cdi_directory=self.root / "cdi", instance=instance)
        async with anyio.create_task_group() as tasks:
            registrar: Registrar = await tasks.start(driver.run, options, self.cluster)
            await registrar.registered()
            await self.until_published(driver.name)
            yield registrar
            tasks.cancel_scope.cancel()

    async def until_published(self, driver: str) -> None:
        """A kubelet that starts deletes all slices of its node; if it does so after it has registered the driver, that
        waits for half a minute."""
        await until(partial(self.slices, driver))

    async def slices(self, driver: str) -> list[str]:
        found = await self.cluster.list(RESOURCE_SLICES)
        return [each["metadata"]["uid"] for each in found.items if each["spec"]["driver"] == driver]

    def plugin(self, plugin: DevicePlugin) -> AbstractAsyncContextManager[None]:
        return running(partial(plugin.run, PluginOptions(self.root / "device-plugins")))

    async def until_allocatable(self, resource: str, count: int) -> None:
        async def allocatable() -> str:
            node = await self.cluster.get(NODES, NODE)
            return str(node["status"].get("allocatable", {}).get(resource))

        await until(allocatable, lambda found: found == str(count))

    async def submit(self, name: str, driver: str = "", resources: Mapping[str, int] = {}) -> None:
        """A pod, with a claim of its own for a device of the driver."""
        limits = {resource: str(count) for resource, count in resources.items()}
        container: Document = {"name": "main", "image": "example.com/app:1", "resources": {"limits": limits}}
        spec: Document = {
            "containers": [container],
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 1,
        }
        if driver:
            container["resources"]["claims"] = [{"name": "device"}]
            spec["resourceClaims"] = [{"name": "device", "resourceClaimTemplateName": driver}]
        await self.cluster.create(PODS, {"metadata": {"name": name}, "spec": spec}, "default")

    async def run(self, name: str, driver: str = "", resources: Mapping[str, int] = {}) -> Container:
        await self.submit(name, driver, resources)
        await self.until_phase(name, "Running")
        return self.runtime.containers(name)[-1]

    async def until_phase(self, name: str, phase: str) -> None:
        await until(partial(self.cluster.get, PODS, name, "default"), lambda pod: pod["status"]["phase"] == phase)

    async def remove(self, *names: str) -> None:
        """Until they are gone, which they are not before their claims are unprepared."""
        for name in names:
            await self.cluster.delete(PODS, name, "default")
        for name in names:
            await until(partial(self.is_gone, name))

    async def is_gone(self, name: str) -> bool:
        try:
            await self.cluster.get(PODS, name, "default")
        except NotFound:
            return True
        return False

    async def events(self, pod: str, reason: str) -> list[str]:
        found = await self.cluster.list(EVENTS, "default")
        mine = [each for each in found.items if each["involvedObject"]["name"] == pod]
        return [each["message"] for each in mine if each["reason"] == reason]

    async def health(self, pod: str) -> list[tuple[str, str]]:
        status = (await self.cluster.get(PODS, pod, "default"))["status"]
        told = [each for one in status["containerStatuses"] for each in one.get("allocatedResourcesStatus", ())]
        return [(each["health"], each.get("message", "")) for resource in told for each in resource["resources"]]

    def variables(self, container: Container) -> dict[str, str]:
        """Those behind the container's CDI devices."""
        edits = self.cdi()
        return dict(text.split("=", 1) for id in container.cdi for text in edits[id])

    def cdi(self) -> dict[str, list[str]]:
        """Variables by the id of the device, of all CDI files."""
        folder = self.root / "cdi"
        specs: list[Any] = [json.loads(path.read_bytes()) for path in folder.iterdir()] if folder.exists() else []
        return {
            f"{spec['kind']}={device['name']}": device["containerEdits"].get("env", [])
            for spec in specs
            for device in spec["devices"]
        }


@pytest.fixture(scope="module")
async def node(peers: "Peers", cluster: ControlPlane) -> AsyncIterator[Node]:
    """One that is ready, for the tests of this file."""
    peers.need("kubelet", "kubelet-plugins")
    root = Path(tempfile.mkdtemp(prefix="dv"))
    config = cluster.kubeconfig_of(f"system:node:{NODE}")
    kubelet = Restarts(partial(real_kubelet, peers.binaries, root, config, node_name=NODE))
    async with (
        connected(kubeconfig.connection([cluster.kubeconfig]), Settings(qps=0)) as client,
        container_runtime(peers.binaries, root) as runtime,
        kubelet,
    ):
        for driver in (Leds.name, GPU):
            await client.create(DEVICE_CLASSES, device_class(driver))
            await client.create(RESOURCE_CLAIM_TEMPLATES, template(driver), "default")
        await until(partial(is_ready, client))
        yield Node(root, client, kubelet, runtime)
    shutil.rmtree(root)


def device_class(driver: str) -> Document:
    selector = {"cel": {"expression": f"device.driver == '{driver}'"}}
    return {"metadata": {"name": driver}, "spec": {"selectors": [selector]}}


def template(driver: str) -> Document:
    request = {"name": "req", "exactly": {"deviceClassName": driver}}
    return {"metadata": {"name": driver}, "spec": {"spec": {"devices": {"requests": [request]}}}}


async def is_ready(client: RemoteCluster) -> bool:
    try:
        node = await client.get(NODES, NODE)
        await client.get(SERVICE_ACCOUNTS, "default", "default")
    except NotFound:
        return False
    states = {each["type"]: each["status"] for each in node["status"]["conditions"]}
    return states["Ready"] == "True" and not node["spec"].get("taints")


async def test_a_pod_gets_the_devices_of_both_kinds_of_drivers(node: Node) -> None:
    leds, fans = Leds(), Fans()
    async with node.served(leds), node.plugin(fans):
        await node.until_allocatable(fans.resource, 2)
        container = await node.run("both", leds.name, {fans.resource: 2})
        assert node.variables(container) == {"LED": "led-0"}
        assert sorted(container.env["FAN"].split(",")) == ["left", "right"]
        [device] = container.devices
        assert (device["host_path"], device["container_path"]) == ("/dev/null", "/dev/fan")
        assert [sorted(each) for each in fans.started] == [["left", "right"]]
        await node.remove("both")
        assert node.cdi() == {}
    assert leds.unprepared == leds.prepared != []


async def test_what_a_driver_objects_to_is_an_event_of_the_pod_which_runs_when_it_is_mended(node: Node) -> None:
    driver = Leds()
    driver.fault = "the LED does not light up: check its cable"
    async with node.served(driver):
        await node.submit("patient", driver.name)
        [text, *_] = await until(partial(node.events, "patient", "FailedPrepareDynamicResources"))
        assert driver.fault in text
        driver.fault = ""
        await node.until_phase("patient", "Running")
        await node.remove("patient")


async def test_a_kubelet_that_was_killed_finds_drivers_and_pods_again(node: Node) -> None:
    leds, fans = Leds(), Fans()
    async with node.served(leds) as registrar, node.plugin(fans):
        await node.until_allocatable(fans.resource, 2)
        await node.run("early", leds.name, {fans.resource: 1})
        await node.kubelet.kill()
        await node.kubelet.start()
        await registrar.registered(2)
        await node.until_allocatable(fans.resource, 2)
        await node.until_published(leds.name)
        late = await node.run("late", leds.name, {fans.resource: 1})
        assert node.variables(late) == {"LED": "led-1"}
        assert len(node.runtime.containers("early")) == 1  # it went on
        assert sorted(node.cdi()) == sorted(
            id for pod in ("early", "late") for each in node.runtime.containers(pod) for id in each.cdi
        )
        await node.remove("early", "late")
        assert node.cdi() == {}
    assert sorted(leds.unprepared) == sorted(set(leds.prepared))


async def test_pods_go_on_through_a_rolling_update_of_their_driver(node: Node) -> None:
    old, new = Leds(), Leds()
    async with node.served(old, "old"):
        await node.run("early", old.name)
        slices = await node.slices(old.name)
        async with node.served(new, "new"):
            await node.run("late", old.name)
            await node.remove("early")
            assert await node.slices(old.name) == slices
        await node.remove("late")
        assert node.cdi() == {}
    assert (len(old.prepared), len(new.prepared)) == (1, 1)
    assert (new.unprepared, old.unprepared) == (old.prepared, new.prepared)


def gpus(node: Node, config: Path) -> AbstractAsyncContextManager[RunningProcess]:
    argv = [sys.executable, "-m", fake_gpu_dra.__name__, f"--node-name={NODE}", f"--kubelet-root={node.root}"]
    argv += [f"--kubeconfig={config}", f"--cdi-root={node.root / 'cdi'}", f"--sick-directory={node.root / 'sick'}"]
    return process(argv, name="gpus", log=node.root / "gpus.log")


async def test_an_example_is_killed_and_ill_and_its_pods_are_told(node: Node, cluster: ControlPlane) -> None:
    (node.root / "sick").mkdir()
    async with Restarts(partial(gpus, node, cluster.kubeconfig)) as program:
        await node.until_published(GPU)
        container = await node.run("train", GPU)
        assert set(node.variables(container)) == {"GPU_0", "GPU_0_SHARING"}
        await until(partial(node.health, "train"), lambda found: found == [("Healthy", "")])
        await program.kill()
        await program.start()
        await anyio.Path(node.root / "sick" / "gpu-0").write_text("too hot\n")
        await until(partial(node.health, "train"), lambda found: found == [("Unhealthy", "too hot")])
        other = await node.run("other", GPU)
        assert set(node.variables(other)) == {"GPU_1", "GPU_1_SHARING"}
        await node.remove("train", "other")
        assert node.cdi() == {}
