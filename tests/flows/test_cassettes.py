"""What one node's drivers do is captured, played on another node that has none of them, and is the same there."""

import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from devlet.cassettes import cassette_file, library
from devlet.cassettes.cassette import Cassette
from devlet.kit.processes import RunningProcess, line, process
from devlet.objects.identifiers import DeviceID
from devlet.objects.types.claim import PreparedDevice
from devlet.plugins.devices import Device, Grant, Options
from devlet.plugins.dra import ClaimRef
from devlet.runtime.cdi.spec import ContainerEdits, Spec
from devlet.runtime.cdi.spec import Device as CdiDevice
from devlet.testing import warm_start
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.fake_dra_driver import FakeDraDriver
from devlet.testing.node_process import PODS, NodeProcess
from devlet.testing.waiting import until
from tests.support.claim_node import CLAIMS, SLICES

pytestmark = [pytest.mark.anyio, pytest.mark.long]

DRIVER, RESOURCE = "gpu.example.com", "example.com/fpga"
CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu"},
    "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
}
SLICE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "gpus"},
    "spec": {
        "driver": DRIVER,
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 7, "resourceSliceCount": 1},
        "devices": [
            {"name": "gpu-0", "attributes": {"model": {"string": "a100"}}, "capacity": {"memory": {"value": "80Gi"}}},
            {"name": "gpu-1", "taints": [{"key": "example.com/hot", "effect": "NoSchedule"}]},
        ],
    },
}
CLAIM = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "train"},
    "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
}
TRAIN = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "train"},
    "spec": {
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "train"}],
        "containers": [{"name": "main", "image": "x", "resources": {"claims": [{"name": "gpu"}]}}],
    },
}
FILTER = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "filter"},
    "spec": {"containers": [{"name": "main", "image": "x", "resources": {"limits": {RESOURCE: "2"}}}]},
}


@pytest.fixture
async def nodes() -> AsyncIterator[tuple[NodeProcess, NodeProcess]]:
    async with AsyncExitStack() as stack:
        made = []
        for name in ("n1", "n2"):
            root = Path(tempfile.mkdtemp(prefix="dv"))
            stack.callback(shutil.rmtree, root, ignore_errors=True)
            node = NodeProcess(root, control=True, arguments=("--node-name", name))
            made.append(await stack.enter_async_context(node))
        yield made[0], made[1]


async def devlet(*arguments: str | Path, code: int = 0) -> str:
    command = [sys.executable, "-m", "devlet", *map(str, arguments)]
    done = await anyio.to_thread.run_sync(warm_start.run, command)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr if code == 1 and not done.stdout else done.stdout


def describe(claim: ClaimRef, device: PreparedDevice) -> Mapping[str, str]:
    return {"GPU": device.device, "MPS_DIRECTORY": f"/run/mps/{claim.uid}", "API_TOKEN": "very-secret"}


async def run_pods(node: NodeProcess) -> dict[str, dict[str, str]]:
    """The environment of each."""
    await node.call("POST", "/apis/resource.k8s.io/v1/deviceclasses", CLASS)
    await node.call("POST", CLAIMS, CLAIM)
    for pod in (TRAIN, FILTER):
        await node.call("POST", PODS, pod)
    for name in ("train", "filter"):
        await node.until_phase(name, "Running")
    return {name: environment(container) for name, container in (await node.holders()).items()}


def environment(container: Mapping[str, Any]) -> dict[str, str]:
    return dict(each.split("=", 1) for each in container["oci"]["process"]["env"])


async def test_a_played_node_is_like_the_one_that_was_captured(
    nodes: tuple[NodeProcess, NodeProcess], tmp_path: Path
) -> None:
    a, b = nodes
    fpgas = [
        Device(DeviceID("fpga-0"), nodes=(0,)),
        Device(DeviceID("fpga-1")),
        Device(DeviceID("fpga-2"), "Unhealthy"),
    ]
    async with (
        FakeDraDriver(a.root, DRIVER, pool="n1") as driver,
        FakeDevicePlugin(a.plugins, RESOURCE, fpgas, options=Options(True, True), follow=True) as plugin,
    ):
        driver.prepared.environment = describe
        driver.handler = lambda claim: [PreparedDevice("n1", "gpu-0", requests=("gpu",))]
        plugin.grant = lambda ids: Grant(env={"FPGAS": ",".join(sorted(ids))}, annotations={"fpgas": "yes"})
        await driver.until_registered()
        await a.until_healthy(RESOURCE, 2)
        await a.call("POST", SLICES, SLICE)
        seen = await run_pods(a)
        file = tmp_path / "a.yaml"
        await devlet("capture", file, "--root", a.root)
        assert await devlet("drift", file, "live", "--root", a.root) == "no differences\n"
        uid = (await a.call("GET", f"{CLAIMS}/train"))["metadata"]["uid"]

    text = file.read_text()
    assert "very-secret" not in text and uid not in text
    await check_played(file, b, tmp_path, seen, a_uid=uid)


