"""The real kube-scheduler and kube-controller-manager work with devlet's own API.

n1 has no node agent (devlet's own node has the host's name, and no devices for claims): the test keeps it alive, and
ends its pods as an agent does."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devlet.cluster.client import DeleteOptions, ListOptions, MergePatch
from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import RemoteCluster, connected
from devlet.cluster.remote.settings import Settings
from devlet.errors import NotFound
from devlet.objects.documents import Document
from devlet.objects.kinds import (
    CONFIG_MAPS,
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    SERVICE_ACCOUNTS,
    Resource,
)
from devlet.testing.embedded import EmbeddedApi, embedded_api
from devlet.testing.waiting import until
from tests.support.cluster_contract.specimens import claim_template, named, pod, unique
from tests.support.peers.drivers import dra_example_driver
from tests.support.peers.heartbeats import beating_node
from tests.support.peers.kube_programs import kube_controller_manager, kube_scheduler

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

# kube-controller-manager does all this
OFF = "--controllers=-garbage-collector,-namespace,-serviceaccount,-node-lifecycle"
CLASS = {
    "metadata": {"name": "gpu.example.com"},
    "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]},
}
CLAIMS = {
    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
    "containers": [{"name": "main", "image": "none", "resources": {"claims": [{"name": "gpu"}]}}],
}


@pytest.fixture(scope="module")
async def api(peers: "Peers") -> AsyncIterator[EmbeddedApi]:
    """devlet, kube-scheduler, kube-controller-manager, and a driver with one device on node n1."""
    peers.need("kubectl", "kube-scheduler", "kube-controller-manager", "dra-example-kubeletplugin")
    path = Path(tempfile.mkdtemp(prefix="dv"))
    # Instead of 50 s, so that a silent node is noticed while the test waits.
    impatient = ["--node-monitor-period=1s", "--node-monitor-grace-period=8s"]
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(embedded_api(path, binaries=peers.binaries, arguments=[OFF]))
        for program in (
            kube_scheduler(peers.binaries, path / "peers", running.kubeconfig),
            kube_controller_manager(
                peers.binaries, path / "peers", running.kubeconfig, root_ca=running.ca_file, flags=impatient
            ),
            dra_example_driver(peers.binaries, path / "n", running.kubeconfig, node_name="n1", num_devices=1),
        ):
            await stack.enter_async_context(program)
        yield running
    shutil.rmtree(path)


@pytest.fixture(scope="module")
async def cluster(api: EmbeddedApi) -> AsyncIterator[RemoteCluster]:
    async with connected(kubeconfig.connection([api.kubeconfig]), Settings(qps=0)) as cluster:
        await cluster.create(DEVICE_CLASSES, CLASS)
        yield cluster


@pytest.fixture
async def node(cluster: RemoteCluster) -> AsyncIterator[str]:
    """Alive, with its device published."""
    async with beating_node(cluster, "n1", every=1.0):
        await until(lambda: cluster.list(RESOURCE_SLICES), lambda page: bool(page.items))
        yield "n1"


@pytest.fixture
async def namespace(cluster: RemoteCluster) -> str:
    """Ready for pods that want the device."""
    name = unique("ns")
    await cluster.create(NAMESPACES, named(name))
    await cluster.create(RESOURCE_CLAIM_TEMPLATES, claim_template("gpu"), name)
    await until(partial(found, cluster, SERVICE_ACCOUNTS, "default", name))
    return name


async def found(cluster: RemoteCluster, resource: Resource, name: str, namespace: str = "") -> Document | None:
    try:
        return await cluster.get(resource, name, namespace)
    except NotFound:
        return None


async def pod_that(cluster: RemoteCluster, name: str, namespace: str, holds: Callable[[Document], bool]) -> Document:
    return await until(partial(cluster.get, PODS, name, namespace), holds)


async def claims(cluster: RemoteCluster, namespace: str) -> list[Document]:
    return list((await cluster.list(RESOURCE_CLAIMS, namespace)).items)


async def events(cluster: RemoteCluster, namespace: str, reason: str) -> list[Document]:
    page = await cluster.list(EVENTS, namespace, ListOptions(field_selector=f"reason={reason}"))
    return list(page.items)


def is_bound(pod: Document) -> bool:
    return bool(pod["spec"].get("nodeName"))


def condition(document: Document, type_: str) -> Document:
    return next((c for c in document["status"].get("conditions") or () if c["type"] == type_), {})


async def finish(cluster: RemoteCluster, name: str, namespace: str) -> None:
    """What a node agent does with a pod that has ended."""
    await cluster.patch(PODS, name, MergePatch({"status": {"phase": "Succeeded"}}), namespace, subresource="status")
    await cluster.delete(PODS, name, namespace, DeleteOptions(grace_period=0))


@pytest.mark.spec("KA-10.84")
@pytest.mark.spec("KA-0.8")
async def test_a_pod_with_a_claim_template_gets_its_claim_its_device_and_its_node(
    api: EmbeddedApi, cluster: RemoteCluster, node: str, namespace: str
) -> None:
    await cluster.create(PODS, pod("p1", spec=CLAIMS), namespace)
    bound = await pod_that(cluster, "p1", namespace, is_bound)
    [claim] = await claims(cluster, namespace)
    assert bound["spec"]["nodeName"] == node
    assert bound["status"]["resourceClaimStatuses"] == [{"name": "gpu", "resourceClaimName": claim["metadata"]["name"]}]
    [result] = claim["status"]["allocation"]["devices"]["results"]
    assert (result["driver"], result["pool"], result["device"]) == ("gpu.example.com", node, "gpu-0")
    [user] = claim["status"]["reservedFor"]
    assert (user["resource"], user["name"], user["uid"]) == ("pods", "p1", bound["metadata"]["uid"])
    assert claim["metadata"]["name"].startswith("p1-gpu-")
    shown = await api.kubectl("get", "resourceclaims", "-n", namespace, "--no-headers")
    assert shown.stdout.split()[1] == "allocated,reserved"
    assert await until(partial(events, cluster, namespace, "Scheduled"))
    await finish(cluster, "p1", namespace)


@pytest.mark.spec("KA-10.85")
async def test_the_claim_of_a_pod_that_ended_is_deleted_and_its_device_is_free_again(
    cluster: RemoteCluster, node: str, namespace: str
) -> None:
    await cluster.create(PODS, pod("p1", spec=CLAIMS), namespace)
    await pod_that(cluster, "p1", namespace, is_bound)
    await finish(cluster, "p1", namespace)
    await until(partial(claims, cluster, namespace), lambda left: not left)
    await cluster.create(PODS, pod("p2", spec=CLAIMS), namespace)
    await pod_that(cluster, "p2", namespace, is_bound)
    await finish(cluster, "p2", namespace)


@pytest.mark.spec("KA-10.86")
async def test_a_second_pod_waits_for_the_only_device_and_is_told_so(
    cluster: RemoteCluster, node: str, namespace: str
) -> None:
    await cluster.create(PODS, pod("p1", spec=CLAIMS), namespace)
    await pod_that(cluster, "p1", namespace, is_bound)
    await cluster.create(PODS, pod("p2", spec=CLAIMS), namespace)
    waiting = await pod_that(cluster, "p2", namespace, lambda pod: bool(condition(pod, "PodScheduled")))
    assert condition(waiting, "PodScheduled")["reason"] == "Unschedulable"
    assert "cannot allocate all claims" in condition(waiting, "PodScheduled")["message"]
    assert await until(partial(events, cluster, namespace, "FailedScheduling"))
    await finish(cluster, "p1", namespace)
    await pod_that(cluster, "p2", namespace, is_bound)
    await finish(cluster, "p2", namespace)


@pytest.mark.spec("KA-10.87")
async def test_a_pod_is_evicted_from_a_device_that_a_rule_taints(
    cluster: RemoteCluster, node: str, namespace: str
) -> None:
    await cluster.create(PODS, pod("p1", spec=CLAIMS), namespace)
    await pod_that(cluster, "p1", namespace, is_bound)
    rule = {
        "metadata": {"name": unique("broken")},
        "spec": {
            "deviceSelector": {"driver": "gpu.example.com", "pool": node, "device": "gpu-0"},
            "taint": {"key": "example.com/broken", "effect": "NoExecute"},
        },
    }
    made = await cluster.create(DEVICE_TAINT_RULES, rule)
    evicted = await pod_that(cluster, "p1", namespace, lambda pod: "deletionTimestamp" in pod["metadata"])
    assert condition(evicted, "DisruptionTarget")["reason"] == "DeletionByDeviceTaintManager"
    await cluster.delete(DEVICE_TAINT_RULES, made["metadata"]["name"])
    await finish(cluster, "p1", namespace)


async def test_namespaces_come_and_go_with_what_the_controllers_put_into_them(
    cluster: RemoteCluster, namespace: str
) -> None:
    await until(partial(found, cluster, CONFIG_MAPS, "kube-root-ca.crt", namespace))
    await cluster.delete(NAMESPACES, namespace)
    await until(partial(found, cluster, NAMESPACES, namespace), lambda left: left is None)
    assert await found(cluster, RESOURCE_CLAIM_TEMPLATES, "gpu", namespace) is None


async def test_the_garbage_collector_deletes_what_a_deleted_object_owned(
    cluster: RemoteCluster, namespace: str
) -> None:
    owner = await cluster.create(CONFIG_MAPS, named("owner"), namespace)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    await cluster.create(CONFIG_MAPS, named("owned", ownerReferences=[reference]), namespace)
    await cluster.delete(CONFIG_MAPS, "owner", namespace)
    await until(partial(found, cluster, CONFIG_MAPS, "owned", namespace), lambda left: left is None)
    assert await found(cluster, CONFIG_MAPS, "owner", namespace) is None


@pytest.mark.spec("KA-10.88")
async def test_a_node_that_falls_silent_is_called_unreachable(api: EmbeddedApi, cluster: RemoteCluster) -> None:
    def taints(node: Document) -> set[str]:
        return {taint["key"] for taint in node["spec"].get("taints") or ()}

    async with beating_node(cluster, "n2", every=1.0):
        await until(partial(cluster.get, NODES, "n2"), lambda node: "node.kubernetes.io/not-ready" not in taints(node))
    lost = await until(
        partial(cluster.get, NODES, "n2"), lambda node: "node.kubernetes.io/unreachable" in taints(node), within=60
    )
    assert condition(lost, "Ready")["status"] == "Unknown"
    shown = await api.kubectl("get", "node", "n2", "--no-headers")
    assert shown.stdout.split()[1] == "NotReady"
    await cluster.delete(NODES, "n2")


async def test_the_server_had_nothing_to_complain_about(api: EmbeddedApi) -> None:
    log = api.program.log.read_text()
    assert [line for line in log.splitlines() if line[:1] in ("W", "E") or "Traceback" in line] == []
