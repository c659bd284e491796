"""Nobody allocates by hand: kube-scheduler and kube-controller-manager, devlet as API and node, and dra-example-driver
take pods with claims from their creation to their end."""

import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from devlet.objects.documents import Document
from devlet.testing.node_process import NODE
from devlet.testing.waiting import until
from tests.support.claim_node import CLAIMS, container
from tests.support.cluster_contract.specimens import claim, claim_template
from tests.support.peers.drivers import generic_device_plugin
from tests.support.peers.kube_programs import kube_controller_manager, kube_scheduler
from tests.support.peers.peer_node import EXAMPLE, PeerNode

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
SETTINGS = "timeouts: {sliceWipeDelay: 500ms}\n"
OURS = "--controllers=-garbage-collector"
THEIRS = ("resourceclaim-controller", "garbage-collector-controller", "pod-garbage-collector-controller")
EXTENDED = "example.com/gpu"
NULL: dict[str, Any] = {"name": "null", "groups": [{"count": 1, "paths": [{"path": "/dev/null"}]}]}


@pytest.fixture(scope="module")
async def running(peers: "Peers") -> AsyncIterator[PeerNode]:
    """With both programs of the control plane, a class for the driver's GPUs, and a template for one of them."""
    peers.need("kube-scheduler", "kube-controller-manager", "dra-example-kubeletplugin", "generic-device-plugin")
    root = Path(tempfile.mkdtemp(prefix="dv"))
    async with AsyncExitStack() as stack:
        node = await stack.enter_async_context(PeerNode(root, peers.binaries, SETTINGS, arguments=[OURS]))
        for program in (
            kube_scheduler(peers.binaries, root / "peers", node.kubeconfig),
            kube_controller_manager(peers.binaries, root / "peers", node.kubeconfig, controllers=THEIRS),
        ):
            await stack.enter_async_context(program)
        selectors = [{"cel": {"expression": f"device.driver == '{EXAMPLE}'"}}]
        spec = {"selectors": selectors, "extendedResourceName": EXTENDED}
        await node.call("POST", CLASSES, {"metadata": {"name": EXAMPLE}, "spec": spec})
        await node.call("POST", TEMPLATES, claim_template("gpu"))
        yield node
    shutil.rmtree(root)


@pytest.fixture
async def node(running: PeerNode) -> AsyncIterator[PeerNode]:
    """No driver runs. What a test leaves behind is gone before its driver is."""
    await until(partial(running.own_slices, EXAMPLE), lambda left: not left)
    yield running


@pytest.fixture
async def driver(node: PeerNode) -> AsyncIterator[None]:
    """Two GPUs."""
    async with node.example_driver(num_devices=2):
        yield
        await node.leave_nothing()
        await until(partial(claims, node), lambda left: not left)
        assert node.example_claims() == []


def pod(name: str, *containers: Document, init: Document | None = None, claim: str = "") -> Document:
    """Not bound. Without a claim of that name it has one of its own, and without containers one that uses it."""
    entry = {"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": "gpu"}
    spec = {
        "restartPolicy": "Never",
        "resourceClaims": [{"name": "gpu", **entry}],
        "containers": list(containers) or [container("main", ["gpu"])],
        "initContainers": [init] if init else [],
    }
    return {"metadata": {"name": name}, "spec": spec}


async def claims(node: PeerNode) -> dict[str, Document]:
    return {each["metadata"]["name"]: each for each in await node.items(CLAIMS)}


async def gpus(node: PeerNode, pod: str, container: str = "main") -> list[str]:
    """Those in the container's environment."""
    environment = await node.environment(pod, container)
    return [value for name, value in environment.items() if name.removeprefix("GPU_DEVICE_").isdigit()]


async def finish(node: PeerNode, name: str) -> None:
    await node.finish(name)
    await node.until_phase(name, "Succeeded")


