"""A driver made with the SDK and a devlet node, at the two ends of real sockets."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.abc import TaskStatus

from devlet.cluster.client import Cluster
from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import connected
from devlet.objects import kinds
from devlet.objects.documents import Document
from devlet.sdk.dra_driver import Devices, DraDriver, DraOptions
from devlet.sdk.registrar import Registrar
from devlet.sdk.values import Claim, ClaimRef, Device, DeviceHealth, Prepared
from devlet.testing.node_process import NODE, NodeProcess
from devlet.testing.waiting import deadline, until
from tests.support.workloads import device_class, pod, template

pytestmark = pytest.mark.anyio

NAME = "gpu.example.com"


class Gpus(DraDriver):
    """With two devices; the hot one is not well."""

    name = NAME

    def __init__(self) -> None:
        self.unprepared: list[str] = []

    async def devices(self) -> AsyncIterator[Devices]:
        yield [Device("cold", {"model": "x"}, {"memory": "8Gi"}), Device("hot", {"model": "x"})]

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        return [Prepared(result, env={"GPU": result.device}) for result in claim.results]

    async def unprepare(self, claim: ClaimRef) -> None:
        self.unprepared.append(claim.name)

    async def health(self) -> AsyncIterator[Sequence[DeviceHealth]]:
        yield [DeviceHealth(NODE, "cold"), DeviceHealth(NODE, "hot", "Unhealthy", "too hot")]


@pytest.fixture
async def node(root: Path, anyio_backend: str) -> AsyncIterator[NodeProcess]:
    async with NodeProcess(root, control=True) as node:
        yield node


@pytest.fixture
async def cluster(node: NodeProcess) -> AsyncIterator[Cluster]:
    async with connected(kubeconfig.connection([node.root / "kubeconfig"])) as cluster:
        yield cluster


@asynccontextmanager
async def at_work(
    driver: DraDriver, node: NodeProcess, cluster: Cluster, instance: str = ""
) -> AsyncIterator[Registrar]:
    options = DraOptions(NODE, kubelet=node.root, cdi_directory=node.root / "cdi", instance=instance)
    async with anyio.create_task_group() as tasks:
        registrar: Registrar = await tasks.start(driver.run, options, cluster)
        with deadline():
            await registrar.registered()
        yield registrar
        tasks.cancel_scope.cancel()


async def add_pod(cluster: Cluster, name: str) -> None:
    await cluster.create(kinds.PODS, pod(name, template="one"), "default")


async def prepare_cluster(cluster: Cluster) -> None:
    await cluster.create(kinds.DEVICE_CLASSES, device_class())
    await cluster.create(kinds.RESOURCE_CLAIM_TEMPLATES, template("one"), "default")


async def phase(cluster: Cluster, name: str, wanted: str) -> Document:
    async def read() -> Document:
        return await cluster.get(kinds.PODS, name, "default")

    return await until(read, lambda found: found["status"].get("phase") == wanted)


async def test_a_pod_gets_a_device_and_gives_it_back(node: NodeProcess, cluster: Cluster) -> None:
    driver = Gpus()
    await prepare_cluster(cluster)
    async with at_work(driver, node, cluster):
        await add_pod(cluster, "train")
        await phase(cluster, "train", "Running")
        claims = (await cluster.list(kinds.RESOURCE_CLAIMS)).items
        given = claims[0]["status"]["allocation"]["devices"]["results"][0]["device"]
        assert (await node.environment("train"))["GPU"] == given
        await cluster.delete(kinds.PODS, "train", "default")

        async def unprepared() -> list[str]:
            return driver.unprepared

        assert await until(unprepared) == [claims[0]["metadata"]["name"]]


async def test_health_reaches_the_pod(node: NodeProcess, cluster: Cluster) -> None:
    await prepare_cluster(cluster)
    async with at_work(Gpus(), node, cluster):
        for name in ("one", "two"):
            await add_pod(cluster, name)
        for name in ("one", "two"):
            await phase(cluster, name, "Running")

        async def healths() -> set[str]:
            pods = (await cluster.list(kinds.PODS)).items
            statuses = [status for each in pods for status in each["status"].get("containerStatuses", [])]
            entries = [entry for status in statuses for entry in status.get("allocatedResourcesStatus", [])]
            return {resource["health"] for entry in entries for resource in entry["resources"]}

        await until(healths, lambda found: found == {"Healthy", "Unhealthy"})


@pytest.mark.spec("DN-9.2.01")
async def test_it_is_registered_again_when_the_node_comes_back(node: NodeProcess, cluster: Cluster) -> None:
    async with at_work(Gpus(), node, cluster) as registrar:
        await node.kill()
        await node.start()
        with deadline():
            await registrar.registered(2)


@pytest.mark.spec("DN-9.3.15")
async def test_a_rolling_update_keeps_slices_and_claims(node: NodeProcess, cluster: Cluster) -> None:
    await prepare_cluster(cluster)

    async def slices() -> Sequence[Document]:
        return list((await cluster.list(kinds.RESOURCE_SLICES)).items)

    async def old(stop: anyio.Event, *, task_status: TaskStatus[None]) -> None:
        async with at_work(Gpus(), node, cluster, "old"):
            task_status.started()
            await stop.wait()

    async def claims() -> Sequence[Document]:
        return (await cluster.list(kinds.RESOURCE_CLAIMS)).items

    stop = anyio.Event()
    async with anyio.create_task_group() as instances:
        await instances.start(old, stop)
        before = await until(slices)
        await add_pod(cluster, "train")
        await phase(cluster, "train", "Running")
        async with at_work(Gpus(), node, cluster, "new"):
            stop.set()
            await cluster.delete(kinds.PODS, "train", "default")
            await until(claims, lambda found: not found)
            assert await slices() == before
