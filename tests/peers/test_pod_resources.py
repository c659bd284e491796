"""The kubelet's client of the pod resources API asks devlet, whose devices come from a plugin in Go."""

import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from devlet.kit.clock import SystemClock
from devlet.kit.metrics import Registry
from devlet.kit.parts import running
from devlet.kit.processes import line, process
from devlet.node.devices.manager import DeviceManager
from devlet.objects.identifiers import ContainerName, PodName, PodUID
from devlet.objects.types.container import Container, ResourceRequirements
from devlet.objects.types.meta import ObjectMeta
from devlet.objects.types.pod import Pod, PodSpec
from devlet.plugins.registration_server import RegistrationServer
from devlet.serve.pod_resources import PodResourcesMetrics, PodResourcesServer
from devlet.testing.embedded import embedded_api
from devlet.testing.waiting import deadline, until
from tests.support.peers.drivers import generic_device_plugin

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [pytest.mark.peers, pytest.mark.anyio]

GPU = "example.com/gpu"


def pod(name: str, devices: int) -> Pod:
    limits: dict[str, str | int | float] = {GPU: str(devices)} if devices else {}
    container = Container(name=ContainerName("main"), resources=ResourceRequirements(limits=limits))
    metadata = ObjectMeta(name=PodName(name), namespace="default", uid=PodUID(f"uid-{name}"))
    return Pod(metadata=metadata, spec=PodSpec(containers=(container,)))


@dataclass(frozen=True)
class Pods:
    pods: Sequence[Pod]

    def active(self) -> Sequence[Pod]:
        return self.pods

    def find(self, namespace: str, name: str) -> Pod | None:
        return next((pod for pod in self.pods if (pod.metadata.namespace, pod.name) == (namespace, name)), None)


@asynccontextmanager
async def node(program: Path, root: Path, pods: Sequence[Pod]) -> AsyncIterator[Path]:
    """Its pod resources socket, once all pods are admitted. The plugin has four devices on two NUMA nodes."""
    folder = root / "device-plugins"
    manager = DeviceManager(folder, SystemClock(), machine_nodes=(0, 1))
    server = PodResourcesServer(
        root / "pod-resources", Pods(pods), manager, PodResourcesMetrics(Registry()), SystemClock()
    )
    flags = [f"--directory={folder}", f"--resource={GPU}", "--devices=4", "--numa=0,1"]
    async with (
        running(manager.run),
        running(RegistrationServer(folder, manager.register).run),
        running(server.run),
        process([program, "plugin", *flags], log=root / "plugin.log", ready=line("registered")),
    ):
        with deadline():
            while manager.capacity().allocatable != {GPU: 4}:
                await manager.changed()
        for each in pods:
            async with manager.attempt(each) as attempt:
                await attempt.allocate(each.spec.containers[0], None)
                await attempt.commit()
        yield server.path


@pytest.fixture
def program(peers: "Peers") -> Path:
    peers.need("kubelet-devices")
    return peers.binaries / "kubelet-devices"


async def ask(program: Path, socket: Path, *question: str) -> CompletedProcess[bytes]:
    return await anyio.run_process([program, "pod-resources", socket, *question], check=False)


async def answer(program: Path, socket: Path, *question: str) -> Any:
    asked = await ask(program, socket, *question)
    assert asked.returncode == 0, asked.stderr.decode()
    return json.loads(asked.stdout)


def devices_of(container: dict[str, Any]) -> dict[str, list[int]]:
    """Device to NUMA nodes. In protobuf's JSON a number is a text, and 0 is left out."""
    found: dict[str, list[int]] = {}
    for each in container.get("devices", ()):
        assert each["resource_name"] == GPU
        [device] = each["device_ids"]
        found.setdefault(device, []).extend(int(place.get("ID", 0)) for place in each["topology"]["nodes"])
    return found


