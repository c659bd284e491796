"""A real API server accepts the manifests of a project that `devlet driver new` created. They give the driver what it
needs on its own node, and nothing elsewhere."""

import json
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from devlet.cli.driver_project import Kind, Names, create
from devlet.kit.processes import RunningProcess, process
from devlet.testing.waiting import until
from tests.support.peers.control_plane import ControlPlane, control_plane

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

LED = Names("led", "example.com")
ACCOUNT = LED.distribution  # and its namespace
NODE = "n1"


@pytest.fixture(scope="module")
async def cluster(peers: "Peers") -> AsyncIterator[ControlPlane]:
    """Run a control plane without scheduler and controllers."""
    peers.need("etcd", "kubectl", "kube-apiserver")
    path = Path(tempfile.mkdtemp(prefix="dv"))
    create(path / "led", Kind.DRA, LED)
    async with control_plane(peers.binaries, path, fsync=False) as running:
        await kubectl(running, "apply", "--validate=strict", "-f", str(path / "led/deploy/daemonset.yaml"))
        for name in (NODE, "n2"):
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
            await kubectl(running, "create", "-f", "-", stdin=node)
        yield running
    shutil.rmtree(path)


async def kubectl(cluster: ControlPlane, *arguments: str, stdin: Any = None) -> str:
    answer = await cluster.kubectl(*arguments, stdin=json.dumps(stdin) if stdin is not None else "")
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


@pytest.fixture(scope="module")
async def credentials(cluster: ControlPlane) -> Path:
    """Return a kubeconfig with the credentials of the driver's pod on the node."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "driver", "namespace": ACCOUNT},
        "spec": {"nodeName": NODE, "serviceAccountName": ACCOUNT, "containers": [{"name": "c", "image": "i"}]},
    }
    await kubectl(cluster, "create", "-f", "-", stdin=pod)
    bound = ("--bound-object-kind=Pod", "--bound-object-name=driver")
    token = await kubectl(cluster, "create", "token", ACCOUNT, "-n", ACCOUNT, *bound)
    config = json.loads(cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token.strip()}
    path = cluster.root / "driver.kubeconfig"
    path.write_text(json.dumps(config))
    return path


def driver(cluster: ControlPlane, config: Path, root: Path, node: str) -> AbstractAsyncContextManager[RunningProcess]:
    program = cluster.root / "led/src/led_driver/driver.py"
    flags: list[str | Path] = [
        "--node-name",
        node,
        "--kubelet-root",
        root,
        "--cdi-root",
        root / "cdi",
        "--kubeconfig",
        config,
    ]
    return process([sys.executable, program, *flags], log=root / "driver.log", name="led")


async def slices(cluster: ControlPlane) -> list[str]:
    found = json.loads(await kubectl(cluster, "get", "resourceslices", "-o", "json"))["items"]
    return [each["spec"]["nodeName"] for each in found]


async def test_the_driver_publishes_the_devices_of_its_node(
    cluster: ControlPlane, credentials: Path, root: Path
) -> None:
    async def published() -> list[str]:
        return await slices(cluster)

    async with driver(cluster, credentials, root, NODE):
        await until(published, lambda found: found == [NODE])
    assert "forbidden" not in (root / "driver.log").read_text().lower()
    await kubectl(cluster, "delete", "resourceslices", "--all")


async def test_it_cannot_publish_devices_of_another_node(cluster: ControlPlane, credentials: Path, root: Path) -> None:
    async def said() -> str:
        return (root / "driver.log").read_text()

    async with driver(cluster, credentials, root, "n2"):
        await until(said, lambda text: "a driver can only write slices of the node on which it runs" in text)
    assert await slices(cluster) == []


async def test_it_cannot_publish_devices_of_another_driver(cluster: ControlPlane, credentials: Path) -> None:
    pool = {"name": NODE, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "other.example.com", "nodeName": NODE, "pool": pool, "devices": [{"name": "d"}]}
    document = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "x"}, "spec": spec}
    answer = await cluster.kubectl("create", "-f", "-", f"--kubeconfig={credentials}", stdin=json.dumps(document))
    assert answer.returncode == 1 and "a driver can only write its own slices" in answer.stderr


@pytest.mark.parametrize(
    ("what", "answer"),
    [
        ("get resourceclaims", "yes"),
        ("update resourceslices", "yes"),
        ("delete resourceslices", "yes"),
        ("list resourceclaims", "no"),
        ("update resourceclaims/status", "no"),
        ("list nodes", "no"),
        ("get pods", "no"),
        ("get secrets", "no"),
        ("deletecollection resourceslices", "no"),
    ],
)
async def test_it_may_do_only_what_it_needs(cluster: ControlPlane, credentials: Path, what: str, answer: str) -> None:
    asked = await cluster.kubectl("auth", "can-i", *what.split(), "-A", f"--kubeconfig={credentials}")
    assert asked.stdout.strip() == answer


async def test_the_manifest_of_a_device_plugin_is_accepted(cluster: ControlPlane, root: Path) -> None:
    create(root / "led", Kind.DEVICE_PLUGIN, LED)
    arguments = ("apply", "--dry-run=server", "--validate=strict", "-f", str(root / "led/deploy/daemonset.yaml"))
    assert f"daemonset.apps/{ACCOUNT} configured (server dry run)" in await kubectl(cluster, *arguments)
