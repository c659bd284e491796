"""Cassettes where nothing of devlet is on the other side: played on and captured from a real API server, and played to
the kubelet's own plugin manager, device manager and DRA manager."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
import pytest
from msgspec.structs import replace

from devlet.cassettes import cassette_file, library
from devlet.cassettes.cassette import Cassette, DeviceHealth
from devlet.cluster.client import MergePatch
from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import RemoteCluster, connected
from devlet.kit.processes import RunningProcess, line, process
from devlet.objects.documents import Document
from devlet.objects.kinds import RESOURCE_CLAIMS
from devlet.testing.embedded import embedded_api
from devlet.testing.node_process import NODE, NodeProcess
from devlet.testing.waiting import until
from tests.support.peers.control_plane import ControlPlane, control_plane
from tests.support.peers.heartbeats import beating_node
from tests.support.peers.kubelet_plugins import KubeletPlugins, kubelet_plugins

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [pytest.mark.peers, pytest.mark.anyio]

NODE_USER, VIEWER = f"system:node:{NODE}", "viewer"
GPU, BUZZER = "gpu.nvidia.com", "example.com/buzzer"
SLICES = ("gpu-0-mig-1g5gb-0", "gpu-0-mig-1g5gb-1")
HEALTH = (DeviceHealth("{node}", SLICES[0]), DeviceHealth("{node}", SLICES[1], "Unhealthy", "too many ECC errors"))


@pytest.fixture
def file(root: Path) -> Path:
    """GPUs that share counters, the health of two, and a device plugin."""
    (gpu,), (buzzer,) = library.shipped("a100-mig").drivers, library.shipped("led").plugins
    versions = ("v1.DRAPlugin", "v1beta1.DRAPlugin", "v1alpha1.DRAResourceHealth", "v1.DRAResourceHealth")
    made = Cassette("elsewhere", drivers=(replace(gpu, versions=versions, health=HEALTH),), plugins=(buzzer,))
    path = root / "gpus.yaml"
    path.write_bytes(cassette_file.encode(made))
    return path


def playing(file: Path, root: Path, credentials: Path) -> AbstractAsyncContextManager[RunningProcess]:
    where: list[str | Path] = ["--root", root, "--cdi-root", root / "cdi", "--kubeconfig", credentials, "--node", NODE]
    command = [sys.executable, "-m", "devlet", "play", file, *where]
    return process(command, name="devlet play", log=root / "play.log", ready=line("devlet play is ready"))


async def devlet(*arguments: str | Path, code: int = 0) -> str:
    done = await anyio.run_process([sys.executable, "-m", "devlet", *map(str, arguments)], check=False)
    assert done.returncode == code, done.stdout.decode() + done.stderr.decode()
    return (done.stderr if code else done.stdout).decode()


# A real API server


@pytest.fixture
async def server(peers: "Peers", root: Path) -> AsyncIterator[ControlPlane]:
    """With a user who may look at nodes and slices, and nothing else."""
    peers.need("etcd", "kubectl", "kube-apiserver")
    users = {NODE_USER: ["system:nodes"], VIEWER: []}
    async with control_plane(peers.binaries, root / "api", users=users, fsync=False) as running:
        what = ["--verb=get,list,watch", "--resource=nodes,resourceslices.resource.k8s.io"]
        for command in (
            ["create", "clusterrole", VIEWER, *what],
            ["create", "clusterrolebinding", VIEWER, f"--clusterrole={VIEWER}", f"--user={VIEWER}"],
        ):
            answer = await running.kubectl(*command)
            assert answer.returncode == 0, answer.stderr
        yield running


async def read(server: ControlPlane, *arguments: str) -> Any:
    answer = await server.kubectl("get", *arguments, "-o", "json")
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


async def test_what_is_played_on_a_real_cluster_is_captured_from_it_read_only(
    server: ControlPlane, root: Path, file: Path
) -> None:
    viewer = server.kubeconfig_of(VIEWER)
    joined = ["--kubeconfig", str(server.kubeconfig_of(NODE_USER))]
    async with NodeProcess(root, arguments=joined) as node:
        async with playing(file, root, server.kubeconfig_of(NODE_USER)):
            await until_reported(server, node)
            here, there = root / "here.yaml", root / "there.yaml"
            await devlet("capture", here, "--root", root)
            assert cassette_file.read(here).drivers[0].health == HEALTH
            assert await devlet("drift", file, here) == "no differences\n"

            await devlet("capture", there, "--kubeconfig", viewer)
            found = cassette_file.read(there)
            assert found.plugins[0].ids_unknown and not found.drivers[0].versions
            assert await devlet("drift", file, there) == "no differences\n"

            await server.kubectl(
                "create", "-f", "-", stdin='{"kind":"Node","apiVersion":"v1","metadata":{"name":"n2"}}'
            )
            told = await devlet("capture", "--kubeconfig", viewer, code=1)
            assert told == "error: the cluster has 2 nodes: choose one with --node: n1, n2\n"
            assert await devlet("drift", file, "live", "--kubeconfig", viewer, "--node", NODE) == "no differences\n"
        assert (await read(server, "resourceslices"))["items"] == []
    answer = await server.kubectl("auth", "can-i", "create", "resourceslices.resource.k8s.io", user=VIEWER)
    assert answer.stdout.strip() == "no"
    assert "forbidden" not in node.log.lower() and "Traceback" not in (root / "play.log").read_text()


async def until_reported(server: ControlPlane, node: NodeProcess) -> None:
    """Until the API has the devices of the plugin, and the node has heard of the health of the others."""

    async def capacity() -> Any:
        return (await read(server, "node", NODE))["status"].get("capacity", {}).get(BUZZER)

    async def heard() -> bool:
        path = anyio.Path(node.root / "dra_health_state")
        return await path.exists() and "too many ECC errors" in await path.read_text()

    await node.until_healthy(BUZZER, 1)
    await until(capacity, lambda found: found == "2")
    await until(heard)


# The kubelet's managers


async def test_the_managers_of_a_kubelet_take_what_is_played_for_drivers(
    peers: "Peers", root: Path, file: Path
) -> None:
    peers.need("kubelet-plugins")
    async with (
        embedded_api(root / "api") as api,
        connected(kubeconfig.connection([api.kubeconfig])) as cluster,
        beating_node(cluster, NODE),
        kubelet_plugins(peers.binaries, root, kubeconfig=api.kubeconfig, node_name=NODE) as kubelet,
        playing(file, root, api.kubeconfig),
    ):
        await until(partial(kubelet.has_driver, GPU))
        await until(kubelet.capacity, lambda found: found.get(BUZZER) == (2, 1))
        pod = await pod_with_slices(cluster)
        await kubelet.admit(pod)
        await kubelet.prepare(pod)
        container = (await kubelet.start(pod))["main"]
        assert container.env == {"BUZZERS": "buzzer-0"}
        assert variables(root, container.cdi or ()) == {
            "NVIDIA_VISIBLE_DEVICES": "void",
            "DEVLET_PLAYED_GPU_0_MIG_1G5GB_0": SLICES[0],
            "DEVLET_PLAYED_GPU_0_MIG_1G5GB_1": SLICES[1],
        }
        await until(
            partial(health, kubelet, pod), lambda found: found == {"": "Healthy", HEALTH[1].message: "Unhealthy"}
        )
        await kubelet.unprepare(pod)
        assert not list((root / "cdi").iterdir())
    assert "Traceback" not in (root / "play.log").read_text()


async def pod_with_slices(cluster: RemoteCluster) -> Document:
    """One with two slices of a GPU and a buzzer, in one container."""
    requests = [{"name": f"r{i}", "exactly": {"deviceClassName": "any"}} for i in range(len(SLICES))]
    claim = {"metadata": {"name": "gpu"}, "spec": {"devices": {"requests": requests}}}
    await cluster.create(RESOURCE_CLAIMS, claim, "default")
    results = [{"request": f"r{i}", "driver": GPU, "pool": NODE, "device": name} for i, name in enumerate(SLICES)]
    reserved = [{"resource": "pods", "name": "train", "uid": "train"}]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": reserved}
    await cluster.patch(RESOURCE_CLAIMS, "gpu", MergePatch({"status": status}), "default", subresource="status")
    amounts = {BUZZER: "1"}
    resources = {"limits": amounts, "requests": amounts, "claims": [{"name": "gpu"}]}
    spec = {
        "containers": [{"name": "main", "resources": resources}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}],
    }
    return {"metadata": {"name": "train", "namespace": "default", "uid": "train"}, "spec": spec}


def variables(root: Path, cdi: Any) -> dict[str, str]:
    """That a runtime would set for these CDI devices."""
    specs = [msgspec.json.decode(path.read_bytes()) for path in (root / "cdi").glob("*.json")]
    edits = {f"{s['kind']}={d['name']}": d["containerEdits"]["env"] for s in specs for d in s["devices"]}
    return dict(text.split("=", 1) for name in cdi for text in edits[name])


async def health(kubelet: KubeletPlugins, pod: Document) -> dict[str, str]:
    """Of the devices of its claims, by what their driver says about them."""
    told = (await kubelet.health(pod))["main"] or []
    of_claims = [each for each in told if each["name"].startswith("claim:")]
    return {each.get("message", ""): each["health"] for status in of_claims for each in status["resources"]}
