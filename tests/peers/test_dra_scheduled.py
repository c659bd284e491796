"""Nobody allocates by hand: kube-scheduler and kube-controller-manager, devlet as API and node, and dra-example-driver
with two GPUs take pods with claim templates from their creation to their end."""

import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devlet.objects.documents import Document
from devlet.testing.claim_node import CLAIMS, ClaimNode, container
from devlet.testing.cluster_contract.specimens import DRIVER, claim_template
from devlet.testing.drivers import dra_example_driver
from devlet.testing.kube_programs import kube_controller_manager, kube_scheduler
from devlet.testing.node_process import NODE
from devlet.testing.waiting import until

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
    pytest.mark.timeout(120),
    pytest.mark.xdist_group("peers-dra-scheduled"),
]

RESOURCES = "/apis/resource.k8s.io/v1"
TEMPLATES = f"{RESOURCES}/namespaces/default/resourceclaimtemplates"
CLASSES = f"{RESOURCES}/deviceclasses"
SETTINGS = "timeouts: {sliceWipeDelay: 1s}\n"
OURS = "--controllers=-garbage-collector"
THEIRS = ("resourceclaim-controller", "garbage-collector-controller", "pod-garbage-collector-controller")
CLASS = {"metadata": {"name": DRIVER}, "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]}}


@pytest.fixture(scope="module")
async def node(peers: "Peers") -> AsyncIterator[ClaimNode]:
    """With both programs of the control plane, the driver's class, and a template for one GPU. There is no driver."""
    peers.need("kube-scheduler", "kube-controller-manager", "dra-example-kubeletplugin")
    root = Path(tempfile.mkdtemp(prefix="dv"))
    async with AsyncExitStack() as stack:
        node = await stack.enter_async_context(ClaimNode(root, SETTINGS, arguments=[OURS]))
        kubeconfig, logs = root / "kubeconfig", root / "peers"
        for program in (
            kube_scheduler(peers.binaries, logs, kubeconfig),
            kube_controller_manager(peers.binaries, logs, kubeconfig, controllers=THEIRS),
        ):
            await stack.enter_async_context(program)
        await node.call("POST", CLASSES, CLASS)
        await node.call("POST", TEMPLATES, claim_template("gpu"))
        yield node
        assert "Traceback" not in node.log
    shutil.rmtree(root)


@pytest.fixture
async def driver(node: ClaimNode, peers: "Peers") -> AsyncIterator[None]:
    async with dra_example_driver(peers.binaries, node.root, node.root / "kubeconfig", node_name=NODE, num_devices=2):
        yield
        await node.call("DELETE", "/api/v1/namespaces/default/pods")
        await until(node.pods, lambda left: not left)
        await node.call("DELETE", CLAIMS)
        await until(partial(claims, node), lambda left: not left)


def pod(name: str, *containers: Document, **entry: str) -> Document:
    """Not bound. Without containers it has one that uses its claim."""
    return {
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never",
            "resourceClaims": [{"name": "gpu", **(entry or {"resourceClaimTemplateName": "gpu"})}],
            "containers": list(containers) or [container("main", ["gpu"])],
        },
    }


async def claims(node: ClaimNode) -> dict[str, Document]:
    return {each["metadata"]["name"]: each for each in await node.items(CLAIMS)}


async def device_of(node: ClaimNode, pod: str, container: str = "main") -> str:
    """The one GPU in the container's environment."""
    environment = await node.environment(pod, container)
    [device] = [value for name, value in environment.items() if name.startswith("GPU_DEVICE_") and name[11:].isdigit()]
    return device


def specs(node: ClaimNode) -> list[str]:
    """Of claims; the driver has one for all of them, too."""
    return [path.name for path in (node.root / "cdi").iterdir() if "common" not in path.name]


@pytest.mark.spec("DN-9.3.12")
@pytest.mark.spec("DN-9.3.22")
async def test_a_pod_with_a_template_runs_with_a_device_and_its_claim_goes_when_it_ends(
    node: ClaimNode, driver: None
) -> None:
    await node.create(pod("train"))
    running = await node.until_phase("train", "Running")
    assert running["spec"]["nodeName"] == NODE
    [status] = running["status"]["resourceClaimStatuses"]
    [(name, made)] = (await claims(node)).items()
    assert (status["name"], status["resourceClaimName"]) == ("gpu", name)
    [given] = made["status"]["allocation"]["devices"]["results"]
    assert await device_of(node, "train") == given["device"]
    assert (await node.prepared())[name]["state"] == "Prepared"
    assert len(specs(node)) == 1
    await node.finish("train")
    await node.until_phase("train", "Succeeded")
    await until(partial(claims, node), lambda left: not left)
    await node.until_forgotten(name)
    assert specs(node) == []
