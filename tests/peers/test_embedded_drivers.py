"""Unmodified Go drivers publish their devices to devlet's own API."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from devlet.auth import kubeconfigs
from devlet.auth.service_accounts import DRIVER_NAMESPACE, driver_account
from devlet.cluster.client import ListOptions
from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import RemoteCluster, connected
from devlet.cluster.remote.settings import Settings
from devlet.kit.processes import RunningProcess, line
from devlet.objects.documents import Document
from devlet.objects.kinds import NODES, RESOURCE_SLICES, SERVICE_ACCOUNTS
from devlet.testing.embedded import EmbeddedApi, embedded_api
from devlet.testing.waiting import until
from tests.support.cluster_contract.specimens import named, resource_slice
from tests.support.peers.drivers import dra_example_driver, dra_test_driver
from tests.support.peers.heartbeats import beating_node

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

DROPPED = "fields were dropped"
TEST_DRIVER = "test-driver.cdi.k8s.io"

# Profile, more flags, and how many devices there are with three of them asked for.
PROFILES = [
    pytest.param("gpu", [], 3, id="gpu"),
    pytest.param(
        "cpu",
        [],
        8,
        id="cpu",
    ),
    pytest.param("net", [], 3, id="net"),
    pytest.param("gpu", ["--gpu-partitions=2"], 9, id="gpu-with-partitions"),
    pytest.param("gpu", ["--gpu-allow-multiple-allocations"], 3, id="gpu-shared"),
    pytest.param("gpu", ["--binding-conditions"], 3, id="gpu-with-binding-conditions"),
]


@pytest.fixture(scope="module")
async def api(peers: "Peers") -> AsyncIterator[EmbeddedApi]:
    peers.need("kubectl", "dra-example-kubeletplugin", "test-driver")
    path = Path(tempfile.mkdtemp(prefix="dv"))
    async with embedded_api(path, binaries=peers.binaries) as running:
        yield running
    shutil.rmtree(path)


@pytest.fixture(scope="module")
async def cluster(api: EmbeddedApi) -> AsyncIterator[RemoteCluster]:
    async with connected(kubeconfig.connection([api.kubeconfig]), Settings(qps=0)) as cluster:
        yield cluster


@pytest.fixture
async def node(cluster: RemoteCluster) -> AsyncIterator[str]:
    """A node without slices, which is gone after the test."""
    async with beating_node(cluster, "n1"):
        await cluster.delete_collection(RESOURCE_SLICES)
        yield "n1"
    await cluster.delete(NODES, "n1")


async def slices(cluster: RemoteCluster, driver: str, holds: Callable[[list[Document]], bool]) -> list[Document]:
    """The driver's slices, as soon as that is true of them."""
    options = ListOptions(field_selector=f"spec.driver={driver},spec.nodeName=n1")

    async def read() -> list[Document]:
        return list((await cluster.list(RESOURCE_SLICES, options=options)).items)

    return await until(read, holds)


def complete(found: list[Document]) -> bool:
    """Whether the newest generation of the pool has all its slices, and there are no others."""
    pools = [slice_["spec"]["pool"] for slice_ in found]
    return bool(pools) and all(pool == pools[0] | {"resourceSliceCount": len(pools)} for pool in pools)


def devices(found: list[Document]) -> list[str]:
    return [device["name"] for slice_ in found for device in slice_["spec"].get("devices") or ()]


@pytest.mark.spec("KA-10.82")
@pytest.mark.spec("KA-0.10")
@pytest.mark.parametrize(("profile", "flags", "count"), PROFILES)
async def test_the_example_driver_publishes_every_profile_and_misses_no_field(
    peers: "Peers",
    api: EmbeddedApi,
    cluster: RemoteCluster,
    node: str,
    root: Path,
    profile: str,
    flags: list[str],
    count: int,
) -> None:
    running = dra_example_driver(
        peers.binaries, root, api.kubeconfig, node_name=node, profile=profile, num_devices=3, flags=[*flags, "-v=6"]
    )
    name = f"{profile}.example.com"
    async with running as driver:
        found = await slices(cluster, name, complete)
        await until(partial(line("Added slices"), driver))  # it has compared what came back
    owner = (await cluster.get(NODES, node))["metadata"]["uid"]
    assert len(devices(found)) == count
    for number, slice_ in enumerate(found):
        assert slice_["metadata"]["name"].startswith(f"{number:05}-{name}-{node}-")
        assert [reference["uid"] for reference in slice_["metadata"]["ownerReferences"]] == [owner]
    assert DROPPED not in driver.log.read_text()


