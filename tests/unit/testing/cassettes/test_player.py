from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest

from devlet.cluster.client import Cluster
from devlet.cluster.store.store import open_store
from devlet.errors import InUse
from devlet.kit.parts import running
from devlet.objects.documents import Document
from devlet.objects.kinds import NODES, RESOURCE_SLICES
from devlet.runtime.cdi import spec_dir
from devlet.runtime.cdi.spec import ContainerEdits, DeviceNode, Spec
from devlet.runtime.cdi.spec import Device as CdiDevice
from devlet.testing.cassettes import library
from devlet.testing.cassettes.cassette import Cassette, Driver
from devlet.testing.cassettes.player import Place, play, published

pytestmark = pytest.mark.anyio


@pytest.fixture
async def cluster(root: Path) -> AsyncIterator[Cluster]:
    async with open_store(root / "cluster.db") as store:
        await store.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2"}})
        yield store


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


async def test_specs_are_there_while_it_is_played_and_leave_those_of_others_alone(root: Path, cluster: Cluster) -> None:
    gone = ContainerEdits(device_nodes=(DeviceNode("/dev/no-such-node"),))
    devices = (
        CdiDevice("mine", ContainerEdits(env=("A=b",)) + gone),
        CdiDevice("theirs", ContainerEdits(env=("A=b",))),
        CdiDevice("empty", gone),
    )
    cassette = Cassette("n1", cdi=(Spec("0.3.0", "a.b/c", devices),))
    theirs = root / "cdi" / "theirs.yaml"
    theirs.parent.mkdir()
    theirs.write_text("{cdiVersion: 0.3.0, kind: a.b/c, devices: [{name: theirs, containerEdits: {env: [X=y]}}]}")
    (root / "cdi" / "broken.json").write_text("{")
    async with playing(cassette, root, cluster):
        _, made = spec_dir.read(root / "cdi" / "devlet-play-0.json")
        assert made.devices == (CdiDevice("mine", ContainerEdits(env=("A=b",))),)
    async with playing(cassette, root, cluster, strict=True):
        _, made = spec_dir.read(root / "cdi" / "devlet-play-0.json")
        assert [device.name for device in made.devices] == ["mine", "empty"]
    assert sorted(path.name for path in (root / "cdi").iterdir()) == ["broken.json", "theirs.yaml"]


async def test_a_driver_that_runs_already_is_not_disturbed(root: Path, cluster: Cluster) -> None:
    cassette = Cassette("n1", drivers=(Driver("led.example.com"),))
    async with playing(cassette, root, cluster):
        with pytest.raises(ExceptionGroup) as refused:
            async with playing(cassette, root, cluster):
                await anyio.sleep_forever()
        assert refused.group_contains(InUse, match="is served by another process")
        assert (root / "plugins/led.example.com/dra.sock").is_socket()