def unschedulable(pod: Document) -> str:
    """Why, or nothing."""
    conditions = pod.get("status", {}).get("conditions", ())
    return next((each["message"] for each in conditions if each.get("reason") == "Unschedulable"), "")


# From beginning to end


@pytest.mark.spec("DN-9.3.12")
@pytest.mark.spec("DN-9.3.22")
async def test_a_pod_with_a_template_runs_with_a_device_and_its_claim_goes_when_it_ends(
    node: PeerNode, driver: None
) -> None:
    await node.create(pod("train"))
    running = await node.until_phase("train", "Running")
    [(name, made)] = (await claims(node)).items()
    [status] = running["status"]["resourceClaimStatuses"]
    assert (running["spec"]["nodeName"], status["resourceClaimName"]) == (NODE, name)
    [given] = made["status"]["allocation"]["devices"]["results"]
    assert await gpus(node, "train") == [given["device"]]
    assert (await node.prepared())[name]["state"] == "Prepared"
    assert len(node.specs()) == 1
    await finish(node, "train")
    await until(partial(claims, node), lambda left: not left)
    assert (node.specs(), node.example_claims(), await node.prepared()) == (set(), [], {})


@pytest.mark.spec("DN-9.3.11")
@pytest.mark.spec("DN-9.3.23")
async def test_a_claim_that_outlives_its_pod_is_neither_reserved_nor_allocated_any_more(
    node: PeerNode, driver: None
) -> None:
    await node.call("POST", CLAIMS, claim("mine"))
    await node.create(pod("train", claim="mine"))
    await node.until_phase("train", "Running")
    assert (await claims(node))["mine"]["status"]["reservedFor"][0]["name"] == "train"
    await finish(node, "train")
    await until(partial(claims, node), lambda found: not found["mine"].get("status"))
    await node.create(pod("again", claim="mine"))
    await node.until_phase("again", "Running")
    await node.delete("again")
    await node.call("DELETE", f"{CLAIMS}/mine")


@pytest.mark.spec("DN-9.3.14")
async def test_a_pod_is_scheduled_when_there_is_a_driver(node: PeerNode) -> None:
    await node.create(pod("train"))
    await node.until_pod("train", lambda found: "cannot allocate all claims" in unschedulable(found))
    async with node.example_driver(num_devices=1):
        await node.until_phase("train", "Running")
        await node.leave_nothing()


@pytest.mark.spec("DN-9.3.19")
async def test_five_pods_take_turns_on_one_device(node: PeerNode) -> None:
    names = [f"p{number}" for number in range(5)]
    async with node.example_driver(num_devices=1):
        await node.create(*(pod(name) for name in names))
        for _ in names:
            found = await until(node.pods, lambda pods: "Running" in phases(pods))
            [name] = [each for each, one in found.items() if one["status"]["phase"] == "Running"]
            assert await gpus(node, name) == ["gpu-0"]
            await finish(node, name)
            await node.delete(name)
        await node.leave_nothing()


def phases(pods: dict[str, Document]) -> list[str]:
    return [each["status"]["phase"] for each in pods.values()]


@pytest.mark.spec("DN-9.3.20")
async def test_five_pods_share_one_claim(node: PeerNode, driver: None) -> None:
    names = [f"p{number}" for number in range(5)]
    await node.call("POST", CLAIMS, claim("shared"))
    await node.create(*(pod(name, claim="shared") for name in names))
    for name in names:
        await node.until_phase(name, "Running")
    assert len({tuple(await gpus(node, name)) for name in names}) == 1
    assert len(node.example_claims()) == 1


@pytest.mark.spec("DN-9.3.10")
async def test_init_containers_see_a_generated_claim(node: PeerNode, driver: None) -> None:
    sidecar = container("first", ["gpu"]) | {"restartPolicy": "Always"}
    await node.create(pod("train", init=sidecar))
    await node.until_phase("train", "Running")
    [device] = await gpus(node, "train", "first")
    assert await gpus(node, "train") == [device]