async def check_played(
    file: Path, node: NodeProcess, folder: Path, seen: dict[str, dict[str, str]], a_uid: str
) -> None:
    log = folder / "play.log"
    async with playing(file, node, log):
        await node.until_healthy(RESOURCE, 2)
        await until(lambda: node.items(SLICES))
        played = await run_pods(node)
        uid = (await node.call("GET", f"{CLAIMS}/train"))["metadata"]["uid"]
        expected = {**seen["train"], "MPS_DIRECTORY": f"/run/mps/{uid}", "API_TOKEN": "redacted"}
        assert seen["train"]["MPS_DIRECTORY"] == f"/run/mps/{a_uid}"
        assert played == {"train": expected, "filter": seen["filter"]}
        again = folder / "b.json"
        await devlet("capture", again, "--root", node.root)
        assert await devlet("drift", file, again) == "no differences\n"
        assert cassettes(again).node == "n2" and cassettes(file).node == "n1"
        assert cassettes(again).drivers == cassettes(file).drivers
        assert cassettes(again).plugins == cassettes(file).plugins
    assert "Traceback" not in log.read_text()
    assert not list((node.root / "plugins_registry").iterdir())


def playing(file: Path, node: NodeProcess, log: Path) -> AbstractAsyncContextManager[RunningProcess]:
    command = [sys.executable, "-m", "devlet", "play", str(file), "--root", str(node.root)]
    return process(command, log=log, name="devlet play", ready=line("devlet play is ready"), start=warm_start.start)


async def test_nothing_is_left_by_one_that_ends_and_one_that_was_killed_is_no_hindrance(
    nodes: tuple[NodeProcess, NodeProcess], tmp_path: Path
) -> None:
    node, file = nodes[0], tmp_path / "a.yaml"
    spec = Spec("0.3.0", "example.com/horn", (CdiDevice("loud", ContainerEdits(env=("HORN=loud",))),))
    file.write_bytes(cassette_file.encode(replace(library.shipped("led"), cdi=(spec,))))
    before = files(node.root)
    async with playing(file, node, tmp_path / "killed.log") as killed:
        await node.until_healthy("example.com/buzzer", 1)
        killed.send_signal(signal.SIGKILL)
        await killed.wait()
        assert await node.items(SLICES) and files(node.root) > before
        async with playing(file, node, tmp_path / "next.log"):
            await node.until_healthy("example.com/buzzer", 1)
            assert await devlet("drift", file, "live", "--root", node.root) == "no differences\n"
            told = await devlet("play", file, "--root", node.root, code=1)
            assert told.startswith("error: driver led.example.com runs on this node already: stop it, or play")
    assert await node.items(SLICES) == []
    assert files(node.root) == before


def files(root: Path) -> set[Path]:
    """What a driver has to do with."""
    folders = ("cdi", "plugins", "plugins_registry", "device-plugins")
    found = {path for name in folders for path in (root / name).rglob("*")}
    return {path for path in found if path.name not in ("kubelet_internal_checkpoint", "kubelet.sock")}


def cassettes(path: Path) -> Cassette:
    return cassette_file.read(path)


async def test_what_changes_on_a_node_is_told(nodes: tuple[NodeProcess, NodeProcess], tmp_path: Path) -> None:
    a, _ = nodes
    file = tmp_path / "a.yaml"
    devices = [Device(DeviceID("fpga-0")), Device(DeviceID("fpga-1"))]
    async with FakeDevicePlugin(a.plugins, RESOURCE, devices, follow=True) as plugin:
        await a.until_healthy(RESOURCE, 2)
        await devlet("capture", file, "--root", a.root)
        plugin.set_devices([Device(DeviceID("fpga-0"), "Unhealthy"), Device(DeviceID("fpga-7"))])
        await a.until_healthy(RESOURCE, 1)
        shown = await devlet("drift", file, "live", "--root", a.root, code=1)
        from_cluster = await devlet("capture", "--kubeconfig", a.root / "kubeconfig")
    assert [each.split()[:4] for each in shown.splitlines()[1:4]] == [
        ["changed", "device", f"{RESOURCE}/fpga-0", "health"],
        ["removed", "device", f"{RESOURCE}/fpga-1", "<none>"],
        ["added", "device", f"{RESOURCE}/fpga-7", "<none>"],
    ]
    (counted,) = cassette_file.decode(from_cluster.encode()).plugins
    assert counted.ids_unknown and [device.health for device in counted.devices] == ["Healthy", "Unhealthy"]
