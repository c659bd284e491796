"""devlet as a node of a real cluster: registered, ready, with pods, through the loss of itself and the API server."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.node_process import NODE, NodeProcess
from devlet.testing.waiting import deadline, until
from tests.support.peers.control_plane import ControlPlane, control_plane

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

USER = f"system:node:{NODE}"
RESOURCE = "vendor.com/gpu"


@pytest.fixture(scope="module")
async def cluster(peers: "Peers") -> AsyncIterator[ControlPlane]:
    peers.need("etcd", "kubectl", "kube-apiserver", "kube-scheduler", "kube-controller-manager")
    path = Path(tempfile.mkdtemp(prefix="dv"))
    async with control_plane(
        peers.binaries, path, scheduler=True, controller_manager=True, users={USER: ["system:nodes"]}, fsync=False
    ) as running:
        answer = await running.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=60s")
        assert answer.returncode == 0, answer.stderr
        yield running
    shutil.rmtree(path)


@pytest.fixture
async def node(cluster: ControlPlane, root: Path, anyio_backend: str) -> AsyncIterator[NodeProcess]:
    """With the rights of a node, and no more."""
    async with NodeProcess(root, arguments=["--kubeconfig", str(cluster.kubeconfig_of(USER))]) as running:
        yield running
        await cluster.kubectl("delete", "pods", "--all", "--wait=true", "--timeout=60s")
    await cluster.kubectl("delete", "node", NODE, "--wait=true")
    assert "forbidden" not in running.log.lower()


def pod(name: str, **more: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "none", "resources": {"limits": {RESOURCE: "1"}}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 1} | more
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


async def apply(cluster: ControlPlane, document: dict[str, Any]) -> None:
    answer = await cluster.kubectl("apply", "-f", "-", stdin=json.dumps(document))
    assert answer.returncode == 0, answer.stderr


async def read(cluster: ControlPlane, *arguments: str) -> Any:
    answer = await cluster.kubectl("get", *arguments, "-o", "json")
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


async def wait(cluster: ControlPlane, what: str, condition: str) -> None:
    answer = await cluster.kubectl("wait", what, f"--for={condition}", "--timeout=60s")
    assert answer.returncode == 0, answer.stderr


async def devlet(root: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "devlet", *arguments, "--root", str(root)]
    return await anyio.run_process(command, check=False)


@pytest.mark.spec("KA-9.3a")
async def test_the_node_registers_and_becomes_ready(cluster: ControlPlane, node: NodeProcess) -> None:
    await wait(cluster, f"node/{NODE}", "condition=Ready")

    async def taints() -> Any:
        return (await read(cluster, "node", NODE))["spec"].get("taints")

    await until(taints, lambda found: not found)
    found = await read(cluster, "node", NODE)
    assert found["metadata"]["labels"]["kubernetes.io/hostname"] == NODE
    assert found["status"]["nodeInfo"]["kubeletVersion"].startswith("v1.36.")


@pytest.mark.spec("KA-9.3b")
async def test_the_heartbeat_is_a_lease_of_the_node(cluster: ControlPlane, node: NodeProcess) -> None:
    async def lease() -> Any:
        return await read(cluster, "leases", "-n", "kube-node-lease", "--field-selector", f"metadata.name={NODE}")

    first = (await until(lease, lambda found: found["items"]))["items"][0]
    assert first["spec"]["holderIdentity"] == NODE
    assert [owner["kind"] for owner in first["metadata"]["ownerReferences"]] == ["Node"]
    renewed = first["spec"]["renewTime"]
    await until(lease, lambda found: found["items"][0]["spec"]["renewTime"] > renewed, within=60)


@pytest.mark.spec("KA-9.3c")
async def test_a_pod_that_kube_scheduler_places_runs_and_is_removed(cluster: ControlPlane, node: NodeProcess) -> None:
    async with FakeDevicePlugin(node.plugins, RESOURCE, 2, follow=True):
        await node.until_healthy(RESOURCE, 2)
        await apply(cluster, pod("train"))
        await wait(cluster, "pod/train", "jsonpath={.status.phase}=Running")
        assert (await read(cluster, "pod", "train"))["spec"]["nodeName"] == NODE
        assert set(await node.held()) == {"train"}
        answer = await cluster.kubectl("delete", "pod", "train", "--wait=true", "--timeout=60s")
        assert answer.returncode == 0, answer.stderr
        await until(node.held, lambda held: held == {})


async def test_what_a_node_holds_is_the_same_after_kill_and_restart(cluster: ControlPlane, node: NodeProcess) -> None:
    async with FakeDevicePlugin(node.plugins, RESOURCE, 2, follow=True):
        await node.until_healthy(RESOURCE, 2)
        await apply(cluster, pod("train"))
        await wait(cluster, "pod/train", "jsonpath={.status.phase}=Running")
        held = await node.held()
        await node.kill()
        await node.start()
        await node.until_healthy(RESOURCE, 2)
        await wait(cluster, "pod/train", "jsonpath={.status.phase}=Running")
        assert await node.held() == held


async def test_a_pod_that_was_deleted_while_the_node_was_away_is_removed(
    cluster: ControlPlane, node: NodeProcess
) -> None:
    async with FakeDevicePlugin(node.plugins, RESOURCE, 2, follow=True):
        await node.until_healthy(RESOURCE, 2)
        await apply(cluster, pod("train"))
        await wait(cluster, "pod/train", "jsonpath={.status.phase}=Running")
        await node.kill()
        await cluster.kubectl("delete", "pod", "train", "--wait=false")
        await node.start()
        await wait(cluster, "pod/train", "delete")
        await until(node.held, lambda held: held == {})


async def test_an_api_server_that_is_killed_and_comes_back_finds_the_node_at_work(
    cluster: ControlPlane, node: NodeProcess
) -> None:
    async with FakeDevicePlugin(node.plugins, RESOURCE, 2, follow=True):
        await node.until_healthy(RESOURCE, 2)
        await apply(cluster, pod("before"))
        await wait(cluster, "pod/before", "jsonpath={.status.phase}=Running")
        await cluster.kill("kube-apiserver")
        assert set(await node.devices()) == {RESOURCE}, "the node's own views need no API server"
        assert (await devlet(node.root, "get", "pods")).returncode == 1
        await cluster.start("kube-apiserver")
        await apply(cluster, pod("after"))
        await wait(cluster, "pod/after", "jsonpath={.status.phase}=Running")
        assert {len(found[RESOURCE]) for found in (await node.held()).values()} == {1}
        answer = await cluster.kubectl("delete", "pod", "before", "--wait=true", "--timeout=60s")
        assert answer.returncode == 0, answer.stderr


async def test_a_node_that_starts_without_its_api_server_waits_for_it(
    cluster: ControlPlane, node: NodeProcess, root: Path
) -> None:
    await node.stop()
    await cluster.kill("kube-apiserver")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(node.start)

        async def log() -> str:
            return node.log

        await until(log, lambda text: "waiting for the API server" in text)
        code, _ = await node.read("/healthz")
        assert code == 200, "the socket is there already"
        await cluster.start("kube-apiserver")
    await wait(cluster, f"node/{NODE}", "condition=Ready")


async def test_the_cli_sees_the_node_and_what_the_node_may_see(cluster: ControlPlane, node: NodeProcess) -> None:
    async with FakeDevicePlugin(node.plugins, RESOURCE, 1, follow=True):
        await node.until_healthy(RESOURCE, 1)
        await apply(cluster, pod("train"))
        await apply(cluster, pod("elsewhere", nodeSelector={"no": "such"}))
        await wait(cluster, "pod/train", "jsonpath={.status.phase}=Running")
        devices = await devlet(node.root, "get", "devices", "-o", "json")
        assert [each["status"]["holder"]["pod"] for each in json.loads(devices.stdout)["items"]] == ["train"]
        pods = await devlet(node.root, "get", "pods")
        assert b"train" in pods.stdout and b"elsewhere" not in pods.stdout
        assert b"only objects of node n1" in pods.stderr
        secrets = await devlet(node.root, "get", "secrets")
        assert (secrets.returncode, b"forbidden" in secrets.stderr) == (1, True)


async def test_a_watch_through_the_socket_shows_changes_as_they_come(cluster: ControlPlane, node: NodeProcess) -> None:
    selector = f"fieldSelector=spec.nodeName%3D{NODE}"
    async with await anyio.connect_unix(node.root / "devlet.sock") as stream:
        path = f"/api/v1/namespaces/default/pods?watch=true&{selector}"
        await stream.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        text = b""
        await apply(cluster, pod("later", nodeName=NODE, containers=[{"name": "c", "image": "none"}]))
        with deadline():
            while b'"phase":"Running"' not in text:
                text += await stream.receive()
    assert text.startswith(b"HTTP/1.1 200 OK")
    assert b'"type":"ADDED"' in text


async def test_with_the_rights_of_an_administrator_everything_can_be_explained(
    cluster: ControlPlane, root: Path
) -> None:
    claim = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "none"}}]}}
    await apply(
        cluster,
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "gpu"}, "spec": claim},
    )
    async with NodeProcess(root, arguments=["--kubeconfig", str(cluster.kubeconfig)]) as node:
        explained = await devlet(node.root, "explain", "claim/gpu")
        assert b"none" in explained.stdout, explained.stderr
        assert explained.stderr == b""
    await cluster.kubectl("delete", "node", NODE, "--wait=true")


async def test_a_root_stays_with_its_cluster(cluster: ControlPlane, root: Path) -> None:
    arguments = ["--node-name", NODE, "--kubeconfig", str(cluster.kubeconfig)]
    async with NodeProcess(root, arguments=arguments):
        pass
    embedded = await devlet(root, "up")
    assert embedded.returncode == 1
    assert f"error: the node on root {root} belongs to the cluster at {cluster.endpoint}" in embedded.stderr.decode()
    await cluster.kubectl("delete", "node", NODE, "--wait=true")