@pytest.mark.spec("DN-9.3.24")
async def test_one_pod_has_a_device_of_a_plugin_and_one_of_a_driver(
    node: PeerNode, driver: None, peers: "Peers"
) -> None:
    async with generic_device_plugin(peers.binaries, node.root, [NULL]):
        main = container("main", ["gpu"])
        main["resources"]["limits"] = {"squat.ai/null": "1"}
        await node.create(pod("train", main))
        await node.until_phase("train", "Running")
        found = (await node.containers("train"))["main"]
        assert [each["resource"] for each in found["devices"]] == ["squat.ai/null"]
        assert [each["driver"] for each in found["claims"]] == [EXAMPLE]
        assert len(await gpus(node, "train")) == 1
        await node.delete("train")


# Parts of devices


def wanting(name: str, **exactly: Any) -> Document:
    """A claim for one GPU, or a part of it."""
    request = {"name": "gpu", "exactly": {"deviceClassName": EXAMPLE, **exactly}}
    return {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}


async def take_turns(node: PeerNode, first: Document, second: Document) -> None:
    """There is not enough for both: the pod of the second claim starts when the one of the first has ended."""
    for made in (first, second):
        await node.call("POST", CLAIMS, made)
    await node.create(pod("first", claim="first"))
    await node.until_phase("first", "Running")
    await node.create(pod("second", claim="second"))
    await node.until_pod("second", lambda found: bool(unschedulable(found)))
    await finish(node, "first")
    await node.until_phase("second", "Running")
    assert "first" not in await node.prepared()


@pytest.mark.spec("DN-9.3.29")
async def test_parts_of_a_device_that_is_shared_fit_into_it(node: PeerNode) -> None:
    def part(name: str, memory: int) -> Document:
        return wanting(name, capacity={"requests": {"memory": f"{memory}Gi", "compute": "1"}})

    async with node.example_driver(num_devices=1, flags=["--gpu-allow-multiple-allocations"]):
        await node.call("POST", CLAIMS, part("small", 20))
        await node.create(pod("small", claim="small"))
        await node.until_phase("small", "Running")
        await take_turns(node, part("first", 50), part("second", 40))
        found = (await node.prepared())["second"]["drivers"][0]["devices"][0]
        [given] = (await claims(node))["second"]["status"]["allocation"]["devices"]["results"]
        assert (found["device"], found["shareID"]) == ("gpu-0", given["shareID"])
        await node.leave_nothing()


@pytest.mark.spec("DN-9.3.30")
async def test_a_partition_and_the_whole_device_exclude_each_other(node: PeerNode) -> None:
    def partition(name: str, memory: int) -> Document:
        expression = f"device.capacity['{EXAMPLE}'].memory.compareTo(quantity('{memory}Gi')) == 0"
        return wanting(name, selectors=[{"cel": {"expression": expression}}])

    async with node.example_driver(num_devices=1, flags=["--gpu-partitions=2"]):
        await take_turns(node, partition("first", 40), partition("second", 80))
        assert (await node.prepared())["second"]["drivers"][0]["devices"][0]["device"] == "gpu-0-full"
        await node.leave_nothing()


# Extended resources


def extended(name: str, *counts: int, resource: str = EXTENDED) -> Document:
    """A pod with containers c0, c1 and so on that have so many GPUs each."""
    containers = [
        {"name": f"c{number}", "image": "x", "resources": {"limits": {resource: str(count)}}}
        for number, count in enumerate(counts)
    ]
    return {"metadata": {"name": name}, "spec": {"restartPolicy": "Never", "containers": containers}}