async def test_the_kubelets_client_sees_who_has_what(program: Path, root: Path) -> None:
    near = {"dev-0": [0], "dev-1": [1], "dev-2": [0], "dev-3": [1]}
    async with node(program, root, [pod("a", 2), pod("b", 1), pod("idle", 0)]) as socket:
        listed = await answer(program, socket, "list")
        old = await answer(program, socket, "list-v1alpha1")
        one = await answer(program, socket, "get", "default", "b")
        free_or_not = await answer(program, socket, "allocatable")
    assert [each["name"] for each in listed["pod_resources"]] == ["a", "b", "idle"]
    held = [devices_of(each["containers"][0]) for each in listed["pod_resources"]]
    assert [len(devices) for devices in held] == [2, 1, 0]
    assert len({**held[0], **held[1]}) == 3 and {**held[0], **held[1]}.items() <= near.items()
    assert one["pod_resources"] == listed["pod_resources"][1]
    assert devices_of(free_or_not) == near
    [group] = old["pod_resources"][1]["containers"][0]["devices"]
    assert (group["resource_name"], group["device_ids"]) == (GPU, list(held[1]))


async def test_the_kubelets_client_is_told_of_a_pod_that_is_not_there(program: Path, root: Path) -> None:
    async with node(program, root, []) as socket:
        asked = await ask(program, socket, "get", "default", "gone")
    assert asked.returncode == 1
    assert asked.stderr.decode().rstrip().endswith("desc = pod gone in namespace default not found")


NULL: dict[str, Any] = {"name": "null", "groups": [{"count": 3, "paths": [{"path": "/dev/null"}]}]}


def manifest(name: str, count: int) -> str:
    container = {"name": "main", "image": "none", "resources": {"limits": {"squat.ai/null": count}}}
    spec = {"nodeName": "n1", "containers": [container]}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})


async def devlet(root: Path, *arguments: str, stdin: str = "") -> str:
    verb, *rest = arguments
    command = [sys.executable, "-m", "devlet", verb, "--root", str(root), *rest]
    done = await anyio.run_process(command, input=stdin.encode(), check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


async def shown(root: Path) -> dict[str, str | None]:
    """Device to pod, as `devlet get devices` has it."""
    devices = json.loads(await devlet(root, "get", "devices", "-o", "json"))["items"]
    return {each["spec"]["id"]: (each["status"].get("holder") or {}).get("pod") for each in devices}


@pytest.mark.spec("DP-8.72")
async def test_a_running_devlet_tells_both_the_same(peers: "Peers", program: Path, root: Path) -> None:
    peers.need("generic-device-plugin")
    socket = root / "pod-resources" / "kubelet.sock"

    async def listed() -> dict[str, str]:
        pods = (await answer(program, socket, "list")).get("pod_resources", ())
        return {
            id: each["name"]
            for each in pods
            for device in each["containers"][0].get("devices", ())
            for id in device["device_ids"]
        }

    async with (
        embedded_api(root, arguments=["--node-name=n1"]),
        generic_device_plugin(peers.binaries, root, [NULL]),
    ):
        await until(lambda: shown(root), lambda found: len(found) == 3)
        await devlet(root, "apply", "-f", "-", stdin=f"{manifest('a', 1)}\n---\n{manifest('b', 1)}")
        await devlet(root, "wait", "--for=condition=Ready", "pod/a", "pod/b")
        held = {id: pod for id, pod in (await shown(root)).items() if pod}
        assert await listed() == held
        assert sorted(held.values()) == ["a", "b"]
        free_or_not = await answer(program, socket, "allocatable")
        assert {id for each in free_or_not["devices"] for id in each["device_ids"]} == set(await shown(root))
        fixed = "/var/lib/kubelet/pod-resources/kubelet.sock"  # where most clients look
        inside = await devlet(root, "exec", "--", str(program), "pod-resources", fixed, "list")
        assert json.loads(inside) == await answer(program, socket, "list")
        await devlet(root, "delete", "pod", "a")
        assert await until(listed, lambda found: len(found) == 1) == {id: pod for id, pod in held.items() if pod == "b"}