@pytest.mark.spec("KA-10.83")
async def test_the_test_driver_takes_over_the_slice_of_its_predecessor(
    peers: "Peers", api: EmbeddedApi, cluster: RemoteCluster, node: str, root: Path
) -> None:
    async with dra_test_driver(peers.binaries, root, api.kubeconfig, node_name=node, num_devices=2):
        before = await slices(cluster, TEST_DRIVER, complete)
    # One device more is an update that can be waited for: the driver leaves equal slices alone.
    async with dra_test_driver(peers.binaries, root, api.kubeconfig, node_name=node, num_devices=3) as driver:
        after = await slices(cluster, TEST_DRIVER, lambda found: len(devices(found)) == 3)
    async with dra_test_driver(peers.binaries, root, api.kubeconfig, node_name=node, num_devices=3) as again:
        await anyio.sleep(2)  # its first look at its slices comes after one second
        kept = await slices(cluster, TEST_DRIVER, complete)
    assert devices(before) == ["device-00", "device-01"]
    assert [slice_["metadata"]["uid"] for slice_ in after] == [slice_["metadata"]["uid"] for slice_ in before]
    assert kept == after
    assert DROPPED not in driver.log.read_text() + again.log.read_text()


async def driver_kubeconfig(api: EmbeddedApi, cluster: RemoteCluster, driver: str, node: str) -> Path:
    """With the rights of that driver on that node, and no more."""
    account = driver_account(driver)
    await cluster.create(SERVICE_ACCOUNTS, named(account), DRIVER_NAMESPACE)
    bound = {"kind": "Node", "apiVersion": "v1", "name": node}
    request = {"spec": {"expirationSeconds": 3600, "boundObjectRef": bound}}
    made = await cluster.create(SERVICE_ACCOUNTS, request, DRIVER_NAMESPACE, name=account, subresource="token")
    config = kubeconfigs.read(api.kubeconfig)
    config["users"][0]["user"] = {"token": made["status"]["token"]}
    path = api.root / f"{driver}.kubeconfig"
    kubeconfigs.write(path, config)
    return path


@pytest.mark.spec("KA-6.3")
async def test_a_driver_needs_no_more_than_its_own_credential(
    peers: "Peers", api: EmbeddedApi, cluster: RemoteCluster, node: str, root: Path
) -> None:
    path = await driver_kubeconfig(api, cluster, "gpu.example.com", node)
    async with dra_example_driver(peers.binaries, root, path, node_name=node, num_devices=2) as driver:
        before = await slices(cluster, "gpu.example.com", complete)
    async with dra_example_driver(peers.binaries, root, path, node_name=node, num_devices=1) as driver:
        after = await slices(cluster, "gpu.example.com", lambda found: len(devices(found)) == 1)
    assert devices(before) == ["gpu-0", "gpu-1"]
    assert devices(after) == ["gpu-0"]
    assert "forbidden" not in driver.log.read_text()


async def test_a_slice_that_the_driver_has_not_made_is_deleted_by_it(
    peers: "Peers", api: EmbeddedApi, cluster: RemoteCluster, node: str, root: Path
) -> None:
    stray = resource_slice("stray", driver=TEST_DRIVER, node_name=node)
    stray["spec"]["pool"]["name"] = node  # another pool would be seen to only half a minute later
    await cluster.create(RESOURCE_SLICES, stray)
    async with dra_test_driver(peers.binaries, root, api.kubeconfig, node_name=node):
        [found] = await slices(cluster, TEST_DRIVER, lambda found: "stray" not in names(found) and complete(found))
    assert devices([found]) == ["device-00", "device-01", "device-02", "device-03"]
    assert found["spec"]["pool"]["generation"] == 2


async def test_slices_that_are_too_many_now_are_deleted_by_the_driver(
    peers: "Peers", api: EmbeddedApi, cluster: RemoteCluster, node: str, root: Path
) -> None:
    def driver(*flags: str) -> AbstractAsyncContextManager[RunningProcess]:
        return dra_example_driver(peers.binaries, root, api.kubeconfig, node_name=node, num_devices=2, flags=flags)

    async with driver("--gpu-partitions=2"):
        before = await slices(cluster, "gpu.example.com", complete)
    async with driver():
        after = await slices(cluster, "gpu.example.com", lambda found: len(found) == 1 and complete(found))
    assert len(before) == 2
    assert devices(after) == ["gpu-0", "gpu-1"]


async def test_the_slices_of_a_deleted_node_are_collected(
    peers: "Peers", api: EmbeddedApi, cluster: RemoteCluster, root: Path
) -> None:
    async with beating_node(cluster, "n1"):
        async with dra_example_driver(peers.binaries, root, api.kubeconfig, node_name="n1"):
            await slices(cluster, "gpu.example.com", complete)
        await cluster.delete(NODES, "n1")
        assert await slices(cluster, "gpu.example.com", lambda found: not found) == []


def names(found: list[Document]) -> list[str]:
    return [slice_["metadata"]["name"] for slice_ in found]


async def test_the_server_had_nothing_to_complain_about(api: EmbeddedApi) -> None:
    log = api.program.log.read_text()
    assert [line for line in log.splitlines() if line[:1] in ("W", "E") or "Traceback" in line] == []