@pytest.mark.spec("DN-9.3.31")
@pytest.mark.spec("DN-9.3.32")
@pytest.mark.spec("DN-9.3.36")
@pytest.mark.parametrize("resource", [EXTENDED, f"deviceclass.resource.kubernetes.io/{EXAMPLE}"])
@pytest.mark.parametrize("counts", [(2,), (1, 1)], ids=["two in a container", "one in each, and it fails"])
async def test_extended_resources_are_devices_of_the_driver(
    node: PeerNode, driver: None, counts: tuple[int, ...], resource: str
) -> None:
    await node.create(extended("train", *counts, resource=resource))
    running = await node.until_phase("train", "Running")
    status = running["status"]["extendedResourceClaimStatus"]
    assert list(await claims(node)) == [status["resourceClaimName"]]
    assert [each["resourceName"] for each in status["requestMappings"]] == [resource] * len(counts)
    found = [await gpus(node, "train", f"c{number}") for number in range(len(counts))]
    assert [len(each) for each in found] == list(counts)
    assert sorted(each for one in found for each in one) == ["gpu-0", "gpu-1"]
    await node.finish("train", code=len(counts) - 1)
    await node.until_phase("train", ["Succeeded", "Failed"][len(counts) - 1])
    await until(partial(claims, node), lambda left: not left)


@pytest.mark.spec("DN-9.3.34")
async def test_a_pod_waits_until_extended_resources_are_free(node: PeerNode, driver: None) -> None:
    await node.create(extended("first", 2))
    await node.until_phase("first", "Running")
    await node.create(extended("second", 1))
    await node.until_pod("second", lambda found: bool(unschedulable(found)))
    await finish(node, "first")
    await node.until_phase("second", "Running")


@pytest.mark.spec("DN-9.3.35")
async def test_no_extended_resources_are_no_claim(node: PeerNode, driver: None) -> None:
    await node.create(extended("train", 0))
    running = await node.until_phase("train", "Running")
    assert "extendedResourceClaimStatus" not in running["status"]
    assert (await claims(node), await node.prepared()) == ({}, {})


@pytest.mark.spec("DN-9.3.37")
async def test_a_class_of_extended_resources_may_come_after_the_pod(node: PeerNode, driver: None) -> None:
    resource = "late.example.com/gpu"
    await node.create(extended("train", 1, resource=resource))
    await node.until_pod("train", lambda found: f"Insufficient {resource}" in unschedulable(found))
    late = (await node.call("GET", f"{CLASSES}/{EXAMPLE}"))["spec"] | {"extendedResourceName": resource}
    await node.call("POST", CLASSES, {"metadata": {"name": "late"}, "spec": late})
    await node.until_phase("train", "Running")
    assert len(await gpus(node, "train", "c0")) == 1
    await node.call("DELETE", f"{CLASSES}/late")


@pytest.mark.spec("DN-9.3.33")
async def test_extended_resources_may_have_been_those_of_a_device_plugin(
    node: PeerNode, driver: None, peers: "Peers"
) -> None:
    """The plugin's own devices come first; when it is gone, and the node has none any more, the driver's are taken."""
    late = (await node.call("GET", f"{CLASSES}/{EXAMPLE}"))["spec"] | {"extendedResourceName": "squat.ai/null"}
    await node.call("POST", CLASSES, {"metadata": {"name": "null"}, "spec": late})
    async with generic_device_plugin(peers.binaries, node.root, [NULL]):
        await until(partial(allocatable, node), lambda found: found == "1")
        await node.create(extended("early", 1, resource="squat.ai/null"))
        await node.until_phase("early", "Running")
        assert (await claims(node), await gpus(node, "early", "c0")) == ({}, [])
        await finish(node, "early")
    await until(partial(allocatable, node), lambda found: found in ("0", ""))
    await node.create(extended("late", 1, resource="squat.ai/null"))
    await node.until_phase("late", "Running")
    assert len(await gpus(node, "late", "c0")) == 1
    await node.call("DELETE", f"{CLASSES}/null")


async def allocatable(node: PeerNode) -> str:
    status = (await node.call("GET", f"/api/v1/nodes/{NODE}"))["status"]
    return str(status["allocatable"].get("squat.ai/null", ""))
