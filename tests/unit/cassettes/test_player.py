from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from devlet.cassettes import library
from devlet.cassettes.cassette import Cassette, Driver, Plugin, PluginDevice, Pool
from devlet.cassettes.player import Place, play, published
from devlet.cassettes.rules import problems
from devlet.cassettes.virtual_drivers import VirtualDriver
from devlet.cluster.client import Cluster
from devlet.cluster.store.store import open_store
from devlet.errors import InUse, NotFound
from devlet.kit.parts import running
from devlet.objects.documents import Document
from devlet.objects.kinds import NODES, RESOURCE_SLICES, Resource
from devlet.runtime.cdi import spec_dir
from devlet.runtime.cdi.spec import ContainerEdits, Spec
from devlet.runtime.cdi.spec import Device as CdiDevice
from devlet.sdk.dra_driver import DraOptions
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.node import Node
from devlet.testing.waiting import until

pytestmark = pytest.mark.anyio


@pytest.fixture
async def cluster(root: Path) -> AsyncIterator[Cluster]:
    async with open_store(root / "cluster.db") as store:
        await store.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2"}})
        yield store


class OldServer:
    """A `Cluster` that has slices in one old version."""

    def __init__(self, cluster: Cluster, version: str) -> None:
        self._cluster = cluster
        self._version = version

    def __getattr__(self, verb: str) -> Any:
        def call(resource: Resource, *arguments: Any, **named: Any) -> Any:
            if resource.kind == RESOURCE_SLICES.kind and resource.api_version != self._version:
                raise NotFound("the server could not find the requested resource")
            return getattr(self._cluster, verb)(resource, *arguments, **named)

        return call


@asynccontextmanager
async def playing(cassette: Cassette, root: Path, cluster: Cluster, *, strict: bool = False) -> AsyncIterator[None]:
    (root / "device-plugins").mkdir(exist_ok=True)
    async with running(partial(play, cassette, Place("n2", root, root / "cdi", strict), cluster)):
        yield


async def slices(cluster: Cluster) -> list[Document]:
    return [each["spec"] for each in (await cluster.list(RESOURCE_SLICES)).items]


def sockets(root: Path) -> list[Path]:
    return list(root.rglob("*.sock"))


@pytest.mark.parametrize("name", library.names())
async def test_what_is_shipped_can_be_played(name: str, root: Path, cluster: Cluster) -> None:
    cassette = library.shipped(name)
    async with playing(cassette, root, cluster):
        for driver in cassette.drivers:
            assert (root / f"plugins_registry/{driver.name}-reg.sock").is_socket()
            assert (root / f"plugins/{driver.name}/dra.sock").is_socket()
        for plugin in cassette.plugins:
            assert (root / "device-plugins" / f"{plugin.resource.replace('/', '_')}.sock").is_socket()
        await published(cassette, "n2", cluster)
        count = sum(len(pool.devices) for driver in cassette.drivers for pool in driver.pools)
        found = await slices(cluster)
        assert sum(len(each.get("devices", ())) for each in found) == count
        assert {each["nodeName"] for each in found} == {each["pool"]["name"] for each in found} == {"n2"}
    assert not sockets(root)


async def test_specs_are_there_while_it_is_played(root: Path, cluster: Cluster) -> None:
    devices = (CdiDevice("x", ContainerEdits(env=("A=b",))),)
    async with playing(Cassette("n1", cdi=(Spec("0.3.0", "a.b/c", devices),)), root, cluster):
        (file,) = (root / "cdi").glob("*.json")
        assert spec_dir.read(file)[1].devices == devices
    assert not list((root / "cdi").iterdir())


async def test_nothing_is_left_when_it_ends(root: Path, cluster: Cluster) -> None:
    led = library.shipped("led")
    async with playing(led, root, cluster):
        await published(led, "n2", cluster)
    assert await slices(cluster) == []
    assert not sockets(root) and not list((root / "plugins").iterdir())


async def test_ids_that_a_node_takes_are_played() -> None:
    """Longer ones than documented are not rare."""
    cassette = Cassette("n1", plugins=(Plugin("example.com/led", (PluginDevice("x" * 1024),)),))
    assert list(problems(cassette)) == []
    async with Node.start(name="n2") as node, playing(cassette, node.root, node.cluster):
        await node.until_healthy("example.com/led", 1)


@pytest.mark.parametrize("version", RESOURCE_SLICES.kind.api_versions[1:])
async def test_it_is_played_where_slices_are_served_in_an_old_version(
    version: str, root: Path, cluster: Cluster
) -> None:
    led, old = library.shipped("led"), cast(Cluster, OldServer(cluster, version))
    async with playing(led, root, old):
        await published(led, "n2", old)
        assert len(await slices(cluster)) == 1
    assert await slices(cluster) == []


@pytest.mark.parametrize("instance", ["", "7f3a"])
async def test_a_driver_that_runs_already_is_not_disturbed(instance: str, root: Path, cluster: Cluster) -> None:
    """Whatever the names of its sockets are."""
    driver = VirtualDriver(Driver("led.example.com", pools=(Pool("{node}", ({"name": "red"},)),)), "n2")
    cassette = Cassette("n1", drivers=(Driver("led.example.com"),))
    options = DraOptions("n2", root, cdi_directory=root / "cdi", instance=instance)
    async with running(partial(driver.run, options, cluster)):
        await until(lambda: slices(cluster))
        with pytest.raises(ExceptionGroup) as refused:
            async with playing(cassette, root, cluster):
                await anyio.sleep_forever()
        assert refused.group_contains(
            InUse, match=r"^driver led\.example\.com runs on this node already: stop it, or play"
        )
        assert options.service_socket(driver.name).is_socket()
        assert len(await slices(cluster)) == 1


async def test_a_plugin_that_runs_already_is_not_disturbed(root: Path, cluster: Cluster) -> None:
    cassette = Cassette("n1", plugins=(Plugin("example.com/led"),))
    async with playing(cassette, root, cluster):
        with pytest.raises(ExceptionGroup) as refused:
            async with playing(cassette, root, cluster):
                await anyio.sleep_forever()
        assert refused.group_contains(InUse, match="^device plugin example.com/led runs on this node already: stop it")
        assert (root / "device-plugins/example.com_led.sock").is_socket()


async def test_a_plugin_with_a_socket_of_another_name_is_not_disturbed_either() -> None:
    cassette = Cassette("n1", plugins=(Plugin("example.com/led"),))
    async with (
        Node.start(name="n2") as node,
        FakeDevicePlugin(node.device_plugins, "example.com/led", 2, follow=True) as plugin,
    ):
        await node.until_healthy("example.com/led", 2)
        with pytest.raises(ExceptionGroup) as refused:
            async with playing(cassette, node.root, node.cluster):
                await anyio.sleep_forever()
        assert refused.group_contains(InUse, match="^device plugin example.com/led runs on this node already: stop it")
        assert set(node.device_plugins.glob("*.sock")) == {node.device_plugins / "kubelet.sock", plugin.path}
